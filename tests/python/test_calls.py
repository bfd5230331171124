#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_calls.py: the calls of accelhal._calls, which the extension has in C, against their
Python forms: the same results, the same exceptions, no crash, nothing leaked.

Runs on the package in Python alone, too, for what holds of both.
"""
import contextlib
import ctypes
import errno
import gc
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import weakref

import accelhal as hal
from accelhal import _abi, _calls, _commands, _library, _objects

PYTHON = {"submit": _objects._submit, "wait": _objects._wait, "reached": _objects._reached,
          "value": _objects._value, **_commands.FALLBACKS}
COUNTS = {"submit": 8, "wait": 5, "reached": 1, "value": 1, "launch": 6, "fill": 4,
          "copied": 6, "plain": 1}  # of arguments
NONE = (0, 0, 0)
only_compiled = unittest.skipUnless(hal.compiled, "the extension is not in use")


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def nothing(_):
    """A kernel of the software device."""
    return 0


def load(device):
    """Register a kernel with two arguments with the device, and load an image that names it."""
    lib, handle = _library.lib, device._handle
    table = lib.hal_device_get_extension(handle, b"ref")
    # hal_ref_extension.add_kernels, behind .size, .reserved and four other functions
    add = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)(
        ctypes.c_void_p.from_address(table + 8 + 4 * 8).value)
    address = ctypes.cast(nothing, ctypes.c_void_p).value
    kernel = struct.pack("<32s5Q2I", b"nothing", address, 0, 0, 1, 0, 2, 0) + bytes(128)
    assert add(lib.hal_device_get_native(handle), kernel, 1) == 0
    return device.load(struct.pack("<IIII32s", 0x46455248, 2, 32, 1, b"nothing"))


def answer_of(function, args):
    """(class, text) of what function(*args) raises, or (None, its answer)."""
    try:
        return None, function(*args)
    except Exception as error:
        return type(error), str(error)


BETWEEN = """
#include <stdint.h>
#include <string.h>
int PyGILState_Check(void);
int (*real_submit)(void *, const void *, void *);
int (*real_wait)(const void *, uint32_t, uint32_t, int64_t);
int in_submit = -1, in_wait = -1;
char seen[SIZE];
int hal_submit(void *q, const void *d, void *p) {
    in_submit = PyGILState_Check();
    memcpy(seen, d, sizeof(seen));
    return real_submit(q, d, p);
}
int hal_wait(const void *p, uint32_t n, uint32_t flags, int64_t until) {
    in_wait = PyGILState_Check();
    return real_wait(p, n, flags, until);
}
"""


@contextlib.contextmanager
def between():
    """A library whose hal_submit and hal_wait stand between the package and the real ones:
    in_submit and in_wait: whether the GIL was held; seen: the description submitted."""
    lib, names = _library.lib, ("hal_submit", "hal_wait")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "between.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, "-x", "c",
                        f"-DSIZE={ctypes.sizeof(_abi.hal_submit_desc)}", "-"],
                       input=BETWEEN, text=True, check=True)
        library = ctypes.CDLL(path)
    real = {name: getattr(lib, name) for name in names}
    for name, function in real.items():
        pointer = ctypes.c_void_p.in_dll(library, "real" + name[3:])
        pointer.value = ctypes.cast(function, ctypes.c_void_p).value
        getattr(library, name).argtypes = function.argtypes
        setattr(lib, name, getattr(library, name))
    _objects._bind()
    try:
        yield library
    finally:
        for name, function in real.items():
            setattr(lib, name, function)
        _objects._bind()


class Opened(unittest.TestCase):
    """A device with one of each."""

    def setUp(self):
        self.device = hal.open("ref", {"hal.queue_depth": 1024})
        self.part = self.device.partition(4)
        self.queue = self.part.queue()
        self.buffer, self.other = self.part.buffer(4096), self.part.buffer(64)
        self.kernel = load(self.device).kernel("nothing")
        self.line = self.device.timeline()

    def tearDown(self):
        self.device._put_away(True)

    def submit(self, work=(), waits=(), signals=(), *, not_before=0, deadline=0,
               priority=None, tag=0):
        """Arguments of _calls.submit()."""
        return self.queue, work, waits, signals, not_before, deadline, priority, tag


class Same(Opened):
    """What a call gives is what its Python form gives."""

    def assert_made(self, name, *args):
        """Both make the same command."""
        fast, slow = getattr(_calls, name)(*args), PYTHON[name](*args)
        self.assertIs(type(fast), hal.Command)
        self.assertEqual(fast.uses, slow.uses)
        if fast.op == hal.Op.LAUNCH:
            count = fast.launch.arg_count
            self.assertEqual(*([bytes(arg) for arg in command.launch.args[:count]]
                               for command in (fast, slow)))
            fast.launch.args = slow.launch.args = None
        self.assertEqual(bytes(fast), bytes(slow))

    def test_commands(self):
        """Every field of every command."""
        make, part = _library.lib.hal_cmd_copy, self.buffer.at
        for args in ((), (self.buffer,), (self.buffer, 7), (part(64, 128), part(8), 2**64 - 1)):
            for more in ((NONE, NONE, 0, False), ((5, 6, 7), (8, 9, 10), 11, True),
                         ((5,), (2**32 - 1, 1), 2**32 - 1, 1), ([3, 4], NONE, 0, False)):
                self.assert_made("launch", self.kernel, args, *more)
        for more in ((0, None), (8, None), (4096, None), (5000, None), (2**64 - 1, 2**64 - 1)):
            self.assert_made("fill", self.buffer, 0xdeadbeef, *more)
            self.assert_made("copied", make, self.other, 3, self.buffer, *more)
        memory = self.part.host_memory(64)
        self.assert_made("copied", _library.lib.hal_cmd_read, memory, 0, self.buffer, 0, 64)
        for op in hal.Op.NOP, hal.Op.BARRIER, 0, 5:
            self.assert_made("plain", op)

    def test_submissions(self):
        """One, several, more than the extension keeps on its stack, none; and sequences."""
        fills = [hal.fill(self.buffer, i, offset=4 * i, bytes=4) for i in range(200)]
        recorded = self.part.sequence(fills[150:])
        for work in (fills[0], fills[1:9], fills[9:100], tuple(fills[100:150]), recorded, (), []):
            point = self.queue.submit(work)
            self.assertIs(type(point), hal.Point)
            self.assertIs(point.timeline, self.queue.timeline)
            self.assertEqual(point.value, self.queue._submitted)
            point.wait()
        self.assertEqual(struct.unpack("<200I", self.buffer.read(800)), tuple(range(200)))
        self.queue.submit(hal.launch(self.kernel, self.buffer, self.other)).wait()

    def test_terms(self):
        """Waits, signals, times, priority and tag arrive."""
        ring = self.device.completions(16)
        queue = self.part.queue(completions=ring)
        gate = self.queue.submit(not_before_ns=5000)
        done = queue.submit(hal.nop(), waits=[gate], signals=(self.line.at(3),), tag=2**64 - 1,
                            deadline_ns=10**9, priority=-(1 << 31))
        self.assertFalse(done.reached)
        self.assertEqual(self.line.value, 0)
        hal.wait_all([done, self.line.at(3)])
        self.assertTrue(done.reached)
        self.assertEqual(self.line.value, 3)
        end, = ring.read()
        self.assertEqual((end.tag, end.value), (2**64 - 1, done.value))
        self.assertGreaterEqual(end.end_ns, 5000)
        self.assertEqual(hal.wait_any([self.line.at(4), done]), 1)

    def test_described(self):
        """Every field of what is submitted."""
        point = self.queue.submit()
        fields = [name for name, kind in _abi.hal_submit_desc._fields_
                  if issubclass(kind, ctypes._SimpleCData) and name != "cmd_stride"]
        numbers = itertools.count(1)
        with between() as library:
            seen = _abi.hal_submit_desc.in_dll(library, "seen")
            for more in ({}, {"tag": 7}, {"priority": 0}, {"priority": -5}, {"deadline": 9},
                         {"not_before": 8, "deadline": 9, "priority": 2**31 - 1, "tag": 2**64 - 1}):
                for work in (hal.nop(), [hal.nop()] * 12):
                    for points in (((), ()), ([point], []), ((), 2), ((point, point), 3)):
                        told = []
                        for submit in (_calls.submit, _objects._submit):
                            signals = [self.line.at(next(numbers))] if points[1] else ()
                            submit(*self.submit(work, points[0], signals, **more))
                            told.append([getattr(seen, name) for name in fields])
                            self.queue.timeline.at(self.queue._submitted).wait()
                        self.assertEqual(*told)

    def test_many_points(self):
        """More points than the extension keeps on its stack."""
        points = [self.line.at(i) for i in range(1, 40)]
        self.line.signal(39)
        self.queue.submit(waits=points).wait()
        hal.wait_all(points)

    def test_held(self):
        """What work needs lives until it has ended, and not longer."""
        calls = []
        gate = self.device.timeline()
        self.queue.submit(hal.host(lambda: calls.append(1)), waits=[gate.at(1)])
        held = self.part.sequence(hal.host(lambda: calls.append(2)))
        self.queue.submit(held)
        gc.collect()
        self.assertEqual(len(self.queue._held), 2)
        there = weakref.ref(gate)
        del gate
        gc.collect()
        self.assertIn(there(), self.queue._held[0][1])
        there().signal(1)
        self.queue.submit().wait()
        self.assertEqual(calls, [1, 2])
        self.queue.submit()
        self.assertEqual(len(self.queue._held), 0)

    def test_line_lives(self):
        """A queue's Timeline is one object while a point has it, and does not keep the queue."""
        queue = self.part.queue()
        first, second = queue.submit(), queue.submit()
        self.assertIs(first.timeline, second.timeline)
        self.assertLess(first, second)
        del first, second
        self.assertEqual(queue.timeline.at(2), queue.submit(()).timeline.at(2))
        queue.timeline.at(3).wait()
        before = sys.getrefcount(queue)
        queue.submit()
        self.assertEqual(sys.getrefcount(queue), before)


@only_compiled
class Odd(Opened):
    """Arguments that a program gives by mistake: the Python form's exception, no crash."""

    def odd(self):
        """Values of all kinds: wrong types, numbers at and past limits, closed things."""
        class Loud:
            """Whatever is asked of it is an error."""
            def __getattr__(self, name):
                raise LookupError(name)

            def __index__(self):
                raise LookupError("index")

        class Again(list):
            """Neither list nor tuple, and may be read more than once."""

        class Mine(hal.Point):
            """Not the package's own class."""

        closed = self.part.buffer(64)
        gone = hal.fill(closed, 1)
        closed.close()
        dead = self.part.queue()
        late = dead.submit()
        late.wait()
        dead.close()
        foreign = hal.Point(self.line, "one")
        shut = self.device.timeline()
        point = shut.at(1)
        shut.close()
        alien = hal.nop()
        alien.uses = [self.buffer]
        lost = hal.nop()
        lost.uses = (self.buffer, None)
        unbound = hal.Queue.__new__(hal.Queue)
        self.unmade = [unbound]  # it has no handle, so that it closes nothing
        return [None, True, False, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, -2**31, 10**40, 0.5,
                -0.5, float("nan"), float("inf"), "", "queue", b"", b"x" * 200, (), [], {}, set(),
                (1,), [None], NONE, (1, 2, 3, 4), range(3), object(), Loud(), int, hal,
                self.queue, self.buffer, self.other, self.kernel, self.line, self.part,
                self.device, self.queue.timeline, self.line.at(0), [self.line.at(0)],
                Mine(self.line, 0), [Mine(self.line, 0)], hal.nop(), [hal.nop()] * 10,
                _abi.hal_cmd(), [_abi.hal_cmd()], hal.fill(self.buffer, 1),
                self.buffer.at(0, 4), self.buffer.at(-1), hal.Range(None, None, None),
                closed, gone, [gone], dead, late, [late], foreign, [foreign], point, [point],
                alien, lost, unbound, hal.Point(None, None), [hal.Point(1, 2)],
                Again([hal.nop()] * 2), Again([self.line.at(0)]), Again([self.line]),
                _library.lib.hal_cmd_copy, 5000 * [hal.nop()], 20 * [self.line.at(0)]]

    def both(self, name, args):
        """Asserts that both forms of a call answer the same to args."""
        fast, slow = answer_of(getattr(_calls, name), args), answer_of(PYTHON[name], args)
        said = f"{name}{tuple(map(type, args))}: {fast} and {slow}"
        self.assertIs(fast[0], slow[0], said)
        if fast[0] is None:
            self.assertIs(type(fast[1]), type(slow[1]), said)
        else:
            address = "0x"  # an object's text may have it
            self.assertEqual(fast[1].split(address)[0], slow[1].split(address)[0], said)

    def test_one_wrong(self):
        """A call with one odd argument, for each argument and value."""
        make = _library.lib.hal_cmd_copy
        good = {"submit": self.submit(hal.nop()), "wait": ((self.line.at(0),), 0, 0, None, None),
                "reached": (self.line.at(0),), "value": (self.line,),
                "launch": (self.kernel, (self.buffer, 1), NONE, NONE, 0, False),
                "fill": (self.buffer, 1, 0, None), "plain": (0,),
                "copied": (make, self.other, 0, self.buffer, 0, 64)}
        for name, args in good.items():
            for i in range(COUNTS[name]):
                if (name, i) in (("copied", 0), ("submit", 4)):  # no function; held back
                    continue
                if name == "wait" and i in (2, 3, 4):  # below: no wait for ever
                    continue
                for value in self.odd():
                    self.both(name, (*args[:i], value, *args[i + 1:]))
                self.queue.submit().wait()
        for timeout in (None, 0, 0.0, -1, -0.5, float("nan"), 10**400, "1", 1 << 80, True, []):
            self.both("wait", ((self.line.at(0),), 0, timeout, None, None))
        for more in ((1, 2, None), (1, None, 2), (None, 1 << 64, None), (None, "1", None)):
            self.both("wait", ((self.line.at(0),), 0, *more))

    def test_argument_in_launch(self):
        """An odd argument of a kernel, and more of them than there may be."""
        for value in self.odd():
            self.both("launch", (self.kernel, (self.buffer, value), NONE, NONE, 0, False))
            self.both("launch", (self.kernel, (), (1, value), NONE, 0, False))
        self.both("launch", (self.kernel, (1,) * 17, NONE, NONE, 0, False))

    def test_random(self):
        """All arguments odd, and as many as there should be or not."""
        numbers = random.Random(45)
        for _ in range(4000):
            name = numbers.choice(["submit", "reached", "value", "launch", "fill", "plain"])
            count = COUNTS[name] if numbers.random() < 0.9 else numbers.randrange(10)
            args = numbers.choices(self.values, k=count)
            if name == "submit" and count == 8:
                args[4] = 0  # nothing is held back
                if numbers.random() < 0.7:
                    args[0] = self.queue
            if not (name in ("reached", "value", "plain") and count != 1):
                answer_of(getattr(_calls, name), args)
        self.queue._put_away(True)

    def setUp(self):
        super().setUp()
        self.values = self.odd()

    def test_unbound(self):
        """An extension that has not been told of the package, or wrongly."""
        from accelhal import _fast
        for wrong in (None, {}, {"Buffer": 1}):
            with self.assertRaises(TypeError):
                _fast.bind(wrong)
        try:
            things = dict.fromkeys(
                [*PYTHON, "failure", "Command", "Buffer", "HostMemory", "Kernel", "Queue",
                 "Sequence", "Timeline", "Point", "Range"], int)
            with self.assertRaisesRegex(TypeError, "another base"):
                _fast.bind(things)
            with self.assertRaisesRegex(RuntimeError, "bind"):
                _fast.submit(*self.submit())
        finally:
            _objects._bind()

    def test_attributes(self):
        """What a program can do to an object's attributes."""
        for handle in (None, "x", 1.5, 0, 1 << 70, -1):
            thing = self.part.buffer(64)
            real, thing._handle = thing._handle, handle
            answer_of(_calls.fill, (thing, 1, 0, 4))
            thing._handle = real
        self.line._parent, parent = "nobody", self.line._parent
        self.assertRaises(AttributeError, getattr, self.line, "value")
        self.line._parent = parent
        self.queue._line = None
        self.queue.submit(hal.nop()).wait()
        self.queue._held, held = 5, self.queue._held
        self.assertRaises(TypeError, self.queue.submit)
        self.queue._held = held


class Safe(Opened):
    """Threads, processes and memory."""

    @unittest.skipUnless(hasattr(sys, "getallocatedblocks"), "CPython counts blocks")
    def test_leaks(self):
        """As many objects after ten thousand calls as after a hundred."""
        recorded = self.part.sequence([hal.nop()] * 3)
        fill = hal.fill(self.buffer, 1)

        def work(rounds):
            for _ in range(rounds):
                point = self.queue.submit(fill)
                self.queue.submit([fill, hal.nop()], waits=[point], signals=())
                self.queue.submit(recorded, tag=5)
                self.queue.submit(hal.launch(self.kernel, self.buffer, self.other.at(8, 8)))
                point = self.queue.submit(hal.copy(self.buffer, self.other))
                answer_of(self.queue.submit, (5,))
                answer_of(self.line.at(1).wait, (0,))
                assert not self.line.at(1).reached
                point.wait()
                assert point.reached and point.timeline.value == point.value
            gc.collect()
            return sys.getallocatedblocks()

        work(100)
        before = work(100)
        self.assertLess(work(2000) - before, 200)

    def test_full(self):
        """QueueFull, and what is submitted next runs."""
        with self.assertRaisesRegex(hal.QueueFull, "is full") as caught:
            for _ in range(2000):
                self.queue.submit(hal.nop())
        self.assertEqual(caught.exception.errno, errno.EAGAIN)
        self.queue.timeline.at(self.queue._submitted).wait()
        self.queue.submit(hal.nop()).wait()

    def test_fork(self):
        """A child is refused by the library, as in C."""
        point = self.queue.submit(hal.nop())
        point.wait()
        child = os.fork()
        if child == 0:
            said = [answer_of(self.queue.submit, (hal.nop(),)), answer_of(point.wait, ()),
                    answer_of(lambda: point.reached, ())]
            right = all(kind is hal.Error and "EPERM" in text for kind, text in said)
            os._exit(0 if right else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    @only_compiled
    def test_gil(self):
        """A submission keeps the GIL, which would cost more than it; a wait releases it."""
        with between() as library:
            self.queue.submit(hal.nop()).wait()
            found = [ctypes.c_int.in_dll(library, name).value for name in ("in_submit", "in_wait")]
        self.assertEqual(found, [1, 0])


class Choice(unittest.TestCase):
    """Which of the two the package takes."""

    def said(self, wanted=None, path=None):
        """What an import prints, with ACCELHAL_EXTENSION=wanted and the package at path."""
        environment = {k: v for k, v in os.environ.items() if k != "ACCELHAL_EXTENSION"}
        if wanted is not None:
            environment["ACCELHAL_EXTENSION"] = wanted
        if path is not None:
            environment["PYTHONPATH"] = path
        return subprocess.run([sys.executable, "-c", "import accelhal; print(accelhal.compiled)"],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False).stdout

    def test_environment(self):
        """yes, no, neither, and a word that is not known."""
        self.assertEqual(self.said("no"), "False\n")
        self.assertRegex(self.said("maybe"),
                         "ImportError: ACCELHAL_EXTENSION is maybe; it must be yes or no")
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "accelhal")
            os.mkdir(package)
            for name in os.listdir(os.path.dirname(hal.__file__)):
                if name.endswith(".py"):
                    os.symlink(os.path.join(os.path.dirname(hal.__file__), name),
                               os.path.join(package, name))
            self.assertEqual(self.said(path=folder), "False\n")
            self.assertRegex(self.said("yes", folder),
                             "ImportError: ACCELHAL_EXTENSION is yes, but there is no "
                             "accelhal._fast: .*python3-dev")
            with open(os.path.join(package, "_fast.py"), "w", encoding="ascii") as file:
                file.write("VERSION = 1\n")
            self.assertRegex(self.said(path=folder),
                             "ImportError: .*_fast.py was built for another version")

    @only_compiled
    def test_compiled(self):
        """It is taken where it is."""
        self.assertEqual(self.said(), "True\n")
        self.assertEqual(self.said("yes"), "True\n")


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # what tearDown closes
