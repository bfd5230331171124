# SPDX-License-Identifier: Apache-2.0
"""What hosts.py and the tests of the example share: the installed TensorFlow Lite."""
import os
import re
import sys
import tempfile

import numpy as np

try:
    from ai_edge_litert import interpreter as tflite
    NAME = "ai-edge-litert"
except ImportError:
    try:
        from tflite_runtime import interpreter as tflite
        NAME = "tflite-runtime"
    except ImportError:
        from tensorflow.lite.python import interpreter as tflite
        NAME = "tensorflow"

# Of the delegate: tflite-runtime ends with 2.14, before the arithmetic of 2.20.
OPTIONS = {"reference": "2.14"} if NAME == "tflite-runtime" else {}
REFERENCE = tflite.OpResolverType.BUILTIN_REF
PLAIN = tflite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


class Stderr:
    """What C code writes to standard error meanwhile, as .text."""

    def __enter__(self):
        sys.stderr.flush()
        self.file = tempfile.TemporaryFile()
        self.saved = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        os.dup2(self.saved, 2)
        os.close(self.saved)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


class Summary:
    """The line that the delegate writes, in numbers; one for each graph of a model."""

    PATTERN = re.compile(r"accelhal: (\d+) of (\d+) nodes, (\d+) of (\d+) MACs in (\d+) partition")

    def __init__(self, text):
        found = [tuple(map(int, m)) for m in self.PATTERN.findall(text)]
        assert found, f"no summary in: {text}"
        self.text = text
        self.taken, self.nodes, self.macs, self.all_macs, self.parts = map(sum, zip(*found))


def interpreter(model, delegates=None, kind=REFERENCE, **keys):
    """Reference kernels unless kind says otherwise; ELU is not among them."""
    source = {"model_path": model} if isinstance(model, str) else {"model_content": model}
    try:
        made = tflite.Interpreter(**source, experimental_op_resolver_type=kind,
                                  experimental_delegates=delegates, **keys)
    except (RuntimeError, ValueError) as e:
        if kind != REFERENCE or "Didn't find op" not in str(e):
            raise
        made = tflite.Interpreter(**source, experimental_op_resolver_type=PLAIN,
                                  experimental_delegates=delegates, **keys)
    made.allocate_tensors()
    return made


def with_delegate(model, delegate, **keys):
    """An interpreter, and the summary that the delegate wrote."""
    with Stderr() as err:
        made = interpreter(model, [delegate], **keys)
    return made, Summary(err.text)


def random_inputs(it, rng):
    """An array for each input: whole numbers of the whole range, or reals."""
    made = []
    for d in it.get_input_details():
        if np.issubdtype(d["dtype"], np.integer):
            i = np.iinfo(d["dtype"])
            x = rng.integers(i.min, int(i.max) + 1, d["shape"])
        else:
            x = rng.uniform(-6, 6, d["shape"])
        made.append(x.astype(d["dtype"]))
    return made


def run(it, inputs):
    """The outputs' bytes."""
    for d, x in zip(it.get_input_details(), inputs):
        it.set_tensor(d["index"], x)
    it.invoke()
    return b"".join(it.get_tensor(d["index"]).tobytes() for d in it.get_output_details())
