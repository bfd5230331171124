# SPDX-License-Identifier: Apache-2.0
# libaccelhal.so: the core and one object library a backend, so that each side sees only
# the headers it may include.
#   accelhal, accelhal::hal  the shared library
#   accelhal_internal        the same objects, static, nothing hidden: white-box programs
#   accelhal_checked, accelhal_internal_checked
#                            the same with the assertions of docs/state.md: what tests link
#   hal_lib                  lib/: what the core and the tools share

add_library(hal_headers INTERFACE)
target_include_directories(hal_headers INTERFACE ${PROJECT_SOURCE_DIR})

# Two stores put together in a vector register first are more instructions than two
# stores; gcc 12 does that at -O2.  Counted by tools/micro.
add_library(hal_hot INTERFACE)
target_compile_options(hal_hot INTERFACE
	$<$<C_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>)

file(GLOB lib_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/*.c)
add_library(hal_lib STATIC ${lib_sources})
target_link_libraries(hal_lib PUBLIC hal_headers PkgConfig::YAJL PkgConfig::MD
	PRIVATE hal_hot hal_warnings)
set_target_properties(hal_lib PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(HAL_BACKENDS "")
set(objects "")
set(backend_lines "")
file(GLOB folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/*)
foreach(folder IN LISTS folders)
	get_filename_component(name ${folder} NAME)
	file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
	if(NOT sources)
		continue()
	endif()
	add_library(hal_backend_${name} OBJECT ${sources})
	target_link_libraries(hal_backend_${name} PRIVATE hal_headers hal_hot hal_warnings)
	set_target_properties(hal_backend_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
	list(APPEND objects $<TARGET_OBJECTS:hal_backend_${name}>)
	if(name MATCHES "^(memfd|stream)$") # shared by backends, and none itself
		continue()
	endif()
	include(${folder}/backend.cmake OPTIONAL) # what it takes beyond its sources
	list(APPEND HAL_BACKENDS ${name})
	string(APPEND backend_lines "HAL_BACKEND(${name})\n")
endforeach()

file(CONFIGURE OUTPUT ${HAL_GENERATED_DIR}/hal_backends.h CONTENT
"/* Generated from the folders in backends/: one line a backend. */
${backend_lines}")

file(GLOB core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/*/*.c)

# A policy registers by lying in its folder.
set(policy_lines "")
file(GLOB policies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/policies/*.c)
foreach(policy IN LISTS policies)
	get_filename_component(name ${policy} NAME_WE)
	string(APPEND policy_lines "HAL_POLICY_(${name})\n")
endforeach()
file(CONFIGURE OUTPUT ${HAL_GENERATED_DIR}/hal_policies.h CONTENT
"/* Generated from the files in policies/: one line a policy. */
${policy_lines}")

add_library(hal_core OBJECT ${core_sources} ${policies})
target_include_directories(hal_core PRIVATE ${HAL_GENERATED_DIR} ${PROJECT_SOURCE_DIR}/core)
target_link_libraries(hal_core PRIVATE hal_headers hal_hot hal_warnings hal_lib PkgConfig::CK
	PkgConfig::INIH Threads::Threads)
list(APPEND objects $<TARGET_OBJECTS:hal_core>)

set_target_properties(hal_core PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(hal_libs hal_lib PkgConfig::CK PkgConfig::INIH Threads::Threads ${CMAKE_DL_LIBS} m)

# The files that differ without NDEBUG, compiled once more; the rest of the core is the same.
set(checked core/command/flow.c core/command/check.c core/memory/check.c core/memory/residency.c
	core/space/check.c core/space/moves.c)
set(checked_objects ${objects})
if(HAL_BUILD_TESTS)
	list(TRANSFORM checked PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
	add_library(hal_checked OBJECT ${sources})
	target_include_directories(hal_checked PRIVATE ${PROJECT_SOURCE_DIR}/core)
	target_link_libraries(hal_checked PRIVATE hal_headers hal_hot hal_warnings hal_lib
		PkgConfig::CK Threads::Threads)
	target_compile_options(hal_checked PRIVATE -UNDEBUG)
	set_target_properties(hal_checked PROPERTIES POSITION_INDEPENDENT_CODE ON)
	string(REPLACE ";" "|" pattern "${checked}")
	list(REMOVE_ITEM checked_objects $<TARGET_OBJECTS:hal_core>)
	list(APPEND checked_objects $<TARGET_OBJECTS:hal_checked>
		"$<FILTER:$<TARGET_OBJECTS:hal_core>,EXCLUDE,/(${pattern})[.]o>")
endif()

set(map ${PROJECT_SOURCE_DIR}/hal.map)
# hal_shared(NAME OBJECTS...): the shared library as NAME.
function(hal_shared name)
	add_library(${name} SHARED ${ARGN})
	set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
		INSTALL_RPATH "")
	target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
		$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
	target_link_libraries(${name} PRIVATE ${hal_libs})
	if(EXISTS ${map})
		target_link_options(${name} PRIVATE -Wl,--version-script=${map})
		set_target_properties(${name} PROPERTIES LINK_DEPENDS ${map})
	endif()
	if(NOT HAL_SANITIZE)
		target_link_options(${name} PRIVATE -Wl,--no-undefined)
	endif()
endfunction()

# hal_static(NAME OBJECTS...): a static library that hides nothing.
function(hal_static name)
	add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARGN})
	target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}
		${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/backends
		${PROJECT_SOURCE_DIR}/npu-rtl ${HAL_GENERATED_DIR})
	target_link_libraries(${name} INTERFACE npu_regs_headers)
	target_link_libraries(${name} PUBLIC ${hal_libs})
endfunction()

hal_shared(accelhal ${objects})
add_library(accelhal::hal ALIAS accelhal)
set_target_properties(accelhal PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
	EXPORT_NAME hal)
hal_static(accelhal_internal ${objects})
if(HAL_BUILD_TESTS)
	hal_shared(accelhal_checked ${checked_objects})
	hal_static(accelhal_internal_checked ${checked_objects})
endif()
