# SPDX-License-Identifier: Apache-2.0
# cmake -D PREFIX=DIR -P uninstall.cmake: remove what is listed as installed below PREFIX (and
# below DESTDIR, if set), and the folders that are empty afterwards.  PREFIX itself stays, and so
# do the folders of /usr and /usr/local that are not this project's alone.

if("${PREFIX}" STREQUAL "")
	message(FATAL_ERROR "no PREFIX given: name the folder that was installed to, as "
		"`make uninstall PREFIX=DIR`")
endif()
get_filename_component(prefix "${PREFIX}" ABSOLUTE)
string(REGEX REPLACE "^/$" "" prefix "${prefix}")
set(root "$ENV{DESTDIR}${prefix}")
set(manifest "${root}/share/accelhal/install_manifest.txt")
if(NOT EXISTS "${manifest}")
	message(FATAL_ERROR "nothing of accelhal is known to be installed below ${root}: there is "
		"no ${manifest}.  Give the PREFIX (and DESTDIR) that `make install` was given; "
		"packages are removed by dpkg.  Nothing has been removed.")
endif()

file(STRINGS "${manifest}" lines)
set(files "")
set(folders "")
foreach(line IN LISTS lines)
	if(IS_ABSOLUTE "${line}")
		set(file "$ENV{DESTDIR}${line}")
	else()
		set(file "${root}/${line}")
	endif()
	if(EXISTS "${file}" OR IS_SYMLINK "${file}")
		list(APPEND files "${file}")
	endif()
	get_filename_component(folder "${file}" DIRECTORY)
	list(APPEND folders "${folder}")
endforeach()
list(APPEND folders "${root}/share/accelhal")
list(REMOVE_DUPLICATES folders)

# All or nothing.
foreach(folder IN LISTS folders)
	if(EXISTS "${folder}")
		execute_process(COMMAND test -w "${folder}" RESULT_VARIABLE rc)
		if(rc)
			message(FATAL_ERROR "${folder} is not writable for this user: run the "
				"command as the user who installed, or as root.  Nothing has "
				"been removed.")
		endif()
	endif()
endforeach()

list(LENGTH files count)
foreach(file IN LISTS files)
	file(REMOVE "${file}")
	if(EXISTS "${file}" OR IS_SYMLINK "${file}")
		message(FATAL_ERROR "${file} cannot be removed")
	endif()
endforeach()
file(REMOVE "${manifest}")

foreach(folder IN LISTS folders)
	string(LENGTH "${root}/" start)
	string(FIND "${folder}" "${root}/" at)
	while(at EQUAL 0)
		string(SUBSTRING "${folder}" ${start} -1 name)
		if(prefix MATCHES "^(/usr|/usr/local)?$" AND NOT name MATCHES "(^|/)(hal|accelhal)(/|$)")
			break()
		endif()
		file(GLOB left "${folder}/*" "${folder}/.*")
		list(FILTER left EXCLUDE REGEX "/\\.\\.?$")
		if(left)
			break()
		endif()
		file(REMOVE_RECURSE "${folder}")
		get_filename_component(folder "${folder}" DIRECTORY)
		string(FIND "${folder}" "${root}/" at)
	endwhile()
endforeach()
message(STATUS "${count} files removed from ${root}")
