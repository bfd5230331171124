# SPDX-License-Identifier: Apache-2.0
"""What nets.py and ops.py share: the random numbers that the C tests repeat, and TFLite."""
import numpy as np
try:
    from tflite_runtime.interpreter import Interpreter, OpResolverType
except ImportError:  # ops_current.py
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

MASK = (1 << 64) - 1


def random_bytes(seed, count):
    """count bytes of xorshift64*, the top byte of each number; seed is the first state and
    not 0.  tests/tflite/oracle_data.c has the same in C."""
    x = seed & MASK
    assert x
    out = bytearray(count)
    for i in range(count):
        x ^= x >> 12
        x = (x ^ (x << 25)) & MASK
        x ^= x >> 27
        out[i] = ((x * 2685821657736338717) & MASK) >> 56
    return bytes(out)


def interpreter(model):
    """Reference kernels only: XNNPACK and the optimised kernels round differently.  ELU, a
    table in each, is not among them."""
    for kind in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            it = Interpreter(
                model_content=model,
                num_threads=1,
                experimental_op_resolver_type=kind,
                experimental_preserve_all_tensors=True,
            )
            it.allocate_tensors()
            return it
        except (RuntimeError, ValueError) as e:
            if kind != OpResolverType.BUILTIN_REF or "Didn't find op" not in str(e):
                raise


def invoke(it, raw):
    """Runs with raw bytes: the inputs one after the other, in the model's order."""
    at = 0
    for detail in it.get_input_details():
        count = int(np.prod(detail["shape"]))
        x = np.frombuffer(raw, detail["dtype"], count, at).reshape(detail["shape"])
        it.set_tensor(detail["index"], x)
        at += x.nbytes
    assert at == len(raw)
    it.invoke()
