#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_trace.py FILE...: that a trace is what the Chrome/Perfetto JSON format and
hal_trace_start(3) promise, strictly: every key, pairs, nesting, arrows, counters.
Prints a summary: what ran how often, and the area under each counter.

check_trace.py --mutants FILE: plants one error after the other in a good trace; each must
be found."""

import collections
import copy
import json
import re
import sys

UNITS, QUEUES = 1, 2

# phase: keys that it has beside ph, name, pid, tid; those in brackets may be missing
KEYS = {
    "M": {"args"},
    "X": {"ts", "dur", "[args]"},
    "i": {"ts", "s"},
    "C": {"ts", "args"},
    "s": {"ts", "cat", "id"},
    "f": {"ts", "cat", "id", "bp"},
    "b": {"ts", "cat", "id"},
    "e": {"ts", "cat", "id"},
}
NO_WORK = {"timestamp", "nop", "barrier", "host callback", "wait or signal"}


class Wrong(Exception):
    pass


class Micro(int):
    """A time of the file, in nanoseconds: its digits behind the point are exact."""


def number(text):
    whole, _, part = text.partition(".")
    if len(part) != 3 or not (whole + part).isdigit():
        raise Wrong(f"{text}: not a number of three digits behind the point")
    return Micro(int(whole + part))


def nano(value):
    return int(value) if isinstance(value, Micro) else int(value) * 1000


def need(condition, event, text):
    if not condition:
        raise Wrong(f"{text}: {json.dumps(event)}")


def check_keys(e):
    need(isinstance(e, dict) and e.get("ph") in KEYS, e, "no event of a known phase")
    may = {k.strip("[]") for k in KEYS[e["ph"]]} | {"ph", "name", "pid", "tid"}
    must = {k for k in KEYS[e["ph"]] if k[0] != "["} | {"ph", "name", "pid", "tid"}
    need(must <= e.keys() <= may, e, "keys missing or unknown")
    need(isinstance(e["name"], str) and e["name"], e, "no name")
    need(type(e["pid"]) is int and e["pid"] in (UNITS, QUEUES), e, "no such process")
    need(type(e["tid"]) is int and e["tid"] >= 0, e, "no such track")
    for key in ("ts", "dur"):
        need(key not in e or isinstance(e[key], Micro), e, f"{key} is no time")
    need(e["ph"] != "i" or e["s"] == "t", e, "an instant of more than its track")
    need(e["ph"] != "f" or e["bp"] == "e", e, "an arrow that does not end in its slice")
    # Readers in JavaScript keep 53 bits.
    need("id" not in e or (type(e["id"]) is int and 0 < e["id"] < 1 << 53), e, "no number")


def check_names(events):
    """Tracks are named, once, and processes are."""
    names = collections.Counter()
    for e in events:
        if e["ph"] == "M":
            need(e["name"] in ("process_name", "thread_name"), e, "unknown metadata")
            need(e["args"].keys() == {"name"} and e["args"]["name"], e, "no name")
            # What runs it stands behind: "npu:0 units (systolic array ..., engine fast)".
            need(e["name"][0] == "t" or " (" in e["args"]["name"], e, "no device's name")
            names[e["name"], e["pid"], e["tid"] if e["name"][0] == "t" else 0] += 1
    for (kind, pid, tid), n in names.items():
        if n > 1:
            raise Wrong(f"{kind} of {pid}/{tid} {n} times")
    for e in events:
        need(("process_name", e["pid"], 0) in names, e, "a process without a name")
        if e["ph"] in "Xisf":
            need(("thread_name", e["pid"], e["tid"]) in names, e, "a track without a name")


def tracks(events):
    slices = collections.defaultdict(list)
    for place, e in enumerate(events):
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((nano(e["ts"]), nano(e["dur"]), place, e))
    return slices


def check_nesting(slices):
    """Each slice of a track is inside those that are open when it begins, and as readers
    take those that begin together in the order of the file, the longer is first."""
    for track in slices.values():
        track.sort(key=lambda s: (s[0], s[2]))
        open_ends = []
        for ts, dur, _, e in track:
            while open_ends and open_ends[-1] <= ts:
                open_ends.pop()
            need(not open_ends or ts + dur <= open_ends[-1], e, "slices overlap")
            open_ends.append(ts + dur)


def around(slices, e, place):
    """A slice of the event's track that is open at its time; of those that begin then,
    one that the file has before it."""
    ts = nano(e["ts"])
    return any(s[0] <= ts <= s[0] + s[1] and (s[0] < ts or s[2] < place)
               for s in slices[e["pid"], e["tid"]])


def check_arrows(events, slices):
    ends = collections.defaultdict(dict)
    for place, e in enumerate(events):
        if e["ph"] in "sf":
            need(e["ph"] not in ends[e["id"]], e, "two ends of one kind")
            need(around(slices, e, place), e, "an arrow without a slice")
            ends[e["id"]][e["ph"]] = e
    for pair in ends.values():
        need(pair.keys() == {"s", "f"}, pair, "half an arrow")
        s, f = pair["s"], pair["f"]
        need((s["cat"], s["name"]) == (f["cat"], f["name"]), pair, "ends of two arrows")
        need(nano(s["ts"]) <= nano(f["ts"]), pair, "an arrow back in time")
        need((s["pid"], f["pid"]) == (QUEUES, UNITS), pair, "not from a queue to units")
    runs = sum(e["ph"] == "X" and e["pid"] == UNITS for e in events)
    if runs != len(ends):
        raise Wrong(f"{runs} slices on units, {len(ends)} arrows")


def check_spans(events):
    spans = collections.defaultdict(dict)
    for e in events:
        if e["ph"] in "be":
            pair = spans[e["cat"], e["id"]]
            need(e["ph"] not in pair, e, "begins or ends twice")
            need(e["ph"] == "b" or "b" in pair, e, "ends before it begins")
            pair[e["ph"]] = e
    for pair in spans.values():
        need(pair.keys() == {"b", "e"}, pair, "half a span")
        b, e = pair["b"], pair["e"]
        need(all(b[k] == e[k] for k in ("name", "pid", "tid")), pair, "ends of two spans")
        need(nano(b["ts"]) <= nano(e["ts"]), pair, "a span back in time")
    return spans


def check_counters(events):
    """Time goes on, values are not negative.  Returns the area under each, in ns."""
    last, area = {}, collections.Counter()
    for e in events:
        if e["ph"] != "C":
            continue
        name = e["name"]
        need(len(e["args"]) == 1, e, "not one value")
        (key, value), = e["args"].items()
        need(type(value) in (int, Micro) and value >= 0, e, "no value")
        need(name.endswith(key), e, "a value of another name")
        ts, value = nano(e["ts"]), nano(value)
        if name in last:
            need(last[name][0] <= ts, e, "a counter back in time")
            area[name] += (ts - last[name][0]) * last[name][1]
        last[name] = ts, value
    return {name: a / 1000 for name, a in area.items()}, {n: v / 1000 for n, (_, v) in last.items()}


def check_work(events, slices, spans):
    """What ran is work, is on its queue's track as well, and where somebody owned units."""
    runs = {UNITS: collections.Counter(), QUEUES: collections.Counter()}
    owned = [(p["b"]["name"], nano(p["b"]["ts"]), nano(p["e"]["ts"]))
             for (cat, _), p in spans.items() if cat == "partition"]
    names = {e["tid"]: re.sub(r" \(\d+\)$", "", e["args"]["name"]) + " " for e in events
             if e["ph"] == "M" and e["pid"] == UNITS}
    for (pid, tid), track in slices.items():
        for ts, dur, _, e in track:
            need(e["name"] not in NO_WORK, e, "no work, but a slice")
            if pid == UNITS:
                a = e.get("args", {})
                need({"queue", "submitted_ns", "ready_ns"} <= a.keys(), e, "arguments missing")
                need(any(place.startswith(names[tid]) and begin <= ts + dur <= end
                         for place, begin, end in owned), e, "not the owner's units")
            if e["name"] != "submit":
                runs[pid][ts, dur, e["name"]] += 1
    if runs[UNITS] != runs[QUEUES]:
        raise Wrong(f"units and queues differ: {runs[UNITS] - runs[QUEUES]} "
                    f"{runs[QUEUES] - runs[UNITS]}")
    return collections.Counter(name for _, _, name in runs[UNITS].elements())


def check(trace):
    if not isinstance(trace, dict) or trace.keys() != {"displayTimeUnit", "traceEvents",
                                                      "otherData"}:
        raise Wrong("not an object of displayTimeUnit, traceEvents and otherData")
    if trace["displayTimeUnit"] != "ns" or trace["otherData"].keys() != {"commands_unfinished"}:
        raise Wrong("its head or end")
    events = trace["traceEvents"]
    for e in events:
        check_keys(e)
    check_names(events)
    slices = tracks(events)
    check_nesting(slices)
    check_arrows(events, slices)
    spans = check_spans(events)
    area, last = check_counters(events)
    for name, value in last.items():
        if value and not name.endswith("memory bytes"):
            if not trace["otherData"]["commands_unfinished"]:
                raise Wrong(f"{name} is {value} at the end")
    places = collections.Counter(p["b"]["name"] for (cat, _), p in spans.items()
                                 if cat == "partition")
    return check_work(events, slices, spans), area, places


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f, parse_float=number)


# ---- errors planted in a good one --------------------------------------------------------


def first(events, ph, **more):
    return next(e for e in events if e["ph"] == ph and all(e[k] == v for k, v in more.items()))


def drop(ph, **more):
    return lambda ev: ev.remove(first(ev, ph, **more))


def change(ph, key, value, **more):
    def do(ev):
        e = first(ev, ph, **more)
        e[key] = value(e[key]) if callable(value) else value
    return do


def twice(ph, **more):
    return lambda ev: ev.append(copy.deepcopy(first(ev, ph, **more)))


def last_counter_back(ev):
    name = first(ev, "C")["name"]
    [e for e in ev if e["ph"] == "C" and e["name"] == name][-1]["ts"] = Micro(0)


def overlap(ev):
    a = first(ev, "X", pid=UNITS)
    b = copy.deepcopy(a)
    b["ts"] = Micro(a["ts"] + a["dur"] - 1)
    ev.append(b)


MUTANTS = {
    "an arrow without its end": drop("f"),
    "an arrow without its beginning": drop("s"),
    "an arrow back in time": change("s", "ts", lambda t: Micro(t + 10**12)),
    "an arrow beside its slice": change("f", "ts", lambda t: Micro(max(0, t - 1))),
    "two arrows of one number": twice("s"),
    "an arrow to the next slice": change("f", "bp", "n"),
    "a run without an arrow": twice("X", pid=UNITS),
    "slices that overlap": overlap,
    "a slice without a length": lambda ev: first(ev, "X").pop("dur"),
    "a slice on a track without a name": change("X", "tid", 10**6),
    "a timestamp as work": change("X", "name", "timestamp", pid=UNITS),
    "a run that its queue lacks": change("X", "name", "another", pid=UNITS),
    "a run on others' units": change("e", "ts", Micro(0), cat="partition"),
    "a span without its end": drop("e"),
    "a span of two names": change("e", "name", "another"),
    "a counter back in time": last_counter_back,
    "a negative counter": lambda ev: first(ev, "C")["args"].update(
        {k: -1 for k in first(ev, "C")["args"]}),
    "a counter of two values": lambda ev: first(ev, "C")["args"].update(other=1),
    "a process without a name": drop("M", name="process_name"),
    "a process that does not say on what": lambda ev: first(
        ev, "M", name="process_name")["args"].update(name="npu:0 units"),
    "a track without a name": drop("M", name="thread_name"),
    "an unknown phase": change("i", "ph", "I"),
    "an instant of everybody": change("i", "s", "g"),
    "an unknown key": lambda ev: first(ev, "X").update(color="red"),
}


def mutants(path):
    missed = []
    for name, plant in MUTANTS.items():
        trace = load(path)
        plant(trace["traceEvents"])
        try:
            check(trace)
            missed.append(name)
        except Wrong:
            pass
    for name in missed:
        print(f"not found: {name}")
    print(f"{len(MUTANTS) - len(missed)} of {len(MUTANTS)} planted errors found")
    return 1 if missed else 0


def main():
    if sys.argv[1:2] == ["--mutants"]:
        return mutants(sys.argv[2])
    for path in sys.argv[1:]:
        try:
            work, area, places = check(load(path))
        except (Wrong, ValueError) as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
        for name, n in sorted(work.items()):
            print(f"ran {n} {name}")
        for name, n in sorted(places.items()):
            print(f"owned {n} {name}")
        for name, a in sorted(area.items()):
            print(f"area {a:.3f} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
