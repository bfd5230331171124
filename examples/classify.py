#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""classify.py MODEL.tflite INPUT.npy LABELS.txt: LiteRT alone, then with the NPU: the best
five labels, equal bytes or not, cycles and use of the array.  pip install ai-edge-litert numpy
"""
import sys

import numpy as np
from accelhal.tflite import load_delegate
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def classify(model, image, **keys):
    interpreter = Interpreter(model, **keys)
    interpreter.allocate_tensors()
    port, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.set_tensor(port["index"], image.reshape(port["shape"]).astype(port["dtype"]))
    interpreter.invoke()
    scale, zero = out["quantization"]
    raw = interpreter.get_tensor(out["index"])[0]
    return raw, (raw.astype(np.float32) - zero) * (scale or 1)


model, image, labels = sys.argv[1], np.load(sys.argv[2]), open(sys.argv[3]).read().split("\n")
cpu, scores = classify(model, image, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
# log=1: the delegate writes cycles and the use of the peak to standard error.
npu, _ = classify(model, image, experimental_delegates=[load_delegate(log=1)])
for place in np.argsort(-scores)[:5]:
    print(f"{labels[place]:12} {scores[place]:8.4f}   CPU {cpu[place]:4}   NPU {npu[place]:4}")
print("equal" if (cpu == npu).all() else f"{(cpu != npu).sum()} of {cpu.size} bytes differ")
