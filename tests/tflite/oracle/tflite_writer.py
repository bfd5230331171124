# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite files with the flatbuffers package alone: no schema compiler, just the
few tables that single-operator int8 models need.

Field and enumerator numbers are those of tensorflow/lite/schema/schema.fbs.
"""
import flatbuffers
import numpy as np

FLOAT32, INT32, UINT8, INT64, INT16, INT8, RESOURCE = 0, 2, 3, 4, 7, 9, 13  # TensorType
SAME, VALID = 0, 1  # Padding
NONE, RELU, RELU6, TANH = 0, 1, 3, 4  # ActivationFunctionType

# operator: (BuiltinOperator, version that its int8 kernel has, BuiltinOptions, fields).
# Fields of the options table in the schema's order: (name, kind, default).
OPERATORS = {
    "ADD": (0, 2, 11, [("act", "i8", 0), ("pot_scale", "bool", True)]),
    "AVERAGE_POOL_2D": (1, 2, 5, [("padding", "i8", 0), ("stride_w", "i32", 0),
                                  ("stride_h", "i32", 0), ("filter_w", "i32", 0),
                                  ("filter_h", "i32", 0), ("act", "i8", 0)]),
    "CONCATENATION": (2, 2, 10, [("axis", "i32", 0), ("act", "i8", 0)]),
    "CONV_2D": (3, 3, 1, [("padding", "i8", 0), ("stride_w", "i32", 0),
                          ("stride_h", "i32", 0), ("act", "i8", 0),
                          ("dilation_w", "i32", 1), ("dilation_h", "i32", 1),
                          ("bias_type", "i8", 0)]),
    "DEPTHWISE_CONV_2D": (4, 3, 2, [("padding", "i8", 0), ("stride_w", "i32", 0),
                                    ("stride_h", "i32", 0), ("multiplier", "i32", 0),
                                    ("act", "i8", 0), ("dilation_w", "i32", 1),
                                    ("dilation_h", "i32", 1)]),
    "FULLY_CONNECTED": (9, 4, 8, [("act", "i8", 0), ("format", "i8", 0),
                                  ("keep_num_dims", "bool", False),
                                  ("asymmetric", "bool", False), ("bias_type", "i8", 0)]),
    "LOGISTIC": (14, 2, 0, []),
    "MAX_POOL_2D": (17, 2, 5, [("padding", "i8", 0), ("stride_w", "i32", 0),
                               ("stride_h", "i32", 0), ("filter_w", "i32", 0),
                               ("filter_h", "i32", 0), ("act", "i8", 0)]),
    "MUL": (18, 2, 21, [("act", "i8", 0)]),
    "RELU": (19, 2, 0, []),
    "RELU_N1_TO_1": (20, 1, 0, []),
    "RELU6": (21, 2, 0, []),
    "RESHAPE": (22, 1, 17, [("new_shape", "[i32]", None)]),
    "DEQUANTIZE": (6, 2, 0, []),
    "RESIZE_BILINEAR": (23, 3, 15, [("height", "i32", 0), ("width", "i32", 0),
                                    ("align_corners", "bool", False),
                                    ("half_pixel", "bool", False)]),
    "SOFTMAX": (25, 2, 9, [("beta", "f32", 0.0)]),
    "SVDF": (27, 3, 6, [("rank", "i32", 0), ("act", "i8", 0)]),
    "TANH": (28, 2, 0, []),
    "PAD": (34, 2, 22, []),
    "MEAN": (40, 2, 27, [("keep_dims", "bool", False)]),
    "GATHER": (36, 5, 23, [("axis", "i32", 0), ("batch_dims", "i32", 0)]),
    "TRANSPOSE": (39, 4, 26, []),
    "SUB": (41, 2, 28, [("act", "i8", 0), ("pot_scale", "bool", True)]),
    "FLOOR": (8, 1, 0, []),
    "SIN": (66, 1, 0, []),
    "SQUARE": (92, 1, 66, []),
    "CEIL": (104, 1, 0, []),
    "COS": (108, 1, 77, []),
    "ROUND": (116, 1, 0, []),
    "DIV": (42, 1, 29, [("act", "i8", 0)]),
    "DENSIFY": (124, 1, 99, []),
    "EXP": (47, 1, 33, []),
    "NEG": (59, 1, 42, []),
    "LOG": (73, 1, 0, []),
    "SQRT": (75, 1, 0, []),
    "RSQRT": (76, 2, 0, []),
    "ABS": (101, 2, 78, []),
    "ELU": (111, 1, 0, []),
    "HARD_SWISH": (117, 1, 91, []),
    "GELU": (150, 1, 116, [("approximate", "bool", False)]),
    "RELU_0_TO_1": (152, 1, 0, []),
    "STRIDED_SLICE": (45, 4, 32, [("begin_mask", "i32", 0), ("end_mask", "i32", 0),
                                  ("ellipsis_mask", "i32", 0), ("new_axis_mask", "i32", 0),
                                  ("shrink_axis_mask", "i32", 0)]),
    "SPLIT": (49, 2, 35, [("num_splits", "i32", 0)]),
    "LOG_SOFTMAX": (50, 2, 36, []),
    "SPACE_TO_DEPTH": (26, 1, 19, [("block_size", "i32", 0)]),
    "DEPTH_TO_SPACE": (5, 1, 94, [("block_size", "i32", 0)]),
    "SLICE": (65, 2, 48, []),
    "TILE": (69, 2, 51, []),
    "SHAPE": (77, 1, 55, [("out_type", "i8", 0)]),
    "REDUCE_PROD": (81, 1, 27, [("keep_dims", "bool", False)]),
    "PACK": (83, 2, 59, [("values_count", "i32", 0), ("axis", "i32", 0)]),
    "UNPACK": (88, 2, 64, [("num", "i32", 0), ("axis", "i32", 0)]),
    "FLOOR_DIV": (90, 1, 65, []),
    "FILL": (94, 3, 0, []),
    "RANGE": (96, 1, 73, []),
    "RESIZE_NEAREST_NEIGHBOR": (97, 3, 74, [("align_corners", "bool", False),
                                            ("half_pixel_centers", "bool", False)]),
    "SPLIT_V": (102, 2, 79, [("num_splits", "i32", 0)]),
    "REVERSE_V2": (105, 1, 81, []),
    "MIRROR_PAD": (100, 2, 77, [("mode", "i8", 0)]),
    "BROADCAST_TO": (130, 2, 0, []),
    "SPACE_TO_BATCH_ND": (38, 2, 25, []),
    "BATCH_TO_SPACE_ND": (37, 2, 24, []),
    "RANK": (110, 1, 86, []),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (44, 1, 71, [("act", "i8", 0), ("cell_clip", "f32", 0.0),
                                                 ("proj_clip", "f32", 0.0),
                                                 ("time_major", "bool", False)]),
    "SQUEEZE": (43, 1, 30, [("squeeze_dims", "[i32]", None)]),
    "SUB": (41, 2, 28, [("act", "i8", 0), ("pot_scale", "bool", True)]),
    "PRELU": (54, 1, 0, []),
    "MAXIMUM": (55, 2, 39, []),
    "ARG_MAX": (56, 2, 40, [("output_type", "i8", 0)]),
    "MINIMUM": (57, 2, 39, []),
    "PADV2": (60, 2, 43, []),
    "TRANSPOSE_CONV": (67, 3, 49, [("padding", "i8", 0), ("stride_w", "i32", 0),
                                   ("stride_h", "i32", 0), ("act", "i8", 0),
                                   ("bias_type", "i8", 0)]),
    "EXPAND_DIMS": (70, 1, 52, []),
    "ARG_MIN": (79, 2, 57, [("output_type", "i8", 0)]),
    "REDUCE_MAX": (82, 2, 27, [("keep_dims", "bool", False)]),
    "REDUCE_MIN": (89, 2, 27, [("keep_dims", "bool", False)]),
    "LEAKY_RELU": (98, 1, 75, [("alpha", "f32", 0.0)]),
    "QUANTIZE": (114, 2, 0, []),
    "BATCH_MATMUL": (126, 2, 101, [("adj_x", "bool", False), ("adj_y", "bool", False)]),
    "CALL_ONCE": (129, 1, 103, [("graph", "i32", 0)]),
    "VAR_HANDLE": (142, 1, 111, [("container", "str", None), ("shared_name", "str", None)]),
    "READ_VARIABLE": (143, 1, 112, []),
    "ASSIGN_VARIABLE": (144, 1, 113, []),
}

_SLOT = {
    "i8": "PrependInt8Slot",
    "i32": "PrependInt32Slot",
    "f32": "PrependFloat32Slot",
    "bool": "PrependBoolSlot",
}


class Graph:
    """Built up tensor by tensor and operator by operator."""

    def __init__(self, dtype=INT8):
        self.dtype = dtype  # of tensors that do not say
        self._tensors = []
        self._operators = []
        self.inputs = []
        self.outputs = []

    def tensor(self, name, shape, scale=None, zero=0, data=None, dtype=None, axis=0,
               variable=False, signature=None, sparsity=None):
        """scale: a number, or a list (one a channel, along dimension axis); signature: the
        shape with -1 for each size that is left open; sparsity: (order, block map, levels),
        a level a size or (segments, indices, their dtype), data the elements that are there."""
        dtype = self.dtype if dtype is None else dtype
        self._tensors.append((name, list(shape), scale, zero, data, dtype, axis, variable,
                              signature, sparsity))
        return len(self._tensors) - 1

    def input(self, *args, **keys):
        self.inputs.append(self.tensor(*args, **keys))
        return self.inputs[-1]

    def output(self, *args, **keys):
        self.outputs.append(self.tensor(*args, **keys))
        return self.outputs[-1]

    def operator(self, name, inputs, outputs, between=(), **options):
        """between: intermediate tensors."""
        self._operators.append((name, inputs, outputs, options, between))


class Model(Graph):
    """The first graph, and more that its operators name by their number."""

    def __init__(self, dtype=INT8):
        super().__init__(dtype)
        self.graphs = [self]

    def bytes(self):
        b = flatbuffers.Builder(1024)
        buffers = [self._buffer(b, None)]  # buffer 0 is the empty one
        codes = sorted({o[0] for g in self.graphs for o in g._operators})
        subgraphs = []
        for g in self.graphs:
            tensors = []
            for t in g._tensors:
                number = 0
                if t[4] is not None:
                    number = len(buffers)
                    buffers.append(self._buffer(b, t[4]))
                tensors.append(self._tensor(b, t, number))
            operators = [self._operator(b, o, codes) for o in g._operators]
            subgraphs.append(self._subgraph(b, g, tensors, operators))
        fields = [
            (1, _offsets(b, [self._code(b, c) for c in codes])),
            (2, _offsets(b, subgraphs)),
            (4, _offsets(b, buffers)),
        ]
        b.StartObject(5)
        b.PrependUint32Slot(0, 3, 0)  # schema version
        for slot, value in fields:
            b.PrependUOffsetTRelativeSlot(slot, value, 0)
        b.Finish(b.EndObject(), file_identifier=b"TFL3")
        return bytes(b.Output())

    @staticmethod
    def _buffer(b, data):
        at = None
        if data is not None:
            raw = np.ascontiguousarray(data).tobytes()
            b.StartVector(1, len(raw), 16)
            b.head -= len(raw)
            b.Bytes[b.head : b.head + len(raw)] = raw
            at = b.EndVector()
        b.StartObject(1)
        if at is not None:
            b.PrependUOffsetTRelativeSlot(0, at, 0)
        return b.EndObject()

    @staticmethod
    def _tensor(b, tensor, buffer):
        name, shape, scale, zero, _, dtype, axis, variable, signature, sparsity = tensor
        quantization = None
        if scale is not None:
            scales = list(np.atleast_1d(scale))
            zeros = [int(zero)] * len(scales) if np.isscalar(zero) else list(map(int, zero))
            s = _numbers(b, scales, 4, b.PrependFloat32)
            z = _numbers(b, zeros, 8, b.PrependInt64)
            b.StartObject(7)
            b.PrependUOffsetTRelativeSlot(2, s, 0)
            b.PrependUOffsetTRelativeSlot(3, z, 0)
            b.PrependInt32Slot(6, axis, 0)
            quantization = b.EndObject()
        text = b.CreateString(name)
        dims = _numbers(b, shape, 4, b.PrependInt32)
        wanted = _numbers(b, signature, 4, b.PrependInt32) if signature else None
        sparse = _sparsity(b, *sparsity) if sparsity else None
        b.StartObject(8 if signature or sparsity else 6)
        b.PrependUOffsetTRelativeSlot(0, dims, 0)
        b.PrependInt8Slot(1, dtype, 0)
        b.PrependUint32Slot(2, buffer, 0)
        b.PrependUOffsetTRelativeSlot(3, text, 0)
        if quantization is not None:
            b.PrependUOffsetTRelativeSlot(4, quantization, 0)
        b.PrependBoolSlot(5, variable, False)
        if sparse is not None:
            b.PrependUOffsetTRelativeSlot(6, sparse, 0)
        if wanted is not None:
            b.PrependUOffsetTRelativeSlot(7, wanted, 0)
        return b.EndObject()

    @staticmethod
    def _operator(b, operator, codes):
        name, inputs, outputs, options, between = operator
        _, _, union, fields = OPERATORS[name]
        unknown = set(options) - {f[0] for f in fields}
        assert not unknown, (name, unknown)
        vectors = {
            f[0]: _numbers(b, options[f[0]], 4, b.PrependInt32)
            for f in fields
            if f[1] == "[i32]" and options.get(f[0]) is not None
        }
        vectors |= {
            f[0]: b.CreateString(options[f[0]])
            for f in fields
            if f[1] == "str" and options.get(f[0]) is not None
        }
        table = None
        if union:
            b.StartObject(max(1, len(fields)))
            for slot, (field, kind, default) in enumerate(fields):
                if field in vectors:
                    b.PrependUOffsetTRelativeSlot(slot, vectors[field], 0)
                elif field in options and kind in _SLOT:
                    getattr(b, _SLOT[kind])(slot, options[field], default)
            table = b.EndObject()
        ins = _numbers(b, inputs, 4, b.PrependInt32)
        outs = _numbers(b, outputs, 4, b.PrependInt32)
        inside = _numbers(b, between, 4, b.PrependInt32) if between else None
        b.StartObject(9 if between else 5)
        b.PrependUint32Slot(0, codes.index(name), 0)
        b.PrependUOffsetTRelativeSlot(1, ins, 0)
        b.PrependUOffsetTRelativeSlot(2, outs, 0)
        if table is not None:
            b.PrependUint8Slot(3, union, 0)
            b.PrependUOffsetTRelativeSlot(4, table, 0)
        if inside is not None:
            b.PrependUOffsetTRelativeSlot(8, inside, 0)
        return b.EndObject()

    @staticmethod
    def _code(b, name):
        code, version, _, _ = OPERATORS[name]
        b.StartObject(4)
        b.PrependInt8Slot(0, min(code, 127), 0)
        b.PrependInt32Slot(2, version, 1)
        b.PrependInt32Slot(3, code, 0)
        return b.EndObject()

    @staticmethod
    def _subgraph(b, graph, tensors, operators):
        fields = [
            _offsets(b, tensors),
            _numbers(b, graph.inputs, 4, b.PrependInt32),
            _numbers(b, graph.outputs, 4, b.PrependInt32),
            _offsets(b, operators),
        ]
        b.StartObject(5)
        for slot, value in enumerate(fields):
            b.PrependUOffsetTRelativeSlot(slot, value, 0)
        return b.EndObject()


def _sparsity(b, order, blocks, levels):
    kinds = {4: (1, b.PrependInt32), 2: (2, b.PrependUint16), 1: (3, b.PrependUint8)}

    def union(values, width):
        at = _numbers(b, values, width, kinds[width][1])
        b.StartObject(1)
        b.PrependUOffsetTRelativeSlot(0, at, 0)
        return b.EndObject()

    tables = []
    for level in levels:
        if isinstance(level, int):
            b.StartObject(6)
            b.PrependInt32Slot(1, level, 0)
        else:
            segments, indices, width = level
            vectors = [union(segments, width), union(indices, width)]
            b.StartObject(6)
            b.PrependInt8Slot(0, 1, 0)
            for slot, at in zip((2, 4), vectors):
                b.PrependUint8Slot(slot, kinds[width][0], 0)
                b.PrependUOffsetTRelativeSlot(slot + 1, at, 0)
        tables.append(b.EndObject())
    fields = [_numbers(b, order, 4, b.PrependInt32),
              _numbers(b, blocks, 4, b.PrependInt32) if blocks else None,
              _offsets(b, tables)]
    b.StartObject(3)
    for slot, at in enumerate(fields):
        if at is not None:
            b.PrependUOffsetTRelativeSlot(slot, at, 0)
    return b.EndObject()


def _numbers(b, values, size, prepend):
    b.StartVector(size, len(values), size)
    for v in reversed(values):
        prepend(v)
    return b.EndVector()


def _offsets(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for o in reversed(offsets):
        b.PrependUOffsetTRelative(o)
    return b.EndVector()
