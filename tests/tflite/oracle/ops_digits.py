#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_digits.py OUT [SEED]: as ops.py, of what takes numbers of more than 8 bits: SVDF with
int8 inputs, several inferences, each of which finds the state that the one before has left;
RESIZE_BILINEAR of int8 to any size.  For uint8 TFLite's weights are float32.

Left out of SVDF: sums over time that leave 32 bits, undefined in C++; a fused activation other than
RELU, which TFLite refuses (RELU itself it does not do).
"""
import math

import numpy as np

from ops import Case, write
from tflite_writer import INT16, INT32, RELU, Model

NUMBERS = 74  # spread of random int8 numbers


class Digits(Case):
    def unit(self, count):
        """A unit's weights in time: sums of their magnitudes stay below 1.5 * 2^15, so that
        sums stay in 32 bits; one may be as large as 16 bits are."""
        some = [0, 1, -1, 127, 128, -128, -129, 255, 256, -256]
        most = min(32767, 49152 // count)
        few = self.r.random() < 0.5
        if few:
            most = 16000 // count
        got = [self.r.choice(some) if self.r.random() < 0.2 else self.r.randint(-most, most)
               for _ in range(count)]
        if few:
            got[self.r.randrange(count)] = self.r.choice([32767, -32767, 32640, 32639, -32640])
        return got if sum(map(abs, got)) <= 49152 else [n // 4 for n in got]

    def power(self, real):
        """The next power of two, or just below it: digits that carry far, ties."""
        below = self.r.choice([0, 2**-23])
        return float(np.float32(2.0 ** math.ceil(math.log2(real))) * np.float32(1 - below))

    def svdf(self):
        self.up, self.m = 0, Model()  # TFLite has it for int8, not for uint8
        batch = self.r.choice([1, 1, 1, 2, 3])
        rank, units = self.r.choice([1, 1, 2, 3]), self.channels(12)
        inputs, memory = self.channels(40), self.r.choice([1, 2, 3, 5, self.r.randint(1, 10)])
        filters = rank * units
        zin, zout = self.zero(), self.zero()
        sin, sw, st = self.scale(), self.scale(), 2 ** self.r.uniform(-18, -12)
        # Of 16 bits most are used, some are left, or it is clamped.
        spread = math.sqrt(inputs) * NUMBERS * math.hypot(NUMBERS, zin)
        wanted = 32767 * 2 ** self.r.choice([-1, -1, -2, -4, -9, 0.5, 1])
        far = self.r.random() < 0.4
        if far:
            sin, sw = self.power(sin), 2.0 ** math.ceil(math.log2(sw))
        state = float(np.float32(max(sin * sw * spread / wanted, sin * sw * 1.01)))
        features = self.weights([filters, inputs])
        if far:
            state = 2.0 ** math.ceil(math.log2(state))
            if self.r.random() < 0.5:  # sums of a few steps
                state = 2.0 ** math.ceil(math.log2(sin * sw) + 1)
                features = np.sign(features) * (features % 3 == 0)
                wanted = 30 * math.sqrt(inputs)
        times = np.array([self.unit(rank * memory) for _ in range(units)],
                         np.int16).reshape(filters, memory)
        bias = None
        if self.r.random() < 0.8:
            few = self.r.choice([100, 1 << 20, 1 << 28])
            bias = np.array([self.r.randint(-few, few) for _ in range(units)], np.int32)
            if wanted < 1000:
                bias //= 1 << 14
        # The spread of a unit's sum is to be about that of int8.
        sums = math.sqrt(rank * memory) * min(wanted, 20000) * (np.std(times) + 1)
        out = float(np.float32(max(state * st * sums / (64 * self.r.uniform(0.3, 3)),
                                   state * st * 2**9)))
        if far:
            st, out = self.power(st), 2.0 ** math.ceil(math.log2(out))
        x = self.m.input("x", [batch, inputs], sin, zin)
        wf = self.m.tensor("features", features.shape, sw, 0, features)
        wt = self.m.tensor("times", times.shape, st, 0, times, dtype=INT16)
        b = -1
        if bias is not None:
            b = self.m.tensor("bias", [units], state * st, 0, bias, dtype=INT32)
        s = self.m.tensor("state", [batch, memory * filters], state, 0, dtype=INT16,
                          variable=True)
        y = self.m.output("y", [batch, units], out, zout)
        self.m.operator("SVDF", [x, wf, wt, b, s], [y], rank=rank, act=RELU)
        self.times = self.r.randint(2, memory + 2)
        self.text = f"{batch}x{inputs} -> {units}, rank {rank}, {memory} kept, {self.times} times"

    def resize_bilinear(self):
        self.up, self.m = 0, Model()
        self.to_any_size()

    def to_any_size(self):
        kind = self.r.choice(["plain", "half", "align"])
        c, batch = self.channels(8), 2 if self.r.random() < 0.15 else 1
        while True:
            h, w, oh, ow = (self.r.randint(1, 11) for _ in range(4))
            if oh * ow * c * batch <= 400:
                break
        scale, zero = self.scale(), self.zero()
        x = self.m.input("x", [batch, h, w, c], scale, zero)
        size = self.m.tensor("size", [2], data=np.array([oh, ow], np.int32), dtype=INT32)
        y = self.m.output("y", [batch, oh, ow, c], scale, zero)
        self.m.operator("RESIZE_BILINEAR", [x, size], [y], align_corners=kind == "align",
                        half_pixel=kind == "half")
        self.text = f"{batch}x{h}x{w}x{c} -> {oh}x{ow} {kind}"


PLAN = [
    ("svdf", 60),
    ("resize_bilinear", 60),
]

if __name__ == "__main__":
    write(Digits, PLAN)
