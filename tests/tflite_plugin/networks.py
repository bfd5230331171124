# SPDX-License-Identifier: Apache-2.0
"""Small networks for hosts.py: convolutions of int8, and what a delegate cannot take."""
import os
import sys

import numpy as np
from flatbuffers import flexbuffers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tflite",
                                "oracle"))
import tflite_writer as w  # noqa: E402


class Model(w.Model):
    """With custom operators: their names begin with "CUSTOM ", their options are bytes."""

    @staticmethod
    def _code(b, name):
        if not name.startswith("CUSTOM "):
            return w.Model._code(b, name)
        text = b.CreateString(name[7:])
        b.StartObject(4)
        b.PrependInt8Slot(0, 32, 0)
        b.PrependUOffsetTRelativeSlot(1, text, 0)
        b.PrependInt32Slot(2, 1, 1)
        b.PrependInt32Slot(3, 32, 0)
        return b.EndObject()

    @staticmethod
    def _operator(b, operator, codes):
        name, inputs, outputs, options, _ = operator
        if not name.startswith("CUSTOM "):
            return w.Model._operator(b, operator, codes)
        raw = b.CreateByteVector(options["raw"])
        ins = w._numbers(b, inputs, 4, b.PrependInt32)
        outs = w._numbers(b, outputs, 4, b.PrependInt32)
        b.StartObject(6)
        b.PrependUint32Slot(0, codes.index(name), 0)
        b.PrependUOffsetTRelativeSlot(1, ins, 0)
        b.PrependUOffsetTRelativeSlot(2, outs, 0)
        b.PrependUOffsetTRelativeSlot(5, raw, 0)
        return b.EndObject()


class Net:
    """Layers one after the other; .x is the last one's tensor."""

    def __init__(self, batch=1, channels=4, real=False, open_batch=False):
        self.m = Model()
        self.rng = np.random.default_rng(7)
        self.shape, self.scale, self.zero = [batch, 8, 8, channels], 0.05, 3
        self.open = open_batch
        if real:
            x = self.m.input("in", self.shape, dtype=w.FLOAT32)
            self.x = self.tensor("quantized", self.shape, 0.05, 3)
            self.m.operator("QUANTIZE", [x], [self.x])
        else:
            self.x = self.m.input("in", self.shape, 0.05, 3, **self.signature(self.shape))

    def signature(self, shape):
        return {"signature": [-1] + shape[1:]} if self.open else {}

    def tensor(self, name, shape, scale, zero):
        self.shape, self.scale, self.zero = shape, scale, zero
        return self.m.tensor(name, shape, scale, zero, **self.signature(shape))

    def conv(self, name, channels=8):
        cin = self.shape[3]
        scales = self.rng.uniform(0.002, 0.02, channels).astype(np.float32)
        weights = self.rng.integers(-127, 128, (channels, 3, 3, cin)).astype(np.int8)
        bias = self.rng.integers(-2000, 2000, channels).astype(np.int32)
        wt = self.m.tensor(name + "_w", [channels, 3, 3, cin], list(scales), 0, weights)
        b = self.m.tensor(name + "_b", [channels],
                          list((np.float32(self.scale) * scales).astype(np.float32)), 0, bias,
                          dtype=w.INT32)
        x = self.x
        self.x = self.tensor(name, self.shape[:3] + [channels], 0.11, -7)
        self.m.operator("CONV_2D", [x, wt, b], [self.x], padding=w.SAME, stride_w=1, stride_h=1,
                        dilation_w=1, dilation_h=1)
        return self

    def unary(self, operator, scale, zero):
        x = self.x
        self.x = self.tensor(operator.lower(), self.shape, scale, zero)
        self.m.operator(operator, [x], [self.x])
        return self

    def whole(self, name, data=None, shape=None):
        """A tensor of int32: a constant, or what an operator computes."""
        if data is not None:
            data = np.array(data, np.int32)
            shape = list(data.shape)
        return self.m.tensor(name, shape, data=data, dtype=w.INT32)

    def reshape(self, shape):
        """As a converter writes Reshape(shape) for an open batch: the batch is that of .x."""
        dims, batch = self.whole("dims", shape=[4]), self.whole("batch", shape=[])
        packed = self.whole("shape", shape=[len(shape) + 1])
        self.m.operator("SHAPE", [self.x], [dims], out_type=w.INT32)
        self.m.operator("STRIDED_SLICE", [dims] + [self.whole("at", [i]) for i in (0, 1, 1)],
                        [batch], shrink_axis_mask=1)
        self.m.operator("PACK", [batch] + [self.whole("size", i) for i in shape], [packed],
                        values_count=len(shape) + 1)
        x = self.x
        self.x = self.tensor("reshaped", [self.shape[0]] + shape, self.scale, self.zero)
        self.m.operator("RESHAPE", [x, packed], [self.x])
        return self

    def real(self, name, operator, *inputs, **options):
        """An operator of floats."""
        y = self.m.tensor(name, self.shape, dtype=w.FLOAT32)
        self.m.operator(operator, list(inputs) or [self.x], [y], **options)
        return y

    def bytes(self, *outputs):
        self.m.outputs += list(outputs) or [self.x]
        return self.m.bytes()


def chain():
    """Whole on the NPU."""
    return Net().conv("a").conv("b").unary("LOGISTIC", 1 / 256, -128).conv("c").bytes()


def float_heads():
    """QUANTIZE, three layers for the NPU, DEQUANTIZE, EXP of floats."""
    n = Net(real=True).conv("a").unary("HARD_SWISH", 0.06, -100).conv("b")
    y = n.real("real", "DEQUANTIZE")
    return n.bytes(n.real("exp", "EXP", y))


def custom_between():
    """A custom operator that every runtime has reads two tensors; the NPU has layers before
    and after, which do not wait for it."""
    n = Net().conv("a")
    real = n.real("real", "DEQUANTIZE")
    options = bytes(flexbuffers.Dumps({"tolerance": 5.0, "log_if_failed": False}))
    n.m.operator("CUSTOM NumericVerify", [n.x, real],
                 [verified := n.m.tensor("verified", n.shape, dtype=w.FLOAT32)], raw=options)
    return n.conv("b").bytes(verified, n.x)


def float_between():
    """DEQUANTIZE, FLOOR and QUANTIZE cut the network in two partitions."""
    n = Net().conv("a")
    y = n.real("floor", "FLOOR", n.real("real", "DEQUANTIZE"))
    n.x = n.tensor("again", n.shape, 0.11, -7)
    n.m.operator("QUANTIZE", [y], [n.x])
    return n.conv("b").bytes()


def open_batch():
    """As Keras writes it: the first dimension is left open."""
    return Net(open_batch=True).conv("a").unary("RELU", 0.11, -7).conv("b").bytes()


def open_reshape():
    """Shapes that are computed from the batch: of RESHAPE, twice."""
    return Net(open_batch=True).conv("a").reshape([4, 16, 8]).conv("b").reshape(
        [16, 4, 8]).unary("LOGISTIC", 1 / 256, -128).bytes()


def open_reshape_between():
    """The same with a part on the CPU before the second."""
    n = Net(open_batch=True).conv("a").reshape([4, 16, 8])
    y = n.real("floor", "FLOOR", n.real("real", "DEQUANTIZE"))
    n.x = n.tensor("again", n.shape, 0.11, -7)
    n.m.operator("QUANTIZE", [y], [n.x])
    return n.conv("b").reshape([16, 4, 8]).bytes()
