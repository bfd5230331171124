# SPDX-License-Identifier: Apache-2.0
# hal-cuda-trial: what the backend starts to try a driver out; it looks for it in accelhal/
# beside the library, then right beside it.
# And the reader of PTX.
file(GLOB ptx CONFIGURE_DEPENDS ${folder}/ptx/*.c)
target_sources(hal_backend_cuda PRIVATE ${ptx})
add_executable(hal_cuda_trial ${folder}/helper/hal_cuda_trial.c
	$<TARGET_OBJECTS:hal_backend_cuda>)
set_target_properties(hal_cuda_trial PROPERTIES OUTPUT_NAME hal-cuda-trial
	RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(hal_cuda_trial PRIVATE hal_headers hal_warnings Threads::Threads
	${CMAKE_DL_LIBS})
install(TARGETS hal_cuda_trial RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/accelhal
	COMPONENT library)
