# SPDX-License-Identifier: Apache-2.0
"""Devices, partitions, buffers, programs, queues, timelines and what belongs to them."""
import asyncio
import collections
import contextlib
import ctypes
import errno
import os
import threading
import time
import warnings
import weakref
from typing import NamedTuple

from . import _abi, _calls, _commands, _records
from ._abi import Cap, Class, Isolation, Shape, SuspendMode
from ._library import Error, Timeout, check, failure, lib
from ._memory import Pinned, fill, fits, handle_of, strings, text

SLICE_NS = 200_000_000  # how long a wait of the main thread keeps Ctrl-C waiting


def _weights(weights):
    """Parts by channel, for as many as any device has."""
    values = [fits(weight, "a weight", 8) for weight in weights]
    if len(values) > 64:
        raise ValueError(f"{len(values)} weights given; a device has at most 64 channels")
    return (ctypes.c_uint8 * 64)(*values)


class Object(_calls.Handle):
    """What close() gives back, once; a with block does so at its end.

    close() is strict: EBUSY while something of it is alive or at work.  A with block first
    closes what was made of it; the work of queues is waited for, unless an exception ends
    the block: then what has not begun is dropped.
    """
    kind = None  # its class, where an argument must be of it
    _destroy = None  # function of the library
    _rank = 0  # what is put away first

    def __init__(self, parent, handle):
        self._handle = handle
        self._parent = parent
        self._children = weakref.WeakSet()
        self._lost = []  # children that nobody refers to and that could not be closed
        if parent is not None:
            parent._children.add(self)

    def alive(self):
        """ValueError once it is closed."""
        if self._handle is None:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")

    @property
    def handle(self):
        """The library's pointer, as an int; ValueError once it is closed."""
        self.alive()
        return self._handle

    @property
    def device(self):
        """The Device it belongs to."""
        return self._parent.device

    @property
    def closed(self):
        """Whether close() has been called."""
        return self._handle is None

    def close(self):
        """Gives it back to the library; nothing when that has been done."""
        if self._handle is not None:
            answer = getattr(lib, self._destroy)(self._handle)
            if self._gone(answer):
                self._handle = None
                if self._parent is not None:
                    self._parent._children.discard(self)
            check(answer)

    @staticmethod
    def _gone(answer):
        return answer >= 0

    def _put_away(self, drop):
        for child in sorted([*self._children, *self._lost], key=lambda c: c._rank):
            child._put_away(drop)
        self._lost.clear()
        self.close()

    def __enter__(self):
        self.alive()
        return self

    def __exit__(self, kind, value, trace):
        self._put_away(kind is not None)

    def __del__(self):
        if getattr(self, "_handle", None) is None:
            return
        told = f"{self!r} was not closed"
        try:
            self._put_away(True)
        except Error:  # in use: with its parent, then
            if self._parent is not None:
                self._parent._lost.append(self)
        warnings.warn(told, ResourceWarning, source=self)

    def __repr__(self):
        state = "closed" if self._handle is None else f"{self._handle:#x}"
        return f"<accelhal.{type(self).__name__} {state}>"


def _created(function, *args):
    """The handle that function(*args, &handle) gives."""
    handle = ctypes.c_void_p()
    check(function(*args, ctypes.byref(handle)))
    return handle.value


# ---- time -----------------------------------------------------------------------------


class Timeline(Object):
    """A counter that only grows; points on it are waited for and signalled.

    Made by device.timeline(); queue.timeline is a queue's own, which cannot be closed.
    """
    kind = "Timeline"
    _destroy = "hal_timeline_destroy"
    _rank = 5
    _own = False  # whether the library made it for the program alone
    _children = _lost = ()  # not of a queue's or partition's own

    def __init__(self, device, handle):
        super().__init__(device, handle)
        self._own = True

    def alive(self):
        self._parent.alive()
        super().alive()

    def close(self):
        if self._own:
            super().close()
        elif self._handle is not None:
            check(lib.hal_timeline_destroy(self.handle))

    def __del__(self):
        if self._own:
            super().__del__()

    @property
    def value(self):
        """Where the counter is."""
        return _calls.value(self)

    @property
    def error(self):
        """0, or -errno of what failed it: that sticks."""
        error = ctypes.c_int()
        lib.hal_timeline_get_value(self.handle, ctypes.byref(error))
        return error.value

    def signal(self, value):
        """Sets the counter from the host; EINVAL unless it grows."""
        check(lib.hal_timeline_signal(self.handle, fits(value, "value")))

    def export(self, wait=True, signal=False):
        """A new file descriptor of it, for one device.import_timeline() of any process; the
        caller closes it (os.close).  signal: the import may raise it; EINVAL of a queue's own.
        wait: every import follows it; EINVAL without."""
        fd = ctypes.c_int()
        rights = ((_abi.TIMELINE_WAIT if wait else 0)
                  | (_abi.TIMELINE_SIGNAL if signal else 0))
        check(lib.hal_timeline_export(self.handle, rights, ctypes.byref(fd)))
        return fd.value

    def at(self, value):
        """The Point where the counter is at least value."""
        return Point(self, fits(value, "value"))


def _line(owner, handle):
    """The Timeline of owner, a Queue or Partition, that the library has under handle: the one
    that is in use, or a new one."""
    line = owner._lines.get(handle)
    if line is None:
        line = owner._lines[handle] = Timeline.__new__(Timeline)
        line._handle, line._parent = handle, owner
    return line


class Point(NamedTuple):
    """A moment on a timeline: reached once its counter is at least value."""
    timeline: Timeline
    value: int

    @property
    def reached(self):
        """Whether it is; Error when the timeline has failed before it."""
        return _calls.reached(self)

    def wait(self, timeout=None, *, until_ns=None, device_ns=None):
        """Waits for it, as wait_all does for several."""
        _calls.wait((self,), 0, timeout, until_ns, device_ns)

    def fd(self):
        """A new file descriptor, readable once it is reached or failed; the caller's to
        close.  Virtual clock: refused (ENOTSUP) until device.poll() has been called, which
        is what moves time on between looks at it."""
        raw = _raw_points([self])
        return check(lib.hal_point_open_fd(raw))

    def __await__(self):
        """await point, in asyncio: as wait(), while other tasks go on.  On a virtual clock a
        thread waits, because that is what moves time on."""
        return self._ended().__await__()

    async def _ended(self):
        if self.timeline.device.virtual:
            await asyncio.to_thread(self.wait)
            return
        loop, fd = asyncio.get_running_loop(), self.fd()
        told = loop.create_future()
        try:
            loop.add_reader(fd, lambda: told.done() or told.set_result(None))
            await told
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        self.wait(timeout=0)


def _raw_points(points):
    points = list(points)
    raw = (_abi.hal_point * max(len(points), 1))()
    for to, point in zip(raw, points):
        if not isinstance(point, Point):
            raise TypeError(f"a Point is needed, not a {type(point).__name__}")
        to.timeline, to.value = handle_of(point.timeline, "Timeline"), fits(point.value, "value")
    return raw


def _until(timeout, until_ns):
    """Absolute, of CLOCK_MONOTONIC in ns."""
    if until_ns is not None:
        if timeout is not None:
            raise ValueError("give either timeout or until_ns, not both")
        return fits(until_ns, "until_ns", signed=True)
    if timeout is None:
        return _abi.FOREVER
    if not timeout >= 0:
        raise ValueError(f"the timeout is {timeout}; it must be 0 or more")
    if timeout == 0:
        return 0
    return min(time.monotonic_ns() + int(min(timeout, 1e9) * 1e9), _abi.FOREVER)


def _patiently(function, until_ns, device):
    """function(until_ns)'s answer.  The main thread comes back now and then meanwhile, so
    that signal handlers (Ctrl-C) run; but not on a virtual clock, where a wait is work, and
    with until_ns looks at the host's clock at every step."""
    if device.virtual or threading.current_thread() is not threading.main_thread():
        return check(function(until_ns))
    while True:
        until = min(until_ns, time.monotonic_ns() + SLICE_NS)
        answer = function(until)
        if until == until_ns or answer != -errno.ETIMEDOUT:
            return check(answer)


def _wait(points, flags, timeout, until_ns, device_ns):
    points = list(points)
    raw = _raw_points(points)
    if device_ns is None:
        if not points:  # as the library takes that
            return check(lib.hal_wait(raw, 0, flags, 0))
        return _patiently(lambda at: lib.hal_wait(raw, len(points), flags, at),
                          _until(timeout, until_ns), points[0].timeline.device)
    if timeout is not None or until_ns is not None:
        raise ValueError("give only one of timeout, until_ns and device_ns")
    flags |= _abi.WAIT_DEVICE_TIME
    return check(lib.hal_wait(raw, len(points), flags,
                              fits(device_ns, "device_ns", signed=True)))


def _reached(point):
    try:
        point.wait(timeout=0)
    except Timeout:
        return False
    return True


def _value(timeline):
    return lib.hal_timeline_get_value(timeline.handle, None)


def wait_all(points, timeout=None, *, until_ns=None, device_ns=None):
    """Waits until all points are reached.  Other threads run meanwhile.

    At most one of: timeout in seconds (0 looks, None waits as long as it takes);
    until_ns, absolute, as time.monotonic_ns() counts; device_ns, device time of the
    first point's device.  Timeout when that passes first; EDEADLK when no work is left that
    could reach them (virtual clock); else the Error that failed a timeline: EIO, ECANCELED.
    """
    _calls.wait(points, 0, timeout, until_ns, device_ns)


def wait_any(points, timeout=None, *, until_ns=None, device_ns=None):
    """Waits until one of the points is reached and gives its index; else as wait_all."""
    return _calls.wait(points, _abi.WAIT_ANY, timeout, until_ns, device_ns)


class Completion(NamedTuple):
    """The end of a submission, from completions.read()."""
    queue: object  # the Queue; None when it is no longer there
    value: int  # on queue.timeline
    tag: int  # the submission's
    status: int  # 0; -EIO, -ENODEV, -ECANCELED ...: queue.fault says what and why
    submit_ns: int  # device time
    end_ns: int


class Completions(Object):
    """A ring in which queues tell of ends (partition.queue(completions=...)).

    Has fileno(), so that select, selectors and asyncio can wait for it; on a virtual clock
    only after device.poll() has been called, which is what moves time on between looks.
    """
    kind = "Completions"
    _destroy = "hal_completions_destroy"
    _rank = 4

    def __init__(self, device, handle):
        super().__init__(device, handle)
        self._queues = weakref.WeakValueDictionary()

    def fileno(self):
        """Its file descriptor, readable while there are entries; closed with the ring."""
        return check(lib.hal_completions_get_fd(self.handle))

    def read(self, max=64, timeout=None, *, until_ns=None):
        """Takes up to max entries, oldest first, as a list; waits for the first one.

        timeout and until_ns are as in wait_all; with a timeout of 0 the list may be
        empty.  One thread at a time.
        """
        raw = (_abi.hal_completion * (fits(max, "max", 32) or 1))()
        ring = self.handle
        count = _patiently(lambda at: lib.hal_completions_read(ring, raw, max, at),
                           _until(timeout, until_ns), self.device)
        return [Completion(self._queues.get(e.queue), e.value, e.tag, e.status, e.submit_ns,
                           e.end_ns) for e in raw[:count]]


# ---- work -----------------------------------------------------------------------------


def _submit_desc(waits, signals, **values):
    desc = fill(_abi.hal_submit_desc, wait_count=len(waits), signal_count=len(signals),
                **values)
    desc.waits, desc.signals = _raw_points(waits), _raw_points(signals)
    return desc


def _submit(queue, work, waits, signals, not_before_ns, deadline_ns, priority, tag):
    waits, signals = list(waits), list(signals)
    given = {"not_before_ns": not_before_ns, "deadline_ns": deadline_ns, "tag": tag}
    if priority is not None:
        given.update(priority=priority, flags=_abi.SUBMIT_PRIORITY)
    done = _abi.hal_point()
    if isinstance(work, Sequence):
        calls = work.calls
        desc = _submit_desc(waits, signals, **given)
        check(lib.hal_sequence_submit(queue.handle, work.handle, ctypes.byref(desc),
                                      ctypes.byref(done)))
    else:
        raw, count, calls = _commands.array(work)
        desc = _submit_desc(waits, signals, cmd_count=count, **given)
        desc.cmds = raw
        check(lib.hal_submit(queue.handle, ctypes.byref(desc), ctypes.byref(done)))
    queue._submitted = done.value
    held = [*calls, *(point.timeline for point in (*waits, *signals))]
    if held or queue._held:
        queue._hold(done.value, held)
    return Point(queue.timeline, done.value)


class Sequence(Object):
    """Commands recorded once and submitted many times; made by partition.sequence()."""
    _destroy = "hal_sequence_destroy"
    _rank = 1

    def __init__(self, partition, commands):
        raw, count, self.calls = _commands.array(commands)
        desc = fill(_abi.hal_submit_desc, cmd_count=count)
        desc.cmds = raw
        super().__init__(partition, _created(lib.hal_sequence_create, partition.handle,
                                             ctypes.byref(desc)))

    def set_args(self, index, *args):
        """Arguments of launch number index (of the commands) from the next submission on."""
        raw, _ = _commands.arguments(args)
        check(lib.hal_sequence_set_args(self.handle, fits(index, "index", 32), raw,
                                        len(args)))


class Queue(Object):
    """Runs submissions one after the other; made by partition.queue().

    One thread submits at a time.
    """
    kind = "Queue"
    _destroy = "hal_queue_destroy"
    _rank = 0

    def __init__(self, partition, handle, completions):
        super().__init__(partition, handle)
        self.completions = completions
        if completions is not None:
            completions._queues[handle] = self
        self._suspended = False
        self._lines = weakref.WeakValueDictionary()  # of suspend()
        self._submitted = 0
        self._held = collections.deque()  # (value, what must live until that is reached)

    @property
    def timeline(self):
        """Its own Timeline: submission n (from 1) reaches value n."""
        line = self._line and self._line()
        if line is None:
            line = Timeline.__new__(Timeline)
            line._handle, line._parent = lib.hal_queue_get_timeline(self.handle), self
            self._line = weakref.ref(line)
        return line

    def submit(self, work=(), *, waits=(), signals=(), not_before_ns=0, deadline_ns=0,
               priority=None, tag=0):
        """Submits commands, all or none, and gives the Point where all of them have ended.

        work: a Command, several, none, or a Sequence of this partition.  waits: Points that
        come first; signals: Points that are reached when it has ended.  not_before_ns:
        device time until which it is held; deadline_ns: device time from now on until which
        it shall have ended, 0 the queue's; priority: instead of the queue's; tag: comes back in its Completion.
        Never waits: QueueFull when there is no room.
        """
        return _calls.submit(self, work, waits, signals, not_before_ns, deadline_ns, priority,
                            tag)

    def _hold(self, value, things):
        if things:
            self._held.append((value, things))
        reached = self.timeline.value
        while self._held and self._held[0][0] <= reached:
            self._held.popleft()

    def suspend(self, mode=SuspendMode.DRAIN, *, final=False):
        """Asks the device to let go; gives the Point when it has.

        mode: a SuspendMode of device.info.suspend_modes.  final: for good, the queue can
        only be closed then.  ENOTSUP the device lacks the mode, or KILL, not final, while a
        command runs that is not replayable; EBUSY already suspended.
        """
        quiet = _abi.hal_point()
        flags = fits(mode, "mode", 32) | (_abi.SUSPEND_FINAL if final else 0)
        check(lib.hal_queue_suspend(self.handle, flags, ctypes.byref(quiet)))
        self._suspended = True
        return Point(_line(self, quiet.timeline), quiet.value)

    def resume(self):
        """Goes on.  EINVAL not suspended; ECANCELED suspended for good."""
        check(lib.hal_queue_resume(self.handle))
        self._suspended = False

    @property
    def fault(self):
        """FaultInfo: why the queue has failed; status 0 while it has not."""
        return _told(_records.fault_info, lib.hal_queue_get_fault, self.handle)

    @property
    def stats(self):
        """Stats of this queue."""
        return _told(_records.stats, lib.hal_queue_get_stats, self.handle)

    def close(self):
        super().close()
        self._held.clear()

    def _put_away(self, drop):
        if self._handle is None:
            return
        if not drop and not self._suspended:
            with contextlib.suppress(Error):
                self.timeline.at(self._submitted).wait()
        try:
            self.close()
        except Error as busy:
            if busy.errno != errno.EBUSY:
                raise
            modes = self.device.info.suspend_modes
            kill = SuspendMode.KILL if SuspendMode.KILL in modes else SuspendMode.DRAIN
            with contextlib.suppress(Error):
                self.suspend(kill, final=True).wait()
            self.close()


def _told(of, function, *args):
    answer, record = of(function, *args)
    check(answer)
    return record


# ---- memory and programs --------------------------------------------------------------


class Buffer(Object):
    """Device memory of a partition; made by partition.buffer().

    len() is its size in bytes.  Host copies are not ordered with queues: wait for the work
    that uses the buffer first.  Submitted work keeps the memory; close() may come at once.
    """
    kind = "Buffer"
    _destroy = "hal_buffer_destroy"
    _rank = 2

    def __init__(self, partition, handle):
        super().__init__(partition, handle)
        self._memory = lambda: None  # what is mapped, as long as a view of it lives
        self._views = []

    @property
    def bytes(self):
        """Size in bytes."""
        return lib.hal_buffer_get_bytes(self.handle)

    def __len__(self):
        return self.bytes

    def at(self, offset, bytes=0):
        """A part of it as a launch argument: bytes from offset, 0 to the end."""
        return _commands.Range(self, offset, bytes)

    def write(self, data, offset=0):
        """Copies data, whatever has the buffer protocol and is contiguous (bytes, numpy
        arrays of any type and shape ...), to offset, in bytes.  EINVAL past the end."""
        with Pinned(data) as (address, count):
            check(lib.hal_buffer_write(self.handle, fits(offset, "offset"), address, count))

    def read(self, count=None, offset=0):
        """count bytes from offset as bytes; None is to the end."""
        if count is None:
            count = max(self.bytes - offset, 0)
        if fits(offset, "offset") + fits(count, "count") > self.bytes:
            # Nothing is reserved for what is not there; the library says so.
            check(lib.hal_buffer_read(self.handle, offset, None, count))
        data = bytearray(count)
        self.read_into(data, offset)
        return bytes(data)

    def read_into(self, target, offset=0):
        """Fills target, a writable and contiguous buffer (bytearray, numpy array ...)."""
        with Pinned(target, writable=True) as (address, count):
            check(lib.hal_buffer_read(self.handle, fits(offset, "offset"), address, count))

    def export(self):
        """A new file descriptor of its memory, for partition.import_buffer() of any process;
        the caller closes it (os.close).  EINVAL unless it was made exportable."""
        fd = ctypes.c_int()
        check(lib.hal_buffer_export(self.handle, ctypes.byref(fd)))
        return fd.value

    def recolor(self, queue, colors=0, weights=None):
        """Moves it to other memory channels of its partition while work goes on; colors and
        weights are as of partition.buffer().  The copy is a submission of queue, a Point of
        which it returns: until that the host cannot copy or map the buffer (EBUSY)."""
        point = _abi.hal_point()
        check(lib.hal_buffer_recolor(
            self.handle, handle_of(queue, "Queue"), fits(colors, "colors"),
            None if weights is None else _weights(weights), ctypes.byref(point)))
        return Point(queue.timeline, point.value)

    def array(self, dtype, shape=None, offset=0):
        """A new numpy array with what is in it: shape elements of dtype from offset (bytes);
        shape None is one dimension, to the end."""
        import numpy  # only who asks needs it

        dtype = numpy.dtype(dtype)
        if shape is None:
            shape = max(self.bytes - offset, 0) // dtype.itemsize
        got = numpy.empty(shape, dtype)
        self.read_into(got, offset)
        return got

    def map(self):
        """The buffer's own bytes as a writable memoryview, no copy: numpy.frombuffer(view,
        dtype).  Until unmap().  ENOTSUP where the device or its placement does not allow it
        (partition.buffer(mappable=True))."""
        return self._look(lambda: _created(lib.hal_buffer_map, self.handle))

    def _look(self, address_of):
        memory = self._memory()
        if memory is None:
            address = address_of()
            memory = (ctypes.c_ubyte * self.bytes).from_address(address)
            memory.buffer = self  # alive as long as anybody looks at it
            self._memory = weakref.ref(memory)
        view = memoryview(memory).cast("B")
        self._views.append(weakref.ref(view))
        return view

    def unmap(self):
        """Ends the mapping and the views that map() gave.  BufferError while an array or
        a slice of one still looks at it.  EINVAL it is not mapped."""
        self._release()
        check(lib.hal_buffer_unmap(self.handle))

    def _release(self):
        for view in self._views:
            if view() is not None:
                view().release()
        self._views = []
        if self._memory() is not None:
            raise BufferError("an array or view of the mapped buffer is still in use")

    @contextlib.contextmanager
    def mapped(self):
        """with buffer.mapped() as view: map() and unmap()."""
        try:
            yield self.map()
        finally:
            self.unmap()

    def close(self):
        self._release()
        super().close()


class HostMemory(Buffer):
    """Host memory that queues copy to and from (write, read, copy); made by
    partition.host_memory().  Other commands, host copies and map() refuse it (EINVAL)."""

    def __init__(self, partition, handle, address, pinned=None):
        super().__init__(partition, handle)
        self._address, self._pinned = address, pinned

    def view(self):
        """Its bytes as a writable memoryview, no copy: numpy.frombuffer(view, dtype).
        close() raises BufferError while an array or a slice of one still looks at it."""
        self.alive()
        return self._look(lambda: self._address)

    def close(self):
        """EBUSY: it is an object's memory, which submitted work or a Sequence uses."""
        super().close()
        if self._pinned is not None:
            self._pinned.__exit__()
            self._pinned = None


class Kernel(_calls.Handle):
    """A kernel of a program; made by program.kernel(), gone with the program."""
    kind = "Kernel"

    def __init__(self, program, handle):
        self._parent = program
        self._handle = handle

    @property
    def program(self):
        """The Program that it is of."""
        return self._parent

    def alive(self):
        """ValueError once the program is closed."""
        self.program.alive()

    @property
    def handle(self):
        """The library's pointer, as an int; ValueError once the program is closed."""
        self.alive()
        return self._handle

    @property
    def info(self):
        """Its KernelInfo."""
        got = _told(_records.kernel_info, lib.hal_kernel_get_info, self.handle)
        return got._replace(arg_bytes=got.arg_bytes[:got.arg_count])


class Program(Object):
    """An image that a device has loaded; made by device.load().  Submitted work keeps it."""
    _destroy = "hal_program_unload"
    _rank = 6

    def __init__(self, device, handle):
        super().__init__(device, handle)
        self._kernels = weakref.WeakValueDictionary()

    def set_name(self, name):
        """For people: traces call its kernels "name: kernel"; at most 31 bytes."""
        check(lib.hal_program_set_name(self.handle, text(name, "the name")))

    @property
    def info(self):
        """Its ProgramInfo."""
        return _told(_records.program_info, lib.hal_program_get_info, self.handle)

    @property
    def kernels(self):
        """All its Kernels, in the order of its image."""
        return [self.kernel(index) for index in range(self.info.kernel_count)]

    def kernel(self, name):
        """The Kernel of that name, or of that number; ENOENT there is none of the name,
        ERANGE the number is past the last."""
        if hasattr(name, "__index__"):
            handle = _created(lib.hal_kernel_get, self.handle, fits(name, "the number", 32))
        else:
            handle = _created(lib.hal_kernel_find, self.handle, text(name, "the name"))
        kernel = self._kernels.get(handle)
        if kernel is None:
            kernel = self._kernels[handle] = Kernel(self, handle)
        return kernel


# ---- partitions and devices -----------------------------------------------------------


def _partition_desc(units=0, rect=None, *, ceiling=0, name="", memory=0, colors=0,
                    isolation=Isolation.NONE, shape=Shape.ANY):
    desc = fill(_abi.hal_partition_desc, units_floor=units, units_ceiling=ceiling,
                min_isolation=isolation, memory_bytes=memory, color_mask=colors,
                shape=shape)
    desc.name = text(name, "the name", 32)
    if rect is not None:
        if len(rect) != 4:
            raise ValueError(f"rect must be (row, col, rows, cols), not {rect!r}")
        for field, value in zip(("row", "col", "rows", "cols"), rect):
            setattr(desc, field, fits(value, field, 16))
    return desc


class Partition(Object):
    """A share of a device's units and memory; made by device.partition()."""
    kind = "Partition"
    _destroy = "hal_partition_destroy"
    _rank = 3

    def __init__(self, device, handle):
        super().__init__(device, handle)
        self._lines = weakref.WeakValueDictionary()

    @property
    def info(self):
        """Its PartitionInfo."""
        return _told(_records.partition_info, lib.hal_partition_get_info, self.handle)

    @property
    def memory(self):
        """Its PartitionMemory: limits, placements and evictions, as they are now."""
        return _told(_records.partition_memory, lib.hal_partition_get_memory_info,
                     self.handle)

    @property
    def stats(self):
        """Stats of all its queues."""
        return _told(_records.stats, lib.hal_partition_get_stats, self.handle)

    def resize(self, units=0, rect=None, *, ceiling=0, name="", memory=0, colors=0,
               isolation=Isolation.NONE, shape=Shape.ANY):
        """Moves its border; arguments as of device.partition().  Gives the Point when that
        is done.  ENOTSUP without Cap.RESIZE_IDLE; EBUSY at work without Cap.RESIZE_LIVE."""
        desc = _partition_desc(units, rect, ceiling=ceiling, name=name, memory=memory,
                               colors=colors, isolation=isolation, shape=shape)
        done = _abi.hal_point()
        check(lib.hal_partition_resize(self.handle, ctypes.byref(desc), ctypes.byref(done)))
        return Point(_line(self, done.timeline), done.value)

    def buffer(self, bytes, *, mappable=False, exportable=False, colors=0, weights=None,
               bimodal=False, scratch=False, name=""):
        """A Buffer of so many bytes.  mappable: map() must work, else ENOTSUP;
        exportable: so must export(); colors: a bit a memory channel, 0 the partition's; weights: so many parts on channel 0, 1 ...
        of the device, None is evenly; bimodal: on more channels while the partition, which
        is bimodal, is alone: only the host writes to it, or, with scratch, work does that
        needs it until the end of its submission; name: at most 31 bytes, for error texts.
        ENOSPC when there is no room."""
        flags = _abi.BUFFER_MAPPABLE if mappable else 0
        flags |= _abi.BUFFER_EXPORTABLE if exportable else 0
        flags |= _abi.BUFFER_BIMODAL if bimodal else 0
        flags |= _abi.BUFFER_SCRATCH if scratch else 0
        desc = fill(_abi.hal_buffer_desc, flags=flags, bytes=bytes, color_mask=colors)
        desc.name = text(name, "the name", 32)
        create, shares = lib.hal_buffer_create, ()
        if weights is not None:
            create, shares = lib.hal_buffer_create_weighted, (_weights(weights),)
        return Buffer(self, _created(create, self.handle, ctypes.byref(desc), *shares))

    def import_buffer(self, fd, bytes, *, mappable=False, name=""):
        """A Buffer of memory that another device or process has exported (buffer.export());
        bytes: at most its size.  fd stays the caller's, who may close it.  EINVAL when it is
        no such memory, ENOTSUP without Cap.IMPORT."""
        desc = fill(_abi.hal_buffer_desc, bytes=bytes,
                    flags=_abi.BUFFER_MAPPABLE if mappable else 0)
        desc.name = text(name, "the name", 32)
        return Buffer(self, _created(lib.hal_buffer_import, self.handle, fits(fd, "fd", 32, signed=True),
                                     ctypes.byref(desc)))

    def host_memory(self, memory):
        """HostMemory: so many bytes, new and zero, or, if memory is no int, the bytes of a
        writable and contiguous object (bytearray, numpy array ...), which stays as it is.
        ENOTSUP the device's queues cannot copy there (Cap.HOST_COPY, HOST_REGISTER)."""
        if hasattr(memory, "__index__"):
            address = ctypes.c_void_p()
            handle = ctypes.c_void_p()
            check(lib.hal_host_alloc(self.handle, fits(memory, "bytes"), ctypes.byref(handle),
                                     ctypes.byref(address)))
            return HostMemory(self, handle.value, address.value)
        pinned = Pinned(memory, writable=True)
        address, count = pinned.__enter__()
        try:
            handle = _created(lib.hal_host_register, self.handle, address, count)
        except BaseException:
            pinned.__exit__()
            raise
        return HostMemory(self, handle, address, pinned)

    def queue(self, *, priority=0, deadline_ns=0, weight=0, service_class=Class.NORMAL,
              budget_permille=0, min_preempt=0, completions=None, name=""):
        """A Queue.  priority: higher is served first within the partition; deadline_ns: device
        time from each submission on until which it shall have ended, misses are counted and
        policy edf goes by it; weight: share under wfq, quota, token; service_class: a Class, before what policies
        go by; budget_permille: of device time, under quota; min_preempt: the least Preempt,
        else ENOTSUP; completions: the Completions where ends are told; name: at most 31
        bytes, for error texts, traces and halctl."""
        desc = fill(_abi.hal_queue_desc, priority=priority, deadline_ns=deadline_ns,
                    weight=weight, service_class=service_class,
                    budget_permille=budget_permille, min_preempt=min_preempt)
        desc.name = text(name, "the name", 32)
        if completions is not None:
            desc.completions = handle_of(completions, "Completions")
        queue = _created(lib.hal_queue_create, self.handle, ctypes.byref(desc))
        return Queue(self, queue, completions)

    def sequence(self, commands):
        """A Sequence of these commands, for queues of this partition."""
        return Sequence(self, commands)


class Device(Object):
    """An open device; made by accelhal.open()."""
    _destroy = "hal_close"

    def __init__(self, target, options):
        target = None if target is None else text(target, "the target")
        super().__init__(None, _created(lib.hal_open, target, strings(options, "options")))
        self.virtual = Cap.VIRTUAL_CLOCK in self.info.caps

    @property
    def device(self):
        return self

    @staticmethod
    def _gone(answer):  # with an error of a layer, but closed
        return answer >= 0 or answer in (-errno.EPROTO, -errno.EIO)

    @property
    def info(self):
        """Its DeviceInfo, as it is now."""
        return _told(_records.device_info, lib.hal_device_get_info, self.handle)

    @property
    def stats(self):
        """Stats of the whole device, as far as this process uses it."""
        return _told(_records.stats, lib.hal_device_get_stats, self.handle)

    @property
    def now(self):
        """Device time in ns."""
        return lib.hal_device_get_time(self.handle)

    def poll(self, ns=None):
        """Moves work on, on a virtual clock by ns of device time (None: as long as something
        is left to do).  Gives the number of commands that ended."""
        ns = (1 << 64) - 1 if ns is None else fits(ns, "ns")
        return check(lib.hal_device_poll(self.handle, ns))

    def partition(self, units=0, rect=None, *, ceiling=0, name="", memory=0, colors=0,
                  isolation=Isolation.NONE, host=None, bandwidth=0, bimodal=False,
                  memory_limit=0, shape=Shape.ANY):
        """A Partition: units of them anywhere, or rect = (row, col, rows, cols) of a grid;
        or a guest of host, a Partition on whose units it takes turns.

        memory: quota in bytes, 0 whatever is free; colors: a bit a memory channel, 0 any;
        isolation: the least, else ENOTSUP; name: at most 31 bytes, for traces; bandwidth: bytes
        a second of device time that it moves at most, 0 no limit; bimodal: it names colors,
        and while it is alone has more, for memory that says so; memory_limit: bytes of its
        buffers, of which the host keeps what has no room in memory, with the option
        hal.oversubscribe; shape: which rectangle units get on a grid.  ENOSPC when units, bytes or channels are not there: the text
        says what is left.
        """
        desc = _partition_desc(units, rect, ceiling=ceiling, name=name, memory=memory,
                               colors=colors, isolation=isolation, shape=shape)
        if host is not None:
            desc.host = handle_of(host, "Partition")
        limits = fill(_abi.hal_partition_limits, bandwidth=fits(bandwidth, "bandwidth"),
                      memory_limit=fits(memory_limit, "memory_limit"))
        desc.limits = ctypes.addressof(limits)
        desc.flags = _abi.PARTITION_BIMODAL if bimodal else 0
        handle = _created(lib.hal_partition_create, self.handle, ctypes.byref(desc))
        return Partition(self if host is None else host, handle)

    def partition_named(self, name):
        """A Partition as [partition "name"] of the configuration has it; ENOENT no such."""
        return Partition(self, _created(lib.hal_partition_create_named, self.handle,
                                        text(name, "the name")))

    def move(self, moves):
        """Gives several partitions new places together, all or none: moves is a list of
        (partition, arguments), with arguments as of Partition.resize() in a dict.  Gives the
        Point when all have moved; it fails if the device refuses a move."""
        moves = list(moves)
        parts = (ctypes.c_void_p * len(moves))(*(handle_of(part, "Partition")
                                                 for part, _ in moves))
        descs = (_abi.hal_partition_desc * len(moves))(*(_partition_desc(**arguments)
                                                         for _, arguments in moves))
        done = _abi.hal_point()
        check(lib.hal_partitions_move(parts, descs, len(moves), ctypes.byref(done)))
        return Point(_line(moves[0][0], done.timeline), done.value)

    def load(self, image):
        """A Program of an image (bytes or any contiguous buffer), which is copied.  EINVAL
        not an image for this device: the text says where."""
        with Pinned(image) as (address, count):
            return Program(self, _created(lib.hal_program_load, self.handle, address, count))

    def timeline(self):
        """A Timeline at 0."""
        return Timeline(self, _created(lib.hal_timeline_create, self.handle))

    def import_timeline(self, fd):
        """A Timeline that follows the one another device or process has exported
        (timeline.export()).  fd stays the caller's, who may close it; EBUSY at a second
        import.  It fails with the exported one, and with ECANCELED once that is gone."""
        return Timeline(self, _created(lib.hal_timeline_import, self.handle,
                                       fits(fd, "fd", 32, signed=True)))

    def completions(self, entries):
        """Completions with room for entries, a power of two up to 65536."""
        return Completions(self, _created(lib.hal_completions_create, self.handle,
                                          fits(entries, "entries", 32)))

    @property
    def policy(self):
        """PolicyInfo of the policy in force."""
        return _told(_records.policy_info, lib.hal_device_get_policy, self.handle)

    def set_policy(self, name, options=None):
        """Replaces the policy while work runs: fifo, priority, rr, wfq, edf, quota ... options: a
        dict or "key=value" strings of section [policy].  EINVAL: the old one stays."""
        check(lib.hal_device_set_policy(self.handle, text(name, "the name"),
                                        strings(options, "options")))

    def extension(self, name):
        """Address of a backend's extension table (<hal/npu.h> ...), as an int."""
        address = lib.hal_device_get_extension(self.handle, text(name, "the name"))
        if not address:
            raise failure(-errno.ENOENT)
        return address

    @property
    def native(self):
        """The backend's own handle, which extension functions take, as an int."""
        return lib.hal_device_get_native(self.handle)

    def trace_start(self, path):
        """Writes a Chrome/Perfetto trace (JSON) to path until trace_stop() or close()."""
        check(lib.hal_trace_start(self.handle, text(os.fspath(path), "the path")))

    def trace_stop(self):
        """Ends the trace.  EINVAL none is being written; EIO not all could be written."""
        check(lib.hal_trace_stop(self.handle))

    @contextlib.contextmanager
    def trace(self, path):
        """with device.trace(path): trace_start() and trace_stop()."""
        self.trace_start(path)
        try:
            yield self
        finally:
            self.trace_stop()


def _bind():
    _calls.bind(
        {"submit": _submit, "wait": _wait, "reached": _reached, "value": _value,
         **_commands.FALLBACKS},
        {"Buffer": Buffer, "Command": _commands.Command, "HostMemory": HostMemory,
         "Kernel": Kernel, "Point": Point, "Queue": Queue, "Range": _commands.Range,
         "Sequence": Sequence, "Timeline": Timeline, "failure": failure})


_bind()
