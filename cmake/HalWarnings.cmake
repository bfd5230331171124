# SPDX-License-Identifier: Apache-2.0
# hal_warnings: link it and every warning of the house counts; and the C library shows its
# GNU functions.  _GNU_SOURCE is defined empty, as "#define _GNU_SOURCE" in a source does, so
# that a source may still define it itself; a target that defines it is left alone.

add_library(hal_warnings INTERFACE)
set(c_only $<COMPILE_LANGUAGE:C>)
target_compile_options(hal_warnings INTERFACE
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wundef -Wcast-align
	$<${c_only}:-Wstrict-prototypes> $<${c_only}:-Wmissing-prototypes>
	$<$<BOOL:${HAL_WERROR}>:-Werror>)
set(has $<IN_LIST:_GNU_SOURCE,$<TARGET_PROPERTY:COMPILE_DEFINITIONS>>)
target_compile_options(hal_warnings INTERFACE
	$<$<AND:${c_only},$<NOT:${has}>>:-D_GNU_SOURCE=>)
