/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal/ext/options.h - list the configuration options and where their values come from.
 *
 *   struct hal_option_info o = HAL_INIT(hal_option_info);
 *
 *   hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan);
 *   for (uint32_t i = 0; hal_scan_get_option(scan, i, &o) == 0; i++)
 *           printf("%s.%s = %s\n", o.section, o.key, o.value);
 *   hal_scan_destroy(scan);
 */
#ifndef HAL_EXT_OPTIONS_H
#define HAL_EXT_OPTIONS_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hal_scan_create, what: the options of the core, of all backends and policies. */
#define HAL_SCAN_OPTIONS (UINT32_C(1) << 1)

/* One option, its value and where that came from.  A value of more than 4095 characters
 * is refused where it is given. */
struct hal_option_info {
	uint32_t size;
	uint32_t reserved;
	char section[32]; /* "hal", "backend.npu" ... */
	char key[32];
	char type[16];    /* "int", "size", "bool", "enum", "string" */
	char range[64];   /* "1..64", "real|virtual" */
	char def[64];     /* default */
	char value[4096]; /* in force for the next hal_open */
	char source[128]; /* "default", "hal.conf:12", "environment HAL_HAL_DEVICE" */
	char help[160];
};

/* Describe option number index, counted from 0: of section hal, policy, then each
 * backend.
 * info: set .size.  Values are those that hal_open would see with the options of scan.
 * Errors: handle; EINVAL: scan was created without HAL_SCAN_OPTIONS, info is NULL or
 * info->size is too small.  ERANGE: index is past the last.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_scan_get_option(const struct hal_scan *scan, uint32_t index,
				struct hal_option_info *info);

#ifdef __cplusplus
}
#endif
#endif
