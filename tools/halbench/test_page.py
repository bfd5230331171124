# SPDX-License-Identifier: Apache-2.0
"""test_page.py HALBENCH LOADS: the page that `make policies` makes, of a shorter part of the loads:
the rows of its table are those of the numbers beside it, and these come out again.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

halbench, loads = sys.argv[1].split(), sys.argv[2]
WINDOW = "0.2"
AGAIN = "fifo,priority,wfq,tidal"
LOADS = ["bursts", "diurnal", "mix"]
failures = []


def check(ok, *what):
    if not ok:
        failures.append(" ".join(str(w) for w in what))


def run(*args):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HAL_")}
    p = subprocess.run(halbench + list(args), capture_output=True, text=True, env=env)
    if p.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(args), p.stderr))
    return p.stdout


def report(*args):
    return json.loads(run("--json", *args))


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


with tempfile.TemporaryDirectory() as d:
    written = []
    for name in ("first", "again"):
        page = os.path.join(d, name)
        run("report", "-w", WINDOW, "-H", page + ".html", loads)
        with open(page + ".html") as f, open(page + ".json") as g:
            written.append((f.read(), g.read()))
check(written[0] == written[1], "the page differs from run to run")
html, numbers = written[0][0], json.loads(written[0][1])
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
for c in kept:
    if c["load"] != "bursts":
        continue
    again = report("-p", AGAIN, "-r", str(c["rate"]), "-w", str(c["window_s"]),
                   os.path.join(loads, "bursts.json"))
    check(again["alone"] == c["alone"], "bursts at", c["rate"], "alone: differs")
    for p in again["policies"]:
        was = [q for q in c["policies"] if q["policy"] == p["policy"]]
        check(was == [p], "bursts at", c["rate"], p["policy"], "differs from the page")
    for key in ("engine", "error", "units", "models", "seed"):
        check(again[key] == c[key], key, again[key], "was", c[key])
known = {p["policy"] for p in report("-p", "all", "-w", "0.01", os.path.join(loads, "mix.json"))["policies"]}
check(known == {p["policy"] for p in kept[0]["policies"]}, "the page has other policies than", *sorted(known))
for line in failures[:20]:
    print(line)
sys.exit(bool(failures))
