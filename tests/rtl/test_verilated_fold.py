#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_verilated_fold.py VERILATED_FOLD: what it may leave out, and what it must not."""
import os
import re
import subprocess
import sys
import tempfile

FAILED = 0
PAD = "".join(f"    vlSelf->__PVT__pad{i} = {i}U;\n" for i in range(20))  # no small functions


def name(instance, number=0, module="Vx_m"):
    return f"{module}___nba_sequent__TOP__top__DOT__u_{instance}__{number}"


def function(instance, body, number=0, module="Vx_m"):
    head = name(instance, number, module)
    return (f"VL_INLINE_OPT void {head}({module}* vlSelf) {{\n"
            f'    VL_DEBUG_IF(VL_DBG_MSGF("+ {head}\\n"); );\n    // Body\n' + PAD + body + "}\n")


def fold(text, header="", name="Vx.cpp"):
    """What becomes of it: the text, and which function stands for which."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(folder, "Vx_m.h"), "w", encoding="utf-8") as f:
            f.write(header)
        subprocess.run([sys.executable, "-B", sys.argv[1], folder, "Vx"], check=True)
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
    calls = dict(re.findall(r"void (\w+)\(\w+\* vlSelf\) \{\n    (\w+)\(vlSelf\);\n\}", text))
    return text, calls


def check(what, is_so):
    global FAILED
    if not is_so:
        print(f"not so: {what}")
        FAILED += 1


def main():
    a, b, c = name("a"), name("b"), name("c")

    def pair(one, other, header=""):
        return fold("#include \"x\"\n" + function("a", one) + function("b", other), header)

    add = "    CData/*0:0*/ __Vtemp_%d;\n    __Vtemp_%d = vlSelf->x;\n    vlSelf->y = __Vtemp_%d;\n"
    text, calls = pair(add % (1, 1, 1), add % (7, 7, 7))
    check("temporaries of other names are the same", calls == {b: a})
    check("all else stays", text.startswith("#include \"x\"\n" + function("a", add % (1, 1, 1))))
    for what, other in (("other constant", "    vlSelf->y = vlSelf->x + 2U;\n"),
                        ("other member", "    vlSelf->y = vlSelf->z + 1U;\n"),
                        ("another's object", "    vlSelf->y = vlSymsp->TOP.x + 1U;\n"),
                        ("more", "    vlSelf->y = vlSelf->x + 1U;\n    vlSelf->z = 0U;\n")):
        check(what + " is not the same", not pair("    vlSelf->y = vlSelf->x + 1U;\n", other)[1])
    two = "    vlSelf->y = __Vtemp_%d;\n    vlSelf->z = __Vtemp_%d;\n"
    check("two temporaries are not one", not pair(two % (1, 1), two % (1, 2))[1])
    check("of one module", not fold(function("a", add % (1, 1, 1)) +
                                    function("b", add % (1, 1, 1), module="Vx_n"))[1])

    # One's own in a, a member in b: b's must be stored, and so must that of who is the same as b.
    own = "    CData/*7:0*/ __PVT__t;\n    __PVT__t = 0;\n    __PVT__t = vlSelf->x;\n    vlSelf->y = __PVT__t;\n"
    member = "    vlSelf->__PVT__t = vlSelf->x;\n    vlSelf->y = vlSelf->__PVT__t;\n"
    check("a member is stored", pair(own, member)[1] == {a: b})
    check("by all", fold(function("a", own) + function("b", member) + function("c", own))[1] == {a: b, c: b})
    twice = own.replace("__PVT__t", "__PVT__s") + member
    check("one of two is stored by each", not pair(twice, member.replace("__PVT__t", "__PVT__s") + own)[1])

    scratch = "    vlSelf->__Vfunc_f__%d__v = vlSelf->x;\n    vlSelf->y = vlSelf->__Vfunc_f__%d__v;\n"
    text, calls = pair(scratch % (3, 3), scratch % (8, 8))
    check("scratch of other numbers is the same", calls == {b: a} and "__8__" not in text)
    more = function("b", "    vlSelf->w = vlSelf->__Vfunc_f__8__v;\n", 1)
    text, calls = fold(function("a", scratch % (3, 3)) + function("b", scratch % (8, 8)) + more)
    check("... by all functions of the instance", calls == {b: a} and "__8__" not in text)
    other = function("top", "    vlSelf->w = vlSymsp->TOP__b.__Vfunc_f__8__v;\n", 0, "Vx___024root")
    check("... but where another looks", not fold(function("a", scratch % (3, 3)) +
                                                  function("b", scratch % (8, 8)) + other)[1])
    check("scratch of another order is not the same",
          not pair(scratch % (3, 4) + scratch % (4, 3), scratch % (8, 8) + scratch % (9, 9))[1])

    text, _ = pair(scratch % (3, 3), (scratch % (8, 8)).replace("func_f", "func_g"))
    check("scratch of another function keeps its number", "func_g__8__v" in text)

    says = '    if (vlSelf->x) { VL_WRITEF("[%%0t] Assertion failed in %%Ntop.u_%s.u_in: A\\n",64,VL_TIME(1),-9,vlSymsp->name()); }\n'
    text, calls = pair(says % "a", says % "b")
    check("messages name the instance", calls == {b: a} and '%Nu_in: A' in text and "vlSelf->name()" in text)
    kept = "    vlSelf->y = vlSelf->__Vsampled__TOP__top__DOT__u_%s____PVT__v;\n"
    header = "".join(f"CData __Vsampled__TOP__top__DOT__u_{i}____PVT__v;\n" for i in "ab")
    put = function("top", "    vlSymsp->TOP__b.__Vsampled__TOP__top__DOT__u_b____PVT__v = 1U;\n", 0, "Vx___024root")
    both = function("a", kept % "a") + function("b", kept % "b") + put
    text, calls = fold(both, header)
    check("sampled variables are the instance's", calls == {b: a} and "u_b____PVT" not in text)
    check("... if it has them", not fold(both, header.splitlines()[1])[1])
    unread = "void Vx_m::nba() {\n    __Vsampled__TOP__top__DOT__u_a____PVT__v = 1U;\n}\n"
    check("what cannot be read stays", fold(unread, header) == (unread, {}))
    unended = function("a", "")[:-2]
    check("what does not end stays", fold(unended) == (unended, {}))
    made = '    , TOP__top__DOT__u_a{this, %s}\n'
    check("names are strings", fold(made % 'Verilated::catName(namep, "top.u_a")', name="Vx__Syms.cpp")[0] ==
          made % '(std::string{namep} + ".top.u_a").c_str()')
    sys.exit(FAILED != 0)


if __name__ == "__main__":
    main()
