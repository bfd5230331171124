/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal-cuda-trial LIBRARY INDEX mask|stream|green: tries a way to partitions out on a CUDA
 * device and says what came of it, as backends/cuda/verdict.c writes it.  The CUDA
 * backend starts it, as a process that may crash or hang; it is not for people.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/internal.h"

struct hal_bk_config {
	const char *library;
	enum cu_way way;
};

static char last[512];

__attribute__((format(printf, 2, 3))) static int fail(int err, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	for (p = last; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	return -err;
}

static int64_t option_int(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "partitions") == 0)
		return (int64_t)cfg->way;
	return strcmp(key, "inflight") == 0; /* the others' first choice */
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	return strcmp(key, "library") == 0 ? cfg->library : "";
}

static void found(const struct cu_device *dev, struct cu_tried *t)
{
	if (t->way != CU_WAY_GREEN) {
		t->mask = *dev->mask;
		return;
	}
	t->units = cu_green_units(dev);
	t->per = cu_green_per(dev);
}

int main(int argc, char **argv)
{
	static const struct hal_host host = {.size = sizeof(host),
					     .abi = HAL_BACKEND_ABI,
					     .fail = fail,
					     .option_int = option_int,
					     .option_str = option_str};
	static struct cu_verdict v;
	static char text[CU_VERDICT_BYTES];
	struct hal_bk_config cfg = {.way = CU_WAY_GREEN};
	const struct hal_backend *b = hal_backend_cuda(&host);
	void *dev = NULL;
	unsigned long index;
	char *end;
	int err;

	if (argc != 4)
		return 2;
	while (strcmp(argv[3], cu_way_names[cfg.way]) != 0)
		if (++cfg.way == CU_WAY_AUTO)
			return 2;
	index = strtoul(argv[2], &end, 10);
	if (*end || !b)
		return 2;
	cfg.library = argv[1];
	err = b->cold.open(&cfg, (uint32_t)index, &dev);
	if (cu.cuInit)
		cu_verdict_of((int)index, &v);
	v.count = 1;
	v.tried[0].way = cfg.way;
	v.tried[0].err = err;
	if (err)
		snprintf(v.tried[0].why, sizeof(v.tried[0].why), "%.199s", last);
	else
		found(dev, &v.tried[0]);
	b->cold.close(dev);
	cu_verdict_write(&v, text);
	return fputs(text, stdout) < 0 || fflush(stdout) ? 1 : 0;
}
