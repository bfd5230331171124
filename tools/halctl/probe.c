/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - halctl probe: which memory channel each granule of a device lies on, found by
 * the time of loads.
 */
#include "halctl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/color_map.h"
#include "loads.h"
#include "picture.h"
#include "prober_npu.h"

/* ---- what was found --------------------------------------------------------------------- */

struct found {
	struct discover_result r;
	uint64_t device_cycles; /* all that the device ran, between tests, too */
	double seconds;
};

static int print_json(const struct probe_npu *d, const struct found *f, int verified)
{
	const struct color_map *m = f->r.map;
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_str(o, "device", d->info.name);
	out_str(o, "verified", verified ? "yes" : "no");
	if (m != NULL) {
		out_str(o, "kind", color_map_kind(m));
		out_u64(o, "channels", m->channels);
		out_u64(o, "granule_bytes", m->granule);
		out_u64(o, "checked", m->tests);
		out_u64(o, "wrong", m->bad);
		out_real(o, "wrong_at_most", m->bound);
	}
	out_u64(o, "attempts", f->r.attempts);
	out_u64(o, "samples", f->r.samples);
	out_u64(o, "tests", f->r.tests);
	out_u64(o, "loads", f->r.loads);
	out_u64(o, "cycles", f->r.cycles);
	out_u64(o, "device_cycles", f->device_cycles);
	out_real(o, "seconds", f->seconds);
	out_str(o, "loads_by", probe_npu_loads_by(d));
	out_real(o, "slow_of_two", f->r.p0);
	out_real(o, "slow_of_one", f->r.p1);
	out_record_end(o);
	return out_finish(o);
}

static void print_rule(const struct color_map *m)
{
	for (uint32_t i = 0; m->kind != COLOR_MAP_TABLE && i < m->mask_count; i++)
		printf("mask %u         0x%llx\n", i, (unsigned long long)m->mask[i]);
	if (m->kind != COLOR_MAP_XORMOD)
		return;
	printf("modulo         %u: digits of granule >> %u, weights", m->q, m->shift);
	for (uint32_t j = 0; j < m->digits; j++)
		printf(" %u", m->weight[j]);
	printf("\n");
}

static void print_text(const struct probe_npu *d, const struct found *f, int verified)
{
	const struct color_map *m = f->r.map;

	printf("device         %s\n", d->info.name);
	if (m != NULL) {
		printf("channels       %u\n", m->channels);
		printf("granule        %u bytes\n", m->granule);
		printf("kind           %s\n", color_map_kind(m));
		print_rule(m);
		printf("verified       %s: %llu of %llu fresh granules wrong, at most "
		       "%.2f %% (95 %%)\n",
		       verified ? "yes" : "no", (unsigned long long)m->bad,
		       (unsigned long long)m->tests, 100 * m->bound);
	} else {
		printf("verified       no: neither a rule nor a table was found\n");
	}
	printf("attempts       %u, from %u samples\n", f->r.attempts, f->r.samples);
	printf("tests          %llu of %llu loads, %llu cycles; device total %llu "
	       "cycles\n",
	       (unsigned long long)f->r.tests, (unsigned long long)f->r.loads,
	       (unsigned long long)f->r.cycles, (unsigned long long)f->device_cycles);
	printf("slow           %.3f of pairs on two channels, %.3f of pairs on one\n",
	       f->r.p0, f->r.p1);
	printf("time           %.1f s, loads by %s\n", f->seconds, probe_npu_loads_by(d));
}

/* Whether path can be written: before the search, which takes minutes. */
static int check_path(const char *path)
{
	char folder[PATH_MAX];
	const char *slash;
	int fd;

	if (path == NULL)
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		return close(fd);
	if (errno != ENOENT)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	slash = strrchr(path, '/');
	if (slash == NULL)
		snprintf(folder, sizeof(folder), ".");
	else
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
	if (access(folder, W_OK | X_OK) != 0)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	return 0;
}

static int write_files(const struct halctl *ctl, const struct probe_npu *d,
		       struct color_map *map)
{
	char why[COLOR_MAP_WHY];
	int rc = 0;

	color_map_device(map, &d->info);
	if (ctl->map != NULL && color_map_write(map, ctl->map, why) != 0)
		rc = tool_fail("%s", why);
	if (rc == 0 && ctl->picture != NULL)
		rc = picture_of_map(map, ctl->picture);
	return rc;
}

/* ---- halctl probe ------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(int err, const struct found *f)
{
	switch (err) {
	case -EBUSY:
		return tool_fail(
			"probe: the device is too busy: %.0f %% of the pairs on two "
			"channels appear to be on one, and %.0f %% of those on one",
			100 * f->r.p0, 100 * f->r.p1);
	case -ENOENT:
		return tool_fail("probe: no map of the device could be verified");
	case -EINVAL:
		return tool_fail(
			"probe: the device has fewer than %u granules, which is too few",
			DISCOVER_LEAST);
	default:
		return tool_fail("probe: %s",
				 err == -ENOMEM ? "out of memory" : hal_last_error());
	}
}

int halctl_probe(const struct halctl *ctl)
{
	struct probe_npu d = {0};
	struct found f = {0};
	int rc, err;

	if (ctl->verify != NULL)
		return halctl_isolate(ctl);
	if (check_path(ctl->map) != 0 || check_path(ctl->picture) != 0)
		return TOOL_FAILED;
	rc = load_open(ctl, &d.dev);
	if (rc == 0)
		rc = probe_npu_open(&d);
	if (rc == 0) {
		uint64_t from = hal_device_get_time(d.dev);
		double begin = now();

		err = probe_npu_find(&d, ctl->seed, &f.r);
		f.device_cycles = hal_device_get_time(d.dev) - from;
		f.seconds = now() - begin;
		if (err != 0 && err != -ENOENT)
			rc = failed(err, &f);
		else if (ctl->json)
			rc = print_json(&d, &f, err == 0);
		else
			print_text(&d, &f, err == 0);
		if (rc == 0 && err == -ENOENT)
			rc = failed(err, &f);
		if (rc == 0)
			rc = write_files(ctl, &d, f.r.map);
	}
	color_map_free(f.r.map);
	err = probe_npu_close(&d);
	if (err == 0 && d.dev != NULL)
		err = hal_close(d.dev);
	return err != 0 ? tool_fail_hal() : rc;
}
