#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""conformance.py CASES [hal_conformance's arguments]: the cases of tests/conformance, the
very same C functions, on the Python package.

CASES is their shared library, in which every hal_ function of hal.h is one of this file: it
turns C arguments into what a Python program would write, calls the package, and turns the
answer, or the exception, back.  Nothing here calls the library itself.  What a case says in C
that has no Python form answers ENOSYS; python.expect lists those cases.
"""
import ctypes
import errno
import sys
import threading
import time

import accelhal as hal
from accelhal import _abi as abi

things = {}  # the library's pointer: the package's object
texts = threading.local()  # of the last error, as a C string
words = {}  # strings that must stay
calls = dict.fromkeys(abi.FUNCTIONS, 0)
scans = []


class NotInPython(Exception):
    """There is no way to say this."""


def give(out, thing):
    """A new object goes to the C side."""
    things[thing.handle] = thing
    out[0] = thing.handle


def give_point(out, point):
    """A point, unless nobody wants it."""
    if out:
        things[point.timeline.handle] = point.timeline
        out[0].timeline, out[0].value = point.timeline.handle, point.value


def points(raw, count):
    """C's points as Python's."""
    return [things[raw[i].timeline].at(raw[i].value) for i in range(count)]


def whole(struct):
    """The struct, which must be all there is of it: Python gives no sizes."""
    if struct[0].size != ctypes.sizeof(struct[0]):
        raise NotInPython("a struct of another size")
    return struct[0]


def put(struct, record):
    """A named tuple goes to a C struct."""
    raw = whole(struct)
    for name, kind, *_ in raw._fields_:
        if name in ("size", "reserved"):
            continue
        value = getattr(record, {"def": "default"}.get(name, name))
        if isinstance(value, frozenset):
            value = sum(1 << mode for mode in value)
        elif isinstance(value, str):
            value = value.encode()
        elif isinstance(value, tuple):
            value = kind(*value)
        setattr(raw, name, value)


def argument(raw):
    """A launch argument."""
    if raw.buffer is None:
        return raw.offset
    return things[raw.buffer].at(raw.offset, raw.bytes)


def command(raw):
    """A command, by the function that makes it."""
    if raw.op == hal.Op.COPY and isinstance(things[raw.copy.src], hal.HostMemory):
        made = hal.write(things[raw.copy.dst], things[raw.copy.src], raw.copy.bytes,
                         dst_offset=raw.copy.dst_offset, host_offset=raw.copy.src_offset)
    elif raw.op == hal.Op.COPY and isinstance(things[raw.copy.dst], hal.HostMemory):
        made = hal.read(things[raw.copy.dst], things[raw.copy.src], raw.copy.bytes,
                        host_offset=raw.copy.dst_offset, src_offset=raw.copy.src_offset)
    elif raw.op == hal.Op.COPY:
        made = hal.copy(things[raw.copy.dst], things[raw.copy.src], raw.copy.bytes,
                        dst_offset=raw.copy.dst_offset, src_offset=raw.copy.src_offset)
    elif raw.op == hal.Op.FILL:
        made = hal.fill(things[raw.fill.dst], raw.fill.pattern, offset=raw.fill.offset,
                        bytes=raw.fill.bytes)
    elif raw.op == hal.Op.LAUNCH:
        args = [argument(raw.launch.args[i]) for i in range(raw.launch.arg_count)]
        made = hal.launch(things[raw.launch.kernel], *args, groups=raw.launch.groups,
                          group_size=raw.launch.group_size,
                          shared_bytes=raw.launch.shared_bytes)
    elif raw.op == hal.Op.HOST:
        function, user = abi.hal_host_fn(raw.host.fn and ctypes.cast(
            raw.host.fn, ctypes.c_void_p).value), raw.host.user
        made = hal.host(lambda: function(user))
    elif raw.op == hal.Op.BARRIER:
        made = hal.barrier()
    elif raw.op == hal.Op.TIMESTAMP:
        made = hal.timestamp(things[raw.timestamp.dst], raw.timestamp.offset)
    else:
        made = hal.nop()
        made.op = raw.op
    made.flags = raw.flags
    return made


def commands(desc):
    """Those of a submission."""
    if desc.cmd_stride not in (0, ctypes.sizeof(abi.hal_cmd)):
        raise NotInPython("a stride")
    return [command(desc.cmds[i]) for i in range(desc.cmd_count)]


def terms(desc):
    """Everything of a submission but its commands."""
    return {
        "waits": points(desc.waits, desc.wait_count),
        "signals": points(desc.signals, desc.signal_count),
        "not_before_ns": desc.not_before_ns, "deadline_ns": desc.deadline_ns,
        "priority": desc.priority if desc.flags & hal.SUBMIT_PRIORITY else None,
        "tag": desc.tag,
    }


def close(pointer):
    """Destroys one; NULL is none."""
    if pointer is not None:
        things[pointer].close()


def share(desc):
    """Arguments of a partition."""
    rect = (desc.row, desc.col, desc.rows, desc.cols)
    return {
        "units": desc.units_floor, "ceiling": desc.units_ceiling,
        "rect": rect if any(rect) else None, "isolation": desc.min_isolation,
        "memory": desc.memory_bytes, "colors": desc.color_mask, "name": desc.name.decode(),
        "shape": desc.shape,
    }


def limits_of(desc):
    """Limits of a partition."""
    if not desc.limits:
        return {}
    raw = abi.hal_partition_limits.from_address(desc.limits)
    return {"bandwidth": raw.bandwidth, "memory_limit": raw.memory_limit}


def nth(entries, index, out):
    """One of a list; -ERANGE past the last."""
    if index >= len(entries):
        return -errno.ERANGE
    put(out, entries[index])
    return 0


def option_strings(raw):
    """A NULL-ended array."""
    given = []
    while raw and raw[len(given)] is not None:
        given.append(raw[len(given)].decode())
    return given or None


def span(pointer, count):
    """The C side's memory."""
    if count > sys.maxsize:
        raise NotInPython("an object of that size")
    return (ctypes.c_char * count).from_address(pointer) if count else bytearray()


def c_string(text):
    """A pointer that stays."""
    raw = words.setdefault(text, ctypes.create_string_buffer(text.encode()))
    return ctypes.addressof(raw)


class Functions:
    """hal.h, by name without hal_."""

    @staticmethod
    def version():
        major, minor, patch = hal.version()
        return major << 16 | minor << 8 | patch

    @staticmethod
    def strerror(err):
        return c_string(hal.strerror(err))

    @staticmethod
    def last_error():
        return c_string(getattr(texts, "last", ""))

    @staticmethod
    def scan_create(options, what, out):
        given = option_strings(options)
        scan = {"devices": [], "backends": [], "options": []}
        if what & hal.SCAN_DEVICES:
            scan["devices"] = list(hal.devices(given))
            scan["backends"] = list(hal.backends(given))
        if what & hal.SCAN_OPTIONS:
            scan["options"] = list(hal.options(given))
        scans.append(scan)
        out[0] = len(scans)

    @staticmethod
    def scan_destroy(scan):
        scans[scan - 1] = None

    @staticmethod
    def scan_get_backend(scan, index, out):
        return nth(scans[scan - 1]["backends"], index, out)

    @staticmethod
    def log_set(function, user, level):
        def receive(number, line):
            function(user, number, line.encode())

        hal.log_set(receive if function else None, level)

    @staticmethod
    def scan_get_device(scan, index, out):
        return nth(scans[scan - 1]["devices"], index, out)

    @staticmethod
    def scan_get_option(scan, index, out):
        return nth(scans[scan - 1]["options"], index, out)

    @staticmethod
    def open(target, options, out):
        give(out, hal.open(target and target.decode(), option_strings(options)))

    close = staticmethod(close)

    @staticmethod
    def device_get_info(dev, out):
        put(out, things[dev].info)

    @staticmethod
    def device_get_stats(dev, out):
        put(out, things[dev].stats)

    @staticmethod
    def device_poll(dev, ns):
        return things[dev].poll(ns)

    @staticmethod
    def device_get_time(dev):
        return things[dev].now

    @staticmethod
    def device_set_policy(dev, name, options):
        things[dev].set_policy(name.decode(), option_strings(options))

    @staticmethod
    def device_get_policy(dev, out):
        put(out, things[dev].policy)

    @staticmethod
    def device_get_extension(dev, name):
        return things[dev].extension(name.decode())

    @staticmethod
    def device_get_native(dev):
        return things[dev].native

    @staticmethod
    def trace_start(dev, path):
        things[dev].trace_start(path.decode())

    @staticmethod
    def trace_stop(dev):
        things[dev].trace_stop()

    @staticmethod
    def replay(path, out):
        put(out, hal.replay(path.decode()))

    @staticmethod
    def partition_create(dev, desc, out):
        raw = whole(desc)
        host = things[raw.host] if raw.host else None
        give(out, things[dev].partition(**share(raw), **limits_of(raw), host=host,
                                        bimodal=bool(raw.flags & hal.PARTITION_BIMODAL)))

    @staticmethod
    def partition_create_named(dev, name, out):
        give(out, things[dev].partition_named(name.decode()))

    @staticmethod
    def partition_resize(part, desc, done):
        give_point(done, things[part].resize(**share(whole(desc))))

    @staticmethod
    def partitions_move(parts, descs, count, done):
        moves = [(things[parts[i]], share(descs[i])) for i in range(count)]
        give_point(done, moves[0][0].device.move(moves))

    @staticmethod
    def partition_get_info(part, out):
        put(out, things[part].info)

    @staticmethod
    def partition_get_memory_info(part, out):
        put(out, things[part].memory)

    @staticmethod
    def partition_get_stats(part, out):
        put(out, things[part].stats)

    @staticmethod
    def buffer_create_weighted(part, desc, weights, out):
        raw = whole(desc)
        given = {"weights": weights[:64]} if weights else {}
        give(out, things[part].buffer(raw.bytes, colors=raw.color_mask, **given,
                                      bimodal=bool(raw.flags & hal.BUFFER_BIMODAL),
                                      scratch=bool(raw.flags & hal.BUFFER_SCRATCH),
                                      mappable=bool(raw.flags & hal.BUFFER_MAPPABLE),
                                      exportable=bool(raw.flags & hal.BUFFER_EXPORTABLE)))

    @classmethod
    def buffer_create(cls, part, desc, out):
        cls.buffer_create_weighted(part, desc, None, out)

    @staticmethod
    def buffer_export(buf, out):
        out[0] = things[buf].export()

    @staticmethod
    def buffer_import(part, fd, desc, out):
        raw = whole(desc)
        give(out, things[part].import_buffer(fd, raw.bytes,
                                             mappable=bool(raw.flags & hal.BUFFER_MAPPABLE)))

    @staticmethod
    def buffer_recolor(buf, queue, mask, weights, done):
        given = {"weights": weights[:64]} if weights else {}
        give_point(done, things[buf].recolor(things[queue], mask, **given))

    @staticmethod
    def host_alloc(part, count, out, address):
        memory = things[part].host_memory(count)
        give(out, memory)
        address[0] = ctypes.addressof(ctypes.c_char.from_buffer(memory.view()))

    @staticmethod
    def host_register(part, address, count, out):
        give(out, things[part].host_memory(span(address, count)))

    @staticmethod
    def buffer_get_bytes(buf):
        return len(things[buf])

    @staticmethod
    def buffer_write(buf, offset, data, count):
        things[buf].write(span(data, count), offset)

    @staticmethod
    def buffer_read(buf, offset, data, count):
        things[buf].read_into(span(data, count), offset)

    @staticmethod
    def buffer_map(buf, out):
        view = things[buf].map()
        out[0] = ctypes.addressof(ctypes.c_char.from_buffer(view))

    @staticmethod
    def buffer_unmap(buf):
        things[buf].unmap()

    @staticmethod
    def program_load(dev, image, size, out):
        give(out, things[dev].load(span(image, size)))

    @staticmethod
    def program_set_name(prog, name):
        things[prog].set_name(name.decode())

    @staticmethod
    def kernel_find(prog, name, out):
        give(out, things[prog].kernel(name.decode()))

    @staticmethod
    def program_get_info(prog, out):
        put(out, things[prog].info)

    @staticmethod
    def kernel_get(prog, index, out):
        give(out, things[prog].kernel(index))

    @staticmethod
    def kernel_get_info(kernel, out):
        info = things[kernel].info
        put(out, info._replace(arg_bytes=info.arg_bytes + (0,) * (16 - info.arg_count)))

    @staticmethod
    def queue_create(part, desc, out):
        raw = whole(desc)
        ring = things[raw.completions] if raw.completions else None
        give(out, things[part].queue(priority=raw.priority, deadline_ns=raw.deadline_ns,
                                     weight=raw.weight, min_preempt=raw.min_preempt,
                                     completions=ring, name=raw.name.decode()))

    @staticmethod
    def queue_suspend(queue, mode, quiet):
        final = bool(mode & hal.SUSPEND_FINAL)
        give_point(quiet, things[queue].suspend(mode & ~hal.SUSPEND_FINAL, final=final))

    @staticmethod
    def queue_resume(queue):
        things[queue].resume()

    @staticmethod
    def queue_get_fault(queue, out):
        put(out, things[queue].fault)

    @staticmethod
    def queue_get_stats(queue, out):
        put(out, things[queue].stats)

    @staticmethod
    def queue_get_timeline(queue):
        line = things[queue].timeline
        things[line.handle] = line
        return line.handle

    @staticmethod
    def submit(queue, desc, done):
        raw = whole(desc)
        give_point(done, things[queue].submit(commands(raw), **terms(raw)))

    @staticmethod
    def sequence_create(part, desc, out):
        raw = whole(desc)
        if raw.wait_count or raw.signal_count:
            raise NotInPython("a sequence that waits")
        give(out, things[part].sequence(commands(raw)))

    @staticmethod
    def sequence_set_args(seq, index, args, count):
        things[seq].set_args(index, *[argument(args[i]) for i in range(count)])

    @staticmethod
    def sequence_submit(queue, seq, desc, done):
        given = {}
        if desc:
            given = terms(whole(desc))
            if desc[0].cmd_count:
                raise NotInPython("a sequence and commands")
        give_point(done, things[queue].submit(things[seq], **given))

    @staticmethod
    def completions_create(dev, entries, out):
        give(out, things[dev].completions(entries))

    @staticmethod
    def completions_read(ring, out, count, until_ns):
        ends = things[ring].read(count, **until(until_ns))
        for raw, end in zip(out, ends):
            for name in ("value", "tag", "status", "submit_ns", "end_ns"):
                setattr(raw, name, getattr(end, name))
            raw.queue, raw.reserved = end.queue.handle, 0
        return len(ends)

    @staticmethod
    def completions_get_fd(ring):
        return things[ring].fileno()

    @staticmethod
    def timeline_create(dev, out):
        give(out, things[dev].timeline())

    @staticmethod
    def timeline_export(line, rights, out):
        if rights & ~(abi.TIMELINE_WAIT | abi.TIMELINE_SIGNAL):
            raise NotInPython("another right")
        out[0] = things[line].export(wait=bool(rights & abi.TIMELINE_WAIT),
                                     signal=bool(rights & abi.TIMELINE_SIGNAL))

    @staticmethod
    def timeline_import(dev, fd, out):
        give(out, things[dev].import_timeline(fd))

    @staticmethod
    def timeline_get_value(line, err):
        if err:
            err[0] = things[line].error
        return things[line].value

    @staticmethod
    def timeline_signal(line, value):
        things[line].signal(value)

    @staticmethod
    def wait(raw, count, flags, until_ns):
        wait = hal.wait_any if flags & hal.WAIT_ANY else hal.wait_all
        if flags & hal.WAIT_DEVICE_TIME:
            return wait(points(raw, count), device_ns=until_ns)
        return wait(points(raw, count), **until(until_ns))

    @staticmethod
    def point_open_fd(point):
        return points(point, 1)[0].fd()


for destroyed in ("partition_destroy", "buffer_destroy", "program_unload", "queue_destroy",
                  "sequence_destroy", "completions_destroy", "timeline_destroy"):
    setattr(Functions, destroyed, staticmethod(close))


def until(until_ns):
    """The time of hal_wait as Python has it, in every form that there is."""
    if until_ns == hal.FOREVER:
        return {}
    if until_ns == 0:
        return {"timeout": 0}
    left = until_ns - time.monotonic_ns()
    return {"timeout": left / 1e9} if left > 10**9 else {"until_ns": until_ns}


def answering(name, result, function):
    """The function as C sees it: an exception is -errno and its text."""
    failed = None if result is ctypes.c_void_p else 0 if result is ctypes.c_uint64 else -1

    def called(*args):
        calls[name] += 1
        try:
            answer = function(*args)
        except hal.Error as error:
            texts.last, code = error.strerror, -error.errno
        except (ValueError, TypeError) as error:
            texts.last, code = str(error), -errno.EINVAL
        except NotInPython as error:
            texts.last, code = f"not in Python: {error}", -errno.ENOSYS
        except Exception as error:  # a case must fail by it
            texts.last, code = f"{type(error).__name__}: {error}", -errno.EBADE
        else:
            return 0 if answer is None and failed is not None else answer
        return code if failed == -1 else failed

    return called


def main():
    """Runs the suite; its exit status."""
    cases = ctypes.CDLL(sys.argv[1])
    table = (ctypes.c_void_p * len(abi.FUNCTIONS)).in_dll(cases, "python_functions")
    keep = []
    for index, (name, (result, parameters)) in enumerate(abi.FUNCTIONS.items()):
        if name.startswith("hal_cmd_"):
            continue
        result = ctypes.c_void_p if result is ctypes.c_char_p else result
        function = getattr(Functions, name[4:])
        keep.append(ctypes.CFUNCTYPE(result, *parameters)(answering(name, result, function)))
        table[index] = ctypes.cast(keep[-1], ctypes.c_void_p).value
    words_in = [word.encode() for word in ["hal_conformance", *sys.argv[2:]]]
    status = cases.hal_conformance_main(len(words_in),
                                        (ctypes.c_char_p * (len(words_in) + 1))(*words_in))
    ctypes.CDLL(None).fflush(None)
    print(f"{sum(calls.values())} calls went through Python")
    return status


sys.exit(main())
