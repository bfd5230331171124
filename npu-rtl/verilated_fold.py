#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""verilated_fold.py DIR PREFIX: what instances of a module have in common, once.

Verilator writes the functions of a module that it has not inlined anew for each instance, though
each gets its instance as an argument; with four slots most of a model is that.  Of functions that
differ in the names of their variables only, this leaves one, and of the others a call of it.  What it
cannot read it leaves as it is: with another Verilator a model may be larger, never another.

A model of several instances also leaks their names' buffer, once for each thread that makes one
(Verilated::catName of 5.006); here they are strings.
"""
import collections
import glob
import re
import sys

HEAD = re.compile(r"^(?:VL_INLINE_OPT |VL_ATTR_COLD )*void "
                  r"((\w+?)___\w+?__(TOP__\w+?)__\d+)\((\w+)\* vlSelf\) \{$")
TOKEN = re.compile(r"(?:->|\.)?\w+|\S")
# A variable of a function that was inlined and is a member: numbered through all instances.
SCRATCH = re.compile(r"((?:->|\.)__V(?:func|task)_\w+?__)(\d+)(__\w+)")
# A variable of the module that is used in one function alone: for some instances Verilator makes it
# that function's own, for others it does not.
LOCAL = re.compile(r"^    [\w<>, ]+(?:/\*[\d:]+\*/)? (__PVT__\w+);\n"
                   r"(?:    \1 = 0;\n|    VL_ZERO_RESET_W\(\d+, \1\);\n)?", re.M)
# What an assertion looks at, kept from the edge: a member, named by its instance.
SAMPLED = re.compile(r"__Vsampled__TOP\w+")
# The name of an instance, put together in a buffer that each thread which makes a model leaves behind.
NAMED = re.compile(r'Verilated::catName\(namep, "([^"\n]*)"\)')
SMALL = 500  # characters; a call is not much less


class Function:
    def __init__(self, head, name, module, instance, cold):
        self.head, self.name, self.module, self.instance, self.cold = head, name, module, instance, cold
        self.body = ""
        self.same = None  # the one that is called instead

    def locate(self):
        """Messages name the instance by what the object knows of itself."""
        path = self.instance[len("TOP__"):].replace("__DOT__", ".").replace("__BRA__", "[")
        path = path.replace("__KET__", "]")
        here = re.compile(r'(VL_WRITEF\("[^\n]*%N)' + re.escape(path) + r"\.([^;]*?)vlSymsp->name\(\)")
        self.body = here.sub(r"\1\2vlSelf->name()", self.body)

    def canonical(self):
        body = re.sub(r"VL_DEBUG_IF\(.*\n", "\n", self.body)
        self.local = set(LOCAL.findall(body))
        body = re.sub(r"// (Init|Body)\n", "", LOCAL.sub("", body))
        names, out = {}, []
        for token in TOKEN.findall(body):
            if token in self.local:
                out += ["vlSelf", "->" + token]
            elif token.startswith("__V"):
                out.append(names.setdefault(token, f"@{len(names)}"))
            else:
                out.append(token)
        return self.module, self.cold, " ".join(out)


def read(path, functions):
    """A file's parts, in order: functions of modules with instances, and text, the top's functions too."""
    parts, f = [], None
    with open(path, encoding="utf-8") as file:
        for line in file:
            m = HEAD.match(line) if f is None else None
            if m and m[2] == m[4]:
                f, body = Function(line, m[1], m[2], m[3], path.endswith("__Slow.cpp")), []
            elif f is None:
                parts.append(line)
            elif line == "}\n":
                f.body = "".join(body)
                parts.append(f)
                functions.append(f)
                f = None
            else:
                body.append(line)
    return parts + ([f.head, *body] if f else [])


def rename(functions, texts):
    """Gives each instance's scratch the names that the first instance's has."""
    used = collections.defaultdict(lambda: collections.defaultdict(set))
    for f in functions:
        for m in SCRATCH.finditer(f.body):
            used[f.module][f.instance].add((int(m[2]), m[1], m[3]))
    # What others look at keeps its name.
    seen = {m[0] for text in texts for m in SCRATCH.finditer(text) if m[1][0] == "."}
    for module, instances in used.items():
        if any("." + a.lstrip("->.") + str(n) + b in seen
               for found in instances.values() for n, a, b in found):
            continue
        alike = {}
        for instance, found in instances.items():
            rank = {n: i for i, n in enumerate(sorted({n for n, _, _ in found}))}
            shape = frozenset((rank[n], a, b) for n, a, b in found)
            first = alike.setdefault(shape, {i: n for n, i in rank.items()})
            for f in functions:
                if f.module == module and f.instance == instance:
                    f.body = SCRATCH.sub(lambda m: f"{m[1]}{first[rank[int(m[2])]]}{m[3]}", f.body)


def sampled(functions, declared):
    """Texts to texts in which each instance's sampled variables have the first instance's names."""
    first, to = {}, {}
    for f in functions:
        to[f.instance] = first.setdefault(f.module, f.instance)
    of = re.compile("(__Vsampled__)(" + "|".join(sorted(to, key=len, reverse=True)) + r")(__\w+)")

    def named(m):
        new = m[1] + to[m[2]] + m[3]
        return new if new in declared else m[0]

    return lambda text: of.sub(named, text)


def main():
    folder, prefix = sys.argv[1:]
    functions = []
    files = {path: read(path, functions) for path in sorted(glob.glob(f"{folder}/{prefix}*.cpp"))
             if not path.endswith("Syms.cpp")}
    declared = set()
    for path in glob.glob(f"{folder}/{prefix}*.h"):
        with open(path, encoding="utf-8") as file:
            declared |= {m[0] for m in SAMPLED.finditer(file.read())}
    if declared and functions:
        same = sampled(functions, declared)
        for f in functions:
            f.body = same(f.body)
        files = {path: [same(p) if isinstance(p, str) else p for p in parts] for path, parts in files.items()}
    rename(functions, [p if isinstance(p, str) else p.body for parts in files.values() for p in parts])
    groups = collections.defaultdict(list)
    for f in functions:
        f.locate()
        if len(f.body) > SMALL:
            groups[f.canonical()].append(f)
    for group in groups.values():
        # What is a member of one and another's own must be stored: others may look at the member.
        group.sort(key=lambda f: len(f.local))
        while group:
            first = group[0]
            for f in group[1:]:
                if first.local <= f.local:
                    f.same = first
            group = [f for f in group[1:] if not f.same]
    for path in glob.glob(f"{folder}/{prefix}*Syms.cpp"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(NAMED.sub(r'(std::string{namep} + ".\1").c_str()', text))
    for path, parts in files.items():
        with open(path, "w", encoding="utf-8") as file:
            for p in parts:
                if isinstance(p, str):
                    file.write(p)
                elif p.same:
                    file.write(f"void {p.same.name}({p.module}* vlSelf);\n"
                               f"{p.head}    {p.same.name}(vlSelf);\n}}\n")
                else:
                    file.write(p.head + p.body + "}\n")


if __name__ == "__main__":
    main()
