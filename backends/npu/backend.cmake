# SPDX-License-Identifier: Apache-2.0
# What the npu backend takes beyond its sources; read by cmake/HalLibrary.cmake.
# HAL_NPU_MODEL_DIRS: where it looks for models, colon-separated; $ORIGIN is the folder of
# libaccelhal.so, so that a build folder and an installed tree can be moved.  It tries
# $ORIGIN/accelhal, where models are installed, first; the last is that of an installed
# program that contains the library.
# HAL_HAVE_MODELS: npu:0 will be there for the tests.
set(HAL_HAVE_MODELS ON)
if(HAL_MODEL_DIR)
	set(model_dirs ${HAL_MODEL_DIR})
else()
	set(HAL_HAVE_MODELS ${HAL_BUILD_MODELS})
	set(model_dirs "$ORIGIN/npu-rtl")
	set(HAL_MODEL_DIR ${PROJECT_BINARY_DIR}/npu-rtl)
endif()
string(APPEND model_dirs ":$ORIGIN/${lib_from_bin}/accelhal")

target_link_libraries(hal_backend_npu PRIVATE npu_regs_headers)
target_include_directories(hal_backend_npu PRIVATE ${PROJECT_SOURCE_DIR}/npu-rtl)
target_compile_definitions(hal_backend_npu PRIVATE HAL_NPU_MODEL_DIRS="${model_dirs}")
