#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check which modules call which, as `nm` reads it from the objects of a build.

  check_calls.py NM SOURCE_DIR BUILD_DIR [--report] [--none]

A call is an undefined symbol of one object that another object defines.
* A module of core/ calls its own files, modules of its rank and below, and lib/.
* lib/ calls lib/; a policy calls its own folder; a backend calls its own folder and lib/.
* Backends also call backends/memfd and backends/stream, which call their own folder alone.
* core/config alone names the backends and the policies.
* No files call one another in a circle; of core/, lib/ and policies/ no more than CIRCLE_MAX do,
  whatever calls.txt says.
* tools/, npuc/ and examples/ call the public functions and lib/, and compile no file of core/ or
  backends/ into themselves.
Exceptions are the lines of calls.txt beside this script, each with its reason.  A line that
says more than there is fails as well: the list only shrinks.  --report prints every call
upwards and every circle; --none goes without the exceptions.
"""
import collections
import json
import os
import re
import subprocess
import sys

# What backends share.
SHARED = ("backends/memfd", "backends/stream")

# From the top.  Modules in one line have the same rank.
RANKS = [
    ["core/api"],
    ["core/layers", "core/replay"],
    ["core/far"],
    ["core/config"],
    ["core/memory", "core/space", "core/observe"],
    ["core/sched"],
    ["core/command"],
    ["core/loop"],
    ["core/util"],
    ["lib"],
]
RANK = {module: rank for rank, modules in enumerate(RANKS) for module in modules}
CIRCLE_MAX = 5
INSIDE = ("core/", "lib/", "policies/", "backends/")
USERS = ("tools/", "npuc/", "examples/")


def module_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("core", "backends") else parts[0]


def objects_of(source, build):
    """Return {source file: object} of the library and a list (source file, object) of its users."""
    inside, users = {}, []
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    for command in commands:
        path = os.path.relpath(command["file"], source)
        found = re.search(r" -o (\S+)", command["command"])
        if not found:
            continue
        out = found.group(1)
        if path.startswith(INSIDE) and re.match(r"CMakeFiles/hal_(core|lib|backend_\w+)\.dir/", out):
            inside[path] = out
        elif re.match(r"(tools|examples)/|npuc\.dir/", out) and path.startswith(INSIDE + USERS):
            # make check builds no program that only other tiers start.
            built = os.path.isfile(os.path.join(build, out))
            if built and not os.path.basename(path).startswith("test_"):
                users.append((path, out))
    return inside, users


def symbols_of(nm, build, objects):
    """Return {object: (defined, undefined)}."""
    missing = [o for o in objects if not os.path.isfile(os.path.join(build, o))]
    if missing:
        sys.exit("%s is not built, and %d more: build everything first"
                 % (missing[0], len(missing) - 1))
    out = subprocess.run([nm, "-A"] + sorted(set(objects)), cwd=build, check=True,
                         stdout=subprocess.PIPE, universal_newlines=True).stdout
    symbols = {o: (set(), set()) for o in objects}
    for line in out.splitlines():
        name, rest = line.split(":", 1)
        fields = rest.split()
        kind, symbol = fields[-2], fields[-1]
        if kind in "Uwv":
            symbols[name][1].add(symbol)
        elif kind in "TDBRVWC":
            symbols[name][0].add(symbol)
    return symbols


def allowed(caller, callee):
    """Say whether the file `caller` may call the file `callee`."""
    here, there = module_of(caller), module_of(callee)
    if here == there:
        return True
    if here in SHARED:
        return False
    if there == "lib":
        return not here.startswith("policies")
    if there in SHARED:
        return here.startswith("backends/")
    if there.startswith(("backends/", "policies")):
        return here == "core/config"
    if here in RANK and there in RANK:
        return RANK[here] <= RANK[there]
    return False


def circles_of(calls):
    """Return the strongly connected sets of two or more files (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(calls[v]):
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(tuple(sorted(stack[at:])))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for v in sorted(calls):
        if v not in index:
            visit(v)
    return sorted(found, key=lambda files: (-len(files), files))


def exceptions_of(path):
    """Return the calls {(caller, callee): functions} and circles {files} that calls.txt lists."""
    calls, circles = {}, set()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            rule, _, reason = line.partition(" : ")
            words = rule.split()
            if not reason.strip():
                sys.exit("%s:%d: write the reason after ' : '" % (path, number))
            if words[0] == "circle":
                circles.add(tuple(sorted(words[1:])))
            elif words[0] == "call" and len(words) > 3:
                calls[words[1], words[2]] = set(words[3:])
            else:
                sys.exit("%s:%d: a line is 'call FROM TO FUNCTION... : REASON' or "
                         "'circle FILE... : REASON'" % (path, number))
    return calls, circles


def main():
    nm, source, build = sys.argv[1:4]
    here = os.path.dirname(os.path.abspath(__file__))
    inside, users = objects_of(source, build)
    symbols = symbols_of(nm, build, list(inside.values()) + [out for _, out in users])

    owner = {}
    for path, out in inside.items():
        for symbol in symbols[out][0]:
            owner[symbol] = path
    calls = {path: collections.defaultdict(set) for path in inside}
    for path, out in inside.items():
        for symbol in symbols[out][1]:
            if owner.get(symbol, path) != path:
                calls[path][owner[symbol]].add(symbol)
    modules = {module_of(path) for path in inside}
    if len(inside) < 100 or not set(RANK) <= modules:
        sys.exit("%d files of %s are found in %s" % (len(inside), " ".join(sorted(modules)), build))

    refused = {}
    for path in calls:
        for callee, functions in calls[path].items():
            if not allowed(path, callee):
                refused[path, callee] = functions
    with open(os.path.join(source, "hal.map"), encoding="utf-8") as f:
        public = set(re.findall(r"^\s+(hal_\w+);", f.read(), re.M))
    own = {s for path, out in users if path.startswith(USERS) for s in symbols[out][0]}
    for path, out in users:
        if path.startswith(("core/", "backends/")):
            refused[re.sub(r"/CMakeFiles/.*", "", out), path] = {"compiled"}
        for symbol in symbols[out][1] - own - public:
            callee = owner.get(symbol)
            if callee and path.startswith(USERS) and not callee.startswith("lib/"):
                refused.setdefault((path, callee), set()).add(symbol)
    circles = circles_of(calls)

    listed, listed_circles = exceptions_of(os.path.join(here, "calls.txt"))
    if "--none" in sys.argv:
        listed, listed_circles = {}, set()
    if "--report" in sys.argv:
        for (caller, callee), functions in sorted(refused.items()):
            print("call %s %s %s" % (caller, callee, " ".join(sorted(functions))))
        for files in circles:
            print("circle %s" % " ".join(files))
            for path in files:
                for callee in sorted(set(calls[path]) & set(files)):
                    print("    %s -> %s: %s" % (path, callee, " ".join(sorted(calls[path][callee]))))
    rc = 0

    def problem(text):
        nonlocal rc
        rc = 1
        print(text)

    for key in sorted(set(refused) | set(listed)):
        new, gone = (refused.get(key, set()) - listed.get(key, set()),
                     listed.get(key, set()) - refused.get(key, set()))
        if new:
            problem("%s may not use %s: %s" % (key[0], key[1], " ".join(sorted(new))))
        # Some tools are only built where what they need is installed.
        if gone and key[0] in inside:
            problem("calls.txt: %s no longer uses %s: take out %s"
                    % (key[0], key[1], " ".join(sorted(gone))))
    for files in sorted(set(circles) - listed_circles):
        problem("these call one another in a circle: %s" % " ".join(files))
    for files in sorted(c for c in listed_circles - set(circles) if set(c) <= set(inside)):
        problem("calls.txt: these are no circle any more, or another one: %s" % " ".join(files))
    for files in circles:
        if len(files) > CIRCLE_MAX and not files[0].startswith("backends/"):
            problem("a circle of %d files, at most %d may be one" % (len(files), CIRCLE_MAX))
    largest = max([len(f) for f in circles if not f[0].startswith("backends/")] or [0])
    print("figure house.circle_max %d" % largest)
    return rc


sys.exit(main())
