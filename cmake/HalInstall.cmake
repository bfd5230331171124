# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, pkg-config and the CMake package; `uninstall`.  Each component
# is a Debian package, which scripts/make-deb makes:
#   library  libaccelhal0           dev     libaccelhal-dev
#   tools    accelhal-tools         models  accelhal-npu-models
#   daemon   accelhal-daemon

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/accelhal)

install(TARGETS accelhal EXPORT accelhal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
	COMPONENT library NAMELINK_COMPONENT dev)
install(DIRECTORY hal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
	FILES_MATCHING PATTERN *.h)
install(FILES policies/common.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hal RENAME policy_common.h
	COMPONENT dev)
install(EXPORT accelhal NAMESPACE accelhal:: DESTINATION ${package_dir}
	FILE accelhalTargets.cmake COMPONENT dev)

configure_package_config_file(cmake/accelhalConfig.cmake.in
	${HAL_GENERATED_DIR}/accelhalConfig.cmake INSTALL_DESTINATION ${package_dir})
# 0.x: a new minor version may break.
write_basic_package_version_file(${HAL_GENERATED_DIR}/accelhalConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${HAL_GENERATED_DIR}/accelhalConfig.cmake
	${HAL_GENERATED_DIR}/accelhalConfigVersion.cmake DESTINATION ${package_dir}
	COMPONENT dev)

# Paths relative to the file itself: the installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/accelhal.pc.in ${HAL_GENERATED_DIR}/accelhal.pc @ONLY)
install(FILES ${HAL_GENERATED_DIR}/accelhal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
	COMPONENT dev)

include(npu-rtl/install.cmake)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
# hal_install_pages(PAGE...): install these at the same place below DOCDIR as in the tree.  Links to
# headers lead to the installed ones; a link to what is not installed becomes its text.
function(hal_install_pages)
	set(root ${PROJECT_SOURCE_DIR})
	foreach(page IN LISTS ARGN)
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${root}/${page})
		get_filename_component(folder "${page}" DIRECTORY)
		file(RELATIVE_PATH headers ${CMAKE_INSTALL_FULL_DOCDIR}/${folder}
			${CMAKE_INSTALL_FULL_INCLUDEDIR})
		file(READ ${root}/${page} text)
		string(REGEX MATCHALL "\\([^]()#:; \n]+[)#]" links "${text}")
		list(REMOVE_DUPLICATES links)
		foreach(link IN LISTS links)
			string(REGEX REPLACE "^\\((.*)[)#]$" "\\1" link "${link}")
			string(FIND "${text}" "](${link}" at)
			if(at EQUAL -1)
				continue()
			endif()
			get_filename_component(target "${root}/${folder}/${link}" ABSOLUTE)
			file(RELATIVE_PATH target ${root} "${target}")
			if(target MATCHES "^(LICENSE|README.md|docs/(devices/)?[^/]*\\.md|docs/pictures/[^/]*\\.png|examples/.*)$")
				continue()
			elseif(target MATCHES "^hal/.*\\.h$")
				string(REPLACE "](${link})" "](${headers}/${target})" text "${text}")
			else()
				string(REPLACE "." "\\." link "${link}")
				string(REGEX REPLACE "\\[([^][]*)\\]\\(${link}(#[^)]*)?\\)" "\\1"
					text "${text}")
			endif()
		endforeach()
		set(out ${HAL_GENERATED_DIR}/pages/${page})
		set(old "")
		if(EXISTS ${out})
			file(READ ${out} old)
		endif()
		if(NOT text STREQUAL old)
			file(WRITE ${out} "${text}")
		endif()
		install(FILES ${out} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT dev)
	endforeach()
endfunction()
file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} docs/*.md docs/devices/*.md)
hal_install_pages(README.md examples/README.md ${pages})
install(DIRECTORY docs/pictures DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT dev FILES_MATCHING
	PATTERN *.png)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev FILES_MATCHING
	PATTERN *.c PATTERN *.h PATTERN *.conf PATTERN *.cu PATTERN *.ptx PATTERN *.py PATTERN *_skeleton/*
	PATTERN *.txt PATTERN __pycache__ EXCLUDE PATTERN examples/CMakeLists.txt EXCLUDE)

# ---- uninstall -------------------------------------------------------------------------------
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/manifest.cmake ALL_COMPONENTS)
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D PREFIX=${CMAKE_INSTALL_PREFIX}
	-P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)
