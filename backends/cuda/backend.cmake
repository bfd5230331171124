# SPDX-License-Identifier: Apache-2.0
# hal-cuda-trial: what the backend starts to try a driver out; it looks for it in accelhal/
# beside the library, then right beside it.
# hal_ptx: PTX that is read and rewritten, which needs nothing of a driver; the command hal-ptx
# is made of it, too.
file(GLOB ptx CONFIGURE_DEPENDS ${folder}/ptx/*.c)
add_library(hal_ptx STATIC ${ptx})
set_target_properties(hal_ptx PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(hal_ptx PUBLIC ${folder}/ptx)
target_link_libraries(hal_ptx PRIVATE hal_warnings)
list(APPEND objects $<TARGET_OBJECTS:hal_ptx>)
add_executable(hal_cuda_trial ${folder}/helper/hal_cuda_trial.c
	$<TARGET_OBJECTS:hal_backend_cuda> $<TARGET_OBJECTS:hal_backend_stream>
	$<TARGET_OBJECTS:hal_ptx>)
set_target_properties(hal_cuda_trial PROPERTIES OUTPUT_NAME hal-cuda-trial INSTALL_RPATH ""
	RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(hal_cuda_trial PRIVATE hal_headers hal_warnings Threads::Threads
	${CMAKE_DL_LIBS})
install(TARGETS hal_cuda_trial RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/accelhal
	COMPONENT library)
