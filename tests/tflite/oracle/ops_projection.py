#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_projection.py OUT [SEED]: as ops_lstm.py, with a projection."""
import numpy as np

from ops import write
from ops_lstm import Lstm
from tflite_writer import INT32


class Projection(Lstm):
    def outputs(self, cells):
        return self.r.choice([1, 2, 3, 6, cells])

    def output(self, first, cells, outputs, hidden, zh, sh, zstate):
        ws = float(np.float32(self.r.choice([1, 2, 0.3]) * sh / hidden / 74 / cells**0.5))
        w = self.m.tensor("projection", [outputs, cells], ws, 0, self.weights([outputs, cells]))
        bias = -1
        if self.r.random() < 0.6:
            values = [self.r.randint(-4000, 4000) for _ in range(outputs)]
            bias = self.m.tensor("projection bias", [outputs], hidden * ws, 0,
                                 np.array(values, np.int32), dtype=INT32)
        y = self.m.output("y", first + [outputs], sh, zstate)
        clip = self.r.choice([0, 0, 40 * sh])
        self.note = f"projection bias {bias >= 0} clip {clip:g}"
        return y, [w, bias], {"proj_clip": clip}

    def lstm(self):
        super().lstm()
        self.text += f", {self.note}"


PLAN = [
    ("lstm", 24),
]

if __name__ == "__main__":
    write(Projection, PLAN)
