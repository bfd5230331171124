#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_wide.py OUT [SEED]: as ops.py, of int16 activations in operators that ops_int16.py does
not have: transposed convolutions, products of matrices, images that are resized between their
elements, variables.

Left out, because TFLite refuses them: zero points other than 0; ADD and SUB by powers of two
whose operands are both finer than the result, or one of which is coarser, or whose shapes
differ; and by 2^16 and more, where it rounds by a mask that has no room.  And what ops_matrix.py and ops_int16.py leave out.
"""
import numpy as np

from ops import ACTIVATIONS, write
from ops_digits import Digits
from ops_int16 import NUMBERS, Int16
from ops_matrix import Matrix
from ops_state import State
from tflite_writer import INT32, INT64, INT8, SAME


class Wide(Int16):
    begin = State.begin
    handle = State.handle
    stream = State.stream
    factors = Matrix.factors
    turned_window = Matrix.turned_window

    def all_edges(self):
        self.edges(sum(int(np.prod(self.m._tensors[i][1])) for i in self.m.inputs))

    def add_shifted(self):
        """Scales that are powers of two, or nearly: one operand is shifted."""
        op, shape = self.r.choice(["ADD", "SUB"]), self.shape()
        scales = [2.0 ** self.r.randint(-16, 0)] * 3
        scales[self.r.randrange(2)] *= 2.0 ** -self.r.choice([0, 1, 2, 3, 8, 14, 15])
        if self.r.random() < 0.3:
            scales = [s * self.r.uniform(0.9985, 1.0015) for s in scales]
        sa, sb, sout = (float(np.float32(s)) for s in scales)
        a = self.m.input("a", shape, sa, 0)
        if self.r.random() < 0.3:
            b = self.m.tensor("b", shape, sb, 0, self.weights(shape))
        else:
            b = self.m.input("b", shape, sb, 0)
        y = self.m.output("y", shape, sout, 0)
        act = self.r.choice(ACTIVATIONS)
        self.m.operator(op, [a, b], [y], act=act, pot_scale=True)
        self.all_edges()
        self.text = f"{op} {shape} scales {sa:g} {sb:g} -> {sout:g} act {act}"

    def variables(self):
        State.variables(self)

    def resize_bilinear(self):
        few = self.r.random() < 0.3
        Matrix.resize_bilinear(self) if few else Digits.to_any_size(self)
        self.all_edges()

    def transpose_conv(self):
        while True:
            h, w, c, n, kh, kw, sh, sw, padding, oh, ow = self.turned_window()
            if oh * ow * n <= 400:
                break
        batch = 2 if self.r.random() < 0.1 else 1
        sin, per_channel = self.scale(), self.r.random() < 0.75
        depth = -(-kh // sh) * -(-kw // sw) * c
        ws, sout, bias = self.products(n, depth, sin, 0, 0, per_channel)
        act = self.r.choice(ACTIVATIONS)
        shape = self.m.tensor("shape", [4], data=np.array([batch, oh, ow, n], np.int32),
                              dtype=INT32)
        data = self.filters([n, kh, kw, c])
        f = self.m.tensor("w", [n, kh, kw, c], ws, 0, data, INT8)
        kind = INT64
        if bias and self.sums32(bias, self.bound(data, 0)):
            kind = INT32
            sout = self.shifted(sout, sin, ws)
        x = self.m.input("x", [batch, h, w, c], sin, 0)
        y = self.m.output("y", [batch, oh, ow, n], sout, 0)
        self.m.operator("TRANSPOSE_CONV", [shape, f, x] + self.bias(bias, sin, ws, kind),
                        [y], padding=padding, stride_h=sh, stride_w=sw, act=act,
                        **self.bias_type(bias, kind))
        self.all_edges()
        self.text = (f"{batch}x{h}x{w}x{c} -> {oh}x{ow}x{n} kernel {kh}x{kw} stride {sh}x{sw} "
                     f"{'SAME' if padding == SAME else 'VALID'} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if bias else ' no bias'}{' int32' if kind == INT32 else ''}")

    def batch_matmul(self):
        while True:
            sides, out, adj, k = self.factors()
            if np.prod(out) <= 300:
                break
        sa, sb = self.scale(), self.scale()
        spread = NUMBERS * NUMBERS * k**0.5
        wanted = 2 ** self.r.choice([self.r.uniform(-1, 2), self.r.uniform(-12, 14)])
        sa, sb, sout = self.powers(sa, sb, self.result_scale(
            max(sa * sb * spread / 16384 * wanted, 1.1 * sa * sb * k)))
        constant = 1 if self.r.random() < 0.3 else None
        places = []
        for i, (side, scale) in enumerate(zip(sides, (sa, sb))):
            if i == constant:
                places.append(self.m.tensor("y", side, scale, 0, self.weights(side)))
            else:
                places.append(self.m.input("xy"[i], side, scale, 0))
        y = self.m.output("z", out, sout, 0)
        self.m.operator("BATCH_MATMUL", places, [y], adj_x=adj[0], adj_y=adj[1])
        self.all_edges()
        self.text = (f"{sides[0]} {sides[1]} turned {adj} constant {constant} scales {sa:g} {sb:g} "
                     f"-> {sout:g}")


PLAN = [
    ("transpose_conv", 30),
    ("batch_matmul", 30),
    ("resize_bilinear", 30),
    ("add_shifted", 30),
    ("variables", 10),
    ("stream", 10),
]

if __name__ == "__main__":
    write(Wide, PLAN)
