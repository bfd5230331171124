/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of XRT that the backend makes fails in turn: tests/vendor/faults.h. */
#define _GNU_SOURCE
#include "tests/vendor/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/fpga/xrt_calls.h"
#include "host.h"

#define BANK "bank DDR[0] ddr4 0x0 16M\n"

static const char first_text[] = BANK "kernel work 1\narg d memory 4 0\narg ns ulong\n"
				      "kernel spin 1\narg d memory 64 0\n"
				      "arg hal_state memory 72 0\narg hal_resume uint\n"
				      "arg hal_stop uint\n";
static const char second_text[] = BANK "kernel twice 1\narg d memory 64 0\n"
				       "arg s memory 64 0\n";

static const char *const call_names[XRT_CALL_COUNT] = {
#define NAME(name, ...) #name,
	XRT_CALLS(NAME) XRT_CALLS_OPEN(NAME) XRT_CALLS_SHARE(NAME)
#undef NAME
};

/* A kernel of another configuration, on parts of buffers. */
static bool reconfigure(struct faults_world *w, void *kernel)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 64, 64}, {w->mem[1], 128, 64}};

	if (!faults_launch(w, kernel, args, 2))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

/* One event at most, until then; its kind, or -1: there was none. */
static int hear(struct faults_world *w, uint64_t until_ns)
{
	struct hal_bk_event e;
	const int n = w->b->hot.poll(w->dev, until_ns, &e, 1);

	w->lost |= n < 0;
	if (n < 1) {
		(void)faults_step(w, n);
		return -1;
	}
	w->inflight -= e.kind == HAL_BK_DONE;
	(void)faults_note(w, e.status, e.fault);
	return (int)e.kind;
}

/* A run that is stopped half-way, and goes on. */
static bool stop(struct faults_world *w)
{
	const struct hal_backend *b = w->b;
	const struct hal_bk_arg arg = {w->mem[2], 0, 64};
	struct hal_bk_kernel_info info;
	void *spin;
	int kind;

	if (!faults_step(w, b->cold.kernel_get(w->dev, w->prog, 1, &info, &spin)) ||
	    !faults_launch(w, spin, &arg, 1))
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

static bool load(struct faults_world *w)
{
	void *image, *twice;
	size_t size;

	image = make_image(first_text, &size);
	if (!faults_load(w, image, size, &w->prog, &w->kernel) || !stop(w))
		return false;
	image = make_image(second_text, &size);
	return faults_load(w, image, size, &w->other, &twice) && reconfigure(w, twice);
}

static const struct faults_result results[] = {
	{EIO, EIO, "EIO", FAULTS_AT_ONCE},
	{ENOMEM, ENOSPC, "ENOMEM", FAULTS_AT_ONCE},
	{EINVAL, EINVAL, "EINVAL", FAULTS_AT_ONCE},
	{ENODEV, ENODEV, "ENODEV", FAULTS_LATER},
	{EPERM, EPERM, "EPERM", FAULTS_AT_ONCE},
	{EBUSY, EBUSY, "EBUSY", FAULTS_AT_ONCE},
	{EACCES, EPERM, "EACCES", FAULTS_AT_ONCE},
};

/* Made again: what is given back is nobody's error, and a slot that is broken is opened
 * once more when it is wanted.  The first time, for a partition, is told: strict_start.
 */
static const char *const silent[] = {"xrtRunClose",
				     "xrtKernelClose",
				     "xrtDeviceClose",
				     "xrtBOFree",
				     "xrtKernelWriteRegister",
				     "xrtPLKernelOpenExclusive",
				     "xrtRunOpen",
				     NULL};

static struct hal_bk_config single = {.clock = 1, .inflight = 1};
static struct hal_bk_config several = {.clock = 1, .inflight = 8, .hang_ms = 1000};
static const struct faults_way ways[] = {
	{"one_at_a_time", &single, NULL},
	{"several", &several, NULL},
};

static bool prepare(struct faults_fake *fake)
{
	single.xclbin = several.xclbin = make_file(first_text);
	return FAULTS_FIND(fake, stand_in());
}

const struct faults_vendor faults_vendor = {
	.name = "fpga",
	.backend = hal_backend_fpga,
	.prepare = prepare,
	.devices = 2,
	.part = {.units = 1, .rows = 1, .cols = 1, .color_mask = 1},
	.bytes = 4096,
	.queue_first = true,
	.strict_start = true,
	.load = load,
	.work_ns = 100000,
	.calls = call_names,
	.call_count = XRT_CALL_COUNT,
	.results = results,
	.result_count = sizeof(results) / sizeof(results[0]),
	.silent = silent,
	.ways = ways,
	.way_count = sizeof(ways) / sizeof(ways[0]),
};
