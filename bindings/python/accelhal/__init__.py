# SPDX-License-Identifier: Apache-2.0
"""Accelerators that several tenants share: hal.h for Python.

    import accelhal as hal

    with hal.open("npu:0") as device:
        part = device.partition(rect=(0, 0, 8, 8))      # row, column, rows, columns
        queue, buffer = part.queue(), part.buffer(4096)  # bytes
        queue.submit(hal.fill(buffer, 42)).wait()
        print(buffer.array("uint32"))

open() gives a Device; a Device gives Partitions, Programs, Timelines and Completions; a
Partition gives Queues, Buffers, HostMemory and Sequences; a Queue takes commands (copy,
write, read, fill, launch, host, barrier, timestamp, nop) and gives Points, which are waited for.

Errors:  what the library answers is an Error (an OSError) with errno and the text that says
         what is wrong; Timeout and QueueFull are two of them.  What Python can see itself is
         a ValueError or TypeError: a number that does not fit, something closed.
Sizes:   bytes; offsets too.  Times: ns of device time where a name ends in _ns, seconds in
         timeout=.
Threads: as in hal.h: any thread may call anything, one at a time submits to a queue.  Every
         call that can wait lets other threads run meanwhile.
Speed:   compiled is True if the extension in C is in use; $ACCELHAL_EXTENSION=no leaves it
         out, and yes makes its absence an ImportError.
Library: $ACCELHAL_LIBRARY, else the loader's search (LD_LIBRARY_PATH, ldconfig), else
         pkg-config; ImportError when there is none, or one of another version.
"""
import ctypes
from errno import ERANGE
from os import fspath

from . import _abi, _records
from ._abi import *
from ._calls import compiled
from ._commands import (Command, Range, barrier, copy, fill, host, launch, nop,
                        read, timestamp, write)
from ._library import Error, QueueFull, Timeout, check, lib
from ._memory import strings, text
from ._objects import (Buffer, Completion, Completions, Device, HostMemory, Kernel,
                       Partition, Point, Program, Queue, Sequence, Timeline, wait_all,
                       wait_any)
from ._records import (BackendInfo, DeviceInfo, FaultInfo, KernelInfo, OptionInfo,
                       PartitionInfo, PartitionMemory, PolicyInfo, ProgramInfo, ReplayInfo,
                       Stats)

__version__ = f"{_abi.VERSION_MAJOR}.{_abi.VERSION_MINOR}.{_abi.VERSION_PATCH}"


def open(target=None, options=None):
    """Opens a Device: "npu:0", "npu:0?rows=8&clock=virtual", "ref"; None: what the
    configuration selects, else the best one present.

    options: a dict {"section.key": value} or "section.key=value" strings; they come before
    the environment (HAL_SECTION_KEY) and the configuration file.  ENODEV there is none, and
    why for each; EINVAL bad target, option or value; ENOENT the named file is not there.
    """
    return Device(target, options)


def _each(what, of, function, given):
    scan, index = ctypes.c_void_p(), 0
    check(lib.hal_scan_create(strings(given, "options"), what, ctypes.byref(scan)))
    try:
        while True:
            answer, record = of(function, scan, index)
            if answer == -ERANGE:
                return
            check(answer)
            yield record
            index += 1
    finally:
        lib.hal_scan_destroy(scan)


def backends(given=None):
    """Yields a BackendInfo for each backend, also of plugins, present or not; given: options
    as of open(), and the errors of its configuration."""
    return _each(_abi.SCAN_DEVICES, _records.backend_info, lib.hal_scan_get_backend, given)


def devices(given=None):
    """Yields a DeviceInfo for each device, without opening it; given: as of backends()."""
    return _each(_abi.SCAN_DEVICES, _records.device_info, lib.hal_scan_get_device, given)


def options(given=None):
    """Yields an OptionInfo for each option as open(None, given) would see it; EINVAL with
    file and line when the configuration is wrong."""
    return _each(_abi.SCAN_OPTIONS, _records.option_info, lib.hal_scan_get_option, given)


def replay(path):
    """Replays the journal of a device that was opened with hal.journal=path, compares what
    is decided, and gives a ReplayInfo.  EINVAL not a journal, with the line."""
    answer, record = _records.replay_info(lib.hal_replay, text(fspath(path), "the path"))
    check(answer)
    return record


_receivers = []  # of log_set: the library may be in an old one until log_set returns


def log_set(function=None, level=LogLevel.INFO):
    """Passes messages of the library up to level to function(level, text), a line each, on
    any thread; None: to nowhere.  It may call nothing of this package but log_set and
    strerror.  An exception goes to sys.unraisablehook.

        hal.log_set(lambda level, text: logging.getLogger("accelhal").info(text))

    The environment HAL_LOG=LEVEL[:FILE] writes the same lines to a file or to stderr.
    """
    def receive(_, number, line):
        function(LogLevel(number), line.decode(errors="replace"))

    if function is not None and not callable(function):
        raise TypeError(f"a callable is needed, not a {type(function).__name__}")
    raw = _abi.hal_log_fn() if function is None else _abi.hal_log_fn(receive)
    check(lib.hal_log_set(raw, None, level))
    _receivers.append(raw)
    del _receivers[:-2]  # log_set may have been called by the last one


def version():
    """(major, minor, patch) of the library."""
    number = lib.hal_version()
    return number >> 16, number >> 8 & 255, number & 255


def strerror(error):
    """What -errno or errno means, in a few words."""
    return lib.hal_strerror(error).decode()


__all__ = [
    *_abi.__all__, "BackendInfo", "Buffer", "Command", "Completion", "Completions", "Device",
    "DeviceInfo", "Error", "FaultInfo", "Kernel", "KernelInfo", "OptionInfo", "Partition", "PartitionInfo",
    "Point", "PolicyInfo", "Program", "ProgramInfo", "Queue", "QueueFull", "Range",
    "ReplayInfo", "Sequence", "Stats", "Timeline", "Timeout", "backends", "barrier", "compiled", "copy",
    "devices", "fill", "host", "launch", "log_set", "nop", "open", "options", "replay", "strerror",
    "timestamp", "version", "wait_all", "wait_any",
]
