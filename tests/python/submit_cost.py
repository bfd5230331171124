#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""submit_cost.py: what queue.submit(command) costs, one command each, on the device ref: with
the extension, and as .ctypes without it.

Prints python.submit_us, microseconds of CPU time of the thread: of two processes that measure
by turns, each the median of its rounds; and python.submit_instructions, by callgrind.
submit_cost.py worker and submit_cost.py COUNT are those processes.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, COUNT = 9, 100_000
FEW, MORE = 1_000, 4_000  # under callgrind, where the difference is looked at
BATCH = 500  # submissions between two waits, which are not measured
KINDS = {"": "yes", ".ctypes": "no"}  # a figure's ending: ACCELHAL_EXTENSION


def worker():
    """Answers each number on the standard input with the ns of a submission."""
    import accelhal as hal

    with hal.open("ref", {"hal.queue_depth": 1024}) as device, device.partition(4) as part:
        queue, nop = part.queue(), hal.nop()
        for line in sys.stdin:
            spent, count = 0, int(line)
            for _ in range(count // BATCH):
                start = time.thread_time_ns()
                for _ in range(BATCH):
                    queue.submit(nop)
                spent += time.thread_time_ns() - start
                queue.submit().wait()
            print(spent / count, flush=True)


def submit(count):
    """Submits, and ends before the device, on its virtual clock, does any of it."""
    import accelhal as hal

    queue = hal.open("ref", {"hal.queue_depth": 4096}).partition(4).queue()
    nop = hal.nop()
    for _ in range(count):
        queue.submit(nop)
    os._exit(0)


def command(what):
    """The command line of worker() or submit(count)."""
    return [sys.executable, os.path.abspath(__file__), str(what)]


def environment(kind):
    """The environment of a worker of that kind."""
    return {**os.environ, "ACCELHAL_EXTENSION": KINDS[kind], "PYTHONHASHSEED": "0"}


def seconds():
    """Prints the times."""
    workers = {kind: subprocess.Popen(command("worker"), env=environment(kind), text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
               for kind in KINDS}
    found = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind, process in workers.items():
            process.stdin.write(f"{COUNT}\n")
            process.stdin.flush()
            found[kind].append(float(process.stdout.readline()))
    for kind, process in workers.items():
        process.communicate()
        print(f"figure python.submit_us{kind} {statistics.median(found[kind]) / 1000:.3f}")


def instructions():
    """Prints the instructions."""
    for kind in KINDS:
        totals = []
        for count in (FEW, MORE):
            with tempfile.NamedTemporaryFile() as out:
                subprocess.run(["valgrind", "--tool=callgrind", "-q",
                                f"--callgrind-out-file={out.name}", *command(count)],
                               env=environment(kind), check=True)
                with open(out.name, encoding="utf-8", errors="replace") as file:
                    totals.append(int(re.search(r"^totals: (\d+)", file.read(), re.M)[1]))
        print(f"figure python.submit_instructions{kind} "
              f"{(totals[1] - totals[0]) / (MORE - FEW):.0f}")


if sys.argv[1:] == ["worker"]:
    worker()
elif len(sys.argv) > 1:
    submit(int(sys.argv[1]))
else:
    seconds()
    instructions()
