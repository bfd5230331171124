/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - what the library's own sections may say. */
#include "config/options.h"

#include <hal/policy.h>

#include "util/compiler.h"

const struct hal_option_def core_options[] = {
	{"device", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "what hal_open(NULL) opens, as npu:0 or ref?units=8; empty: the best present"},
	{"config", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "the file to read last, over $HAL_CONFIG and others; /dev/null: no file is "
	 "read"},
	{"plugins", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "backends and policies out of the tree: .so files, separated by colons; files "
	 "add to those before them"},
	{"trace", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "write a Chrome/Perfetto trace of everything to this file (%p: process id, "
	 "%n: device number)"},
	{"journal", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "write what the engine takes in and decides to this file, for halctl replay "
	 "(%p: process id, %n: device number)"},
	{"monitor", HAL_OPTION_ENUM, 0, 0, "off|read|control", "off",
	 "lets this user's halctl look at the device, and set its policy (control)"},
	{"monitor_dir", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "folder of the monitor's socket; empty: accelhal in $XDG_RUNTIME_DIR if that is "
	 "this user's, else /tmp/accelhal-UID"},
	{"profile", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "what kernels run here, by halctl profile: policies see it; empty: they learn"},
	{"color_map", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "on which memory channel its granules lie, by halctl probe, if the device keeps "
	 "that "
	 "to itself"},
	{"color_map_unverified", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "take a color_map that nobody has verified"},
	{"queue_depth", HAL_OPTION_INT, 8, 4096, NULL, "32",
	 "slots of a queue, a power of two; a launch takes one, or more with arguments"},
	{"inflight", HAL_OPTION_INT, 1, 64, NULL, "2",
	 "commands of one queue that the device may have at a time"},
	{"partition_inflight", HAL_OPTION_INT, 1, 64, NULL, "2",
	 "commands of one partition that the device may have at a time"},
	{"compact", HAL_OPTION_INT, 0, HAL_POLICY_MOVES, NULL, "0",
	 "partitions moved, at most, when another has no room in one place; 0: none"},
	{"oversubscribe", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "partitions may have more memory (memory_limit) than their quota on the device"},
	{"spin_us", HAL_OPTION_INT, 0, 1000000, NULL, "8",
	 "real clock: how long an idle engine looks at most before it sleeps"},
};
const uint32_t core_option_count = ARRAY_LENGTH(core_options);

/* What [partition "name"] may say. */
const struct hal_option_def partition_options[] = {
	{"row", HAL_OPTION_INT, 0, 65535, NULL, "0", "first row of the rectangle"},
	{"col", HAL_OPTION_INT, 0, 65535, NULL, "0", "first column"},
	{"rows", HAL_OPTION_INT, 0, 65535, NULL, "0", "rows; 0: units says how many"},
	{"cols", HAL_OPTION_INT, 0, 65535, NULL, "0", "columns"},
	{"units", HAL_OPTION_INT, 0, UINT32_MAX, NULL, "0", "compute units anywhere"},
	{"ceiling", HAL_OPTION_INT, 0, UINT32_MAX, NULL, "0",
	 "units that the policy may let it grow to; 0: it keeps its size"},
	{"host", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "the partition on whose units it runs, as its guest; empty: it has its own"},
	{"memory", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0", "quota; 0: what is free"},
	{"memory_limit", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "bytes of its buffers, what the host keeps of them included; 0: memory"},
	{"colors", HAL_OPTION_STRING, 0, 0, NULL, "", "channels: 0,2-3 or a mask 0xd"},
	{"bimodal", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "memory that says so has more channels while it is alone"},
	{"bandwidth", HAL_OPTION_SIZE, 0, INT64_MAX, NULL, "0",
	 "bytes a second of device time that it moves at most; 0: no limit"},
	{"isolation", HAL_OPTION_ENUM, 0, 0, "none|advisory|enforced", "none",
	 "the least that is accepted"},
	/* Of its queues, where they do not say otherwise. */
	{"class", HAL_OPTION_ENUM, 0, 0, "normal|latency|best-effort", "normal",
	 "enum hal_class"},
	{"priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "0", "of submissions"},
	{"weight", HAL_OPTION_INT, 1, UINT32_MAX, NULL, "1", "share of time or commands"},
	{"budget_permille", HAL_OPTION_INT, 0, 1000, NULL, "0",
	 "of device time, in thousandths, under policy quota; 0: by weight"},
	{"deadline_us", HAL_OPTION_INT, 0, INT64_C(1000000000000), NULL, "0",
	 "of submissions, relative; 0: none"},
};
const uint32_t partition_option_count = ARRAY_LENGTH(partition_options);

const struct hal_option_def layer_options[] = {
	{"validate", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "check every call between the core and the backend, both ways, and leaks"},
	{"report", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "validate: append what is wrong to this file, a line each (%p: process id, "
	 "%n: device number)"},
	{"fault", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "fail every n-th call: OPERATION:N:ERRNO, several with commas between"},
	{"trace", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "append every call of the backend to this file, a line of JSON each (%p: "
	 "process id, %n: device number)"},
};
const uint32_t layer_option_count = ARRAY_LENGTH(layer_options);

const struct own_section own_sections[] = {
	{"hal", core_options, ARRAY_LENGTH(core_options), false},
	{"layers", layer_options, ARRAY_LENGTH(layer_options), false},
};
const uint32_t own_section_count = ARRAY_LENGTH(own_sections);
