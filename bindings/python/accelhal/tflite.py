# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite on the NPU: the delegate for an unmodified interpreter.

    from ai_edge_litert.interpreter import Interpreter
    from accelhal.tflite import load_delegate

    interpreter = Interpreter("model.tflite", experimental_delegates=[load_delegate("npu:0")])

Any model is accepted: what the NPU cannot compute stays on the CPU, and one line on standard
error says what and why.  docs/tflite.md has the options.
"""
import ctypes
import importlib
import os
import sys

NAME = "libaccelhal_tflite.so"

# Modules with a load_delegate(library, options) of their own, as they are looked for.
_RUNTIMES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter",
             "tensorflow.lite.python.interpreter")


def library():
    """Where the delegate's library is: $ACCELHAL_TFLITE_LIBRARY, else beside libaccelhal, else
    as the loader finds it; ImportError when it is nowhere."""
    named = os.environ.get("ACCELHAL_TFLITE_LIBRARY")
    if named:
        try:
            getattr(ctypes.CDLL(named), "tflite_plugin_create_delegate")
        except (OSError, AttributeError) as problem:
            raise ImportError(f"ACCELHAL_TFLITE_LIBRARY is {named}: {problem}") from None
        return named
    tried = []
    for path in (_beside(), NAME):
        if path is None:
            continue
        try:
            ctypes.CDLL(path)
            return path
        except OSError as problem:
            tried.append(str(problem))
    raise ImportError(f"{NAME} is not found: {'; '.join(tried)}. Install the library, or say "
                      f"where it is: ACCELHAL_TFLITE_LIBRARY=/path/{NAME}, or LD_LIBRARY_PATH")


def _beside():
    """The library in the folder of the libaccelhal in use; None: the loader found that."""
    from ._library import lib
    folder = os.path.dirname(lib._name)
    return os.path.join(folder, NAME) if folder else None


def _runtime():
    """The runtime that the program has imported, else the first that is installed."""
    for name in _RUNTIMES:
        if name in sys.modules:
            return sys.modules[name]
    for name in _RUNTIMES:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    raise ImportError("no TensorFlow Lite is installed: pip install ai-edge-litert")


def load_delegate(target=None, **options):
    """A delegate for Interpreter(experimental_delegates=[...]).

    target: as of accelhal.open(); None: what the configuration selects, else npu:0.
    options: units=128, strict=1, log=1 ... as docs/tflite.md lists them; class_ stands for
    class.  ValueError: an option is wrong, or the device cannot be opened; the text says why.
    ImportError: there is no such library, or no runtime.
    """
    given = {key.rstrip("_"): value for key, value in options.items()}
    if target is not None:
        given["target"] = target
    return _runtime().load_delegate(library(), given)
