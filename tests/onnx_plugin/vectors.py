# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node vectors of 8-bit integers, as the package onnx computes them."""
import warnings

import onnx
from onnx import TensorProto, numpy_helper

BYTES = (TensorProto.INT8, TensorProto.UINT8)

# Operators whose vectors are about quantized numbers, and MaxPool of uint8.
KINDS = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "MaxPool",
         "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")

# Vectors that the provider leaves to the CPU, by a part of their name, and why.
LEFT = {
    "integer": "results of int32",
    "quantizelinear": "float32 at the edge of the model",
}


def cases():
    """Each vector once: name, model, inputs by name, expected results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package, which computes infinities
        from onnx.backend.test.case.node import collect_testcases
        all_cases = {c.name: c for c in collect_testcases(None)}
    for name, c in sorted(all_cases.items()):
        graph = c.model.graph
        types = [v.type.tensor_type.elem_type for v in list(graph.input) + list(graph.output)]
        if len(graph.node) != 1 or graph.node[0].op_type not in KINDS or \
                not any(t in BYTES for t in types) or \
                any(t not in BYTES + (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32)
                    for t in types):
            continue
        inputs, outputs = c.data_sets[0]
        yield name, c.model, dict(zip((i.name for i in graph.input), inputs)), outputs


def with_constants(model, inputs, weights):
    """The model with scales and zero points as initializers, and the second operand of
    convolutions and products, too, if asked; and the inputs that are left."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    fixed = {i for i in inputs if "scale" in i or "zero_point" in i or
             (weights and i in ("w", "b", "B"))}
    kept = [i for i in graph.input if i.name not in fixed]
    del graph.input[:]
    graph.input.extend(kept)
    graph.initializer.extend(numpy_helper.from_array(inputs[i], i) for i in sorted(fixed))
    return made, {k: v for k, v in inputs.items() if k not in fixed}


def is_left(name):
    """Whether a vector stays on the CPU."""
    return any(part in name for part in LEFT)
