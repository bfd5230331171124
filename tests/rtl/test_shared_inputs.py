#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_shared_inputs.py RTL_FOLDER: model/shared.vlt names all inputs of its modules, but no clock.

An input that it does not name makes models larger; a clock that it names makes them slower.
"""
import os
import re
import sys

PUBLIC = re.compile(r'^public_flat_rd -module "(\w+)" -var "(\w+)"$', re.M)


def inputs(text, module):
    """Of a module: names that end in _i, from its name to the end of its ports."""
    ports = re.search(rf"^module {module}\b(.*?)^\);", text, re.M | re.S).group(1)
    return {name for name in re.findall(r"\b\w+_i\b", re.sub(r"//.*", "", ports))
            if not name.startswith("clk_")}


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "model", "shared.vlt"), encoding="utf-8") as f:
        listed = PUBLIC.findall(f.read())
    wrong = [] if listed else ["model/shared.vlt names no input"]
    for module in sorted({module for module, _ in listed}):
        named = {name for of, name in listed if of == module}
        with open(os.path.join(folder, module + ".sv"), encoding="utf-8") as f:
            wanted = inputs(f.read(), module)
        wrong += [f"model/shared.vlt: add input {name} of {module}" for name in sorted(wanted - named)]
        wrong += [f"model/shared.vlt: remove {name} of {module}: a clock or no input"
                  for name in sorted(named - wanted)]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
