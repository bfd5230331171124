# SPDX-License-Identifier: Apache-2.0
"""The extension accelhal._fast, which the package does without where it cannot be built.

ACCELHAL_EXTENSION=no leaves it out: the wheel is then one for every Python and machine.
"""
import os
import sys
import sysconfig

from setuptools import Extension, setup

SOURCES = ["fast/module.c", "fast/submit.c", "fast/wait.c", "fast/commands.c"]
ABI = (3, 11)  # the stable ABI of that version, which later ones have, too


def wanted():
    """Whether to try: a Python with the stable ABI, and its headers."""
    return (os.environ.get("ACCELHAL_EXTENSION") != "no"
            and sys.implementation.name == "cpython" and sys.version_info >= ABI
            and not sysconfig.get_config_var("Py_GIL_DISABLED")
            and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))


if wanted():
    setup(ext_modules=[Extension(
        "accelhal._fast", SOURCES, depends=["fast/fast.h", "hal/hal.h"], include_dirs=["."],
        define_macros=[("Py_LIMITED_API", f"0x{ABI[0]:02x}{ABI[1]:02x}0000")],
        extra_compile_args=["-std=c11", "-O2"], py_limited_api=True, optional=True)],
        options={"bdist_wheel": {"py_limited_api": f"cp{ABI[0]}{ABI[1]}"}})
else:
    setup()
