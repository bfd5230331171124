#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts.py LIBRARY TARGET SOURCE [MODELS]: the delegate in unmodified interpreters: whole and
mixed networks, resizing, tenants, threads, ends of a process, options.

MODELS: folder of the MLPerf Tiny networks.  The bytes must be those of the runtime's own
reference kernels.
"""
import glob
import os
import subprocess
import sys
import threading

import numpy as np

import networks
import runtime
from runtime import tflite

LIBRARY, TARGET, SOURCE = sys.argv[1:4]
MODELS = sys.argv[4] if len(sys.argv) > 4 else ""


def load(**options):
    return tflite.load_delegate(LIBRARY, {"target": TARGET, **runtime.OPTIONS, **options})


def differ(a, b, rounds=3, seed=1):
    """Rounds of random inputs with other bytes."""
    rng, bad = np.random.default_rng(seed), 0
    for _ in range(rounds):
        x = runtime.random_inputs(a, rng)
        bad += runtime.run(a, x) != runtime.run(b, x)
    return bad


def check(model, taken, nodes, parts, **keys):
    it, s = runtime.with_delegate(model, load(), **keys)
    assert (s.taken, s.nodes, s.parts) == (taken, nodes, parts), s.text
    assert differ(it, runtime.interpreter(model)) == 0
    return s


def test_whole():
    s = check(networks.chain(), 4, 4, 1)
    assert s.macs == s.all_macs and "nothing stays on the CPU" in s.text, s.text


def test_float_heads():
    s = check(networks.float_heads(), 3, 6, 1)
    assert "1 QUANTIZE (input is float32), 1 DEQUANTIZE (output is float32), " \
        "1 EXP (input is float32)" in s.text, s.text


def test_float_between():
    check(networks.float_between(), 2, 5, 2)


def test_custom():
    s = check(networks.custom_between(), 2, 4, 1)
    assert "1 CUSTOM NumericVerify (custom operator)" in s.text, s.text


def test_preserve_all_tensors():
    model = networks.chain()
    it, s = runtime.with_delegate(model, load(), experimental_preserve_all_tensors=True)
    assert s.taken == 4 and s.parts in (1, 4), s.text
    assert differ(it, runtime.interpreter(model)) == 0


def test_default_kernels():
    """XNNPACK takes what is left; what the NPU computes are the reference kernels' bytes."""
    model = networks.chain()
    it, s = runtime.with_delegate(model, load(), kind=tflite.OpResolverType.AUTO)
    assert s.taken == 4, s.text
    assert differ(it, runtime.interpreter(model)) == 0


def resize(model, taken, nodes, parts):
    it, s = runtime.with_delegate(model, load())
    assert (s.taken, s.nodes, s.parts) == (taken, nodes, parts), s.text
    reference = runtime.interpreter(model)
    for batch in (1, 2, 4, 1):
        for i in (it, reference):
            i.resize_tensor_input(i.get_input_details()[0]["index"], [batch, 8, 8, 4])
            i.allocate_tensors()
        assert it.get_input_details()[0]["shape"][0] == batch
        assert differ(it, reference, 2, batch) == 0
        shapes = [i.get_output_details()[0]["shape"].tolist() for i in (it, reference)]
        assert shapes[0] == shapes[1] and shapes[0][0] == batch, shapes


def test_resize():
    resize(networks.open_batch(), 3, 3, 1)


def test_computed_shapes():
    resize(networks.open_reshape(), 11, 11, 1)
    resize(networks.open_reshape_between(), 10, 13, 2)


def test_networks():
    files = [os.path.join(SOURCE, "data/digits/digits.tflite")]
    files += sorted(glob.glob(os.path.join(MODELS, "*.tflite"))) if MODELS else []
    delegate = load()
    for path in files:
        it, s = runtime.with_delegate(path, delegate)
        assert s.taken == s.nodes, s.text
        assert differ(it, runtime.interpreter(path), 2) == 0, path


def test_tenants():
    """Two delegates on one device, in two threads; a third finds no units."""
    model, bad = networks.chain(), [0, 0]
    delegates = [load(units=128), load(units=128, **{"class": "latency", "priority": 2})]
    try:
        load(units=1)
        raise AssertionError("a third tenant was let in")
    except ValueError as e:
        assert "0 of 256 units are free" in str(e), e
    its = [runtime.with_delegate(model, d)[0] for d in delegates]
    references = [runtime.interpreter(model) for _ in its]

    def work(k):
        bad[k] = differ(its[k], references[k], 20, k)

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert bad == [0, 0], bad


def test_one_delegate_many_interpreters():
    delegate, model, bad = load(), networks.float_between(), [0] * 3
    its = [runtime.with_delegate(model, delegate)[0] for _ in bad]
    references = [runtime.interpreter(model) for _ in bad]

    def work(k):
        bad[k] = differ(its[k], references[k], 20, k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert bad == [0] * 3, bad


def test_strict():
    runtime.with_delegate(networks.chain(), load(strict=1))
    try:
        runtime.with_delegate(networks.float_between(), load(strict=True))
        raise AssertionError("strict=1 let nodes stay on the CPU")
    except RuntimeError as e:
        assert "accelhal: strict=1, and 3 of 5 nodes would stay on the CPU" in str(e), e


def test_errors():
    for options, wanted in (({"colour": "red"}, "unknown option colour=red; known are target"),
                            ({"rows": "many"}, "option rows=many: must be a whole number"),
                            ({"target": "npu:7"}, "npu:7")):
        try:
            load(**options)
            raise AssertionError(f"{options} were accepted")
        except ValueError as e:
            assert wanted in str(e), e


END = """
import sys
sys.argv = {argv}
import hosts, networks, runtime
d = hosts.load()
it = runtime.with_delegate(networks.chain(), d)[0]
runtime.run(it, runtime.random_inputs(it, hosts.np.random.default_rng(1)))
{end}
"""


def test_ends():
    """Whatever is destroyed first, and at the end of the process."""
    for end in ("", "del it", "del d", "del it; del d", "del d; del it", "sys.exit(0)"):
        code = END.format(argv=sys.argv, end=end)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              cwd=os.path.dirname(os.path.abspath(__file__)), timeout=120)
        assert done.returncode == 0, (end, done.returncode, done.stderr)


def test_fork():
    it, _ = runtime.with_delegate(networks.chain(), load())
    x = runtime.random_inputs(it, np.random.default_rng(1))
    child = os.fork()
    if child == 0:
        try:
            runtime.run(it, x)
        except RuntimeError as e:
            os._exit(0 if "load it after the fork" in str(e) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    runtime.run(it, x)


def main():
    failed = 0
    tests = {n: f for n, f in globals().items() if n.startswith("test_")}
    for name, function in tests.items():
        try:
            function()
            print("ok    ", name)
        except Exception as e:  # each of them is a failure, and the others still run
            failed += 1
            print("FAILED", name, type(e).__name__, e)
    print(f"{runtime.NAME}: {len(tests)} tests, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
