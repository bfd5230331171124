#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py SOCKET MODEL MS MODEL MS [REQUESTS]: serve.c in Python; its head tells the packets."""
import collections, contextlib, errno, itertools, os, selectors, signal, socket, struct, sys
import accelhal as hal
from accelhal import npu

path, names, left = sys.argv[1], sys.argv[2:6:2], int((sys.argv[6:] or [1 << 62])[0])
flight, tags, refused = {}, itertools.count(), collections.Counter()


def receive(client):
    with contextlib.suppress(OSError):
        return client.recv(1 << 20)


def answer(client, number, status, data=b""):
    with contextlib.suppress(OSError):  # it has hung up
        client.send(struct.pack("Ii", number, status) + data)


def request(client, packet):
    number, which = struct.unpack_from("II", packet)
    try:
        run = models[which].submit(packet[8:], tag=(tag := next(tags)))
        flight[tag] = run, client, number
    except hal.QueueFull:
        refused[which] += 1
        answer(client, number, -errno.EAGAIN)
    except (IndexError, ValueError):
        answer(client, number, -errno.EINVAL)


with hal.open("npu:0?clock=real", {"policy.name": "edf"}) as device, \
     device.partition(device.info.unit_rows * device.info.unit_cols) as part, \
     socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, selectors.DefaultSelector() as files:
    ring = device.completions(64)
    models = [npu.Model(part, name, 8, completions=ring, deadline_ns=int(ms) * 1_000_000)
              for name, ms in zip(names, sys.argv[3:6:2])]
    door.bind(path)
    door.listen()
    files.register(door, selectors.EVENT_READ)
    files.register(ring, selectors.EVENT_READ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        print("listening at", path, flush=True)
        while left > 0:
            for source in [key.fileobj for key, _ in files.select()]:
                if source is door:
                    files.register(door.accept()[0], selectors.EVENT_READ)
                elif source is ring:
                    for end in ring.read(timeout=0):
                        run, client, number = flight.pop(end.tag)
                        answer(client, number, end.status, run.result()[0].tobytes())
                        left -= 1
                elif len(packet := receive(source) or b"") >= 8:
                    request(source, packet)
                else:
                    files.unregister(source)
                    source.close()
    print(f"{'model':24} requests  refused   missed     p50 us     p99 us")
    for i, (name, stats) in enumerate((os.path.basename(n), m.queue.stats) for n, m in zip(names, models)):
        print(f"{name:24} {stats.requests:8} {refused[i]:8} {stats.deadline_misses:8} "
              f"{stats.request_p50_ns / 1e3:10.3f} {stats.request_p99_ns / 1e3:10.3f}")
os.unlink(path)
