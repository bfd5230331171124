#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_shim.py ABI: C functions with the names and types of hal.h, each of which calls what
the table python_functions has at its place.  conformance.py fills that table.

ABI is accelhal/_abi.py, read without the library.
"""
import ctypes
import importlib.util
import sys

SCALARS = {
    ctypes.c_int: "int", ctypes.c_uint32: "uint32_t", ctypes.c_uint64: "uint64_t",
    ctypes.c_int64: "int64_t", ctypes.c_size_t: "size_t", None: "void",
}


def main():
    """Prints the C source."""
    spec = importlib.util.spec_from_file_location("abi", sys.argv[1])
    abi = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(abi)

    print("/* Made by make_shim.py: what the cases call is Python. */")
    print("#include <stddef.h>\n#include <stdint.h>\n")
    print(f"void *python_functions[{len(abi.FUNCTIONS)}];")
    for index, (name, (result, parameters)) in enumerate(abi.FUNCTIONS.items()):
        if name.startswith("hal_cmd_"):
            continue  # inline in the cases
        kinds = [SCALARS.get(kind, "void *") for kind in parameters]
        names = [f"a{i}" for i in range(len(kinds))]
        declared = ", ".join(map(" ".join, zip(kinds, names))) or "void"
        gives = SCALARS.get(result, "void *")
        print(f"\n{gives} {name}({declared})\n{{")
        print(f"\treturn (({gives} (*)({', '.join(kinds) or 'void'}))"
              f"python_functions[{index}])({', '.join(names)});\n}}")


main()
