# SPDX-License-Identifier: Apache-2.0
"""test_mutants.py SCRIPT: the errors that scripts/mutants finds in a piece of C and of
SystemVerilog, that a seed decides which are taken, how survivors are explained, and how the
quick tier is measured by them."""
import importlib.machinery
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

SCRIPT = sys.argv.pop(1)
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutants", SCRIPT)
mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
loader.exec_module(mutants)

C = """
#include <x.h> /* 1 < 2 */
#define LIMIT 65535u
static int f(const int *p, int n)
{
	int *q = &v, sum = a * b;

	if (n < LIMIT && *p != 3)
		g(p,
		  n);
	x = atomic_load_explicit(&n, memory_order_acquire) + 1;
	return "a < b"[n] == '<' ? -1 : true;
}
"""
SV = """
  logic [7:0] a_q;  // 3 <= 4
  always_ff @(posedge clk_i) begin
    if (v_i && a_q <= 8'd9) a_q <= b_i + 8'd255;
    else a_q <= '0;
  end
"""


def changes(make, source):
    return {(m.old_line, m.new_line) for m in make("x", source)}


class Planner(unittest.TestCase):
    def test_c(self):
        got = {new for _, new in changes(mutants.c_mutants, C)}
        for line in (
            "#define LIMIT 65536u",
            "if (n <= LIMIT && *p != 3)",
            "if (n < LIMIT || *p != 3)",
            "if (n < LIMIT && *p == 3)",
            "if (n < LIMIT && *p != 2)",
            "if (!(n < LIMIT && *p != 3))",
            "x = atomic_load_explicit(&n, memory_order_acquire) - 1;",
            "return 0;",
        ):
            self.assertIn(line, got)
        dropped = [m for m in mutants.c_mutants("x", C) if m.kind == "statement dropped"]
        self.assertEqual(sorted(m.old_line for m in dropped), [
            "g(p, n);", "x = atomic_load_explicit(&n, memory_order_acquire) + 1;"])
        for m in mutants.c_mutants("x", C):
            text = m.apply(C)
            self.assertEqual(text.count("\n"), C.count("\n"))  # lines keep their numbers
            for whole in ("memory_order_acquire", "/* 1 < 2 */", "*q = &v", "a * b"):
                self.assertIn(whole, text + "memory_order_acquire" * (m.kind == "statement dropped"))

    def test_sv(self):
        got = {new for _, new in changes(mutants.sv_mutants, SV)}
        for line in (
            "if (v_i && a_q < 8'd9) a_q <= b_i + 8'd255;",
            "if (v_i && a_q <= 8'd10) a_q <= b_i + 8'd255;",
            "if (v_i && a_q <= 8'd9) a_q <= b_i + 8'd0;",
            "if (v_i && a_q <= 8'd9) a_q <= b_i - 8'd255;",
            "else a_q <= '1;",
            "else ;",
        ):
            self.assertIn(line, got)
        self.assertNotIn("else a_q < '0;", got)
        self.assertFalse(any("logic [" in new and "[7:0]" not in new for new in got))

    def test_seed(self):
        def order(seed):
            made = list(mutants.c_mutants("x", C))
            return [m.key() for m in mutants.in_turn(made, random.Random(seed))]

        self.assertEqual(order(1), order(1))
        self.assertNotEqual(order(1), order(2))

    def test_list(self):
        command = [sys.executable, "-B", SCRIPT, "--list", "--seed", "5", "--count", "30", "--only", "npu-rtl/*"]
        a, b = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
        self.assertEqual(a, b)
        self.assertEqual(sum(line.startswith("npu-rtl/") for line in a.split("\n")), 30)

    def test_tiers(self):
        """Each prefix has the proportions of the whole, and what does not count is made up for."""
        files = {folder: "%s/x.c" % folder.split()[0] for folder in mutants.QUOTAS}
        chosen = [m for path in files.values() for m in mutants.c_mutants(path, C * 20)]
        groups = mutants.groups_of(chosen, 30, 1, True)
        self.assertEqual([g.quota for g in groups], [12, 8, 4, 6])
        taken = [mutants.next_group(groups).take().path for _ in range(15)]
        self.assertEqual([taken.count(path) for path in files.values()], [6, 4, 2, 3])
        taken = 0
        groups = mutants.groups_of(chosen, 30, 1, True)
        while (group := mutants.next_group(groups)) is not None:
            group.take()
            group.open -= 1
            group.counted += taken % 3 > 0  # the rest are equivalent
            taken += 1
        self.assertEqual([g.counted for g in groups], [12, 8, 4, 6])
        self.assertTrue(taken > 30 and all(g.complete() for g in groups))

    def test_tests_of_tiers(self):
        def of(part, tier):
            parts = {p.name: p for p in mutants.parts_of(["cuda"], mutants.TIER_SHAPE)}
            return [t.name for t in tests if parts[part].tests(t, tier)]

        def test(name, labels, *words):
            return mutants.Test({"name": name, "command": ["x", *words],
                                 "properties": [{"name": "LABELS", "value": labels.split()}]})

        tests = [
            test("test_core_place", "unit"), test("sim.random.full", "sim full"), test("sim.long", "sim long"),
            test("tflite.ops.golden", "conformance"), test("tflite.ops.golden.full", "conformance full"),
            test("test_npuc_model", "negative"), test("rtl.kill", "rtl", mutants.TIER_SHAPE),
            test("rtl.kill.full", "rtl full"), test("rtl.stop.asserted.full", "rtl full", mutants.TIER_SHAPE),
            test("rtl.map", "rtl"), test("rtl.fast.random", "rtl", "5x7x3x6"),
        ]  # fmt: skip
        self.assertEqual(of("core", "quick"), ["test_core_place"])
        self.assertEqual(of("core", "full"), ["sim.random.full"])
        self.assertEqual(of("npuc", "quick"), ["tflite.ops.golden", "test_npuc_model"])
        self.assertEqual(of("npuc", "full"), ["tflite.ops.golden.full"])
        self.assertEqual(of("rtl", "quick"), ["rtl.kill", "rtl.map"])
        self.assertEqual(of("rtl", "full"), ["rtl.stop.asserted.full"])

    def test_resume(self):
        """A run goes on with what one of the same seed and sources has found."""
        made = list(mutants.c_mutants("core/x.c", C))[:4]
        for m, (result, tier) in zip(made, (
            ("noticed", "quick"), ("noticed", "full"), ("survived", None), ("does not compile", None))):
            m.result, m.tier, m.test = result, tier, "a test"
        self.assertEqual(mutants.tiers_summary(made), {
            "check.mutants.planted": 3, "check.mutants.quick": 1, "check.mutants.full_only": 1,
            "check.mutants.neither": 1, "check.noticed_of_full": 0.5})
        self.assertEqual(sum("ONLY FULL" in line for line in mutants.table(made)), 1)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(mutants.json.dumps({"seed": 1, "sources": "a", "mutants": [m.as_dict() for m in made]}))
            f.flush()
            same = mutants.earlier_results(f.name, 1, "a")
            self.assertEqual(list(same), [mutants.identity(m.as_dict()) for m in made])
            self.assertEqual(mutants.earlier_results(f.name, 2, "a"), {})
            self.assertEqual(mutants.earlier_results(f.name, 1, "b"), {})
            # --again: only the quick tier's stay.
            self.assertEqual([d["result"] for d in mutants.earlier_results(f.name, 1, None).values()],
                             ["noticed", "does not compile"])
            new = list(mutants.c_mutants("core/x.c", C))[1]
            new.remember(same[mutants.identity(new.as_dict())])
            self.assertEqual((new.result, new.tier), ("noticed", "full"))
        self.assertEqual(mutants.sources_hash({"docs/a.md": b"1", "core/x.c": b"2"}),
                         mutants.sources_hash({"docs/a.md": b"3", "core/x.c": b"2"}))
        self.assertNotEqual(mutants.sources_hash({"tests/x.c": b"1"}), mutants.sources_hash({"tests/x.c": b"2"}))

    def test_explained(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write("# head\n\nx\n- if (n < LIMIT * 3)\n+ if (n <= LIMIT*\nwhy\nand why\n\nx\n- g(p, n);\nr\n")
            f.write("\nx\n  n);\n- x = *\nr\n\nx\n  g(p,\n- x = *\nr\n")
            f.flush()
            one, two, three, four = mutants.read_explained(f.name)
        self.assertEqual(one.reason, "why and why")
        made = list(mutants.c_mutants("x", C))
        self.assertEqual([m.new_line for m in made if one.fits(m)], ["if (n <= LIMIT && *p != 3)"])
        self.assertTrue(all(m.old_line == "g(p, n);" for m in made if two.fits(m)))
        self.assertTrue(any(two.fits(m) for m in made))
        self.assertTrue(any(three.fits(m) for m in made))
        self.assertFalse(any(four.fits(m) for m in made))

    def test_stop(self):
        """A signal ends what runs, with its children, and what was written stays whole."""
        with tempfile.TemporaryDirectory() as folder:
            ready = os.path.join(folder, "ready")
            os.mkfifo(ready)

            def stop():
                with open(ready, encoding="utf-8") as f:
                    f.read()  # until the program runs
                mutants.STOP.set()

            thread = threading.Thread(target=stop)
            thread.start()
            try:
                with self.assertRaises(mutants.Stopped):
                    mutants.run(["sh", "-c", "echo x >ready; exec cat /dev/zero >/dev/null"], folder, 3600)
                thread.join()
            finally:
                mutants.STOP.clear()
            path = os.path.join(folder, "a.json")
            mutants.write_whole(path, "one")
            with mock.patch.object(os, "replace", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    mutants.write_whole(path, "two")
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read(), "one")


if __name__ == "__main__":
    unittest.main()
