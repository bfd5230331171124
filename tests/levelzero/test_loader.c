/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong before there is a device, and which devices there are: the table of
 * tests/vendor/loader.h. */
#define _GNU_SOURCE
#include "tests/vendor/loader.h"

#include <errno.h>

#include "host.h"

#define FIRST_DEVICE "HAL stand-in GPU, 4 tiles"

static const struct hal_bk_config found = {0}, engines = {.units = 3},
				  nowhere = {.loader = "/nowhere/libze_loader.so.1"},
				  old = {.loader = OLD_LOADER};

/* If that call fails, device 0 of count cannot be used; others keep their units. */
#define UNUSABLE(call, count, ...)                                                       \
	{                                                                                \
		.name = "unusable." #call, .cfg = &found,                                \
		.set = {"HAL_STAND_IN_ZE_FAIL=" #call ":#:0x70000002"}, .nth = 16,       \
		.probe = count, .units = {__VA_ARGS__}, .device = "unusable: ENOMEM"     \
	}
#define ENGINES(count, ...)                                                              \
	{                                                                                \
		.name = "engines." #count, .cfg = &engines,                              \
		.set = {"ZE_AFFINITY_MASK=1,3", "HAL_STAND_IN_ZE_ENGINES=" #count},      \
		.probe = 2, .units = {                                                   \
			__VA_ARGS__                                                      \
		}                                                                        \
	}
/* With the variables in parentheses, the devices have these units. */
#define SET(...) __VA_ARGS__
#define SHOWS(name_, set_, ...)                                                          \
	{                                                                                \
		.name = name_, .cfg = &found, .set = {SET set_},                         \
		.probe = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),           \
		.units = {                                                               \
			__VA_ARGS__                                                      \
		}                                                                        \
	}

static const struct loader_row rows[] = {
	LOADER_REFUSED("no_loader", &nowhere, -ENODEV,
		       "no loader: /nowhere/libze_loader.so.1", NULL),
	LOADER_REFUSED("old_loader", &old, -ENODEV, "too old: it has no zeDriverGet",
		       NULL),
	LOADER_REFUSED("no_driver", &found, -ENODEV,
		       "zeInit: ZE_RESULT_ERROR_UNINITIALIZED (0x78000001)",
		       "ZE_ENABLE_ALT_DRIVERS=/nowhere/libze.so"),
	/* UNINITIALIZED of zeInit (1.8), UNSUPPORTED_FEATURE of zeDriverGet (1.32). */
	LOADER_REFUSED("not_a_driver", &found, -ENODEV, "ZE_RESULT_ERROR_UN",
		       "ZE_ENABLE_ALT_DRIVERS=" OLD_LOADER),
	{.name = "init_fails",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_ZE_FAIL=zeInit:1:0x70000001"},
	 .probe = LOADER_FAILS,
	 .texts = {"zeInit: ZE_RESULT_"}},
	/* The calls that a loader makes by itself come first, and how many those are is
	 * its own business: one of the first calls of that name is ours.  It fails once.
	 */
	{.name = "no_drivers_told",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_ZE_FAIL=zeDriverGet:#:0x70000002"},
	 .nth = 16,
	 .probe = -ENOMEM,
	 .once = true,
	 .texts = {"zeDriverGet"}},
	/* A driver that does not tell its devices stands for one that cannot be used. */
	UNUSABLE(zeDriverGetApiVersion, 1, 0),
	UNUSABLE(zeDeviceGet, 1, 0),
	/* A device that answers with an error keeps its number and hides no other. */
	UNUSABLE(zeDeviceGetProperties, 4, 0, 2, 4, 1),
	UNUSABLE(zeDeviceGetSubDevices, 4, 0, 2, 4, 1),
	UNUSABLE(zeDeviceGetMemoryProperties, 4, 0, 2, 4, 1),
	{.name = "no_pci_address",
	 .cfg = &found,
	 .set = {"HAL_STAND_IN_ZE_FAIL=zeDevicePciGetPropertiesExt:1:0x78000001"},
	 .probe = 4,
	 .units = {4, 2, 4, 1},
	 .device = FIRST_DEVICE,
	 .bus_id = "levelzero:0"},
	/* A driver that says nothing of its device, before or behind one that does. */
	SHOWS("null_driver_behind", ("ZE_ENABLE_ALT_DRIVERS=" STAND_IN "," NULL_DRIVER),
	      4, 2, 4, 1),
	SHOWS("null_driver_before", ("ZE_ENABLE_ALT_DRIVERS=" NULL_DRIVER "," STAND_IN),
	      4, 2, 4, 1),
	/* Its programs are no modules: whoever has nothing else is told so. */
	LOADER_REFUSED("npu_alone", &found, -ENODEV,
		       "HAL stand-in NPU is of type 5, which does not support modules",
		       "ZE_AFFINITY_MASK=4"),
	/* More engines than there is room for: the rest are left alone.  Of the 2 tiles
	 * of 2 groups, and of the 1 tile of 1 group. */
	ENGINES(63, 64, 63),
	ENGINES(64, 64, 64),
	ENGINES(65, 64, 64),
	ENGINES(16, 64, 16),
	ENGINES(15, 60, 15),
	LOADER_REFUSED("old_driver", &found, -ENODEV,
		       "has API version 1.1; 1.2 is needed",
		       "HAL_STAND_IN_ZE_VERSION=1.1"),
	/* Tiles, or engines where there is one tile. */
	SHOWS("affinity.none", ("ZE_AFFINITY_MASK"), 4, 2, 4, 1),
	SHOWS("affinity.device", ("ZE_AFFINITY_MASK=1"), 2),
	SHOWS("affinity.tile", ("ZE_AFFINITY_MASK=0.1"), 4),
	SHOWS("affinity.tiles", ("ZE_AFFINITY_MASK=0.0,0.2,0.3,3"), 3, 1),
	SHOWS("affinity.tile_and_device", ("ZE_AFFINITY_MASK=1.0,2"), 4, 4),
	/* Each tile a device: those of the 4 and the 2, and the two that have one. */
	SHOWS("flat", ("ZE_FLAT_DEVICE_HIERARCHY=FLAT"), 4, 4, 4, 4, 4, 4, 4, 1),
	SHOWS("combined", ("ZE_FLAT_DEVICE_HIERARCHY=COMBINED"), 4, 4, 4, 4, 4, 4, 4, 1),
	SHOWS("composite", ("ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"), 4, 2, 4, 1),
	SHOWS("flat_affinity", ("ZE_FLAT_DEVICE_HIERARCHY=FLAT", "ZE_AFFINITY_MASK=1,7"),
	      4, 1),
	{.name = "nothing_visible",
	 .cfg = &found,
	 .set = {"ZE_AFFINITY_MASK=9"},
	 .probe = -ENODEV},
	{.name = "two_drivers",
	 .cfg = &found,
	 .set = {"ZE_ENABLE_ALT_DRIVERS=" STAND_IN "," STAND_IN_B},
	 .probe = 8,
	 .units = {4, 2, 4, 1, 4, 2, 4, 1},
	 .device = FIRST_DEVICE},
};

const struct loader_vendor loader_vendor = {
	.backend = hal_backend_levelzero,
	.rows = rows,
	.row_count = sizeof(rows) / sizeof(rows[0]),
	.another = {.found = &found,
		    .other = &old,
		    .devices = 4,
		    .bus_id = "ffff:41:00.0",
		    .busy = "this process already uses libze_loader.so.1",
		    .beyond = "levelzero:4"},
};
