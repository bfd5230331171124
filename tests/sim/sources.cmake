# SPDX-License-Identifier: Apache-2.0
# What sim_random is made of, but for the kernels of a backend; for tests/levelzero, too.

set(sim_sources "")
foreach(name IN ITEMS sim_random script shrink run model check events kernels do_part do_queue do_work
		do_time do_policy)
	list(APPEND sim_sources ${CMAKE_CURRENT_LIST_DIR}/${name}.c)
endforeach()

# The hostile policy is built in tests/sim.
function(sim_program target)
	target_link_libraries(${target} PRIVATE accelhal_checked hal_warnings ${CMAKE_DL_LIBS})
	target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/conformance)
	target_compile_definitions(${target} PRIVATE
		SIM_HOSTILE="$<TARGET_FILE:sim_hostile>")
	add_dependencies(${target} sim_hostile)
endfunction()
