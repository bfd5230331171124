#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_current.py OUT [SEED]: as ops.py, of operators of 8 bits that tflite-runtime 2.14 does not
have: requirements_current.txt names the interpreter.

Left out: SQRT of negative numbers, where TFLite stops.
"""
from ops import write
from ops_unseen import Unseen


class Current(Unseen):
    def sqrt(self):
        self.int8_only()
        sin, zin = self.scale(), self.zero()
        sout = self.result_scale((sin * 256) ** 0.5 / 256 * 2 ** self.r.uniform(-4, 2))
        self.unary("SQRT", sin, zin, sout, self.zero(), zin)

    def log(self):
        self.int8_only()
        sin = self.scale()
        self.unary("LOG", sin, self.zero(), self.result_scale(2 ** self.r.uniform(-8, 0)),
                   self.zero())

    def neg(self):
        """One scale, zero points that are each other's negative: TFLite takes no notice."""
        self.int8_only()
        sin, zin = self.scale(), max(self.zero(), -127)
        self.unary("NEG", sin, zin, sin, -zin)


PLAN = [
    ("sqrt", 40),
    ("log", 40),
    ("neg", 10),
]

if __name__ == "__main__":
    write(Current, PLAN)
