/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of XRT that the backend makes fails in turn; tests/fakes/faults.h. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/fpga/xrt_calls.h"
#include "tests/fakes/faults.h"

#define BANK "bank DDR[0] ddr4 0x0 16M\n"

static const char first_text[] = BANK "kernel work 1\narg d memory 4 0\narg ns ulong\n"
				      "kernel spin 1\narg d memory 64 0\n"
				      "arg hal_state memory 72 0\narg hal_resume uint\n"
				      "arg hal_stop uint\n";
static const char second_text[] = BANK "kernel twice 1\narg d memory 64 0\n"
				       "arg s memory 64 0\n";

static const struct hal_backend *b;
static const char *first_file;

static const char *const call_names[XRT_CALL_COUNT] = {
#define NAME(name, ...) #name,
	XRT_CALLS(NAME) XRT_CALLS_OPEN(NAME)
#undef NAME
};

static bool load(struct faults_world *w, const char *text, void **prog, void **kernel)
{
	struct hal_bk_kernel_info info;
	size_t size;
	void *image = make_image(text, &size);
	int err = b->cold.program_load(w->dev, image, size, prog);

	free(image);
	return faults_step(w, err) &&
	       faults_step(w, b->cold.kernel_get(w->dev, *prog, 0, &info, kernel));
}

/* A kernel of another configuration, on parts of buffers. */
static bool reconfigure(struct faults_world *w, void *kernel)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 64, 64}, {w->mem[1], 128, 64}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 8};
	int i;

	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (!faults_submit(w, &cmd))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

/* One event at most, until then; its kind, or -1: there was none. */
static int hear(struct faults_world *w, uint64_t until_ns)
{
	struct hal_bk_event e;
	const int n = b->hot.poll(w->dev, until_ns, &e, 1);

	w->lost |= n < 0;
	if (n < 1) {
		(void)faults_step(w, n);
		return -1;
	}
	w->inflight -= e.kind == HAL_BK_DONE;
	if (e.status && !w->first.err) {
		w->first.err = e.status;
		snprintf(w->first.text, sizeof(w->first.text), "%s", e.fault);
	}
	return (int)e.kind;
}

/* A run that is stopped half-way, and goes on. */
static bool stop(struct faults_world *w)
{
	const struct hal_bk_arg arg = {w->mem[2], 0, 64};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 9};
	struct hal_bk_kernel_info info;
	int i, kind;

	if (!faults_step(
		    w, b->cold.kernel_get(w->dev, w->prog, 1, &info, &cmd.launch.kernel)))
		return false;
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (!faults_submit(w, &cmd))
		return false;
	b->hot.doorbell(w->dev);
	(void)hear(w, b->hot.now(w->dev) + 1000000);
	if (w->first.err ||
	    !faults_step(w, b->hot.suspend(w->dev, w->queue, HAL_SUSPEND_FOLD, 10)))
		return false;
	do
		kind = hear(w, UINT64_MAX);
	while (kind == HAL_BK_DONE);
	if (w->lost || kind != HAL_BK_QUIET ||
	    !faults_step(w, b->hot.resume(w->dev, w->queue)))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

/* Everything the backend can do, once; the first thing that goes wrong ends it. */
static struct faults_outcome run(const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc part = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = 1};
	const struct hal_bk_colors colors = {.mask = 1};
	struct hal_device_info info[2];
	struct faults_world w = {.b = b};
	void *second = NULL, *twice = NULL;
	uint32_t i;
	const bool will_fail = stand_in()->armed() != 0;
	bool ok;

	memset(info, 0, sizeof(info));
	for (i = 0; i < 2; i++)
		info[i].size = sizeof(info[i]);
	ok = faults_step(&w, b->cold.probe(cfg, info, 2)) &&
	     faults_step(&w, b->cold.open(cfg, 0, &w.dev)) &&
	     faults_step(&w, b->cold.get_info(w.dev, info)) &&
	     faults_step(&w, b->cold.partition_create(w.dev, &part, &w.part)) &&
	     faults_step(&w, will_fail && !stand_in()->armed() ? -ENOTRECOVERABLE : 0) &&
	     faults_step(&w, b->cold.queue_create(w.dev, w.part, 0, &w.queue));
	for (i = 0; ok && i < 3; i++)
		ok = faults_step(&w, b->cold.mem_alloc(w.dev, w.part, 4096, &colors, 0,
						       &w.mem[i]));
	ok = ok && load(&w, first_text, &w.prog, &w.kernel) && stop(&w) &&
	     load(&w, second_text, &second, &twice) && reconfigure(&w, twice) &&
	     faults_compute(&w, 100000);
	(void)ok;
	if (second) {
		faults_run_dry(&w);
		faults_step(&w, b->cold.program_unload(w.dev, second));
	}
	faults_put_away(&w);
	return w.first;
}

static const struct faults_result results[] = {
	{EIO, EIO, "EIO"},          {ENOMEM, ENOSPC, "ENOMEM"},
	{EINVAL, EINVAL, "EINVAL"}, {ENODEV, ENODEV, "ENODEV"},
	{EPERM, EPERM, "EPERM"},    {EBUSY, EBUSY, "EBUSY"},
	{EACCES, EPERM, "EACCES"},
};

/* Made again: what is given back is nobody's error, and a slot that is broken is opened
 * once more when it is wanted.  The first time, for a partition, is told: run. */
static bool silent(const char *call, bool last, bool at_close)
{
	static const char *const again[] = {
		"xrtRunClose", "xrtKernelClose",         "xrtDeviceClose",
		"xrtBOFree",   "xrtKernelWriteRegister", "xrtPLKernelOpenExclusive",
		"xrtRunOpen"};
	size_t i;

	(void)last;
	(void)at_close;
	for (i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		if (strcmp(call, again[i]) == 0)
			return true;
	return false;
}

/* A loss is told by whatever call comes next. */
static bool told_later(const char *call, const struct faults_result *r, bool is_silent)
{
	(void)call;
	(void)is_silent;
	return r->result == ENODEV;
}

static bool none(const char *call)
{
	(void)call;
	return false;
}

static struct faults all = {
	.names = call_names,
	.name_count = XRT_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.most = UINT64_MAX,
	.run = run,
	.left_out = none,
	.silent = silent,
	.told_later = told_later,
};

static void one_at_a_time(void **state)
{
	const struct hal_bk_config cfg = {
		.xclbin = first_file, .clock = 1, .inflight = 1};

	(void)state;
	faults_all(&all, &cfg);
}

static void several(void **state)
{
	const struct hal_bk_config cfg = {
		.xclbin = first_file, .clock = 1, .inflight = 8, .hang_ms = 1000};

	(void)state;
	faults_all(&all, &cfg);
}

/* The calls of the runs above are all there are. */
static void every_call(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const struct hal_bk_config *const cfgs[] = {&cfg};

	(void)state;
	faults_cover(&all, cfgs, 1, none);
}

static int setup(void **state)
{
	const struct fpga_stand_in *s = stand_in();

	(void)state;
	b = hal_backend_fpga(&host);
	first_file = make_file(first_text);
	if (!b || !s)
		return -1;
	all.b = b;
	all.break_call = s->break_call;
	all.armed = s->armed;
	all.calls = s->calls;
	all.live = s->live;
	all.misuse = s->misuse;
	all.reset = s->reset;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(several),
		cmocka_unit_test(every_call),
	};
	int rc = cmocka_run_group_tests(tests, setup, NULL);

	printf("figure fpga.faults.calls %u\n", faults_made);
	printf("figure fpga.faults.bad %u\n", faults_bad);
	return rc;
}
