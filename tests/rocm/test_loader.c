/* SPDX-License-Identifier: Apache-2.0 */
/* No HIP, another library, one that does not start or shows no device: the table of
 * tests/vendor/loader.h. */
#include "tests/vendor/loader.h"

#include <errno.h>

#include "host.h"

static const struct hal_bk_config found = {0}, none = {.library = ROCM_NONE},
				  nobody = {.library = "libamdhip64_of_nobody.so"};

static const struct loader_row rows[] = {
	LOADER_REFUSED("no_hip", &nobody, -ENODEV, "no HIP: libamdhip64_of_nobody.so",
		       NULL),
	LOADER_REFUSED("another_library", &none, -ENODEV, "has no hipGetDeviceCount",
		       NULL),
	LOADER_ONCE("no_device", &found, "hipInit: hipErrorNoDevice (100)",
		    "HAL_STAND_IN_HIP_FAIL=hipInit:1:100"),
	LOADER_ONCE("unknown_error", &found, "libamdhip64.so.5 cannot start",
		    "HAL_STAND_IN_HIP_FAIL=hipInit:1:999"),
	LOADER_REFUSED("no_gpu", &found, -ENODEV, "hipErrorInvalidDevice (101)",
		       "HAL_STAND_IN_HIP_DEVICES=0"),
	{.name = "right", .cfg = &found, .probe = 4},
	/* A device that cannot be read keeps its number. */
	{.name = "one_unusable",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_HIP_FAIL=hipDeviceGetAttribute:3:1"},
	 .probe = 4,
	 .device = "unusable: EINVAL",
	 .second = "MI210"},
};

const struct loader_vendor loader_vendor = {
	.backend = hal_backend_rocm,
	.rows = rows,
	.row_count = sizeof(rows) / sizeof(rows[0]),
	.another = {.found = &found,
		    .other = &none,
		    .devices = 4,
		    .bus_id = "0000:a4:00.0",
		    .busy = "this process already uses libamdhip64.so.5",
		    .beyond = "rocm:4: no such device: HIP reports 4"},
};
