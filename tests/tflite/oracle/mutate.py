#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate.py OUT SEED COUNT PACK...: change models of the packs and ask TFLite about each.

One field of a model changes at a time, sometimes two: a size or the number of dimensions of a
shape, a type, a scale, a zero point, the quantized dimension, a constant number (axes,
paddings, bounds), an option, the tensors that an operator names.  OUT is a pack as ops.py
describes it.  A model whose output has 0 bytes must be refused: TFLite refuses it, or computes
a shape other than the one that the file declares for an output.  Of those it also has the
model that declares the computed shape.

Left out are models that end TFLite's process, that take it more than ten seconds, and whose
results depend on memory that nobody wrote.

    test_ops --mutants OUT 'npu:0?engine=fast'

then lists what npuc computes otherwise, and what it takes and must not.

mutate.py --keep OUT SOURCE...: make a pack of a .tflite file, a pack, or single models of one,
PACK:NUMBER,NUMBER...; with r behind its number a model must be refused, whatever TFLite makes
of it.  data/tflite/mutants.pack.gz has models that npuc once got wrong.

mutate.py --check PACK...: read each model of packs that tflite_writer has written, and write it
again; fail if that gives another file.
"""
import gzip
import os
import pickle
import random
import select
import struct
import subprocess
import sys

import flatbuffers
import numpy as np
from flatbuffers import number_types as N

from tflite_writer import FLOAT32, INT16, INT32, INT64, INT8, OPERATORS, UINT8, Graph, Model

SECONDS = 10  # for a model
MEMORY = 3 << 30
NAMES = {code: name for name, (code, _, _, _) in OPERATORS.items()}
NUMBERS = {INT32: np.int32, INT64: np.int64}

# ---- packs ----------------------------------------------------------------------------------


def read_pack(path):
    """(text, model, seed, input, output) of each model; input: None where it is random."""
    b = gzip.open(path).read()
    assert b[:8] == b"HALOPS1\n"
    at = 16

    def take(n):
        nonlocal at
        at += n
        return b[at - n:at]

    for _ in range(struct.unpack_from("<I", b, 12)[0]):
        text = take(take(1)[0])
        model = take(struct.unpack("<I", take(4))[0])
        count, seed = struct.unpack("<IQ", take(12))
        raw = None if seed else take(count)
        yield text.decode(), model, seed, count, raw, take(struct.unpack("<I", take(4))[0])


def record(text, model, seed, count, raw, output):
    text = text.encode()[:255]
    return (struct.pack("<B", len(text)) + text + struct.pack("<I", len(model)) + model
            + struct.pack("<IQ", count, seed) + (raw or b"")
            + struct.pack("<I", len(output)) + output)


def write_pack(path, seed, records):
    raw = b"HALOPS1\n" + struct.pack("<II", seed, len(records)) + b"".join(records)
    with open(path, "wb") as f:
        f.write(gzip.compress(raw, 9, mtime=0))
    print(f"{len(records)} models, {len(raw)} bytes, {path}")


# ---- models that were written by tflite_writer ----------------------------------------------


class Table(flatbuffers.table.Table):
    def scalar(self, slot, flags, default=0):
        return self.GetSlot(4 + 2 * slot, default, flags)

    def vector(self, slot, flags):
        at = self.Offset(4 + 2 * slot)
        if not at:
            return None
        start = self.Vector(at)
        return [self.Get(flags, start + i * flags.bytewidth)
                for i in range(self.VectorLen(at))]

    def tables(self, slot):
        at = self.Offset(4 + 2 * slot)
        start = self.Vector(at) if at else 0
        return [Table(self.Bytes, self.Indirect(start + 4 * i))
                for i in range(self.VectorLen(at) if at else 0)]

    def table(self, slot):
        at = self.Offset(4 + 2 * slot)
        return Table(self.Bytes, self.Indirect(self.Pos + at)) if at else None

    def string(self, slot):
        at = self.Offset(4 + 2 * slot)
        return self.String(self.Pos + at).decode() if at else ""


FIELDS = {"i8": N.Int8Flags, "i32": N.Int32Flags, "f32": N.Float32Flags, "bool": N.BoolFlags}
SPARSE = {1: N.Int32Flags, 2: N.Uint16Flags, 3: N.Uint8Flags}  # SparseIndexVector


def read_sparsity(s):
    if not s:
        return None
    levels = []
    for level in s.tables(2):
        size = level.scalar(1, N.Int32Flags)
        if level.scalar(0, N.Int8Flags):
            flags = SPARSE[level.scalar(2, N.Uint8Flags)]
            size = (level.table(3).vector(0, flags), level.table(5).vector(0, flags),
                    flags.bytewidth)
        levels.append(size)
    return s.vector(0, N.Int32Flags), s.vector(1, N.Int32Flags), levels


def read_tensor(t, buffers):
    quantization, scale, zero, axis = t.table(4), None, 0, 0
    if quantization:
        scale = quantization.vector(2, N.Float32Flags)
        zero = quantization.vector(3, N.Int64Flags) or [0]
        axis = quantization.scalar(6, N.Int32Flags)
    data = buffers[t.scalar(2, N.Uint32Flags)]
    kind = t.scalar(1, N.Int8Flags)
    if data is not None:
        data = np.frombuffer(bytes(data), NUMBERS.get(kind, np.uint8))
    # In the order of Graph.tensor.
    return [t.string(3), t.vector(0, N.Int32Flags) or [], scale, zero, data, kind, axis,
            t.scalar(5, N.BoolFlags), t.vector(7, N.Int32Flags), read_sparsity(t.table(6))]


def read_operator(o, codes):
    name = codes[o.scalar(0, N.Uint32Flags)]
    table, options = o.table(4), {}
    for slot, (field, kind, default) in enumerate(OPERATORS[name][3]):
        if table and kind in FIELDS:
            options[field] = table.scalar(slot, FIELDS[kind], default)
        elif table and kind == "[i32]":
            options[field] = table.vector(slot, N.Int32Flags)
        elif table:
            options[field] = table.string(slot)
    return [name, o.vector(1, N.Int32Flags), o.vector(2, N.Int32Flags), options,
            o.vector(8, N.Int32Flags) or ()]


def read_model(raw):
    raw = bytearray(raw)
    top = Table(raw, struct.unpack_from("<I", raw)[0])
    codes = [NAMES[c.scalar(3, N.Int32Flags)] for c in top.tables(1)]
    buffers = [b.vector(0, N.Uint8Flags) for b in top.tables(4)]
    model = Model()
    for i, g in enumerate(top.tables(2)):
        graph = Graph() if i else model
        if i:
            model.graphs.append(graph)
        graph._tensors = [read_tensor(t, buffers) for t in g.tables(0)]
        graph.inputs, graph.outputs = (g.vector(s, N.Int32Flags) or [] for s in (1, 2))
        graph._operators = [read_operator(o, codes) for o in g.tables(3)]
    return model


# ---- changes --------------------------------------------------------------------------------

NAME, SHAPE, SCALE, ZERO, DATA, KIND, AXIS = range(7)


class Change:
    """Changes a model; each function says what it did, or None: nothing."""

    def __init__(self, rng, model):
        self.r = rng
        self.g = model
        used = {i for o in model._operators for v in (o[1], o[2], o[4]) for i in v if i >= 0}
        self.tensors = [model._tensors[i] for i in sorted(used)]

    def number(self, n):
        return self.r.choice([n + 1, n + 1, n - 1, n - 1, 2 * n, n // 2, 0, 1, -n, -1, n + 3])

    def any(self):
        kinds = [self.size] * 5 + [self.rank] * 2 + [self.kind, self.scale, self.zero]
        kinds += [self.channels] * 2 + [self.axis, self.constant, self.constant, self.constant]
        kinds += [self.option] * 5 + [self.operands, self.results]
        return self.r.choice(kinds)()

    def fit(self, t):
        """A constant of the new shape, most of the time."""
        count = int(np.prod(t[SHAPE]))
        if t[DATA] is None or count < 0 or count > 1 << 20 or self.r.random() < 0.1:
            return
        width = {INT16: 2, FLOAT32: 4}.get(t[KIND], 1)
        t[DATA] = np.resize(t[DATA], count * width) if len(t[DATA]) else t[DATA]

    def size(self):
        t = self.r.choice(self.tensors)
        if not t[SHAPE]:
            return None
        i = self.r.randrange(len(t[SHAPE]))
        old = t[SHAPE][i]
        if self.r.random() < 0.2:
            k = self.r.randrange(len(t[SHAPE]))
            t[SHAPE][i], t[SHAPE][k] = t[SHAPE][k], t[SHAPE][i]
            return f"{t[NAME]} sizes {i} and {k} swapped: {t[SHAPE]}"
        t[SHAPE][i] = self.number(old)
        self.fit(t)
        return f"{t[NAME]} size {i}: {old} -> {t[SHAPE][i]}"

    def rank(self):
        t = self.r.choice(self.tensors)
        old = list(t[SHAPE])
        if old and self.r.random() < 0.5:
            del t[SHAPE][self.r.randrange(len(old))]
        else:
            t[SHAPE].insert(self.r.randint(0, len(old)), self.r.choice([1, 1, 1, 2]))
        if self.r.random() < 0.15:
            t[SHAPE] = [int(np.prod(old))]
        self.fit(t)
        return f"{t[NAME]} {old} -> {t[SHAPE]}"

    def kind(self):
        t = self.r.choice(self.tensors)
        old = t[KIND]
        if t[DATA] is not None and old in NUMBERS:
            t[KIND] = INT32 + INT64 - old
            t[DATA] = t[DATA].astype(NUMBERS[t[KIND]])
        else:
            t[KIND] = self.r.choice([INT8, UINT8, INT8, UINT8, INT16, INT32, FLOAT32])
        return f"{t[NAME]} type {old} -> {t[KIND]}"

    def scale(self):
        t = self.r.choice(self.tensors)
        if not t[SCALE]:
            t[SCALE], t[ZERO] = [0.5], [0]
            return f"{t[NAME]} gets a scale"
        old = list(t[SCALE])
        i = self.r.randrange(len(old))
        t[SCALE][i] = self.r.choice([old[i] * 2, old[i] / 2, old[i] * 1.001, old[i] * 1.00001,
                                     0.0, -old[i], 1.0])
        if self.r.random() < 0.15:
            t[SCALE] = None
        return f"{t[NAME]} scale {old[:4]} -> {t[SCALE] and t[SCALE][:4]}"

    def zero(self):
        t = self.r.choice(self.tensors)
        if not t[SCALE]:
            return None
        i, old = self.r.randrange(len(t[ZERO])), list(t[ZERO])
        t[ZERO][i] = self.r.choice([old[i] + 1, old[i] - 1, -old[i], 0, 1, 127, -128, 255, 300])
        return f"{t[NAME]} zero {i}: {old[i]} -> {t[ZERO][i]}"

    def channels(self):
        """One scale and zero point more or less, or one a channel."""
        t = self.r.choice(self.tensors)
        if not t[SCALE]:
            return None
        old = len(t[SCALE])
        dim = self.r.randrange(len(t[SHAPE])) if t[SHAPE] else 0
        n = self.r.choice([1, old + 1, max(1, old - 1), t[SHAPE][dim] if t[SHAPE] else 2])
        n = min(max(n, 1), 4096)
        t[SCALE] = list(np.resize(t[SCALE], n))
        if self.r.random() < 0.5 and n > 1:
            t[SCALE] = [s * self.r.choice([1, 0.5]) for s in t[SCALE]]
        t[ZERO] = list(np.resize(t[ZERO], n if self.r.random() < 0.85 else old))
        if self.r.random() < 0.5:
            t[AXIS] = dim
        return f"{t[NAME]} {old} -> {n} scales by {t[AXIS]}"

    def axis(self):
        t = self.r.choice(self.tensors)
        old, t[AXIS] = t[AXIS], self.r.choice([-1, 0, 1, 2, 3, 4])
        return f"{t[NAME]} quantized dimension {old} -> {t[AXIS]}"

    def constant(self):
        wanted = [t for t in self.tensors
                  if t[DATA] is not None and t[KIND] in NUMBERS and len(t[DATA])]
        if not wanted:
            return self.size()
        t = self.r.choice(wanted)
        t[DATA] = t[DATA].copy()
        i = self.r.randrange(len(t[DATA]))
        old = int(t[DATA][i])
        t[DATA][i] = self.number(old)
        return f"{t[NAME]} element {i}: {old} -> {t[DATA][i]}"

    def option(self):
        o = self.r.choice(self.g._operators)
        fields = [f for f in OPERATORS[o[0]][3] if f[1] != "str" and o[3].get(f[0]) is not None]
        if not fields:
            return self.constant()
        field, kind, _ = self.r.choice(fields)
        old = o[3][field]
        if kind == "bool":
            new = not old
        elif kind == "f32":
            new = self.r.choice([old * 2, old / 2, -old, 0.0, 1.0])
        elif kind == "[i32]":
            new = [self.number(n) if self.r.random() < 0.5 else n for n in old]
        elif kind == "i8":
            new = self.r.choice([0, 1, 1, 2, 3, 4, 5])
        else:
            new = self.number(old)
        o[3][field] = new
        return f"{o[0]} {field} {old} -> {new}"

    def operands(self, which=1):
        o = self.r.choice(self.g._operators)
        old = list(o[which])
        if not old:
            return None
        i = self.r.randrange(len(old))
        kind = self.r.randrange(5)
        if kind == 0:
            o[which][i] = -1
        elif kind == 1:
            del o[which][i]
        elif kind == 2:
            o[which].append(self.r.randrange(len(self.g._tensors)))
        elif kind == 3:
            self.r.shuffle(o[which])
        else:
            o[which][i] = self.r.randrange(len(self.g._tensors))
        return f"{o[0]} {'operands' if which == 1 else 'results'} {old} -> {o[which]}"

    def results(self):
        return self.operands(2)


def mutant(rng, raw):
    """A changed model and what was changed; None where that gives no other file."""
    model = read_model(raw)
    before = model.bytes()
    changes = [Change(rng, model).any() for _ in range(rng.choice([1, 1, 1, 2]))]
    try:
        after = model.bytes()
    except (struct.error, ValueError, OverflowError, TypeError):
        return None
    return None if after == before else (after, "; ".join(c for c in changes if c))


# ---- TFLite, in a process that it may end ----------------------------------------------------


def answer(model, raw, seed, own):
    """Count and bytes of the inputs, bytes of the outputs; or a list, the outputs' shapes,
    where they are not the declared ones."""
    import common
    it = common.interpreter(model)
    inputs = it.get_input_details()
    count = sum(int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize for d in inputs)
    if raw is None or len(raw) != count or any(d["dtype"] == np.float32 for d in inputs) != own:
        raw = None
        if any(d["dtype"] not in (np.int8, np.uint8, np.int16) for d in inputs):
            rng = np.random.default_rng(seed)
            raw = b"".join(rng.integers(-9, 9, d["shape"]).astype(d["dtype"]).tobytes()
                           for d in inputs)
    common.invoke(it, common.random_bytes(seed, count) if raw is None else raw)
    shapes = [list(map(int, d["shape"])) for d in it.get_output_details()]
    if shapes != declared_shapes(model):
        return shapes
    return count, raw, b"".join(it.get_tensor(d["index"]).tobytes()
                                for d in it.get_output_details())


def declared_shapes(model):
    """Of any model's outputs."""
    raw = bytearray(model)
    graph = Table(raw, struct.unpack_from("<I", raw)[0]).tables(2)[0]
    tensors = graph.tables(0)
    return [tensors[i].vector(0, N.Int32Flags) or [] for i in graph.vector(2, N.Int32Flags)]


def with_shapes(model, shapes):
    m = read_model(model)
    for i, shape in zip(m.outputs, shapes):
        m._tensors[i][SHAPE] = shape
    return m.bytes()


def serve():
    import resource
    import common
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        size = sys.stdin.buffer.read(4)
        if not size:
            return
        model, raw, seed, own = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", size)[0]))
        try:
            result = answer(model, raw, seed, own)
        except (RuntimeError, ValueError, MemoryError) as e:
            result = str(e)
        result = pickle.dumps(result)
        sys.stdout.buffer.write(struct.pack("<I", len(result)) + result)
        sys.stdout.buffer.flush()


class Asked:
    """TFLite in another process, whose fresh memory is filled with a byte."""

    def __init__(self, fill):
        self.fill, self.p = fill, None

    def __call__(self, *question):
        if not self.p:
            self.p = subprocess.Popen(
                [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=os.environ | {"MALLOC_PERTURB_": str(self.fill)})
        question = pickle.dumps(question)
        try:
            self.p.stdin.write(struct.pack("<I", len(question)) + question)
            self.p.stdin.flush()
            if select.select([self.p.stdout], [], [], SECONDS)[0]:
                return pickle.loads(self.p.stdout.read(struct.unpack(
                    "<I", self.p.stdout.read(4))[0]))
        except (struct.error, BrokenPipeError):
            pass
        self.p.kill()
        self.p.wait()
        self.p = None
        return None


# ---- commands -------------------------------------------------------------------------------


class Search:
    def __init__(self):
        self.ask = [Asked(85), Asked(170)]
        self.records, self.refused, self.lost = [], 0, 0

    def refuse(self, model, text):
        self.refused += 1
        self.records.append(record(text, model, 1, 0, None, b""))

    def add(self, model, change, text, seed, raw, again=True):
        answers = [ask(model, raw, seed, raw is not None) for ask in self.ask]
        got = answers[0]
        if got is None or got != answers[1]:
            self.lost += 1
        elif isinstance(got, str):
            reason = got.replace("\n", " ").split("kernels/")[-1][:90]
            self.refuse(model, f"{change} | TFLite: {reason} | {text}")
        elif isinstance(got, list):
            self.refuse(model, f"{change} | TFLite: another shape | {text}")
            if again:
                self.add(with_shapes(model, got), f"{change}; {got}", text, seed, raw, False)
        elif got[2]:
            size, raw, output = got
            self.records.append(record(f"{change} | {text}", model,
                                       0 if raw is not None else seed, size, raw, output))


def search(out, seed, count, packs):
    models = [(f"{os.path.basename(p).split('.')[0]}:{i}", m)
              for p in packs for i, m in enumerate(read_pack(p))]
    rng = random.Random(seed)
    s = Search()
    while len(s.records) < count:
        name, (text, model, own_seed, _, raw, _) = rng.choice(models)
        made = mutant(rng, model)
        if made:
            state = own_seed or rng.getrandbits(63) | 1
            s.add(made[0], f"{name} {made[1]}", text, state, raw)
    print(f"{s.refused} must be refused; {s.lost} left out")
    write_pack(out, seed, s.records)


def keep(out, sources):
    records = []
    for source in sources:
        path, _, numbers = source.partition(":")
        if path.endswith(".tflite"):
            with open(path, "rb") as f:
                model = f.read()
            count, raw, output = Asked(85)(model, None, 1, False)
            records.append(record(os.path.basename(path), model, 0 if raw else 1, count, raw,
                                  output))
            continue
        models = list(read_pack(path))
        for number in numbers.split(",") if numbers else map(str, range(len(models))):
            text, model, seed, count, raw, output = models[int(number.rstrip("r"))]
            if number.endswith("r"):
                seed, count, raw, output = 1, 0, None, b""
            records.append(record(text, model, seed, count, raw, output))
    write_pack(out, 0, records)


def check(packs):
    wrong = 0
    for pack in packs:
        for i, (text, model, *_) in enumerate(read_pack(pack)):
            if read_model(model).bytes() != model:
                wrong += 1
                print(f"{pack} {i}: written again it is another file: {text}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    elif sys.argv[1] == "--check":
        check(sys.argv[2:])
    elif sys.argv[1] == "--keep":
        keep(sys.argv[2], sys.argv[3:])
    else:
        search(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
