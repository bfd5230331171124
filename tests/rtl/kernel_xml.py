# SPDX-License-Identifier: Apache-2.0
"""kernel_xml.py NPU_RTL: holds fpga/kernel.xml against the RTL, the C header and package.tcl.

Arguments, their order, registers and sizes; ports, their widths and ranges; the interrupt;
the name.  Then the same with errors planted in the XML, each of which has to be found.
"""
import os
import re
import sys
import xml.etree.ElementTree as tree

NUMBER = {"memory": ("1", "m_axi_gmem"), "steps": ("1", "m_axi_gmem"),
          "bytes": ("0", "s_axi_control"), "count": ("0", "s_axi_control")}


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


def width(top, pin):
    """Bits of a pin of the top module; None: it has none of that name."""
    found = re.search(rf"logic\s*(?:\[(\d+):0\])?\s*{pin}\b", top)
    return found and int(found.group(1) or 0) + 1


def differences(xml, sources):
    """What of the XML is not so, in words."""
    pkg, top, header, script = sources
    kernel = tree.fromstring(xml).find("kernel")
    said = []

    def same(what, is_, has_to):
        if is_ != has_to:
            said.append(f"{what}: {is_}, not {has_to}")

    # Arguments: the package's offsets and widths, the header's order and offsets.
    offsets = {name.lower(): int(value, 16)
               for name, value in re.findall(r"Arg(\w+) = 12'h(\w+)", pkg)}
    struct = re.search(r"typedef struct packed \{([^}]*)\} args_t", pkg).group(1)
    bits = {name: int(high) + 1 for high, name in re.findall(r"logic \[(\d+):0\] (\w+);", struct)}
    order = re.search(r"npu\((.*)\)", header).group(1).split(", ")
    args = kernel.findall("args/arg")
    same("arguments", [a.get("name") for a in args], order)
    same("the package's arguments", sorted(offsets), sorted(order))
    for i, arg in enumerate(args):
        name = arg.get("name")
        same(f"id of {name}", arg.get("id"), str(i))
        same(f"offset of {name}", int(arg.get("offset"), 16), offsets.get(name))
        same(f"size of {name}", int(arg.get("size"), 16) * 8, bits.get(name))
        same(f"host size of {name}", arg.get("hostSize"), arg.get("size"))
        same(f"kind and port of {name}", (arg.get("addressQualifier"), arg.get("port")),
             NUMBER.get(name))
        found = re.search(rf"NPU_KERNEL_{name.upper()}\s+0x(\w+)u", header)
        same(f"offset of {name} in C", found and int(found.group(1), 16), offsets.get(name))

    # Ports: those that the top module's pins are of, and their widths.
    ports = {p.get("name"): p for p in kernel.findall("ports/port")}
    same("ports", sorted(ports), sorted(set(re.findall(r"\b([sm]_axi_[a-z]+)_[a-z]+\b", top))))
    for name, port in ports.items():
        manager = name.startswith("m_")
        same(f"mode of {name}", port.get("mode"), "master" if manager else "slave")
        same(f"width of {name}", int(port.get("dataWidth")), width(top, f"{name}_rdata"))
        same(f"address of {name}", int(port.get("range"), 16).bit_length(),
             (width(top, f"{name}_awaddr") or 0) + (0 if manager else 1))
    same("interrupt", kernel.get("interrupt"),
         "true" if width(top, "interrupt") == 1 else "false")
    for pin in ("ap_clk", "ap_rst_n"):
        same(pin, width(top, pin), 1)

    # Names.
    vlnv = re.search(r"set vlnv \[list (.*)\]", script).group(1)
    same("vlnv", kernel.get("vlnv"), vlnv.replace(" ", ":"))
    same("name", kernel.get("name"), re.search(r"-kernel_name (\w+)", script).group(1))
    same("module", re.search(r"^module (\w+)", top, re.M).group(1), kernel.get("name"))
    same("protocol", kernel.get("hwControlProtocol"),
         re.search(r"ctrl_protocol (\w+)", script).group(1))
    return said


PLANTED = (('offset="0x1c"', 'offset="0x18"'), ('size="0x4"', 'size="0x8"'),
           ('name="bytes"', 'name="length"'), ('dataWidth="128"', 'dataWidth="512"'),
           ('range="0x1000"', 'range="0x10000"'), ('id="3"', 'id="2"'),
           ('interrupt="true"', 'interrupt="false"'), ('port="m_axi_gmem"', 'port="m_axi_b"'),
           ('hal:kernel:npu:1.0', 'hal:kernel:npu:1.1'), ('ap_ctrl_hs', 'ap_ctrl_chain'))


def main():
    folder = sys.argv[1]
    xml = read(folder, "fpga/kernel.xml")
    sources = [read(folder, name) for name in
               ("fpga/npu_kernel_pkg.sv", "fpga/npu.sv", "npu_kernel.h", "fpga/package.tcl")]
    said = differences(xml, sources)
    print("\n".join(said) or "kernel.xml is as the RTL")
    missed = [new for old, new in PLANTED
              if old not in xml or not differences(xml.replace(old, new, 1), sources)]
    print(f"{len(PLANTED) - len(missed)} of {len(PLANTED)} planted errors found", *missed)
    return bool(said or missed)


if __name__ == "__main__":
    sys.exit(main())
