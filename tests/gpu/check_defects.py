#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check defects.txt: each test that it names is built of a source with the case that it names.

  check_defects.py SOURCE_DIR BUILD_DIR

The sources of a test are those of its program in BUILD_DIR/compile_commands.json.  A case is a
function of one of them that a source, or a header of tests/ which it includes, passes to a macro
such as cmocka_unit_test.  A test that this build leaves out must be named in a CMakeLists.txt of
tests/.  Prints the figures defects.VERDICT, the number of lines with that verdict.
"""
import collections
import glob
import json
import os
import re
import sys

VERDICTS = ("tested", "none", "card", "moved")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sources_of(source, build):
    """Return {program: its source files}."""
    found = collections.defaultdict(list)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for command in json.load(f):
            name = re.search(r" -o \S*CMakeFiles/([^/]+)\.dir/", command["command"])
            if name and command["file"].startswith(os.path.join(source, "tests/")):
                found[name.group(1)].append(command["file"])
    return found


def with_headers(source, paths):
    """Return the text of the files and of the headers in tests/ that they include."""
    left, seen, text = list(paths), set(), []
    while left:
        path = os.path.normpath(left.pop())
        if path in seen or not os.path.isfile(path):
            continue
        seen.add(path)
        text.append(read(path))
        for name in re.findall(r'^#include "([^"]+)"', text[-1], re.M):
            left.append(os.path.join(os.path.dirname(path), name))
            if name.startswith("tests/"):
                left.append(os.path.join(source, name))
    return "\n".join(text)


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip())
        sys.exit(2)
    source, build = map(os.path.abspath, sys.argv[1:])
    listed = os.path.join(source, "tests/gpu/defects.txt")
    programs = sources_of(source, build)
    registered = "\n".join(read(path) for path in glob.glob(
        os.path.join(source, "tests/**/*.cmake"), recursive=True) + glob.glob(
            os.path.join(source, "tests/*/CMakeLists.txt")))
    count, texts, wrong, said = collections.Counter(), {}, 0, set()

    def refuse(number, why):
        nonlocal wrong
        wrong += 1
        print("%s:%d: %s" % (os.path.relpath(listed, source), number, why))

    for number, line in enumerate(read(listed).split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 5 or not all(fields):
            refuse(number, "a line is AREA | WHAT WAS WRONG | VERDICT | TESTS | FUNCTIONS")
            continue
        area, what, verdict, tests, functions = fields
        tests, functions = tests.split(), functions.split()
        if verdict not in VERDICTS:
            refuse(number, "verdict '%s'; one of: %s" % (verdict, ", ".join(VERDICTS)))
        if (area, what) in said:
            refuse(number, "this defect has a line above")
        said.add((area, what))
        if len(tests) != len(functions):
            refuse(number, "%d tests, but %d functions" % (len(tests), len(functions)))
        if verdict == "tested" and tests == ["-"]:
            refuse(number, "'tested' without a test")
        count[verdict] += 1
        for test, function in zip(tests, functions):
            if test != "-" and not re.search(r"\b%s\b" % re.escape(test), registered):
                if test not in programs:
                    refuse(number, "no test %s" % test)
                    continue
            if test == "-" or function == "-" or test not in programs:
                continue
            if test not in texts:
                texts[test] = with_headers(source, programs[test])
            name = re.escape(function)
            if not re.search(r"^(?:static )?void %s\(void \*\*state\)\n\{" % name, texts[test], re.M):
                refuse(number, "no function %s in the sources of %s" % (function, test))
            elif not re.search(r"\w\(\s*%s\s*[,)]" % name, texts[test]):
                refuse(number, "%s does not run %s" % (test, function))
    for verdict in VERDICTS:
        print("figure defects.%s %d" % (verdict, count[verdict]))
    sys.exit(wrong != 0)


main()
