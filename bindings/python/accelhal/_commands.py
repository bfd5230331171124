# SPDX-License-Identifier: Apache-2.0
"""Commands: what a submission is made of."""
import ctypes
from typing import NamedTuple

from . import _abi, _calls
from ._library import lib
from ._memory import fits, handle_of


class Command(_abi.hal_cmd):
    """One command, made by copy, fill, launch, host, barrier, timestamp or nop.

    Checked when it is submitted.  May be submitted any number of times.  flags is
    CMD_REPLAYABLE or 0, launch.groups the number of groups of a launch.
    """
    uses = ()  # buffers and kernels, which must not be closed when it is submitted
    calls = None  # what a host command calls, and what holds launch arguments


for _name in _abi.FUNCTIONS:
    if _name.startswith("hal_cmd_"):
        getattr(lib, _name).restype = Command


def _bytes_of(buffer, offset, count, what):
    if count is None:
        count = max(buffer.bytes - offset, 0)
    return fits(count, what)


def _copied(make, dst, dst_offset, src, src_offset, count):
    dst_offset, src_offset = fits(dst_offset, "dst_offset"), fits(src_offset, "src_offset")
    target, source = handle_of(dst, "Buffer"), handle_of(src, "Buffer")
    count = _bytes_of(src, src_offset, count, "bytes")
    command = make(target, dst_offset, source, src_offset, count)
    command.uses = (dst, src)
    return command


def copy(dst, src, bytes=None, *, dst_offset=0, src_offset=0):
    """Copies bytes from Buffer src to Buffer dst, or within one; the ranges may not overlap.

    bytes: None is to the end of src.  Offsets in bytes.
    """
    return _calls.copied(lib.hal_cmd_copy, dst, dst_offset, src, src_offset, bytes)


def write(dst, host, bytes=None, *, dst_offset=0, host_offset=0):
    """Copies bytes from HostMemory to Buffer dst; None is to the end of host.

    They must not change before the submission's point is reached, and may from then on.
    """
    return _calls.copied(lib.hal_cmd_write, dst, dst_offset, host, host_offset, bytes)


def read(host, src, bytes=None, *, host_offset=0, src_offset=0):
    """Copies bytes from Buffer src to HostMemory; None is to the end of src.

    They are there once the submission's point is reached.
    """
    return _calls.copied(lib.hal_cmd_read, host, host_offset, src, src_offset, bytes)


def fill(dst, pattern, *, offset=0, bytes=None):
    """Fills Buffer dst with a 32-bit pattern, little-endian.

    offset and bytes are multiples of 4; bytes None is to the end.
    """
    return _calls.fill(dst, pattern, offset, bytes)


def _fill(dst, pattern, offset, bytes):
    offset, target = fits(offset, "offset"), handle_of(dst, "Buffer")
    count = _bytes_of(dst, offset, bytes, "bytes")
    command = lib.hal_cmd_fill(target, offset, count, fits(pattern, "pattern", 32))
    command.uses = (dst,)
    return command


class Range(NamedTuple):
    """Part of a Buffer as a launch argument, made by buffer.at()."""
    buffer: object
    offset: int
    bytes: int  # 0: to the end


def arguments(args):
    """(struct hal_arg array, buffers) of launch arguments: Buffer, Range or int."""
    raw, buffers = (_abi.hal_arg * max(len(args), 1))(), []
    for at, arg in zip(raw, args):
        if hasattr(arg, "__index__"):
            at.offset = fits(arg, "a scalar argument")
            continue
        part = arg if isinstance(arg, Range) else Range(arg, 0, 0)
        at.buffer = handle_of(part.buffer, "Buffer")
        at.offset = fits(part.offset, "offset")
        at.bytes = fits(part.bytes, "bytes")
        buffers.append(part.buffer)
    return raw, buffers


def launch(kernel, *args, groups=(0, 0, 0), group_size=(0, 0, 0), shared_bytes=0,
           replayable=False):
    """Runs a Kernel with args: a Buffer (all of it), buffer.at(offset, bytes), or an int.

    How many there are and how long, kernel.info says.  groups: how many groups;
    group_size: work items of each (threads of a block), shared_bytes: shared memory of each
    that the launch adds; 0: the kernel's own, kernel.info has the limits.  replayable: no output is also an
    input, so that the launch may be dropped in the middle and run again (SuspendMode.KILL).
    """
    return _calls.launch(kernel, args, groups, group_size, shared_bytes, replayable)


def _launch(kernel, args, groups, group_size, shared_bytes, replayable):
    raw, buffers = arguments(args)
    command = lib.hal_cmd_launch(handle_of(kernel, "Kernel"), raw, len(args))
    command.uses, command.calls = (kernel, *buffers), raw
    if replayable:
        command.flags |= _abi.CMD_REPLAYABLE
    for i, count in enumerate(groups):
        command.launch.groups[i] = fits(count, "groups", 32)
    for i, items in enumerate(group_size):
        command.launch.group_size[i] = fits(items, "group_size", 32)
    command.launch.shared_bytes = fits(shared_bytes, "shared_bytes", 32)
    return command


@_abi.hal_host_fn
def _call(user):
    ctypes.cast(user, ctypes.py_object).value()


def host(function):
    """Calls function() after all that is before it in the queue.

    Real clock: on a thread of the device's callbacks; virtual clock: inside the wait.  It
    may call anything but what would wait for itself (EDEADLK).  An exception goes to
    sys.unraisablehook; the queue goes on.
    """
    if not callable(function):
        raise TypeError(f"a callable is needed, not a {type(function).__name__}")
    command = lib.hal_cmd_host(_call, id(function))
    command.calls = function
    return command


_BARRIER, _NOP = int(_abi.Op.BARRIER), int(_abi.Op.NOP)


def _plain(op):
    return lib.hal_cmd_barrier() if op == _BARRIER else lib.hal_cmd_of(op, 0)


def barrier():
    """Does nothing, in order."""
    return _calls.plain(_BARRIER)


def nop():
    """Does nothing."""
    return _calls.plain(_NOP)


def timestamp(dst, offset=0):
    """Writes device time in ns, a uint64, to Buffer dst at offset, a multiple of 8.

    The device needs Cap.TIMESTAMP.
    """
    command = lib.hal_cmd_timestamp(handle_of(dst, "Buffer"), fits(offset, "offset"))
    command.uses = (dst,)
    return command


def array(commands):
    """(hal_cmd array, count, functions that must stay alive) of one command or several."""
    commands = [commands] if isinstance(commands, Command) else list(commands)
    calls = []
    for command in commands:
        if not isinstance(command, Command):
            raise TypeError(f"a command is needed, not a {type(command).__name__}")
        for thing in command.uses:
            thing.alive()
        if command.op == _abi.Op.HOST:
            calls.append(command.calls)
    return (_abi.hal_cmd * max(len(commands), 1))(*commands), len(commands), calls


FALLBACKS = {"launch": _launch, "fill": _fill, "copied": _copied, "plain": _plain}
