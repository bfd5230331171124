# SPDX-License-Identifier: Apache-2.0
"""Addresses of what has the buffer protocol, and numbers that must fit."""
import ctypes
import operator


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython's stable ABI."""
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_PyBuffer)]
_release.restype = None
_SIMPLE, _WRITABLE = 0, 1


class Pinned:
    """with Pinned(x) as (address, bytes): x stays where it is, and is not copied.

    TypeError: x has no buffer protocol; BufferError: it is not contiguous, or not writable.
    """

    def __init__(self, data, writable=False):
        self._view = _PyBuffer()
        _get(data, ctypes.byref(self._view), _WRITABLE if writable else _SIMPLE)

    def __enter__(self):
        return self._view.buf, self._view.len

    def __exit__(self, *exception):
        _release(ctypes.byref(self._view))


def fits(value, what, bits=64, signed=False):
    """value as an int of so many bits, or ValueError: ctypes would cut it without a word."""
    number = operator.index(value)
    low, high = (-1 << bits - 1, 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise ValueError(f"{what} is {number}; it must be within {low} .. {high - 1}")
    return number


def handle_of(thing, kind):
    """The handle of a thing of that kind ("Buffer" ...), or TypeError."""
    if getattr(thing, "kind", None) != kind:
        raise TypeError(f"a {kind} is needed, not a {type(thing).__name__}")
    return thing.handle


def fill(struct, **values):
    """The struct with .size and these members, each of which must fit."""
    kinds = dict(field[:2] for field in struct._fields_)
    raw = struct(size=ctypes.sizeof(struct))
    for name, value in values.items():
        kind = kinds[name]
        if issubclass(kind, ctypes._SimpleCData) and kind is not ctypes.c_void_p:
            value = fits(value, name, ctypes.sizeof(kind) * 8, kind(-1).value < 0)
        setattr(raw, name, value)
    return raw


def text(value, what, limit=None):
    """value as bytes without a zero inside, or ValueError."""
    raw = value if isinstance(value, bytes) else str(value).encode()
    if b"\0" in raw:
        raise ValueError(f"{what} must not contain a zero byte")
    if limit is not None and len(raw) >= limit:
        raise ValueError(f"{what} has {len(raw)} bytes; at most {limit - 1} are allowed")
    return raw


def strings(values, what):
    """A NULL-ended array of char *: of a mapping, or of "key=value" strings; or None."""
    if values is None:
        return None
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{what} must be a dict or a list of 'key=value', not one string")
    if hasattr(values, "items"):
        values = [f"{key}={_word(value)}" for key, value in values.items()]
    raw = [text(value, what) for value in values]
    return (ctypes.c_char_p * (len(raw) + 1))(*raw, None)


def _word(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
