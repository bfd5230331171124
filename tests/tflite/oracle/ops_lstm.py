#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_lstm.py OUT [SEED]: as ops.py, of UNIDIRECTIONAL_SEQUENCE_LSTM with int8 activations and
a cell of 16 bits, several inferences, each of which finds the states that the one before has
left.

Left out: cells whose scale is no power of two or not 2^-15 to 2^-9, which TFLite refuses, or
for which it has no tanh; sums that leave 32 bits, shifted left by their multiplier.
"""
import math

import numpy as np

from ops import Case, write
from tflite_writer import INT16, INT32, TANH, Model

GATES = ["input", "forget", "cell", "output"]


class Lstm(Case):
    def gates(self, what, cells, depth, scale):
        """Weights of each; what they give is spread over as much as gates tell apart, less,
        or far more, so that it is clamped."""
        tensors, scales = [], []
        for gate in GATES:
            wanted = self.r.choice([1, 2, 2, 4, 16, 0.1])
            if self.r.random() < 0.1:
                wanted = 2.0 ** self.r.uniform(-10, 6)
            spread = math.sqrt(depth) * 74 * 74
            ws = float(np.float32(wanted / (spread * scale)))
            tensors.append(self.m.tensor(f"{what} to {gate}", [cells, depth], ws, 0,
                                         self.weights([cells, depth])))
            scales.append(ws)
        return tensors, scales

    def bias(self, gate, cells, depth, scale):
        most = int(min(self.r.choice([1, 0.2, 4]) * math.sqrt(depth) * 5500, 1 << 20))
        values = [self.r.randint(-most, most) for _ in range(cells)]
        return self.m.tensor(f"bias {gate}", [cells], scale, 0, np.array(values, np.int32),
                             dtype=INT32)

    def outputs(self, cells):
        return cells

    def output(self, first, cells, outputs, hidden, zh, sh, zstate):
        """The output, the projection's weights and bias, options."""
        return self.m.output("y", first + [cells], hidden, zh), [-1, -1], {}

    def lstm(self):
        self.up, self.m = 0, Model()
        batch, times = self.r.choice([1, 1, 1, 2, 3]), self.r.choice([1, 2, 3, 4])
        cells, inputs = self.r.choice([1, 2, 3, 5, 8, 17]), self.r.choice([1, 3, 8, 20, 33])
        if batch * times * cells > 40:
            batch, times = 1, 2
        time_major = self.r.random() < 0.4
        first = [times, batch] if time_major else [batch, times]
        sin, zin = float(np.float32(2 ** self.r.uniform(-8, 0))), self.zero()
        log2 = self.r.choice([-12, -11, -11, -15, -14, -13, -10, -9])
        hidden = float(np.float32(2 ** self.r.uniform(-8, -6)))
        if self.r.random() < 0.15:
            hidden = 2.0 ** self.r.choice([-9, -7, -4])
        zh = self.zero()
        sh, zstate = hidden, zh
        if self.r.random() < 0.3:  # another one for what comes back
            sh, zstate = float(np.float32(2 ** self.r.uniform(-8, -6))), self.zero()
        clip = self.r.choice([0, 0, 0, 0.3, 1, 6.1])
        outputs = self.outputs(cells)
        x = self.m.input("x", first + [inputs], sin, zin)
        wx, scales = self.gates("x", cells, inputs, sin)
        wh, _ = self.gates("h", cells, outputs, sh)
        bias = [self.bias(g, cells, inputs, s * sin) for g, s in zip(GATES, scales)]
        h = self.m.tensor("h", [batch, outputs], sh, zstate, variable=True)
        c = self.m.tensor("c", [batch, cells], 2.0**log2, 0, dtype=INT16, variable=True)
        none = [-1] * 4
        between = [self.m.tensor(f"inside {i}", [], 2**-12, 0, dtype=INT16) for i in range(4)]
        between.append(self.m.tensor("hidden", [], hidden, zh))
        y, projection, options = self.output(first, cells, outputs, hidden, zh, sh, zstate)
        self.m.operator("UNIDIRECTIONAL_SEQUENCE_LSTM",
                        [x] + wx + wh + none[:3] + bias + projection + [h, c] + none, [y],
                        between, act=TANH, cell_clip=clip, time_major=time_major,
                        **options)
        self.times = self.r.choice([1, 2, 3])
        self.text = (f"{batch} x {times} x {inputs} -> {cells} {'time major ' * time_major}cell "
                     f"2^{log2} clip {clip} hidden {hidden:.4g} {zh}, {self.times} times")


PLAN = [
    ("lstm", 24),
]

if __name__ == "__main__":
    write(Lstm, PLAN)
