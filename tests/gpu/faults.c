/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a GPU's library fails in turn. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct hal_backend *b;

static bool is_one_of(const char *call, const char *const *names)
{
	while (*names && strcmp(call, *names) != 0)
		names++;
	return *names != NULL;
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct faults_outcome run(const struct hal_bk_config *cfg)
{
	const struct gpu_faults *f = &gpu_faults;
	const struct hal_bk_partition_desc part = {.units = 1, .rows = 1, .cols = 1};
	struct hal_device_info info[GPU_DEVICES_MOST];
	struct faults_world w = {.b = b};
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < f->devices; i++)
		info[i].size = sizeof(info[i]);
	ok = faults_step(&w, b->cold.probe(cfg, info, f->devices));
	for (i = 0; ok && i < f->devices; i++)
		ok = faults_step(&w,
				 strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	ok = ok && faults_step(&w, b->cold.open(cfg, f->device, &w.dev)) &&
	     faults_step(&w, b->cold.get_info(w.dev, info)) &&
	     faults_step(&w, b->cold.partition_create(w.dev, &part, &w.part)) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[0])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL,
					       HAL_BUFFER_MAPPABLE, &w.mem[1])) &&
	     faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 64, NULL, 0, &w.mem[2])) &&
	     faults_step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue)) &&
	     f->load(&w) && faults_compute(&w, 20000000) &&
	     (!f->more || !cfg->partitions || f->more(&w));
	(void)ok;
	faults_put_away(&w);
	return w.first;
}

static bool silent(const char *call, bool last, bool at_close)
{
	(void)last;
	return is_one_of(call, gpu_faults.silent) ||
	       (at_close && is_one_of(call, gpu_faults.retried));
}

/* A loss is told by whatever call comes next. */
static bool told_later(const char *call, const struct faults_result *r, bool is_silent)
{
	(void)call;
	(void)is_silent;
	return r->err == EIO;
}

static bool left_out(const char *call)
{
	return is_one_of(call, gpu_faults.once);
}

static bool elsewhere(const char *call)
{
	return left_out(call) || is_one_of(call, gpu_faults.elsewhere);
}

static struct faults all = {
	.most = UINT64_MAX,
	.run = run,
	.left_out = left_out,
	.silent = silent,
	.told_later = told_later,
};

static void each_call(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < gpu_faults.way_count; i++)
		faults_all(&all, &gpu_faults.ways[i]);
}

/* The calls of these runs are all there are. */
static void every_call(void **state)
{
	const struct hal_bk_config *cfgs[8];
	uint32_t i;

	(void)state;
	for (i = 0; i < gpu_faults.way_count; i++)
		cfgs[i] = &gpu_faults.ways[i];
	faults_cover(&all, cfgs, gpu_faults.way_count, elsewhere);
}

static int setup(void **state)
{
	const struct gpu_stand_in *s = stand_in();

	(void)state;
	b = gpu_faults.backend(&host);
	if (!b || !s)
		return -1;
	all.b = b;
	all.names = gpu_faults.calls;
	all.name_count = gpu_faults.call_count;
	all.results = gpu_faults.results;
	all.result_count = gpu_faults.result_count;
	all.break_call = s->break_call;
	all.armed = s->armed;
	all.calls = s->calls;
	all.live = s->live;
	all.misuse = s->misuse;
	all.reset = s->reset;
	return 0;
}

bool gpu_faults_load(struct faults_world *w, void *image, size_t size)
{
	struct hal_bk_kernel_info info;
	const int err = w->b->cold.program_load(w->dev, image, size, &w->prog);

	free(image);
	return faults_step(w, err) &&
	       faults_step(w,
			   w->b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->kernel));
}

bool gpu_faults_move(struct faults_world *w)
{
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 3, .rows = 1, .cols = 3};
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, 1000, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 8};
	int i;

	cmd.launch.kernel = w->kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (!faults_submit(w, &cmd) ||
	    !faults_step(w, w->b->hot.resize(w->dev, w->part, &to, 9)))
		return false;
	w->inflight++; /* QUIET */
	if (!faults_submit(w, &cmd))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call),
		cmocka_unit_test(every_call),
	};
	int rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure %s.faults.calls %u\n", gpu_faults.name, faults_made);
	printf("figure %s.faults.bad %u\n", gpu_faults.name, faults_bad);
	return rc;
}
