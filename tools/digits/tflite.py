#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/digits/digits.tflite from data/digits/large.net: the same weights and the same
arithmetic as a TensorFlow Lite file; beside it labels.txt and seven.npy, a test image.

    python3 -m venv v && v/bin/pip install -r tests/tflite/oracle/requirements.txt
    v/bin/python tools/digits/tflite.py

A .net file has multipliers where TensorFlow Lite has scales of weights.  A multiplier has 31
bits and a scale 24, so the scale is found again exactly, which is checked.  The dense layer
becomes a convolution over the whole image, which unlike FULLY_CONNECTED has a scale a channel
in every version.  At the end TensorFlow Lite itself runs all test images: its answers must be
those of large.logits, byte by byte.
"""
import os
import struct
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "tflite", "oracle"))
import common  # noqa: E402
import tflite_writer as tfl  # noqa: E402
from train import quantize_multiplier, quantize_pixels  # noqa: E402

DATA = os.path.join(ROOT, "data", "digits")
HEADER_BYTES, TENSOR_BYTES, LAYER_BYTES, IMAGE_BYTES = 48, 16, 96, 67
CONV, DENSE, POOL, ADD = 1, 2, 3, 4


def read(name):
    with open(os.path.join(DATA, name), "rb") as f:
        return f.read()


def network(raw):
    """Tensors as (height, width, channels, scale, zero point), and layers."""
    tensors, layers, _ = struct.unpack_from("<3I", raw, 20)
    at = HEADER_BYTES
    shapes = []
    for i in range(tensors):
        h, w, c, _, scale, zero = struct.unpack_from("<4Hfi", raw, at + TENSOR_BYTES * i)
        shapes.append((h, w, c, np.float32(scale), zero))
    at += TENSOR_BYTES * tensors
    return shapes, [
        struct.unpack_from("<8I2i4I7i", raw, at + LAYER_BYTES * i) for i in range(layers)
    ]


def weight_scales(mult, shift, src, dst):
    """float32 scales that give exactly these multipliers."""
    real = mult.astype(np.float64) / 2.0**31 * 2.0 ** shift.astype(np.float64)
    scales = (real * np.float64(dst[3]) / np.float64(src[3])).astype(np.float32)
    for s, m, e in zip(scales, mult, shift):
        again = quantize_multiplier(np.float64(src[3]) * np.float64(s) / np.float64(dst[3]))
        assert again == (m, e), (again, m, e)
    return scales


def convolution(model, raw, layer, ids, shapes):
    kind, a, _, d, kernel, stride, pad, n, low = layer[:9]
    src, dst = shapes[a], shapes[d]
    kh, kw = (src[0], src[1]) if kind == DENSE else (kernel, kernel)
    w, b, m, e = layer[10:14]
    weights = np.frombuffer(raw, np.int8, n * kh * kw * src[2], w).reshape(n, kh, kw, src[2])
    bias, mult, shift = (np.frombuffer(raw, "<i4", n, at) for at in (b, m, e))
    scales = weight_scales(mult, shift, src, dst)
    filters = model.tensor(f"weights{d}", weights.shape, scales, data=weights)
    biases = model.tensor(f"bias{d}", [n], scales * src[3], data=bias, dtype=tfl.INT32)
    relu = kind == CONV and low == dst[4]
    model.operator("CONV_2D", [ids[a], filters, biases], [ids[d]],
                   padding=tfl.SAME if pad else tfl.VALID, stride_w=stride, stride_h=stride,
                   act=tfl.RELU if relu else tfl.NONE)


def build(raw):
    shapes, layers = network(raw)
    model = tfl.Model()
    ids = []
    for i, (h, w, c, scale, zero) in enumerate(shapes):
        name = "image" if i == 0 else f"layer{i}"
        ids.append(model.tensor(name, [1, h, w, c], scale, zero))
    model.inputs.append(ids[0])
    for layer in layers:
        kind, a, b, d = layer[:4]
        if kind in (CONV, DENSE):
            convolution(model, raw, layer, ids, shapes)
        elif kind == POOL:
            model.operator("MAX_POOL_2D", [ids[a]], [ids[d]], padding=tfl.VALID, stride_w=2,
                           stride_h=2, filter_w=2, filter_h=2)
        else:
            relu = layer[8] == shapes[d][4]
            model.operator("ADD", [ids[a], ids[b]], [ids[d]],
                           act=tfl.RELU if relu else tfl.NONE)
    classes, scale, zero = shapes[-1][2:]
    shape = np.array([1, classes], np.int32)
    to = model.tensor("shape", [2], data=shape, dtype=tfl.INT32)
    out = model.output("logits", [1, classes], scale, zero)
    model.operator("RESHAPE", [ids[-1], to], [out], new_shape=[1, classes])
    return model.bytes()


def test_images():
    """Pixels as the network wants them, and labels."""
    raw = read("test.images")
    (count,) = struct.unpack_from("<I", raw, 20)
    rows = np.frombuffer(raw, np.uint8, count * IMAGE_BYTES, HEADER_BYTES)
    rows = rows.reshape(count, IMAGE_BYTES)
    return quantize_pixels(rows[:, :64].reshape(count, 8, 8)).astype(np.int8), rows[:, 64]


def main():
    model = build(read("large.net"))
    images, labels = test_images()
    logits = np.frombuffer(read("large.logits"), np.int8, len(images) * 10, HEADER_BYTES)
    it = common.interpreter(model)
    for image, want in zip(images, logits.reshape(-1, 10)):
        common.invoke(it, image.tobytes())
        got = it.get_tensor(it.get_output_details()[0]["index"])
        assert got.tobytes() == want.tobytes(), (got, want)
    with open(os.path.join(DATA, "digits.tflite"), "wb") as f:
        f.write(model)
    with open(os.path.join(DATA, "labels.txt"), "w") as f:
        f.write("".join(f"{n}\n" for n in
                        "zero one two three four five six seven eight nine".split()))
    np.save(os.path.join(DATA, "seven.npy"), images[labels == 7][:1])
    print(f"digits.tflite: {len(model)} bytes, {len(images)} images as in large.logits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
