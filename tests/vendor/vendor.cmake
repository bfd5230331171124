# SPDX-License-Identifier: Apache-2.0
# What tests/cuda, rocm, levelzero and fpga have alike: a program of this folder with a table of the
# vendor's.
#
# vendor_tests(NAME BACKEND [HELPERS sources] [DEFINITIONS ...] [INCLUDES ...] [DEPENDS targets]
#	[ENVIRONMENT ...] [SUBMIT FUNCTION,FUNCTION... AT_MOST instructions]
#	[FAULTS source [FAULTS_ENVIRONMENT more...]] [LOADER source DEFINITIONS...]
#	[MEMCHECK kinds] [ABI source HEADERS folder WITHOUT text])
# SUBMIT: NAME_bench_submit from bench_submit.c, and test NAME_overhead, which fails if these
# functions of the backend have AT_MOST instructions more than the same calls by hand.
# FAULTS: test_NAME_faults, in which each call of the vendor's library fails in turn.
# LOADER: test_NAME_loader, what can be wrong before there is a device.
# MEMCHECK: which of faults and loader run under valgrind, too.
# ABI: test_NAME_abi, our declarations against the vendor's headers in HEADERS; a skip with the text
# if there are none.
function(vendor_tests name backend)
	cmake_parse_arguments(PARSE_ARGV 2 T "" "SUBMIT;AT_MOST;FAULTS;ABI;HEADERS;WITHOUT"
		"HELPERS;DEFINITIONS;INCLUDES;DEPENDS;ENVIRONMENT;FAULTS_ENVIRONMENT;LOADER;MEMCHECK")
	foreach(kind IN ITEMS faults loader)
		set(${kind} NO_MEMCHECK)
		if(kind IN_LIST T_MEMCHECK)
			set(${kind} "")
		endif()
	endforeach()
	set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
	set(made "")
	if(T_SUBMIT)
		set(bench ${name}_bench_submit)
		list(APPEND made ${bench})
		add_executable(${bench} bench_submit.c ${here}/bench.c ${T_HELPERS})
		target_link_libraries(${bench} PRIVATE accelhal_internal hal_warnings ${CMAKE_DL_LIBS})
		if(HAL_VALGRIND AND NOT HAL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
			add_test(NAME ${name}_overhead COMMAND ${here}/../fakes/overhead.sh ${backend}
				${T_SUBMIT} $<TARGET_FILE:${bench}> ${T_AT_MOST} ${name})
			set_tests_properties(${name}_overhead PROPERTIES LABELS unit TIMEOUT 120
				ENVIRONMENT "${T_ENVIRONMENT}")
		endif()
	endif()
	if(T_FAULTS)
		list(APPEND made test_${name}_faults)
		hal_test(test_${name}_faults SOURCES ${T_FAULTS} ${here}/faults.c ${T_HELPERS} INTERNAL
			${faults} ENVIRONMENT ${T_ENVIRONMENT} ${T_FAULTS_ENVIRONMENT})
	endif()
	if(T_LOADER)
		list(POP_FRONT T_LOADER source)
		list(APPEND made test_${name}_loader)
		hal_test(test_${name}_loader SOURCES ${source} ${here}/loader.c ${T_HELPERS} INTERNAL
			${loader} ENVIRONMENT ${T_ENVIRONMENT})
		target_compile_definitions(test_${name}_loader PRIVATE ${T_LOADER})
	endif()
	if(T_ABI AND T_HEADERS)
		hal_test(test_${name}_abi SOURCES ${T_ABI} ${here}/abi.c LIBS hal_headers)
		target_include_directories(test_${name}_abi SYSTEM PRIVATE ${T_HEADERS})
	elseif(T_ABI)
		hal_test_without(test_${name}_abi ${T_WITHOUT} LABELS unit)
	endif()
	foreach(target IN LISTS made)
		target_compile_definitions(${target} PRIVATE ${T_DEFINITIONS})
		target_include_directories(${target} PRIVATE ${T_INCLUDES})
		add_dependencies(${target} ${T_DEPENDS})
	endforeach()
endfunction()

# vendor_neighbour(NAME FIGURE IMAGE TARGET HELPERS sources DEPENDS targets CALLS names... ENVIRONMENT
#	...): NAME_bench_neighbour of ../gpu, and tests that count the CALLS of the engine's thread, with
# layer validate, too.
function(vendor_neighbour name figure image target)
	cmake_parse_arguments(PARSE_ARGV 4 T "" "" "HELPERS;DEPENDS;DEFINITIONS;CALLS;ENVIRONMENT")
	set(bench ${name}_bench_neighbour)
	list(TRANSFORM T_CALLS REPLACE "(.+)" "\"\\1\"")
	list(JOIN T_CALLS "," T_CALLS)
	add_executable(${bench} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../gpu/bench_neighbour.c
		${T_HELPERS})
	target_link_libraries(${bench} PRIVATE accelhal_internal hal_warnings
		${CMAKE_DL_LIBS} Threads::Threads)
	# The core's references to backends are weak: they pull nothing out of a library.
	target_link_options(${bench} PRIVATE LINKER:-u,hal_backend_${name})
	target_compile_definitions(${bench} PRIVATE NAME="${figure}" IMAGE=${image}
		TARGET="${target}" CALLS=${T_CALLS} ${T_DEFINITIONS})
	add_dependencies(${bench} ${T_DEPENDS})
	foreach(test IN ITEMS "" .validate)
		add_test(NAME ${name}_neighbour${test} COMMAND ${bench} check)
		set_tests_properties(${name}_neighbour${test} PROPERTIES LABELS unit TIMEOUT 120
			ENVIRONMENT "${T_ENVIRONMENT}")
	endforeach()
	set_property(TEST ${name}_neighbour.validate APPEND PROPERTY ENVIRONMENT
		HAL_LAYERS_VALIDATE=1 HAL_LAYERS_REPORT=/dev/stderr)
endfunction()
