#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hosts_packs.py LIBRARY TARGET I/N PACK...: models of data/tflite through an unmodified
interpreter with the delegate.  Model number n is in shard n % N.

Every model must be accepted, and give the bytes of the runtime's own reference kernels.
"""
import collections
import gzip
import struct
import sys

import numpy as np

import runtime
from runtime import tflite

MASK = (1 << 64) - 1


def random_bytes(seed, count):
    """As in tests/tflite/oracle/common.py."""
    x, out = seed & MASK, bytearray(count)
    for i in range(count):
        x ^= x >> 12
        x = (x ^ (x << 25)) & MASK
        x ^= x >> 27
        out[i] = ((x * 2685821657736338717) & MASK) >> 56
    return bytes(out)


def models(path):
    """Text, model, inputs and outputs of each model of a pack."""
    data, at = gzip.open(path).read(), 16
    count, = struct.unpack_from("<I", data, 12)

    def block(at, size):
        return data[at:at + size], at + size

    for _ in range(count):
        text, at = block(at + 1, data[at])
        model, at = block(at + 4, struct.unpack_from("<I", data, at)[0])
        size, seed = struct.unpack_from("<IQ", data, at)
        raw, at = (b"", at + 12) if seed else block(at + 12, size)
        if seed:
            raw = (size, seed)
        want, at = block(at + 4, struct.unpack_from("<I", data, at)[0])
        yield text.decode(), model, raw, want


def infer(it, raw):
    """The outputs of one inference, or of several in a row."""
    sizes = [int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize
             for d in it.get_input_details()]
    out, at = b"", 0
    while at < len(raw) or not out:
        inputs = []
        for d, size in zip(it.get_input_details(), sizes):
            x = np.frombuffer(raw[at:at + size], d["dtype"])
            inputs.append(x.reshape(d["shape"]))
            at += size
        out += runtime.run(it, inputs)
        if not sizes:
            break
    return out


def main():
    library, target, shard, *packs = sys.argv[1:]
    part, parts = map(int, shard.split("/"))
    delegate = tflite.load_delegate(library, {"target": target, **runtime.OPTIONS})
    counts, bad = collections.Counter(), []
    for path in packs:
        for number, (text, model, raw, want) in enumerate(models(path)):
            if number % parts != part or not want:
                continue
            if isinstance(raw, tuple):
                raw = random_bytes(raw[1], raw[0])
            try:
                same = infer(runtime.interpreter(model), raw)
            except (RuntimeError, ValueError):
                counts["not for this runtime"] += 1
                continue
            counts["models"] += 1
            try:
                it, summary = runtime.with_delegate(model, delegate)
                got = infer(it, raw)
            except (RuntimeError, ValueError, AssertionError) as e:
                counts["refused"] += 1
                bad.append(f"{text}: {e}")
                continue
            whole = summary.taken == summary.nodes
            counts["whole" if whole else "partly" if summary.taken else "not at all"] += 1
            counts["as the pack"] += got == want
            counts["reference as the pack"] += same == want
            if got != same:
                counts["mismatches"] += 1
                bad.append(f"{text}: other bytes{', as the pack has them' * (got == want)}")
    for line in bad[:40]:
        print("FAILED", line)
    print(runtime.NAME, dict(counts))
    return 1 if bad or not counts["whole"] else 0


if __name__ == "__main__":
    sys.exit(main())
