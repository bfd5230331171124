# SPDX-License-Identifier: Apache-2.0
"""What the library tells, as named tuples made from its structs: the same names, without
size and reserved; texts are str, enumerations those of this package."""
import ctypes
from collections import namedtuple

from . import _abi
from ._abi import Cap, DeviceKind, Isolation, Preempt, SuspendMode

_ENUMS = {
    "kind": DeviceKind, "caps": Cap, "verified": Cap, "preempt": Preempt,
    "compute_isolation": Isolation, "memory_isolation": Isolation,
}
_NAMES = {"def": "default"}  # no word of Python's


def _enum(kind, value):
    try:
        return kind(value)
    except ValueError:  # of a newer backend
        return value


def _modes(bits):
    return frozenset(mode for mode in SuspendMode if bits >> mode & 1)


def _record(title, struct, doc):
    members = [name for name, *_ in struct._fields_ if name not in ("size", "reserved")]
    kind = namedtuple(title, [_NAMES.get(name, name) for name in members])
    kind.__doc__ = f"{doc}  struct {struct.__name__} of hal.h."
    for name, words in _abi.DOCS.get(struct.__name__, {}).items():
        if name in members:
            getattr(kind, _NAMES.get(name, name)).__doc__ = words

    def value(raw, name):
        got = getattr(raw, name)
        if isinstance(got, bytes):
            return got.decode(errors="replace")
        if isinstance(got, ctypes.Array):
            return tuple(got)
        if name == "suspend_modes":
            return _modes(got)
        return _enum(_ENUMS[name], got) if name in _ENUMS else got

    def of(function, *args):
        """Calls function(*args, &struct) and gives (answer, record)."""
        raw = struct(size=ctypes.sizeof(struct))
        answer = function(*args, ctypes.byref(raw))
        return answer, kind._make(value(raw, name) for name in members)

    return kind, of


DeviceInfo, device_info = _record(
    "DeviceInfo", _abi.hal_device_info,
    "What a device is and can really do; sizes in bytes, times in ns.")
BackendInfo, backend_info = _record(
    "BackendInfo", _abi.hal_backend_info,
    "A backend of the library: status 0, or -errno with the reason.")
OptionInfo, option_info = _record(
    "OptionInfo", _abi.hal_option_info,
    "An option, its value and where that came from.")
PolicyInfo, policy_info = _record(
    "PolicyInfo", _abi.hal_policy_info,
    "The policy in force, and what it did wrong.")
PartitionInfo, partition_info = _record(
    "PartitionInfo", _abi.hal_partition_info,
    "Where a partition is and what it holds; sizes in bytes.")
PartitionMemory, partition_memory = _record(
    "PartitionMemory", _abi.hal_partition_memory_info,
    "The limits of a partition's memory, its placements and evictions; sizes in bytes.")
ProgramInfo, program_info = _record(
    "ProgramInfo", _abi.hal_program_info,
    "A program: its name and how many kernels it has.")
FaultInfo, fault_info = _record(
    "FaultInfo", _abi.hal_fault_info,
    "Why a queue has failed: the submission, the command and the device's text.")
KernelInfo, kernel_info = _record(
    "KernelInfo", _abi.hal_kernel_info,
    "A kernel: arg_bytes has the least bytes of each of arg_count arguments, 0 where a "
    "scalar goes, or any buffer.")
Stats, stats = _record(
    "Stats", _abi.hal_stats,
    "Accounting in device time: *_ns in ns, *_bytes in bytes, the rest counts; the "
    "percentiles are of requests (submissions).")
ReplayInfo, replay_info = _record(
    "ReplayInfo", _abi.hal_replay_info,
    "What came of a replay.")
