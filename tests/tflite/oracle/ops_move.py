#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_move.py OUT [SEED]: as ops.py, for operators that move elements, for shapes that are
computed of shapes, and for networks of them.

Activations have quantizations that differ wherever TFLite takes no notice of them, and
sometimes none.  Left out, because TFLite refuses it: int8 CONCATENATION, PACK and UNPACK of
different quantizations; STRIDED_SLICE of more than five dimensions and TRANSPOSE of more
than six, indices of GATHER that are negative.  And an ellipsis of STRIDED_SLICE that stands
for no dimension, which TFLite takes for one; and REVERSE_V2 along several, of which TFLite
heeds the first.
"""
import numpy as np

from ops import Case, write
from tflite_writer import INT32, INT64, NONE


class Move(Case):
    def numbers(self, name, values, dtype=None):
        dtype = dtype or self.r.choice([INT32, INT32, INT32, INT64])
        data = np.array(values, np.int32 if dtype == INT32 else np.int64)
        return self.m.tensor(name, list(data.shape), data=data, dtype=dtype)

    def quantization(self):
        return (None, 0) if self.r.random() < 0.15 else (self.scale(), self.zero())

    def place(self, name, shape, quantization=None):
        """An input; sometimes a constant, but not as a model's only one."""
        scale, zero = quantization or self.quantization()
        if self.m.inputs and self.r.random() < 0.15:
            return self.m.tensor(name, shape, scale, zero, self.weights(shape))
        return self.m.input(name, shape, scale, zero)

    def result(self, name, shape, quantization=None):
        scale, zero = quantization or self.quantization()
        return self.m.output(name, shape, scale, zero)

    def axis(self, axis, rank):
        return axis - rank if self.r.random() < 0.3 else axis

    # ---- parts --------------------------------------------------------------------------
    def slice(self):
        shape = self.shape(1, 5)
        begin = [self.r.randint(0, n - 1) for n in shape]
        size = [self.r.randint(1, n - b) for n, b in zip(shape, begin)]
        named = [-1 if b + s == n and self.r.random() < 0.5 else s
                 for n, b, s in zip(shape, begin, size)]
        kind = self.r.choice([INT32, INT64])
        x = self.place("x", shape)
        y = self.result("y", size)
        self.m.operator("SLICE", [x, self.numbers("b", begin, kind),
                                  self.numbers("s", named, kind)], [y])
        self.text = f"{shape} from {begin}, {named}"

    def strided_slice(self):
        while True:
            shape = self.shape(1, 5)
            spec, begin, end, strides = [], [], [], []
            mask = dict.fromkeys(["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask",
                                  "shrink_axis_mask"], 0)
            free = 5 - len(shape)
            dims = list(shape)
            if self.r.random() < 0.25:
                at = self.r.randrange(len(shape))
                dims[at:at + self.r.randint(1, 2)] = [...]
            elif self.r.random() < 0.3:
                del dims[self.r.randint(1, len(dims)):]
            while free and self.r.random() < 0.2:
                dims.insert(self.r.randint(0, len(dims)), None)
                free -= 1
            for i, n in enumerate(dims):
                if n is None or n is ...:
                    mask["new_axis_mask" if n is None else "ellipsis_mask"] |= 1 << i
                    spec.append(np.newaxis if n is None else ...)
                    begin.append(0), end.append(0), strides.append(1)
                    continue
                stride = self.r.choice([1, 1, 1, 2, 3, -1, -2])
                b, e = self.r.randint(-n - 1, n + 1), self.r.randint(-n - 1, n + 1)
                if self.r.random() < 0.15:
                    b = self.r.randint(-n, n - 1)
                    mask["shrink_axis_mask"] |= 1 << i
                    spec.append(b)
                    begin.append(b), end.append(e), strides.append(1)
                    continue
                from_start, to_end = self.r.random() < 0.35, self.r.random() < 0.35
                mask["begin_mask"] |= from_start << i
                mask["end_mask"] |= to_end << i
                spec.append(slice(None if from_start else b, None if to_end else e, stride))
                begin.append(b), end.append(e), strides.append(stride)
            out = np.zeros(shape)[tuple(spec)].shape
            if np.prod(out) > 0:
                break
        x = self.place("x", shape)
        y = self.result("y", list(out))
        operands = [self.numbers(n, v, INT32)
                    for n, v in (("b", begin), ("e", end), ("s", strides))]
        self.m.operator("STRIDED_SLICE", [x] + operands, [y], **mask)
        self.text = f"{shape} {begin} {end} {strides} {[v for v in mask.values()]}"

    def split(self):
        shape = self.shape()
        axis, n = self.r.randrange(len(shape)), self.r.randint(1, 5)
        part = shape[axis]
        shape[axis] = n * part
        x = self.place("x", shape)
        parts = shape[:axis] + [part] + shape[axis + 1:]
        outs = [self.result(f"y{i}", parts) for i in range(n)]
        a = self.numbers("axis", self.axis(axis, len(shape)), INT32)
        self.m.operator("SPLIT", [a, x], outs, num_splits=n)
        self.text = f"{shape} along {axis} in {n}"

    def split_v(self):
        shape = self.shape()
        axis = self.r.randrange(len(shape))
        sizes = [self.r.randint(1, 4) for _ in range(self.r.randint(1, 5))]
        shape[axis] = sum(sizes)
        named = list(sizes)
        if self.r.random() < 0.4:
            named[self.r.randrange(len(sizes))] = -1
        x = self.place("x", shape)
        outs = [self.result(f"y{i}", shape[:axis] + [n] + shape[axis + 1:])
                for i, n in enumerate(sizes)]
        a = self.numbers("axis", [self.axis(axis, len(shape))], INT32)
        self.m.operator("SPLIT_V", [x, self.numbers("sizes", named), a], outs,
                        num_splits=len(sizes))
        self.text = f"{shape} along {axis} in {named}"

    def unpack(self):
        shape = self.shape(1, 5)
        axis, q = self.r.randrange(len(shape)), self.quantization()
        x = self.place("x", shape, q)
        outs = [self.result(f"y{i}", shape[:axis] + shape[axis + 1:], q)
                for i in range(shape[axis])]
        self.m.operator("UNPACK", [x], outs, num=shape[axis],
                        axis=self.axis(axis, len(shape)))
        self.text = f"{shape} along {axis}"

    # ---- together -----------------------------------------------------------------------
    def pack(self):
        shape = self.shape(0, 4, 100)
        axis, q, n = self.r.randint(0, len(shape)), self.quantization(), self.r.randint(1, 5)
        parts = [self.place(f"x{i}", shape, q) for i in range(n)]
        y = self.result("y", shape[:axis] + [n] + shape[axis:], q)
        self.m.operator("PACK", parts, [y], values_count=n,
                        axis=self.axis(axis, len(shape) + 1))
        self.text = f"{n} of {shape} along {axis}"

    def concatenation(self):
        """Without scales; uint8 with others than the result's."""
        self.m.dtype, self.up = self.r.choice([(self.m.dtype, self.up), (3, 128), (3, 128)])
        shape = self.shape(product=100)
        axis, total = self.r.randrange(len(shape)), 0
        scale, zero = self.quantization()
        parts = []
        for i in range(self.r.randint(1, 4)):
            side = list(shape)
            side[axis] = self.r.randint(1, 6)
            total += side[axis]
            q = (scale, zero)
            if scale and self.up and self.r.random() < 0.7:
                q = (float(np.float32(scale * 2 ** self.r.uniform(-5, 5))), self.zero())
                q = (None, 0) if self.r.random() < 0.1 else q
            parts.append(self.place(f"x{i}", side, q))
        shape[axis] = total
        y = self.result("y", shape, (scale, zero))
        self.m.operator("CONCATENATION", parts, [y], axis=self.axis(axis, len(shape)))
        self.text = f"{len(parts)} along {axis} to {shape} scale {scale}"

    # ---- other orders -------------------------------------------------------------------
    def transpose(self):
        shape = self.shape(1, 6)
        order = self.r.sample(range(len(shape)), len(shape))
        named = [self.axis(i, len(shape)) for i in order]
        x = self.place("x", shape)
        y = self.result("y", [shape[i] for i in order])
        self.m.operator("TRANSPOSE", [x, self.numbers("p", named, INT32)], [y])
        self.text = f"{shape} by {named}"

    def tile(self):
        shape = self.shape(1, 4, 60)
        times = [self.r.choice([1, 1, 2, 3]) for _ in shape]
        x = self.place("x", shape)
        y = self.result("y", [n * t for n, t in zip(shape, times)])
        self.m.operator("TILE", [x, self.numbers("t", times)], [y])
        self.text = f"{shape} times {times}"

    def gather(self):
        shape = self.shape(1, 4)
        axis = self.r.randrange(len(shape))
        batch = self.r.randint(0, axis) if self.r.random() < 0.3 else 0
        at = shape[:batch] + [self.r.randint(1, 6) for _ in range(self.r.randint(0, 2))]
        if not batch and self.r.random() < 0.1:
            at = []
        index = np.array([self.r.randrange(shape[axis]) for _ in range(int(np.prod(at)))])
        if self.r.random() < 0.3:
            index = np.arange(index.size) % shape[axis]
        x = self.place("x", shape)
        y = self.result("y", shape[:axis] + at[batch:] + shape[axis + 1:])
        self.m.operator("GATHER", [x, self.numbers("i", index.reshape(at))], [y],
                        axis=self.axis(axis, len(shape)), batch_dims=batch)
        self.text = f"{shape} at {at} along {axis} batch {batch}"

    def resize_nearest(self):
        while True:
            n, h, w, c = (self.r.choice([1, 1, 2]), self.size(), self.size(),
                          self.channels(20))
            oh, ow = self.r.choice([(2 * h, 2 * w), (self.size(20), self.size(20)),
                                    (3 * h, w), (h, 4 * w)])
            if n * h * w * c < 900 and n * oh * ow * c < 2500:
                break
        how = self.r.choice([(False, False), (True, False), (False, True), (True, True)])
        x = self.place("x", [n, h, w, c])
        y = self.result("y", [n, oh, ow, c])
        self.m.operator("RESIZE_NEAREST_NEIGHBOR", [x, self.numbers("s", [oh, ow], INT32)],
                        [y], align_corners=how[0], half_pixel_centers=how[1])
        self.text = f"{n}x{h}x{w}x{c} to {oh}x{ow} align {how[0]} half {how[1]}"

    def space_to_depth(self):
        n, h, w, c = 1, self.size(4), self.size(4), self.channels(6)
        b = self.r.choice([1, 2, 2, 3])
        fine, coarse = [n, h * b, w * b, c], [n, h, w, c * b * b]
        depth = self.r.random() < 0.5
        x = self.place("x", coarse if depth else fine)
        y = self.result("y", fine if depth else coarse)
        self.m.operator("DEPTH_TO_SPACE" if depth else "SPACE_TO_DEPTH", [x], [y],
                        block_size=b)
        self.text = f"{fine} {'of' if depth else 'to'} {coarse}"

    def space_to_batch(self):
        """And back; three or four dimensions."""
        n, c, rank = self.r.choice([1, 1, 2]), self.channels(6), self.r.choice([3, 4, 4])
        blocks = [self.r.choice([1, 2, 2, 3]) for _ in range(rank - 2)]
        parts = [self.size(5) for _ in blocks]
        margins = [[self.r.randint(0, min(3, p * b - 1)), 0] for p, b in zip(parts, blocks)]
        for m, p, b in zip(margins, parts, blocks):
            m[1] = self.r.randint(0, min(3, p * b - 1 - m[0]))
        whole = [n] + [p * b - sum(m) for p, b, m in zip(parts, blocks, margins)] + [c]
        part = [n * int(np.prod(blocks))] + parts + [c]
        apart, q = self.r.random() < 0.5, self.quantization()
        x = self.place("x", whole if apart else part, q)
        y = self.result("y", part if apart else whole, q)
        self.m.operator("SPACE_TO_BATCH_ND" if apart else "BATCH_TO_SPACE_ND",
                        [x, self.numbers("b", blocks, INT32),
                         self.numbers("m", margins, INT32)], [y])
        self.text = f"{whole} {'to' if apart else 'of'} {part} blocks {blocks} {margins}"

    def mirror_pad(self):
        shape = self.shape(1, 4, 60)
        mode = self.r.choice([0, 1])
        pads = [[self.r.randint(0, min(3, n - 1 + mode)) for _ in "ab"] for n in shape]
        q = self.quantization()
        x = self.place("x", shape, q)
        y = self.result("y", [n + sum(p) for n, p in zip(shape, pads)], q)
        self.m.operator("MIRROR_PAD", [x, self.numbers("p", pads)], [y], mode=mode)
        self.text = f"{shape} by {pads} mode {mode}"

    def reverse(self):
        shape = self.shape()
        axis = self.r.randrange(len(shape))
        x = self.place("x", shape)
        y = self.result("y", shape)
        a = self.numbers("a", [self.axis(axis, len(shape))], INT32)
        self.m.operator("REVERSE_V2", [x, a], [y])
        self.text = f"{shape} along {axis}"

    def broadcast(self):
        out = self.shape(1, 5)
        shape = [1 if self.r.random() < 0.4 else n for n in out]
        shape = shape[self.r.randint(0, len(shape) - 1):]
        x = self.place("x", shape)
        y = self.result("y", out)
        self.m.operator("BROADCAST_TO", [x, self.numbers("to", out)], [y])
        self.text = f"{shape} to {out}"

    def mean(self):
        """A scale is missing, or both are: the multiplier is 0 then."""
        shape = self.shape(product=300)
        axes = self.r.sample(range(len(shape)), self.r.randint(1, min(2, len(shape))))
        keep = self.r.random() < 0.5
        out = [1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes]
        sides = self.r.choice([(None, None), (None, self.scale()), (self.scale(), None)])
        x = self.place("x", shape, (sides[0], self.zero() if sides[0] else 0))
        y = self.result("y", out, (sides[1], self.zero() if sides[1] else 0))
        self.m.operator("MEAN", [x, self.numbers("axes", axes, INT32)], [y], keep_dims=keep)
        self.text = f"{shape} over {axes} scales {sides}"

    # ---- shapes of shapes ---------------------------------------------------------------
    def whole(self, name, shape, dtype=INT32):
        return self.m.tensor(name, shape, dtype=dtype)

    def reshape_to(self, x, shape, to):
        """to: a tensor of the shape's numbers, which nothing but constants made."""
        y = self.result("y", shape)
        self.m.operator("RESHAPE", [x, to], [y])

    def shape_pack(self):
        """What converters write for reshape(x, (shape(x)[0], ...))."""
        shape = self.shape(2, 4)
        x = self.place("x", shape)
        s, n = self.whole("shape", [len(shape)]), self.whole("n", [])
        self.m.operator("SHAPE", [x], [s], out_type=INT32)
        at = self.r.randrange(len(shape))
        self.m.operator("STRIDED_SLICE", [s] + [self.numbers(k, [v], INT32) for k, v in
                                                (("b", at), ("e", at + 1), ("t", 1))],
                        [n], shrink_axis_mask=1)
        rest = int(np.prod(shape)) // shape[at]
        to = self.whole("to", [2])
        order = [n, self.numbers("rest", self.r.choice([rest, -1]), INT32)]
        out = [shape[at], rest]
        if self.r.random() < 0.5:
            order.reverse(), out.reverse()
        self.m.operator("PACK", order, [to], values_count=2, axis=0)
        self.reshape_to(x, out, to)
        self.text = f"{shape} dimension {at} to {out}"

    def shape_arithmetic(self):
        """The product of some dimensions, by one operator or another."""
        shape = self.shape(2, 4)
        x = self.place("x", shape)
        s = self.whole("shape", [len(shape)])
        self.m.operator("SHAPE", [x], [s], out_type=INT32)
        at = self.r.randint(1, len(shape) - 1)
        how = self.r.choice(["REDUCE_PROD", "FLOOR_DIV", "MUL", "SUB"])
        count, n = int(np.prod(shape)), self.whole("n", [1])
        head = int(np.prod(shape[:at]))
        if how == "REDUCE_PROD":
            part = self.whole("part", [at])
            self.m.operator("SLICE", [s, self.numbers("b", [0], INT32),
                                      self.numbers("z", [at], INT32)], [part])
            self.m.operator("REDUCE_PROD", [part, self.numbers("a", [0], INT32)], [n],
                            keep_dims=True)
        elif how == "FLOOR_DIV":
            self.m.operator("FLOOR_DIV", [self.numbers("c", [count], INT32),
                                          self.numbers("t", [count // head], INT32)], [n])
        else:
            first, head = self.whole("first", [1]), shape[0]
            self.m.operator("GATHER", [s, self.numbers("i", [0], INT32)], [first], axis=0)
            one = self.numbers("one", 1 if how == "MUL" else 0, INT32)
            self.m.operator(how, [first, one], [n], act=NONE)
        to = self.whole("to", [2])
        self.m.operator("CONCATENATION", [n, self.numbers("m", [-1], INT32)], [to], axis=0)
        self.reshape_to(x, [head, count // head], to)
        self.text = f"{shape} by {how} to {head}"

    def shape_transpose(self):
        """The order that a TRANSPOSE goes by is a RANGE backwards."""
        shape = self.shape(1, 4)
        x = self.place("x", shape)
        n, order, back = self.whole("n", []), self.whole("o", [len(shape)]), None
        self.m.operator("RANK", [x], [n])
        self.m.operator("RANGE", [self.numbers("z", 0, INT32), n, self.numbers("d", 1, INT32)],
                        [order])
        back = self.whole("back", [len(shape)])
        self.m.operator("SUB", [self.numbers("last", len(shape) - 1, INT32), order], [back],
                        act=NONE)
        y = self.result("y", shape[::-1])
        self.m.operator("TRANSPOSE", [x, back], [y])
        self.text = f"{shape} backwards"

    def constants(self):
        """Constants that move and then are an operand, weights say."""
        n, k = self.r.randint(1, 20), self.r.randint(1, 20)
        sin, sw = self.scale(), self.scale()
        x = self.m.input("x", [1, k], sin, self.zero())
        w = self.m.tensor("w", [k, n], sw, self.up, self.weights([k, n]))
        turned = self.m.tensor("turned", [n, k], sw, self.up)
        self.m.operator("TRANSPOSE", [w, self.numbers("p", [1, 0], INT32)], [turned])
        y = self.m.output("y", [1, n], self.result_scale(sin * sw * 500), self.zero())
        self.m.operator("FULLY_CONNECTED", [x, turned, -1], [y], act=NONE)
        self.text = f"{k} -> {n}, weights turned"


    # ---- networks -----------------------------------------------------------------------
    def network(self):
        """Some operators one after another, whose results several may read; all that
        nobody reads are outputs, and some that somebody does."""
        self.q = (self.scale(), self.zero())
        tensors = [self.node(self.shape(2, 4, 60), place=True)
                   for _ in range(self.r.randint(1, 2))]
        read, names = set(), []
        least = self.r.randint(1, 7)
        while len(names) < least:
            x, shape = self.r.choice(tensors)
            name = self.r.choice(["turn", "cut", "join", "part", "twice", "unpacked",
                                  "flat", "relu", "pack"])
            new = getattr(self, "net_" + name)(x, shape)
            if new:
                read.add(x)
                names.append(name)
                tensors += new
        self.m.outputs = [t for t, _ in tensors
                          if t not in read or self.r.random() < 0.15]
        self.text = " ".join(names)

    def node(self, shape, place=False):
        make = self.m.input if place else self.m.tensor
        return make(f"t{len(self.m._tensors)}", shape, *self.q), list(shape)

    def net_turn(self, x, shape):
        order = self.r.sample(range(len(shape)), len(shape))
        y = self.node([shape[i] for i in order])
        self.m.operator("TRANSPOSE", [x, self.numbers("p", order, INT32)], [y[0]])
        return [y]

    def net_cut(self, x, shape):
        begin = [self.r.randint(0, n - 1) for n in shape]
        stride = [self.r.choice([1, 1, 2]) for _ in shape]
        y = self.node([-(-(n - b) // s) for n, b, s in zip(shape, begin, stride)])
        self.m.operator("STRIDED_SLICE", [x] + [self.numbers(k, v, INT32) for k, v in (
            ("b", begin), ("e", shape), ("s", stride))], [y[0]])
        return [y]

    def net_join(self, x, shape):
        if np.prod(shape) > 200:
            return []
        axis = self.r.randrange(len(shape))
        y = self.node(shape[:axis] + [2 * shape[axis]] + shape[axis + 1:])
        self.m.operator("CONCATENATION", [x, x], [y[0]], axis=axis)
        return [y]

    def net_part(self, x, shape):
        axis = self.r.randrange(len(shape))
        first = self.r.randint(0, shape[axis] - 1)
        if not first:
            return []
        sizes = [first, shape[axis] - first]
        ys = [self.node(shape[:axis] + [n] + shape[axis + 1:]) for n in sizes]
        self.m.operator("SPLIT_V", [x, self.numbers("s", sizes), self.numbers(
            "a", [axis], INT32)], [y[0] for y in ys], num_splits=2)
        return ys

    def net_twice(self, x, shape):
        if len(shape) != 4 or np.prod(shape) > 100:
            return []
        y = self.node([shape[0], 2 * shape[1], 2 * shape[2], shape[3]])
        to = self.numbers("to", y[1][1:3], INT32)
        self.m.operator("RESIZE_NEAREST_NEIGHBOR", [x, to], [y[0]])
        return [y]

    def net_unpacked(self, x, shape):
        if shape[0] > 4 or len(shape) < 3:
            return []
        ys = [self.node(shape[1:]) for _ in range(shape[0])]
        self.m.operator("UNPACK", [x], [y[0] for y in ys], num=shape[0], axis=0)
        return ys

    def net_pack(self, x, shape):
        if len(shape) > 3:
            return []
        y = self.node([1] + shape)
        self.m.operator("PACK", [x], [y[0]], values_count=1, axis=0)
        return [y]

    def net_flat(self, x, shape):
        y = self.node([shape[0], int(np.prod(shape[1:]))])
        self.m.operator("RESHAPE", [x], [y[0]], new_shape=y[1])
        return [y]

    def net_relu(self, x, shape):
        y = self.node(shape)
        self.m.operator("RELU", [x], [y[0]])
        return [y]


PLAN = [
    ("slice", 60),
    ("strided_slice", 160),
    ("split", 60),
    ("split_v", 60),
    ("unpack", 50),
    ("pack", 60),
    ("concatenation", 90),
    ("transpose", 110),
    ("tile", 60),
    ("gather", 110),
    ("resize_nearest", 100),
    ("space_to_depth", 50),
    ("space_to_batch", 70),
    ("mirror_pad", 60),
    ("reverse", 30),
    ("broadcast", 40),
    ("mean", 30),
    ("shape_pack", 60),
    ("shape_arithmetic", 60),
    ("shape_transpose", 30),
    ("constants", 30),
    ("network", 120),
]

if __name__ == "__main__":
    write(Move, PLAN)
