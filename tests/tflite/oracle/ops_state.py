#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ops_state.py OUT [SEED]: as ops.py, of models with variables: several inferences, each of
which finds what the one before has left.

Left out, because TFLite refuses it: reading a variable that nothing has assigned.
"""

from ops import Case, write
from tflite_writer import RELU, RESOURCE, VALID, Graph


class State(Case):
    def handle(self, graph, name):
        t = graph.tensor("handle " + name, [], dtype=RESOURCE)
        graph.operator("VAR_HANDLE", [], [t], container="", shared_name=name)
        return t

    def begin(self, names, shape, scale, zero):
        """Variables that another graph gives their first values."""
        init = Graph(self.m.dtype)
        self.m.graphs.append(init)
        for name in names:
            v = init.tensor("first " + name, shape, scale, zero, self.weights(shape))
            init.operator("ASSIGN_VARIABLE", [self.handle(init, name), v], [])
        self.m.operator("CALL_ONCE", [], [], graph=1)
        self.times = self.r.randint(2, 5)

    def variables(self):
        """Reads, sums and assignments in any order."""
        shape, scale, zero = self.shape(product=200), self.scale(), self.zero()
        names = ["one", "two", "three"][: self.r.randint(1, 3)]
        self.begin(names, shape, scale, zero)
        handles = [self.handle(self.m, name) for name in names]
        values = [self.m.input("x", shape, scale, zero)]
        made = 0
        while made < 6 or not self.m.outputs:
            kind, h = self.r.choice(["read", "assign", "add", "add"]), self.r.choice(handles)
            made += 1
            if kind == "read":
                values.append(self.m.tensor(f"read {made}", shape, scale, zero))
                self.m.operator("READ_VARIABLE", [h], [values[-1]])
            elif kind == "assign":
                self.m.operator("ASSIGN_VARIABLE", [h, self.r.choice(values)], [])
            else:
                new = self.m.tensor if made < 6 else self.m.output
                a, b = self.r.choice(values), values[-1]
                values.append(new(f"sum {made}", shape, scale, zero))
                self.m.operator("ADD", [a, b], [values[-1]], act=self.r.choice([0, RELU]),
                                **self.binary_options)
        self.text = f"{shape} of {names} {self.times} times"

    def stream(self):
        """The last pixels of an endless row: pooled with a new one, and kept."""
        c, kept = self.channels(12), self.r.randint(1, 5)
        scale, zero = self.scale(), self.zero()
        self.begin(["pixels"], [1, kept, 1, c], scale, zero)
        x = self.m.input("x", [1, 1, 1, c], scale, zero)
        old = self.m.tensor("old", [1, kept, 1, c], scale, zero)
        both = self.m.tensor("both", [1, kept + 1, 1, c], scale, zero)
        new = self.m.output("new", [1, kept, 1, c], scale, zero)
        h = self.handle(self.m, "pixels")
        self.m.operator("READ_VARIABLE", [h], [old])
        self.m.operator("CONCATENATION", [old, x], [both], axis=1)
        self.m.operator(self.r.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]), [both], [new],
                        padding=VALID, stride_h=1, stride_w=1, filter_h=2, filter_w=1)
        self.m.operator("ASSIGN_VARIABLE", [h, new], [])
        self.text = f"{kept} of {c} channels, {self.times} times"


PLAN = [
    ("variables", 60),
    ("stream", 30),
]

if __name__ == "__main__":
    write(State, PLAN)
