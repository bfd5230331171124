# SPDX-License-Identifier: Apache-2.0
# Sanitizers and coverage, for every target that is added from here on.

if(HAL_SANITIZE)
	# -O1: what -O2 makes of instrumented code takes up to ten times as long to compile;
	# at -O1 it takes lengths that are bounded for lengths that may not fit.
	add_compile_options(-O1 -Wno-format-truncation -fsanitize=${HAL_SANITIZE} -fno-sanitize-recover=all
		-fno-omit-frame-pointer)
	add_link_options(-fsanitize=${HAL_SANITIZE})
endif()
if(HAL_COVERAGE)
	add_compile_options(--coverage)
	add_link_options(--coverage)
endif()
