/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - hal-gpu-measure: queued copies of host memory, alone and beside kernels. */
#include <inttypes.h>

#include "measure.h"

enum { SETS = 3, ROUNDS_MOST = 64 };
#define BYTES (UINT64_C(32) << 20)

/* Upload, kernel, download of a buffer; each set has a buffer and host memory. */
struct pipe {
	struct tenant t;
	struct hal_queue *up, *down;
	struct hal_buffer *mem[SETS], *host[SETS];
	struct hal_point done[SETS];
	struct hal_kernel *kernel;
	uint64_t bytes, rounds;
};

static struct hal_point give(struct hal_queue *queue, const struct hal_cmd *cmd,
			     const struct hal_point *wait)
{
	struct hal_submit_desc work = {.size = sizeof(work), .cmds = cmd, .cmd_count = 1};
	struct hal_point done;

	work.waits = wait;
	work.wait_count = wait && wait->timeline;
	TRY(hal_submit(queue, &work, &done));
	return done;
}

static struct hal_point upload(const struct pipe *p, uint32_t set,
			       const struct hal_point *wait)
{
	const struct hal_cmd cmd =
		hal_cmd_write(p->mem[set], 0, p->host[set], 0, p->bytes);

	return give(p->up, &cmd, wait);
}

static struct hal_point compute(const struct pipe *p, uint32_t set,
				const struct hal_point *wait)
{
	struct hal_arg args[] = {{.buffer = p->mem[set]}, {.offset = p->rounds}};
	const struct hal_cmd cmd = hal_cmd_launch(p->kernel, args, 2);

	return give(p->t.queue, &cmd, wait);
}

static struct hal_point download(const struct pipe *p, uint32_t set,
				 const struct hal_point *wait)
{
	const struct hal_cmd cmd =
		hal_cmd_read(p->host[set], 0, p->mem[set], 0, p->bytes);

	return give(p->down, &cmd, wait);
}

static void begin(struct pipe *p)
{
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	void *address;
	uint32_t i;

	*p = (struct pipe){.t = tenant_on(&gpu, 0), .bytes = BYTES};
	/* A fake driver's host memory is this machine's. */
	if (gpu.info.caps & HAL_CAP_STAND_IN)
		p->bytes = BYTES / 64;
	TRY(hal_queue_create(p->t.part, &plain, &p->up));
	TRY(hal_queue_create(p->t.part, &plain, &p->down));
	TRY(hal_kernel_find(gpu.program, "long_one", &p->kernel));
	for (i = 0; i < SETS; i++) {
		p->mem[i] = gpu_buffer(p->t.part, p->bytes);
		TRY(hal_host_alloc(p->t.part, p->bytes, &p->host[i], &address));
	}
}

static void finish(struct pipe *p)
{
	uint32_t i;

	for (i = 0; i < SETS; i++) {
		TRY(hal_buffer_destroy(p->mem[i]));
		TRY(hal_buffer_destroy(p->host[i]));
	}
	TRY(hal_queue_destroy(p->up));
	TRY(hal_queue_destroy(p->down));
	end(&p->t);
}

/* Nanoseconds of one step in a row of them, each by itself. */
static uint64_t alone(const struct pipe *p,
		      struct hal_point (*step)(const struct pipe *p, uint32_t set,
					       const struct hal_point *wait))
{
	const uint32_t count = times < 16 ? times : 16;
	uint64_t ns;
	uint32_t i;

	wait_for(step(p, 0, NULL));
	ns = now_ns();
	for (i = 0; i < count; i++)
		wait_for(step(p, i % SETS, NULL));
	return (now_ns() - ns) / (count ? count : 1);
}

/* Nanoseconds of a round.  in_turn: each step waits for the one before it. */
static uint64_t round_ns(struct pipe *p, bool in_turn)
{
	const uint32_t count = times < ROUNDS_MOST ? times : ROUNDS_MOST;
	struct hal_point last = {0};
	const uint64_t ns = now_ns();
	uint32_t i;

	memset(p->done, 0, sizeof(p->done));
	for (i = 0; i < count; i++) {
		struct hal_point *set = &p->done[i % SETS];

		last = upload(p, i % SETS, in_turn ? &last : set);
		last = compute(p, i % SETS, &last);
		last = *set = download(p, i % SETS, &last);
	}
	wait_for(last);
	return (now_ns() - ns) / (count ? count : 1);
}

static uint64_t longest(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t most = a > b ? a : b;

	return most > c ? most : c;
}

void measure_copies(void)
{
	struct pipe p;
	uint64_t up, down, kernel, stage, in_turn, beside;

	if (!(gpu.info.caps & HAL_CAP_HOST_COPY))
		gpu_failed("copies: queues of this device cannot copy host memory");
	begin(&p);
	up = alone(&p, upload);
	down = alone(&p, download);
	/* As long as the longer copy. */
	p.rounds = rounds_of(&p.t, up > down ? up : down);
	kernel = alone(&p, compute);
	stage = longest(up, down, kernel);
	in_turn = round_ns(&p, true);
	beside = round_ns(&p, false);
	printf("%" PRIu64 " KiB to the device, by a queue | %.2f us, %.2f GB/s\n",
	       p.bytes >> 10, (double)up / 1e3, (double)p.bytes / (double)up);
	printf("%" PRIu64 " KiB from the device, by a queue | %.2f us, %.2f GB/s\n",
	       p.bytes >> 10, (double)down / 1e3, (double)p.bytes / (double)down);
	printf("a kernel between them | %.2f us\n", (double)kernel / 1e3);
	printf("upload, kernel and download, of the longest of them: in turn | %.3f\n",
	       (double)in_turn / (double)stage);
	printf("upload, kernel and download, of the longest of them: three queues | "
	       "%.3f\n",
	       (double)beside / (double)stage);
	figure("copies.up", "gb_s", (double)p.bytes / (double)up);
	figure("copies.down", "gb_s", (double)p.bytes / (double)down);
	figure("copies.in_turn_of_stage", "share", (double)in_turn / (double)stage);
	figure("copies.overlapped_of_stage", "share", (double)beside / (double)stage);
	finish(&p);
}
