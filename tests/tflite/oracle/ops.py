#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops.py OUT [SEED]: random models of one operator each and what TFLite's reference kernels
make of them, packed and compressed into OUT.

Every operator that npuc knows: int8, and one model in ten uint8; QUANTIZE and DEQUANTIZE also
with float32 at the edges of a model, around another operator.  Small random shapes (ones, odd
numbers, more channels than an array has columns), random quantization per tensor and per
channel, fused activations, both paddings, strides, dilations.

OUT, gzip; numbers are little-endian:

    char magic[8] = "HALOPS1\n"; uint32 seed, models
    a model:  uint8 length, char text[length]    what it is
              uint32 bytes; char model[bytes]    the .tflite file
              uint32 bytes; uint64 seed          all inputs, one after the other, in the
                                                 model's order: common.random_bytes(seed);
              char input[bytes]                  or, where seed is 0, these
              uint32 bytes; char output[bytes]   all outputs, likewise
                                                 (several inferences: several times both)

Left out, because TFLite refuses them, ends the process or leaves the result undefined:
  - ADD with 2 max(input scales) >= 2^20 output scale: a CHECK ends the process;
  - SOFTMAX with beta * scale <= 2^-26, the same; output scales other than 1/256 (LOGISTIC,
    too), which it refuses;
  - SOFTMAX of a row whose exponentials come to 512 times the largest or more (it takes more
    than 511 columns): a shift by 32 bits, undefined, on x86 127 everywhere; the machine gives
    the smallest value, to which such small shares round;
  - pools, CONCATENATION, RESHAPE and PAD whose output has another scale than the input:
    refused, or the scale is ignored;
  - a multiplication's left shift that leaves 32 bits, and sums that do: undefined in C++;
  - FULLY_CONNECTED per channel with an output of three dimensions (keep_num_dims): the
    kernel writes only the first rows;
  - RELU6, fused or not, where 6 / scale leaves 32 bits: refused or undefined;
  - CONV_2D without a bias, which the int8 kernel refuses;
  - a convolution with VALID padding and a kernel larger than the image: no output.
"""
import gzip
import io
import math
import random
import struct
import sys

import numpy as np

import common
from tflite_writer import FLOAT32, INT32, INT8, NONE, RELU, RELU6, SAME, UINT8, VALID, Model

ACTIVATIONS = [NONE, NONE, RELU, RELU6]


class Case:
    """The random choices of one model; the model it leads to."""

    def __init__(self, rng, uint8=False):
        self.r = rng
        self.m = Model(UINT8 if uint8 else INT8)
        self.up = 128 if uint8 else 0  # from an int8 number to this model's
        self.text = ""
        self.raw = b""  # inputs, where they are not random bytes
        self.times = 1  # inferences in a row
        self.kind = "int8"  # of its numbers

    binary_options = {}

    # ---- choices ----------------------------------------------------------------------
    def size(self, most=11):
        return self.r.choice([1, 2, 3, 5, 7, self.r.randint(1, most), self.r.randint(1, most)])

    def channels(self, most=20):
        r = self.r.random()
        if r < 0.04:
            return self.r.randint(most, 2 * most + 3)
        return self.r.choice([1, 2, 3, 4, 5, 8, 13, 16, 17, self.r.randint(1, most)])

    def scale(self):
        """float32, about one in eight extreme."""
        low, high = (-7, -2) if self.r.random() < 0.87 else (-20, 6)
        return float(np.float32(2 ** self.r.uniform(low, high)))

    def result_scale(self, real):
        """float32, and not so small that 6 in steps of it leaves 32 bits."""
        return float(np.float32(max(real, 2**-28)))

    def zero(self):
        if self.r.random() < 0.25:
            return self.up + self.r.choice([0, -128, 127])
        return self.up + self.r.randint(-128, 127)

    def shape(self, least=1, most=4, product=320):
        while True:
            s = [self.size() for _ in range(self.r.randint(least, most))]
            if len(s) == 4 and self.r.random() < 0.6:
                s[0] = 1
            if np.prod(s) <= product:
                return s

    def weights(self, shape):
        """Uniform; large ones from few values, which compress."""
        n = int(np.prod(shape))
        if n > 700:
            few = [self.r.randint(-128, 127) for _ in range(4)]
            data = self.r.choices(few, k=n)
        else:
            data = [self.r.randint(-127, 127) for _ in range(n)]
        kind = np.uint8 if self.up else np.int8
        return (np.array(data) + self.up).astype(kind).reshape(shape)

    # ---- what convolutions and dense layers share ---------------------------------------
    def window(self, h, w, pool=False):
        """Kernel, strides, dilations, padding of which an output is left."""
        while True:
            kh, kw = (self.r.choice([1, 2, 3, 3, 5, self.r.randint(1, 7)]) for _ in "hw")
            sh, sw = (self.r.choice([1, 1, 2, 3, 4]) for _ in "hw")
            dh = dw = 1
            if not pool and sh == sw == 1 and self.r.random() < 0.3:
                dh, dw = self.r.randint(1, 3), self.r.randint(1, 3)
            if pool and self.r.random() < 0.25:
                kh, kw = h, w
            padding = self.r.choice([SAME, VALID])
            eh, ew = (kh - 1) * dh + 1, (kw - 1) * dw + 1
            if padding == SAME:
                oh, ow = -(-h // sh), -(-w // sw)
            elif eh <= h and ew <= w:
                oh, ow = (h - eh) // sh + 1, (w - ew) // sw + 1
            else:
                continue
            return kh, kw, sh, sw, dh, dw, padding, oh, ow

    def products(self, n, depth, sin, zin, zw, per_channel):
        """Scales of the weights and of the output; bias or None."""
        base = self.scale()
        ws = [float(np.float32(base * self.r.uniform(0.2, 1.0))) for _ in range(n)]
        if not per_channel:
            ws = [base]
        if per_channel and self.r.random() < 0.08:
            ws[self.r.randrange(n)] = float(np.float32(base * 2 ** self.r.uniform(-30, -10)))
        # of the sums, in steps of sin * base: numbers of 8 bits spread by 74
        spread = math.hypot(74, zw - self.up) * math.hypot(74, zin - self.up)
        spread *= math.sqrt(depth)
        multiplier = self.r.uniform(0.2, 2.0) * 64 / spread
        if self.r.random() < 0.1:
            # down to nothing, up to where a sum shifted left still has 32 bits
            sum_max = depth * 255 * (255 if self.up else 128) + 4 * spread
            multiplier = 2 ** self.r.uniform(-36, math.log2((1 << 30) / sum_max))
        sout = self.result_scale(sin * base / multiplier)
        bias = None
        if self.r.random() < 0.85:
            bias = [int(self.r.gauss(0, spread * 0.7)) for _ in range(n)]
        return ws, sout, bias

    def bias(self, values, sin, ws):
        if values is None:
            return []
        scale = [float(np.float32(np.float32(sin) * np.float32(s))) for s in ws]
        return [self.m.tensor("b", [len(values)], scale, 0, np.array(values, np.int32), INT32)]

    def convolution(self, op, h, w, c, n, filter_shape, axis, window, **more):
        kh, kw, sh, sw, dh, dw, padding, oh, ow = window
        batch = 2 if self.r.random() < 0.06 else 1
        sin, zin, per_channel = self.scale(), self.zero(), self.r.random() < 0.75
        zw, per_channel = (self.zero(), False) if self.up else (0, per_channel)
        depth = kh * kw * (c if axis == 0 else 1)
        ws, sout, bias = self.products(n, depth, sin, zin, zw, per_channel)
        if op == "CONV_2D" and not bias:
            bias = [0] * n
        act = self.r.choice(ACTIVATIONS)
        x = self.m.input("x", [batch, h, w, c], sin, zin)
        f = self.m.tensor("w", filter_shape, ws, zw, self.weights(filter_shape), axis=axis)
        inputs = [x, f] + self.bias(bias, sin, ws)
        y = self.m.output("y", [batch, oh, ow, n], sout, self.zero())
        self.m.operator(op, inputs, [y], padding=padding, stride_h=sh, stride_w=sw,
                        dilation_h=dh, dilation_w=dw, act=act, **more)
        self.text = (f"{batch}x{h}x{w}x{c} -> {oh}x{ow}x{n} kernel {kh}x{kw} stride {sh}x{sw} "
                     f"dilation {dh}x{dw} {'SAME' if padding == SAME else 'VALID'} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if bias else ' no bias'}")

    # ---- operators ------------------------------------------------------------------------
    def conv_2d(self):
        while True:
            h, w, c, n = self.size(), self.size(), self.channels(), self.channels()
            win = self.window(h, w)
            if n * win[0] * win[1] * c > 6000 or win[7] * win[8] * n > 700 or h * w * c > 900:
                continue
            break
        self.convolution("CONV_2D", h, w, c, n, [n, win[0], win[1], c], 0, win)

    def depthwise_conv_2d(self):
        while True:
            h, w, c = self.size(), self.size(), self.channels()
            multiplier = self.r.choice([1, 1, 1, 2, 3, 8])
            n, win = c * multiplier, self.window(h, w)
            if n * win[0] * win[1] > 700 or win[7] * win[8] * n > 700 or h * w * c > 900:
                continue
            break
        self.convolution("DEPTHWISE_CONV_2D", h, w, c, n, [1, win[0], win[1], n], 3, win,
                         multiplier=multiplier)

    def fully_connected(self):
        k, n = self.r.choice([(1, 1), (self.r.randint(1, 40), self.channels()),
                              (self.r.randint(40, 300), self.r.randint(1, 9)),
                              (self.r.randint(1, 60), self.r.randint(1, 60))])
        rows = self.r.choice([[1], [1], [self.size()], [self.size(4), self.size(4)]])
        keep = len(rows) > 1 and self.r.random() < 0.5
        sin, zin, per_channel = self.scale(), self.zero(), self.r.random() < 0.25
        per_channel = per_channel and not keep
        zw, per_channel = (self.zero(), False) if self.up else (0, per_channel)
        ws, sout, bias = self.products(n, k, sin, zin, zw, per_channel)
        act = self.r.choice(ACTIVATIONS)
        x = self.m.input("x", rows + [k], sin, zin)
        f = self.m.tensor("w", [n, k], ws, zw, self.weights([n, k]))
        inputs = [x, f] + (self.bias(bias, sin, ws) if bias else [-1])
        count = int(np.prod(rows))
        y = self.m.output("y", (rows if keep else [count]) + [n], sout, self.zero())
        self.m.operator("FULLY_CONNECTED", inputs, [y], act=act, keep_num_dims=keep)
        self.text = (f"{rows} x {k} -> {n} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if bias else ' no bias'}")

    def binary(self, op, sout, sa, sb):
        """Shapes that broadcast, or the same twice; an operand may be constant."""
        shape = self.shape()
        sides = [list(shape), list(shape)]
        if self.r.random() < 0.5:
            for side in sides:
                for d in range(len(side)):
                    if self.r.random() < 0.25:
                        side[d] = 1
            if self.r.random() < 0.4:
                which = self.r.randrange(2)
                sides[which] = sides[which][self.r.randint(0, len(shape) - 1):]
        out = list(np.broadcast_shapes(*map(tuple, sides)))
        constant = self.r.choice([None, None, 0, 1])
        places = []
        for i, (side, scale) in enumerate(zip(sides, (sa, sb))):
            name = "ab"[i]
            if i == constant:
                places.append(self.m.tensor(name, side, scale, self.zero(), self.weights(side)))
            else:
                places.append(self.m.input(name, side, scale, self.zero()))
        act = self.r.choice(ACTIVATIONS)
        y = self.m.output("y", out, sout, self.zero())
        self.m.operator(op, places, [y], act=act, **self.binary_options)
        self.text = f"{sides[0]} {sides[1]} constant {constant} act {act}"

    def add(self):
        sa = self.scale()
        sb = sa if self.r.random() < 0.2 else float(np.float32(sa * 2 ** self.r.uniform(-6, 6)))
        if self.r.random() < 0.05:
            sb = float(np.float32(sa * 2 ** self.r.uniform(-40, -12)))
        low = -19.0 if self.r.random() < 0.05 else -2.0
        sout = self.result_scale(max(sa, sb) * 2 ** self.r.uniform(low, 3))
        assert 2 * max(sa, sb) / (sout * 2**20) < 1
        self.binary("ADD", sout, sa, sb)

    def mul(self):
        sa, sb = self.scale(), self.scale()
        low, high = (2, 9) if self.r.random() < 0.85 else (-13, 34)
        sout = self.result_scale(sa * sb * 2 ** self.r.uniform(low, high))
        self.binary("MUL", sout, sa, sb)

    def pool(self, op):
        while True:
            h, w, c = self.size(), self.size(), self.channels(30)
            kh, kw, sh, sw, _, _, padding, oh, ow = self.window(h, w, pool=True)
            if h * w * c <= 900:
                break
        batch = 2 if self.r.random() < 0.06 else 1
        scale, zero, act = self.scale(), self.zero(), self.r.choice(ACTIVATIONS)
        x = self.m.input("x", [batch, h, w, c], scale, zero)
        y = self.m.output("y", [batch, oh, ow, c], scale, zero)
        self.m.operator(op, [x], [y], padding=padding, stride_h=sh, stride_w=sw, filter_h=kh,
                        filter_w=kw, act=act)
        self.text = (f"{batch}x{h}x{w}x{c} -> {oh}x{ow} kernel {kh}x{kw} stride {sh}x{sw} "
                     f"{'SAME' if padding == SAME else 'VALID'} act {act}")

    def average_pool_2d(self):
        self.pool("AVERAGE_POOL_2D")

    def max_pool_2d(self):
        self.pool("MAX_POOL_2D")

    def mean(self):
        shape = self.shape(product=600)
        if self.r.random() < 0.4:
            shape = [1, self.size(), self.size(), self.channels(12)]
        axes = self.r.sample(range(len(shape)), self.r.randint(1, len(shape)))
        if len(shape) == 4 and self.r.random() < 0.5:
            axes = self.r.choice([[1, 2], [2, 1]])
        if self.r.random() < 0.12:  # axes with gaps between them
            shape = [self.r.randint(2, 5) for _ in range(4)]
            axes = self.r.choice([[0, 2], [1, 3], [3, 0], [0, 1, 3], [0, 2, 3]])
        keep = self.r.random() < 0.5
        out = [1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes]
        named = [a - len(shape) if self.r.random() < 0.2 else a for a in axes]
        sin, zin = self.scale(), self.zero()
        sout, zout = sin, zin
        if self.r.random() < 0.6:
            sout, zout = float(np.float32(sin * 2 ** self.r.uniform(-3, 2))), self.zero()
        x = self.m.input("x", shape, sin, zin)
        a = self.m.tensor("axes", [len(named)], data=np.array(named, np.int32), dtype=INT32)
        y = self.m.output("y", out, sout, zout)
        self.m.operator("MEAN", [x, a], [y], keep_dims=keep)
        self.text = f"{shape} over {named} {'kept' if keep else ''}"

    def pad(self):
        shape = self.shape(2, 4, 200)
        pads = [[self.r.choice([0, 0, 1, 2, 3]) for _ in "ab"] for _ in shape]
        if len(shape) == 4 and self.r.random() < 0.6:
            pads[0] = pads[3] = [0, 0]
        out = [n + sum(p) for n, p in zip(shape, pads)]
        if np.prod(out) > 1500:
            return self.pad()
        scale, zero = self.scale(), self.zero()
        x = self.m.input("x", shape, scale, zero)
        p = self.m.tensor("pads", [len(shape), 2], data=np.array(pads, np.int32), dtype=INT32)
        y = self.m.output("y", out, scale, zero)
        inputs, op = [x, p], "PAD"
        if self.r.random() < 0.3:
            op = "PADV2"
            value = self.m.tensor("v", [1], scale, zero, self.weights([1]))
            inputs.append(value)
        self.m.operator(op, inputs, [y])
        self.text = f"{op} {shape} by {pads}"

    def softmax(self):
        shape = self.shape(1, 4, 300)
        if self.r.random() < 0.15:
            shape = [1, self.r.randint(100, 300)]
        beta = self.r.choice([1.0, 1.0, 1.0, self.r.uniform(0.1, 4)])
        scale = float(np.float32(2 ** self.r.uniform(-9, -2)))
        if self.r.random() < 0.1:
            scale = float(np.float32(2 ** self.r.uniform(-20, 8)))
        x = self.m.input("x", shape, scale, self.zero())
        y = self.m.output("y", shape, 1 / 256, self.up - 128)
        self.m.operator("SOFTMAX", [x], [y], beta=beta)
        self.text = f"{shape} beta {beta:g} scale {scale:g}"

    def logistic(self):
        shape, scale = self.shape(product=256), self.scale()
        op, out = self.r.choice([("LOGISTIC", (1 / 256, -128)), ("TANH", (1 / 128, 0))])
        x = self.m.input("x", shape, scale, self.zero())
        y = self.m.output("y", shape, out[0], self.up + out[1])
        self.m.operator(op, [x], [y])
        self.text = f"{op} {shape} scale {scale:g}"

    def reshape(self):
        shape = self.shape(product=200)
        count, out = int(np.prod(shape)), []
        while count > 1 and len(out) < 3 and self.r.random() < 0.7:
            out.append(self.r.choice([d for d in range(1, count + 1) if count % d == 0]))
            count //= out[-1]
        out.append(count)
        named = list(out)
        if self.r.random() < 0.3:
            named[self.r.randrange(len(named))] = -1
        scale, zero = self.scale(), self.zero()
        inputs = [self.m.input("x", shape, scale, zero)]
        options = {"new_shape": named}
        if self.r.random() < 0.6:
            inputs.append(self.m.tensor("shape", [len(named)], data=np.array(named, np.int32),
                                        dtype=INT32))
            if self.r.random() < 0.5:
                options = {}
        y = self.m.output("y", out, scale, zero)
        self.m.operator("RESHAPE", inputs, [y], **options)
        self.text = f"{shape} -> {named}"

    def other_dims(self):
        """SQUEEZE, EXPAND_DIMS"""
        shape, scale, zero = self.shape(1, 3, 100), self.scale(), self.zero()
        at = self.r.randint(0, len(shape))
        long = shape[:at] + [1] + shape[at:]
        if self.r.random() < 0.5:
            x, y = self.m.input("x", long, scale, zero), self.m.output("y", shape, scale, zero)
            self.m.operator("SQUEEZE", [x], [y], squeeze_dims=[at])
            self.text = f"SQUEEZE {long} {at}"
            return
        x, y = self.m.input("x", shape, scale, zero), self.m.output("y", long, scale, zero)
        axis = self.m.tensor("axis", [1], data=np.array([at], np.int32), dtype=INT32)
        self.m.operator("EXPAND_DIMS", [x, axis], [y])
        self.text = f"EXPAND_DIMS {shape} {at}"

    def concatenation(self):
        shape = self.shape(product=100)
        axis = self.r.randrange(len(shape))
        scale, zero = self.scale(), self.zero()
        parts, total = [], 0
        for i in range(self.r.randint(1, 4)):
            side = list(shape)
            side[axis] = self.r.randint(1, 6)
            total += side[axis]
            if i and self.r.random() < 0.15:
                parts.append(self.m.tensor(f"x{i}", side, scale, zero, self.weights(side)))
            else:
                parts.append(self.m.input(f"x{i}", side, scale, zero))
        shape[axis] = total
        y = self.m.output("y", shape, scale, zero)
        named = axis - len(shape) if self.r.random() < 0.3 else axis
        self.m.operator("CONCATENATION", parts, [y], axis=named)
        self.text = f"{len(parts)} along {named} to {shape}"

    def floats(self, count, scale, zero):
        """Steps of scale: whole ones, halves, any; also past both ends of int8."""
        zero -= self.up
        steps = [self.r.randint(-140 - zero, 140 - zero) + self.r.choice(
            [0, 0.5, -0.5, self.r.random(), self.r.uniform(-900, 900)]) for _ in range(count)]
        return (np.array(steps, np.float64) * scale).astype(np.float32)

    def float_edges(self):
        """QUANTIZE, perhaps an operator, perhaps DEQUANTIZE; or DEQUANTIZE alone."""
        shape, scale, zero = self.shape(), self.scale(), self.zero()
        if self.r.random() < 0.3:
            scale = 2.0 ** self.r.randint(-7, 2)  # halves are exact
        inner = self.r.choice(["RELU", "RELU6", "LOGISTIC", "ADD", None])
        ends = self.r.choice(["in", "out", "both", "both"])
        count = int(np.prod(shape))
        places, raws = [], []
        for name in "ab" if inner == "ADD" else "a":
            if ends == "out":
                places.append(self.m.input(name, shape, scale, zero))
                raws.append(self.weights([count]).tobytes())
                continue
            x = self.m.input(name, shape, dtype=FLOAT32)
            places.append(self.m.tensor(name + "q", shape, scale, zero))
            self.m.operator("QUANTIZE", [x], [places[-1]])
            raws.append(self.floats(count, scale, zero).tobytes())
        self.raw = b"".join(raws)
        last = places[0]
        out_scale, out_zero = scale, zero
        if inner:
            out_scale, out_zero = (1 / 256, self.up - 128) if inner == "LOGISTIC" else (
                float(np.float32(scale * 2 ** self.r.uniform(-1, 2))), self.zero())
            last = self.m.tensor("y", shape, out_scale, out_zero)
            self.m.operator(inner, places, [last])
        if ends == "in":
            self.m.outputs.append(last)
        else:
            y = self.m.output("f", shape, dtype=FLOAT32)
            self.m.operator("DEQUANTIZE", [last], [y])
        self.text = f"{shape} {ends} around {inner} scale {scale:g}"

    def rescaled(self, op):
        shape, sin = self.shape(), self.scale()
        low, high = (-4, 6) if self.r.random() < 0.85 else (-16, 36)
        sout = self.result_scale(sin * 2 ** self.r.uniform(low, high))
        x = self.m.input("x", shape, sin, self.zero())
        kind = self.m.dtype
        if op == "QUANTIZE" and self.r.random() < 0.3:
            kind, self.up = (INT8, 0) if self.up else (UINT8, 128)
        y = self.m.output("y", shape, sout, self.zero(), dtype=kind)
        self.m.operator(op, [x], [y])
        self.text = f"{op} {shape} scale {sin:g} -> {sout:g} type {kind}"

    def relu(self):
        self.rescaled("RELU")

    def relu6(self):
        self.rescaled(self.r.choice(["RELU6", "RELU6", "RELU_N1_TO_1"]))

    def quantize(self):
        self.rescaled("QUANTIZE")


# How many models of each.
PLAN = [
    ("conv_2d", 460),
    ("depthwise_conv_2d", 330),
    ("fully_connected", 200),
    ("add", 190),
    ("mul", 150),
    ("average_pool_2d", 140),
    ("max_pool_2d", 110),
    ("mean", 150),
    ("pad", 70),
    ("softmax", 110),
    ("logistic", 80),
    ("reshape", 40),
    ("other_dims", 20),
    ("concatenation", 90),
    ("relu", 60),
    ("relu6", 60),
    ("quantize", 80),
    ("float_edges", 60),
]


def record(make, kind, number, seed):
    rng = random.Random(seed << 32 | number)
    case = make(rng, rng.random() < 0.1)
    kind_of_numbers = "uint8" if case.up else case.kind
    getattr(case, kind)()
    model = case.m.bytes()
    it = common.interpreter(model)
    raw, state = case.raw, 0
    if not raw:
        count = case.times * sum(int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize
                                 for d in it.get_input_details())
        state = seed << 32 | (number + 1)
        raw = common.random_bytes(state, count)
    output = b""
    for i in range(case.times):
        common.invoke(it, raw[len(raw) * i // case.times:len(raw) * (i + 1) // case.times])
        output += b"".join(it.get_tensor(d["index"]).tobytes()
                           for d in it.get_output_details())
    text = f"{kind} {kind_of_numbers} {case.text}".encode()[:255]
    return (struct.pack("<B", len(text)) + text + struct.pack("<I", len(model)) + model
            + struct.pack("<IQ", len(raw), state) + (b"" if state else raw)
            + struct.pack("<I", len(output)) + output)


def write(make, plan):
    """The pack argv names; make: Case or one that knows other operators."""
    out = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    kinds = [kind for kind, count in plan for _ in range(count)]
    random.Random(seed).shuffle(kinds)
    raw = io.BytesIO()
    raw.write(b"HALOPS1\n" + struct.pack("<II", seed, len(kinds)))
    for number, kind in enumerate(kinds):
        try:
            raw.write(record(make, kind, number, seed))
        except Exception as e:
            raise RuntimeError(f"model {number}, {kind}") from e
    with open(out, "wb") as f:
        # No name and no time in the header: the same models give the same bytes.
        f.write(gzip.compress(raw.getvalue(), 9, mtime=0))
    print(f"{len(kinds)} models, {len(raw.getvalue())} bytes, {f.name}")


if __name__ == "__main__":
    write(Case, PLAN)
