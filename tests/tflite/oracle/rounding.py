#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rounding.py [COUNT]: how the NPU's requantization could be that of TensorFlow Lite since 2.20,
round(sum * scale) in double, a half away from zero.

For random scales it looks for parameters with which npu_requant gives every result from -255 to
255 from the same sums on, and prints how many scales each way has them for: as it is, with one
rounding alone (shift 0), in binary32, and with a mode that rounds once.  Results only grow with
sums, so equal thresholds are a proof for all sums.
"""
import math
import random
import struct
import sys


def reference(x, scale):
    return int(math.copysign(math.floor(abs(x * scale) + 0.5), x))


def twice(x, mult, shift):
    """TensorFlow Lite's two roundings; shift at most 0."""
    p = abs(x) * mult
    high = (p + (1 << 30)) >> 31 if x >= 0 else (p + (1 << 30) - 1) >> 31
    right = -shift
    low = (high + (1 << right >> 1)) >> right
    return low if x >= 0 else -low


def once(x, mult, shift):
    y = (abs(x) * mult + (1 << (30 - shift))) >> (31 - shift)
    return y if x >= 0 else -y


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def binary32(x, mult):
    p = f32(f32(abs(x)) * mult)
    y = math.floor(p)
    y += p - y > 0.5 or (p - y == 0.5 and y & 1)
    return y if x >= 0 else -y


def threshold(scale, y):
    """The least sum whose result is y or more."""
    low, high = 0, int(2 * y / scale) + 4
    while low < high:
        middle = (low + high) // 2
        if reference(middle, scale) >= y:
            high = middle
        else:
            low = middle + 1
    return low


def candidates(scale):
    fraction, exponent = math.frexp(scale)
    mult = round(fraction * 2**31)
    yield "as it is", lambda x: twice(x, mult, exponent)
    for d in (0, 1, -1, 2, -2):
        yield "shift 0", lambda x, m=round(scale * 2**31) + d: twice(x, m, 0)
    bits = struct.unpack("I", struct.pack("f", scale))[0]
    for d in range(-8, 9):
        m = struct.unpack("f", struct.pack("I", bits + d))[0]
        yield "binary32", lambda x, m=m: binary32(x, m)
    for d in (0, 1, -1):
        yield "one rounding", lambda x, m=mult + d: once(x, m, exponent)


def main():
    r, count = random.Random(1), int(sys.argv[1]) if len(sys.argv) > 1 else 200
    exact = {}
    for _ in range(count):
        scale = 2 ** r.uniform(-14, -5)
        sums = [(y, threshold(scale, y)) for y in range(1, 256)]
        ways = set()
        for way, f in candidates(scale):
            if way not in ways and all(f(x) >= y > f(x - 1) and -f(-x) >= y > -f(1 - x)
                                       for y, x in sums):
                ways.add(way)
        for way in ways:
            exact[way] = exact.get(way, 0) + 1
    for way in ("as it is", "shift 0", "binary32", "one rounding"):
        print(f"{way}: {exact.get(way, 0)} of {count}")


if __name__ == "__main__":
    main()
