#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two digit classifiers and writes data/digits: int8 networks, test images and
the logits that an int8 simulation gives for each of them.

    python3 -m venv v && v/bin/pip install -r tools/digits/requirements.txt
    v/bin/python tools/digits/train.py --out data/digits

Data: UCI Optical Recognition of Handwritten Digits (Alpaydin and Kaynak, CC BY 4.0), the
1,797 images that scikit-learn carries.  Training is plain numpy; quantization is TensorFlow
Lite's post-training scheme.  Everything follows from --seed, up to the last bits of floating
point, which differ between BLAS builds: another machine gives networks as good, not the same
bytes.

Split, by --seed and nothing else: 397 images to test, 200 to validate, 1,200 to train.  The
test images are read only once both networks are finished.  The validation images chose the
number of epochs; training images calibrate the activations' ranges.
"""
import argparse
import binascii
import os
import struct
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402

TEST_IMAGES = 397
VALIDATION_IMAGES = 200
PIXEL_MAX = 16  # the data's own range: 0..16
INPUT_SCALE = 1.0 / 255.0  # of pixel / 16
INPUT_ZERO = -128

# kind, name of the inputs (tensor numbers, 0 is the image), width
SMALL = [
    ("conv", [0], 8, True),
    ("pool", [1]),
    ("conv", [2], 16, True),
    ("pool", [3]),
    ("dense", [4], 10),
]
LARGE = [
    ("conv", [0], 16, True),
    ("conv", [1], 16, False),
    ("add", [1, 2], True),
    ("pool", [3]),
    ("conv", [4], 32, True),
    ("pool", [5]),
    ("dense", [6], 10),
]


# ---- data ------------------------------------------------------------------------------


def load_split(seed):
    from sklearn.datasets import load_digits

    d = load_digits()
    x = d.images.astype(np.uint8)
    y = d.target.astype(np.uint8)
    assert x.shape == (1797, 8, 8) and x.max() == PIXEL_MAX
    order = np.random.default_rng(seed).permutation(len(x))
    test = order[:TEST_IMAGES]
    val = order[TEST_IMAGES : TEST_IMAGES + VALIDATION_IMAGES]
    train = order[TEST_IMAGES + VALIDATION_IMAGES :]
    return [(x[i], y[i]) for i in (train, val, test)] + [test]


def augment(x, rng):
    """Rotates, scales, shears and shifts each image a little (bilinear), and varies ink."""
    n = len(x)
    a = np.deg2rad(rng.normal(0, 7.0, n))
    s = np.exp(rng.normal(0, 0.07, (2, n)))
    shear = rng.normal(0, 0.08, n)
    shift = rng.normal(0, 0.45, (2, n))
    yy, xx = np.mgrid[0:8, 0:8].astype(np.float32) - 3.5
    ca, sa = np.cos(a)[:, None, None], np.sin(a)[:, None, None]
    u = ca * xx - sa * yy + shear[:, None, None] * yy
    v = sa * xx + ca * yy
    u = u * s[0][:, None, None] + shift[0][:, None, None] + 3.5
    v = v * s[1][:, None, None] + shift[1][:, None, None] + 3.5
    p = np.pad(x[..., 0], ((0, 0), (1, 1), (1, 1)))
    u, v = np.clip(u + 1, 0, 8.999), np.clip(v + 1, 0, 8.999)
    iu, iv = u.astype(int), v.astype(int)
    fu, fv = u - iu, v - iv
    k = np.arange(n)[:, None, None]
    out = (
        p[k, iv, iu] * (1 - fu) * (1 - fv)
        + p[k, iv, iu + 1] * fu * (1 - fv)
        + p[k, iv + 1, iu] * (1 - fu) * fv
        + p[k, iv + 1, iu + 1] * fu * fv
    )
    out *= rng.uniform(0.85, 1.1, n)[:, None, None]
    return np.clip(out, 0, 1).astype(np.float32)[..., None]


# ---- float network -----------------------------------------------------------------------


def im2col(x, pad_value=0):
    n, h, w, c = x.shape
    p = np.full((n, h + 2, w + 2, c), pad_value, x.dtype)
    p[:, 1:-1, 1:-1] = x
    cols = np.empty((n, h, w, 3, 3, c), x.dtype)
    for ky in range(3):
        for kx in range(3):
            cols[:, :, :, ky, kx] = p[:, ky : ky + h, kx : kx + w]
    return cols.reshape(n * h * w, 9 * c)


def col2im(cols, shape):
    n, h, w, c = shape
    cols = cols.reshape(n, h, w, 3, 3, c)
    p = np.zeros((n, h + 2, w + 2, c), cols.dtype)
    for ky in range(3):
        for kx in range(3):
            p[:, ky : ky + h, kx : kx + w] += cols[:, :, :, ky, kx]
    return p[:, 1:-1, 1:-1]


def pool(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


class Net:
    def __init__(self, layers, rng):
        self.layers = layers
        self.shapes = [(8, 8, 1)]
        self.params = {}
        for i, layer in enumerate(layers):
            h, w, c = self.shapes[layer[1][0]]
            if layer[0] == "conv":
                k, n = 9 * c, layer[2]
                self.shapes.append((h, w, n))
            elif layer[0] == "dense":
                k, n = h * w * c, layer[2]
                self.shapes.append((1, 1, n))
            elif layer[0] == "pool":
                self.shapes.append((h // 2, w // 2, c))
                continue
            else:
                self.shapes.append((h, w, c))
                continue
            gain = 2.0 if layer[0] == "conv" else 1.0
            weights = rng.normal(0, np.sqrt(gain / k), (k, n)).astype(np.float32)
            self.params[i] = [weights, np.zeros(n, np.float32)]

    def forward(self, x, drop=None, rng=None):
        t, keep = [x], []
        for i, layer in enumerate(self.layers):
            a = t[layer[1][0]]
            aux = None
            if layer[0] == "conv":
                aux = im2col(a)
                out = aux @ self.params[i][0] + self.params[i][1]
                out = out.reshape(a.shape[:3] + (layer[2],))
                if layer[3]:
                    out = np.maximum(out, 0)
            elif layer[0] == "pool":
                out = pool(a)
            elif layer[0] == "add":
                out = np.maximum(a + t[layer[1][1]], 0)
            else:
                aux = a.reshape(len(a), -1)
                if drop:
                    mask = (rng.random(aux.shape) >= drop) / np.float32(1 - drop)
                    aux = aux * mask.astype(np.float32)
                    keep.append(mask.astype(np.float32))
                out = aux @ self.params[i][0] + self.params[i][1]
            t.append(out)
            keep.append(aux)
        return t, keep

    def backward(self, t, keep, grad, mask):
        g = [None] * len(t)
        g[-1] = grad
        out = {}

        def give(index, value):
            g[index] = value if g[index] is None else g[index] + value

        for i in reversed(range(len(self.layers))):
            layer = self.layers[i]
            src = layer[1][0]
            a, d = t[src], g[i + 1]
            if layer[0] == "conv":
                if layer[3]:
                    d = d * (t[i + 1] > 0)
                d = d.reshape(-1, layer[2])
                out[i] = [keep[i].T @ d, d.sum(0)]
                if src:
                    give(src, col2im(d @ self.params[i][0].T, a.shape))
            elif layer[0] == "pool":
                n, h, w, c = a.shape
                up = t[i + 1].repeat(2, 1).repeat(2, 2)
                hit = (a == up).astype(np.float32)
                share = hit.reshape(n, h // 2, 2, w // 2, 2, c).sum(axis=(2, 4))
                give(src, hit * (d / share).repeat(2, 1).repeat(2, 2))
            elif layer[0] == "add":
                d = d * (t[i + 1] > 0)
                give(src, d)
                give(layer[1][1], d)
            else:
                out[i] = [keep[i].T @ d, d.sum(0)]
                d = d @ self.params[i][0].T
                give(src, (d * mask if mask is not None else d).reshape(a.shape))
        return out


def train(layers, train_set, val_set, epochs, seed, log):
    rng = np.random.default_rng(seed)
    net = Net(layers, rng)
    x = train_set[0].astype(np.float32)[..., None] / PIXEL_MAX
    y = train_set[1]
    state = {i: [[np.zeros_like(p), np.zeros_like(p)] for p in ps] for i, ps in net.params.items()}
    ema = {i: [p.copy() for p in ps] for i, ps in net.params.items()}
    batch, step, total = 50, 0, epochs * (len(x) // 50)
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        loss_sum = 0.0
        for b in range(0, len(x) - batch + 1, batch):
            pick = order[b : b + batch]
            t, keep = net.forward(augment(x[pick], rng), 0.2, rng)
            mask = keep.pop(-2)
            z = t[-1] - t[-1].max(1, keepdims=True)
            p = np.exp(z)
            p /= p.sum(1, keepdims=True)
            goal = np.full((batch, 10), 0.005, np.float32)  # label smoothing
            goal[np.arange(batch), y[pick]] = 0.955
            loss_sum -= float((goal * np.log(p + 1e-9)).sum()) / batch
            grads = net.backward(t, keep, (p - goal) / batch, mask)
            step += 1
            lr = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / total)) * min(1, step / 100)
            for i, gs in grads.items():
                for k, gr in enumerate(gs):
                    m, v = state[i][k]
                    m += 0.1 * (gr - m)
                    v += 0.001 * (gr * gr - v)
                    up = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
                    w = net.params[i][k]
                    w -= (lr * (up + (1e-2 * w if k == 0 else 0))).astype(np.float32)
                    ema[i][k] += np.float32(0.005) * (w - ema[i][k])
        if log and (epoch % 10 == 9 or epoch == epochs - 1):
            kept, net.params = net.params, ema
            acc = accuracy(net, val_set)
            net.params = kept
            print(f"  epoch {epoch + 1:3}: loss {loss_sum / (len(x) // batch):.4f}, "
                  f"validation {acc:.4f}", flush=True)
    net.params = ema
    return net


def accuracy(net, data):
    x = data[0].astype(np.float32)[..., None] / PIXEL_MAX
    return float((net.forward(x)[0][-1].reshape(-1, 10).argmax(1) == data[1]).mean())


# ---- quantization ------------------------------------------------------------------------


def quantize_multiplier(real):
    """real = mult / 2^31 * 2^shift, mult in [2^30, 2^31)."""
    frac, shift = np.frexp(real)
    mult = int(round(float(frac) * (1 << 31)))
    if mult == 1 << 31:
        mult, shift = mult // 2, shift + 1
    assert -31 <= shift <= 30
    return mult, int(shift)


def activation_range(lo, hi):
    lo, hi = min(lo, 0.0), max(hi, 0.0)
    scale = np.float32((hi - lo) / 255.0)
    zero = int(np.clip(round(-128 - lo / float(scale)), -128, 127))
    return scale, zero


def quantize(net, calibration):
    """Post-training quantization; a list of layers as dictionaries, and the tensors."""
    x = calibration.astype(np.float32)[..., None] / PIXEL_MAX
    t, _ = net.forward(x)
    tensors = [dict(shape=net.shapes[0], scale=np.float32(INPUT_SCALE), zero=INPUT_ZERO)]
    out = []
    for i, layer in enumerate(net.layers):
        if layer[0] == "pool":
            scale, zero = tensors[layer[1][0]]["scale"], tensors[layer[1][0]]["zero"]
        else:
            scale, zero = activation_range(float(t[i + 1].min()), float(t[i + 1].max()))
        tensors.append(dict(shape=net.shapes[i + 1], scale=scale, zero=zero))
        src = tensors[layer[1][0]]
        q = dict(kind=layer[0], src=layer[1], dst=i + 1, min=-128, max=127)
        if layer[0] in ("conv", "dense"):
            w, bias = net.params[i]
            ws = np.maximum(np.abs(w).max(0), 1e-8).astype(np.float32) / np.float32(127)
            acc = float(src["scale"]) * ws.astype(np.float64)
            q["weights"] = np.clip(np.rint(w / ws), -127, 127).astype(np.int8)
            q["bias"] = np.rint(bias / acc).astype(np.int32)
            ms = [quantize_multiplier(a / float(scale)) for a in acc]
            q["mult"] = np.array([m for m, _ in ms], np.int32)
            q["shift"] = np.array([s for _, s in ms], np.int32)
            if layer[0] == "conv" and layer[3]:
                q["min"] = zero  # relu: real 0
        elif layer[0] == "add":
            other = tensors[layer[1][1]]
            twice = 2 * max(float(src["scale"]), float(other["scale"]))
            q["left_shift"] = 20
            q["a"] = quantize_multiplier(float(src["scale"]) / twice)
            q["b"] = quantize_multiplier(float(other["scale"]) / twice)
            q["d"] = quantize_multiplier(twice / ((1 << 20) * float(scale)))
            q["min"] = zero
        out.append(q)
    return out, tensors


def rescale(x, mult, shift):
    """TensorFlow Lite's MultiplyByQuantizedMultiplier on int64 arrays of int32 values."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    ab = (x << left) * np.asarray(mult, np.int64)
    nudge = np.where(ab >= 0, 1 << 30, 1 - (1 << 30))
    high = ab + nudge
    high = np.where(high >= 0, high >> 31, -((-high) >> 31))  # C's truncating division
    mask = (np.int64(1) << right) - 1
    rem = high & mask
    threshold = (mask >> 1) + (high < 0)
    return (high >> right) + (rem > threshold)


def quantize_pixels(pixels):
    """0..16 to -128..127, rounding halves up: real pixel / 16 at scale 1 / 255."""
    return ((pixels.astype(np.int64) * 255 + 8) // PIXEL_MAX + INPUT_ZERO)[..., None]


def simulate(layers, tensors, pixels):
    """int8 inference: the logits of every image."""
    t = [quantize_pixels(pixels)]
    for q in layers:
        a = t[q["src"][0]]
        za, zd = tensors[q["src"][0]]["zero"], tensors[q["dst"]]["zero"]
        if q["kind"] == "pool":
            out = pool(a)
        elif q["kind"] == "add":
            b = t[q["src"][1]]
            sa = rescale((a - za) << 20, *q["a"])
            sb = rescale((b - tensors[q["src"][1]]["zero"]) << 20, *q["b"])
            out = rescale(sa + sb, *q["d"]) + zd
        else:
            cols = im2col(a - za) if q["kind"] == "conv" else (a - za).reshape(len(a), -1)
            acc = cols @ q["weights"].astype(np.int64) + q["bias"]
            out = rescale(acc, q["mult"], q["shift"]) + zd
            out = out.reshape((len(a),) + tensors[q["dst"]]["shape"])
        t.append(np.clip(out, q["min"], q["max"]))
    return t[-1].reshape(len(pixels), 10).astype(np.int8)


# ---- files: see data/digits/README.md for the layout ----------------------------------------

HEADER_BYTES, TENSOR_BYTES, LAYER_BYTES = 48, 16, 96
KIND = {"conv": 1, "dense": 2, "pool": 3, "add": 4}
KERNEL = {"conv": (3, 1, 1), "dense": (1, 1, 0), "pool": (2, 2, 0), "add": (1, 1, 0)}


def write_file(path, magic, name, counts, body):
    """magic, version, bytes of the file, CRC-32 of what follows byte 20, counts, name."""
    rest = struct.pack("<3I", *counts) + name.encode().ljust(16, b"\0") + body
    total = 20 + len(rest)
    with open(path, "wb") as f:
        f.write(magic + struct.pack("<3I", 1, total, binascii.crc32(rest)) + rest)
    return total


def write_network(path, name, layers, tensors):
    table = b"".join(
        struct.pack("<4Hfi", *t["shape"], 0, float(t["scale"]), t["zero"]) for t in tensors
    )
    base = HEADER_BYTES + len(table) + LAYER_BYTES * len(layers)
    assert len(table) == TENSOR_BYTES * len(tensors)
    data, records = b"", b""
    for q in layers:
        src = q["src"] + [0] * (2 - len(q["src"]))
        offsets, add = [], [0] * 7
        if q["kind"] in ("conv", "dense"):
            parts = [q["weights"].T.tobytes()]  # [n][ky][kx][c]
            parts += [q[k].astype("<i4").tobytes() for k in ("bias", "mult", "shift")]
            for p in parts:
                data += b"\0" * (-len(data) % 16)
                offsets.append(base + len(data))
                data += p
        elif q["kind"] == "add":
            add = [*q["a"], *q["b"], *q["d"], q["left_shift"]]
        records += struct.pack("<8I2i4I7i3I", KIND[q["kind"]], *src, q["dst"],
                               *KERNEL[q["kind"]], tensors[q["dst"]]["shape"][2],
                               q["min"], q["max"], *(offsets or [0] * 4), *add, 0, 0, 0)
    counts = (len(tensors), len(layers), 0)
    return write_file(path, b"HALDIGIT", name, counts, table + records + data)


def write_images(path, images, labels, rows):
    """64 pixels 0..16, the label, the row of the image in the data set: 67 bytes an image."""
    body = b"".join(
        x.astype(np.uint8).tobytes() + bytes([y]) + struct.pack("<H", r)
        for x, y, r in zip(images, labels, rows)
    )
    return write_file(path, b"HALIMAGE", "test", (len(images), 8, 8), body)


def write_logits(path, name, logits):
    return write_file(path, b"HALLOGIT", name, (len(logits), 10, 0), logits.tobytes())


# ---- main ----------------------------------------------------------------------------------


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--out", default="data/digits", help="folder to write (default %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of split and training (default 1)")
    p.add_argument("--epochs", type=int, default=300, help="passes over the training images")
    p.add_argument("--no-test", action="store_true", help="stop before the test images")
    a = p.parse_args()

    train_set, val_set, test_set, rows = load_split(a.seed)
    print(f"{len(train_set[0])} images to train, {len(val_set[0])} to validate, "
          f"{len(test_set[0])} to test")
    done = []
    for k, (name, layers) in enumerate((("small", SMALL), ("large", LARGE))):
        print(name)
        net = train(layers, train_set, val_set, a.epochs, a.seed + k, True)
        qlayers, tensors = quantize(net, train_set[0])
        logits = simulate(qlayers, tensors, val_set[0])
        right = int((logits.argmax(1) == val_set[1]).sum())
        print(f"  int8: {right} of {len(val_set[0])} validation images")
        done.append((name, net, qlayers, tensors))
    if a.no_test:
        return 0

    os.makedirs(a.out, exist_ok=True)
    write_images(os.path.join(a.out, "test.images"), *test_set, rows)
    for name, net, qlayers, tensors in done:
        logits = simulate(qlayers, tensors, test_set[0])
        right = int((logits.argmax(1) == test_set[1]).sum())
        size = write_network(os.path.join(a.out, name + ".net"), name, qlayers, tensors)
        write_logits(os.path.join(a.out, name + ".logits"), name, logits)
        print(f"{name}: {size} bytes; test images right: float {accuracy(net, test_set):.4f}, "
              f"int8 {right} of {len(logits)} = {right / len(logits):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
