# SPDX-License-Identifier: Apache-2.0
# One table, three views: npu_regs_gen expands npu-rtl/npu_regs.def into npu_regs.h (C),
# npu_regs_pkg.sv (RTL) and npu-registers.md, all in HAL_GENERATED_DIR.
# Targets: npu_regs (the files), npu_regs_headers (INTERFACE: their include path).

set(table ${PROJECT_SOURCE_DIR}/npu-rtl/npu_regs.def)
set(generator ${PROJECT_SOURCE_DIR}/npu-rtl/npu_regs_gen.c)
file(MAKE_DIRECTORY ${HAL_GENERATED_DIR})

add_library(npu_regs_headers INTERFACE)
target_include_directories(npu_regs_headers INTERFACE ${HAL_GENERATED_DIR})
if(EXISTS ${generator})
	add_executable(npu_regs_gen ${generator})
	target_link_libraries(npu_regs_gen PRIVATE hal_warnings)
	foreach(view IN ITEMS "h npu_regs.h" "sv npu_regs_pkg.sv" "md npu-registers.md")
		separate_arguments(view)
		list(GET view 0 language)
		list(GET view 1 file)
		add_custom_command(OUTPUT ${HAL_GENERATED_DIR}/${file}
			COMMAND npu_regs_gen ${language} > ${HAL_GENERATED_DIR}/${file}
			DEPENDS npu_regs_gen ${table} VERBATIM
			COMMENT "Generating ${file}")
		list(APPEND views ${HAL_GENERATED_DIR}/${file})
	endforeach()
	add_custom_target(npu_regs ALL DEPENDS ${views})
	add_dependencies(npu_regs_headers npu_regs)
endif()
