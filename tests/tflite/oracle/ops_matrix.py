#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_matrix.py OUT [SEED]: as ops.py, of transposed convolutions, products of matrices and
images that are resized between their elements.

RESIZE_BILINEAR by ratios whose weights, products of two fractions of 1024, have more than 8
bits is in ops_digits.py.  Left out, because TFLite multiplies other numbers than are there, BATCH_MATMUL with adj_x where y has
fewer matrices than x.
"""
import numpy as np

from ops import ACTIVATIONS, Case, write
from tflite_writer import INT32, SAME, VALID, Model


class Matrix(Case):
    def turned_window(self):
        """Sizes of an image, a kernel and what they make."""
        while True:
            h, w, c, n = self.size(7), self.size(7), self.channels(12), self.channels(12)
            kh, kw = (self.r.choice([1, 2, 3, 3, 4, 5, self.r.randint(1, 7)]) for _ in "hw")
            sh, sw = (self.r.choice([1, 2, 2, 2, 3, 4]) for _ in "hw")
            padding = self.r.choice([SAME, VALID])
            oh, ow = ((side - 1) * s + self.r.randint(1, s) if padding == SAME
                      else (side - 1) * s + k + self.r.randint(0, s - 1)
                      for side, s, k in ((h, sh, kh), (w, sw, kw)))
            if n * kh * kw * c <= 4000 and oh * ow * n <= 1500:
                return h, w, c, n, kh, kw, sh, sw, padding, oh, ow

    def transpose_conv(self):
        h, w, c, n, kh, kw, sh, sw, padding, oh, ow = self.turned_window()
        batch = 2 if self.r.random() < 0.1 else 1
        sin, zin, per_channel = self.scale(), self.zero(), self.r.random() < 0.75
        zw, per_channel = (self.zero(), False) if self.up else (0, per_channel)
        depth = -(-kh // sh) * -(-kw // sw) * c
        ws, sout, bias = self.products(n, depth, sin, zin, zw, per_channel)
        act = self.r.choice(ACTIVATIONS)
        shape = self.m.tensor("shape", [4], data=np.array([batch, oh, ow, n], np.int32),
                              dtype=INT32)
        f = self.m.tensor("w", [n, kh, kw, c], ws, zw, self.weights([n, kh, kw, c]))
        x = self.m.input("x", [batch, h, w, c], sin, zin)
        y = self.m.output("y", [batch, oh, ow, n], sout, self.zero())
        self.m.operator("TRANSPOSE_CONV", [shape, f, x] + self.bias(bias, sin, ws), [y],
                        padding=padding, stride_h=sh, stride_w=sw, act=act)
        self.text = (f"{batch}x{h}x{w}x{c} -> {oh}x{ow}x{n} kernel {kh}x{kw} stride {sh}x{sw} "
                     f"{'SAME' if padding == SAME else 'VALID'} act {act} "
                     f"{'per channel' if per_channel else 'per tensor'}"
                     f"{'' if bias else ' no bias'}")

    def resize_bilinear(self):
        kind = self.r.choice(["plain", "half", "align"])
        c, batch = self.channels(12), 2 if self.r.random() < 0.1 else 1
        while True:
            if kind == "align":
                sides = [(self.r.randint(1, 6), 2 ** self.r.randint(0, 3)) for _ in "hw"]
                sides = [(n, (n - 1) * f + 1) for n, f in sides]
            else:
                top = 3 if kind == "half" else 4
                sides = [(n, n * 2 ** self.r.randint(0, top))
                         for n in (self.r.randint(1, 6) for _ in "hw")]
            if self.r.random() < 0.15:
                sides[self.r.randrange(2)] = (1, self.r.randint(1, 9))
            if kind != "align" and self.r.random() < 0.1:  # smaller, by a whole number
                n = self.r.randint(1, 4)
                sides[self.r.randrange(2)] = (n * 2, n)
            if sides[0][1] * sides[1][1] * c <= 2500:
                break
        (h, oh), (w, ow) = sides
        scale, zero = self.scale(), self.zero()
        x = self.m.input("x", [batch, h, w, c], scale, zero)
        size = self.m.tensor("size", [2], data=np.array([oh, ow], np.int32), dtype=INT32)
        y = self.m.output("y", [batch, oh, ow, c], scale, zero)
        self.m.operator("RESIZE_BILINEAR", [x, size], [y], align_corners=kind == "align",
                        half_pixel=kind == "half")
        self.text = f"{batch}x{h}x{w}x{c} -> {oh}x{ow} {kind}"

    def factors(self):
        """Shapes of both and of the product, what is turned, products in each sum."""
        m, n, k = (self.size(20) for _ in "mnk")
        outer = [self.size(4) for _ in range(self.r.randint(0, 2))]
        sides = [list(outer), list(outer)]
        for side in sides:
            for d in range(len(side)):
                if self.r.random() < 0.2:
                    side[d] = 1
        if outer and self.r.random() < 0.15:
            which = self.r.randrange(2)
            sides[which] = sides[which][1:]
        adj = [self.r.random() < 0.4 for _ in "xy"]
        if np.prod(sides[1]) < np.prod(sides[0]) or len(sides[1]) < len(sides[0]):
            adj[0] = False
        sides[0] += [k, m] if adj[0] else [m, k]
        sides[1] += [n, k] if adj[1] else [k, n]
        out = list(np.broadcast_shapes(sides[0][:-2], sides[1][:-2])) + [m, n]
        return sides, out, adj, k

    def batch_matmul(self):
        self.up, self.m = 0, Model()  # TFLite has it for int8, not for uint8
        sides, out, adj, k = self.factors()
        sa, sb = self.scale(), self.scale()
        sout = self.result_scale(sa * sb * 74 * 74 * k**0.5 / 64 * 2 ** self.r.uniform(-1, 2))
        constant = 1 if self.r.random() < 0.3 else None
        places = []
        for i, (side, scale) in enumerate(zip(sides, (sa, sb))):
            if i == constant:
                places.append(self.m.tensor("y", side, scale, self.zero(), self.weights(side)))
            else:
                places.append(self.m.input("xy"[i], side, scale, self.zero()))
        y = self.m.output("z", out, sout, self.zero())
        self.m.operator("BATCH_MATMUL", places, [y], adj_x=adj[0], adj_y=adj[1])
        self.text = f"{sides[0]} {sides[1]} turned {adj} constant {constant}"


PLAN = [
    ("transpose_conv", 150),
    ("resize_bilinear", 120),
    ("batch_matmul", 110),
]

if __name__ == "__main__":
    write(Matrix, PLAN)
