/* SPDX-License-Identifier: Apache-2.0 */
/* A core of a few lines. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char host_text[512];

__attribute__((format(printf, 2, 3))) static int host_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(host_text, sizeof(host_text), fmt, ap);
	va_end(ap);
	return -err;
}

static int64_t option_int(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "clock") == 0)
		return cfg->clock;
	if (strcmp(key, "hang_ms") == 0)
		return cfg->hang_ms;
	return cfg->inflight ? cfg->inflight : 2;
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "library") == 0)
		return cfg->library ? cfg->library : "libxrt_coreutil.so.2";
	if (strcmp(key, "cards") == 0)
		return cfg->cards ? cfg->cards : "/sys/bus/pci/drivers/xocl";
	return cfg->xclbin ? cfg->xclbin : "";
}

const struct hal_host host = {
	.size = sizeof(host),
	.abi = HAL_BACKEND_ABI,
	.fail = host_fail,
	.option_int = option_int,
	.option_str = option_str,
};

const struct fpga_stand_in *stand_in(void)
{
	static const struct fpga_stand_in *found;
	void *handle = found ? NULL : dlopen("libxrt_coreutil.so.2", RTLD_NOW);

	if (handle)
		found = dlsym(handle, FPGA_STAND_IN_SYMBOL);
	return found;
}

void *make_image(const char *text, size_t *size)
{
	char why[256];
	void *file;

	if (!mkxclbin(text, &file, size, why, sizeof(why)))
		return file;
	fprintf(stderr, "mkxclbin: %s\n", why);
	abort();
}

static char *names[16];
static pid_t process;

static void remove_files(void)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && names[i]; i++) {
		if (process == getpid())
			unlink(names[i]);
		free(names[i]);
	}
}

const char *make_file(const char *text)
{
	char *name = strdup("/tmp/hal_fpga_XXXXXX");
	size_t size, i = 0;
	void *image = make_image(text, &size);
	int fd = mkstemp(name);

	if (!process && !atexit(remove_files))
		process = getpid();
	while (names[i])
		i++;
	if (fd < 0 || write(fd, image, size) != (ssize_t)size ||
	    i + 1 >= sizeof(names) / sizeof(names[0]))
		abort();
	close(fd);
	free(image);
	names[i] = name;
	return name;
}
