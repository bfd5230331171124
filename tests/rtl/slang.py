# SPDX-License-Identifier: Apache-2.0
"""slang.py [parameters | assertions | flops] FILE...: reads the RTL by slang, which shares nothing with Verilator.

The files are the sources in order, packages first; tops are npu_top, and npu, the kernel for an FPGA's slot.  Each shape is
elaborated whole; an error is one, and so is a warning of slang's default set.  Their number
is the figure rtl.slang.errors.  What must not pass is tried as well, so that nobody takes a
reader that sees nothing for sources that are right.  So is an index that is a signed number of
fewer bits than an int: 2'(i) of an int i is one (IEEE 1800-2017, 6.24.1), and its half is below 0.
Verilator takes the bits as they are.

parameters: each module refuses what it cannot be built as, and says so; the values beside
those it refuses, it takes.

assertions: how many the sources have, each with a name of its own in its module; they are
npu.assertions.

flops: a flip-flop of the NPU takes what a name holds, or its reset; what it takes is computed
elsewhere, in an always_comb or an assign.  Models of memories (model/) may compute.
"""
import os
import sys
import tempfile

from pyslang import ast, driver, syntax

TOPS = {"npu_top": ("16x16x4x8", "1x1x1x1", "5x7x3x6", "1x32x2x16", "32x1x8x3", "4x4x2x15", "32x32x8x16"),
        "npu": ("4x4x2x4", "1x1x1x1", "32x1x8x16")}

# Not SystemVerilog, and Verilator 5.006 says nothing of the first two.
WRONG = {
    "used before its declaration": "module m; wire a = b; wire b = 1'b0; endmodule",
    "no implicit conversion": "module m; enum logic {A, B} e; assign e = 1'b0; endmodule",
    "redefinition": "module m; logic a; logic a; endmodule",
}

# module: parameter, least, most (None: there is none); what is below 0 an unsigned one cannot be
LIMITS = {
    "npu_core": (("R", 1, 32), ("C", 1, 32), ("S", 1, 8), ("N", 1, 16)),
    "npu_regs": (("R", 1, 32), ("C", 1, 32), ("S", 1, 8), ("N", 1, 16)),
    "npu_modes": (("S", 1, 8), ("N", 1, 16)),
    "npu_shares": (("S", 1, 8), ("N", 1, 16)),
    "npu_map": (("R", 1, 32), ("C", 1, 32), ("S", 1, 8)),
    "npu_array": (("R", 1, 32), ("C", 1, 32), ("S", 1, 8)),
    "npu_arb": (("S", 1, 8),),
    "npu_port": (("S", 1, 8),),
    "npu_ports": (("N", 1, 16), ("S", 1, 8)),
    "npu_return": (("N", 1, 16),),
    "npu_acks": (("N", 1, 16),),
    "npu_axi": (("S", 1, 8),),
    "npu_kernel_mux": (("M", 2, 17),),
    "npu_kernel_port": (("Channel", 0, 15),),
    "npu_kernel_steps": (("R", 1, 32), ("C", 1, 32), ("S", 1, 8), ("N", 1, 16)),
    "npu_memory": (("N", 1, 16), ("S", 1, 8)),
    "npu_dram": (("Channel", 0, 15),),
    "npu_ideal": (("S", 1, 8),),
    "npu_slot": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_feeder": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_gather": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_runs": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_spread": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_results": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_intake": (("C", 1, 32),),
    "npu_conv_tags": (("R", 1, 32), ("C", 1, 32)),
    "npu_conv_load": (("R", 1, 32),),
    "npu_conv_acc": (("C", 1, 32),),
    "npu_conv_align": (("C", 1, 32),),
    "npu_conv_cols": (("C", 1, 32),),
    "npu_conv_finish": (("C", 1, 32),),
    "npu_conv_out": (("C", 1, 32),),
    "npu_conv_params": (("C", 1, 32),),
    "npu_sums": (("C", 1, 32),),
    "npu_vec_scale": (("Lanes", 1, 32),),
    "npu_ram_1r1w": (("Width", 1, None), ("Depth", 1, None)),
    "npu_ram_1r1w_be": (("Depth", 1, None),),
}

# module: parameter, values that it takes, values that it refuses, how
OTHERS = {
    "npu_ram_1r1w_be": (("Width", (8, 16), (-8, 0, 4, 12), "not a multiple of 8"),),
}


SIGNED = ("module m (input logic [3:0] x, output logic y);\n"
          "always_comb begin y = 0; for (int i = 0; i < 4; i++) if (x[%s]) y = 1; end endmodule")


def signed_indices(d):
    """Where an array's or vector's index is a signed number narrower than an int."""
    found = set()

    def index(e):
        while e.kind == ast.ExpressionKind.Conversion and e.isImplicit:
            e = e.operand
        if e.type.isIntegral and e.type.isSigned and e.type.bitWidth < 32:
            at = e.sourceRange.start
            found.add(f"{d.sourceManager.getFileName(at)}:{d.sourceManager.getLineNumber(at)}: "
                      "error: a signed index of fewer bits than an int")

    def visit(node):
        kind = getattr(node, "kind", None)
        if kind == ast.ExpressionKind.ElementSelect:
            index(node.selector)
        elif kind == ast.ExpressionKind.RangeSelect:
            index(node.left)
    d.createCompilation().getRoot().visit(visit)
    return found


def computing_flops(d):
    """Where an always_ff assigns what it computes."""
    kinds = ast.ExpressionKind
    found = set()

    def is_reset(e):
        return e.kind == kinds.NamedValue and e.symbol.name == "rst_ni"

    def held(e):
        if e.kind == kinds.NamedValue or fixed(e):
            return True
        if e.kind == kinds.Conversion:
            return held(e.operand)
        if e.kind == kinds.MemberAccess:
            return held(e.value)
        if e.kind == kinds.ElementSelect:
            return held(e.value) and place(e.selector)
        if e.kind == kinds.RangeSelect:
            return held(e.value) and place(e.left) and place(e.right)
        if e.kind == kinds.Concatenation:
            return all(held(o) for o in e.operands)
        if e.kind == kinds.Replication:
            return held(e.concat)
        if e.kind in (kinds.SimpleAssignmentPattern, kinds.StructuredAssignmentPattern):
            return all(held(o) for o in e.elements)
        if e.kind == kinds.ConditionalOp:
            return len(e.conditions) == 1 and is_reset(e.conditions[0].expr) and held(e.left) and held(e.right)
        if e.kind == kinds.BinaryOp:
            return e.op == ast.BinaryOperator.LogicalAnd and is_reset(e.left) and held(e.right)
        return False

    def fixed(e):
        """Parameters and numbers, whatever is done to them."""
        names = []
        e.visit(lambda n: names.append(n.symbol.kind) if getattr(n, "kind", None) == kinds.NamedValue else None)
        return all(k in (ast.SymbolKind.Parameter, ast.SymbolKind.EnumValue) for k in names)

    def place(e):
        """A name, or what a loop's variable makes."""
        if e.kind == kinds.Conversion:
            return place(e.operand)
        if e.kind == kinds.BinaryOp and str(e.type) == "int":
            return place(e.left) and place(e.right)
        return held(e)

    def assigned(node):
        if getattr(node, "kind", None) == kinds.Assignment and node.isNonBlocking and not held(node.right):
            at = node.sourceRange.start
            file = d.sourceManager.getFileName(at)
            if "/model/" not in file:
                found.add(f"{file}:{d.sourceManager.getLineNumber(at)}: error: a flip-flop that computes what it takes")

    def block(node):
        if (getattr(node, "kind", None) == ast.SymbolKind.ProceduralBlock
                and node.procedureKind == ast.ProceduralBlockKind.AlwaysFF):
            node.body.visit(assigned)
    d.createCompilation().getRoot().visit(block)
    return found


def read(files, options, look=None):
    """Number of errors and what slang said, and look, if any, found."""
    found = set()
    said = tempfile.TemporaryFile()
    kept = os.dup(1), os.dup(2)
    sys.stdout.flush()
    os.dup2(said.fileno(), 1)
    os.dup2(said.fileno(), 2)
    try:
        d = driver.Driver()
        d.addStandardArgs()
        line = " ".join(["slang", "--color-diagnostics=false", "-Werror", "--error-limit=0",
                         *options, *files])
        taken = (d.parseCommandLine(line, driver.CommandLineOptions()) and d.processOptions())
        if taken:
            d.parseAllSources()
            d.runFullCompilation(True)
        errors = d.diagEngine.numErrors
        if taken and look and not errors:
            found = look(d)
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
    said.seek(0)
    text = said.read().decode()
    if not taken:
        sys.exit(f"slang.py: slang does not take: {line}\n{text}")
    return errors + len(found), text + "".join(f"{line}\n" for line in sorted(found))


def read_text(source, look=None):
    """The same of a module m that is in no file."""
    with tempfile.NamedTemporaryFile("w", suffix=".sv") as f:
        f.write(source + "\n")
        f.flush()
        return read([f.name], ["--top", "m"], look)


def check_reader():
    """Does it see anything at all?"""
    for word, source in WRONG.items():
        errors, text = read_text(source)
        if errors == 0 or word not in text:
            sys.exit(f"slang.py: slang says nothing of: {source}\n{text}")
    for at, wrong in (("2'(i)", 1), ("2'(i) +: 1", 1), ("2'(unsigned'(i))", 0), ("i", 0)):
        errors, text = read_text(SIGNED % at, signed_indices)
        if errors != wrong:
            sys.exit(f"slang.py: {errors} errors in x[{at}]\n{text}")


def check_shapes(files):
    errors = 0
    for top, shape in [(top, shape) for top in TOPS for shape in TOPS[top]]:
        sizes = [f"-G {k}={v}" for k, v in zip("RCSN", shape.split("x"))]
        found, text = read(files, ["--top", top, *sizes], signed_indices)
        if found:
            print(text)
        print(f"{top} {shape}: {found} errors in {len(files)} files")
        errors += found
    print(f"figure rtl.slang.errors {errors}")
    return errors


def check_parameters(files):
    tries = []  # module, parameter, value, whether it is taken, else how not
    for module, limits in LIMITS.items():
        for name, least, most in limits:
            how = f"not {least} or more" if most is None else f"not {least}..{most}"
            values = {least - 1, least, *([least + 1] if most is None else [most, most + 1])}
            for value in sorted(v for v in values if v >= 0):
                taken = least <= value and (most is None or value <= most)
                tries.append((module, name, value, taken, how))
    for module, rows in OTHERS.items():
        for name, right, wrong, how in rows:
            tries += [(module, name, value, value in right, how) for value in right + wrong]
    failed = 0
    for module, name, value, taken, how in tries:
        found, text = read(files, ["--top", module, f"-G {name}={value}"])
        if found if taken else f"{module}: {name} is {value}, {how}" not in text:
            print(f"{module} with {name} = {value}: {found} errors\n{text}")
            failed += 1
    print(f"{len(tries)} values of parameters, {failed} of them taken or refused wrongly")
    return failed


def check_assertions(files):
    total = unnamed = 0
    for file in files:
        names = []

        def visit(node, names=names):
            if getattr(node, "kind", None) == syntax.SyntaxKind.AssertPropertyStatement:
                names.append(node.label.name.valueText if node.label else "")
        syntax.SyntaxTree.fromFile(file).root.visit(visit)
        if names:
            print(f"{os.path.basename(file)}: {' '.join(names)}")
        for name in set(names):
            if not name or names.count(name) > 1:
                print(f"{file}: {names.count(name)} assertions named '{name}'")
                unnamed += 1
        total += len(names)
    print(f"figure npu.assertions {total}")
    return unnamed


FLOP = ("module m (input logic clk_i, rst_ni, x, output logic [1:0] q);\n"
        "always_ff @(posedge clk_i) if (rst_ni) q <= %s; endmodule")


def check_flops(files):
    for value, wrong in (("{q[0], x}", 0), ("rst_ni ? {2{x}} : '0", 0), ("2'd1", 0),
                         ("q + 2'd1", 1), ("x ? q : '0", 1), ("{q[0], ~x}", 1), ("q[x ^ q[0] +: 1]", 1)):
        errors, text = read_text(FLOP % value, computing_flops)
        if errors != wrong:
            sys.exit(f"slang.py: {errors} errors in q <= {value}\n{text}")
    errors = 0
    for top in TOPS:
        found, text = read(files, ["--top", top, "-G R=4", "-G C=4", "-G S=2", "-G N=4"], computing_flops)
        print(f"{text}{top}: {found} flip-flops compute what they take")
        errors += found
    return errors


def main():
    checks = {"parameters": check_parameters, "assertions": check_assertions, "flops": check_flops}
    check = checks.get(sys.argv[1] if len(sys.argv) > 1 else "")
    files = sys.argv[2 if check else 1:]
    if not files:
        sys.exit(__doc__)
    check_reader()
    sys.exit(1 if (check or check_shapes)(files) else 0)


if __name__ == "__main__":
    main()
