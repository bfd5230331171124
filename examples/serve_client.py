#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_client.py SOCKET DATA COUNT: asks serve.c or serve.py, which have the networks of DATA
(data/digits) as models 0, small, and 1, large.  The first COUNT test images go to both, four
under way to each; every answer must be what DATA/*.logits has, bit by bit.  First it sends
what is no request, and one request whose answer it does not wait for."""
import collections, errno, socket, struct, sys

path, data, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def records(name, size):
    """The records of a file of data/digits (its README has the format)."""
    with open(f"{data}/{name}", "rb") as file:
        raw = file.read()[48:]
    return [raw[i:i + size] for i in range(0, len(raw), size)]


def connect():
    """A connection."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(path)
    return server


def nonsense(server, packet, expected):
    """The packet's answer must be this."""
    server.send(packet)
    got = server.recv(4096)
    if got != expected:
        sys.exit(f"to {packet.hex()} it says {got.hex()}, not {expected.hex()}")


images = [bytes(((pixel * 255 + 8) // 16 - 128) & 255 for pixel in image[:64])
          for image in records("test.images", 67)]
logits = [records(f"{name}.logits", 10) for name in ("small", "large")]
waiting = [collections.deque(range(count)) for _ in logits]
right = wrong = 0
with connect() as server:
    nonsense(server, struct.pack("II", 7, 2) + images[0], struct.pack("Ii", 7, -errno.EINVAL))
    nonsense(server, struct.pack("II", 8, 1) + images[0][1:], struct.pack("Ii", 8, -errno.EINVAL))
    nonsense(server, struct.pack("II", 9, 0) + images[0] * 2, struct.pack("Ii", 9, -errno.EINVAL))
    nonsense(server, bytes(3), b"")  # it hangs up
with connect() as server:
    server.send(struct.pack("II", 1, 0) + images[0])
with connect() as server:

    def ask(model):
        """The model's next image, if there is one."""
        if waiting[model]:
            image = waiting[model].popleft()
            server.send(struct.pack("II", image * 2 + model, model) + images[image])

    for _ in range(4):
        ask(0)
        ask(1)
    while right + wrong < 2 * count:
        packet = server.recv(4096)
        if not packet:
            sys.exit(f"the server hung up after {right + wrong} answers")
        number, status = struct.unpack_from("Ii", packet)
        if status == 0 and packet[8:] == logits[number % 2][number // 2]:
            right += 1
        else:
            wrong += 1
            print(f"image {number // 2}, model {number % 2}: status {status}", packet[8:].hex())
        ask(number % 2)
print(f"{right} answers, {wrong} wrong")
sys.exit(wrong > 0)
