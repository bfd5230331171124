# SPDX-License-Identifier: Apache-2.0
# The models of the NPU, where the npu backend looks for them; read by cmake/HalInstall.cmake.
set(models "")
foreach(shape IN LISTS HAL_MODEL_SHAPES)
	set(file ${HAL_MODEL_DIR}/libnpu_${shape}.so)
	if(HAL_BUILD_MODELS OR EXISTS ${file})
		list(APPEND models ${file})
	endif()
endforeach()
install(TARGETS npu_model_golden npu_model_fast
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/accelhal COMPONENT models)
# With tests, a build may be of the quick tier alone, which has no model of 8 x 8.
set(optional "")
if(HAL_BUILD_TESTS)
	set(optional OPTIONAL)
endif()
install(PROGRAMS ${models} DESTINATION ${CMAKE_INSTALL_LIBDIR}/accelhal COMPONENT models ${optional})
