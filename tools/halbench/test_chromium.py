# SPDX-License-Identifier: Apache-2.0
"""test_chromium.py HALBENCH LOADS SCRATCH [PAGE.html]: the page of halbench report in headless
Chromium, by its debugging pipe: what is in it after its scripts, that a click sorts and the
boxes choose, that nothing is complained of or asked of a network, that charts have been
drawn.  PAGE.html: another page, which is looked at only.  Leaves SCRATCH/page.png.

Exit status 77: there is no Chromium.
"""
import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

LONG = 100  # seconds: longer than anything here takes
failures = []


def check(ok, *what):
    if not ok:
        failures.append(" ".join(str(w) for w in what))


class Browser:
    """A page of a headless Chromium."""

    def __init__(self, binary, home):
        asks, self.ask = os.pipe()
        self.answer, answers = os.pipe()
        # It reads from 3 and writes to 4.
        high = [os.dup2(asks, 103), os.dup2(answers, 104)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        options = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
                   "--remote-debugging-pipe", "--user-data-dir=" + home, "--window-size=1280,1600"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # it refuses root otherwise
        self.process = subprocess.Popen([binary, *options, "about:blank"], preexec_fn=place,
                                        pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (asks, answers, *high):
            os.close(fd)
        self.seen, self.count, self.session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def next(self):
        while b"\0" not in self.seen:
            more = os.read(self.answer, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended")
            self.seen += more
        message, self.seen = self.seen.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.ask, json.dumps(message).encode() + b"\0")
        while True:
            got = self.next()
            if got.get("id") == self.count:
                if "error" in got:
                    raise RuntimeError("%s: %s" % (method, got["error"]))
                return got["result"]
            self.events.append(got)

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + path)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.next())

    def run(self, script):
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def click(self, script):
        """On the middle of the element that script gives, as a mouse does."""
        x, y = self.run("(() => { const e = %s; e.scrollIntoView({block: 'center'}); const r = "
                        "e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()" % script)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path, clip=None):
        extra = {"clip": clip, "captureBeyondViewport": True} if clip else {}
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png", **extra)["data"])
        with open(path, "wb") as f:
            f.write(data)
        return data

    def end(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(LONG)


def colours(png):
    """How many different ones an RGB or RGBA picture has."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
        elif kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += 12 + size
    bytes_each = {2: 3, 6: 4}[colour]
    rows, line = zlib.decompress(data), width * bytes_each + 1
    before, found = bytes(line - 1), set()
    for y in range(height):
        kind, row = rows[y * line], bytearray(rows[y * line + 1:(y + 1) * line])
        for i in range(len(row)):
            left = row[i - bytes_each] if i >= bytes_each else 0
            corner = before[i - bytes_each] if i >= bytes_each else 0
            up = before[i]
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + up & 255
            elif kind == 3:
                row[i] = row[i] + (left + up) // 2 & 255
            elif kind == 4:
                p = left + up - corner
                near = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))
                row[i] = row[i] + near[2] & 255
        found.update(bytes(row[i:i + 3]) for i in range(0, len(row), bytes_each))
        before = bytes(row)
    return len(found)


COLUMN = "[...document.querySelector('#policies').tBodies[0].rows].map(r => r.cells[%d].textContent.trim())"
SHOWN = "[...document.querySelector('#policies').tBodies[0].rows].filter(r => r.offsetHeight > 0).length"


def near(shown, values):
    """In this order, and the last digit may be rounded the other way."""
    return len(shown) == len(values) and all(abs(float(s) - v) < 0.101 for s, v in zip(shown, values))


def check_page(b, page, numbers):
    b.open(page)
    rows = [(c, p) for c in numbers["comparisons"] for p in c["policies"]]
    check(b.run("document.title") != "", "no title")
    check(b.run(COLUMN % 2) == [p["policy"] for _, p in rows], "rows:", b.run(COLUMN % 2))
    check(b.run(COLUMN % 4) == ["-" if p["slo"] is None else "%.2f" % (100 * p["slo"]) for _, p in rows],
          "attainment")
    check(numbers["comparisons"][0]["engine"] in b.run("document.body.innerText"), "no engine")
    # a click sorts, the most first, a second one the other way round
    for column, key in ((8, "total_throughput"), (13, "use")):
        digits = (2, 1)[key == "use"]
        scale = (1, 100)[key == "use"]
        values = sorted(float("%.*f" % (digits, p[key] * scale)) for _, p in rows)
        b.click("document.querySelectorAll('#policies th')[%d]" % column)
        check(near(b.run(COLUMN % column), values[::-1]), "sorted down by", key)
        b.click("document.querySelectorAll('#policies th')[%d]" % column)
        check(near(b.run(COLUMN % column), values), "sorted up by", key)
    b.click("document.querySelectorAll('#policies th')[2]")
    check(b.run(COLUMN % 2) == sorted(p["policy"] for _, p in rows), "sorted by name")
    # the boxes choose
    check(b.run(SHOWN) == len(rows), "all rows shown")
    for c, p in (rows[0], rows[-1]):
        for box, value in ((0, c["load"]), (2, p["policy"])):
            b.run("(() => { const s = document.querySelectorAll('select')[%d]; s.value = '%s'; s.onchange() })()"
                  % (box, value))
        want = sum(d["load"] == c["load"] and q["policy"] == p["policy"] for d, q in rows)
        check(b.run(SHOWN) == want, "rows of", c["load"], p["policy"], b.run(SHOWN), want)
    b.run("document.querySelectorAll('select').forEach(s => { s.selectedIndex = 0; s.onchange() })")
    check(b.run(SHOWN) == len(rows), "all rows again")
    # every chart has something in it, within its frame
    loads = {c["load"] for c in numbers["comparisons"]}
    charts = b.run("""[...document.querySelectorAll('svg.chart')].map(s => {
        const all = [...s.querySelectorAll('polyline, path[fill]')].map(e => e.getBBox());
        return [s.getAttribute('aria-label'), all.length, Math.max(0, ...all.map(r => r.width)),
                Math.max(0, ...all.map(r => r.x + r.width)), Math.max(0, ...all.map(r => r.y + r.height)),
                s.viewBox.baseVal.height, s.getBoundingClientRect().width] })""")
    for label, count, wide, right, low, height, width in charts:
        check(count > 0 and wide > 20 and right <= 705 and low <= height and width > 300,
              "chart", label, count, wide, right, low, height, width)
    check(len({c[0] for c in charts}) == 3 and len(charts) >= 3 * len(loads), "charts", len(charts))
    # nothing is complained of, nothing is asked of a network
    for e in b.events:
        check(e["method"] not in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"),
              "console:", json.dumps(e)[:300])
        if e["method"] == "Network.requestWillBeSent":
            check(e["params"]["request"]["url"].startswith("file://"), "asks for",
                  e["params"]["request"]["url"])


def check_picture(b, scratch):
    b.run("window.scrollTo(0, 0)")
    b.picture(os.path.join(scratch, "page.png"))
    x, y, width, height = b.run("(() => { const r = document.querySelector('svg[aria-label=\"units over time\"]')"
                                ".getBoundingClientRect(); return [r.x + scrollX, r.y + scrollY, r.width, r.height] })()")
    png = b.picture(os.path.join(scratch, "chart.png"),
                    {"x": x, "y": y, "width": width, "height": height, "scale": 1})
    check(colours(png) >= 4, "a chart of", colours(png), "colours")


def main():
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        print("no chromium: Debian's package of that name is 80 MB, and not installed by make setup")
        return 77
    halbench, loads, scratch = sys.argv[1].split(), sys.argv[2], os.path.abspath(sys.argv[3])
    os.makedirs(scratch, exist_ok=True)
    page = os.path.join(scratch, "page.html")
    if len(sys.argv) > 4:
        page = os.path.abspath(sys.argv[4])
    else:
        subprocess.run(halbench + ["report", "-w", "0.5", "-p", "fifo,priority,reef,tidal", "-R", "0.5,1",
                                   "-H", page, loads], check=True, timeout=LONG)
    with open(page[:-5] + ".json") as f:
        numbers = json.load(f)
    with tempfile.TemporaryDirectory() as home:
        b = Browser(binary, home)
        try:
            check_page(b, page, numbers)
            check_picture(b, scratch)
        finally:
            b.end()
    for line in failures[:30]:
        print(line)
    print("%d failures" % len(failures))
    return bool(failures)


sys.exit(main())
