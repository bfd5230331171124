#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py SOCKET MODEL MS MODEL MS [REQUESTS]: serve.c in Python (3.11); its head has the packets."""
import asyncio, collections, contextlib, errno, os, signal, socket, struct, sys
import accelhal as hal
from accelhal import npu

async def main(path, names, times, limit):
    async def answer(client, number, which, data):
        try:
            status, output = 0, (await models[which].submit(data))[0].tobytes()
        except (hal.Error, IndexError, ValueError) as wrong:
            status, output = -getattr(wrong, "errno", errno.EINVAL), b""
        with contextlib.suppress(OSError):  # it has hung up
            await loop.sock_sendall(client, struct.pack("Ii", number, status) + output)
        answers[which, status] += 1
        if answers[0, 0] + answers[1, 0] >= limit: server.cancel()
    async def serve(client):
        with client, contextlib.suppress(OSError):
            while len(packet := await loop.sock_recv(client, 1 << 20)) >= 8:
                tasks.create_task(answer(client, *struct.unpack_from("II", packet), packet[8:]))

    answers, loop, server = collections.Counter(), asyncio.get_running_loop(), asyncio.current_task()
    loop.add_signal_handler(signal.SIGTERM, server.cancel)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    with door, hal.open("npu:0?clock=real", {"policy.name": "edf"}) as device:
        part = device.partition(device.info.unit_rows * device.info.unit_cols)
        models = [npu.Model(part, name, 8, deadline_ns=int(ms) * 10**6) for name, ms in zip(names, times)]
        door.bind(path)
        door.listen()
        print("listening at", path, flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as tasks:
                while True: tasks.create_task(serve((await loop.sock_accept(door))[0]))
        os.unlink(path)
        print(f"{'model':24} requests  refused   missed     p50 us     p99 us", *(
            f"{os.path.basename(names[i]):24} {s.requests:8} {answers[i, -errno.EAGAIN]:8} {s.deadline_misses:8} "
            f"{s.request_p50_ns / 1e3:10.3f} {s.request_p99_ns / 1e3:10.3f}"
            for i, s in enumerate(model.queue.stats for model in models)), sep="\n")
asyncio.run(main(sys.argv[1], sys.argv[2:6:2], sys.argv[3:6:2], int((sys.argv[6:] or [1 << 62])[0])))
