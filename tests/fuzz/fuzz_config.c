/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - any bytes as hal.conf: each is read, or refused with a text. */
#include "fuzz.h"

#include <hal/ext/options.h>
#include <hal/hal.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const seeds[] = {
	"[hal]\ndevice = ref\n",
	"; comment\n[hal]\ndevice = npu:0?clock=virtual\n\n[backend.npu]\nrows = 8\n",
	"[layers]\nvalidate = 1\nfault = submit:5:EIO,poll:3:EIO\n",
	"[partition \"camera\"]\nrow = 0\ncol = 0\nrows = 4\ncols = 4\nmemory = 1M\n",
	"[policy]\nname = priority\n[backend.ref]\nunits = 0x10\n",
	"\xef\xbb\xbf[hal]\nqueue_depth = 64\n",
	"[hal] queue_depth = 64\n",
	"[hal] ; comment\r\ninflight = 4",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	/* The environment would override the file. */
	return setenv("HAL_CONFIG", "/dev/null", 1);
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	size_t size;

	if (index >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	size = strlen(seeds[index]);
	if (size > max)
		return 0;
	memcpy(data, seeds[index], size);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hal_option_info info = HAL_INIT(hal_option_info);
	char option[64];
	const char *options[] = {option, NULL};
	int fd = memfd_create("hal.conf", MFD_CLOEXEC);
	struct hal_scan *scan;
	int rc;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(option, sizeof(option), "hal.config=/proc/self/fd/%d", fd);
	rc = hal_scan_create(options, HAL_SCAN_OPTIONS, &scan);
	if (rc == 0) {
		for (uint32_t i = 0; rc == 0; i++)
			rc = hal_scan_get_option(scan, i, &info);
		(void)hal_scan_destroy(scan);
	}
	if (rc != -ENOENT && hal_last_error()[0] == '\0')
		abort(); /* refused without a reason */
	close(fd);
	return 0;
}
