/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of sections [hal], [layers] and [partition "name"]. */
#include "config/options.h"

#include <hal/policy.h>

#include "util/compiler.h"

const struct hal_option_def core_options[] = {
	{"device", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "device that hal_open(NULL) opens, e.g. npu:0 or ref?units=8; empty: the "
	 "best device present"},
	{"broker_dir", HAL_OPTION_STRING, 0, 0, NULL, "/run/hald",
	 "folder of the sockets of hald: the target hald:NAME is served at NAME.sock"},
	{"config", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "file that is read last and overrides $HAL_CONFIG and all other files; "
	 "/dev/null: read no file"},
	{"plugins", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "plug-ins with backends or policies: .so files, separated by colons; each "
	 "configuration file adds its own to the list"},
	{"trace", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "write a Chrome/Perfetto trace of the device to this file (%p: process id, "
	 "%n: device number)"},
	{"trace_size", HAL_OPTION_SIZE, 0, INT64_C(1) << 30, NULL, "0",
	 "most bytes of a trace, of 64K or more: only the newest events are kept, in "
	 "memory until the trace ends; 0: all events are written"},
	{"journal", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "record the engine's inputs and decisions in this file, for halctl replay "
	 "(%p: process id, %n: device number)"},
	{"monitor", HAL_OPTION_ENUM, 0, 0, "off|read|control", "off",
	 "access for halctl of the same user; read: show the device, control: also "
	 "set its policy"},
	{"monitor_dir", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "folder of the monitor's socket; empty: $XDG_RUNTIME_DIR/accelhal if this "
	 "user owns that, else /tmp/accelhal-UID"},
	{"profile", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "file of kernel run times that halctl profile measured, for policies; "
	 "empty: policies have only learned run times"},
	{"color_map", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "file in which halctl probe recorded the memory channel of each granule, "
	 "for a device that hides it"},
	{"color_map_unverified", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "accept a color_map that has not been verified"},
	{"queue_depth", HAL_OPTION_INT, 8, 4096, NULL, "32",
	 "slots of a queue, a power of two; a launch takes one slot, or more if it "
	 "has arguments"},
	{"inflight", HAL_OPTION_INT, 0, 64, NULL, "0",
	 "commands of one queue that the device may have at a time; a backend's own "
	 "inflight may lower it; 0: that number, at most 8 if the device has FOLD; "
	 "or 2"},
	{"partition_inflight", HAL_OPTION_INT, 0, 64, NULL, "0",
	 "commands of one partition that the device may have at a time; three times as "
	 "many if it has host memory for copies; 0: as for inflight, at least 2"},
	{"compact", HAL_OPTION_INT, 0, HAL_POLICY_MOVES, NULL, "0",
	 "how many partitions may be moved to make room for another one; 0: none"},
	{"oversubscribe", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "buffers of a partition may exceed its memory quota, up to memory_limit; "
	 "the rest is kept in host memory"},
	{"spin_us", HAL_OPTION_INT, 0, 1000000, NULL, "8",
	 "clock=real: longest time, in us, that an idle engine polls before it "
	 "sleeps"},
	{"caller_turns", HAL_OPTION_ENUM, 0, 0, "no|pauses|always", "pauses",
	 "clock=real: threads in hal_submit and hal_wait do the work of an engine that "
	 "sleeps, if the backend permits it; pauses: until work comes within spin_us"},
};
const uint32_t core_option_count = ARRAY_LENGTH(core_options);

/* Options of [partition "name"]; hal.conf(5) describes them. */
const struct hal_option_def partition_options[] = {
	{"row", HAL_OPTION_INT, 0, 65535, NULL, "0", "first row of the rectangle"},
	{"col", HAL_OPTION_INT, 0, 65535, NULL, "0", "first column of the rectangle"},
	{"rows", HAL_OPTION_INT, 0, 65535, NULL, "0",
	 "rows of the rectangle; 0: units gives the size"},
	{"cols", HAL_OPTION_INT, 0, 65535, NULL, "0", "columns of the rectangle"},
	{"units", HAL_OPTION_INT, 0, UINT32_MAX, NULL, "0",
	 "number of compute units, placed anywhere"},
	{"shape", HAL_OPTION_ENUM, 0, 0, "any|columns|rows|square", "any",
	 "shape of the rectangle that units gets (enum hal_shape)"},
	{"ceiling", HAL_OPTION_INT, 0, UINT32_MAX, NULL, "0",
	 "most units to which a policy may grow the partition; 0: fixed size"},
	{"host", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "name of the host partition, if this partition is a guest on its units; empty: "
	 "not a guest"},
	{"memory", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "bytes of device memory reserved for the partition (quota); 0: it uses free "
	 "memory"},
	{"memory_limit", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "limit of the bytes of the partition's buffers, on the device and in host "
	 "memory together; 0: the same as memory"},
	{"colors", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "memory channels that the partition owns: a list like 0,2-3 or a mask like 0xd"},
	{"bimodal", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "buffers marked bimodal use more channels while no other partition has work"},
	{"bandwidth", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "limit of the bytes that the partition moves per second of device time; 0: no "
	 "limit"},
	{"isolation", HAL_OPTION_ENUM, 0, 0, "none|advisory|enforced", "none",
	 "weakest isolation of compute units that is accepted"},
	/* Defaults for the partition's queues. */
	{"class", HAL_OPTION_ENUM, 0, 0, "normal|latency|best-effort", "normal",
	 "default class of its queues (enum hal_class)"},
	{"priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "0",
	 "default priority of submissions to its queues"},
	{"weight", HAL_OPTION_INT, 1, UINT32_MAX, NULL, "1",
	 "default weight of its queues: their share of time or commands"},
	{"budget_permille", HAL_OPTION_INT, 0, 1000, NULL, "0",
	 "default share of device time of its queues, in thousandths, under policy "
	 "quota; 0: by weight"},
	{"deadline_us", HAL_OPTION_INT, 0, INT64_C(1000000000000), NULL, "0",
	 "default deadline of submissions, in us after the submit; 0: none"},
};
const uint32_t partition_option_count = ARRAY_LENGTH(partition_options);

const struct hal_option_def layer_options[] = {
	{"validate", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "check every call between core and backend, in both directions, and report "
	 "leaks"},
	{"report", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "with validate: append a line to this file for each error found (%p: process "
	 "id, %n: device number)"},
	{"fault", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "fail every N-th call of an operation: OPERATION:N:ERRNO, several separated "
	 "by commas"},
	{"trace", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "append a line of JSON to this file for each call of the backend (%p: "
	 "process id, %n: device number)"},
};
const uint32_t layer_option_count = ARRAY_LENGTH(layer_options);

const struct own_section own_sections[] = {
	{"hal", core_options, ARRAY_LENGTH(core_options), false},
	{"layers", layer_options, ARRAY_LENGTH(layer_options), false},
};
const uint32_t own_section_count = ARRAY_LENGTH(own_sections);
