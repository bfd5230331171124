#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_arith.py OUT [SEED]: as ops.py, of operators that calculate and are not there.

Left out, because TFLite refuses them, ends the process or leaves the result undefined:
  - SUB, MAXIMUM, MINIMUM, REDUCE_MAX and REDUCE_MIN of different scales: as for ADD and pools;
  - LEAKY_RELU, PRELU: a left shift that leaves 32 bits.
"""
import numpy as np

from ops import Case, write
from tflite_writer import INT32, INT64


class Arith(Case):
    def sub(self):
        sa = self.scale()
        sb = sa if self.r.random() < 0.2 else float(np.float32(sa * 2 ** self.r.uniform(-6, 6)))
        low = -19.0 if self.r.random() < 0.05 else -2.0
        sout = self.result_scale(max(sa, sb) * 2 ** self.r.uniform(low, 3))
        self.binary("SUB", sout, sa, sb)

    def sides(self):
        """Two shapes that broadcast, and the result's."""
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
        return sides, list(np.broadcast_shapes(*map(tuple, sides)))

    def maximum(self):
        sides, out = self.sides()
        scale, zero, op = self.scale(), self.zero(), self.r.choice(["MAXIMUM", "MINIMUM"])
        constant = self.r.choice([None, None, 0, 1])
        if self.r.random() < 0.2:
            constant = self.r.randrange(2)
            sides[constant] = self.r.choice([[], [1]])
            out = list(np.broadcast_shapes(*map(tuple, sides)))
        places = []
        for i, side in enumerate(sides):
            if i == constant:
                places.append(self.m.tensor("ab"[i], side, scale, zero, self.weights(side)))
            else:
                places.append(self.m.input("ab"[i], side, scale, zero))
        y = self.m.output("y", out, scale, zero)
        self.m.operator(op, places, [y])
        self.text = f"{op} {sides[0]} {sides[1]} constant {constant}"

    def leaky_relu(self):
        shape, sin = self.shape(), self.scale()
        sout = self.result_scale(sin * 2 ** self.r.uniform(-4, 6))
        alpha = self.r.choice([0.01, 0.2, 0.3, self.r.uniform(0, 1), self.r.uniform(-2, 3)])
        x = self.m.input("x", shape, sin, self.zero())
        y = self.m.output("y", shape, sout, self.zero())
        self.m.operator("LEAKY_RELU", [x], [y], alpha=alpha)
        self.text = f"{shape} alpha {alpha:g} scale {sin:g} -> {sout:g}"

    def prelu(self):
        if self.r.random() < 0.6:  # as networks have it: by channel
            shape = [1, self.size(), self.size(), self.channels(12)]
            alpha = [1, 1, shape[3]]
            sides, out = [shape, alpha], shape
        else:
            sides, out = self.sides()
            sides[0] = out
        if self.r.random() < 0.15:
            sides[1] = [1] * len(out)
        sin, salpha = self.scale(), float(np.float32(2 ** self.r.uniform(-10, -5)))
        sout = self.result_scale(sin * 2 ** self.r.uniform(-3, 3))
        x = self.m.input("x", sides[0], sin, self.zero())
        if self.r.random() < 0.85:
            a = self.m.tensor("alpha", sides[1], salpha, self.zero(), self.weights(sides[1]))
        else:
            a = self.m.input("alpha", sides[1], salpha, self.zero())
        y = self.m.output("y", out, sout, self.zero())
        self.m.operator("PRELU", [x, a], [y])
        self.text = f"{sides[0]} {sides[1]} scales {sin:g} {salpha:g} -> {sout:g}"

    def reduce(self):
        op = self.r.choice(["REDUCE_MAX", "REDUCE_MAX", "REDUCE_MIN"])
        shape = self.shape(product=600)
        if self.r.random() < 0.08:
            shape = [self.r.choice([300, 257, 510, 521, 700])]
        axes = self.r.sample(range(len(shape)), self.r.randint(1, len(shape)))
        keep = self.r.random() < 0.5
        out = [1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes]
        named = [a - len(shape) if self.r.random() < 0.2 else a for a in axes]
        scale, zero = self.scale(), self.zero()
        x = self.m.input("x", shape, scale, zero)
        a = self.m.tensor("axes", [len(named)], data=np.array(named, np.int32), dtype=INT32)
        y = self.m.output("y", out, scale, zero)
        self.m.operator(op, [x, a], [y], keep_dims=keep)
        self.text = f"{op} {shape} over {named} {'kept' if keep else ''}"

    def arg(self):
        op = self.r.choice(["ARG_MAX", "ARG_MAX", "ARG_MAX", "ARG_MIN"])
        shape = self.shape(product=400)
        if self.r.random() < 0.12:
            shape = [self.r.choice([1, 2]), self.r.choice([256, 300, 511, 700, 1001]),
                     self.r.choice([1, 1, 2])]
        axis = self.r.choice([len(shape) - 1, self.r.randrange(len(shape))])
        if max(shape) > 255:
            axis = 1
        out = shape[:axis] + shape[axis + 1:]
        x = self.m.input("x", shape, self.scale(), self.zero())
        named = axis - len(shape) if self.r.random() < 0.5 else axis
        a = self.m.tensor("axis", [1], data=np.array([named], np.int32), dtype=INT32)
        kind = self.r.choice([INT32, INT64])
        y = self.m.output("y", out, dtype=kind)
        self.m.operator(op, [x, a], [y], output_type=kind)
        if self.r.random() < 0.5:  # several of the largest, also none but the least
            few = self.weights([2 if self.r.random() < 0.8 else 1])
            self.raw = np.array(self.r.choices(few, k=int(np.prod(shape))), few.dtype).tobytes()
        self.text = f"{op} {shape} axis {named} type {kind}"


PLAN = [
    ("sub", 110),
    ("maximum", 110),
    ("leaky_relu", 50),
    ("prelu", 90),
    ("reduce", 110),
    ("arg", 110),
]

if __name__ == "__main__":
    write(Arith, PLAN)
