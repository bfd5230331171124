#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_once.py OUT [SEED]: as ops.py, of FULLY_CONNECTED whose sums lie about those at which
results change: up to 30 bits, by their biases, and ties.  TFLite has rounded it once since
2.20; for some of the channels no multiplier of 31 bits does the same.
"""
import math

import numpy as np

from ops import Case, write


class Once(Case):
    def scale(self):
        scale = super().scale()
        return 2.0 ** round(math.log2(scale)) if self.r.random() < 0.3 else scale

    @staticmethod
    def critical(real, results):
        """Of the sums at which results begin, the one whose multiplier has the least room."""
        room = []
        for y in results:
            least = math.ceil((y - 0.5) / real)
            room.append((abs(least * real - (y - 0.5)) / least, least))
            if least > 1:
                room.append((abs((y - 0.5) - (least - 1) * real) / least, least))
        return min(room)[1]

    def fully_connected(self):
        rows, n = self.r.randint(1, 12), self.r.randint(1, 24)
        sin, zin, zout, base = self.scale(), self.zero(), self.zero(), self.scale()
        per_channel = not self.up and self.r.random() < 0.7
        ws = [float(np.float32(base * self.r.uniform(0.3, 1)))
              for _ in range(n if per_channel else 1)]
        low, high = self.r.choice([(-21, -10), (-12, -5)])
        sout = self.result_scale(sin * base / 2 ** self.r.uniform(low, high))
        if self.r.random() < 0.3:  # ties
            ws = [2.0 ** round(math.log2(w)) for w in ws]
            sout = self.result_scale(2.0 ** round(math.log2(sout)) / self.r.choice([1, 3, 5]))
        above, below = self.up + 127 - zout, zout - (self.up - 128)
        bias = []
        for i in range(n):
            sign = 1 if above > 0 and (not below or self.r.random() < 0.5) else -1
            most = above if sign > 0 else below
            results = range(1, most + 1) if self.r.random() < 0.8 else [self.r.randint(1, most)]
            least = self.critical(sin * ws[i % len(ws)] / sout, results)
            bias.append(sign * (least - self.r.randint(0, 1)))
        zw = self.zero() if self.up else 0
        kind = np.uint8 if self.up else np.int8
        data = [min(max(zw + self.r.choice([-1, 1]), self.up - 128), self.up + 127)
                for _ in range(n)]
        x = self.m.input("x", [rows, 1], sin, zin)
        f = self.m.tensor("w", [n, 1], ws, zw, np.array(data, kind).reshape(n, 1))
        y = self.m.output("y", [rows, n], sout, zout)
        self.m.operator("FULLY_CONNECTED", [x, f] + self.bias(bias, sin, ws), [y],
                        act=self.r.choice([0, 0, 0, 1]), keep_num_dims=False)
        near = [min(max(zin + self.r.randint(-1, 1), self.up - 128), self.up + 127)
                for _ in range(rows)]
        self.raw = np.array(near, kind).tobytes()
        self.text = (f"{rows} -> {n} {'per channel' if per_channel else 'per tensor'} "
                     f"scales {sin * base:g} -> {sout:g}")


PLAN = [
    ("fully_connected", 90),
]

if __name__ == "__main__":
    write(Once, PLAN)
