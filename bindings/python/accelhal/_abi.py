# SPDX-License-Identifier: Apache-2.0
"""hal.h for ctypes.  Made by generate.py; a test holds it against the header."""
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_char, c_char_p, c_int,
                    c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32,
                    c_uint64, c_void_p)
from enum import IntEnum, IntFlag

hal_host_fn = CFUNCTYPE(None, c_void_p)
hal_log_fn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

VERSION_MAJOR = 0
VERSION_MINOR = 3
VERSION_PATCH = 0
SUSPEND_FINAL = 256
BUFFER_MAPPABLE = 1
BUFFER_EXPORTABLE = 8
ARGS_MAX = 16
CMD_REPLAYABLE = 1
COMMANDS_MAX = 4096
SUBMIT_PRIORITY = 1
HISTOGRAM_BUCKETS = 48
SCAN_DEVICES = 1
FOREVER = 9223372036854775807
WAIT_ANY = 1
WAIT_DEVICE_TIME = 2
TIMELINE_WAIT = 1
TIMELINE_SIGNAL = 2
PARTITION_BIMODAL = 1
BUFFER_BIMODAL = 2
BUFFER_SCRATCH = 4
SCAN_OPTIONS = 2


class Cap(IntFlag):
    """HAL_CAP_*: what a device can do."""
    GRID = 0x1
    VIRTUAL_CLOCK = 0x2
    MAP = 0x4
    TIMESTAMP = 0x8
    RESIZE_IDLE = 0x10
    RESIZE_LIVE = 0x20
    COLORED_MEMORY = 0x40
    FAULT_CONTAINED = 0x80
    SIMULATED = 0x100
    STAND_IN = 0x200
    PRIVATE = 0x400
    LIMIT = 0x800
    RECOLOR = 0x1000
    BIMODAL = 0x2000
    EVICT = 0x4000
    HOST_COPY = 0x8000
    HOST_REGISTER = 0x10000
    EXPORT = 0x20000
    IMPORT = 0x40000


class Preempt(IntEnum):
    """enum hal_preempt."""
    NONE = 0
    BETWEEN = 1
    PENDING = 2
    INSIDE = 3


class Isolation(IntEnum):
    """enum hal_isolation."""
    NONE = 0
    ADVISORY = 1
    ENFORCED = 2


class SuspendMode(IntEnum):
    """enum hal_suspend_mode."""
    DRAIN = 0
    FOLD = 1
    SAVE = 2
    KILL = 3


class DeviceKind(IntEnum):
    """enum hal_device_kind."""
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class ColorSource(IntEnum):
    """enum hal_color_source."""
    NONE = 0
    DEVICE = 1
    FILE = 2
    PROBE = 3


class Shape(IntEnum):
    """enum hal_shape."""
    ANY = 0
    COLUMNS = 1
    ROWS = 2
    SQUARE = 3


class Class(IntEnum):
    """enum hal_class."""
    NORMAL = 0
    LATENCY = 1
    BEST_EFFORT = 2


class Op(IntEnum):
    """enum hal_op."""
    NOP = 0
    COPY = 1
    FILL = 2
    LAUNCH = 3
    HOST = 4
    BARRIER = 5
    TIMESTAMP = 6


class LogLevel(IntEnum):
    """enum hal_log_level."""
    OFF = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    DEBUG = 4


class hal_point(Structure):
    _fields_ = [
        ("timeline", c_void_p),
        ("value", c_uint64),
    ]


class hal_device_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("backend", c_char * 16),
        ("name", c_char * 64),
        ("bus_id", c_char * 32),
        ("memory_bytes", c_uint64),
        ("memory_free", c_uint64),
        ("caps", c_uint64),
        ("verified", c_uint64),
        ("unit_rows", c_uint32),
        ("unit_cols", c_uint32),
        ("partitions_max", c_uint32),
        ("colors", c_uint32),
        ("granule_bytes", c_uint32),
        ("preempt", c_uint32),
        ("compute_isolation", c_uint32),
        ("memory_isolation", c_uint32),
        ("suspend_modes", c_uint32),
        ("lost", c_int32),
        ("preempt_worst_ns", c_uint64),
        ("clock_hz", c_uint64),
        ("bandwidth", c_uint64),
        ("limit_bytes", c_uint64),
        ("limit_window_ns", c_uint64),
        ("suspend_worst_ns", c_uint64 * 4),
        ("guests_max", c_uint32),
        ("color_source", c_uint32),
        ("color_wrong_ppm", c_uint32),
        ("loads", c_uint32),
        ("load_ns", c_uint64),
        ("page_bytes", c_uint32),
        ("turn_cycles", c_uint32),
    ]


class hal_backend_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("status", c_int32),
        ("device_count", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char * 16),
        ("summary", c_char * 112),
        ("reason", c_char * 512),
    ]


class hal_policy_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("fallback", c_uint32),
        ("name", c_char * 32),
        ("invalid", c_uint64),
        ("stalls", c_uint64),
        ("starved", c_uint64),
        ("longest_wait_ns", c_uint64),
        ("reason", c_char * 160),
    ]


class hal_partition_desc(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("units_floor", c_uint32),
        ("units_ceiling", c_uint32),
        ("row", c_uint16),
        ("col", c_uint16),
        ("rows", c_uint16),
        ("cols", c_uint16),
        ("min_isolation", c_uint32),
        ("shape", c_uint32),
        ("memory_bytes", c_uint64),
        ("color_mask", c_uint64),
        ("name", c_char * 32),
        ("host", c_void_p),
        ("limits", c_void_p),
    ]


class hal_partition_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("index", c_uint32),
        ("name", c_char * 32),
        ("row", c_uint16),
        ("col", c_uint16),
        ("rows", c_uint16),
        ("cols", c_uint16),
        ("units", c_uint32),
        ("compute_isolation", c_uint32),
        ("memory_bytes", c_uint64),
        ("memory_used", c_uint64),
        ("color_mask", c_uint64),
    ]


class hal_buffer_desc(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("bytes", c_uint64),
        ("color_mask", c_uint64),
        ("name", c_char * 32),
    ]


class hal_queue_desc(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("priority", c_int32),
        ("min_preempt", c_uint32),
        ("deadline_ns", c_uint64),
        ("weight", c_uint32),
        ("service_class", c_uint16),
        ("budget_permille", c_uint16),
        ("completions", c_void_p),
        ("name", c_char * 32),
    ]


class hal_program_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("kernel_count", c_uint32),
        ("name", c_char * 32),
    ]


class hal_kernel_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("arg_count", c_uint32),
        ("name", c_char * 32),
        ("arg_bytes", c_uint64 * 16),
        ("work", c_uint64),
        ("group_size", c_uint32 * 3),
        ("group_size_max", c_uint32),
        ("shared_max", c_uint32),
        ("reserved", c_uint32),
    ]


class hal_arg(Structure):
    _fields_ = [
        ("buffer", c_void_p),
        ("offset", c_uint64),
        ("bytes", c_uint64),
    ]


class hal_cmd_u_copy(Structure):
    _fields_ = [
        ("dst", c_void_p),
        ("src", c_void_p),
        ("dst_offset", c_uint64),
        ("src_offset", c_uint64),
        ("bytes", c_uint64),
    ]


class hal_cmd_u_fill(Structure):
    _fields_ = [
        ("dst", c_void_p),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("pattern", c_uint32),
    ]


class hal_cmd_u_launch(Structure):
    _fields_ = [
        ("kernel", c_void_p),
        ("args", POINTER(hal_arg)),
        ("arg_count", c_uint32),
        ("groups", c_uint32 * 3),
        ("group_size", c_uint32 * 3),
        ("shared_bytes", c_uint32),
    ]


class hal_cmd_u_host(Structure):
    _fields_ = [
        ("fn", hal_host_fn),
        ("user", c_void_p),
    ]


class hal_cmd_u_timestamp(Structure):
    _fields_ = [
        ("dst", c_void_p),
        ("offset", c_uint64),
    ]


class hal_cmd_u(Union):
    _fields_ = [
        ("copy", hal_cmd_u_copy),
        ("fill", hal_cmd_u_fill),
        ("launch", hal_cmd_u_launch),
        ("host", hal_cmd_u_host),
        ("timestamp", hal_cmd_u_timestamp),
        ("u", c_uint64 * 15),
    ]


class hal_cmd(Structure):
    _anonymous_ = ('u_',)
    _fields_ = [
        ("op", c_uint32),
        ("flags", c_uint32),
        ("u_", hal_cmd_u),
    ]


class hal_submit_desc(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("cmds", POINTER(hal_cmd)),
        ("cmd_count", c_uint32),
        ("cmd_stride", c_uint32),
        ("waits", POINTER(hal_point)),
        ("signals", POINTER(hal_point)),
        ("wait_count", c_uint32),
        ("signal_count", c_uint32),
        ("not_before_ns", c_uint64),
        ("deadline_ns", c_uint64),
        ("priority", c_int32),
        ("reserved", c_uint32),
        ("tag", c_uint64),
    ]


class hal_completion(Structure):
    _fields_ = [
        ("queue", c_void_p),
        ("value", c_uint64),
        ("tag", c_uint64),
        ("status", c_int32),
        ("reserved", c_uint32),
        ("submit_ns", c_uint64),
        ("end_ns", c_uint64),
    ]


class hal_fault_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("status", c_int32),
        ("value", c_uint64),
        ("tag", c_uint64),
        ("cmd", c_uint32),
        ("reserved", c_uint32),
        ("text", c_char * 384),
    ]


class hal_stats(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("now_ns", c_uint64),
        ("busy_ns", c_uint64),
        ("queueing_ns", c_uint64),
        ("submitted", c_uint64),
        ("completed", c_uint64),
        ("failed", c_uint64),
        ("dropped", c_uint64),
        ("deadline_misses", c_uint64),
        ("suspends", c_uint64),
        ("suspend_ns", c_uint64),
        ("suspend_max_ns", c_uint64),
        ("replayed", c_uint64),
        ("replayed_ns", c_uint64),
        ("bytes_read", c_uint64),
        ("bytes_written", c_uint64),
        ("latency_max_ns", c_uint64),
        ("latency_histogram", c_uint64 * 48),
        ("requests", c_uint64),
        ("request_p50_ns", c_uint64),
        ("request_p90_ns", c_uint64),
        ("request_p99_ns", c_uint64),
        ("request_p999_ns", c_uint64),
        ("request_max_ns", c_uint64),
        ("saved_bytes", c_uint64),
        ("stop_max_ns", c_uint64 * 4),
    ]


class hal_partition_limits(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("bandwidth", c_uint64),
        ("memory_limit", c_uint64),
    ]


class hal_partition_memory_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("bandwidth", c_uint64),
        ("wide_mask", c_uint64),
        ("switches", c_uint64),
        ("memory_limit", c_uint64),
        ("memory_buffers", c_uint64),
        ("memory_away", c_uint64),
        ("evictions", c_uint64),
        ("evicted_bytes", c_uint64),
        ("fetches", c_uint64),
        ("fetched_bytes", c_uint64),
        ("fetch_wait_ns", c_uint64),
    ]


class hal_option_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("section", c_char * 32),
        ("key", c_char * 32),
        ("type", c_char * 16),
        ("range", c_char * 64),
        ("def", c_char * 64),
        ("value", c_char * 4096),
        ("source", c_char * 128),
        ("help", c_char * 160),
    ]


class hal_replay_info(Structure):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("turns", c_uint64),
        ("inputs", c_uint64),
        ("decisions", c_uint64),
        ("mismatches", c_uint64),
        ("line", c_uint64),
        ("mismatch", c_char * 256),
        ("missing", c_char * 256),
    ]


# name: (result, parameters)
FUNCTIONS = {
    "hal_version": (c_uint32, []),
    "hal_strerror": (c_char_p, [c_int]),
    "hal_last_error": (c_char_p, []),
    "hal_log_set": (c_int, [hal_log_fn, c_void_p, c_int]),
    "hal_scan_create": (c_int, [POINTER(c_char_p), c_uint32, POINTER(c_void_p)]),
    "hal_scan_destroy": (c_int, [c_void_p]),
    "hal_scan_get_backend": (c_int, [c_void_p, c_uint32, POINTER(hal_backend_info)]),
    "hal_scan_get_device": (c_int, [c_void_p, c_uint32, POINTER(hal_device_info)]),
    "hal_open": (c_int, [c_char_p, POINTER(c_char_p), POINTER(c_void_p)]),
    "hal_close": (c_int, [c_void_p]),
    "hal_device_get_info": (c_int, [c_void_p, POINTER(hal_device_info)]),
    "hal_device_get_stats": (c_int, [c_void_p, POINTER(hal_stats)]),
    "hal_device_poll": (c_int, [c_void_p, c_uint64]),
    "hal_device_get_time": (c_uint64, [c_void_p]),
    "hal_device_set_policy": (c_int, [c_void_p, c_char_p, POINTER(c_char_p)]),
    "hal_device_get_policy": (c_int, [c_void_p, POINTER(hal_policy_info)]),
    "hal_device_get_extension": (c_void_p, [c_void_p, c_char_p]),
    "hal_device_get_native": (c_void_p, [c_void_p]),
    "hal_trace_start": (c_int, [c_void_p, c_char_p]),
    "hal_trace_stop": (c_int, [c_void_p]),
    "hal_partition_create": (c_int, [c_void_p, POINTER(hal_partition_desc), POINTER(c_void_p)]),
    "hal_partition_create_named": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "hal_partition_resize": (c_int, [c_void_p, POINTER(hal_partition_desc), POINTER(hal_point)]),
    "hal_partitions_move": (c_int, [POINTER(c_void_p), POINTER(hal_partition_desc), c_uint32, POINTER(hal_point)]),
    "hal_partition_destroy": (c_int, [c_void_p]),
    "hal_partition_get_info": (c_int, [c_void_p, POINTER(hal_partition_info)]),
    "hal_partition_get_stats": (c_int, [c_void_p, POINTER(hal_stats)]),
    "hal_buffer_create": (c_int, [c_void_p, POINTER(hal_buffer_desc), POINTER(c_void_p)]),
    "hal_buffer_destroy": (c_int, [c_void_p]),
    "hal_buffer_get_bytes": (c_uint64, [c_void_p]),
    "hal_buffer_write": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "hal_buffer_read": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "hal_buffer_map": (c_int, [c_void_p, POINTER(c_void_p)]),
    "hal_buffer_unmap": (c_int, [c_void_p]),
    "hal_buffer_export": (c_int, [c_void_p, POINTER(c_int)]),
    "hal_buffer_import": (c_int, [c_void_p, c_int, POINTER(hal_buffer_desc), POINTER(c_void_p)]),
    "hal_host_alloc": (c_int, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(c_void_p)]),
    "hal_host_register": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(c_void_p)]),
    "hal_program_load": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p)]),
    "hal_program_set_name": (c_int, [c_void_p, c_char_p]),
    "hal_program_get_info": (c_int, [c_void_p, POINTER(hal_program_info)]),
    "hal_program_unload": (c_int, [c_void_p]),
    "hal_kernel_find": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "hal_kernel_get": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "hal_kernel_get_info": (c_int, [c_void_p, POINTER(hal_kernel_info)]),
    "hal_queue_create": (c_int, [c_void_p, POINTER(hal_queue_desc), POINTER(c_void_p)]),
    "hal_queue_destroy": (c_int, [c_void_p]),
    "hal_queue_suspend": (c_int, [c_void_p, c_uint32, POINTER(hal_point)]),
    "hal_queue_resume": (c_int, [c_void_p]),
    "hal_queue_get_stats": (c_int, [c_void_p, POINTER(hal_stats)]),
    "hal_queue_get_fault": (c_int, [c_void_p, POINTER(hal_fault_info)]),
    "hal_queue_get_timeline": (c_void_p, [c_void_p]),
    "hal_submit": (c_int, [c_void_p, POINTER(hal_submit_desc), POINTER(hal_point)]),
    "hal_sequence_create": (c_int, [c_void_p, POINTER(hal_submit_desc), POINTER(c_void_p)]),
    "hal_sequence_destroy": (c_int, [c_void_p]),
    "hal_sequence_set_args": (c_int, [c_void_p, c_uint32, POINTER(hal_arg), c_uint32]),
    "hal_sequence_submit": (c_int, [c_void_p, c_void_p, POINTER(hal_submit_desc), POINTER(hal_point)]),
    "hal_completions_create": (c_int, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "hal_completions_destroy": (c_int, [c_void_p]),
    "hal_completions_read": (c_int, [c_void_p, POINTER(hal_completion), c_uint32, c_int64]),
    "hal_completions_get_fd": (c_int, [c_void_p]),
    "hal_timeline_create": (c_int, [c_void_p, POINTER(c_void_p)]),
    "hal_timeline_destroy": (c_int, [c_void_p]),
    "hal_timeline_get_value": (c_uint64, [c_void_p, POINTER(c_int)]),
    "hal_timeline_signal": (c_int, [c_void_p, c_uint64]),
    "hal_wait": (c_int, [POINTER(hal_point), c_uint32, c_uint32, c_int64]),
    "hal_point_open_fd": (c_int, [POINTER(hal_point)]),
    "hal_timeline_export": (c_int, [c_void_p, c_uint32, POINTER(c_int)]),
    "hal_timeline_import": (c_int, [c_void_p, c_int, POINTER(c_void_p)]),
    "hal_cmd_of": (hal_cmd, [c_uint32, c_uint32]),
    "hal_cmd_copy": (hal_cmd, [c_void_p, c_uint64, c_void_p, c_uint64, c_uint64]),
    "hal_cmd_write": (hal_cmd, [c_void_p, c_uint64, c_void_p, c_uint64, c_uint64]),
    "hal_cmd_read": (hal_cmd, [c_void_p, c_uint64, c_void_p, c_uint64, c_uint64]),
    "hal_cmd_fill": (hal_cmd, [c_void_p, c_uint64, c_uint64, c_uint32]),
    "hal_cmd_launch": (hal_cmd, [c_void_p, POINTER(hal_arg), c_uint32]),
    "hal_cmd_host": (hal_cmd, [hal_host_fn, c_void_p]),
    "hal_cmd_barrier": (hal_cmd, []),
    "hal_cmd_timestamp": (hal_cmd, [c_void_p, c_uint64]),
    "hal_partition_get_memory_info": (c_int, [c_void_p, POINTER(hal_partition_memory_info)]),
    "hal_buffer_create_weighted": (c_int, [c_void_p, POINTER(hal_buffer_desc), POINTER(c_uint8), POINTER(c_void_p)]),
    "hal_buffer_recolor": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(c_uint8), POINTER(hal_point)]),
    "hal_scan_get_option": (c_int, [c_void_p, c_uint32, POINTER(hal_option_info)]),
    "hal_replay": (c_int, [c_char_p, POINTER(hal_replay_info)]),
}

# Of members, what hal.h says of them.
DOCS = {
    "hal_device_info": {
        "kind": 'enum hal_device_kind',
        "bus_id": 'the same for all who open it; "": on no bus',
        "caps": 'HAL_CAP_*',
        "verified": 'those of .caps a self-test at open has confirmed',
        "unit_rows": '1 where units form a line',
        "unit_cols": 'the device has .unit_rows * .unit_cols units',
        "colors": 'memory channels that can be owned; 0: none known',
        "granule_bytes": 'colour grain; 0: none known',
        "preempt": 'enum hal_preempt',
        "compute_isolation": 'enum hal_isolation; the least of any partition',
        "memory_isolation": 'enum hal_isolation',
        "suspend_modes": 'bit (1 << enum hal_suspend_mode)',
        "lost": '0, or -ENODEV: the device is lost, for good',
        "preempt_worst_ns": 'of .preempt; 0: not known yet',
        "clock_hz": 'device cycles a second of device time',
        "bandwidth": 'of all memory, bytes a second; 0: none known',
        "limit_bytes": 'grain of a limit, and the least; 0: no HAL_CAP_LIMIT',
        "limit_window_ns": 'longest window of a limit',
        "color_source": 'enum hal_color_source',
        "color_wrong_ppm": 'of .color_source FILE, PROBE: at most so many * granules of a million lie elsewhere, with 95 %; * UINT32_MAX: nobody has tried',
        "page_bytes": 'grain in which it places memory; 0: it does not say',
        "turn_cycles": "each partition's turn on every memory channel, whoever * asks, of the whole device while it is open; 0: they are * shared by who asks",
    },
    "hal_policy_info": {
        "fallback": '1: given up, the engine serves in order of arrival',
        "invalid": 'no runnable queue named, or a wrong request',
        "stalls": 'nobody named while nothing ran',
        "starved": 'queues passed over for too long',
        "longest_wait_ns": 'of a runnable queue, in device time',
        "reason": 'of the last fault; ""',
    },
    "hal_partition_desc": {
        "flags": 'HAL_PARTITION_BIMODAL of <hal/ext/memory.h>, or 0',
        "units_floor": 'always guaranteed',
        "units_ceiling": 'so far the policy may let it grow; 0: as the floor',
        "min_isolation": 'of compute; less -> -ENOTSUP, never a downgrade',
        "memory_bytes": 'quota; 0: whatever is free',
        "color_mask": 'bit a channel; 0: any',
        "name": 'for traces and halctl; may be empty',
        "limits": 'NULL, or <hal/ext/memory.h>',
    },
    "hal_partition_info": {
        "cols": "grid devices; of a guest: its host's",
        "memory_bytes": 'quota',
    },
    "hal_buffer_desc": {
        "flags": 'HAL_BUFFER_*, also those of <hal/ext/memory.h>',
        "name": 'for error texts and halctl; may be empty',
    },
    "hal_queue_desc": {
        "flags": '0',
        "weight": 'share under policies wfq, quota, token; 0 counts as 1',
        "completions": 'where ends are told; NULL: nowhere',
        "name": 'for error texts, traces and halctl; may be empty',
    },
    "hal_program_info": {
        "name": 'of hal_program_set_name; "": none',
    },
    "hal_kernel_info": {
        "arg_bytes": 'least size of a buffer argument; 0: a scalar, or any',
        "work": 'multiply-accumulates of one launch; 0: not known',
        "group_size": 'work items of a group by itself; 0: not known',
        "group_size_max": 'most work items of a group that a launch may set; 0: * the size is fixed',
        "shared_max": 'most hal_cmd.launch.shared_bytes; 0: none',
    },
    "hal_arg": {
        "offset": "bytes into the buffer, or the scalar's value",
        "bytes": "0: to the buffer's end",
    },
    "hal_cmd": {
        "op": 'enum hal_op',
        "flags": 'HAL_CMD_*',
        "bytes": 'multiples of 4',
        "args": 'read by hal_submit, not after',
        "groups": '0 counts as 1',
        "fn": "real clock: on a thread of the device's callbacks, one after the other; virtual clock: on the thread that waits. It may call all but what would wait for itself: that answers -EDEADLK",
        "dst": 'uint64_t: device time in ns',
        "offset": 'multiple of 8',
    },
    "hal_submit_desc": {
        "flags": 'HAL_SUBMIT_*',
        "cmd_stride": 'sizeof(struct hal_cmd); 0 the same',
        "signals": 'set to .value when all of it has ended',
        "not_before_ns": 'device time until which it is held; 0: it is not',
        "deadline_ns": "from the submission on, as of a queue, and later than .not_before_ns; 0: the queue's",
        "priority": 'with HAL_SUBMIT_PRIORITY',
        "tag": "the caller's own: comes back in hal_completion, and in traces",
    },
    "hal_completion": {
        "value": 'on its timeline',
        "end_ns": 'device time',
    },
    "hal_fault_info": {
        "status": 'of hal_completion; 0: the queue has not failed',
        "value": 'the submission that failed; 0: none was in the queue',
        "tag": 'of that submission',
        "cmd": 'which of its commands; UINT32_MAX: none (a wait, a suspend ...)',
        "text": 'as hal_wait leaves it in hal_last_error',
    },
    "hal_stats": {
        "now_ns": 'device time of this snapshot',
        "busy_ns": 'commands running (union over queues)',
        "queueing_ns": 'sum over commands: ready until started',
        "submitted": 'commands',
        "suspend_ns": 'sum: asked until quiet',
        "replayed": 'commands run again after KILL',
        "replayed_ns": 'work lost to that',
        "bytes_read": 'by the device, where it counts them',
        "latency_max_ns": 'submit until completed, a command',
        "saved_bytes": 'by FOLD and SAVE',
    },
    "hal_partition_memory_info": {
        "bandwidth": 'its own limit, as the device rounds it; 0: none',
    },
    "hal_option_info": {
        "section": '"hal", "backend.npu" ...',
        "type": '"int", "size", "bool", "enum", "string"',
        "range": '"1..64", "real|virtual"',
        "def": 'default',
        "value": 'in force for the next hal_open',
        "source": '"default", "hal.conf:12", "environment HAL_HAL_DEVICE"',
    },
    "hal_replay_info": {
        "turns": 'of the engine',
        "inputs": "submissions' records, events, calls, times ...",
        "decisions": 'that were compared',
        "mismatches": '0: all of them are the same',
        "line": 'of the first mismatch in the journal; 0: none',
        "mismatch": 'its text; empty: none',
        "missing": 'where the journal ends too early; empty: it is complete',
    },
}

# What the package shows of this.
__all__ = [
    "ARGS_MAX",
    "BUFFER_BIMODAL",
    "BUFFER_EXPORTABLE",
    "BUFFER_MAPPABLE",
    "BUFFER_SCRATCH",
    "CMD_REPLAYABLE",
    "COMMANDS_MAX",
    "Cap",
    "Class",
    "ColorSource",
    "DeviceKind",
    "FOREVER",
    "HISTOGRAM_BUCKETS",
    "Isolation",
    "LogLevel",
    "Op",
    "PARTITION_BIMODAL",
    "Preempt",
    "SCAN_DEVICES",
    "SCAN_OPTIONS",
    "SUBMIT_PRIORITY",
    "SUSPEND_FINAL",
    "Shape",
    "SuspendMode",
    "TIMELINE_SIGNAL",
    "TIMELINE_WAIT",
    "VERSION_MAJOR",
    "VERSION_MINOR",
    "VERSION_PATCH",
    "WAIT_ANY",
    "WAIT_DEVICE_TIME",
]
