/* SPDX-License-Identifier: Apache-2.0 */
/* The program of each bench_submit: see bench.h. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct hal_host host; /* of the vendor's host.c */
extern char host_text[512];

int bench_check(int err)
{
	if (err >= 0)
		return err;
	fprintf(stderr, "%d %s\n", err, host_text);
	exit(1);
}

void bench_result(uint32_t result)
{
	if (!result)
		return;
	fprintf(stderr, "the vendor's library returns 0x%x\n", result);
	exit(1);
}

void bench_launch(struct bench_rig *r, long n)
{
	const struct hal_bk_hot *hot = &r->b->hot;
	struct hal_bk_event ev;

	while (n--) {
		bench_check(hot->submit(r->dev, r->queue, &r->launch));
		if (hot->doorbell)
			hot->doorbell(r->dev);
		while (bench_check(hot->poll(r->dev, UINT64_MAX, &ev, 1)) == 0)
			;
		bench_check(ev.status);
	}
}

/* Submit up to most launches at a time, until n have ended; return the calls. */
static uint64_t count_calls(struct bench_rig *r, long n, long most)
{
	const uint64_t before = bench_vendor.calls();
	const struct hal_bk_hot *hot = &r->b->hot;
	struct hal_bk_event ev[64];
	long given = 0, done = 0;
	int err;

	while (done < n) {
		for (err = 0; !err && given < n && given - done < most; given += !err)
			err = hot->submit(r->dev, r->queue, &r->launch);
		if (err != -EAGAIN)
			bench_check(err);
		if (hot->doorbell)
			hot->doorbell(r->dev);
		done += bench_check(hot->poll(r->dev, UINT64_MAX, ev, 64));
	}
	return bench_vendor.calls() - before;
}

void bench_calls(struct bench_rig *r, long n)
{
	const char *name = bench_vendor.name;
	const double all = (double)count_calls(r, n, n),
		     alone = (double)count_calls(r, n, 1);

	printf("figure %s.launch.driver_calls %.3f\n", name, all / (double)n);
	printf("figure %s.launch.alone.driver_calls %.3f\n", name, alone / (double)n);
}

static void begin(struct bench_rig *r, const struct hal_bk_config *cfg)
{
	const struct bench_vendor *v = &bench_vendor;
	const struct hal_bk_colors colors = {.mask = v->color_mask};
	const struct hal_bk_partition_desc desc = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = v->color_mask};
	const struct hal_bk_cold *cold = &r->b->cold;
	struct hal_bk_kernel_info info;
	uint64_t bytes;
	size_t size;
	void *image = v->image(&size);

	bench_check(cold->open(cfg, 0, &r->dev));
	bench_check(cold->partition_create(r->dev, &desc, &r->part));
	bench_check(cold->mem_alloc(r->dev, r->part, 4, v->color_mask ? &colors : NULL, 0,
				    &r->mem));
	bench_check(cold->program_load(r->dev, image, size, &r->prog));
	free(image);
	if (cold->program_bind)
		bench_check(cold->program_bind(r->dev, r->prog, r->part, &bytes));
	bench_check(cold->kernel_get(r->dev, r->prog, 0, &info, &r->kernel));
	bench_check(cold->queue_create(r->dev, r->part, 0, &r->queue));
	r->args[0] = (struct hal_bk_arg){.mem = r->mem, .bytes = 4};
	r->args[1] = (struct hal_bk_arg){.value = 100};
	r->launch = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
					.launch = {.kernel = r->kernel,
						   .args = r->args,
						   .arg_count = 2,
						   .groups = {1, 1, 1}}};
}

static void end(struct bench_rig *r)
{
	const struct hal_bk_cold *cold = &r->b->cold;

	bench_check(cold->queue_destroy(r->dev, r->queue));
	bench_check(cold->program_unload(r->dev, r->prog));
	bench_check(cold->mem_free(r->dev, r->mem));
	bench_check(cold->partition_destroy(r->dev, r->part));
	cold->close(r->dev);
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[2] : "";
	const long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	const struct bench_mode *mode = bench_vendor.modes;
	struct bench_rig r = {.b = bench_vendor.backend(&host)};

	while (mode->name && strcmp(mode->name, name) != 0)
		mode++;
	if (!mode->name) {
		fprintf(stderr, "%s: unknown mode; the modes are:", name);
		for (mode = bench_vendor.modes; mode->name; mode++)
			fprintf(stderr, " '%s'", mode->name);
		fputc('\n', stderr);
		return 2;
	}
	begin(&r, mode->cfg);
	mode->run(&r, n);
	end(&r);
	printf("%ld launches\n", n);
	return 0;
}
