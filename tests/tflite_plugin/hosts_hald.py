#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts_hald.py LIBRARY TARGET: two processes, each with half of the device that hald serves,
run a network at the same time; a third finds no units."""
import os
import subprocess
import sys

import numpy as np

import networks
import runtime
from runtime import tflite

ROUNDS = 20


def tenant(library, target):
    """Run in a child: one line when the delegate is there, then wait for one."""
    delegate = tflite.load_delegate(library, {"target": target, "units": 128,
                                               **runtime.OPTIONS})
    model = networks.float_between()
    it, summary = runtime.with_delegate(model, delegate)
    reference = runtime.interpreter(model)
    assert summary.taken == 2, summary.text
    print("ready", flush=True)
    sys.stdin.readline()
    rng, bad = np.random.default_rng(os.getpid()), 0
    for _ in range(ROUNDS):
        x = runtime.random_inputs(it, rng)
        bad += runtime.run(it, x) != runtime.run(reference, x)
    print(f"{bad} wrong")


def main():
    library, target = sys.argv[1:3]
    if len(sys.argv) > 3:
        return tenant(library, target)
    children = [subprocess.Popen([sys.executable, __file__, library, target, "tenant"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for _ in range(2)]
    for c in children:
        assert c.stdout.readline() == "ready\n"
    try:
        tflite.load_delegate(library, {"target": target, "units": 128})
        raise AssertionError("a third tenant was let in")
    except ValueError as e:
        assert "units" in str(e), e
    for c in children:
        c.stdin.write("go\n")
        c.stdin.flush()
    answers = [c.communicate()[0] for c in children]
    assert answers == ["0 wrong\n"] * 2, answers
    print(f"{runtime.NAME}: two processes shared {target}, {ROUNDS} inferences each, 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
