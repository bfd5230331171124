# SPDX-License-Identifier: Apache-2.0
# hal_test(NAME SOURCES ... [LIBS ...] [LABELS ...] [ARGS ...] [ENVIRONMENT ...]
#          [TIMEOUT seconds] [INTERNAL] [FULL])
#
# Builds a cmocka test against the library and registers it with ctest under NAME.
# The library is accelhal_checked, which asserts docs/state.md.
# INTERNAL links the static accelhal_internal_checked, which shows functions that libaccelhal.so
# hides, and adds core/, backends/ and the generated headers to the include path.
# FULL: NAME.full runs the program with the argument "full" behind the others (tests/tier.h).
# Exit status 77 is a skip.  LABELS default to "unit".
#
# Tests without a label `full` or `long` are the quick tier (make check): at most 5 s of
# processor time each.  A test that takes longer is cut: the same program with fewer seeds, shapes or
# cases has the plain name, and its whole form is NAME.full.
# hal_full(NAME...): label `full`, so that make check-full runs them and make check does not.
#
# hal_tiers(NAME PROGRAM QUICK arguments FULL arguments PROPERTIES properties of both): a program as
# NAME and as NAME.full.
#
# hal_test_without(NAME WHAT): in place of a test that cannot run here: a skip that says why.
#
# HAL_RUN, a list, and HAL_RUN_LINE, a string that ends in a space: what a script or a shell
# puts before a program of this build to run it; empty unless cross-compiled.  A COMMAND that
# begins with a target needs neither.

set(HAL_RUN ${CMAKE_CROSSCOMPILING_EMULATOR})
set(HAL_RUN_LINE "")
foreach(word IN LISTS HAL_RUN)
	string(APPEND HAL_RUN_LINE "${word} ")
endforeach()

function(hal_full)
	foreach(name IN LISTS ARGN)
		set_property(TEST ${name} APPEND PROPERTY LABELS full)
	endforeach()
endfunction()

# NAME.full may take four times as long as NAME: a limit ends what hangs, on any machine.
function(hal_full_timeout name)
	get_property(seconds TEST ${name} PROPERTY TIMEOUT)
	if(seconds)
		math(EXPR seconds "4 * ${seconds}")
		set_tests_properties(${name}.full PROPERTIES TIMEOUT ${seconds})
	endif()
endfunction()

function(hal_tiers name program)
	cmake_parse_arguments(PARSE_ARGV 2 T "" "" "QUICK;FULL;PROPERTIES")
	add_test(NAME ${name} COMMAND ${program} ${T_QUICK})
	add_test(NAME ${name}.full COMMAND ${program} ${T_FULL})
	set_tests_properties(${name} ${name}.full PROPERTIES ${T_PROPERTIES})
	hal_full(${name}.full)
	hal_full_timeout(${name})
endfunction()

set(HAL_NO_MODELS
	"no models of the NPU: install Verilator 5.006, or give -DHAL_MODEL_DIR=FOLDER of them")
function(hal_test_without name what)
	add_test(NAME ${name} COMMAND sh -c "echo '${what}'; exit 77")
	set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 ${ARGN})
endfunction()

function(hal_test name)
	cmake_parse_arguments(PARSE_ARGV 1 T "INTERNAL;NO_MEMCHECK;FULL" "TIMEOUT"
		"SOURCES;LIBS;LABELS;ARGS;ENVIRONMENT")
	if(NOT HAL_BUILD_TESTS)
		return()
	endif()
	if(T_UNPARSED_ARGUMENTS OR NOT T_SOURCES)
		message(FATAL_ERROR "hal_test(${name}): bad arguments ${T_UNPARSED_ARGUMENTS}")
	endif()
	if(NOT T_LABELS)
		set(T_LABELS unit)
	endif()
	if(NOT T_TIMEOUT)
		set(T_TIMEOUT 300)
	endif()
	if(CMAKE_CROSSCOMPILING OR HAL_SANITIZE) # an emulator, or as slow
		math(EXPR T_TIMEOUT "5 * ${T_TIMEOUT}")
	endif()
	add_executable(${name} ${T_SOURCES})
	target_link_libraries(${name} PRIVATE hal_warnings ${T_LIBS} PkgConfig::CMOCKA)
	if(T_INTERNAL)
		target_link_libraries(${name} PRIVATE accelhal_internal_checked)
		# $ORIGIN would be the test's own folder.
		list(APPEND T_ENVIRONMENT HAL_NPU_MODELS=${HAL_MODEL_DIR})
	elseif(T_LIBS MATCHES "npuc" OR "abi" IN_LIST T_LABELS)
		# libnpuc brings the library along.
		target_link_libraries(${name} PRIVATE accelhal)
	else()
		target_link_libraries(${name} PRIVATE accelhal_checked)
	endif()
	target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
	target_compile_definitions(${name} PRIVATE
		HAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HAL_BINARY_DIR="${PROJECT_BINARY_DIR}")
	add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
	set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
		SKIP_RETURN_CODE 77 ENVIRONMENT "${T_ENVIRONMENT}")
	if(T_FULL)
		add_test(NAME ${name}.full COMMAND ${name} ${T_ARGS} full)
		set_tests_properties(${name}.full PROPERTIES LABELS "${T_LABELS};full"
			SKIP_RETURN_CODE 77 ENVIRONMENT "${T_ENVIRONMENT}")
		hal_full_timeout(${name})
	endif()
	if(("unit" IN_LIST T_LABELS OR "negative" IN_LIST T_LABELS) AND
	   NOT "threads" IN_LIST T_LABELS AND NOT T_NO_MEMCHECK)
		hal_memcheck(${name} ${T_ARGS})
		if(TEST memcheck.${name})
			set_property(TEST memcheck.${name} PROPERTY ENVIRONMENT ${T_ENVIRONMENT})
		endif()
	endif()
endfunction()

# hal_memcheck(TARGET [ARGS ...]): the same under valgrind as memcheck.TARGET.  These run
# with `ctest --preset memcheck` only; an invalid access or a leak fails them.
find_program(HAL_VALGRIND valgrind)
function(hal_memcheck target)
	if(NOT HAL_VALGRIND OR HAL_SANITIZE)
		return()
	endif()
	add_test(NAME memcheck.${target} CONFIGURATIONS Memcheck COMMAND ${HAL_VALGRIND} --quiet
		--error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect
		--suppressions=${PROJECT_SOURCE_DIR}/tests/valgrind.supp
		$<TARGET_FILE:${target}> ${ARGN})
	set_tests_properties(memcheck.${target} PROPERTIES LABELS memcheck TIMEOUT 900
		SKIP_RETURN_CODE 77)
endfunction()
