#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_int16.py OUT [SEED]: as ops.py, of int16 activations, with int8 weights.

Left out, because TFLite refuses them, ends the process or leaves the result undefined:
  - zero points other than 0, and weights' likewise; CONV_2D without a bias;
  - QUANTIZE of 8 bits to int16, RELU_N1_TO_1, TILE, SPACE_TO_DEPTH;
  - sums of int32 that leave 32 bits, or are shifted left;
  - multipliers of 2^7 or more, and results that leave 32 bits before they are clamped.
"""
import math

import numpy as np

from ops import ACTIVATIONS, Case, write
from ops_move import Move
from tflite_writer import FLOAT32, INT8, INT16, INT32, INT64, SAME, Model

NUMBERS = 18918  # spread of random int16 numbers
WEIGHTS = 74


class Int16(Move):
    concatenation = Case.concatenation

    def __init__(self, rng, uint8=False):
        super().__init__(rng)
        self.m = Model(INT16)
        self.kind = "int16"

    def zero(self):
        return 0

    def scale(self):
        low, high = (-16, -8) if self.r.random() < 0.87 else (-28, 3)
        return float(np.float32(2 ** self.r.uniform(low, high)))

    def powers(self, *reals):
        """Scales that lead to multipliers at or just below powers of two: digits that carry
        far, ties."""
        if self.r.random() < 0.7:
            return reals
        below = self.r.choice([0, 0, 2**-23])
        some = [float(np.float32(2.0 ** math.ceil(math.log2(s)))) for s in reals]
        return [*some[:-1], float(np.float32(np.float32(some[-1]) * np.float32(1 - below)))]

    def edges(self, count):
        """Inputs: any, few, or the very ends."""
        kind = self.r.random()
        if kind < 0.6:
            return
        some = [-32768, 32767, 0, -1, 1, 255, 256, -256, -255, 127, 128, -128, -129]
        few = self.r.choices(some, k=2 if kind < 0.8 else 9)
        self.raw = np.array(self.r.choices(few, k=count), np.int16).tobytes()

    def weights(self, shape):
        few = [self.r.randint(-32768, 32767) for _ in range(40)]
        return np.array(self.r.choices(few, k=int(np.prod(shape))), np.int16).reshape(shape)

    def filters(self, shape):
        w = super().weights(shape)
        if self.r.random() < 0.15:
            w = np.array(self.r.choices([127, -127, -128, 0], k=w.size), np.int8).reshape(shape)
        return w

    def sums32(self, bias, bound):
        """Of int32, where they stay that."""
        most = bound + max(map(abs, bias or [0]))
        return most < 2**31 and self.r.random() < 0.5

    def bound(self, data, axis):
        other = tuple(d for d in range(data.ndim) if d != axis)
        return 32768 * int(np.abs(data.astype(np.int64)).sum(axis=other).max())

    def shifted(self, sout, sin, ws):
        """Multipliers below 1: sums of int32 are not shifted left."""
        return float(np.float32(max(sout, 1.001 * sin * max(ws))))

    def rescaled(self, op):
        shape, sin = self.shape(), self.scale()
        kinds = [INT16, INT16]
        if op == "QUANTIZE":
            kinds = self.r.choice([[INT16, INT8], [INT16, INT16]])
        low, high = (-4, 6) if self.r.random() < 0.85 else (-14, 36)
        sout = sin * 2 ** self.r.uniform(low, high)
        sout *= 256 ** ((kinds[0] == INT16) - (kinds[1] == INT16))
        sin, sout = self.powers(sin, self.result_scale(sout))
        x = self.m.input("x", shape, sin, self.zero_of(kinds[0]), dtype=kinds[0])
        y = self.m.output("y", shape, sout, self.zero_of(kinds[1]), dtype=kinds[1])
        self.m.operator(op, [x], [y])
        if kinds[0] == INT16:
            self.edges(int(np.prod(shape)))
        self.text = f"{op} {shape} scale {sin:g} -> {sout:g} types {kinds}"

    def zero_of(self, kind):
        return 0 if kind == INT16 else super().zero()

    binary_options = {"pot_scale": False}

    def add(self):
        op = self.r.choice(["ADD", "ADD", "SUB"])
        sa = self.scale()
        sb = sa if self.r.random() < 0.2 else float(np.float32(sa * 2 ** self.r.uniform(-6, 6)))
        if self.r.random() < 0.1:
            sb = float(np.float32(sa * 2 ** self.r.uniform(-34, -12)))
        sa, sb, sout = self.powers(sa, sb, self.result_scale(
            max(sa, sb) * 2 ** self.r.uniform(-13 if self.r.random() < 0.1 else -2, 3)))
        self.binary(op, sout, sa, sb)
        self.edges(sum(int(np.prod(self.m._tensors[i][1])) for i in self.m.inputs))
        self.text = f"{op} {self.text} scales {sa:g} {sb:g} -> {sout:g}"

    def mul(self):
        sa, sb = self.scale(), self.scale()
        low, high = (9, 19) if self.r.random() < 0.85 else (1, 42)
        sa, sb, sout = self.powers(sa, sb, float(np.float32(
            max(2**-28, sa * sb * 2 ** self.r.uniform(low, high)))))
        self.binary_options = {}
        self.binary("MUL", max(sout, float(np.float32(2.1 * sa * sb))), sa, sb)
        self.edges(sum(int(np.prod(self.m._tensors[i][1])) for i in self.m.inputs))
        self.text = f"MUL {self.text} scales {sa:g} {sb:g} -> {sout:g}"

    def pool(self, op):
        super().pool(op)
        self.edges(int(np.prod(self.m._tensors[self.m.inputs[0]][1])))
        self.text = f"{op} {self.text}"

    def mean(self):
        Case.mean(self)
        self.edges(int(np.prod(self.m._tensors[self.m.inputs[0]][1])))

    def reduce(self):
        shape = self.shape()
        axes = self.r.sample(range(len(shape)), self.r.randint(1, len(shape)))
        keep, op = self.r.random() < 0.5, self.r.choice(["REDUCE_MAX", "REDUCE_MIN"])
        out = [1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes]
        scale = self.scale()
        x = self.m.input("x", shape, scale, 0)
        a = self.m.tensor("axes", [len(axes)], data=np.array(axes, np.int32), dtype=INT32)
        y = self.m.output("y", out, scale, 0)
        self.m.operator(op, [x, a], [y], keep_dims=keep)
        self.edges(int(np.prod(shape)))
        self.text = f"{op} {shape} over {axes} {'kept' if keep else ''}"

    def logistic(self):
        """Of any scale: those of 2^-12 and 2^-11 have multipliers of their own."""
        shape, op = self.shape(product=200), self.r.choice(["LOGISTIC", "TANH"])
        scale = float(np.float32(self.r.choice(
            [2**-12, 2**-11, 2 ** self.r.uniform(-14, -9), 2 ** self.r.uniform(-30, 2)])))
        x = self.m.input("x", shape, scale, 0)
        y = self.m.output("y", shape, 1 / 32768, 0)
        self.m.operator(op, [x], [y])
        self.edges(int(np.prod(shape)))
        self.text = f"{op} {shape} scale {scale:g}"

    def maximum(self):
        """MAXIMUM, MINIMUM; they have no fused activation."""
        sides = [self.shape() for _ in "a"] * 2
        if self.r.random() < 0.5:
            sides = [sides[0], [1 if self.r.random() < 0.5 else n for n in sides[1]]]
        self.r.shuffle(sides)
        out = list(np.broadcast_shapes(*map(tuple, sides)))
        op, scale = self.r.choice(["MAXIMUM", "MINIMUM"]), self.scale()
        a = self.m.input("a", sides[0], scale, 0)
        if self.r.random() < 0.3:
            b = self.m.tensor("b", sides[1], scale, 0, self.weights(sides[1]))
        else:
            b = self.m.input("b", sides[1], scale, 0)
        y = self.m.output("y", out, scale, 0)
        self.m.operator(op, [a, b], [y])
        self.edges(sum(int(np.prod(self.m._tensors[i][1])) for i in self.m.inputs))
        self.text = f"{op} {sides}"

    def leaky_relu(self):
        shape, sin = self.shape(product=150), self.scale()
        alpha = self.r.choice([0.1, 0.2, 0.01, 1.0, self.r.uniform(-2, 4)])
        low, high = (-3, 3) if self.r.random() < 0.85 else (-9, 30)
        sout = self.result_scale(sin * 2 ** self.r.uniform(low, high))
        x = self.m.input("x", shape, sin, 0)
        y = self.m.output("y", shape, sout, 0)
        self.m.operator("LEAKY_RELU", [x], [y], alpha=alpha)
        self.edges(int(np.prod(shape)))
        self.text = f"LEAKY_RELU {shape} alpha {alpha:g} scale {sin:g} -> {sout:g}"

    def softmax(self):
        """Scales whose differences times 2^31 leave 32 bits are left out."""
        shape = self.shape(1, 4, 120)
        if self.r.random() < 0.15:
            shape = [1, self.r.randint(50, 200)]
        beta = self.r.choice([1.0, 1.0, 1.0, self.r.uniform(0.1, 4)])
        low, high = (-16, -9) if self.r.random() < 0.8 else (-34, -3)
        scale = float(np.float32(2 ** self.r.uniform(low, high)))
        x = self.m.input("x", shape, scale, 0)
        y = self.m.output("y", shape, 1 / 32768, 0)
        self.m.operator("SOFTMAX", [x], [y], beta=beta)
        self.edges(int(np.prod(shape)))
        self.text = f"{shape} beta {beta:g} scale {scale:g}"

    def relu6(self):
        self.rescaled("RELU6")

    def products(self, n, depth, sin, zin, zw, per_channel):
        base = 2 ** self.r.uniform(-9, -3)
        ws = [float(np.float32(base * self.r.uniform(0.2, 1.0))) for _ in range(n)]
        if not per_channel:
            ws = [float(np.float32(base))]
        if per_channel and self.r.random() < 0.15:
            ws[self.r.randrange(n)] = float(np.float32(base * 2 ** self.r.uniform(-30, -3)))
        spread = WEIGHTS * NUMBERS * math.sqrt(depth)
        multiplier = self.r.uniform(0.2, 2.0) * 16384 / spread
        if self.r.random() < 0.2:
            sum_max = depth * 128 * 32768 + 8 * spread
            multiplier = min(2**6.9, 2 ** self.r.uniform(-36, math.log2((1 << 29) / sum_max)))
        sin, base, sout = self.powers(sin, base, self.result_scale(sin * base / multiplier))
        bias = None
        if self.r.random() < 0.85:
            much = self.r.choice([0.7, 0.7, 2])
            bias = [int(self.r.gauss(0, spread * much)) for _ in range(n)]
        return ws, sout, bias

    @staticmethod
    def bias_type(bias, kind):
        """TFLite since 2.20 takes a bias for int64 where options do not say int32."""
        return {"bias_type": INT32} if bias and kind == INT32 else {}

    def bias(self, values, sin, ws, kind=INT64):
        if values is None:
            return []
        scale = [float(np.float32(np.float32(sin) * np.float32(s))) for s in ws]
        data = np.array(values, np.int64 if kind == INT64 else np.int32)
        return [self.m.tensor("b", [len(values)], scale, 0, data, kind)]

    def convolution(self, op, h, w, c, n, filter_shape, axis, window, **more):
        kh, kw, sh, sw, dh, dw, padding, oh, ow = window
        batch = 2 if self.r.random() < 0.06 else 1
        sin, per_channel = self.scale(), self.r.random() < 0.75
        depth = kh * kw * (c if axis == 0 else 1)
        ws, sout, bias = self.products(n, depth, sin, 0, 0, per_channel)
        if op == "CONV_2D" and not bias:
            bias = [0] * n
        act = self.r.choice(ACTIVATIONS)
        x = self.m.input("x", [batch, h, w, c], sin, 0)
        data = self.filters(filter_shape)
        f = self.m.tensor("w", filter_shape, ws, 0, data, INT8, axis)
        kind = INT64
        if op == "CONV_2D" and self.sums32(bias, self.bound(data, axis)):
            kind = INT32
            sout = self.shifted(sout, sin, ws)
        inputs = [x, f] + self.bias(bias, sin, ws, kind)
        y = self.m.output("y", [batch, oh, ow, n], sout, 0)
        self.m.operator(op, inputs, [y], padding=padding, stride_h=sh, stride_w=sw,
                        dilation_h=dh, dilation_w=dw, act=act,
                        **self.bias_type(bias, kind), **more)
        self.edges(batch * h * w * c)
        self.text = (f"{batch}x{h}x{w}x{c} -> {oh}x{ow}x{n} kernel {kh}x{kw} stride {sh}x{sw} "
                     f"dilation {dh}x{dw} {'SAME' if padding == SAME else 'VALID'} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if bias else ' no bias'}{' int32' if kind == INT32 else ''}")

    def fully_connected(self):
        k, n = self.r.choice([(1, 1), (self.r.randint(1, 40), self.channels()),
                              (self.r.randint(40, 300), self.r.randint(1, 9)),
                              (self.r.randint(1, 60), self.r.randint(1, 60))])
        rows = self.r.choice([[1], [1], [self.size()], [self.size(4), self.size(4)]])
        keep = len(rows) > 1 and self.r.random() < 0.5
        sin, per_channel = self.scale(), self.r.random() < 0.25 and not keep
        ws, sout, bias = self.products(n, k, sin, 0, 0, per_channel)
        act = self.r.choice(ACTIVATIONS)
        x = self.m.input("x", rows + [k], sin, 0)
        data = self.filters([n, k])
        f = self.m.tensor("w", [n, k], ws, 0, data, INT8)
        kind = INT64
        if self.sums32(bias, self.bound(data, 0)):
            kind = INT32
            sout = self.shifted(sout, sin, ws)
        else:
            bias = bias or [0] * n
        inputs = [x, f] + (self.bias(bias, sin, ws, kind) or [-1])
        count = int(np.prod(rows))
        y = self.m.output("y", (rows if keep else [count]) + [n], sout, 0)
        self.m.operator("FULLY_CONNECTED", inputs, [y], act=act, keep_num_dims=keep,
                        **self.bias_type(bias, kind))
        self.edges(count * k)
        self.text = (f"{rows} x {k} -> {n} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if kind == INT64 else ' int32' if bias else ' no bias'}")


    def layer(self, x, shape, sin):
        """One of a network: its result, shape and scale."""
        name = self.r.choice(["conv", "conv", "depthwise", "pad", "join", "flat"])
        t = f"t{len(self.m._tensors)}"
        if name == "pad" and len(shape) == 4:
            pads = [[0, 0], [self.r.randint(0, 2) for _ in "ab"],
                    [self.r.randint(0, 2) for _ in "ab"], [0, 0]]
            out = [n + sum(p) for n, p in zip(shape, pads)]
            p = self.m.tensor("pads", [4, 2], data=np.array(pads, np.int32), dtype=INT32)
            y = self.m.tensor(t, out, sin, 0)
            self.m.operator("PAD", [x, p], [y])
        elif name == "join":
            out = shape[:-1] + [2 * shape[-1]]
            y = self.m.tensor(t, out, sin, 0)
            self.m.operator("CONCATENATION", [x, x], [y], axis=len(shape) - 1)
        elif name == "flat" or len(shape) != 4:
            n, k = self.r.randint(1, 9), shape[-1]
            out = [int(np.prod(shape[:-1])), n]
            ws, sout, bias = self.products(n, k, sin, 0, 0, False)
            f = self.m.tensor("w", [n, k], ws, 0, self.filters([n, k]), INT8)
            y = self.m.tensor(t, out, sout, 0)
            self.m.operator("FULLY_CONNECTED", [x, f] + self.bias(bias or [0] * n, sin, ws), [y],
                            act=self.r.choice(ACTIVATIONS))
            return y, out, sout
        else:
            h, w, c = shape[1:]
            n = c if name == "depthwise" else self.r.randint(1, 9)
            kh, kw, stride = self.r.choice([1, 3]), self.r.choice([1, 3]), self.r.choice([1, 2])
            out = [shape[0], -(-h // stride), -(-w // stride), n]
            filters = [1, kh, kw, n] if name == "depthwise" else [n, kh, kw, c]
            more = {"multiplier": 1} if name == "depthwise" else {}
            ws, sout, bias = self.products(n, kh * kw * (1 if more else c), sin, 0, 0, True)
            f = self.m.tensor("w", filters, ws, 0, self.filters(filters), INT8,
                              3 if more else 0)
            y = self.m.tensor(t, out, sout, 0)
            self.m.operator("DEPTHWISE_CONV_2D" if more else "CONV_2D",
                            [x, f] + self.bias(bias or [0] * n, sin, ws), [y], padding=SAME,
                            stride_h=stride, stride_w=stride, dilation_h=1, dilation_w=1,
                            act=self.r.choice(ACTIVATIONS), **more)
            return y, out, sout
        return y, out, sin

    def network(self):
        """Several layers; perhaps float32 at the edges."""
        shape = [1, self.r.randint(1, 8), self.r.randint(1, 8), self.channels(6)]
        scale, count = self.scale(), int(np.prod(shape))
        ends = self.r.choice(["none", "in", "out", "both"])
        if ends in ("in", "both"):
            f = self.m.input("f", shape, dtype=FLOAT32)
            x = self.m.tensor("x", shape, scale, 0)
            self.m.operator("QUANTIZE", [f], [x])
            steps = np.array([self.r.choice([self.r.randint(-33000, 33000) + 0.5,
                                             self.r.uniform(-40000, 40000)])
                              for _ in range(count)])
            self.raw = (steps * scale).astype(np.float32).tobytes()
        else:
            x = self.m.input("x", shape, scale, 0)
        layers = self.r.randint(1, 4)
        text = f"{shape} {layers} layers, float32 {ends}"
        for _ in range(layers):
            x, shape, scale = self.layer(x, shape, scale)
        if ends in ("out", "both"):
            y = self.m.output("y", shape, dtype=FLOAT32)
            self.m.operator("DEQUANTIZE", [x], [y])
        else:
            self.m.outputs.append(x)
        self.text = text


PLAN = [
    ("conv_2d", 100),
    ("depthwise_conv_2d", 70),
    ("fully_connected", 80),
    ("network", 60),
    ("quantize", 40),
    ("add", 60),
    ("relu", 20),
    ("relu6", 20),
    ("pad", 25),
    ("reshape", 8),
    ("concatenation", 15),
    ("slice", 8),
    ("strided_slice", 15),
    ("split", 8),
    ("split_v", 8),
    ("pack", 8),
    ("unpack", 8),
    ("transpose", 15),
    ("gather", 8),
    ("resize_nearest", 8),
    ("space_to_batch", 8),
    ("mirror_pad", 8),
    ("reverse", 5),
    ("broadcast", 8),
    ("mul", 70),
    ("max_pool_2d", 40),
    ("average_pool_2d", 60),
    ("mean", 50),
    ("reduce", 20),
    ("logistic", 40),
    ("softmax", 40),
    ("maximum", 30),
    ("leaky_relu", 20),
]

if __name__ == "__main__":
    write(Int16, PLAN)
