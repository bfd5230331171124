# SPDX-License-Identifier: Apache-2.0
"""ONNX models for the tests of the provider: one operator each, and small networks."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INT8, UINT8, FLOAT = TensorProto.INT8, TensorProto.UINT8, TensorProto.FLOAT


class Graph:
    """A graph that grows, with random constants."""

    def __init__(self, kind, seed=7):
        self.kind = kind
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], []

    def name(self):
        return f"v{len(self.nodes)}_{len(self.constants)}"

    def constant(self, array):
        name = "c" + self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def zero(self):
        at = int(self.rng.integers(-20, 20))
        return np.int8(at) if self.kind == INT8 else np.uint8(at + 128)

    def least(self):
        return np.int8(-128) if self.kind == INT8 else np.uint8(0)

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, self.kind, shape))
        return name

    def node(self, kind, inputs, domain="", **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def params(self, scale, zero):
        return [self.constant(np.float32(scale)), self.constant(zero)]

    def real(self, x, scale, zero):
        return self.node("DequantizeLinear", [x] + self.params(scale, zero))

    def data(self, shape, scale=0.05):
        """An input of the model, in float."""
        return self.real(self.input(shape), scale, self.zero())

    def weights(self, shape, channel=None, kind=np.int8):
        """Constant weights in float, with a scale for each channel or one; and the scales."""
        values = self.rng.integers(-127, 128, shape)
        count = () if channel is None else shape[channel]
        scales = self.rng.uniform(0.002, 0.02, count).astype(np.float32)
        zero = 128 if kind == np.uint8 else 0
        inputs = [self.constant((values + zero).astype(kind)), self.constant(scales),
                  self.constant(np.full(count, zero, kind))]
        return self.node("DequantizeLinear", inputs,
                         **({} if channel is None else {"axis": channel})), scales

    def bias(self, count, scales):
        scales = np.broadcast_to(np.float32(0.05) * scales, (count,)).astype(np.float32)
        return self.node("DequantizeLinear", [
            self.constant(self.rng.integers(-2000, 2000, count).astype(np.int32)),
            self.constant(scales), self.constant(np.zeros(count, np.int32))], axis=0)

    def finish(self, x, scale=None, zero=None):
        """The model; x is quantized first if there is a scale."""
        if scale is not None:
            x = self.node("QuantizeLinear",
                          [x] + self.params(scale, self.zero() if zero is None else zero))
        output = helper.make_tensor_value_info(x, self.kind, None)
        return self.model([output])

    def model(self, outputs):
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
        return onnx.shape_inference.infer_shapes(model)


def convolutions(kind):
    for inputs, outputs, size, stride, pad, group, dilation, after, channel, weights in (
            (4, 8, 3, 1, [1] * 4, 1, 1, None, 0, np.int8),
            (6, 6, 3, 2, [1] * 4, 6, 1, "Relu", 0, np.int8),
            (8, 16, 1, 1, [0] * 4, 1, 1, "Clip", None, np.int8),
            (4, 12, 3, 1, [1] * 4, 4, 1, None, 0, np.int8),
            (8, 8, 3, 1, [2] * 4, 2, 2, "Relu", 0, np.int8),
            (3, 5, 5, 2, [2] * 4, 1, 1, None, None, np.uint8),
            (3, 8, 3, 2, [0, 0, 1, 1], 1, 1, None, 0, np.int8)):
        g = Graph(kind)
        w, scales = g.weights((outputs, inputs // group, size, size), channel, weights)
        x = g.node("Conv", [g.data([1, inputs, 9, 9]), w, g.bias(outputs, scales)], pads=pad,
                   strides=[stride] * 2, dilations=[dilation] * 2, group=group)
        if after == "Relu":
            x = g.node("Relu", [x])
        elif after:
            x = g.node("Clip", [x, g.constant(np.float32(0)), g.constant(np.float32(6))])
        yield (f"Conv {inputs} to {outputs}, {size} x {size}, stride {stride}, pads {pad}, "
               f"group {group}, {after}"), g.finish(x, 0.06)
    g = Graph(kind)
    w, _ = g.weights((8, 4, 3, 3), 0)
    bias = g.constant(g.rng.uniform(-1, 1, 8).astype(np.float32))
    yield "Conv, bias in float, SAME, two images", g.finish(
        g.node("Conv", [g.data([2, 4, 8, 8]), w, bias], auto_pad="SAME_UPPER",
               strides=[2, 2]), 0.1)
    for stride, pad, more in ((2, 0, 0), (2, 1, 1), (1, 1, 0), (2, 1, 0)):
        g = Graph(kind)
        w, _ = g.weights((4, 6, 3, 3), 1)
        yield f"ConvTranspose, stride {stride}, pads {pad}, {more}", g.finish(
            g.node("ConvTranspose", [g.data([1, 4, 8, 8]), w], strides=[stride] * 2,
                   pads=[pad] * 4, output_padding=[more] * 2), 0.05)
    for group, weights in ((2, np.int8), (4, np.int8), (2, np.uint8)):
        g = Graph(kind)
        w, scales = g.weights((4, 3, 3, 3), None, weights)
        yield f"ConvTranspose, group {group}, {np.dtype(weights)}", g.finish(
            g.node("ConvTranspose", [g.data([1, 4, 6, 6]), w, g.bias(3 * group, scales)],
                   group=group, strides=[2, 2], pads=[1] * 4), 0.05)


def offsets(kind):
    """Weights with a zero point."""
    for zero in (np.int8(-37), np.uint8(99)):
        def real(shape):
            values = g.rng.integers(0, 256, shape).astype(np.uint8).view(zero.dtype)
            return g.real(g.constant(values), 0.01, zero)

        for shape, group, attributes in (
                ((8, 4, 3, 3), 1, {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
                ((4, 1, 3, 3), 4, {"pads": [1] * 4}), ((6, 2, 3), 2, {"pads": [1, 1]})):
            g = Graph(kind)
            x = g.node("Conv", [g.data([1, 4, 9, 9][:len(shape)]), real(shape),
                                g.bias(shape[0], np.float32(0.01))], group=group, **attributes)
            yield f"Conv {shape}, weights have zero point {zero}", g.finish(
                g.node("Relu", [x]), 0.06)
        g = Graph(kind)
        yield f"MatMul, weights have zero point {zero}", g.finish(
            g.node("MatMul", [g.data([2, 5, 12]), real((12, 7))]), 0.05)


def signals(kind):
    """Convolutions and pools of one dimension."""
    for inputs, outputs, size, stride, pad, group, dilation in (
            (4, 8, 3, 1, [1, 1], 1, 1), (6, 6, 5, 2, [2, 1], 6, 1), (8, 4, 3, 1, [2, 2], 2, 2),
            (3, 5, 1, 1, [0, 0], 1, 1)):
        g = Graph(kind)
        w, scales = g.weights((outputs, inputs // group, size), 0)
        x = g.node("Conv", [g.data([2, inputs, 20]), w, g.bias(outputs, scales)], pads=pad,
                   strides=[stride], dilations=[dilation], group=group)
        yield (f"Conv of signals, {inputs} to {outputs}, {size}, stride {stride}, pads {pad}, "
               f"group {group}"), g.finish(g.node("Relu", [x]), 0.06)
    g = Graph(kind)
    scales = g.constant(g.rng.uniform(0.002, 0.02, 8).astype(np.float32))
    w = g.constant(g.rng.integers(-127, 128, (8, 4, 3)).astype(np.int8))
    yield "QLinearConv of signals", g.finish(g.node(
        "QLinearConv", [g.input([1, 4, 16])] + g.params(0.05, g.zero()) +
        [w, scales, g.constant(np.zeros(8, np.int8))] + g.params(0.3, g.zero()),
        auto_pad="SAME_UPPER", strides=[2]))
    g = Graph(kind)
    yield "ConvTranspose of signals", g.finish(
        g.node("ConvTranspose", [g.data([1, 4, 8]), g.weights((4, 6, 3), 1)[0]], strides=[2],
               pads=[1, 0]), 0.05)
    for name, attributes in (("MaxPool", {"strides": [2], "pads": [1, 0]}),
                             ("AveragePool", {"strides": [3]}),
                             ("AveragePool", {"pads": [1, 1], "count_include_pad": 1})):
        g = Graph(kind)
        yield f"{name} of signals {attributes}", g.finish(
            g.node(name, [g.data([2, 4, 15])], kernel_shape=[3], **attributes), 0.05)


def linear(kind):
    """Operators of integers, and matrix products."""
    def q(scale):
        return g.params(scale, g.zero())

    def weights(shape):
        return g.constant(g.rng.integers(-127, 128, shape).astype(np.int8))

    def flat(count):
        return g.constant(np.zeros(count, np.int8))

    g = Graph(kind)
    scales = g.constant(g.rng.uniform(0.002, 0.02, 8).astype(np.float32))
    bias = g.constant(g.rng.integers(-2000, 2000, 8).astype(np.int32))
    yield "QLinearConv", g.finish(g.node(
        "QLinearConv", [g.input([1, 4, 8, 8])] + q(0.05) + [weights((8, 4, 3, 3)), scales,
                                                            flat(8)] + q(0.3) + [bias],
        pads=[1] * 4))
    if kind == INT8:
        g = Graph(kind)
        yield "QLinearMatMul", g.finish(g.node(
            "QLinearMatMul", [g.input([5, 12])] + q(0.05) + [weights((12, 7))] +
            g.params(0.01, np.int8(0)) + q(0.05)))
    for turned, channel in ((0, 1), (1, 0), (1, None)):
        g = Graph(kind)
        w, scales = g.weights((10, 33) if turned else (33, 10), channel)
        yield f"Gemm, transB {turned}, scales along {channel}", g.finish(g.node(
            "Gemm", [g.data([3, 33]), w, g.bias(10, scales)], transB=turned), 0.1)
    g = Graph(kind)
    yield "MatMul of weights", g.finish(
        g.node("MatMul", [g.data([2, 5, 12]), g.weights((12, 7))[0]]), 0.05)
    g = Graph(kind)
    yield "MatMul of activations", g.finish(
        g.node("MatMul", [g.data([2, 5, 12]), g.data([2, 12, 6], 0.03)]), 0.1)
    for first, second in (([2, 5, 12], (2, 12, 6)), ((5, 12), [12, 6]), ((2, 5, 12), [2, 12, 6])):
        g = Graph(kind)

        def operand(shape, scale):
            if isinstance(shape, list):
                return g.data(shape, scale)
            values = g.rng.integers(0, 256, shape).astype(np.uint8)
            values = values.view(np.int8) if kind == INT8 else values
            return g.real(g.constant(values), scale, g.zero())

        yield f"MatMul of {first} and {second}, one constant", g.finish(
            g.node("MatMul", [operand(first, 0.05), operand(second, 0.03)]), 0.1)
    for name in ("QLinearAdd", "QLinearMul"):
        g = Graph(kind)
        yield name, g.finish(g.node(
            name, [g.input([1, 4, 6, 6])] + q(0.05) + [g.input([1, 4, 6, 6])] + q(0.07) +
            q(0.1), "com.microsoft"))
    for name, attributes in (("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                             ("QLinearGlobalAveragePool", {}), ("QLinearSigmoid", {}),
                             ("QLinearLeakyRelu", {})):
        g = Graph(kind)
        x = g.input([1, 4, 8, 8])
        yield name, g.finish(g.node(name, [x] + q(0.05) + q(0.045 if "Pool" in name else 1 / 200),
                                    "com.microsoft", **attributes))
    g = Graph(kind)
    yield "MaxPool of integers", g.finish(g.node(
        "MaxPool", [g.input([1, 4, 8, 8])], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))


def pairs(kind):
    for name in ("Add", "Sub", "Mul"):
        for a, b in (([1, 4, 6, 6], [1, 4, 6, 6]), ([1, 4, 6, 6], [1, 4, 1, 1]), ([2, 9], [9])):
            g = Graph(kind)
            yield f"{name} {a} {b}", g.finish(g.node(name, [g.data(a), g.data(b, 0.07)]), 0.1)
        g = Graph(kind)
        number = g.rng.integers(0, 256, (4, 1, 1)).astype(np.uint8)
        number = number.view(np.int8) if kind == INT8 else number
        yield f"{name} of a constant", g.finish(g.node(
            name, [g.data([1, 4, 6, 6]), g.real(g.constant(number), 0.03, g.zero())]), 0.1)
    for name in ("Max", "Min"):
        g = Graph(kind)
        yield name, g.finish(
            g.node(name, [g.data([1, 4, 6, 6]), g.data([1, 4, 6, 6], 0.07)]), 0.06)
    g = Graph(kind)
    yield "Concat", g.finish(
        g.node("Concat", [g.data([1, 4, 5, 5]), g.data([1, 3, 5, 5], 0.07)], axis=1), 0.08)


def single(kind):
    """One operand, with the quantization of the result and with another one."""
    def ints(*numbers):
        return np.array(numbers, np.int64)

    def floats(*numbers):
        return np.array(numbers, np.float32)

    image = [1, 4, 8, 8]
    asymmetric = {"coordinate_transformation_mode": "asymmetric"}
    for name, shape, more, attributes in (
            ("MaxPool", image, [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("MaxPool", image, [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
            ("AveragePool", image, [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("AveragePool", image, [], {"kernel_shape": [3, 3], "pads": [1] * 4,
                                        "count_include_pad": 1}),
            ("AveragePool", image, [], {"kernel_shape": [3, 3], "pads": [1] * 4}),
            ("AveragePool", image, [], {"kernel_shape": [3, 3], "strides": [2, 2],
                                        "auto_pad": "SAME_UPPER"}),
            ("GlobalAveragePool", image, [], {}),
            ("ReduceMean", image, [ints(2, 3)], {"keepdims": 0}),
            ("GlobalAveragePool", [2, 4, 9], [], {}),
            ("ReduceMean", image, [ints(1)], {"keepdims": 1}),
            ("ReduceMean", image, [ints(3)], {"keepdims": 0}),
            ("ReduceMean", image, [ints(-1)], {"keepdims": 1}),
            ("ReduceMean", image, [ints(1, 2)], {"keepdims": 0}),
            ("ReduceMean", image, [ints(1, 3)], {"keepdims": 0}),
            ("ReduceMean", [3, 4, 8, 8], [ints(1, 2, 3)], {"keepdims": 0}),
            ("ReduceMean", image, [ints(0, 2)], {"keepdims": 1}),
            ("ReduceMean", image, [], {"keepdims": 1}),
            ("ReduceMean", [2, 9, 6], [ints(1)], {"keepdims": 0}),
            ("ReduceMean", [2, 9, 6], [ints(2)], {"keepdims": 1}),
            ("ReduceMean", [5, 12], [ints(1)], {"keepdims": 0}),
            ("ReduceMean", [5, 12], [ints(0)], {"keepdims": 1}),
            ("Slice", image, [ints(1, 2), ints(7, 8), ints(2, 3)], {}),
            ("Slice", image, [ints(0, -3), ints(100, -1), ints(1, 2), ints(2, 1)], {}),
            ("Slice", [2, 12], [ints(3), ints(9), ints(1)], {}),
            ("Pad", image, [ints(0, 0, 1, 2, 0, 0, 3, 0)], {}),
            ("Pad", image, [ints(0, 1, 0, 0, 0, 0, 0, 0), np.float32(1)], {}),
            ("Resize", image, [None, floats(1, 1, 2, 2)], {"nearest_mode": "floor", **asymmetric}),
            ("Resize", image, [None, floats(1, 1, 2, 3)], {}),
            ("Resize", image, [None, floats(1, 1, 2, 2)], {"mode": "linear"}),
            ("Resize", image, [None, floats(1, 1, 2, 2)], {"mode": "linear", **asymmetric}),
            ("Resize", image, [None, None, ints(1, 4, 15, 15)],
             {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
            ("DepthToSpace", image, [], {"blocksize": 2}),
            ("SpaceToDepth", image, [], {"blocksize": 2})):
        for same in (True, False):
            g = Graph(kind)
            zero = g.zero()
            inputs = [g.real(g.input(shape), 0.05, zero)]
            inputs += ["" if m is None else g.constant(m) for m in more]
            yield f"{name} {shape} {more} {attributes} {'as is' if same else 'requantized'}", g.finish(
                g.node(name, inputs, **attributes), 0.05 if same else 0.045,
                zero if same else None)


def splits(kind):
    """Several results: quantized as the operand, each in its own way, or integers."""
    for shape, axis, sizes in (([1, 8, 6, 6], 1, [4, 4]), ([1, 7, 6, 6], 1, [1, 4, 2]),
                               ([2, 4, 6, 9], -1, [2, 3, 4]), ([2, 4, 7, 5], 2, [6, 1]),
                               ([4, 10], 0, [1, 3]), ([3, 5, 6], 1, [2, 3])):
        for how in ("as is", "requantized", "of integers"):
            g = Graph(kind)
            zero, x = g.zero(), g.input(shape)
            names = [f"part{i}" for i in range(len(sizes))]
            parts = np.array(sizes, np.int64)
            g.nodes.append(helper.make_node(
                "Split", [x if how == "of integers" else g.real(x, 0.05, zero),
                          g.constant(parts)], names, axis=axis))
            if how != "of integers":
                names = [g.node("QuantizeLinear", [n] + (
                    g.params(0.05, zero) if how == "as is" else
                    g.params(0.04 + 0.01 * i, g.zero()))) for i, n in enumerate(names)]
            yield f"Split {shape}, {sizes} along {axis}, {how}", g.model(
                [helper.make_tensor_value_info(n, kind, None) for n in names])
    g = Graph(kind)  # the parts meet again
    zero = g.zero()
    g.nodes.append(helper.make_node("Split", [g.real(g.input([1, 8, 6, 6]), 0.05, zero)],
                                    ["a", "b"], axis=1, num_outputs=2))
    a, b = (g.real(g.node("QuantizeLinear", [n] + g.params(0.05, zero)), 0.05, zero)
            for n in ("a", "b"))
    yield "Split, Mul of the parts", g.finish(g.node("Mul", [a, b]), 0.1)


def tables(kind):
    """Functions of one number."""
    for name, scale, to, attributes in (
            ("Sigmoid", 0.05, 1 / 256, {}), ("Tanh", 0.03, 1 / 128, {}), ("Erf", 0.03, 1 / 128, {}),
            ("Relu", 0.05, 0.03, {}), ("LeakyRelu", 0.05, 0.04, {"alpha": 0.1}),
            ("Elu", 0.05, 0.03, {}), ("Selu", 0.05, 0.05, {}), ("Gelu", 0.05, 0.04, {}),
            ("Gelu", 0.05, 0.04, {"approximate": "tanh"}), ("HardSigmoid", 0.1, 1 / 255, {}),
            ("HardSwish", 0.05, 0.04, {}), ("Exp", 0.02, 0.05, {}), ("Abs", 0.05, 0.04, {}),
            ("Neg", 0.05, 0.05, {}), ("Softplus", 0.05, 0.04, {}), ("Softsign", 0.05, 1 / 128, {}),
            ("Floor", 0.05, 0.06, {}), ("Ceil", 0.05, 0.06, {}), ("Round", 0.05, 0.06, {}),
            ("Sin", 0.05, 1 / 127, {}), ("Cos", 0.05, 1 / 127, {})):
        g = Graph(kind)
        yield f"{name} {attributes}", g.finish(
            g.node(name, [g.data([1, 4, 8, 8], scale)], **attributes), to)
    for name in ("Sqrt", "Log", "Reciprocal"):
        g = Graph(kind)
        zero = g.least()
        x = g.node("Clip", [g.real(g.input([1, 4, 8, 8]), 0.05, zero),
                            g.constant(np.float32(0.05)), g.constant(np.float32(100))])
        x = g.node("QuantizeLinear", [x] + g.params(0.05, zero))
        yield name, g.finish(g.node(name, [g.real(x, 0.05, zero)]), 0.04)
    for name in ("Sqrt", "Log"):  # which is no number in half of the cases
        g = Graph(kind)
        yield f"{name} of any number", g.finish(g.node(name, [g.data([1, 4, 8, 8])]), 0.04)
    for shape, axis in (([3, 10], -1), ([1, 5, 4, 4], 1)):
        g = Graph(kind)
        yield f"Softmax {shape}", g.finish(
            g.node("Softmax", [g.data(shape)], axis=axis), 1 / 256, g.least())


def orders(kind):
    """Between N, C, H, W of the graph and N, H, W, C of the machine."""
    for after in ("Slice", "Concat", "Split", "Add", "Abs"):  # of signals
        g = Graph(kind)
        zero = g.zero()
        x = g.node("Conv", [g.data([2, 4, 9]), g.weights((6, 4, 3))[0]], pads=[1, 1])
        x = g.real(g.node("QuantizeLinear", [x] + g.params(0.2, zero)), 0.2, zero)
        if after == "Slice":
            x = g.node(after, [x] + [g.constant(np.array(n, np.int64))
                                     for n in ([1, 2], [5, 8], [1, 2])])
        elif after == "Concat":
            x = g.node(after, [x, g.data([2, 2, 9], 0.2)], axis=1)
        elif after == "Split":
            g.nodes.append(helper.make_node(
                after, [x, g.constant(np.array([2, 4], np.int64))], ["a", "b"], axis=1))
            ends = [g.node("QuantizeLinear", [n] + g.params(0.2, zero)) for n in ("a", "b")]
            yield "Conv, Split of signals", g.model(
                [helper.make_tensor_value_info(n, kind, None) for n in ends])
            continue
        elif after == "Add":
            number = g.rng.integers(1, 100, (6, 1)).astype(np.uint8)
            number = number.view(np.int8) if kind == INT8 else number
            x = g.node(after, [x, g.real(g.constant(number), 0.1, zero)])
        else:
            x = g.node(after, [x])
        yield f"Conv, {after} of signals", g.finish(x, 0.2, zero)
    for after in ("Transpose", "Flatten"):
        g = Graph(kind)
        zero = g.zero()
        x = g.node("Conv", [g.data([1, 4, 8, 8]), g.weights((6, 4, 3, 3))[0]], pads=[1] * 4)
        x = g.real(g.node("QuantizeLinear", [x] + g.params(0.2, zero)), 0.2, zero)
        if after == "Transpose":
            yield "Conv, Transpose", g.finish(g.node(after, [x], perm=[0, 2, 1, 3]), 0.2, zero)
            continue
        x = g.node("QuantizeLinear", [g.node(after, [x])] + g.params(0.2, zero))
        yield "Conv, Flatten, Gemm", g.finish(
            g.node("Gemm", [g.real(x, 0.2, zero), g.weights((384, 10))[0]]), 8)


def all_single():
    """Each model of one operator: text, model, how many layers round."""
    for kind, name in ((INT8, "int8"), (UINT8, "uint8")):
        for some in (convolutions, offsets, signals, linear, pairs, single, splits, tables,
                     orders):
            for text, model in some(kind):
                yield f"{name} {text}", model, 2 if some is orders else 1


def mixed(batch=1):
    """Convolutions with a function in float that the NPU does not take between them."""
    g = Graph(INT8, 3)
    x = helper.make_tensor_value_info("x", FLOAT, [batch, 4, 8, 8])
    zero = g.zero()

    def conv(y, scale):
        w, scales = g.weights((4, 4, 3, 3), 0)
        y = g.node("Conv", [y, w, g.bias(4, scales)], pads=[1] * 4)
        return g.real(g.node("QuantizeLinear", [y] + g.params(scale, zero)), scale, zero)

    y = g.real(g.node("QuantizeLinear", ["x"] + g.params(0.05, zero)), 0.05, zero)
    y = g.node("ThresholdedRelu", [conv(y, 0.1)], alpha=0.5)
    y = conv(g.real(g.node("QuantizeLinear", [y] + g.params(0.1, zero)), 0.1, zero), 1.5)
    out = helper.make_tensor_value_info(y, FLOAT, None)
    graph = helper.make_graph(g.nodes, "mixed", [x], [out], g.constants)
    return onnx.shape_inference.infer_shapes(helper.make_model(
        graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]))
