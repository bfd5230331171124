# SPDX-License-Identifier: Apache-2.0
"""The execution provider of accelhal, as packages of providers show theirs."""
from accelhal.onnxruntime import get_ep_name, get_library_path

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_ep_names():
    """The names of all providers of the library: one."""
    return [get_ep_name()]
