# SPDX-License-Identifier: Apache-2.0
"""test_docs.py HALBENCH LOADS PAGE.html: the page in docs/ is what halbench writes: its rows are
those of the numbers beside it, and a small part of these comes out again.

Where it is not: halbench report -w 5 -H docs/policies.html data/loads DISB, DISB being the folder
of A.json to D.json and REAL.json.
"""
import json
import os
import re
import subprocess
import sys

halbench, loads, page = sys.argv[1].split(), sys.argv[2], sys.argv[3]
AGAIN = "fifo,priority,wfq,tidal"
LOADS = ["bursts", "diurnal", "mix", "A", "B", "C", "D", "REAL"]
failures = []


def check(ok, *what):
    if not ok:
        failures.append(" ".join(str(w) for w in what))


def report(*args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HAL_")}
    p = subprocess.run(halbench + ["--json", *args], capture_output=True, text=True, env=env, check=True)
    return json.loads(p.stdout)


def number(x, digits, scale=1):
    return "-" if x is None else "%.*f" % (digits, scale * x)


def row(c, p):
    return [c["load"], "%.2f" % c["rate"], p["policy"], p["layout"], number(p["slo"], 2, 100),
            number(p["slo_worst"], 2, 100), number(p["goodput"], 2), number(p["be_throughput"], 2),
            number(p["total_throughput"], 2), number(p["p99_ratio"], 2), number(p["antt"], 2),
            number(p["stp"], 2), number(p["jain"], 3), number(p["use"], 1, 100), str(p["preemptions"]),
            "%.2f" % (p["preempt_ns"] / 1e6), "%.2f" % (p["lost_ns"] / 1e6)]


def agree(shown, wanted):
    """The JSON has nine digits: the last one that is shown may be rounded the other way."""
    if shown == wanted or "." not in wanted or "." not in shown:
        return shown == wanted
    return abs(float(shown) - float(wanted)) < 1.01 * 10 ** -len(wanted.split(".")[1])


with open(page) as f:
    html = f.read()
with open(page[:-5] + ".json") as f:
    numbers = json.load(f)
kept = numbers["comparisons"]
check([(c["load"], c["rate"]) for c in kept] == [(name, rate) for name in LOADS for rate in (0.5, 1)],
      "not all loads, light and heavy")
table = html[html.index('<table id="policies">'):]
table = table[:table.index("</table>")]
rows = [line.split("<td>")[1:] for line in table.splitlines() if line.startswith("<tr>")]
wanted = [row(c, p) for c in kept for p in c["policies"]]
check(len(rows) == len(wanted), "rows:", len(rows), "for", len(wanted))
for have, want in zip(rows, wanted):
    check(len(have) == len(want) and all(map(agree, have, want)), "table:", have, "is not", want)
for name in (page, page[:-5] + ".json"):
    check(os.path.getsize(name) < 2 << 20, name, "has", os.path.getsize(name), "bytes")
for c in kept:
    if c["load"] != "bursts":
        continue
    again = report("-p", AGAIN, "-r", str(c["rate"]), "-w", str(c["window_s"]),
                   os.path.join(loads, "bursts.json"))
    check(again["alone"] == c["alone"], "bursts at", c["rate"], "alone: differs")
    for p in again["policies"]:
        was = [q for q in c["policies"] if q["policy"] == p["policy"]]
        check(was == [p], "bursts at", c["rate"], p["policy"], "differs from", page)
    for key in ("engine", "error", "units", "models", "seed"):
        check(again[key] == c[key], key, again[key], "was", c[key])
known = {p["policy"] for p in report("-p", "all", "-w", "0.01", os.path.join(loads, "mix.json"))["policies"]}
missing = known - {p["policy"] for p in kept[0]["policies"]}
if missing:
    print("note: policies that have come since:", *sorted(missing))
for line in failures[:20]:
    print(line)
if failures:
    print("write it anew: halbench report -w 5 -H docs/policies.html data/loads DISB")
sys.exit(bool(failures))
