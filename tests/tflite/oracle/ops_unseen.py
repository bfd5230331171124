#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_unseen.py OUT [SEED]: as ops.py, of what public networks have and the other packs do not:
shapes that are computed where the batch is open, indices of many pixels, long
sums, sparse weights, functions of one number, in float32, too.
"""
import math

import numpy as np

from ops import Case, write
from tflite_writer import FLOAT32, INT8, INT32, INT64, NONE, RELU, RELU6, VALID


class Unseen(Case):
    # ---- shapes that are computed ---------------------------------------------------------
    def whole(self, name, values):
        values = np.array(values, np.int32)
        return self.m.tensor(name, values.shape, data=values, dtype=INT32)

    def number(self, name, shape):
        return self.m.tensor(name, shape, dtype=INT32)

    def open_tensor(self, make, name, shape, scale, zero):
        """A placeholder of 1 for the first size."""
        return make(name, [1] + shape, scale, zero, signature=[-1] + shape)

    def dense(self, x, rows, c, sin, zin, y=None):
        """FULLY_CONNECTED of an open number of rows."""
        n = self.channels()
        ws, sout, bias = self.products(n, c, sin, zin, self.up, False)
        w = self.m.tensor("w", [n, c], ws, self.up, self.weights([n, c]))
        zero, make = self.zero(), self.m.output if y else self.m.tensor
        d = self.open_tensor(make, y or "d", [n], sout, zero)
        self.m.operator("FULLY_CONNECTED", [x, w] + self.bias(bias, sin, ws), [d],
                        act=self.r.choice([NONE, RELU, RELU6]))
        return d, n, sout, zero

    def keras_dense(self):
        """Dense on three dimensions as Keras converts it."""
        rows, c = self.r.randint(1, 12), self.channels()
        scale, zero = self.scale(), self.zero()
        x = self.m.input("x", [1, rows, c], scale, zero, signature=[-1, rows, c])
        shape, free, last = (self.number(n, [k]) for n, k in (("s", 3), ("f", 2), ("l", 1)))
        self.m.operator("SHAPE", [x], [shape], out_type=INT32)
        self.m.operator("GATHER", [shape, self.whole("free", [0, 1])], [free])
        self.m.operator("GATHER", [shape, self.whole("last", [2])], [last])
        count, depth = self.number("count", []), self.number("depth", [])
        axis = self.whole("axis", [0])
        self.m.operator("REDUCE_PROD", [free, axis], [count])
        self.m.operator("REDUCE_PROD", [last, axis], [depth])
        pair, to = self.number("pair", [2]), self.number("to", [3])
        self.m.operator("PACK", [count, depth], [pair], values_count=2)
        flat = self.m.tensor("flat", [1, 1], scale, zero, signature=[-1, -1])
        self.m.operator("RESHAPE", [x, pair], [flat])
        d, n, sout, zout = self.dense(flat, rows, c, scale, zero)
        self.m.operator("CONCATENATION", [free, self.whole("n", [n])], [to])
        y = self.m.output("y", [1, rows, n], sout, zout, signature=[-1, rows, n])
        self.m.operator("RESHAPE", [d, to], [y])
        self.text = f"1x{rows}x{c} -> {n}, shapes computed"

    def open_fill(self):
        """A first state of zeros, as recurrent layers have it; TFLite fills no uint8."""
        if self.up:
            return self.keras_dense()
        c, scale, zero = self.channels(), self.scale(), self.zero()
        x = self.m.input("x", [1, c], scale, zero, signature=[-1, c])
        shape, batch, size = self.number("s", [2]), self.number("b", []), self.number("z", [2])
        self.m.operator("SHAPE", [x], [shape], out_type=INT32)
        self.m.operator("STRIDED_SLICE", [shape] + [self.whole(n, [v]) for n, v in
                                                    (("from", 0), ("to", 1), ("step", 1))],
                        [batch], shrink_axis_mask=1)
        self.m.operator("PACK", [batch, self.whole("c", c)], [size], values_count=2)
        value = self.m.tensor("value", [], scale, zero, self.weights([]))
        state = self.open_tensor(self.m.tensor, "state", [c], scale, zero)
        self.m.operator("FILL", [size, value], [state])
        sout = self.result_scale(scale * 2)
        y = self.open_tensor(self.m.output, "y", [c], sout, self.zero())
        self.m.operator("ADD", [x, state], [y], pot_scale=False)
        self.text = f"1x{c} plus a constant of the batch's size"

    def open_rows(self):
        """Pixels become the batch, which is split and joined again."""
        h, w, c = self.r.randint(1, 4), self.r.randint(1, 5), self.channels()
        parts, scale, zero = self.r.randint(1, 4), self.scale(), self.zero()
        x = self.m.input("x", [parts, h, w, c], scale, zero, signature=[-1, h, w, c])
        flat = self.open_tensor(self.m.tensor, "flat", [c], scale, zero)
        self.m.operator("RESHAPE", [x, self.whole("to", [-1, c])], [flat])
        some = [self.open_tensor(self.m.tensor, f"part{i}", [c], scale, zero)
                for i in range(parts)]
        self.m.operator("SPLIT", [self.whole("axis", 0), flat], some, num_splits=parts)
        back = self.open_tensor(self.m.tensor, "back", [c], scale, zero)
        self.m.operator("CONCATENATION", some[::-1], [back], axis=0)
        self.dense(back, parts * h * w, c, scale, zero, "y")
        self.text = f"{parts}x{h}x{w}x{c}, rows split in {parts}"

    def open_blocks(self):
        """A dilated convolution: blocks become the batch."""
        c, n, block = self.r.randint(1, 6), self.r.randint(1, 6), self.r.randint(2, 3)
        size, k = block * self.r.randint(2, 4), self.r.randint(1, 2)
        scale, zero = self.scale(), self.zero()
        ws, sout, bias = self.products(n, k * k * c, scale, zero, self.up, False)
        inner = size // block
        out = inner - k + 1
        blocks, none = self.whole("block", [block] * 2), self.whole("none", [[0, 0]] * 2)
        x = self.m.input("x", [1, size, size, c], scale, zero, signature=[-1, size, size, c])
        apart = self.open_tensor(self.m.tensor, "apart", [inner, inner, c], scale, zero)
        self.m.operator("SPACE_TO_BATCH_ND", [x, blocks, none], [apart])
        zw, zout = self.up, self.zero()
        w = self.m.tensor("w", [n, k, k, c], ws, zw, self.weights([n, k, k, c]))
        d = self.open_tensor(self.m.tensor, "d", [out, out, n], sout, zout)
        self.m.operator("CONV_2D", [apart, w] + self.bias(bias or [0] * n, scale, ws), [d],
                        padding=VALID, stride_h=1, stride_w=1)
        y = self.open_tensor(self.m.output, "y", [block * out] * 2 + [n], sout, zout)
        self.m.operator("BATCH_TO_SPACE_ND", [d, blocks, none], [y])
        self.text = f"{size}x{size}x{c} in blocks of {block}, kernel {k} -> {n}"

    def open_depth(self):
        """Blocks become channels, or the other way round."""
        op = self.r.choice(["SPACE_TO_DEPTH", "DEPTH_TO_SPACE"])
        n, h, w, c = (self.r.randint(1, 4) for _ in "nhwc")
        scale, zero, block = self.scale(), self.zero(), self.r.randint(1, 3)
        fine, coarse = [h * block, w * block, c], [h, w, c * block * block]
        shape, to = (fine, coarse) if op == "SPACE_TO_DEPTH" else (coarse, fine)
        x = self.m.input("x", [n * shape[0]] + shape[1:], scale, zero)
        images = self.open_tensor(self.m.tensor, "images", shape, scale, zero)
        self.m.operator("RESHAPE", [x, self.whole("to", [-1] + shape)], [images])
        y = self.open_tensor(self.m.output, "y", to, scale, zero)
        self.m.operator(op, [images], [y], block_size=block)
        self.text = f"{op} {n}x{shape} blocks of {block}"

    # ---- many pixels ------------------------------------------------------------------------
    def many_indices(self):
        """More of them than a side of an image has room for, of few classes."""
        op, kind = self.r.choice(["ARG_MAX", "ARG_MIN"]), self.r.choice([INT32, INT64])
        pixels, k = self.r.choice([65536, 65537, 65792, 70000]), self.r.randint(2, 3)
        shape, axis = [pixels, k], 1
        if pixels % 256 == 0 and self.r.random() < 0.5:
            shape, axis = [k, 256, pixels // 256], 0
        x = self.m.input("x", shape, self.scale(), self.zero())
        y = self.m.output("y", [n for i, n in enumerate(shape) if i != axis], dtype=kind)
        self.m.operator(op, [x, self.whole("axis", axis)], [y], output_type=kind)
        self.text = f"{op} {shape} along {axis}"

    def far_corners(self):
        """Resized to pixels that are farther apart than a stride may be, in one direction."""
        step, out = self.r.randint(16, 24), self.r.randint(2, 6)
        sizes, outs = [step * (out - 1) + 1, self.r.randint(5, 40)], [out, self.r.randint(3, 30)]
        if self.r.random() < 0.5:
            sizes, outs = sizes[::-1], outs[::-1]
        c, scale, zero = self.r.randint(1, 5), self.scale(), self.zero()
        self.int8_only()
        x = self.m.input("x", [1] + sizes + [c], scale, zero - 128 if zero > 127 else zero)
        y = self.m.output("y", [1] + outs + [c], scale, zero - 128 if zero > 127 else zero)
        self.m.operator("RESIZE_BILINEAR", [x, self.whole("size", outs)], [y],
                        align_corners=True)
        self.text = f"{sizes} to {outs} of {c} channels, corners aligned"

    # ---- long sums --------------------------------------------------------------------------
    def long_rows(self):
        """FULLY_CONNECTED of more inputs than int32 has room for, whatever they are."""
        rows, n = self.r.choice([1, 1, 2]), self.r.randint(1, 3)
        k = self.r.choice([33025, 33026, self.r.randint(33027, 70000)])
        sin, zin, zw = self.scale(), self.zero(), self.up
        few = [self.r.randint(30, 127), self.r.randint(1, 127)]
        data = np.array(self.r.choices(few + [-v for v in few], k=n * k)) + zw
        ws, sout, bias = self.products(n, k, sin, zin, zw, not self.up and self.r.random() < 0.5)
        x = self.m.input("x", [rows, k], sin, zin)
        kind = np.uint8 if self.up else np.int8
        w = self.m.tensor("w", [n, k], ws, zw, data.astype(kind).reshape([n, k]))
        y = self.m.output("y", [rows, n], sout, self.zero())
        act = self.r.choice([NONE, RELU, RELU6])
        self.m.operator("FULLY_CONNECTED", [x, w] + self.bias(bias, sin, ws), [y], act=act)
        self.text = f"{rows}x{k} -> {n} act {act} {'per tensor' if len(ws) == 1 else 'per channel'}"

    def large_mean(self):
        """The mean of images that the scratchpad has no room for."""
        shape, axes = self.r.choice([([1, 28, 28, 256], [1, 2]), ([2, 56, 56, 48], [1, 2]),
                                     ([1, 3, 224, 224], [2, 3]), ([1, 900, 150], [1])])
        sin = self.scale()
        count = int(np.prod([shape[a] for a in axes]))
        sout = self.result_scale(sin * self.r.uniform(1, 3) / count**0.5)
        x = self.m.input("x", shape, sin, self.zero())
        y = self.m.output("y", [n for i, n in enumerate(shape) if i not in axes], sout,
                          self.zero())
        self.m.operator("MEAN", [x, self.whole("axes", axes)], [y])
        self.text = f"{shape} along {axes}"

    # ---- sparse weights -----------------------------------------------------------------------
    def compress(self, dense, order, blocks):
        """Elements that are there, level by level; blocks: sizes by dimension.  A level is
        dense or, if any(rest) alone counts, has indices."""
        rank = dense.ndim
        names = [d for d in order if d < rank]
        sizes = [dense.shape[d] // blocks.get(d, 1) for d in names]
        inner = sorted(blocks)
        inner = [inner[o - rank] for o in order if o >= rank]
        # as [levels][blocks]
        split = [n for d in range(rank) for n in (dense.shape[d] // blocks.get(d, 1),
                                                  blocks.get(d, 1))]
        whole = dense.reshape(split).transpose([2 * d for d in names] +
                                               [2 * d + 1 for d in inner] +
                                               [2 * d + 1 for d in range(rank) if d not in blocks])
        whole = whole.reshape(sizes + [blocks[d] for d in inner])
        indexed = [self.r.random() < 0.7 for _ in names] + [False] * len(inner)
        levels, front = [], [whole]
        for i, size in enumerate(whole.shape):
            if not indexed[i]:
                levels.append(int(size))
                front = [part[k] for part in front for k in range(size)]
                continue
            segments, indices, rest = [0], [], []
            for part in front:
                for k in range(size):
                    if np.any(part[k]):
                        indices.append(k)
                        rest.append(part[k])
                segments.append(len(indices))
            most = max(segments + indices)
            widths = [w for w in (1, 2, 4) if most < 1 << 8 * w]
            levels.append((segments, indices, self.r.choice(widths)))
            front = rest
        return levels, np.array(front, dense.dtype)

    def sparse_conv(self):
        self.int8_only()
        while True:
            h, w, c, n = self.size(6), self.size(6), self.channels(12), self.channels(12)
            win = self.window(h, w)
            if n * win[0] * win[1] * c <= 1500 and win[7] * win[8] * n <= 300:
                break
        kh, kw, sh, sw, dh, dw, padding, oh, ow = win
        shape = [n, kh, kw, c]
        blocks = {d: b for d in (0, 3) for b in (2, 4)
                  if shape[d] % b == 0 and self.r.random() < 0.4}
        order = list(range(4))
        self.r.shuffle(order)
        order += [4 + i for i in range(len(blocks))]
        dense = self.weights(shape)
        for i in np.ndindex(*[s // blocks.get(d, 1) for d, s in enumerate(shape)]):
            if self.r.random() < 0.7:
                at = tuple(slice(k * blocks.get(d, 1), (k + 1) * blocks.get(d, 1))
                           for d, k in enumerate(i))
                dense[at] = 0
        if not dense.any():
            dense[0, 0, 0, 0] = 1
        levels, data = self.compress(dense, order, blocks)
        sin, zin = self.scale(), self.zero()
        ws, sout, bias = self.products(n, kh * kw * c, sin, zin, 0, True)
        x = self.m.input("x", [1, h, w, c], sin, zin)
        few = self.m.tensor("few", shape, ws, 0, data, sparsity=(order, sorted(blocks), levels))
        f = self.m.tensor("w", shape, ws, 0)
        self.m.operator("DENSIFY", [few], [f])
        y = self.m.output("y", [1, oh, ow, n], sout, self.zero())
        self.m.operator("CONV_2D", [x, f] + self.bias(bias or [0] * n, sin, ws), [y],
                        padding=padding, stride_h=sh, stride_w=sw, dilation_h=dh, dilation_w=dw)
        self.text = f"{h}x{w}x{c} kernel {shape} order {order} blocks {blocks}"

    # ---- functions of one number ------------------------------------------------------------
    def every_number(self, least=None):
        """All of a byte's, from least on."""
        kind = np.uint8 if self.up else np.int8
        low, high = self.up - 128, self.up + 127
        self.raw = np.arange(low if least is None else max(low, least), high + 1).astype(kind)
        count = len(self.raw)
        self.raw = self.raw.tobytes()
        return [1, count]

    def unary(self, op, sin, zin, sout, zout, least=None, **options):
        shape = self.every_number(least)
        x = self.m.input("x", shape, sin, zin)
        y = self.m.output("y", shape, sout, zout)
        self.m.operator(op, [x], [y], **options)
        self.text = f"{op} {sin:g} {zin} -> {sout:g} {zout} {options or ''}"

    def int8_only(self):
        """uint8 becomes int8 where TFLite has no other kernel."""
        self.m.dtype, self.up = INT8, 0

    def hard_swish(self):
        """The product's multiplier is at most 1: TFLite refuses more."""
        sin = self.scale()
        sout = self.result_scale(max(sin / 127, sin * 2 ** self.r.choice(
            [self.r.uniform(-1, 1), self.r.uniform(-6.9, 24)])))
        self.unary("HARD_SWISH", sin, self.zero(), sout, self.zero())

    def gelu(self):
        sin = self.scale()
        sout = self.result_scale(sin * 2 ** self.r.uniform(-8, 4))
        self.unary("GELU", sin, self.zero(), sout, self.zero(),
                   approximate=self.r.random() < 0.5)

    def elu(self):
        self.int8_only()
        sin = self.scale()
        self.unary("ELU", sin, self.zero(), self.result_scale(sin * 2 ** self.r.uniform(-8, 4)),
                   self.zero())

    def exp(self):
        """Results below 2^30 steps: TFLite's conversion is undefined above 2^31."""
        self.int8_only()
        sin, zin = self.scale(), self.zero()
        sin = float(np.float32(min(sin, 60 / (128 - zin))))
        top = math.exp((127 - zin) * sin)
        sout = self.result_scale(top / 2 ** self.r.uniform(-3, 12))
        self.unary("EXP", sin, zin, sout, self.zero())

    def abs(self):
        self.int8_only()
        sin = self.scale()
        sout = sin if self.r.random() < 0.4 else self.result_scale(
            sin * 2 ** self.r.uniform(-8, 6))
        self.unary("ABS", sin, self.zero(), sout, self.zero())

    def rsqrt(self):
        """Of no negative number: TFLite stops there."""
        self.int8_only()
        sin, zin = self.scale(), self.zero()
        sout = self.result_scale(sin**-0.5 * 2 ** self.r.uniform(-10, 1))
        self.unary("RSQRT", sin, zin, sout, self.zero(), zin)

    def relu_0_to_1(self):
        sin = self.scale()
        sout = self.result_scale(sin * 2 ** self.r.uniform(-8, 4))
        self.unary("RELU_0_TO_1", sin, self.zero(), sout, self.zero())

    # ---- functions in float32 -----------------------------------------------------------------
    ANYWHERE = ["FLOOR", "LOGISTIC", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "NEG", "SIN",
                "SQUARE", "ABS", "CEIL", "COS", "ELU", "ROUND", "HARD_SWISH", "RELU_0_TO_1",
                "GELU", "LEAKY_RELU", "ADD", "SUB", "MUL", "DIV"]

    def float_group(self):
        """One to four between DEQUANTIZE and QUANTIZE, after another layer."""
        shape, count = [1, 256], self.r.randint(0, 4)
        self.every_number()
        sin, zin = float(np.float32(2 ** self.r.uniform(-7, -2))), self.zero()
        x = self.m.input("x", shape, sin, zin)
        at = self.m.tensor("f", shape, dtype=FLOAT32)
        self.m.operator("DEQUANTIZE", [x], [at])
        names = []
        for i in range(count):
            op, options = self.r.choice(self.ANYWHERE), {}
            operands = [at]
            if op in ("ADD", "SUB", "MUL", "DIV"):
                c = np.array(self.r.uniform(0.2, 3), np.float32)
                operands.append(self.m.tensor(f"c{i}", [], data=c, dtype=FLOAT32))
                options["act"] = self.r.choice([NONE, RELU, RELU6])
                if op in ("ADD", "MUL") and self.r.random() < 0.5:
                    operands = operands[::-1]
            if op == "LEAKY_RELU":
                options["alpha"] = self.r.uniform(-1, 1)
            if op == "GELU":
                options["approximate"] = self.r.random() < 0.5
            if op == "ADD" or op == "SUB":
                options["pot_scale"] = False
            at = self.m.tensor(f"f{i}", shape, dtype=FLOAT32)
            self.m.operator(op, operands, [at], **options)
            names.append(op)
        if not names and self.up:
            sin = max(sin, 2**-6)
        sout, zout = self.result_scale(2 ** self.r.uniform(-8, -1)), self.zero()
        y = self.m.output("y", shape, sout, zout)
        self.m.operator("QUANTIZE", [at], [y])
        self.text = f"{sin:g} {zin} {' '.join(names)} -> {sout:g} {zout}"

    def float_positive(self):
        """The same of functions that have positive numbers only."""
        op = self.r.choice(["EXP", "LOG", "SQRT", "RSQRT"])
        sin, zin = float(np.float32(2 ** self.r.uniform(-7, -3))), self.zero()
        shape = self.every_number(None if op == "EXP" else min(zin + 1, self.up + 127))
        x = self.m.input("x", shape, sin, min(zin, self.up + 126))
        f, g = (self.m.tensor(n, shape, dtype=FLOAT32) for n in "fg")
        self.m.operator("DEQUANTIZE", [x], [f])
        self.m.operator(op, [f], [g])
        y = self.m.output("y", shape, self.result_scale(2 ** self.r.uniform(-7, 1)), self.zero())
        self.m.operator("QUANTIZE", [g], [y])
        self.text = f"{op} {sin:g} {zin}"


PLAN = [
    ("keras_dense", 24),
    ("open_fill", 12),
    ("open_rows", 24),
    ("open_blocks", 24),
    ("open_depth", 12),
    ("many_indices", 4),
    ("far_corners", 24),
    ("long_rows", 10),
    ("large_mean", 8),
    ("sparse_conv", 40),
    ("hard_swish", 120),
    ("gelu", 60),
    ("elu", 30),
    ("exp", 40),
    ("abs", 40),
    ("rsqrt", 60),
    ("relu_0_to_1", 20),
    ("float_group", 160),
    ("float_positive", 40),
]

if __name__ == "__main__":
    write(Unseen, PLAN)
