# SPDX-License-Identifier: Apache-2.0
"""Networks that npuc has compiled (.npu files): what is in them, and a way to run one.

    from accelhal import npu

    with npu.Model(part, "model.npu") as model:     # part: a Partition of an npu device
        scores, = model.run(picture)                # arrays of numpy's, or bytes
"""
import os
import struct
from errno import EAGAIN
from typing import NamedTuple

from ._commands import launch
from ._library import QueueFull

_HEADER = struct.Struct("<8sIIQQQQQIIQQQ")
_PORT = struct.Struct("<256sIIII8iQQfi16x")
_TYPES = {0: "float32", 2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8"}
_BYTES = {"float32": 4, "int32": 4, "uint8": 1, "int64": 8, "int16": 2, "int8": 1}
_VERSION = 2
_ARENA, _HOST, _STATE = 1, 2, 4  # flags
_HOST_BYTES = 256


class Port(NamedTuple):
    """An input or output."""
    name: str
    dtype: str  # of the device's elements; of the model's see model_dtype
    shape: tuple
    count: int  # elements
    offset: int  # bytes, in the input or output buffer
    scale: float  # real = scale * (q - zero_point)
    zero_point: int
    model_dtype: str  # "float32": the model's own tensor is real, the device has the quantized

    @property
    def bytes(self):
        """Its size on the device."""
        return self.count * _BYTES[self.dtype]


class File(NamedTuple):
    """What a .npu file holds: image is for Device.load(); its kernel "run" takes the output
    buffer, the input buffer and, with arena, a third of arena_bytes.  Sizes in bytes.

    With state it keeps variables from one run to the next: kernel "init", with the same
    arguments, gives them their first values, and launches are not replayable."""
    image: bytes
    inputs: tuple
    outputs: tuple
    input_bytes: int
    output_bytes: int
    arena_bytes: int
    arena: bool
    macs: int  # multiply-accumulates of one run
    cycles: int  # estimated
    state: bool
    host: str  # what of the model is left to the host, in words; "": nothing
    memory_bytes: int  # of the device, that the network needs


def _ports(raw, count, at):
    for i in range(count):
        name, kind, device, _, rank, *rest = _PORT.unpack_from(raw, at + i * _PORT.size)
        shape, (count, offset, scale, zero) = rest[:rank], rest[8:]
        yield Port(name.split(b"\0")[0].decode(errors="replace"), _TYPES[device],
                   tuple(shape), count, offset, scale, zero, _TYPES[kind])


def read(path):
    """The File at path; ValueError when it is none, OSError when it cannot be read."""
    with open(path, "rb") as file:
        raw = file.read()
    if len(raw) < _HEADER.size or raw[:8] != b"NPUPROG\n":
        raise ValueError(f"{path}: not a .npu file; npuc makes one from a model: "
                         f"npuc -o model.npu model.tflite")
    (_, version, flags, input_bytes, output_bytes, arena_bytes, macs, cycles, inputs, outputs,
     image_bytes, _, memory_bytes) = _HEADER.unpack_from(raw)
    if version != _VERSION:
        raise ValueError(f"{path}: .npu file of version {version}; this package reads {_VERSION}")
    if flags & ~(_ARENA | _HOST | _STATE):
        raise ValueError(f"{path}: unknown flags {flags:#x}")
    ports = _HEADER.size + (inputs + outputs) * _PORT.size
    image = ports + (_HOST_BYTES if flags & _HOST else 0)
    if len(raw) != image + image_bytes:
        raise ValueError(f"{path}: its length differs from the one in its header")
    try:
        return File(raw[image:], tuple(_ports(raw, inputs, _HEADER.size)),
                    tuple(_ports(raw, outputs, _HEADER.size + inputs * _PORT.size)),
                    input_bytes, output_bytes, arena_bytes, bool(flags & _ARENA), macs, cycles,
                    bool(flags & _STATE),
                    raw[ports:image].split(b"\0")[0].decode(errors="replace"), memory_bytes)
    except KeyError as kind:
        raise ValueError(f"{path}: a port has the unknown type {kind}") from None


class Run:
    """An inference under way; made by Model.submit()."""

    def __init__(self, model, memory, point):
        self.model = model
        self.point = point  # the Point where it has ended
        self._memory = memory

    def result(self, timeout=None):
        """Waits for it, as wait_all does, and gives a numpy array of the port's dtype and shape
        for each output; quantized values as they are on the device.  Once."""
        self.point.wait(timeout)
        return self._take()

    def __await__(self):
        """await run, in asyncio: the result(), while other tasks go on."""
        yield from self.point.__await__()
        return self._take()

    def _take(self):
        if self._memory is None:
            raise ValueError("the result of this run has been taken already; submit() starts "
                             "another run")
        memory, self._memory = self._memory, None
        try:
            return [memory[0].array(port.dtype, port.shape, port.offset)
                    for port in self.model.file.outputs]
        finally:
            self.model._free.append(memory)


class Model:
    """A network in a partition, with a queue and memory of its own for runs=N at once: so many
    may be submitted before the first result is taken.

    more: arguments of partition.queue().
    """

    def __init__(self, part, path, runs=1, **more):
        if not isinstance(runs, int) or runs < 1:
            raise ValueError(f"runs={runs!r}: it must be a number of at least 1")
        self.file = read(path)
        self.file_name = os.fsdecode(path)
        self.runs = runs
        self._made = []
        try:
            self.program = self._keep(part.device.load(self.file.image))
            self.program.set_name(os.path.basename(os.fsencode(path))[:31])
            self.queue = self._keep(part.queue(**more))
            self.kernel = self.program.kernel("run")
            sizes = [self.file.output_bytes, self.file.input_bytes]
            if self.file.arena:
                sizes.append(max(self.file.arena_bytes, 64))
            self._free = [[self._keep(part.buffer(size)) for size in sizes]
                          for _ in range(runs)]
            self._any = self._free[0]
            if self.file.state:
                self.reset()
        except Exception:
            self.close()
            raise

    def _keep(self, thing):
        self._made.append(thing)
        return thing

    def reset(self):
        """Gives the network's variables their first values, once the runs before have ended."""
        self.queue.submit(launch(self.program.kernel("init"), *self._any))

    def submit(self, *inputs, **terms):
        """Starts a run: an array (or buffer) for each input, of the port's dtype and count;
        terms: as of queue.submit().  Gives a Run.  QueueFull: as many as there is memory for
        are under way, or their results have not been taken."""
        if len(inputs) != len(self.file.inputs):
            names = ", ".join(repr(port.name) for port in self.file.inputs)
            raise ValueError(f"{len(inputs)} inputs given, but the network has "
                             f"{len(self.file.inputs)}: {names}")
        for port, data in zip(self.file.inputs, inputs):
            if memoryview(data).nbytes != port.bytes:
                raise ValueError(f"input {port.name!r}: {memoryview(data).nbytes} bytes given "
                                 f"instead of {port.bytes} ({port.count} x {port.dtype})")
        if not self._free:
            raise QueueFull(EAGAIN, f"{self.file_name}: no memory for another run: {self.runs} "
                            f"in flight or with a result not yet taken; take a "
                            f"result(), or make the Model with runs={self.runs + 1} or more")
        memory = self._free.pop()
        try:
            for port, data in zip(self.file.inputs, inputs):
                memory[1].write(data, port.offset)
            point = self.queue.submit(launch(
                self.kernel, *memory, replayable=not self.file.state), **terms)
        except Exception:
            self._free.append(memory)
            raise
        return Run(self, memory, point)

    def run(self, *inputs, timeout=None):
        """submit(), and the result()."""
        return self.submit(*inputs).result(timeout)

    def close(self):
        """Gives back what it has; work that has not begun is dropped."""
        for thing in sorted(self._made, key=lambda thing: thing._rank):
            thing._put_away(True)
        self._made.clear()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
