#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py HEADER_DIR: prints accelhal/_abi.py, made from HEADER_DIR/hal/hal.h and hal/ext.

A test compares what it prints with the file in the tree.  Needs pycparser and cc.
"""
import os
import re
import subprocess
import sys
import tempfile

from pycparser import c_ast, c_parser

# What hal.h uses of the C library's headers, in the form in which it is passed on.
STDINT = """
typedef unsigned char uint8_t; typedef unsigned short uint16_t;
typedef unsigned int uint32_t; typedef int int32_t;
typedef unsigned long uint64_t; typedef long int64_t;
#define UINT32_C(x) x
#define UINT64_C(x) x
#define INT64_MAX 9223372036854775807
#define UINT64_MAX 18446744073709551615
"""
STDDEF = "typedef unsigned long size_t;\n"

CALLBACKS = {
    "hal_host_fn": "CFUNCTYPE(None, c_void_p)",
    "hal_log_fn": "CFUNCTYPE(None, c_void_p, c_int, c_char_p)",
}

SCALARS = {
    "char": "c_char", "int": "c_int", "uint8_t": "c_uint8", "uint16_t": "c_uint16",
    "uint32_t": "c_uint32", "int32_t": "c_int32", "uint64_t": "c_uint64",
    "int64_t": "c_int64", "size_t": "c_size_t",
}


HEADERS = ["hal/hal.h", "hal/ext/memory.h", "hal/ext/options.h", "hal/ext/replay.h"]


def text_of(headers):
    """The text of all headers."""
    text = ""
    for name in HEADERS:
        with open(os.path.join(headers, name), encoding="ascii") as file:
            text += file.read()
    return text


def preprocess(headers, tail=""):
    """The headers without directives, comments and attributes; and the names it defines."""
    cc = [os.environ.get("CC", "cc"), "-E", "-P", "-nostdinc", "-D__attribute__(x)="]
    with tempfile.TemporaryDirectory() as stubs:
        for name, text in (("stdint.h", STDINT), ("stddef.h", STDDEF)):
            with open(os.path.join(stubs, name), "w", encoding="ascii") as file:
                file.write(text)
        cc += ["-I", stubs, "-I", headers, "-x", "c", "-"]
        source = "".join(f"#include <{name}>\n" for name in HEADERS) + tail

        def run(*more):
            return subprocess.run(cc[:2] + list(more) + cc[2:], input=source, text=True,
                                  check=True, stdout=subprocess.PIPE).stdout

        return run(), run("-dM")


def constants(headers):
    """(name, value) of each HAL_NAME with a value, in the header's order."""
    order = re.findall(r"^#define[ \t]+HAL_(\w+)(?!\()\b", text_of(headers), re.M)
    macros = preprocess(headers)[1]
    valued = set(re.findall(r"^#define HAL_(\w+) \S", macros, re.M))
    names = [n for n in dict.fromkeys(order) if n in valued and n not in ("API", "INLINE")]
    tail = "".join(f"\nVALUE_OF {n} HAL_{n}" for n in names)
    for name, value in re.findall(r"VALUE_OF (\w+) (.*)", preprocess(headers, tail)[0]):
        plain = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", value)
        if not re.fullmatch(r"[\d\s()<|+-]+", plain):
            raise SystemExit(f"hal.h: HAL_{name}: no number: {value}")
        yield name, eval(plain)  # digits and operators alone


class Structs:
    """The header's structs as ctypes; those without members are handles, void *."""

    def __init__(self):
        self.known = set()
        self.lines = []

    def type_of(self, node):
        """The ctypes name of a declared type."""
        if isinstance(node, c_ast.ArrayDecl):
            return f"{self.type_of(node.type)} * {dimension(node.dim)}"
        if isinstance(node, c_ast.PtrDecl):
            return self.pointer_to(node.type)
        inner = node.type
        if isinstance(inner, c_ast.IdentifierType):
            name = inner.names[-1]
            return name if name in CALLBACKS else SCALARS[name]
        return inner.name

    def pointer_to(self, node):
        """... of a pointer to one."""
        if isinstance(node, c_ast.PtrDecl):
            return f"POINTER({self.pointer_to(node.type)})"
        inner = node.type
        if isinstance(inner, c_ast.IdentifierType):
            name = inner.names[-1]
            if name in ("void", "char"):
                return {"void": "c_void_p", "char": "c_char_p"}[name]
            return f"POINTER({SCALARS[name]})"
        return f"POINTER({inner.name})" if inner.name in self.known else "c_void_p"

    def add(self, name, node):
        """Writes down one struct or union, and before it those inside it."""
        base = "Union" if isinstance(node, c_ast.Union) else "Structure"
        fields, anonymous = [], []
        for member in node.decls:
            kind = member.type
            if isinstance(kind, c_ast.TypeDecl):
                kind = kind.type
            if isinstance(kind, (c_ast.Struct, c_ast.Union)) and kind.decls:
                inner = f"{name}_{member.name or 'u'}"
                self.add(inner, kind)
                fields.append((member.name or "u_", inner))
                if not member.name:
                    anonymous.append("u_")
            else:
                fields.append((member.name, self.type_of(member.type)))
        self.lines.append(f"\n\nclass {name}({base}):")
        if anonymous:
            self.lines.append(f"    _anonymous_ = {tuple(anonymous)!r}")
        self.lines.append("    _fields_ = [")
        self.lines += [f'        ("{field}", {kind}),' for field, kind in fields]
        self.lines.append("    ]")
        self.known.add(name)


def dimension(node):
    """The number in an array's brackets."""
    return int(node.value)


def enum_lines(node):
    """An IntEnum: its members without what their names have in common."""
    names = [e.name for e in node.values.enumerators]
    common = os.path.commonprefix(names)
    common = common[:common.rindex("_") + 1]
    title = "".join(word.title() for word in node.name.split("_")[1:])
    value, lines = 0, [f"\n\nclass {title}(IntEnum):", f'    """enum {node.name}."""']
    for e in node.values.enumerators:
        value = int(e.value.value, 0) if e.value else value
        lines.append(f"    {e.name[len(common):]} = {value}")
        value += 1
    return title, lines


def comments(headers):
    """Lines of DOCS: what hal.h says beside the members of its structs."""
    text = text_of(headers)
    for name, body in re.findall(r"^struct (hal_\w+) \{$(.*?)^\};$", text, re.M | re.S):
        beside = re.findall(r"(\w+)(?:\[\w+\])?;[ \t]*/\*(.*?)\*/", body, re.S)
        if beside:
            yield f'    "{name}": {{'
            for member, words in beside:
                yield f'        "{member}": {" ".join(words.split())!r},'
            yield "    },"


def parameters(structs, node):
    """ctypes of a function's parameters."""
    args = node.args.params if node.args else []
    kinds = [structs.type_of(a.type) for a in args if not is_void(a.type)]
    return ", ".join(kinds)


def is_void(node):
    """Of a type: void, and no pointer to it."""
    return (isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.IdentifierType)
            and node.type.names == ["void"])


def main():
    """Prints the module."""
    headers = sys.argv[1]
    tree = c_parser.CParser().parse(preprocess(headers)[0])
    structs, enums, functions, exported = Structs(), [], [], []
    for node in tree.ext:
        declared = node.decl if isinstance(node, c_ast.FuncDef) else node
        kind = declared.type
        if isinstance(kind, c_ast.FuncDecl):
            result = "None" if is_void(kind.type) else structs.type_of(kind.type)
            functions.append(f'    "{declared.name}": '
                             f"({result}, [{parameters(structs, kind)}]),")
        elif isinstance(kind, c_ast.Struct) and kind.decls:
            structs.add(kind.name, kind)
        elif isinstance(kind, c_ast.Enum):
            title, lines = enum_lines(kind)
            exported.append(title)
            enums += lines

    plain, caps = [], []
    for name, value in constants(headers):
        if name.startswith("CAP_"):
            caps.append(f"    {name[4:]} = {value:#x}")
        else:
            exported.append(name)
            plain.append(f"{name} = {value}")

    print('# SPDX-License-Identifier: Apache-2.0')
    print('"""hal.h for ctypes.  Made by generate.py; a test holds it against the header."""')
    print("from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_char, c_char_p, c_int,")
    print("                    c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32,")
    print("                    c_uint64, c_void_p)")
    print("from enum import IntEnum, IntFlag\n")
    print("\n".join(f"{name} = {kind}" for name, kind in CALLBACKS.items()) + "\n")
    print("\n".join(plain))
    print('\n\nclass Cap(IntFlag):\n    """HAL_CAP_*: what a device can do."""')
    print("\n".join(caps + enums + structs.lines))
    print("\n\n# name: (result, parameters)\nFUNCTIONS = {")
    print("\n".join(functions))
    print("}\n\n# Of members, what hal.h says of them.\nDOCS = {")
    print("\n".join(comments(headers)))
    print("}\n\n# What the package shows of this.")
    print("__all__ = [")
    print("\n".join(f'    "{name}",' for name in sorted(exported + ["Cap"])))
    print("]")


main()
