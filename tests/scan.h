/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - one entry of a scan that is made for it, for tests that want few. */
#ifndef TESTS_SCAN_H
#define TESTS_SCAN_H

#include <hal/ext/options.h>

static inline int scan_device(uint32_t index, const char *const *options,
			      struct hal_device_info *info)
{
	struct hal_scan *scan;
	int err = hal_scan_create(options, HAL_SCAN_DEVICES, &scan);

	if (err)
		return err;
	err = hal_scan_get_device(scan, index, info);
	(void)hal_scan_destroy(scan);
	return err;
}

static inline int scan_backend(uint32_t index, const char *const *options,
			       struct hal_backend_info *info)
{
	struct hal_scan *scan;
	int err = hal_scan_create(options, HAL_SCAN_DEVICES, &scan);

	if (err)
		return err;
	err = hal_scan_get_backend(scan, index, info);
	(void)hal_scan_destroy(scan);
	return err;
}

static inline int scan_option(uint32_t index, const char *const *options,
			      struct hal_option_info *info)
{
	struct hal_scan *scan;
	int err = hal_scan_create(options, HAL_SCAN_OPTIONS, &scan);

	if (err)
		return err;
	err = hal_scan_get_option(scan, index, info);
	(void)hal_scan_destroy(scan);
	return err;
}

#endif
