# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on the NPU: registers the execution provider.

    import onnxruntime
    from accelhal.onnxruntime import session_options

    session = onnxruntime.InferenceSession("model.onnx", session_options("npu:0"))

Any model is accepted: what the NPU cannot compute stays on the CPU, and one line of the runtime's
log says what and why.  docs/onnxruntime.md has the options.
"""
import ctypes
import os

NAME = "libaccelhal_onnxruntime.so"
PROVIDER = "AccelHalExecutionProvider"
_REGISTERED = "accelhal"


def get_library_path():
    """Where the provider's library is: $ACCELHAL_ONNXRUNTIME_LIBRARY, else beside libaccelhal,
    else as the loader finds it; ImportError when it is nowhere."""
    named = os.environ.get("ACCELHAL_ONNXRUNTIME_LIBRARY")
    if named:
        try:
            getattr(ctypes.CDLL(named), "CreateEpFactories")
        except (OSError, AttributeError) as problem:
            raise ImportError(f"ACCELHAL_ONNXRUNTIME_LIBRARY is {named}: {problem}") from None
        return os.path.abspath(named) if os.sep in named else _loaded_from()
    tried = []
    for path in (_beside(), NAME):
        if path is None:
            continue
        try:
            ctypes.CDLL(path)
            return path if os.path.isabs(path) else _loaded_from()
        except OSError as problem:
            tried.append(str(problem))
    raise ImportError(f"{NAME} is not found: {'; '.join(tried)}. Install the library, or say "
                      f"where it is: ACCELHAL_ONNXRUNTIME_LIBRARY=/path/{NAME}, or "
                      "LD_LIBRARY_PATH")


def _beside():
    """The library in the folder of the libaccelhal in use; None: the loader found that."""
    from ._library import lib
    folder = os.path.dirname(lib._name)
    return os.path.join(os.path.abspath(folder), NAME) if folder else None


def _loaded_from():
    """The path from which the loader took it: the runtime takes a name for one of its own
    folder."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if line.rstrip().endswith("/" + NAME):
                return line.split(maxsplit=5)[5].rstrip()
    return NAME


def get_ep_name():
    """The provider's name, as get_ep_devices() has it."""
    return PROVIDER


def register():
    """Register the provider with ONNX Runtime, once, and return its devices."""
    import onnxruntime

    def devices():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]

    if not devices():
        onnxruntime.register_execution_provider_library(_REGISTERED, get_library_path())
    return devices()


def session_options(target=None, options=None, **provider):
    """Options of a session that runs on the NPU what it can.

    target: as of accelhal.open(); None: what the configuration selects, else npu:0.
    options: an onnxruntime.SessionOptions to add to; None: a new one.
    provider: units=128, strict=1, log=2 ... as docs/onnxruntime.md lists them.
    """
    import onnxruntime
    given = {key: str(int(value)) if isinstance(value, bool) else str(value)
             for key, value in provider.items()}
    if target is not None:
        given["target"] = target
    options = options or onnxruntime.SessionOptions()
    # One device: a program may have registered the library under two names.
    options.add_provider_for_devices(register()[:1], given)
    return options
