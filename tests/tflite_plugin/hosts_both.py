#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts_both.py DELEGATE PROVIDER TARGET: two delegates of TensorFlow Lite and a provider of ONNX
Runtime are tenants of one device in one process, each in a thread of its own."""
import os
import sys
import threading

import numpy as np
import onnxruntime as ort

import networks
import runtime
from runtime import tflite

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx_plugin"))
import models  # noqa: E402

NAME, ROUNDS = "AccelHalExecutionProvider", 20
DELEGATE, PROVIDER, TARGET = sys.argv[1:4]


def delegated(units):
    """A function that counts wrong rounds of a network with a delegate."""
    model = networks.float_between()
    delegate = tflite.load_delegate(DELEGATE, {"target": TARGET, "units": units,
                                               **runtime.OPTIONS})
    it, summary = runtime.with_delegate(model, delegate)
    assert summary.taken == 2, summary.text
    reference = runtime.interpreter(model)

    def rounds():
        rng, bad = np.random.default_rng(units), 0
        for _ in range(ROUNDS):
            x = runtime.random_inputs(it, rng)
            bad += runtime.run(it, x) != runtime.run(reference, x)
        return bad

    return rounds


def session(model, units):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    devices = [d for d in ort.get_ep_devices() if d.ep_name == NAME]
    options.add_provider_for_devices(devices, {"target": TARGET, "units": str(units)})
    return ort.InferenceSession(model.SerializeToString(), options)


def provided(units):
    """The same of ONNX Runtime: outputs are those of the first round, alone."""
    _, model, _ = next(iter(models.all_single()))
    of = session(model, units)
    rng = np.random.default_rng(3)
    x = {i.name: rng.uniform(-4, 4, i.shape).astype(np.float32) if i.type == "tensor(float)"
         else rng.integers(0, 100, i.shape).astype(np.uint8 if "uint8" in i.type else np.int8)
         for i in of.get_inputs()}
    want = of.run(None, x)

    def rounds():
        return sum(not np.array_equal(a, b) for _ in range(ROUNDS)
                   for a, b in zip(of.run(None, x), want))

    return rounds


def main():
    ort.set_default_logger_severity(3)
    ort.register_execution_provider_library(NAME, PROVIDER)
    work = [delegated(64), delegated(32), provided(128)]
    try:
        tflite.load_delegate(DELEGATE, {"target": TARGET, "units": 64})
        raise AssertionError("a fourth tenant was let in: they do not share one device")
    except ValueError as e:
        assert "32 of 256 units are free" in str(e), e
    wrong = [None] * len(work)

    def run(k):
        wrong[k] = work[k]()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(work))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [0] * len(work), wrong
    print(f"two delegates and a provider on {TARGET}: {ROUNDS} rounds each, 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
