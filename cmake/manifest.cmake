# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install` after everything else: list what has been installed in
# PREFIX/share/accelhal/install_manifest.txt, which uninstall.cmake reads.  Paths are relative to
# PREFIX, so that the tree can be moved.  What an earlier install has listed there stays listed.

set(manifest $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/accelhal/install_manifest.txt)
set(lines "")
if(EXISTS ${manifest})
	file(STRINGS ${manifest} lines)
endif()
foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
	string(FIND "${file}" "${CMAKE_INSTALL_PREFIX}/" at)
	if(at EQUAL 0)
		string(LENGTH "${CMAKE_INSTALL_PREFIX}/" start)
		string(SUBSTRING "${file}" ${start} -1 file)
	endif()
	list(APPEND lines "${file}")
endforeach()
list(REMOVE_DUPLICATES lines)
list(SORT lines)
list(JOIN lines "\n" lines)
file(WRITE ${manifest} "${lines}\n")
