#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nets.py DIR OUT: what TFLite's reference kernels compute in the four MLPerf Tiny networks
of DIR, every tensor of every layer, as checksums.

DIR holds the models and inputs named in NETWORKS; none of them is copied.  Each network gets
the real inputs there are and 20 random ones: byte i of random input k (1..20) is that of
common.random_bytes(crc32(network's name) << 32 | k).

OUT is text, one record a line:

    network NAME FILE BYTES CRC32      the lines that follow are about it
    tensor INDEX BYTES NAME            one a layer's output, in the order of execution
    input real FILE OFFSET             a file's bytes, or float32 numbers to be quantized
    input random SEED                  seed of the random bytes, hexadecimal
    sums INPUT TENSOR...               CRC-32 of the input, then of each tensor
    output HEX                         the network's output, whole
"""
import os
import struct
import sys
import zlib

import numpy as np

import common

RANDOM_INPUTS = 20
FRAME = 128  # log-mel bins of one frame; ad01 looks at five frames at once

# network: (model, file of real inputs, kind of file, first elements)
NETWORKS = {
    "kws_dscnn": ("kws_dscnn_int8.tflite", "kws_input_i8_49x10x1.bin", np.int8, [0]),
    "resnet8": ("resnet8_int8.tflite", None, None, []),
    "vww_mobilenet": ("vww_mobilenet_int8.tflite", None, None, []),
    "ad01": (
        "ad01_int8.tflite",
        "ad01_logmel_f32_200x128.bin",
        np.float32,
        [FRAME * f for f in (0, 50, 100, 195)],
    ),
}


def quantized(values, detail):
    """round half even(value / scale) + zero point, in float32 as C does it."""
    scale, zero = detail["quantization"]
    q = np.rint(values.astype(np.float32) / np.float32(scale)) + np.float32(zero)
    return np.clip(q, -128, 127).astype(np.int8)


def inputs(name, folder, detail):
    _, real, kind, offsets = NETWORKS[name]
    count = int(np.prod(detail["shape"]))
    for offset in offsets:
        x = np.fromfile(os.path.join(folder, real), kind)[offset : offset + count]
        if kind is np.float32:
            x = quantized(x, detail)
        yield f"real {real} {offset}", x.tobytes()
    for k in range(1, RANDOM_INPUTS + 1):
        seed = zlib.crc32(name.encode()) << 32 | k
        yield f"random {seed:016x}", common.random_bytes(seed, count)


def with_outputs(model, tensors):
    """The model with these tensors as outputs, by a vector at its end.  Without that, ADD
    writes over one of its operands, experimental_preserve_all_tensors or not."""
    u32 = lambda at: struct.unpack_from("<I", model, at)[0]  # noqa: E731

    def field(table, number):
        vtable = table - struct.unpack_from("<i", model, table)[0]
        return table + struct.unpack_from("<H", model, vtable + 4 + 2 * number)[0]

    subgraphs = field(u32(0), 2)
    first = subgraphs + u32(subgraphs) + 4
    outputs = field(first + u32(first), 2)
    padded = bytearray(model) + b"\0" * (-len(model) % 4)
    struct.pack_into("<I", padded, outputs, len(padded) - outputs)
    return bytes(padded) + struct.pack(f"<I{len(tensors)}i", len(tensors), *tensors)


def network(name, folder):
    file = NETWORKS[name][0]
    with open(os.path.join(folder, file), "rb") as f:
        model = f.read()
    it = common.interpreter(model)
    details = {d["index"]: d for d in it.get_tensor_details()}
    layers = [t for op in it._get_ops_details() for t in op["outputs"]]
    output = it.get_output_details()[0]["index"]
    it = common.interpreter(with_outputs(model, layers))
    yield f"network {name} {file} {len(model)} {zlib.crc32(model):08x}"
    for t in layers:
        label = details[t]["name"].split(";")[0]
        yield f"tensor {t} {int(np.prod(details[t]['shape']))} {label}"
    for what, raw in inputs(name, folder, it.get_input_details()[0]):
        common.invoke(it, raw)
        sums = [raw] + [it.get_tensor(t).tobytes() for t in layers]
        yield f"input {what}"
        yield "sums " + " ".join(f"{zlib.crc32(s):08x}" for s in sums)
        yield "output " + it.get_tensor(output).tobytes().hex()


def main():
    folder, out = sys.argv[1:]
    lines = ["# From tests/tflite/oracle/nets.py, which describes the format."]
    for name in NETWORKS:
        lines += network(name, folder)
    with open(out, "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
