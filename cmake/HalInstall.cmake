# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, pkg-config and the CMake package.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/accelhal)

install(TARGETS accelhal EXPORT accelhal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY hal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(EXPORT accelhal NAMESPACE accelhal:: DESTINATION ${package_dir}
	FILE accelhalTargets.cmake)

configure_package_config_file(cmake/accelhalConfig.cmake.in
	${HAL_GENERATED_DIR}/accelhalConfig.cmake INSTALL_DESTINATION ${package_dir})
# 0.x: a new minor version may break.
write_basic_package_version_file(${HAL_GENERATED_DIR}/accelhalConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES ${HAL_GENERATED_DIR}/accelhalConfig.cmake
	${HAL_GENERATED_DIR}/accelhalConfigVersion.cmake DESTINATION ${package_dir})

# Paths relative to the file itself: the installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/accelhal.pc.in ${HAL_GENERATED_DIR}/accelhal.pc @ONLY)
install(FILES ${HAL_GENERATED_DIR}/accelhal.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
