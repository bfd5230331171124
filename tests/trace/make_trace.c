/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_trace.c - make_trace TARGET FILE: has a device do everything that is in a trace,
 * writes one to FILE ("-": none) and says what must be in it:
 *
 *   ran N NAME       commands of that name
 *   macs N NAME      what the machine has counted for a partition (npu)
 *   now N            device time at the end
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>
#include <hal/npu.h>

#include "../conformance/conformance.h"

#define BYTES 8192u
#define FILLS 20u /* more than a submission's ring takes at once */

static const struct conf_pack *packs[4];
static uint32_t pack_count;

struct world {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *prog;
	struct hal_kernel *copy, *gemm, *spin;
	struct hal_partition *first, *second;
	struct hal_queue *queue[3]; /* two of the first, one of the second */
	struct hal_buffer *buf[4];  /* three of the first, one of the second */
	void *image;
	const struct conf_pack *pack;
};

void conf_register(const struct conf_pack *pack)
{
	packs[pack_count++] = pack;
}

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, hal_last_error());
	exit(1);
}

#define MUST(call) must((call), #call)

static void open_world(struct world *w, const char *target)
{
	static const char *const options[] = {"hal.inflight=4",
					      "hal.partition_inflight=6", NULL};
	size_t size = 0;

	w->info.size = sizeof(w->info);
	MUST(hal_open(target, options, &w->dev));
	MUST(hal_device_get_info(w->dev, &w->info));
	for (uint32_t i = 0; i < pack_count; i++)
		if (strcmp(packs[i]->backend, w->info.backend) == 0)
			w->pack = packs[i];
	if (w->pack == NULL || w->pack->image(&w->image, &size) != 0) {
		fprintf(stderr, "no program for %s\n", w->info.backend);
		exit(1);
	}
	MUST(hal_program_load(w->dev, w->image, size, &w->prog));
	MUST(hal_kernel_find(w->prog, "copy", &w->copy));
	MUST(hal_kernel_find(w->prog, "gemm", &w->gemm));
	MUST(hal_kernel_find(w->prog, "spin", &w->spin));
}

static void make_partition(struct world *w, const char *name, uint32_t units,
			   struct hal_partition **part, uint32_t queue, uint32_t queues,
			   uint32_t buf, uint32_t bufs)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	d.units_floor = units;
	bd.bytes = BYTES;
	snprintf(d.name, sizeof(d.name), "%s", name);
	MUST(hal_partition_create(w->dev, &d, part));
	while (queues-- > 0)
		MUST(hal_queue_create(*part, &qd, &w->queue[queue++]));
	while (bufs-- > 0)
		MUST(hal_buffer_create(*part, &bd, &w->buf[buf++]));
}

static void submit(struct hal_queue *q, const struct hal_cmd *cmds, uint32_t n,
		   struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = n;
	MUST(hal_submit(q, &d, done));
}

static void called(void *user)
{
	++*(uint32_t *)user;
}

/* The arguments of gemm in one buffer. */
static void three(struct hal_buffer *buf, struct hal_arg args[3])
{
	for (uint32_t i = 0; i < 3; i++)
		args[i] = (struct hal_arg){
			.buffer = buf, .offset = i * 1024, .bytes = 1024};
}

/* Everything that a submission can have; two queues of one partition at once. */
static void work(const struct world *w)
{
	const struct hal_arg args[2] = {{.buffer = w->buf[1], .bytes = 4096},
					{.buffer = w->buf[0], .bytes = 4096}};
	struct hal_arg gemm[2][3];
	struct hal_cmd cmds[FILLS];
	struct hal_point done[4];
	uint32_t calls = 0;

	three(w->buf[0], gemm[0]);
	three(w->buf[3], gemm[1]);
	cmds[0] = hal_cmd_timestamp(w->buf[2], 0);
	cmds[1] = hal_cmd_launch(w->copy, args, 2);
	cmds[2] = hal_cmd_host(called, &calls);
	cmds[3] = hal_cmd_launch(w->gemm, gemm[0], 3);
	cmds[4] = hal_cmd_timestamp(w->buf[2], 8);
	submit(w->queue[0], cmds, 5, &done[0]);
	for (uint32_t i = 0; i < FILLS; i++)
		cmds[i] = i % 2 != 0 ? hal_cmd_barrier()
				     : hal_cmd_fill(w->buf[2], 64, 4096, i);
	submit(w->queue[1], cmds, FILLS, &done[1]);
	cmds[0] = hal_cmd_of(HAL_OP_NOP, 0);
	submit(w->queue[1], cmds, 1, &done[2]);
	cmds[0] = hal_cmd_launch(w->gemm, gemm[1], 3);
	submit(w->queue[2], cmds, 1, &done[3]);
	MUST(hal_wait(done, 4, 0, HAL_FOREVER));
	if (calls != 1)
		exit(1);
}

/* Stopped in the middle and run again; moved. */
static void disturb(const struct world *w)
{
	const struct hal_arg arg = {.buffer = w->buf[2], .bytes = 64};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_cmd cmd = hal_cmd_launch(w->spin, &arg, 1);
	struct hal_point quiet, done, moved;

	cmd.flags |= HAL_CMD_REPLAYABLE;
	submit(w->queue[0], &cmd, 1, &done);
	MUST(hal_device_poll(w->dev, 1000));
	MUST(hal_queue_suspend(w->queue[0], HAL_SUSPEND_KILL, &quiet));
	MUST(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	MUST(hal_queue_resume(w->queue[0]));
	d.units_floor = 2;
	MUST(hal_partition_resize(w->second, &d, &moved));
	MUST(hal_wait(&moved, 1, 0, HAL_FOREVER));
	MUST(hal_wait(&done, 1, 0, HAL_FOREVER));
}

/* What the machine has counted for part; 0 where nothing is. */
static uint64_t macs_of(const struct world *w, const struct hal_partition *part,
			struct hal_partition_info *info)
{
	const struct hal_npu_extension *npu = hal_device_get_extension(w->dev, "npu");
	struct hal_npu_counters c = HAL_INIT(hal_npu_counters);

	*info = (struct hal_partition_info)HAL_INIT(hal_partition_info);
	MUST(hal_partition_get_info(part, info));
	if (npu != NULL)
		MUST(npu->counters(hal_device_get_native(w->dev), info->index, &c));
	return c.macs;
}

static void print_macs(const struct world *w, const struct hal_partition *part,
		       uint64_t before)
{
	struct hal_partition_info info;
	uint64_t macs = macs_of(w, part, &info);

	if (macs != 0)
		printf("macs %" PRIu64 " %s (%u)\n", macs - before, info.name,
		       info.index);
}

static void take_away(struct world *w, struct hal_partition *part, uint32_t queue,
		      uint32_t queues, uint32_t buf, uint32_t bufs)
{
	while (queues-- > 0)
		MUST(hal_queue_destroy(w->queue[queue++]));
	while (bufs-- > 0)
		MUST(hal_buffer_destroy(w->buf[buf++]));
	MUST(hal_partition_destroy(part));
}

/* What ran before the trace is not in it; partitions come and go while it is written. */
int main(int argc, char **argv)
{
	struct hal_partition_info info;
	struct world w = {0};
	uint64_t before;
	bool traced;

	if (argc != 3) {
		fprintf(stderr, "usage: make_trace TARGET FILE\n");
		return 2;
	}
	traced = strcmp(argv[2], "-") != 0;
	open_world(&w, argv[1]);
	make_partition(&w, "first", 4, &w.first, 0, 2, 0, 3);
	if (traced)
		MUST(hal_trace_start(w.dev, argv[2]));
	make_partition(&w, "second", 4, &w.second, 2, 1, 3, 1);
	MUST(hal_program_set_name(w.prog, "net"));
	work(&w);
	disturb(&w);
	print_macs(&w, w.second, 0);
	take_away(&w, w.second, 2, 1, 3, 1);
	make_partition(&w, "third", 3, &w.second, 2, 1, 3, 1);
	before = macs_of(&w, w.second, &info); /* its predecessor's */
	MUST(hal_program_set_name(w.prog, ""));
	work(&w);
	print_macs(&w, w.first, 0);
	print_macs(&w, w.second, before);
	if (traced)
		MUST(hal_trace_stop(w.dev));
	/* The launch that was stopped ran twice, if there is time for it. */
	printf("ran 1 net: copy\nran 2 net: gemm\nran %d net: spin\nran %u fill\n"
	       "ran 1 copy\nran 2 gemm\nnow %" PRIu64 "\n",
	       (w.info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0 ? 2 : 1, FILLS,
	       hal_device_get_time(w.dev));
	work(&w);
	take_away(&w, w.first, 0, 2, 0, 3);
	take_away(&w, w.second, 2, 1, 3, 1);
	MUST(hal_program_unload(w.prog));
	MUST(hal_close(w.dev));
	w.pack->free(w.image);
	return 0;
}
