# SPDX-License-Identifier: Apache-2.0
"""test_top.py HALCTL PROGRAM: halctl top and policy, of programs that run, that have ended,
and of sockets that answer anything.
"""
import fcntl
import json
import os
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

halctl = sys.argv[1].split()
program = sys.argv[2].split()
failures = []
LONG = 100  # seconds: longer than anything here takes


def check(ok, *what):
    if not ok:
        failures.append(" ".join(str(w) for w in what))


class Folder:
    """Where programs and halctl meet."""

    def __init__(self, path):
        self.path = path
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HAL_")}
        self.env.update(HAL_HAL_MONITOR="control", HAL_HAL_MONITOR_DIR=path, TERM="xterm")

    def halctl(self, *args, status=0):
        p = subprocess.run(halctl + list(args), capture_output=True, text=True, env=self.env,
                           timeout=LONG)
        check(p.returncode == status, args, "exit status", p.returncode, p.stderr)
        return p.stdout + p.stderr

    def start(self, *args, **how):
        p = subprocess.Popen(program + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=self.env, **how)
        line = p.stdout.readline()
        check(line == b"ready\n", "the program does not start:", line)
        return p


def end(p):
    p.stdin.close()
    check(p.wait(LONG) == 0, "the program ends with", p.returncode)


# ---- a program -------------------------------------------------------------------------

def check_once(f, p):
    text = f.halctl("top", "--once")
    lines = text.splitlines()
    check(re.match(r"monitor_program \d+: ref:0 .*, clock virtual, at \d+\.\d{6} s$", lines[0]), lines[0])
    check("policy priority" in lines[1] and "2 partitions, 4 queues" in lines[1], lines[1])
    array = [line.split("  ")[0] for line in lines[3:7]]
    # 4 x 4 units: 8 of video, 2 of batch, the rest nobody's.
    check("".join(array).count("A") == 8 and "".join(array).count("B") == 2 and
          "".join(array).count(".") == 6, "array", array)
    rows = [line for line in lines if re.match(r"[AB] +\d+ ", line)]
    check([r.split()[2] for r in rows] == ["latency", "best-effort", "normal", "normal"], rows)
    check([r.split()[0] for r in rows] == ["A", "A", "B", "B"], rows)
    check(all("25" in r.split() or "50" in r.split() or "75" in r.split() or "100" in r.split()
              for r in rows), "ended", rows)
    check("1.0 ms" in rows[0] and "1.0 us" in rows[2], "deadlines", rows)
    # Columns are below their heads.  In the last one the first queue has a name, the others none.
    (head,) = [line for line in lines if " QUEUE " in line]
    column = head.index("NAME")
    check([r[column:] for r in rows] == ["decode", "", "", ""], "names", head, rows)
    for title in ("P50", "P99", "DEADLINE", "MISSED", "STOPPED"):
        end = head.index(title) + len(title)
        check(all(r[end - 1] != " " and r.ljust(end + 1)[end] == " " for r in rows), title, head, rows)
    check(re.search(r"A video +0,0 +\S+ +8 ", text) or re.search(r"A video .* 8 +8-8 ", text), "video")
    check(re.search(r"B batch .* 2 +2-8 ", text), "batch", text)
    check("is next: its key" in text, "no decision")
    check(f.halctl("top", "--once") == text, "a second look at what rests differs")
    # The same as JSON, and one by its number.
    (one,) = json.loads(f.halctl("top", "-j"))
    check(one["pid"] == p.pid and len(one["queues"]) == 4, one["pid"])
    check(f.halctl("top", "-n", "-p", str(p.pid)) == text, "by PID")
    check(f.halctl("top", "-n", "-p", "%d.0" % p.pid) == text, "by PID.N")
    check("no program 1 runs" in f.halctl("top", "-n", "-p", "1", status=1), "PID 1")


def check_policy(f, p):
    text = f.halctl("policy", "show")
    check(re.search(r"^policy +priority$", text, re.M), text)
    check(re.search(r"queue \d+ is next: its key \d+ is the lowest; runnable queues: \d+", text), text)
    check("is preempted for queue" in text, text)
    check(f.halctl("policy", "set", "wfq") == "", "policy set says something")
    check(re.search(r"^policy +wfq$", f.halctl("policy", "show"), re.M), "wfq is not there")
    p.stdin.write(b"x")  # a round under it
    p.stdin.flush()
    f.halctl("policy", "set", "tidal", "tidal_idle_us=77", "-p", str(p.pid))
    text = f.halctl("policy", "show", "-p", str(p.pid))
    check("tidal_idle_us=77" in text and "the policy is wfq" in text, text)
    check(json.loads(f.halctl("-j", "policy", "show"))["policy"] == "tidal", "policy show -j")
    check("nobody" in f.halctl("policy", "set", "nobody", status=1), "policy nobody")
    check("tidal_idle_us" in f.halctl("policy", "set", "tidal", "tidal_idle_us=x", status=1), "tidal_idle_us")
    check("wfq_none" in f.halctl("policy", "set", "wfq", "wfq_none=1", status=1), "wfq_none")
    for line in (["policy"], ["policy", "reset"], ["policy", "set"], ["policy", "show", "x"],
                 ["policy", "set", "wfq", "x"], ["policy", "--once", "show"], ["top", "x"],
                 ["list", "-p", "1"], ["top", "-d", "1"], ["top", "-d", "x"], ["info", "-n"]):
        f.halctl(*line, status=2)


# What "step" runs on 2 units and on 8.
PROFILE = '''{"accelhal_profile": 1, "device": {"backend": "ref", "name": "software device, 16 units",
"unit_rows": 1, "unit_cols": 16, "colors": 0, "clock_hz": 1000000000, "bandwidth": 0, "clock": "virtual"},
"runs": 8, "programs": [{"name": "work", "kernels": [{"name": "step", "work": 80000, "arg_bytes": [],
"class": "array", "bytes": 0, "units": [{"units": 2, "ns": 40000, "spread_ns": 0},
{"units": 8, "ns": 10000, "spread_ns": 0}]}]}]}'''


def check_learned(d):
    g = Folder(os.path.join(d, "learns"))
    profile = os.path.join(d, "profile.json")
    with open(profile, "w") as file:
        file.write(PROFILE)
    g.env.update(HAL_POLICY_NAME="static", HAL_HAL_PROFILE=profile)
    p = g.start("ref?units=16")
    text = g.halctl("policy", "show")
    check(re.search(r"^learned +OF +UNITS +TAKES +COMMANDS +SURE$", text, re.M), text)
    # 25 rounds, of one launch and two on 8 units, of three and four on 2.
    for row in (r"program 1, step +8 +10\.000 us +75 +1\.000", r"program 1, step +2 +40\.000 us +175 +1\.000",
                r"queue \d+, 10\^6 of work +2 +500\.000 us +100 +[01]\.\d{3}"):
        check(re.search("^  " + row + "$", text, re.M), row, "in", text)
    rows = json.loads(g.halctl("-j", "policy", "show"))["learned"]
    check(len(rows) == 6 + ("beside" in rows[0]), rows)
    end(p)


# ---- a terminal ------------------------------------------------------------------------

class Terminal:
    """halctl top on a terminal of this size."""

    def __init__(self, f, columns, rows, *args, term="xterm"):
        pid, self.fd = pty.fork()
        if pid == 0:
            env = dict(f.env, TERM=term)
            os.execvpe(halctl[0], halctl + ["top", "-d", "50", *args], env)
        self.pid, self.seen = pid, b""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text):
        """What has come up to there; it is forgotten."""
        limit = time.monotonic() + LONG
        while text not in self.seen and time.monotonic() < limit:
            ready, _, _ = select.select([self.fd], [], [], 1)
            try:
                more = os.read(self.fd, 65536) if ready else None
            except OSError:
                more = b""
            if more == b"":
                break
            self.seen += more or b""
        check(text in self.seen, "terminal: no", text, "in", self.seen[-600:])
        was, self.seen = self.seen, b""
        return was

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self, status=0):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        got = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        check(got == status, "terminal: exit status", got)
        os.close(self.fd)


def check_terminal(f, p):
    t = Terminal(f, 120, 40)
    t.until(b"DEADLINE")
    p.stdin.write(b"x" * 50)  # it goes on: another frame comes, of another time
    p.stdin.flush()
    t.until(b"is next")
    t.resize(50, 8)
    t.until(b"halctl top needs a terminal of 78 x 16")
    t.resize(77, 40)
    t.until(b"77 x 40")
    t.resize(120, 40)
    t.until(b"DEADLINE")
    t.type(b"\x1b[B\x1b[B\x1b[A")
    t.type(b"q")
    t.end()
    t = Terminal(f, 10, 2)
    t.until(b"10 x 2")
    t.type(b"q")
    t.end()
    t = Terminal(f, 80, 24, term="nothing-known")
    t.until(b"cannot be drawn on")
    t.end(1)
    check("not a terminal" in f.halctl("top", status=1), "top without a terminal")
    # The program ends while it is looked at.
    q = f.start("ref?units=16")
    t = Terminal(f, 120, 40, "-p", str(q.pid))
    t.until(b"DEADLINE")
    end(q)
    t.until(b"has ended")
    t.end(1)


def check_several(f, p):
    q = f.start("ref?units=16&clock=real")
    text = f.halctl("top", "-n")
    check(text.count("monitor_program") == 2 and "clock real" in text, text)
    check(len(json.loads(f.halctl("top", "-j"))) == 2, "two programs as JSON")
    said = f.halctl("policy", "show", status=1)
    check("--program" in said and str(p.pid) in said and str(q.pid) in said, said)
    t = Terminal(f, 120, 40)
    # Programs stand in the order of their process numbers, which may have wrapped around.
    first = t.until(b"TAB")
    t.type(b"\t")
    t.until(b"virtual" if b"real" in first else b"real")
    t.type(b"q")
    t.end()
    end(q)


# ---- what is left over, and what is hostile ---------------------------------------------

def check_gone(f):
    p = f.start("ref?units=16", "abandon")
    left = os.path.join(f.path, "%d.0" % p.pid)
    end(p)
    check(os.path.exists(left), "the program has closed its device")
    check("has ended" in f.halctl("top", "-n", "-p", str(p.pid), status=1), "left over")
    check(not os.path.exists(left), "what is left over stays")
    check("no program of this user" in f.halctl("top", "-n", status=1), "nobody runs")
    p = f.start("ref?units=16")
    p.kill()
    p.wait(LONG)
    check("no program of this user" in f.halctl("policy", "show", status=1), "killed")
    # Not a socket, and names that are none of ours.
    for name in ("123.0", "x.0", "12", "12.", "12.0x"):
        with open(os.path.join(f.path, name), "w"):
            pass
    check("no program" in f.halctl("top", "-n", status=1), "a file")
    for name in ("123.0", "x.0", "12", "12.", "12.0x"):
        path = os.path.join(f.path, name)
        if os.path.exists(path):
            os.unlink(path)


class Liar:
    """Answers whatever it is told to."""

    def __init__(self, f, number, answer, hold=False):
        self.path = os.path.join(f.path, "%d.0" % number)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.answer, self.hold = answer, hold
        self.kept = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.hold:
                    self.kept.append(peer)
                    continue
                while peer.recv(4096):
                    pass
                peer.sendall(self.answer)
                peer.close()
            except OSError:
                pass

    def end(self):
        os.unlink(self.path)
        # Closed while the thread is on its way to accept, it would accept for the next liar.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


def frame(**more):
    return dict({"hal_monitor": 1, "rows": 4, "cols": 4, "grid": 1, "now_ns": 1000}, **more)


def check_liars(f):
    part = {"row": 0, "col": 0, "rows": 2, "cols": 2, "units": 4, "name": "p"}
    shown = {
        "nothing but a version": frame(),
        "huge": frame(rows=1e300, cols=1e300, now_ns=1e300, partitions=[dict(part, rows=1e300, units=1e300)]),
        "huge, no grid": frame(grid=0, rows=1e18, cols=1e18, partitions=[part]),
        "negative": frame(rows=-4, cols=-1, now_ns=-1, partitions=[dict(part, row=-5, units=-1)]),
        "nothing by nothing": frame(rows=0, cols=0, grid=0),
        "guests of nobody": frame(partitions=[part], guests=[{"host": 7}, {"host": "0"}, 3]),
        "many guests": frame(partitions=[dict(part, index=3)] * 2, guests=[{"host": 3, "name": "\x1b"}] * 1000),
        "texts for numbers": frame(rows="4", cols=None, pid=[], busy_ns={}, queues=[{"id": "x"}]),
        "numbers for texts": frame(policy=1, program=[1], device=None, partitions=[dict(part, name=7)]),
        "no lists": frame(partitions=3, queues="x", decisions={}),
        "lists of others": frame(partitions=[1, 2], queues=[[]], decisions=["x"]),
        "learned of anything": frame(learned_cut="x", learned=[
            {"program": 1e300, "beside": -1, "units": []}, {"program": 1e18, "kernel": "\x1b" * 99, "ns": 1e300},
            {"program": 1, "beside": 1e18, "longer_permille": 1e300}, {"queue": "3", "work": {}}, {}]),
        "too many": frame(partitions=[part] * 5000, queues=[{"id": 1}] * 5000),
        "many": frame(partitions=[part] * 1000, queues=[{"id": 1, "partition": 9}] * 1000,
                      decisions=[{"text": "y" * 1000}] * 1000),
        "escapes": frame(program="\x1b]0;x\x07\x1b[2J", partitions=[dict(part, name="\x9b31m\u202e")],
                         decisions=[{"text": "\x1b[31mred\r\n"}], lost="\x1b[5m"),
    }
    # Guests are below their host, and their queues are marked.
    liar = Liar(f, 99, json.dumps(frame(
        guests_all=2, partitions=[dict(part, index=4, name="house"), dict(part, index=5, row=2, name="shed")],
        guests=[{"host": 4, "index": 80, "name": "lodger"}, {"host": 5, "index": 81, "name": "cat"}],
        queues=[{"id": 1, "partition": 4}, {"id": 2, "partition": 4, "guest": 80}])).encode())
    lines = f.halctl("top", "-n", "-p", "99").splitlines()
    liar.end()
    shown_of = [i for i, line in enumerate(lines) if re.search(r"[AB]\+? ?(house|lodger|shed|cat)\b", line)]
    check(shown_of == list(range(shown_of[0], shown_of[0] + 4)) and "2 guests, " in lines[1], lines)
    check(re.search(r"A house", lines[shown_of[0]]) and re.search(r"A\+lodger +guest", lines[shown_of[1]]) and
          re.search(r"B shed", lines[shown_of[2]]) and re.search(r"B\+cat", lines[shown_of[3]]), lines)
    check([line[:2] for line in lines if re.match(r"A[ +] +\d+ ", line)] == ["A ", "A+"], lines)
    liar = Liar(f, 98, json.dumps(frame(learned_cut=1, learned=[
        {"program": 1, "beside": 2, "longer_permille": 254, "commands": 40, "sure_permille": 970},
        {"queue": 3, "units": 2, "ns": 1500, "commands": 8, "sure_permille": 1}])).encode())
    text = f.halctl("policy", "show", "-p", "98")
    liar.end()
    check(re.search(r"^  program 1 beside 2 +\+25\.4 % +40 0\.970\n  queue 3 +2 +1\.500 us +8 0\.001\n  and more$",
                    text, re.M), text)
    refused = {
        b"": "answer", b"{": "answer", b"\x00": "answer", b"[]": "not a JSON object", b"{}": "another version",
        b'{"hal_monitor": 2}': "another version", b'{"hal_monitor": "1"}': "another version",
        b'{"error": "no \\u001b[2Jtime"}': "no ?[2Jtime",
        b"[" * 100000: "deep", b'{"a":' * 100000: "deep", b"\xff\xfe": "answer",
        b'{"hal_monitor":1,"a":1,"a":2}': "twice",
        b"{" + b",".join(b'"%d":1' % i for i in range(100000)) + b"}": "more than 4096 members",
        b'{"hal_monitor":1,"x":"' + b"x" * (9 << 20) + b'"}': "the answer is too long",
    }
    for number, (what, answer) in enumerate(shown.items(), 100):
        liar = Liar(f, number, json.dumps(answer).encode())
        for args in (["top", "-n"], ["policy", "show"]):
            text = f.halctl(*args, "-p", str(number))
            check("\x1b" not in text and "\r" not in text and "\x07" not in text and
                  all(c.isprintable() or c == "\n" for c in text), what, repr(text))
        check("another version" not in text, what)
        t = Terminal(f, 100, 30, "-p", str(number))
        t.until(b"q ends")
        t.type(b"q")
        t.end()
        liar.end()
    for number, (answer, why) in enumerate(refused.items(), 300):
        liar = Liar(f, number, answer)
        for args in (["top", "-n"], ["policy", "show"]):
            text = f.halctl(*args, "-p", str(number), status=1)
            check(why in text and "program %d.0" % number in text and "\x1b" not in text,
                  answer[:40], "said", text[:300])
        liar.end()
    mute = Liar(f, 500, b"", hold=True)
    # It hides no other.
    liar = Liar(f, 501, json.dumps(frame()).encode())
    said = f.halctl("top", "-n", status=1)
    check("program 500.0: does not answer" in said and "clock" in said, "mute and another", said)
    said = f.halctl("top", "-nj", status=1)
    check(json.loads(said[:said.index("]\n") + 1]) == [frame()], "mute and another as JSON", said)
    liar.end()
    mute.end()


def check_folders(f):
    with tempfile.TemporaryDirectory(dir="/tmp") as d:  # short: it holds sockets
        g = Folder(os.path.join(d, "none"))
        said = g.halctl("top", "-n", status=1)
        check("no program of this user" in said and "none: No such file" in said, "no folder", said)
        g = Folder(os.path.join(d, "open"))
        os.mkdir(g.path, 0o755)
        os.chmod(g.path, 0o755)
        check("is not private to user" in g.halctl("top", "-n", status=1), "a folder of all")
        # A program that names it has no device, nor has one whose folder is a link.
        for path in g.path, os.path.join(d, "link"):
            if path != g.path:
                os.symlink(d, path)
            g.env["HAL_HAL_MONITOR_DIR"] = path
            check("do not open" in g.halctl("top", "-n", status=1), "no reason", path)
        # Without a name it is below $XDG_RUNTIME_DIR, and made.  If it is not safe, a
        # program runs on unseen.
        del g.env["HAL_HAL_MONITOR_DIR"]
        g.env["XDG_RUNTIME_DIR"] = d
        os.mkdir(os.path.join(d, "accelhal"))
        os.chmod(os.path.join(d, "accelhal"), 0o755)
        p = g.start("ref?units=16")
        said = g.halctl("top", "-n", "-p", str(p.pid), status=1)
        check("hal.monitor is off" in said, "no reason", said)
        end(p)
        os.rmdir(os.path.join(d, "accelhal"))
        p = g.start("ref?units=16")
        check(os.stat(os.path.join(d, "accelhal")).st_mode & 0o777 == 0o700, "mode of the folder")
        path = os.path.join(d, "accelhal", "%d.0" % p.pid)
        check(os.stat(path).st_mode & 0o777 == 0o600, "mode of the socket")
        check("monitor_program" in g.halctl("top", "-n"), "below $XDG_RUNTIME_DIR")
        # Another user can do nothing there.
        if os.geteuid() == 0:
            other = subprocess.run(halctl + ["top", "-n", "-o", "hal.monitor_dir=" + os.path.dirname(path)],
                                   capture_output=True, text=True, env=g.env, user=65534, timeout=LONG)
            check(other.returncode == 1 and "Permission denied" in other.stderr or
                  "not a folder of this user" in other.stderr, "another user", other.stderr)
        end(p)
        check(not os.path.exists(path), "a socket stays")
        # One that is missing, or another user's, is not used.
        for runtime in os.path.join(d, "missing"), "/dev", "/proc/1":
            g.env["XDG_RUNTIME_DIR"] = runtime
            p = g.start("ref?units=16") if runtime != "/dev" or os.geteuid() != 0 else None
            if p:
                check("monitor_program" in g.halctl("top", "-n", "-p", str(p.pid)), runtime)
                end(p)
        # Root looks at programs of other users.
        if os.geteuid() == 0:
            p = g.start("ref?units=16", user=65534)
            check("monitor_program" in g.halctl("top", "-n", "-p", str(p.pid)), "another user's")
            g.halctl("policy", "set", "fifo", "-p", str(p.pid))
            said = g.halctl("top", "-n", "-p", str(p.pid), "-o",
                            "hal.monitor_dir=/tmp/accelhal-65534")
            check("policy fifo" in said, "another user's policy", said)
            end(p)
        for user in os.geteuid(), 65534:
            try:
                os.rmdir("/tmp/accelhal-%d" % user)
            except OSError:
                pass  # never made, or in use
        g.env["XDG_RUNTIME_DIR"] = d
        # To look is not to set.
        g.env["HAL_HAL_MONITOR"] = "read"
        p = g.start("ref?units=16")
        check("hal.monitor = read" in g.halctl("policy", "set", "fifo", status=1), "read")
        end(p)
        g.env["HAL_HAL_MONITOR"] = "off"
        p = g.start("ref?units=16")
        check("no program" in g.halctl("top", "-n", status=1), "off")
        end(p)


def main():
    with tempfile.TemporaryDirectory(dir="/tmp") as d:  # short: it holds sockets
        f = Folder(os.path.join(d, "own"))
        check("no program of this user" in f.halctl("top", "--once", status=1), "nobody yet")
        p = f.start("ref?units=16&rows=4")
        check_once(f, p)
        check_learned(d)
        check_policy(f, p)
        check_terminal(f, p)
        check_several(f, p)
        end(p)
        check_gone(f)
        check_liars(f)
        check_folders(f)
    for line in failures[:40]:
        print(line)
    print("%d failures" % len(failures))
    sys.exit(bool(failures))


main()
