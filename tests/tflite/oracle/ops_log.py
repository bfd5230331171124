#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_log.py OUT [SEED]: as ops.py, of LOG_SOFTMAX: alone, or with work of the machine's before
and behind it.

Left out: input scales above 16 and below 2^-24, which npuc refuses; output scales other than
1/16, which TFLite refuses.
"""
import numpy as np

from ops import Case, write

# Scale, elements that are a row's largest, what others are below it.  The sum of their
# exponentials is where TFLite's logarithm falls: the fourth element from behind has another
# result than with a sum that is 1 less or more.
DIPS = [
    (0.0625, 172, [12, 1, 39, 69]),
    (0.0625, 172, [33, 2, 11, 149]),
    (0.0625, 172, [39, 1, 12, 69]),
    (0.0625, 172, [60, 2, 8, 184]),
    (0.05, 172, [15, 2, 40, 217]),
    (0.05, 176, [177, 0, 2, 199]),
    (0.05, 179, [213, 8, 15, 188]),
    (0.05, 239, [186, 0, 39, 109]),
    (0.03, 159, [111, 14, 25, 165]),
    (0.03, 171, [69, 2, 64, 216]),
    (0.03, 252, [6, 3, 17, 153]),
    (0.03, 251, [225, 1, 24, 232]),
]
# The same where a result goes to and fro as often as it can: between the eighth change and
# the ninth.
NINE = [
    (0.0221426059, 3936, [34, 8, 54, 57]),
    (0.00912174862, 3905, [56, 33, 202, 217]),
]


class Log(Case):
    def rows(self):
        """Random; or what is near its row's largest, and ties, where sums are largest."""
        if self.r.random() < 0.5:
            cols = self.r.choice([1, 2, 3, 10, 29, self.r.randint(1, 40)])
        else:
            cols = self.r.choice([100, 128, 200, 255, 256, 257, self.r.randint(41, 300)])
        most = max(1, 600 // cols)
        dims = self.r.choice([[], [], [self.r.randint(1, most)], [1, self.r.randint(1, most)]])
        return dims + [cols]

    def numbers(self, shape):
        """A row's elements lie so far below its largest at most."""
        lines = []
        for _ in range(int(np.prod(shape[:-1]))):
            far = self.r.choice([0, 1, 3, 10, 40, 255])
            top = self.r.randint(far, 255)
            lines += [top - self.r.randint(0, far) for _ in range(shape[-1])]
        return np.array(lines) - 128 + self.up

    def log_softmax(self):
        shape, kind = self.rows(), np.uint8 if self.up else np.int8
        low, high = (-7, 0) if self.r.random() < 0.8 else (-20, 3.9)
        scale = 2 ** self.r.uniform(low, high)
        if self.r.random() < 0.3:
            scale = 2.0 ** self.r.randint(-8, 0)  # ties
        scale, zero = float(np.float32(scale)), self.zero()
        before, behind = self.r.random() < 0.3, self.r.random() < 0.4
        x = self.m.input("x", shape, scale, zero)
        last = x
        if before:
            last = self.m.tensor("twice", shape, scale, zero)
            self.m.operator("MAXIMUM", [x, x], [last])
        make = self.m.tensor if behind else self.m.output
        y = make("log", shape, 1 / 16, 127 + self.up)
        self.m.operator("LOG_SOFTMAX", [last], [y])
        if behind:
            z = self.m.output("y", shape, float(np.float32(self.r.uniform(0.03, 0.1))),
                              self.zero())
            self.m.operator("QUANTIZE", [y], [z])
        self.raw = self.numbers(shape).astype(kind).tobytes()
        self.text = f"{shape} scale {scale:g}{' before' * before}{' behind' * behind}"

    def to_and_fro(self, some=None):
        scale, most, others = self.r.choice(some or DIPS)
        scale, shape = float(np.float32(scale)), [most + len(others)]
        x = self.m.input("x", shape, scale, self.zero())
        y = self.m.output("log", shape, 1 / 16, 127 + self.up)
        self.m.operator("LOG_SOFTMAX", [x], [y])
        line = np.array([0] * most + others)
        kind = np.uint8 if self.up else np.int8
        self.raw = (127 + self.up - line).astype(kind).tobytes()
        self.text = f"{shape} scale {scale:g}"

    def nine_times(self):
        self.to_and_fro(NINE)


PLAN = [
    ("log_softmax", 120),
    ("to_and_fro", 30),
    ("nine_times", 3),
]

if __name__ == "__main__":
    write(Log, PLAN)
