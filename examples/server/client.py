#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""client.py DIRECTORY COUNT: open 16 connections to server.c, eight for each tenant, and send COUNT
requests on each: fills and copies, with a deadline and without.  Check the words of each answer, and
print how many answers had which status.  A connection ends early if the server closes it."""
import collections
import errno
import socket
import struct
import sys
import threading

FILL, COPY = 0, 1
directory, count = sys.argv[1], int(sys.argv[2])
statuses = collections.Counter()
lock = threading.Lock()


def connect(tenant):
    """Return a connection to the socket of a tenant."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(f'{directory}/{tenant}')
    return server


def ask(server, op, words, value, deadline_us):
    """Send a request, and return what its answer was: 'right', 'wrong' or the name of an error."""
    expected = struct.pack('I', value) * words
    server.send(struct.pack('4I', op, words, value, deadline_us) + (expected if op == COPY else b''))
    got = server.recv(65536)
    if not got:
        raise ConnectionResetError
    status, _, _ = struct.unpack_from('iIQ', got)
    if status < 0:
        return errno.errorcode[-status]
    return 'right' if got[16:] == expected else 'wrong'


def talk(number):
    """Send the requests of connection NUMBER."""
    try:
        with connect(('alice', 'bob')[number % 2]) as server:
            for i in range(count):
                answer = ask(server, (FILL, COPY)[number >> 1 & 1], 1 + 37 * i % 4096,
                             number << 16 | i, (number >> 2 & 1) * 1000000)
                with lock:
                    statuses[answer] += 1
    except OSError:
        with lock:
            statuses['closed'] += 1


with connect('alice') as nonsense:
    nonsense.send(struct.pack('4I', 7, 1, 0, 0))
    if nonsense.recv(64):
        sys.exit('the server answers a request that is none')
threads = [threading.Thread(target=talk, args=(number,)) for number in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(' '.join(f'{name} {statuses[name]}' for name in sorted(statuses)))
