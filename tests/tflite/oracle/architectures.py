#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""architectures.py FOLDER [NAME...]: public architectures as TensorFlow Lite files of int8.

Each is built by Keras with random weights, quantized by TensorFlow's converter with random
inputs, and has an open batch, as converters leave it.  Nothing is trained: what a network is
made of, its shapes and its operators are those of the public one.  Needs tensorflow.
"""
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow import keras

L = keras.layers
A = keras.applications


def application(name, side, **options):
    return lambda: getattr(A, name)(input_shape=(side, side, 3), weights=None, **options)


def chain(shape, *layers):
    return lambda: keras.Sequential([L.Input(shape), *layers])


def unet():
    x = image = L.Input((96, 96, 3))
    skips = []
    for c in (16, 32, 64):
        x = L.BatchNormalization()(L.Conv2D(c, 3, padding="same", activation="relu")(x))
        skips.append(x)
        x = L.MaxPool2D()(x)
    x = L.Conv2D(128, 3, padding="same", activation="relu")(x)
    for skip in reversed(skips):
        c = skip.shape[-1]
        x = L.Conv2DTranspose(c, 2, strides=2, padding="same")(x)
        x = L.Conv2D(c, 3, padding="same", activation="relu")(L.Concatenate()([x, skip]))
    return keras.Model(image, L.Softmax()(L.Conv2D(4, 1)(x)))


def deeplab():
    base = A.MobileNetV2((128, 128, 3), alpha=0.35, weights=None, include_top=False)
    x = base.get_layer("block_13_expand_relu").output
    pooled = L.Conv2D(64, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(x))
    pooled = L.UpSampling2D((8, 8), interpolation="bilinear")(pooled)
    near = L.Conv2D(64, 1, activation="relu")(x)
    far = L.Conv2D(64, 3, dilation_rate=6, padding="same", activation="relu")(x)
    x = L.Conv2D(21, 1)(L.Concatenate()([pooled, near, far]))
    return keras.Model(base.input, L.UpSampling2D((16, 16), interpolation="bilinear")(x))


def yolo():
    """As YOLOv8n has it: CSP stages, pooled pyramid, three scales."""
    def block(x, c, k=3, stride=1):
        x = L.Conv2D(c, k, stride, padding="same", use_bias=False)(x)
        return L.Activation("swish")(L.BatchNormalization()(x))

    def stage(x, c, repeat=1):
        x = block(x, c, 1)
        parts = [x[..., :c // 2], x[..., c // 2:]]
        for _ in range(repeat):
            parts.append(L.Add()([parts[-1], block(block(parts[-1], c // 2), c // 2)]))
        return block(L.Concatenate()(parts), c, 1)

    image = L.Input((128, 128, 3))
    x = stage(block(block(image, 16, 3, 2), 32, 3, 2), 32)
    p3 = stage(block(x, 64, 3, 2), 64, 2)
    p4 = stage(block(p3, 128, 3, 2), 128, 2)
    pools = [block(stage(block(p4, 256, 3, 2), 256), 128, 1)]
    for _ in range(3):
        pools.append(L.MaxPool2D(5, 1, "same")(pools[-1]))
    p5 = block(L.Concatenate()(pools), 256, 1)
    n4 = stage(L.Concatenate()([L.UpSampling2D()(p5), p4]), 128)
    n3 = stage(L.Concatenate()([L.UpSampling2D()(n4), p3]), 64)
    heads = [L.Reshape((-1, 80))(L.Activation("sigmoid")(L.Conv2D(80, 1)(n)))
             for n in (n3, n4, p5)]
    return keras.Model(image, L.Concatenate(axis=1)(heads))


def transformer():
    x = tokens = L.Input((32, 64))
    for _ in range(2):
        x = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(4, 16)(x, x)]))
        y = L.Dense(64)(L.Dense(256, activation="gelu")(x))
        x = L.LayerNormalization()(L.Add()([x, y]))
    return keras.Model(tokens, L.Dense(10, activation="softmax")(
        L.GlobalAveragePooling1D()(x)))


class Shuffle(L.Layer):
    def call(self, x):
        return tf.nn.depth_to_space(x, 4)


NETWORKS = {
    "mobilenet": application("MobileNet", 96),
    "mobilenetv2": application("MobileNetV2", 96),
    "mobilenetv2_224": application("MobileNetV2", 224),
    "mobilenetv3small": application("MobileNetV3Small", 96),
    "mobilenetv3large": application("MobileNetV3Large", 96),
    "mobilenetv3minimal": application("MobileNetV3Small", 96, minimalistic=True),
    "efficientnetb0": application("EfficientNetB0", 96),
    "efficientnetv2b0": application("EfficientNetV2B0", 96),
    "nasnetmobile": application("NASNetMobile", 96),
    "resnet50": application("ResNet50", 64),
    "resnet50v2": application("ResNet50V2", 64),
    "densenet121": application("DenseNet121", 64),
    "inceptionv3": application("InceptionV3", 96),
    "xception": application("Xception", 96),
    "vgg16": application("VGG16", 32, classes=10),
    "unet": unet,
    "deeplab": deeplab,
    "yolo": yolo,
    "transformer": transformer,
    "gru": chain((20, 16), L.GRU(32, unroll=True), L.Dense(10)),
    "conv1d": chain((128, 9), L.Conv1D(32, 5, activation="relu"), L.MaxPool1D(),
                    L.Conv1D(64, 3, activation="elu"), L.GlobalAveragePooling1D(),
                    L.Dense(6, activation="softmax")),
    "autoencoder": chain((640,), L.Dense(128, activation="relu"),
                         L.Dense(8, activation="relu"), L.Dense(128, activation="tanh"),
                         L.Dense(640)),
    "superresolution": chain((32, 32, 3), L.Conv2D(64, 9, padding="same", activation="relu"),
                             L.Conv2D(32, 1, activation=L.PReLU(shared_axes=[1, 2])),
                             L.Conv2D(48, 3, padding="same"), Shuffle()),
}


def randomize(model, random):
    """Weights that keep the size of activations, so that no layer's output is all zero."""
    for layer in model._flatten_layers(include_self=False, recursive=True):
        depthwise = isinstance(layer, L.DepthwiseConv2D)
        for w in getattr(layer, "_trainable_variables", []):
            if len(w.shape) < 2 or "kernel" not in w.name:
                continue
            fan = np.prod(w.shape[:2] if depthwise else w.shape[:-1])
            w.assign(random.normal(0, np.sqrt(2 / fan), w.shape).astype(np.float32))


def convert(name):
    random = np.random.default_rng(5)
    keras.utils.set_random_seed(5)
    model = NETWORKS[name]()
    randomize(model, random)
    shape = (1,) + tuple(model.input_shape[1:])
    pixels = 255 if name.startswith(("mobilenetv3", "efficientnet")) else 1
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [random.random(shape, dtype=np.float32) * pixels] for _ in range(4))
        converter.inference_input_type = converter.inference_output_type = tf.int8
        return converter.convert()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n", maxsplit=1)[0])
    for name in sys.argv[2:] or NETWORKS:
        data = convert(name)
        with open(os.path.join(sys.argv[1], name + ".tflite"), "wb") as f:
            f.write(data)
        print(name, len(data), flush=True)


if __name__ == "__main__":
    main()
