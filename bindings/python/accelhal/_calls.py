# SPDX-License-Identifier: Apache-2.0
"""The calls that a program makes for each piece of work: of the extension in C, _fast, or the
same in Python.

The package calls them as _calls.submit(...).  Their Python forms are in _commands.py and
_objects.py; each is also the fallback of the one in C, for all that this does not handle.
"""
import ctypes
import os

from . import _abi
from ._library import lib

# Set by bind().
submit = wait = reached = value = None
launch = fill = copied = plain = None


def _load():
    """The extension, or None.  $ACCELHAL_EXTENSION: no: leave it out; yes: ImportError when
    it is missing."""
    wanted = os.environ.get("ACCELHAL_EXTENSION", "")
    if wanted not in ("", "yes", "no"):
        raise ImportError(f"ACCELHAL_EXTENSION is {wanted}; it must be yes or no")
    if wanted == "no":
        return None
    try:
        from . import _fast
    except ImportError as missing:
        if wanted == "yes":
            raise ImportError(f"ACCELHAL_EXTENSION is yes, but there is no accelhal._fast: "
                              f"{missing}. Install the package where a C compiler and "
                              "Python's headers (python3-dev) are") from None
        return None
    ours = _abi.VERSION_MAJOR << 16 | _abi.VERSION_MINOR << 8 | _abi.VERSION_PATCH
    if _fast.VERSION != ours:
        raise ImportError(f"{_fast.__file__} was built for another version than this package: "
                          "install the package again")
    return _fast


_extension = _load()
compiled = _extension is not None

if compiled:
    Handle = _extension.Handle
else:
    class Handle:
        """Base of what stands for an object of the library.  Here, and not set in __init__,
        because the class of this name in C has them, too."""
        _handle = None  # the library's pointer, as an int; None: closed
        _parent = None  # what it was made of
        _line = None  # of a Queue: weak reference to its own Timeline
        _held = None  # of a Queue: (value, what must live until that is reached)
        _submitted = 0  # of a Queue: value of its last submission


_FUNCTIONS = ("hal_submit", "hal_sequence_submit", "hal_wait", "hal_timeline_get_value",
              "hal_buffer_get_bytes")


def bind(fallbacks, things):
    """Sets the calls.  fallbacks: by name, their Python forms; things: by name, the classes
    and functions that the extension uses."""
    if not compiled:
        globals().update(fallbacks)
        return
    addresses = {name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value
                 for name in _FUNCTIONS}
    _extension.bind({**fallbacks, **things, **addresses})
    globals().update({name: getattr(_extension, name) for name in fallbacks})
