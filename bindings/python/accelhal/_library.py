# SPDX-License-Identifier: Apache-2.0
"""Finds libaccelhal, looks whether it is ours, and turns its errors into exceptions."""
import ctypes
import errno
import os
import subprocess

from . import _abi

SONAME = "libaccelhal.so.0"


# As hal.h calls them, where a number has two names.
_NAMES = {**errno.errorcode, errno.EDEADLK: "EDEADLK", errno.ENOTSUP: "ENOTSUP"}


class Error(OSError):
    """What a function of the library answered.

    errno is positive (errno.ENOSPC ...), strerror the text of hal_last_error: what is
    wrong, where, and what would be right.  hal.h and the manual's pages say which function
    answers which.
    """

    def __str__(self):
        return f"{self.strerror} [{_NAMES.get(self.errno, self.errno)}]"


class Timeout(Error, TimeoutError):
    """ETIMEDOUT: the time to wait passed first; the work goes on."""


class QueueFull(Error, BlockingIOError):
    """EAGAIN: the queue, or its ring of completions, has no room now; nothing was taken."""


_CLASSES = {errno.ETIMEDOUT: Timeout, errno.EAGAIN: QueueFull}


def _by_pkg_config():
    """The library's path by pkg-config, or None."""
    try:
        told = subprocess.run(["pkg-config", "--variable=libdir", "accelhal"], text=True,
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.path.join(told.stdout.strip(), SONAME)


def _load():
    """$ACCELHAL_LIBRARY, and nothing else when that is set; the loader's own search
    (LD_LIBRARY_PATH, ldconfig); pkg-config."""
    named = os.environ.get("ACCELHAL_LIBRARY")
    tried = []
    for path in [named] if named else [SONAME, _by_pkg_config()]:
        if path is None:
            tried.append("pkg-config knows no accelhal")
            continue
        try:
            return ctypes.CDLL(path), path
        except OSError as problem:
            tried.append(str(problem))
    if named:
        raise ImportError(f"ACCELHAL_LIBRARY is {named}: {tried[0]}")
    raise ImportError(f"{SONAME} is not found: {'; '.join(tried)}. Install the library, or "
                      "say where it is: ACCELHAL_LIBRARY=/path/libaccelhal.so.0, or "
                      "LD_LIBRARY_PATH, or PKG_CONFIG_PATH")


def _bind():
    """The loaded library with every function's types."""
    library, path = _load()
    ours = f"{_abi.VERSION_MAJOR}.{_abi.VERSION_MINOR}"
    try:
        library.hal_version.restype = ctypes.c_uint32
        version = library.hal_version()
    except AttributeError:
        raise ImportError(f"{path} is not libaccelhal: it has no hal_version") from None
    theirs = f"{version >> 16}.{version >> 8 & 255}"
    if theirs != ours:
        raise ImportError(f"{path} is accelhal {theirs}.{version & 255}, but this package is "
                          f"for {ours}: install matching versions of both")
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is an older build of {theirs}; "
                              "install a newer one") from None
        function.restype = result
        function.argtypes = parameters
    return library


lib = _bind()


def failure(answer):
    """The exception for an answer, with the text of this thread's last error."""
    number = -answer
    return _CLASSES.get(number, Error)(number, lib.hal_last_error().decode(errors="replace"))


def check(answer):
    """The answer, unless it is an error."""
    if answer < 0:
        raise failure(answer)
    return answer
