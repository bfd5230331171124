# SPDX-License-Identifier: Apache-2.0
"""test_halbench.py HALBENCH LOADS [NPU NETWORK]: the command from outside.  NPU: a target.

Its numbers are computed once more from the requests it writes; these are held, to the
nanosecond, against a simulation of one server that is told nothing but the load and the
table.
"""
import csv
import heapq
import html
import itertools
import json
import math
import os
import pty
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

halbench = sys.argv[1].split()
loads = os.path.abspath(sys.argv[2])
failures = []


def check(ok, *what):
    if not ok:
        failures.append(" ".join(str(w) for w in what))


def run(*args, status=0):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HAL_") or k == "HAL_NPU_MODELS"}
    p = subprocess.run(halbench + list(args), capture_output=True, text=True, env=env)
    check(p.returncode == status, args, "exit status", p.returncode, p.stderr)
    return p


def report(*args):
    return json.loads(run("--json", *args).stdout)


def near(a, b, what):
    if a is None or b is None:
        check(a is None and b is None, what, a, "is not", b)
    else:
        check(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9), what, a, "is not", b)


def on_a_terminal(*args):
    """What it says there, on stderr."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen(halbench + list(args), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # nobody has the other end any more
            more = b""
        if not more:
            break
        said += more
    os.close(ours)
    check(p.wait() == 0, args, "exit status", p.returncode, said[-400:])
    return said.decode()


def check_progress(file):
    """Told on a terminal, with what is left; nowhere else."""
    args = ["-p", "all", "-C", file]
    check(run(*args).stderr == "", "progress is told where there is no terminal")
    said = on_a_terminal(*args)
    told = re.findall(r"\r\x1b\[K(\w+) at rate 1, ([^:\r]*): (\d+) %(, (\d+) s left)?", said)
    check(len(told) >= 3, "progress:", repr(said[-400:]))
    shares = [int(t[2]) for t in told]
    check(shares == sorted(shares) and shares[-1] <= 100, "progress goes back:", shares)
    check(any(t[4] for t in told), "no time left is told:", repr(said[-400:]))
    # the line is empty in the end
    check(said.endswith("\r\x1b[K"), "progress stays:", repr(said[-80:]))


# ---- numbers, from requests ------------------------------------------------------------

def percentile(values, thousandths):
    """The least value that so many do not exceed."""
    ordered = sorted(values)
    return next(v for i, v in enumerate(ordered) if (i + 1) * 1000 >= thousandths * len(ordered))


def requests_of(path):
    found = {}
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            found.setdefault((row["policy"], row["task"]), []).append(
                (int(row["arrive_ns"]), int(row["end_ns"])))
    return found


def check_numbers(r, requests):
    window = r["window_ns"]
    seconds = window / 1e9
    alone = {t["id"]: [e - a for a, e in requests["alone", t["id"]]] for t in r["alone"]}
    for p in r["policies"]:
        slowdowns, met_all, arrived_all = [], 0, 0
        sums = {"be_throughput": 0, "total_throughput": 0, "goodput": 0}
        slos, ratios = [], []
        for t in p["tasks"]:
            own = requests[p["policy"], t["id"]]
            lat = [e - a for a, e in own]
            where = p["policy"] + " " + t["id"]
            check(t["arrived"] == len(lat), where, "arrived")
            for key, q in (("p50_ns", 500), ("p99_ns", 990), ("p999_ns", 999), ("max_ns", 1000)):
                check(t[key] == percentile(lat, q), where, key, t[key], percentile(lat, q))
            near(t["mean_ns"], sum(lat) / len(lat), where + " mean")
            ended = sum(e <= window for _, e in own)
            near(t["throughput"], ended / seconds, where + " throughput")
            sums["total_throughput"] += ended / seconds
            slowdowns.append((sum(lat) / len(lat)) / (sum(alone[t["id"]]) / len(alone[t["id"]])))
            near(t["slowdown"], slowdowns[-1], where + " slowdown")
            if t["class"] != "latency":
                sums["be_throughput"] += ended / seconds
                check(t["slo"] is None and t["goodput"] is None, where, "has an SLO")
                continue
            slo = len(p["tasks"]) * percentile(alone[t["id"]], 990)
            met = sum(x <= slo for x in lat)
            check(t["slo_ns"] == slo, where, "slo_ns", t["slo_ns"], slo)
            near(t["slo"], met / len(lat), where + " slo")
            near(t["goodput"], met / seconds, where + " goodput")
            ratios.append(percentile(lat, 990) / percentile(alone[t["id"]], 990))
            near(t["p99_ratio"], ratios[-1], where + " p99_ratio")
            slos.append(met / len(lat))
            sums["goodput"] += met / seconds
            met_all, arrived_all = met_all + met, arrived_all + len(lat)
        where = p["policy"]
        for key, value in sums.items():
            near(p[key], value, where + " " + key)
        near(p["slo"], met_all / arrived_all, where + " slo")
        near(p["slo_worst"], min(slos), where + " slo_worst")
        near(p["p99_ratio"], max(ratios), where + " p99_ratio")
        near(p["antt"], sum(slowdowns) / len(slowdowns), where + " antt")
        progress = [1 / s for s in slowdowns]
        near(p["stp"], sum(progress), where + " stp")
        near(p["jain"], sum(progress) ** 2 / (len(progress) * sum(x * x for x in progress)),
             where + " jain")


# ---- requests, from the load -----------------------------------------------------------

UNITS = 8
TABLE = {"models": {
    "long": {"steps": [[3, 8000, 8], [1, 1003, 2]]},
    "short": {"steps": [[5, 801.6, 8]]},
    "other": {"steps": [[2, 2001, 4]]},
}}
LOAD = {"time": 0.2, "tasks": [
    {"id": "a_rt", "client": {"model_name": "short"},
     "load": {"type": "periodic", "frequency": 97}},
    {"id": "b_rt", "client": {"model_name": "other"},
     "load": {"type": "trace", "trace": [3.1, 3.2, 3.3, 50.7, 51.9, 120.123, 199.9, 201]}},
    {"id": "c_be", "client": {"model_name": "long"}, "load": {"type": "continuous"}},
    {"id": "d_rt", "client": {"model_name": "short"},
     "load": {"type": "dependent", "prev_task_ids": ["b_rt"]}},
    {"id": "e_rt", "client": {"model_name": "short"},
     "load": {"type": "periodic", "frequency": 97}},
    {"id": "f_be", "client": {"model_name": "other"}, "load": {"type": "trace",
     "trace": [0.0001 * k * k + 0.01 for k in range(1300)]}},
]}


def steps_ns(model):
    out = []
    for launches, unit_us, units in TABLE["models"][model]["steps"]:
        work = round(unit_us * 1000)
        out += [max(-(-work // units), -(-work // UNITS))] * launches
    return out


def simulate(tasks, priority):
    """One server, a command at a time: of whose request came first, or of the highest class;
    of equal ones, whose command could run first."""
    window = round(LOAD["time"] * 1e9)
    names = [t["id"] for t in tasks]
    steps = [steps_ns(t["client"]["model_name"]) for t in tasks]
    begins, arrivals = {}, []  # arrivals: (time, task)
    for i, load in enumerate(t["load"] for t in tasks):
        if load["type"] == "periodic":
            begin = begins.get(load["frequency"], 0)
            begins[load["frequency"]] = begin + sum(steps[i])
            times = [begin + round(k * 1e9 / load["frequency"]) for k in range(1000)]
        elif load["type"] == "trace":
            times = [round(ms * 1e6) for ms in load["trace"]]
        else:
            times = [0] if load["type"] == "continuous" else []
        arrivals += [(t, i) for t in times if t < window]
    heapq.heapify(arrivals)
    done = {n: [] for n in names}
    waiting = [[] for _ in tasks]  # of each task its requests: [arrival, next step]
    since = [0] * len(tasks)       # when its next command could run: a number that goes up
    clock = itertools.count(1)
    running = None                 # (end, task)

    def add(i, now):
        if not waiting[i]:
            since[i] = next(clock)
        waiting[i].append([now, 0])

    def choose(now):
        ready = [i for i in range(len(tasks)) if waiting[i]]
        if not ready:
            return None
        i = min(ready, key=lambda i: (names[i].endswith("_be") if priority else waiting[i][0][0],
                                      since[i]))
        return now + steps[i][waiting[i][0][1]], i

    while running or arrivals:
        if not running or (arrivals and arrivals[0][0] < running[0]):
            now, i = heapq.heappop(arrivals)
            add(i, now)
            running = running or choose(now)
            continue
        now, i = running
        since[i] = next(clock)
        waiting[i][0][1] += 1
        ended = waiting[i][0][1] == len(steps[i])
        if ended:
            done[names[i]].append((waiting[i].pop(0)[0], now))
        # The device chooses before the application knows.
        running = choose(now)
        for k, t in enumerate(tasks):
            if ended and now < window and (
                    t["load"].get("prev_task_ids") == [names[i]] or
                    (k == i and t["load"]["type"] == "continuous")):
                add(k, now)
        running = running or choose(now)
    return done


# ---- the page ---------------------------------------------------------------------------

IDLE = "#d0d0d0"


def layers(chart):
    """Of a chart of units, from below: each layer's colour and share of the band.  The highest
    is drawn first, down to the ground, and those under it over that."""
    areas = []
    for path in chart.findall("path"):
        area, x, y = 0, None, None
        for kind, value in re.findall(r"([MHV])([0-9.]+)", path.get("d")):
            if kind == "H":
                area += (float(value) - x) * (110 - y)
            if kind == "V":
                y = float(value)
            else:
                x = float(value)
                y = 110.0 if kind == "M" else y
        areas.append((path.get("fill"), area / (110 * (704 - 56))))
    areas.reverse()
    return [(fill, area - (areas[i - 1][1] if i else 0)) for i, (fill, area) in enumerate(areas)]


def check_page(path, file):
    """Its charts are well formed, and their lines where the numbers are."""
    args = ["-w", "2", "-p", "fifo,priority,tidal:layout=classes", "-H", path("page.html"),
            "-R", "0.5,1,2"]
    r = report(*args, file)
    with open(path("page.html")) as f:
        page = f.read()
    check("http" not in page and "src=" not in page, "page: is not of one piece")
    check(page.count("<th>") == 17 + 10, "page: headings", page.count("<th>"))
    check(page.count("<tr><td>") == 3 + 3 * len(r["alone"]), "page: rows")
    check(r["engine"] in page and "error: " + r["error"] in page, "page: engine and error")
    charts = [xml.etree.ElementTree.fromstring(x)
              for x in re.findall(r'<svg class="chart".*?</svg>', page, re.S)]
    check(len(charts) == 5, "page: charts", len(charts))
    check(len(charts[0].findall("polyline")) == 3, "page: latencies")
    for line, p in zip(charts[1].findall("polyline"), r["policies"]):
        points = [[float(v) for v in xy.split(",")] for xy in line.get("points").split()]
        check([x for x, _ in points] == [218.0, 380.0, 704.0], "page: rates", points)
        check(abs(points[1][1] - (10 + 214 * (1 - p["slo"]))) < 0.06, "page: attainment", points)
        check(points[2][1] >= points[1][1] - 0.01, "page: more load, more attainment", points)
    for chart, p in zip(charts[2:], r["policies"]):
        found = layers(chart)
        parts = 1 if p["layout"] == "shared" else 2
        check(len(found) == len(r["alone"]) + parts, "page: a path a task and partition", len(found))
        check([fill for fill, _ in found].count(IDLE) == parts and found[-1][0] == IDLE,
              "page: what partitions have and do not use", found)
        use = sum(share for fill, share in found if fill != IDLE)
        # A request's work is spread over time, its partition's units may come later.
        check(p["use"] - (0.02 if parts == 1 else 0.05) < use < p["use"] + 0.02, "page: units",
              use, p["use"])
        owned = sum(share for _, share in found)
        check(0.99 < owned < 1.001, "page: units that somebody has", owned)
        # Of two that stand beside each other neither has all, nor nothing.
        first = sum(share for _, share in found[:[fill for fill, _ in found].index(IDLE) + 1])
        check(parts == 1 or 0.02 < first < 0.98, "page: a border", first)
    run(*args[:4], "-H", path("again.html"), "-R", "0.5,1,2", file)
    with open(path("again.html")) as f:
        check(f.read() == page, "page: differs from run to run")


# ---- all loads -------------------------------------------------------------------------

def check_report(path, loads):
    """Its numbers are those of each load alone; the page has them all."""
    args = ["report", "-w", "0.4", "-p", "fifo,priority,tidal", "-R", "0.5,1"]
    run(*args, "-H", path("all.html"), loads)
    with open(path("all.json")) as f:
        found = json.load(f)
    with open(path("all.html")) as f:
        page = f.read()
    names = ["bursts", "diurnal", "mix"]
    check([(c["load"], c["rate"]) for c in found["comparisons"]] ==
          [(name, rate) for name in names for rate in (0.5, 1)], "report: what of", found["comparisons"][0])
    rows = re.findall(r"<tr><td>(\w+)<td>([0-9.]+)<td>(\w+)<td>\w+<td>([0-9.-]+)", page)
    check(len(rows) == 18, "report: rows", len(rows))
    for c, one in zip(found["comparisons"], range(6)):
        alone = report("-w", "0.4", "-p", "fifo,priority,tidal", "-r", str(c["rate"]),
                       os.path.join(loads, c["load"] + ".json"))
        check(alone == c, "report:", c["load"], c["rate"], "differs from halbench --json")
        for p, row in zip(c["policies"], rows[3 * one:]):
            slo = "-" if p["slo"] is None else "%.2f" % (100 * p["slo"])
            check(row[:3] == (c["load"], "%.2f" % c["rate"], p["policy"]) and row[3] == slo,
                  "report: row", row)
    heavy = [c for c in found["comparisons"] if c["rate"] == 1]
    for a, c in zip(found["attainment"], heavy):
        check(a["load"] == c["load"] and a["rates"] == [0.5, 1], "report: attainment of", a)
        for p in c["policies"]:
            check(a["slo"][p["policy"]][1] == p["slo"], "report: attainment", p["policy"])
    check(any(a["slo"]["fifo"][0] > a["slo"]["fifo"][1] for a in found["attainment"]),
          "report: half the load is no easier")
    charts = [xml.etree.ElementTree.fromstring(x)
              for x in re.findall(r'<svg class="chart".*?</svg>', page, re.S)]
    check(len(charts) == 3 * (2 + 1 + 3), "report: charts", len(charts))
    check("http" not in page and "src=" not in page, "report: is not of one piece")
    run(*args, "-H", path("twice.html"), *(os.path.join(loads, n + ".json") for n in names))
    for end in (".html", ".json"):
        with open(path("all" + end)) as f, open(path("twice" + end)) as g:
            check(f.read() == g.read(), "report: differs from run to run", end)
    # pictures, where the build can make them
    p = subprocess.run(halbench + ["-w", "0.2", "-P", path("pic"), "-R", "1", os.path.join(loads, "mix.json")],
                       capture_output=True, text=True)
    if p.returncode == 0:
        for chart in ("latency", "units", "attainment"):
            with open(path("pic-mix-1-%s.png" % chart), "rb") as f:
                head = f.read(24)
            check(head[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(head[16:20], "big") == 1440, chart)
        bad = run("-w", "0.2", "-P", path("no/pic"), os.path.join(loads, "mix.json"), status=1)
        check("no/pic-mix-1-latency.png" in bad.stderr, bad.stderr)
    else:
        check("built without Cairo" in p.stderr, p.stderr)
    # what is wrong
    os.mkdir(path("empty"))
    mix = os.path.join(loads, "mix.json")
    for files, why in (([path("empty")], "no .json file"), ([path("lost.json")], "lost.json"),
                       ([loads, mix], "the load name mix is already used")):
        bad = run("report", "-H", path("bad.html"), *files, status=1)
        check(why in bad.stderr and not os.path.exists(path("bad.html")), files, bad.stderr)
    bad = run("report", "-w", "0.1", "-p", "fifo", "-H", path("no/page.html"), mix, status=1)
    check("no/page.html: No such file" in bad.stderr, bad.stderr)
    page = ["-H", path("x.html"), mix]
    for line in ([mix], page[:2], page + ["-j"], page + ["-C"], page + ["-F", "x"], page + ["-q", "x"],
                 page + ["-T", "x"], page + ["-r", "1"]):
        run("report", *line, status=2)


# ---- networks of files -----------------------------------------------------------------

DISB = ["vgg19-imagenet", "resnet152-imagenet", "resnet50-imagenet", "densenet201-imagenet",
        "inceptionv3-imagenet", "mobilenetv1-imagenet", "distilbert"]


def check_tables(path, target):
    """Those that stand in for DISB's networks on an NPU: each name is there, and the digits run."""
    models = os.path.join(loads, "..", "models")
    for name in ("disb-digits", "disb-mlperf-tiny"):
        with open(os.path.join(models, name + ".json")) as f:
            check(sorted(json.load(f)["models"]) == sorted(DISB), name, "has other networks")
    with open(path("disb.json"), "w") as f:
        json.dump({"time": 1, "tasks": [
            {"id": name + "_rt", "client": {"model_name": name},
             "load": {"type": "trace", "trace": [0, 20 + i, 700]}} for i, name in enumerate(DISB)]}, f)
    r = report("-t", target, "-m", os.path.join(models, "disb-digits.json"), "-x", "0.0001",
               "-p", "priority:preempt_for=priority", path("disb.json"))
    check([t["ended"] for t in r["policies"][0]["tasks"]] == [3] * len(DISB), "disb-digits: requests",
          r["policies"][0]["tasks"])
    check(r["window_ns"] == 100000, "disb-digits: window", r["window_ns"])


def check_none(path):
    """A task without requests has no latencies."""
    with open(path("none.json"), "w") as f:
        json.dump({"time": 0.1, "tasks": [LOAD["tasks"][0],
                                          {"id": "late_rt", "client": {"model_name": "other"},
                                           "load": {"type": "trace", "trace": [100.5]}}]}, f)
    args = ["-m", path("table.json"), "-p", "fifo", path("none.json")]
    r = report(*args)
    for t in r["policies"][0]["tasks"][1], r["alone"][1]:
        check(t["arrived"] == 0 and all(t[key] is None for key in (
            "p50_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns", "slo_ns", "slo")), "no requests:", t)
    row = list(csv.DictReader(run("-C", *args).stdout.splitlines()))[1]
    check([row[key] for key in ("arrived", "p50_ns", "max_ns", "mean_ns", "slo_ns")] == ["0", "", "", "", ""],
          "no requests: CSV", row)
    check(row["engine"] == r["engine"] and "ref" in row["engine"], "engine: CSV", row)
    text = run("-H", path("none.html"), *args).stdout
    check(re.search(r"^late_rt +0( +-){5} ", text, re.M), "no requests:", text)
    with open(path("none.html")) as f:
        check("<td>late_rt<td>0" + 5 * "<td>-" in f.read(), "no requests: page")


def check_floor(file):
    """Of too few units for what suits a policy."""
    two, = report("-t", "ref?units=2", "-p", "krisp", file)["policies"]
    check(two["layout"] == "classes" and "tenants would need" in two["note"], "two units:", two)
    for p in report("-t", "ref?units=1", "-p", "krisp,orion", file)["policies"]:
        check(p["layout"] == "shared" and "layout=shared: " in p["note"], "one unit:", p)
    text = run("-t", "ref?units=1", "-p", "krisp", file).stdout
    check("\nkrisp: layout=shared: tenants would need 4 partitions, but the device has" in text, text)


def check_refused(path, target, args, load):
    """A policy that is refused: the others' numbers are as without it, and each form of the
    report says why, and what would help."""
    why = ("memory channels 0xf; give them disjoint color_mask values, or set "
           "policy.fgpu_colors=any to share channels")
    args = ["-t", target, *args, "-p"]
    forms = ["-H", path("refused.html"), "-R", "0.5,1"]
    alone = report(*args, "fifo,priority", load)
    p = run(*args, "fifo,fgpu:colors=any,priority", "-j", *forms, load, status=1)
    r = json.loads(p.stdout)
    fgpu = r["policies"].pop(1)
    check(r == alone, "refused: the others differ")
    check(why in fgpu["refused"] and sorted(fgpu) == ["layout", "policy", "refused"], "refused:", fgpu)
    check(p.stderr.count("\n") == 1 and "fgpu:colors=any: refused: " in p.stderr and why in p.stderr,
          "refused: stderr", p.stderr)
    with open(path("refused.html")) as f:
        page = f.read()
    check("<td>fgpu:colors=any<td>classes" + 13 * "<td>-" in page, "refused: row of the page")
    check("npu_load at rate 1, fgpu:colors=any: refused: " in page and why in page, "refused: page")
    check(page.count("<h4>") == 2, "refused: units of", page.count("<h4>"))
    text = run(*args, "fgpu:colors=any,fifo", load, status=1).stdout
    check("fgpu:colors=any          classes  refused\n" in text and why in text, "refused: table", text)
    rows = run(*args, "fgpu:colors=any,fifo", "-C", load, status=1).stdout
    check('"fifo"' in rows and "fgpu" not in rows, "refused: CSV", rows)
    run("report", "-H", path("two.html"), *args, "fgpu:colors=any,fifo", load, status=1)
    with open(path("two.json")) as f:
        two = json.load(f)
    for c in two["comparisons"]:
        check([("refused" in p, "slo" in p) for p in c["policies"]] == [(True, False), (False, True)],
              "report with one refused:", c["policies"])
    check(two["attainment"][0]["slo"]["fgpu:colors=any"] == 5 * [None], "refused: attainment")
    # nothing but refusals is a report all the same
    none = json.loads(run(*args, "nobody", "-j", "-H", path("none.html"), load, status=1).stdout)
    check("there is no policy" in none["policies"][0]["refused"] and none["units"] == 256, "nobody:", none)
    # what the caller says goes first
    r = report(*args, "fgpu,fgpu:fgpu_colors=any", load)["policies"]
    check("colors=own" in r[0]["note"] and "note" not in r[1], "fgpu:", r)
    one = target + "&channels=1"
    check("0x1" in run("-t", one, *args[2:], "fgpu", load, status=1).stderr, "fgpu of one channel")
    r = report("-t", one, "-o", "policy.fgpu_colors=any", *args[2:], "fgpu", load)["policies"]
    check("note" not in r[0], "fgpu of one channel that all share:", r)


def check_all(path, target, loads, network):
    """Every policy runs on the NPU, with what it needs there."""
    with open(path("net.json"), "w") as f:
        json.dump({"models": {name: {"network": network} for name in DISB}}, f)
    args = ["-t", target, "-m", path("net.json"), "-x", "0.0005", "-w", "0.2"]
    every = report(*args, "-p", "all", os.path.join(loads, "bursts.json"))["policies"]
    check(len(every) >= 18 and not [p for p in every if "refused" in p], "npu: all",
          [p for p in every if "refused" in p])
    layouts = {p["policy"]: p["layout"] for p in every}
    check(layouts["tidal"] == "tenants" and layouts["fgpu"] == "classes", "npu: layouts", layouts)
    # six tasks, of which the device can have four partitions
    with open(path("six.json"), "w") as f:
        json.dump({"time": 1, "tasks": [
            {"id": "task%u_%s" % (i, kind), "client": {"model_name": DISB[i]},
             "load": {"type": "trace", "trace": [20 * i, 150]}}
            for i, kind in enumerate(("rt", "be", "rt", "be", "be", "rt"))]}, f)
    run("report", "-H", path("all_six.html"), *args, path("six.json"))
    with open(path("all_six.html")) as f:
        page = f.read()
    with open(path("all_six.json")) as f:
        six = json.load(f)["comparisons"]
    check(len(six) == 2, "npu: report", len(six))
    for p in six[0]["policies"] + six[1]["policies"]:
        check([t["arrived"] for t in p["tasks"]] == [2] * 6, "npu: requests", p)
        moves = p["policy"] in ("tidal", "krisp", "fission", "v10")
        check(("tenants would need 6 partitions, but the device has 4" in p.get("note", "")) == moves and
              (p["layout"] == "classes" or not moves), "npu: note", p["policy"], p.get("note"))
    check("six at rate 0.5, tidal: layout=classes: tenants would need 6 partitions" in page, "npu: page")
    bad = run(*args, "-p", "tidal:layout=tenants", path("six.json"), status=1)
    check("supports 4 partitions, too few for 6 (layout tenants); layout=classes needs two partitions" in bad.stderr,
          "npu: tenants", bad.stderr)


def refused(texts, *args):
    """Each of these is in the one line that says why it fails."""
    err = run(*args, status=1).stderr
    check(err.count("\n") == 1 and all(text in err for text in texts), args, "says:", err)


def check_misuse(path, loads):
    """What is wrong, where, and what to do."""
    mix = os.path.join(loads, "mix.json")
    refused(["%s is a folder; choose one load" % loads, "halbench report -H PAGE.html " + loads], loads)
    refused([path("table.json") + ":1: models: this is a table of networks, which --models takes"],
            path("table.json"))
    refused([mix + ":", "tasks: this is a load; --models takes a table"], "-m", mix, mix)
    refused([path("lost.json") + ": No such file"], path("lost.json"))
    refused([path("lost.json") + ": No such file"], "-m", path("lost.json"), mix)
    refused(["nothing:0", "no backend nothing; it has", "ref"], "-t", "nothing:0", mix)
    refused(["ref?clock=real: halbench cannot step a real clock", "choose a --target with a virtual clock, such as ref?units=32"],
            "-t", "ref?clock=real", mix)
    refused([path("lost.html") + "/page.html: No such file"], "report", "-w", "0.01", "-p", "fifo", "-H",
            path("lost.html") + "/page.html", mix)


def check_npu(path, target, network, loads):
    with open(path("npu.json"), "w") as f:
        json.dump({"models": {"net": {"network": network}, "lost": {"network": "lost.tflite"},
                              "steps": {"steps": [[1, 1, 1]]}}}, f)

    def load(model):
        with open(path("npu_load.json"), "w") as f:
            json.dump({"time": 0.0002, "tasks": [
                {"id": "a_rt", "client": {"model_name": model},
                 "load": {"type": "periodic", "frequency": 50000}},
                {"id": "b_be", "client": {"model_name": "net"}, "load": {"type": "continuous"}},
                {"id": "c_be", "client": {"model_name": "net"}, "load": {"type": "continuous"}}]}, f)

    load("net")
    args = ["-t", target, "-m", path("npu.json"), "-q", path("requests.csv"), "-p",
            "fifo,priority,orion", path("npu_load.json")]
    r = report(*args)
    check_numbers(r, requests_of(path("requests.csv")))
    fifo, priority, orion = r["policies"]
    check(r["units"] == 256 and "systolic" in r["engine"], r["engine"])
    check(fifo["tasks"][0]["arrived"] == 10, "npu: arrived", fifo["tasks"][0]["arrived"])
    check(priority["tasks"][0]["mean_ns"] < fifo["tasks"][0]["mean_ns"], "npu: priority helps nobody")
    check(orion["layout"] == "halves" and 0 < priority["use"] < 1, "npu: use", priority["use"])
    check(r == report(*args), "npu: differs from run to run")
    # channels of one's own: nobody else's copies are in the way; fgpu refuses without
    args[args.index("fifo,priority,orion")] = (
        "fifo:layout=halves,fifo:layout=halves:colors=own,fgpu:layout=halves:colors=own")
    shared, own, fgpu = report(*args)["policies"]
    check(own["tasks"][0]["mean_ns"] < shared["tasks"][0]["mean_ns"], "npu: colors=own helps nobody")
    check(abs(fgpu["tasks"][0]["mean_ns"] / own["tasks"][0]["mean_ns"] - 1) < 0.001, "npu: fgpu",
          fgpu["tasks"][0])
    args[-2] = "fgpu:layout=halves:colors=any"
    check("memory channels" in run(*args, status=1).stderr, "fgpu with channels that all share")
    args[-2] = "fifo:layout=split:colors=own"
    args[1] = target + "&channels=2"
    check("has 2 memory channels, too few for 3 partitions (layout split, colors=own)"
          in run(*args, status=1).stderr, "colors=own of two for three")
    args[1] = target
    # elastic partitions: units go to who has work, though a rectangle must have that area
    with open(path("npu_load.json"), "w") as f:
        json.dump({"time": 0.002, "tasks": [
            {"id": name, "client": {"model_name": "net"}, "load": {"type": "poisson", "frequency": 20000}}
            for name in ("a_rt", "b_rt")] + [
            {"id": "c_be", "client": {"model_name": "net"}, "load": {"type": "continuous"}}]}, f)
    args[-2] = ",".join(p + ":layout=tenants" for p in ("tidal", "fission", "krisp", "v10", "fifo"))
    *moving, floor = report(*args)["policies"]
    check(floor["slo"] == 0, "npu: a unit each is enough", floor["slo"])
    # v10's turns know no deadline; that it works is told by how much is done in all
    for p, slo in zip(moving, (0.95, 0.8, 0.8, 0.05)):
        check(p["slo"] >= slo and p["total_throughput"] > 5 * floor["total_throughput"],
              "npu: elastic", p["policy"], p["slo"], p["total_throughput"], floor["total_throughput"])
    load("net")
    check_refused(path, target, ["-m", path("npu.json")], path("npu_load.json"))
    load("steps")
    refused(['%s:1: tasks[0].client.model_name: the table has only steps for "steps", which run on ref, '
             "not on %s" % (path("npu_load.json"), args[1]), "with --models, such as data/models/disb-digits.json",
             "--scale"], *args)
    load("lost")
    refused(["%s:1: models.lost.network: %s: No such file" % (path("npu.json"), path("lost.tflite"))], *args)
    load("net")
    refused(['%s:1: tasks[0].client.model_name: the table has a file for "net", which runs on an NPU, '
             "not on ref?units=32" % path("npu_load.json"), "--target, such as npu:0?engine=fast"],
            "-m", path("npu.json"), path("npu_load.json"))
    # the table of the program has steps alone
    refused(["mix.json:4: tasks[0].client.model_name", "not on " + target, "disb-digits.json"],
            "-t", target, os.path.join(loads, "mix.json"))
    refused(["bursts.json:", "not on " + target, "disb-digits.json"],
            "report", "-H", path("never.html"), "-w", "0.1", "-t", target, loads)
    check(not os.path.exists(path("never.html")), "a page of loads that did not run")


def main():
    with tempfile.TemporaryDirectory() as d:
        def path(name):
            return os.path.join(d, name)
        with open(path("load.json"), "w") as f:
            json.dump(LOAD, f)
        with open(path("table.json"), "w") as f:
            json.dump(TABLE, f)
        # oracle
        r = report("-t", "ref?units=%d" % UNITS, "-o", "hal.partition_inflight=1", "-o",
                   "hal.inflight=1", "-m", path("table.json"), "-q", path("requests.csv"), "-p", "fifo,priority",
                   path("load.json"))
        requests = requests_of(path("requests.csv"))
        check_numbers(r, requests)
        for name in ("fifo", "priority"):
            expected = simulate(LOAD["tasks"], name == "priority")
            for task, ends in expected.items():
                got = requests[name, task]
                wrong = [i for i, (a, b) in enumerate(zip(got, ends)) if a != b]
                check(len(got) == len(ends) and not wrong, name, task, len(got), "requests, not",
                      len(ends), "first wrong:", wrong[:1], [(got[i], ends[i]) for i in wrong[:1]])
        # own loads: numbers, and the control
        bad = run("-H", path("no/page"), "-w", "0.1", os.path.join(loads, "mix.json"), status=1)
        check("no/page: No such file" in bad.stderr, bad.stderr)
        for load in ("mix", "bursts", "diurnal"):
            file = os.path.join(loads, load + ".json")
            args = ["-w", "2", "-q", path("requests.csv"), "-p", "fifo,priority,reef,tidal", file]
            r = report(*args)
            check_numbers(r, requests_of(path("requests.csv")))
            by = {p["policy"]: p for p in r["policies"]}
            check(by["fifo"]["slo"] < by["priority"]["slo"], load, "fifo keeps what priority does")
            check(by["fifo"]["p99_ratio"] > by["priority"]["p99_ratio"], load, "fifo is no slower")
            check(by["reef"]["preemptions"] > 0 and by["reef"]["lost_ns"] > 0, load, "reef stops nobody")
            check(by["priority"]["preemptions"] == 0, load, "priority stops somebody")
            check(all(p["gave_up"] == 0 for p in r["policies"]), load, "a policy gave up")
        every = report("-p", "all", "-w", "0.3", os.path.join(loads, "mix.json"))["policies"]
        names = {p["policy"] for p in every}
        check({"fifo", "tidal", "static", "themis"} <= names and len(every) >= 18, "all:", names)
        for p in every:
            check(p["gave_up"] == 0 and all(t["arrived"] > 0 for t in p["tasks"]), p["policy"], "all")
        plain, classes, named = report("-p", "fifo,fifo:class=yes,fifo:class=no", "-w", "2",
                                       os.path.join(loads, "mix.json"))["policies"]
        check(classes["slo"] > plain["slo"] and classes["preemptions"] > 0, "class=yes:",
              classes["slo"], classes["preemptions"])
        check(plain["preemptions"] == 0 and plain["tasks"] == named["tasks"], "class=no")
        # the same seed, the same bytes
        file = os.path.join(loads, "bursts.json")
        for form in ("--json", "--csv", "--seed=1"):
            args = ["-w", "1", "-p", "priority,tidal", form, file]
            check(run(*args).stdout == run(*args).stdout, form, "differs from run to run")
        check(run("-w", "1", "-C", file).stdout != run("-w", "1", "-C", "-s", "2", file).stdout,
              "another seed is as the first")
        # half the rate: as many requests in twice the time
        full, light = report("-w", "1", file), report("-w", "1", "-r", "0.5", file)
        check(light["window_ns"] == 2 * full["window_ns"], "light: window")
        check(light["policies"][0]["tasks"][0]["arrived"] == full["policies"][0]["tasks"][0]["arrived"],
              "light: requests")
        # CSV says what JSON does
        rows = list(csv.DictReader(run("-w", "1", "-C", file).stdout.splitlines()))
        tasks = [t for p in full["policies"] for t in p["tasks"]]
        check([int(row["p99_ns"]) for row in rows] == [t["p99_ns"] for t in tasks], "CSV: p99")
        # traces
        run("-w", "0.2", "-T", path("trace"), "-p", "fifo,priority", file)
        for name in ("trace-1-fifo.json", "trace-2-priority.json"):
            with open(path(name)) as f:
                check(len(json.load(f)["traceEvents"]) > 100, name, "has no events")
        check_progress(os.path.join(loads, "diurnal.json"))
        check_page(path, file)
        check_report(path, loads)
        # what is wrong
        bad = run("-p", "nobody", file, status=1)
        check("nobody" in bad.stderr, bad.stderr)
        bad = run("-p", "tidal:tidal_idle_us=0", file, status=1)
        check("tidal_idle_us" in bad.stderr, bad.stderr)
        bad = run("-p", "fifo:layout=round", file, status=2)
        check("layout=round" in bad.stderr, bad.stderr)
        bad = run("-p", "fifo:colors=three", file, status=2)
        check("colors=three: it must be own or any" in bad.stderr, bad.stderr)
        bad = run("-p", "fifo:colors=own", file, status=1)
        check("has 0 memory channels" in bad.stderr, bad.stderr)
        check_misuse(path, loads)
        bad = run("-t", "ref?units=2", "-p", "krisp:layout=tenants", file, status=1)
        check("too few" in bad.stderr and "layout=classes needs two partitions" in bad.stderr, bad.stderr)
        check_floor(file)
        bad = run("-w", "60", file, status=1)
        check("60" in bad.stderr, bad.stderr)
        # names that mean something elsewhere
        odd = 'a<b>&",\'_rt'
        with open(path("odd.json"), "w") as f:
            json.dump({"time": 0.01, "tasks": [dict(LOAD["tasks"][0], id=odd)]}, f)
        args = ["-m", path("table.json"), "-p", "fifo", "-q", path("odd.csv"), "-H", path("odd.html")]
        r = report(*args, path("odd.json"))
        check(r["policies"][0]["tasks"][0]["id"] == odd, "odd name in JSON")
        check_numbers(r, requests_of(path("odd.csv")))
        with open(path("odd.html")) as f:
            page = f.read()
        check(html.escape(odd, quote=False).replace('"', "&quot;") in page and odd not in page,
              "odd name in the page")
        rows = list(csv.DictReader(run("-C", *args, path("odd.json")).stdout.splitlines()))
        check(rows[0]["task"] == odd, "odd name in CSV")
        with open(path("load.json"), "w") as f:
            f.write(json.dumps(LOAD).replace("long", "longer"))
        bad = run("-m", path("table.json"), path("load.json"), status=1)
        check('load.json:1: tasks[2].client.model_name: "longer" is in no table; choose a table that has it with '
              "--models" in bad.stderr, bad.stderr)
        check_none(path)
        # a file that cannot be written is no policy's fault
        bad = run("-w", "0.1", "-T", path("no/trace"), file, status=1)
        check(bad.stdout == "" and "no/trace-1-fifo.json: No such file" in bad.stderr, bad.stderr)
        bad = run("-w", "0.1", "-P", path("no/chart"), file, status=1)
        check("without Cairo" in bad.stderr or "no/chart-bursts-1-latency.png: No such file" in bad.stderr,
              bad.stderr)
        for line in ([], [file, file], ["-s", "-1", file], ["-r", "0", file], ["-p", "fifo,fifo", file],
                     ["-p", "", file], ["-o", "policy.name=tidal", file],
                     ["-t", "ref?policy.name=tidal", file], ["-p", "fifo:name=tidal", file], ["-j", "-C", file], ["-p", "fifo", "-p", "rr", file],
                     ["--nonsense", file], ["-R", "1,2", file],
                     ["-H", path("page"), "-R", "2,1", file], ["-H", path("page"), "-R", "1,", file], ["-p", "fifo:class", file]):
            run(*line, status=2)
        check("usage: halbench" in run("--help").stdout, "--help")
        check(run("--version").stdout.startswith("halbench "), "--version")
        if len(sys.argv) > 3:
            check_tables(path, sys.argv[3])
            check_npu(path, sys.argv[3], os.path.abspath(sys.argv[4]), loads)
            check_all(path, sys.argv[3], loads, os.path.abspath(sys.argv[4]))
    for f in failures[:40]:
        print(f)
    print("%d failures" % len(failures))
    sys.exit(bool(failures))


main()
