#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""current.py OUT PACK...: runs the models of packs that ops.py and its like have made through
the current TFLite, which requirements_current.txt names, and writes those outputs that differ.

OUT is binary, compressed, little endian: "HALNEW1\\n", then for each such model

    uint8 length, name of the pack's file     uint32 number of the model
    uint32 length, all its outputs
"""
import gzip
import io
import os
import struct
import sys

import numpy as np

import common


def models(path):
    """model, its inputs, its outputs of the pack."""
    with gzip.open(path) as f:
        raw = f.read()
    at = 8
    _, count = struct.unpack_from("<II", raw, at)
    at += 8
    for _ in range(count):
        at += 1 + raw[at]
        (size,) = struct.unpack_from("<I", raw, at)
        model = raw[at + 4:at + 4 + size]
        at += 4 + size
        size, state = struct.unpack_from("<IQ", raw, at)
        at += 12
        inputs = common.random_bytes(state, size) if state else raw[at:at + size]
        at += 0 if state else size
        (size,) = struct.unpack_from("<I", raw, at)
        yield model, inputs, raw[at + 4:at + 4 + size]
        at += 4 + size


def outputs(model, inputs):
    it = common.interpreter(model)
    each = sum(int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize
               for d in it.get_input_details())
    out = b""
    for at in range(0, len(inputs), each) if each else [0]:
        common.invoke(it, inputs[at:at + each])
        out += b"".join(it.get_tensor(d["index"]).tobytes() for d in it.get_output_details())
    return out


def main():
    out, packs = sys.argv[1], sys.argv[2:]
    raw, count, different = io.BytesIO(), 0, 0
    raw.write(b"HALNEW1\n")
    for path in packs:
        name = os.path.basename(path).encode()
        for number, (model, inputs, wanted) in enumerate(models(path)):
            if not wanted:
                continue
            count += 1
            got = outputs(model, inputs)
            if got != wanted:
                different += 1
                raw.write(struct.pack("<B", len(name)) + name
                          + struct.pack("<II", number, len(got)) + got)
    with open(out, "wb") as f:
        f.write(gzip.compress(raw.getvalue(), 9, mtime=0))
    print(f"{count} models, {different} differ, {len(raw.getvalue())} bytes, {out}")


if __name__ == "__main__":
    main()
