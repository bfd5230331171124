#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts.py LIBRARY TARGET [--figures]: the provider in the installed ONNX Runtime.

Each model of one operator runs whole on the NPU, and differs from the CPU provider by at most
one step; ONNX's own vectors are exact; mixed graphs, dynamic batches, threads, options, and a library that is unregistered
under live sessions."""
import os
import sys
import threading

import numpy as np
import onnxruntime as ort

import models
import vectors

NAME = "AccelHalExecutionProvider"
LIBRARY, TARGET = os.path.abspath(sys.argv[1]), sys.argv[2]
ort.set_default_logger_severity(3)


def device():
    return [d for d in ort.get_ep_devices() if d.ep_name == NAME]


def session(model, whole=False, override=None, **options):
    so = ort.SessionOptions()
    so.log_severity_level = 4
    if whole:
        so.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if override:
        so.add_free_dimension_override_by_name(*override)
    so.add_provider_for_devices(device(), {"target": TARGET, **options})
    return ort.InferenceSession(model.SerializeToString(), so)


def cpu(model):
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), so, providers=["CPUExecutionProvider"])


def inputs(of, rng):
    made = {}
    for i in of.get_inputs():
        if i.type == "tensor(float)":
            made[i.name] = rng.uniform(-4, 4, i.shape).astype(np.float32)
        else:
            made[i.name] = rng.integers(0, 256, i.shape).astype(np.uint8).view(
                np.int8 if i.type == "tensor(int8)" else np.uint8)
    return made


def single():
    """Steps that one layer is off, at most."""
    rng, count, most, wrong = np.random.default_rng(1), 0, 0, []
    for text, model, layers in models.all_single():
        count += 1
        try:
            npu, reference = session(model, whole=True), cpu(model)
        except Exception as problem:  # not taken whole
            wrong.append(f"{text}: {str(problem)[:300]}")
            continue
        for _ in range(3):
            x = inputs(reference, rng)
            got, want = (np.concatenate([y.astype(int).ravel() for y in one.run(None, x)])
                         for one in (npu, reference))
            steps = int(np.abs(got - want).max())
            most = max(most, steps if layers == 1 else 0)
            if steps > layers or (want.std() == 0 and want.size > 1):
                wrong.append(f"{text}: {steps} steps, deviation {want.std():g}")
    return count, most, wrong


def exact():
    """How many of ONNX's vectors run whole on the NPU and on the CPU, and what is wrong."""
    taken, left, wrong = 0, 0, []
    for name, model, given, want in vectors.cases():
        # The second operand of a product may be an activation, that of a convolution not.
        for weights in (True, False) if "matmul" in name else (True,):
            made, x = vectors.with_constants(model, given, weights)
            try:
                npu = session(made, whole=True)
            except Exception as problem:  # not taken whole
                left += 1
                if not vectors.is_left(name):
                    wrong.append(f"{name}: {str(problem)[:300]}")
                continue
            taken += 1
            if vectors.is_left(name):
                wrong.append(f"{name}: it is on the NPU; the documentation says it is not")
            for got, expected in zip(npu.run(None, x), want, strict=True):
                if got.dtype != expected.dtype or not np.array_equal(got, expected):
                    wrong.append(f"{name}: {got} instead of {expected}")
    return taken, left, wrong


def rest():
    rng = np.random.default_rng(2)
    model = models.mixed()
    npu, second, reference = session(model), session(model), cpu(model)
    x = inputs(reference, rng)
    want = npu.run(None, x)[0]
    step = 1.5
    assert np.abs(want - reference.run(None, x)[0]).max() <= 3 * step and want.std() > step
    # Threads, of one session and of two on the same units.
    wrong = []

    def work(one):
        for _ in range(10):
            if not (one.run(None, x)[0] == want).all():
                wrong.append(one)

    threads = [threading.Thread(target=work, args=[one]) for one in (npu, second, npu)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    # A batch that is not known stays on the CPU, unless it is given.
    open_batch = models.mixed("N")
    x2 = {"x": np.concatenate([x["x"]] * 2)}
    assert np.abs(session(open_batch).run(None, x2)[0][0] - want[0]).max() <= 3 * step
    given = session(open_batch, override=("N", 2))
    assert (given.run(None, x2)[0][1] == want[0]).all()
    # Errors with reasons.
    for options, text in (({"speed": "1"}, "unknown option speed"),
                          ({"units": "many"}, "option units"),
                          ({"target": "ref"}, "is not an NPU"),
                          ({"strict": "1"}, "strict=1")):
        so = ort.SessionOptions()
        so.log_severity_level = 4
        so.add_provider_for_devices(device(), {"target": TARGET, **options})
        try:
            so_session = ort.InferenceSession(model.SerializeToString(), so)
        except Exception as problem:
            assert text in str(problem), problem
        else:  # 1.23 falls back to the CPU by itself, and says so
            assert so_session.get_providers() == ["CPUExecutionProvider"], options
    if hasattr(npu, "set_ep_dynamic_options"):
        npu.set_ep_dynamic_options({"priority": "3", "deadline_us": "1000000"})
        assert (npu.run(None, x)[0] == want).all()
    # The library may be unregistered first.
    ort.unregister_execution_provider_library("accelhal")
    assert (npu.run(None, x)[0] == want).all()
    del npu, second, given


def main():
    ort.register_execution_provider_library("accelhal", LIBRARY)
    assert len(device()) == 1
    count, most, wrong = single()
    if "--figures" in sys.argv:
        print(f"figure plugin.onnx.models {count}")
        print(f"figure plugin.onnx.steps_max {most}")
        return 0
    taken, left, inexact = exact()
    wrong += inexact
    rest()
    print(f"onnxruntime {ort.__version__}: {count} models of one operator, {most} step at most, "
          f"{taken} of {taken + left} vectors of ONNX on the NPU, {len(wrong)} wrong")
    print("\n".join(wrong))
    return len(wrong) > 0 or count < 300 or taken < 18


if __name__ == "__main__":
    sys.exit(main())
