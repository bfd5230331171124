# SPDX-License-Identifier: Apache-2.0
# What can be chosen at configure time, and the defaults.

option(HAL_BUILD_TESTS "Build the tests (needs cmocka)" ON)
set(HAL_MODEL_DIR "$ENV{HAL_MODEL_DIR}" CACHE PATH
    "Folder of NPU models built elsewhere; empty: the ones built here")
# Of the machine that texts and examples speak of, and of a small one.
set(HAL_MODEL_SHAPES 16x16x4x8 8x8x4x8)
find_program(HAL_VERILATOR verilator)
set(version 0)
if(HAL_VERILATOR)
	execute_process(COMMAND ${HAL_VERILATOR} --version OUTPUT_VARIABLE version)
	string(REGEX REPLACE "^Verilator ([0-9.]+).*" "\\1" version "${version}")
endif()
if(version VERSION_LESS 5.006 OR HAL_MODEL_DIR)
	set(default OFF)
else()
	set(default ON)
endif()
option(HAL_BUILD_MODELS "Build the NPU's models (needs Verilator 5.006, about a minute each)"
       ${default})
if(NOT default AND NOT HAL_MODEL_DIR AND NOT DEFINED CACHE{HAL_MODELS_WARNED})
	message(WARNING "Verilator 5.006 or later not found (found: ${version}): "
		"the NPU's models are not built, npu:0 will be absent")
	set(HAL_MODELS_WARNED ON CACHE INTERNAL "")
endif()
# Debian's own first: its packages (numpy, setuptools) are that one's.
find_program(HAL_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(HAL_PYTHON python3 DOC "Runs the tests of bindings/python; empty: none")
# A newer compiler warns of more: an error for who develops this, no reason not to build it.
if(DEFINED ENV{HAL_WERROR})
	set(default $ENV{HAL_WERROR})
else()
	set(default OFF)
endif()
option(HAL_WERROR "Treat warnings as errors; the environment variable of that name decides the default"
       ${default})
set(HAL_SCALE_SIM "$ENV{HAL_SCALE_SIM}" CACHE PATH
    "Folder of SCALE-Sim's layer tables (alexnet.csv ...); empty: what needs them is skipped")

# Recorded loads, likewise.
set(HAL_DISB "$ENV{HAL_DISB}" CACHE PATH
    "Folder of DISB's loads (REAL.json); empty: their figures are left out")

# MLPerf Tiny's int8 networks, likewise.
set(HAL_MLPERF_TINY "$ENV{HAL_MLPERF_TINY}" CACHE PATH
    "Folder of the MLPerf Tiny networks (kws_dscnn_int8.tflite ...); empty: their tests are skipped")
# Networks of public architectures that tests/tflite/oracle/architectures.py makes.
set(HAL_ARCHITECTURES "$ENV{HAL_ARCHITECTURES}" CACHE PATH
    "Folder of networks that architectures.py has made; empty: their figures are left out")
set(HAL_SANITIZE "" CACHE STRING "Value of -fsanitize= for everything but the NPU's models")
option(HAL_COVERAGE "Instrument for gcov" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(HAL_CCACHE ccache)
if(HAL_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
	set(CMAKE_C_COMPILER_LAUNCHER ${HAL_CCACHE})
	set(CMAKE_CXX_COMPILER_LAUNCHER ${HAL_CCACHE})
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(CK REQUIRED IMPORTED_TARGET ck)
pkg_check_modules(INIH REQUIRED IMPORTED_TARGET inih)
pkg_check_modules(YAJL REQUIRED IMPORTED_TARGET yajl)
pkg_check_modules(MD REQUIRED IMPORTED_TARGET libmd)
pkg_check_modules(CAIRO IMPORTED_TARGET cairo)
pkg_check_modules(PNG IMPORTED_TARGET libpng)
pkg_check_modules(JPEG IMPORTED_TARGET libjpeg)
pkg_check_modules(CURSES IMPORTED_TARGET ncurses)
if(HAL_BUILD_TESTS)
	pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
