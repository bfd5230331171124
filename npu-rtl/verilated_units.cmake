# SPDX-License-Identifier: Apache-2.0
# cmake -D DIR=... -D PREFIX=...: makes fast.cpp and slow.cpp out of what Verilator wrote to DIR,
# so that a build has two units with known names however Verilator split them.

file(GLOB all RELATIVE ${DIR} ${DIR}/${PREFIX}*.cpp)
set(fast "")
set(slow "")
foreach(file IN LISTS all)
	if(file MATCHES "__(Slow|Syms)\\.cpp$")
		string(APPEND slow "#include \"${file}\"\n")
	else()
		string(APPEND fast "#include \"${file}\"\n")
	endif()
endforeach()
file(WRITE ${DIR}/fast.cpp "${fast}")
file(WRITE ${DIR}/slow.cpp "${slow}")
