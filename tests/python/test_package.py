#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is the package's own: the cases of tests/conformance know nothing of it.

test_package.py SOURCE_DIR [unittest's arguments]
"""
import array
import asyncio
import contextlib
import ctypes
import errno
import gc
import glob
import gzip
import inspect
import io
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import accelhal as hal
from accelhal import _abi, npu

try:
    import numpy
except ImportError:
    numpy = None

SOURCE = sys.argv.pop(1)
PACKAGE = os.path.dirname(hal.__file__)
LONG = 60


class Opened(unittest.TestCase):
    """A device, a partition, a queue and a buffer of 4096 bytes."""
    target = "ref"

    def setUp(self):
        self.device = hal.open(self.target)
        self.part = self.device.partition(4)
        self.queue = self.part.queue()
        self.buffer = self.part.buffer(4096, mappable=True)

    def tearDown(self):
        self.device._put_away(True)

    def refused(self, number, function, *args, **more):
        """function raises an Error of that number, with a text."""
        with self.assertRaises(hal.Error) as caught:
            function(*args, **more)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])
        self.assertTrue(caught.exception.strerror)
        return str(caught.exception)


class Header(unittest.TestCase):
    """The package and hal.h are the same."""

    def test_generated(self):
        """_abi.py is what generate.py makes of the header."""
        try:
            import pycparser
        except ImportError:
            self.skipTest("no pycparser: apt-get install python3-pycparser")
        made = subprocess.run(
            [sys.executable, os.path.join(SOURCE, "bindings/python/generate.py"), SOURCE],
            check=True, stdout=subprocess.PIPE, text=True).stdout
        with open(os.path.join(SOURCE, "bindings/python/accelhal/_abi.py"),
                  encoding="utf-8") as file:
            self.assertEqual(file.read(), made, "write it anew: bindings/python/generate.py "
                             ". >bindings/python/accelhal/_abi.py")

    def test_layout(self):
        """Offsets and sizes are those that the ABI tests freeze."""
        structs = {}
        with open(os.path.join(SOURCE, "tests/abi/layout.txt"), encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words[0] == "struct":
                    structs[words[1]] = (int(words[2]), {})
                    members = structs[words[1]][1]
                else:
                    members[words[0]] = (int(words[1]), int(words[2]))
        compared = 0
        for name, kind in vars(_abi).items():
            if not (name in structs and isinstance(kind, type)):
                continue
            size, members = structs[name]
            self.assertEqual(ctypes.sizeof(kind), size, name)
            for path, place in members.items():
                offset, inner = 0, kind
                for step in path.split("."):
                    member = getattr(inner, step)
                    offset += member.offset
                    inner = self.kind_of(inner, step)
                self.assertEqual((offset, member.size), place, f"{name}.{path}")
            compared += 1
        declared = re.findall(r"^struct (hal_\w+) \{$", self.header(), re.M)
        self.assertEqual(compared, len(declared))

    @staticmethod
    def kind_of(struct, member):
        """The ctype of a member, also of an anonymous union."""
        for name, kind, *_ in struct._fields_:
            if name == member:
                return kind
        return Header.kind_of(dict(struct._fields_)["u_"], member)

    @staticmethod
    def header():
        """hal.h and the headers in hal/ext."""
        text = ""
        for path in [os.path.join(SOURCE, "hal/hal.h"),
                     *glob.glob(os.path.join(SOURCE, "hal/ext/*.h"))]:
            with open(path, encoding="ascii") as file:
                text += file.read()
        return text

    def test_all_there(self):
        """Each function of hal.h is called by the package."""
        text = ""
        for name in os.listdir(PACKAGE):
            if name.endswith(".py") and name != "_abi.py":
                with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                    text += file.read()
        declared = set(re.findall(r"\b(hal_[a-z0-9_]+)\(", re.sub(
            r"/\*.*?\*/", "", self.header(), flags=re.S))) - {"hal_init_"}
        self.assertEqual(declared, set(_abi.FUNCTIONS))
        for name in _abi.FUNCTIONS:
            self.assertRegex(text, rf'lib\.{name}\b|"{name}"', name)

    def test_versions(self):
        """The wheel's version is the header's."""
        with open(os.path.join(SOURCE, "bindings/python/pyproject.toml"),
                  encoding="ascii") as file:
            self.assertIn(f'\nversion = "{hal.__version__}"\n', file.read())
        self.assertEqual(hal.__version__, "%d.%d.%d" % hal.version())

    def test_documented(self):
        """Whatever is public says what it is."""
        for name, thing in [*((name, getattr(hal, name)) for name in hal.__all__),
                            *vars(npu).items()]:
            if name.startswith("_") or inspect.ismodule(thing):
                continue
            if isinstance(thing, int):
                continue
            self.assertTrue(inspect.getdoc(thing), name)
            if inspect.isclass(thing) and thing.__module__.startswith("accelhal."):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (
                            callable(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(getattr(thing, member)),
                                        f"{name}.{member}")


class Memory(Opened):
    """Buffers and what has the buffer protocol."""

    def test_kinds(self):
        """Whatever is contiguous is written, whatever is writable too is read into."""
        raw = bytes(range(256)) * 16
        for data in (raw, bytearray(raw), memoryview(raw), array.array("I", raw),
                     (ctypes.c_ubyte * 4096).from_buffer_copy(raw)):
            self.buffer.write(bytes(4096))
            self.buffer.write(data)
            self.assertEqual(self.buffer.read(), raw)
        into = array.array("H", bytes(32))
        self.buffer.read_into(into, 64)
        self.assertEqual(into.tobytes(), raw[64:96])
        self.assertEqual(self.buffer.read(3, 5), raw[5:8])
        self.assertEqual(self.buffer.read(offset=4090), raw[4090:])
        self.assertEqual(self.buffer.read(0), b"")
        self.buffer.write(b"")

    def test_refused(self):
        """What is not contiguous, not writable, too long or no buffer."""
        self.assertRaises(BufferError, self.buffer.write, memoryview(bytes(8))[::2])
        self.assertRaises(BufferError, self.buffer.read_into, bytes(8))
        self.assertRaises(TypeError, self.buffer.write, "text")
        self.assertRaises(TypeError, self.buffer.write, 5)
        self.refused(errno.EINVAL, self.buffer.write, bytes(100), 4000)
        self.refused(errno.EINVAL, self.buffer.read, 1, 4096)
        self.refused(errno.EINVAL, self.buffer.read, 1 << 62)
        self.refused(errno.EINVAL, self.buffer.read, 2, (1 << 64) - 1)
        self.refused(errno.EINVAL, self.buffer.read_into, bytearray(1), 4096)
        self.assertRaises(ValueError, self.buffer.write, b"x", -1)
        self.assertRaises(ValueError, self.buffer.write, b"x", 1 << 64)

    @unittest.skipUnless(numpy, "no numpy: apt-get install python3-numpy")
    def test_numpy(self):
        """Arrays go in and come out, whatever their type and shape."""
        data = numpy.arange(1024, dtype=numpy.float32).reshape(16, 64)
        self.buffer.write(data)
        got = self.buffer.array(numpy.float32, (16, 64))
        self.assertTrue((got == data).all())
        self.assertTrue((self.buffer.array("float32")[:] == data.ravel()).all())
        self.assertEqual(self.buffer.array("uint16", offset=4090).shape, (3,))
        self.assertRaises(ValueError, self.buffer.write, data.T)  # numpy's own words
        self.buffer.read_into(data[2], 0)
        self.assertTrue((data[2] == got[0]).all())
        data.flags.writeable = False
        self.assertRaises(ValueError, self.buffer.read_into, data)
        self.refused(errno.EINVAL, self.buffer.array, "uint8", 5000)

    @unittest.skipUnless(numpy, "no numpy: apt-get install python3-numpy")
    def test_map_numpy(self):
        """An array over the mapping is the buffer, and holds it."""
        seen = numpy.frombuffer(self.buffer.map(), numpy.uint32)
        self.queue.submit(hal.fill(self.buffer, 7)).wait()
        self.assertTrue((seen == 7).all())
        seen[3] = 9
        self.assertEqual(self.buffer.read(4, 12), b"\x09\0\0\0")
        self.assertRaises(BufferError, self.buffer.unmap)
        self.assertRaises(BufferError, self.buffer.close)
        self.assertEqual(seen[3], 9)
        del seen
        self.buffer.unmap()

    def test_map(self):
        """Views end with the mapping; a slice of one holds it."""
        view = self.buffer.map()
        again = self.buffer.map()
        view[0] = 5
        self.assertEqual(again[0], 5)
        part = again[1:]
        self.assertRaises(BufferError, self.buffer.unmap)
        self.assertRaises(ValueError, lambda: view[0])
        part.release()
        self.buffer.unmap()
        self.refused(errno.EINVAL, self.buffer.unmap)
        with self.buffer.mapped() as view:
            self.assertEqual(view[0], 5)
            self.assertEqual(len(view), 4096)
        self.assertRaises(ValueError, lambda: view[0])
        self.buffer.map()  # nobody looks at it: closed all the same
        self.buffer.close()


class Shared(Opened):
    """Timelines of another device."""

    def test_both_ways(self):
        """An import follows and signals; it fails once the exported one is closed."""
        with hal.open("ref?clock=real") as other:
            line = self.device.timeline()
            fd = line.export(signal=True)
            there = other.import_timeline(fd)
            self.refused(errno.EBUSY, other.import_timeline, fd)
            os.close(fd)
            line.signal(1)
            there.at(1).wait(60)
            there.signal(5)
            line.at(5).wait(60)
            line.close()
            self.assertIn("destroyed", self.refused(errno.ECANCELED, there.at(6).wait, 60))
            there.close()

    def test_rights(self):
        """Without the right an import only follows."""
        line = self.device.timeline()
        self.refused(errno.EINVAL, line.export, wait=False)
        self.refused(errno.EINVAL, self.queue.timeline.export, signal=True)
        fd = line.export()
        there = self.device.import_timeline(fd)
        os.close(fd)
        self.refused(errno.EINVAL, there.signal, 1)
        self.refused(errno.EBADF, self.device.import_timeline, -1)


class Numbers(Opened):
    """Nothing is cut to fit."""

    def test_too_large(self):
        """Each would be another number in C."""
        for refused in (
                lambda: self.device.partition(1 << 32),
                lambda: self.device.partition(rect=(0, 0, 65536, 1)),
                lambda: self.device.partition(rect=(0, 0, 1)),
                lambda: self.device.partition(1, name="x" * 32),
                lambda: self.device.partition(1, name="a\0b"),
                lambda: self.part.buffer(-1),
                lambda: self.part.buffer(1 << 64),
                lambda: self.part.queue(priority=1 << 31),
                lambda: self.queue.submit(tag=1 << 64),
                lambda: self.queue.submit(priority=-(1 << 31) - 1),
                lambda: self.device.timeline().signal(-1),
                lambda: self.device.completions(1 << 32),
                lambda: hal.fill(self.buffer, 1 << 32),
                lambda: hal.fill(self.buffer, -1),
                lambda: hal.copy(self.buffer, self.buffer, -1),
                lambda: hal.timestamp(self.buffer, 1 << 64),
                lambda: self.queue.timeline.at(0).wait(timeout=-1),
                lambda: self.queue.timeline.at(0).wait(timeout=float("nan")),
                lambda: self.queue.timeline.at(0).wait(1, until_ns=1),
                lambda: hal.open("re\0f")):
            self.assertRaises(ValueError, refused)
        self.assertRaises(TypeError, self.part.buffer, 1.5)
        self.assertRaises(TypeError, self.part.buffer, "4096")
        self.assertRaises(TypeError, hal.host, 5)
        self.assertRaises(TypeError, self.queue.submit, [5])
        self.assertRaises(TypeError, hal.open, "ref", "ref.units=3")

    def test_wrong_kinds(self):
        """A handle of another kind does not go to the library."""
        self.assertRaises(ValueError, self.device.partition, rect=(0, 0, 1))
        for refused in (
                lambda: hal.copy(self.part, self.buffer, 1),
                lambda: hal.copy(self.buffer, self.queue, 1),
                lambda: hal.fill(self.part, 1, bytes=4),
                lambda: hal.timestamp(self.device),
                lambda: hal.launch(self.buffer),
                lambda: hal.launch(None),
                lambda: self.part.queue(completions=self.device),
                lambda: self.queue.submit(waits=[self.buffer]),
                lambda: self.queue.submit(waits=[(self.queue.timeline, 1)]),
                lambda: hal.wait_all([hal.Point(self.part, 1)]),
                lambda: hal.wait_any([1])):
            self.assertRaisesRegex(TypeError, "is needed, not a", refused)

    def test_rest_of_cases(self):
        """What python.expect takes out of cases, as far as it can be said."""
        self.refused(errno.EINVAL, self.part.sequence, [])
        other = self.device.partition(1)
        work = hal.fill(self.buffer, 1)
        self.refused(errno.EPERM, other.sequence, work)
        with self.part.sequence(work) as recorded:
            self.refused(errno.EPERM, other.queue().submit, recorded)
        self.refused(errno.EINVAL, hal.wait_all, [])


class Lives(Opened):
    """What is open, closed, and by whom."""

    def test_closed(self):
        """Who is closed says so, and again is nothing."""
        command = hal.fill(self.buffer, 1)
        launchable = self.device.timeline().at(1)
        self.buffer.close()
        self.buffer.close()
        self.assertTrue(self.buffer.closed)
        for dead in (self.buffer.read, lambda: self.queue.submit(command),
                     lambda: hal.fill(self.buffer, 1), lambda: len(self.buffer)):
            with self.assertRaisesRegex(ValueError, "the buffer is closed"):
                dead()
        point = self.queue.submit()
        point.wait()
        self.queue.close()
        for dead in (point.wait, self.queue.submit, lambda: point.timeline.value):
            with self.assertRaisesRegex(ValueError, "the queue is closed"):
                dead()
        launchable.timeline.close()
        with self.assertRaisesRegex(ValueError, "the timeline is closed"):
            launchable.wait()
        self.part.close()
        self.device.close()
        with self.assertRaisesRegex(ValueError, "the device is closed"):
            self.device.info

    def test_strict(self):
        """close() is the library's; a block puts away what is inside, and goes out."""
        self.assertIn("EBUSY", self.refused(errno.EBUSY, self.device.close))
        self.assertFalse(self.device.closed)
        with self.device.partition(2) as part:
            queue, buffer = part.queue(), part.buffer(64)
            queue.submit(hal.fill(buffer, 3))
        self.assertTrue(part.closed and queue.closed and buffer.closed)
        self.assertFalse(self.device.closed)

    def test_block_waits(self):
        """What a block submitted has run at its end."""
        ran = []
        with self.part.queue() as queue:
            for i in range(5):
                queue.submit(hal.host(lambda i=i: ran.append(i)))
        self.assertEqual(ran, [0, 1, 2, 3, 4])

    def test_everything(self):
        """A block around the device, with one of each in it, in the order that fails in C."""
        with self.device:
            ring = self.device.completions(8)
            line = self.device.timeline()
            queue = self.part.queue(completions=ring)
            recorded = self.part.sequence(hal.fill(self.buffer, 2))
            queue.submit(recorded, signals=[line.at(1)])
        self.assertTrue(ring.closed and line.closed and recorded.closed and self.part.closed)

    def test_forgotten(self):
        """Who is not closed is told of, and what it held comes back."""
        used = self.part.info.memory_used
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            lost = self.part.buffer(4096)
            self.assertGreater(self.part.info.memory_used, used)
            del lost
            gc.collect()
        self.assertEqual([w.category for w in told], [ResourceWarning])
        self.assertEqual(self.part.info.memory_used, used)

    def test_forgotten_in_use(self):
        """A timeline that work still needs goes when that has ended."""
        gate = self.device.timeline()
        self.queue.submit(waits=[gate.at(1)], signals=[self.device.timeline().at(1)])
        gate.signal(1)
        del gate
        gc.collect()
        self.queue.submit().wait()
        self.buffer.close()
        self.queue.close()
        self.part.close()
        gc.collect()
        self.device.close()

    def test_points_hold(self):
        """A point alone keeps what it is of."""
        point = self.part.queue().submit(hal.fill(self.buffer, 8))
        gc.collect()
        point.wait()
        self.assertTrue(point.reached)
        point.timeline.device.partition(1).close()
        queue = point.timeline._parent
        queue.close()


class Real(Opened):
    """On a clock of its own: threads and signals."""
    target = "ref?clock=real"

    def test_gil(self):
        """Who waits lets others run: else the gate never opens."""
        gate = self.device.timeline()
        opener = threading.Thread(target=lambda: gate.signal(1))
        done = self.queue.submit(waits=[gate.at(1)])
        opener.start()
        done.wait(LONG)
        opener.join()
        gate.close()

    def test_waits_meet(self):
        """Two threads wait for each other by turns, each by hal_wait and by a ring."""
        ring = self.device.completions(64)
        queue = self.part.queue(completions=ring)
        mine, theirs = self.device.timeline(), self.device.timeline()
        got = []

        def answer():
            for i in range(1, 21):
                mine.at(i).wait(LONG)
                queue.submit(tag=i, signals=[theirs.at(i)])
                got.extend(end.tag for end in ring.read(1, LONG))

        thread = threading.Thread(target=answer)
        thread.start()
        for i in range(1, 21):
            mine.signal(i)
            theirs.at(i).wait(LONG)
        thread.join()
        self.assertEqual(got, list(range(1, 21)))

    def test_interrupted(self):
        """Ctrl-C ends a wait for what never comes."""
        never = self.device.timeline()
        old = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
        self.addCleanup(signal.signal, signal.SIGINT, old)
        with self.assertRaises(KeyboardInterrupt):
            self.queue.submit(hal.host(lambda: os.kill(os.getpid(), signal.SIGINT)))
            never.at(1).wait(LONG)

    def test_exception_drops(self):
        """An exception does not wait for a gate that stays shut; what ran has run."""
        gate, ran = self.device.timeline(), []
        with self.assertRaises(LookupError):
            with self.part.queue() as queue:
                queue.submit(hal.host(lambda: ran.append(1))).wait(LONG)
                queue.submit(hal.host(lambda: ran.append(2)), waits=[gate.at(1)])
                raise LookupError
        self.assertTrue(queue.closed)
        self.assertEqual(ran, [1])
        gate.signal(1)
        gate.close()

    def test_suspended_block(self):
        """Nor does a block wait for a queue that its owner has stopped."""
        with self.part.queue() as queue:
            queue.suspend().wait(LONG)
            queue.submit(hal.fill(self.buffer, 1))
        self.assertTrue(queue.closed)

    def test_select(self):
        """A ring is what select takes; a point has an fd."""
        ring = self.device.completions(4)
        queue = self.part.queue(completions=ring)
        self.assertEqual(select.select([ring], [], [], 0)[0], [])
        self.assertEqual(ring.read(timeout=0), [])
        done = queue.submit(tag=77)
        self.assertEqual(select.select([ring], [], [], LONG)[0], [ring])
        fd = done.fd()
        self.assertEqual(select.select([fd], [], [], LONG)[0], [fd])
        os.close(fd)
        end, = ring.read()
        self.assertEqual((end.queue, end.value, end.tag, end.status), (queue, 1, 77, 0))
        self.assertGreaterEqual(end.end_ns, end.submit_ns)

    def test_await(self):
        """Tasks await points, and others go on: else the gate never opens."""
        gate, told = self.device.timeline(), []

        async def first(done):
            await done
            await done  # reached
            told.append("reached")

        async def both():
            done = self.queue.submit(waits=[gate.at(1)])
            task = asyncio.create_task(first(done))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(done, 0.01)
            told.append("opens")
            gate.signal(1)
            await asyncio.wait_for(task, LONG)

        before = len(os.listdir("/proc/self/fd"))
        asyncio.run(both())
        self.assertEqual(told, ["opens", "reached"])
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        gate.close()

    def test_await_fails(self):
        """What has failed, or gone, raises what wait() does."""
        async def awaits(point):
            await point

        with hal.open("ref?clock=real&layers.fault=submit:1:EIO") as device:
            part = device.partition(4)
            done = part.queue().submit(hal.fill(part.buffer(64), 1))
            self.assertIn("injected", self.refused(errno.EIO, asyncio.run, awaits(done)))
        self.assertRaises(ValueError, asyncio.run, awaits(done))


class Host(Opened):
    """Host memory that queues copy to and from."""

    def test_there_and_back(self):
        """New memory, and an object's."""
        new, back = self.part.host_memory(4096), bytearray(4096)
        mine = self.part.host_memory(back)
        self.assertEqual((len(new), bytes(new.view())), (4096, bytes(4096)))
        new.view()[:5] = b"hello"
        self.queue.submit([hal.write(self.buffer, new),
                           hal.read(mine, self.buffer, 96, host_offset=4000)]).wait()
        self.assertEqual(back[3999:4006], b"\0hello\0")
        self.assertEqual(self.buffer.read(5), b"hello")
        mine.close()
        back.append(0)  # nobody looks at it any more
        new.close()

    def test_refused(self):
        """What host memory cannot do; and it stays while it is in use."""
        new, line = self.part.host_memory(64), self.device.timeline()
        self.refused(errno.EINVAL, self.queue.submit, hal.fill(new, 1))
        self.refused(errno.EINVAL, new.map)
        self.refused(errno.EINVAL, new.write, b"x")
        self.refused(errno.EINVAL, self.part.host_memory, 0)
        self.assertRaises(BufferError, self.part.host_memory, b"read-only")
        self.assertRaises(TypeError, self.part.host_memory, None)
        view = memoryview(new.view())
        self.assertRaises(BufferError, new.close)
        view.release()
        mine = self.part.host_memory(bytearray(64))
        done = self.queue.submit(hal.write(self.buffer, mine), waits=[line.at(1)])
        self.refused(errno.EBUSY, mine.close)
        self.assertEqual(len(mine), 64)
        line.signal(1)
        done.wait()
        mine.close()
        self.assertRaises(ValueError, mine.view)


class Colors(Opened):
    """Memory channels."""
    target = "ref?colors=4"

    def test_recolor(self):
        """There it is again, and nobody copies it meanwhile."""
        buffer = self.part.buffer(1 << 16, colors=1, weights=[1])
        buffer.write(b"ch" * 50)
        moved = buffer.recolor(self.queue, 6, weights=[0, 3, 1])
        self.refused(errno.EBUSY, buffer.read, 1)
        hal.wait_all([moved])
        self.assertEqual(buffer.read(100), b"ch" * 50)

    def test_refused(self):
        """Wrong channels, wrong weights, a second placement of what has one."""
        self.refused(errno.EINVAL, self.buffer.recolor, self.queue, 16)
        self.refused(errno.EINVAL, self.part.buffer, 64, weights=[0, 0, 0, 0])
        self.assertRaises(ValueError, self.part.buffer, 64, weights=[256])
        self.assertRaises(ValueError, self.part.buffer, 64, weights=[1] * 65)
        self.assertRaises(TypeError, self.buffer.recolor, self.part)
        self.refused(errno.EINVAL, self.part.buffer, 64, bimodal=True)
        self.refused(errno.EINVAL, self.part.buffer, 64, scratch=True)
        self.refused(errno.EINVAL, self.device.partition, 1, bimodal=True)

    def test_bimodal(self):
        """More channels while it is alone."""
        with self.device.partition(1, colors=1, bimodal=True) as part:
            weights = part.buffer(1 << 16, bimodal=True)
            scratch = part.buffer(64, bimodal=True, scratch=True)
            weights.write(b"ch" * 50)
            with part.queue() as queue:
                queue.submit(hal.copy(scratch, weights, bytes=64)).wait()
                self.refused(errno.EINVAL, queue.submit, hal.fill(weights, 1))
            self.assertEqual(scratch.read(64), b"ch" * 32)
            self.assertEqual((part.memory.wide_mask, part.memory.switches), (15, 1))
            weights.close()
            scratch.close()


class Answers(Opened):
    """Errors as exceptions."""

    def test_classes(self):
        """Those of ours, of Python's, and the text in both."""
        never = self.device.timeline().at(1)
        with self.assertRaises(TimeoutError) as caught:
            never.wait(0)
        self.assertIsInstance(caught.exception, hal.Timeout)
        self.assertIsInstance(caught.exception, OSError)
        self.assertFalse(never.reached)
        self.assertIn("[EDEADLK]", self.refused(errno.EDEADLK, never.wait))
        self.assertIn("nope", self.refused(errno.ENODEV, hal.open, "nope:0"))
        self.assertIn("65536", self.refused(errno.ENOSPC, self.device.partition, 65536))
        ring = self.device.completions(1)
        queue = self.part.queue(completions=ring)
        queue.submit(waits=[never])
        with self.assertRaises(BlockingIOError) as caught:
            queue.submit()
        self.assertIsInstance(caught.exception, hal.QueueFull)
        never.timeline.signal(1)
        self.assertNotEqual(hal.strerror(-errno.ENOSPC), hal.strerror(errno.EINVAL))

    def test_threads(self):
        """A text is its thread's."""
        seen = {}

        def fail(name):
            for _ in range(200):
                try:
                    hal.open(name)
                except hal.Error as error:
                    if name not in error.strerror:
                        seen[name] = error.strerror
        threads = [threading.Thread(target=fail, args=(f"nope{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, {})

    def test_log(self):
        """Lines come until another function is set; one that raises hurts nothing."""
        got, told = [], []
        hook, sys.unraisablehook = sys.unraisablehook, lambda u: told.append(u.exc_type)
        try:
            hal.log_set(lambda level, text: got.append((level, text)))
            hal.open("ref").close()
            hal.log_set(lambda level, text: 1 // 0, hal.LogLevel.WARNING)
            with self.assertRaises(hal.Error):
                hal.open("nope")
            hal.log_set()
            hal.open("ref").close()
        finally:
            hal.log_set()
            sys.unraisablehook = hook
        self.assertEqual(told, [ZeroDivisionError])
        self.assertIn("ref:0: closed", [text for level, text in got])
        self.assertTrue(all(level is hal.LogLevel.INFO for level, text in got))
        self.assertRaises(TypeError, hal.log_set, 1)

    def test_callback(self):
        """One that raises is told of; what is behind it runs, and all stay alive till then."""
        told = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda u: told.append(u.exc_type)
        try:
            ran = []
            for i in range(3):
                self.queue.submit([hal.host(lambda i=i: ran.append(i)),
                                   hal.host(lambda: 1 // 0)])
            gc.collect()
            self.queue.submit().wait()
        finally:
            sys.unraisablehook = hook
        self.assertEqual((ran, told), ([0, 1, 2], [ZeroDivisionError] * 3))

    def test_callback_recorded(self):
        """... also those of a sequence that is closed while it is under way."""
        gate, ran = self.device.timeline(), []
        recorded = self.part.sequence(hal.host(lambda: ran.append(1)))
        done = [self.queue.submit(recorded, waits=[gate.at(1)]) for _ in range(3)]
        recorded.close()
        del recorded
        gc.collect()
        gate.signal(1)
        hal.wait_all(done)
        self.assertEqual(ran, [1, 1, 1])


class Whole(Opened):
    """The rest of hal.h: what no conformance case calls."""

    def test_lists(self):
        """Backends, devices and options."""
        backend, = [b for b in hal.backends() if b.name == "ref"]
        self.assertEqual((backend.status, backend.device_count), (0, 1))
        self.assertIn(hal.DeviceKind.CPU, [d.kind for d in hal.devices()])
        units, = [o for o in hal.options({"backend.ref.units": 9})
                  if (o.section, o.key) == ("backend.ref", "units")]
        self.assertEqual(units.value, "9")
        self.refused(errno.EINVAL, list, hal.options(["backend.ref.units=none"]))
        with hal.open("ref", {"backend.ref.units": 3, "backend.ref.map": False}) as small:
            self.assertEqual(small.info.unit_cols, 3)
            self.assertNotIn(hal.Cap.MAP, small.info.caps)

    def test_policy(self):
        """Replaced, refused, told of."""
        self.device.set_policy("rr", {"timeout_ms": 2000})
        self.assertEqual(self.device.policy.name, "rr")
        self.refused(errno.EINVAL, self.device.set_policy, "none such")
        self.assertEqual(self.device.policy.name, "rr")

    def test_named(self):
        """A partition of the configuration; its journal, replayed; its trace."""
        with tempfile.TemporaryDirectory() as folder:
            config, journal, trace = (os.path.join(folder, n) for n in ("c", "j", "t"))
            with open(config, "w", encoding="ascii") as file:
                file.write('[partition "mine"]\nunits = 2\n')
            given = {"hal.config": config, "hal.journal": journal}
            with hal.open("ref", given) as device, device.trace(trace):
                with device.partition_named("mine") as part, part.queue() as queue:
                    self.assertEqual((part.info.units, part.info.name), (2, "mine"))
                    queue.submit([hal.nop(), hal.barrier()]).wait()
                    self.assertEqual(queue.stats.completed, 2)
                    self.assertEqual(part.stats.requests, 1)
                self.refused(errno.ENOENT, device.partition_named, "yours")
            told = hal.replay(journal)
            self.assertGreater(told.decisions, 0)
            self.assertEqual((told.mismatches, told.mismatch), (0, ""))
            with open(trace, encoding="utf-8") as file:
                self.assertTrue(json.load(file))
            self.refused(errno.EINVAL, hal.replay, trace)
        self.refused(errno.ENOENT, hal.replay, journal)

    def test_extension(self):
        """Address of a table, and what is not there."""
        self.assertGreater(self.device.extension("ref"), 0)
        self.assertIn("nope", self.refused(errno.ENOENT, self.device.extension, "nope"))
        self.assertGreater(self.device.native, 0)


class Refusals(unittest.TestCase):
    """What accelhal.npu says of what it does not take."""

    def test_files(self):
        """A file that is none says how one is made."""
        with self.assertRaisesRegex(ValueError, "test_package.py: not a .npu file; npuc makes"):
            npu.read(__file__)

    def test_second_submit(self):
        """It names runs=, which has memory for more."""
        path = os.environ.get("SMALL_NPU", "")
        if not (os.path.exists(path) and any(d.backend == "npu" for d in hal.devices())):
            self.skipTest("no small.npu, or no model of the NPU to run it on")
        with hal.open("npu:0") as device, device.partition(rect=(0, 0, 8, 8)) as part:
            for runs in (0, -1, "two"):
                with self.assertRaisesRegex(ValueError, f"runs={runs!r}: it must be a number of at least 1"):
                    npu.Model(part, path, runs=runs)
            with npu.Model(part, path) as model:
                model.submit(bytes(64))
                with self.assertRaisesRegex(hal.QueueFull, "take a .*, or make .* runs=2 or more"):
                    model.submit(bytes(64))
                with self.assertRaisesRegex(ValueError, "0 inputs given, but the network has 1: 'image'"):
                    model.submit()


@unittest.skipUnless(numpy, "no numpy: apt-get install python3-numpy")
class Network(unittest.TestCase):
    """accelhal.npu on the networks that the build makes, and on files that are none."""

    def setUp(self):
        self.path = os.environ.get("SMALL_NPU", "")
        if not (os.path.exists(self.path) and any(d.backend == "npu" for d in hal.devices())):
            self.skipTest("no small.npu, or no model of the NPU to run it on")

    @staticmethod
    def records(name, size):
        """The records of a file of data/digits."""
        with open(os.path.join(SOURCE, "data/digits", name), "rb") as file:
            raw = file.read()[48:]
        return [raw[i:i + size] for i in range(0, len(raw), size)]

    def test_answers(self):
        """Ten images, three under way at a time, bit by bit what was recorded."""
        images = [(numpy.frombuffer(image[:64], numpy.uint8).astype(int) * 255 + 8) // 16 - 128
                  for image in self.records("test.images", 67)[:10]]
        images = [image.astype(numpy.int8).reshape(8, 8) for image in images]
        want = self.records("small.logits", 10)[:10]
        with hal.open("npu:0") as device, device.partition(rect=(0, 0, 8, 8)) as part:
            with npu.Model(part, self.path, runs=3) as model:
                port, = model.file.inputs
                self.assertEqual((port.name, port.dtype, port.shape), ("image", "int8", (1, 8, 8, 1)))
                runs, got = [], []
                for image in images:
                    if len(runs) == 3:
                        with self.assertRaises(hal.QueueFull):
                            model.submit(image)
                        got += runs.pop(0).result()
                    runs.append(model.submit(image))
                got += [run.result()[0] for run in runs]
                self.assertEqual([scores.tobytes() for scores in got], want)
                self.assertEqual(got[0].shape, (1, 1, 1, 10))
                self.assertRaises(ValueError, runs[0].result)
                self.assertRaises(ValueError, model.run)
                self.assertRaises(ValueError, model.run, images[0].astype(numpy.int16))
                again, = model.run(images[3])
                self.assertEqual(again.tobytes(), want[3])
            self.assertEqual(part.info.memory_used, 0)

    def test_await(self):
        """Runs that are awaited together, on either clock."""
        image = bytes(((pixel * 255 + 8) // 16 - 128) & 255
                      for pixel in self.records("test.images", 67)[0][:64])

        async def three(model):
            return await asyncio.gather(*(model.submit(image) for _ in range(3)))

        for target in "npu:0", "npu:0?clock=real":
            with hal.open(target) as device, device.partition(rect=(0, 0, 8, 8)) as part:
                with npu.Model(part, self.path, runs=3) as model:
                    for _ in range(2):  # the memory is free again
                        got = asyncio.run(three(model))
                        self.assertEqual([scores.tobytes() for scores, in got],
                                         [self.records("small.logits", 10)[0]] * 3)

    @staticmethod
    def pack(name):
        """Models of data/tflite: text, model, seed of its inputs, outputs (ops.py has the
        format)."""
        with gzip.open(os.path.join(SOURCE, "data/tflite", name)) as file:
            count, = struct.unpack("<12xI", file.read(16))
            for _ in range(count):
                text = file.read(file.read(1)[0]).decode()
                model = file.read(*struct.unpack("<I", file.read(4)))
                length, seed = struct.unpack("<IQ", file.read(12))
                if not seed:
                    file.read(length)
                yield text, model, seed, file.read(*struct.unpack("<I", file.read(4)))

    @staticmethod
    def random(state):
        """Endless bytes: oracle_random() of tests/tflite."""
        while True:
            state ^= state >> 12
            state = (state ^ state << 25) & (1 << 64) - 1
            state ^= state >> 27
            yield state * 2685821657736338717 >> 56 & 255

    def test_variables(self):
        """What a network keeps between its runs is there, and is again after reset()."""
        models = [m for m in self.pack("ops_state.pack.gz") if m[0].startswith("stream")][:4]
        with tempfile.TemporaryDirectory() as folder, hal.open("npu:0") as device:
            path = os.path.join(folder, "m.npu")
            for text, raw, seed, want in models:
                subprocess.run([os.environ["NPUC"], "-", "-o", path], input=raw, check=True,
                               stdout=subprocess.DEVNULL)
                with device.partition(rect=(0, 0, 8, 8)) as part, npu.Model(part, path, 9) as model:
                    self.assertTrue(model.file.state)
                    port, = model.file.inputs
                    for _ in range(2):
                        source = self.random(seed)
                        runs = []
                        for _ in range(len(want) // model.file.outputs[0].bytes):
                            runs.append(model.submit(bytes(next(source) for _ in range(port.bytes))))
                        self.assertGreater(len(runs), 1)
                        self.assertEqual(b"".join(run.result()[0].tobytes() for run in runs), want, text)
                        model.reset()

    def test_host(self):
        """A program that leaves the end of its model to the host says so."""
        with open(self.path, "rb") as file:
            raw = bytearray(file.read())
        ports = npu._HEADER.size + 2 * npu._PORT.size
        raw[12] |= 2
        raw[ports:ports] = b"the network ends here".ljust(256, b"\0")
        with tempfile.NamedTemporaryFile() as file:
            file.write(raw)
            file.flush()
            got = npu.read(file.name)
        plain = npu.read(self.path)
        self.assertEqual((plain.host, plain.state), ("", False))
        self.assertEqual(got, plain._replace(host="the network ends here"))

    def test_no_files(self):
        """What is none says so."""
        with open(self.path, "rb") as file:
            raw = file.read()
        self.assertRaises(OSError, npu.read, "/nonexistent.npu")
        for wrong in (b"", raw[:79], b"X" + raw[1:], raw[:-1], raw + b"x",
                      raw[:8] + b"\x09" + raw[9:], raw[:12] + b"\x08" + raw[13:], raw[:56] + b"\xff" * 4 + raw[60:],
                      raw[:88 + 260] + b"\x63" + raw[88 + 261:]):
            with tempfile.NamedTemporaryFile() as file:
                file.write(wrong)
                file.flush()
                with self.assertRaisesRegex(ValueError, file.name):
                    npu.read(file.name)


class Search(unittest.TestCase):
    """Which library is taken, and what is said when it is none."""

    def imports(self, **environment):
        """Text of an import with this environment and nothing else of ours."""
        clean = {k: v for k, v in os.environ.items()
                 if k not in ("ACCELHAL_LIBRARY", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
        clean.update(environment)
        done = subprocess.run(
            [sys.executable, "-c", "import accelhal; print('found', accelhal.version())"],
            env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        return done.stdout

    def stub(self, folder, text):
        """libaccelhal.so.0 of this C text."""
        path = os.path.join(folder, "libaccelhal.so.0")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, "-x", "c",
                        "-"], input=text, text=True, check=True)
        return path

    def test_ways(self):
        """Named, by the loader, by pkg-config."""
        library = os.path.realpath(os.environ["ACCELHAL_LIBRARY"])
        self.assertIn("found (0, ", self.imports(ACCELHAL_LIBRARY=library))
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(library, os.path.join(folder, "libaccelhal.so.0"))
            with open(os.path.join(folder, "accelhal.pc"), "w", encoding="ascii") as file:
                file.write(f"libdir={folder}\nName: x\nDescription: x\nVersion: 0\n")
            self.assertIn("found (0, ", self.imports(LD_LIBRARY_PATH=folder))
            self.assertIn("found (0, ", self.imports(PKG_CONFIG_PATH=folder))

    def test_wrong(self):
        """ImportError, with the file, what it is, and what to do."""
        said = self.imports(ACCELHAL_LIBRARY="/nonexistent/libaccelhal.so.0")
        self.assertRegex(said, "ImportError: ACCELHAL_LIBRARY is /nonexistent/.*No such file")
        with tempfile.TemporaryDirectory() as folder:
            path = self.stub(folder, "unsigned hal_version(void) { return 9 << 8 | 1; }")
            said = self.imports(LD_LIBRARY_PATH=folder)
            self.assertRegex(said, r"ImportError: .*accelhal 0\.9\.1, but this package is for 0\.")
            self.stub(folder, "int nothing;")
            said = self.imports(ACCELHAL_LIBRARY=path)
            self.assertRegex(said, f"ImportError: {path} is not libaccelhal")
            number = hal.VERSION_MAJOR << 16 | hal.VERSION_MINOR << 8
            self.stub(folder, f"unsigned hal_version(void) {{ return {number}; }}")
            said = self.imports(ACCELHAL_LIBRARY=path)
            self.assertRegex(said, f"ImportError: {path} has no hal_strerror")

    def test_absent(self):
        """Nowhere at all."""
        said = self.imports(PATH="/nonexistent")
        if said.startswith("found ("):
            self.skipTest("libaccelhal is installed on this machine")
        self.assertRegex(said, "ImportError: libaccelhal.so.0 is not found: .*pkg-config knows "
                         "no accelhal.*ACCELHAL_LIBRARY=")


class Delegate(unittest.TestCase):
    """accelhal.tflite, with a runtime that records what it is given."""

    def setUp(self):
        import types
        from accelhal import tflite
        self.tflite, self.given = tflite, []
        runtime = types.ModuleType("ai_edge_litert.interpreter")
        runtime.load_delegate = lambda *given: self.given.append(given) or "delegate"
        self.saved = sys.modules.get(runtime.__name__)
        sys.modules[runtime.__name__] = runtime

    def tearDown(self):
        del sys.modules["ai_edge_litert.interpreter"]
        if self.saved:
            sys.modules["ai_edge_litert.interpreter"] = self.saved
        os.environ.pop("ACCELHAL_TFLITE_LIBRARY", None)

    def test_options(self):
        delegate = os.path.join(os.path.dirname(os.environ["ACCELHAL_LIBRARY"]),
                                "libaccelhal_tflite.so")
        os.environ["ACCELHAL_TFLITE_LIBRARY"] = delegate
        self.assertEqual(self.tflite.load_delegate("npu:0", units=4, class_="latency"), "delegate")
        self.tflite.load_delegate()
        self.assertEqual(self.given, [
            (delegate, {"units": 4, "class": "latency", "target": "npu:0"}), (delegate, {})])

    def test_named(self):
        """A file that is missing, and one that is no delegate."""
        for named in ("/nonexistent.so", os.environ["ACCELHAL_LIBRARY"]):
            os.environ["ACCELHAL_TFLITE_LIBRARY"] = named
            with self.assertRaisesRegex(ImportError, f"ACCELHAL_TFLITE_LIBRARY is {named}: "):
                self.tflite.load_delegate()

    def test_beside(self):
        """Where $ACCELHAL_LIBRARY names a file, the delegate is in its folder."""
        beside = os.path.join(os.path.dirname(os.environ["ACCELHAL_LIBRARY"]),
                              "libaccelhal_tflite.so")
        self.assertEqual(self.tflite.library(), beside)
        found, self.tflite.NAME = self.tflite.NAME, "libaccelhal_none.so"
        try:
            with self.assertRaisesRegex(ImportError, "libaccelhal_none.so is not found: .*"
                                        "ACCELHAL_TFLITE_LIBRARY="):
                self.tflite.library()
        finally:
            self.tflite.NAME = found

    def test_no_runtime(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-I", "-c", "import sys; sys.path = [p for p in sys.path if "
                 "'-packages' not in p]; sys.path.insert(0, sys.argv[1])\n"
                 "from accelhal import tflite; tflite.load_delegate()",
                 os.path.dirname(PACKAGE)], cwd=folder, capture_output=True, text=True)
        self.assertRegex(done.stderr, "ImportError: no TensorFlow Lite is installed: pip install "
                         "ai-edge-litert")


class Provider(unittest.TestCase):
    """accelhal.onnxruntime, with a runtime that records what it is given, and the package of the
    provider's convention."""

    def setUp(self):
        import types
        from accelhal import onnxruntime
        self.module, self.given, self.devices = onnxruntime, [], []
        runtime = types.ModuleType("onnxruntime")
        runtime.get_ep_devices = lambda: list(self.devices)
        runtime.register_execution_provider_library = self.register
        runtime.SessionOptions = lambda: types.SimpleNamespace(
            add_provider_for_devices=lambda *given: self.given.append(given))
        self.saved = sys.modules.get("onnxruntime")
        sys.modules["onnxruntime"] = runtime

    def tearDown(self):
        del sys.modules["onnxruntime"]
        if self.saved:
            sys.modules["onnxruntime"] = self.saved
        os.environ.pop("ACCELHAL_ONNXRUNTIME_LIBRARY", None)

    def register(self, *given):
        import types
        self.given.append(given)
        self.devices = [types.SimpleNamespace(ep_name=name)
                        for name in ("CPUExecutionProvider", self.module.PROVIDER)]

    def test_options(self):
        provider = self.beside()
        os.environ["ACCELHAL_ONNXRUNTIME_LIBRARY"] = os.path.relpath(provider)
        self.module.session_options("npu:0", units=4, strict=True)
        self.module.session_options()  # registered already
        ours = self.devices[1:]
        self.assertEqual(self.given, [
            ("accelhal", provider),
            (ours, {"units": "4", "strict": "1", "target": "npu:0"}), (ours, {})])

    def beside(self):
        return os.path.join(os.path.dirname(os.path.abspath(os.environ["ACCELHAL_LIBRARY"])),
                            "libaccelhal_onnxruntime.so")

    def test_named(self):
        """A file that is missing, and one that is no provider."""
        for named in ("/nonexistent.so", os.environ["ACCELHAL_LIBRARY"]):
            os.environ["ACCELHAL_ONNXRUNTIME_LIBRARY"] = named
            with self.assertRaisesRegex(ImportError, f"ONNXRUNTIME_LIBRARY is {named}: "):
                self.module.session_options()

    def test_library(self):
        beside = self.beside()
        self.assertEqual(self.module.get_library_path(), beside)
        found, self.module.NAME = self.module.NAME, "libaccelhal_none.so"
        try:
            with self.assertRaisesRegex(ImportError, "libaccelhal_none.so is not found: .*"
                                        "ACCELHAL_ONNXRUNTIME_LIBRARY="):
                self.module.get_library_path()
        finally:
            self.module.NAME = found

    def test_package(self):
        """onnxruntime-ep-accelhal has the functions of the convention, and our version."""
        folder = os.path.join(SOURCE, "bindings/python-onnxruntime-ep")
        sys.path.insert(0, folder)
        try:
            import onnxruntime_ep_accelhal as package
        finally:
            sys.path.remove(folder)
        self.assertEqual(package.get_ep_name(), "AccelHalExecutionProvider")
        self.assertEqual(package.get_ep_names(), ["AccelHalExecutionProvider"])
        self.assertEqual(package.get_library_path(), self.module.get_library_path())
        with open(os.path.join(SOURCE, "bindings/python/pyproject.toml"), encoding="utf-8") as f:
            version = re.search(r'^version = "(.*)"', f.read(), re.M).group(1)
        with open(os.path.join(folder, "pyproject.toml"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn(f'version = "{version}"', text)
        self.assertIn(f'"accelhal=={version}"', text)


class Page(unittest.TestCase):
    """docs/python.md: its programs run as they stand."""

    @unittest.skipUnless(numpy, "no numpy: apt-get install python3-numpy")
    def test_programs(self):
        """Each block runs; behind "prints" is what it prints."""
        with open(os.path.join(SOURCE, "docs/python.md"), encoding="utf-8") as file:
            text = file.read()
        blocks = re.findall(r"```python\n(.*?)```\n\nprints\n\n((?:    [^\n]*\n)+)", text,
                            re.S)
        self.assertEqual(len(blocks), text.count("```python"))
        self.assertGreaterEqual(len(blocks), 4)
        have_npu = any(d.backend == "npu" for d in hal.devices())
        for program, printed in blocks:
            if "npu:0" in program and not have_npu:
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("error", ResourceWarning)
                exec(compile(program, "docs/python.md", "exec"), {})
            self.assertEqual(out.getvalue(), re.sub("^    ", "", printed, flags=re.M), program)


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # test_forgotten looks for them
