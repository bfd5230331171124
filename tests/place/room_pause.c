/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room_pause.c - how long a tenant is held up who is moved to make room for another.
 *
 *   room_pause TARGET [TRIALS]
 *
 * On 16 x 16 PEs two tenants have a quarter each, on the diagonal, and half the PEs are
 * asked for by a third, whom neither other quarter is enough.  One of the two may be
 * moved; it is in the middle of a multiplication, at another cycle each trial.  Its pause
 * is what that takes longer than without a third.  The other copies, on channels of its
 * own, and has to take the same cycles; both have to have the same bytes.  The control:
 * where they share channels, it takes others.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/npu.h>

enum { M = 192, N = 64, K = 64, BYTES_A = M * K, BYTES_B = K * N, BYTES_D = M * N };
enum { BYTES_COPY = 1 << 17 };

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *d, *a, *b;
	uint32_t bytes; /* of d */
	struct hal_point done;
	uint64_t cycles;
	uint8_t got[BYTES_COPY];
};

struct trial {
	struct hal_device *dev;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct tenant neighbour, moved;
};

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	printf("%s: %d: %s\n", what, rc, hal_last_error());
	exit(rc == -ENODEV ? 77 : 2);
}
#define MUST(call) must((call), #call)

static void load(struct trial *t)
{
	static const int32_t mult = 1073741824, shift = -6;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_builder *b;
	void *image;
	size_t size;

	MUST(hal_npu_builder_create(&b));
	MUST(hal_npu_kernel(b, "gemm"));
	MUST(hal_npu_arg(b, BYTES_D, &op.d.id));
	MUST(hal_npu_arg(b, BYTES_A, &op.a.id));
	MUST(hal_npu_arg(b, BYTES_B, &op.b.id));
	op.m = M;
	op.n = N;
	op.k = K;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	MUST(hal_npu_gemm(b, &op));
	MUST(hal_npu_build(b, &image, &size));
	hal_npu_builder_destroy(b);
	MUST(hal_program_load(t->dev, image, size, &t->prog));
	hal_npu_image_free(image);
	MUST(hal_kernel_find(t->prog, "gemm", &t->kernel));
}

static struct hal_partition *place(struct hal_device *dev, uint32_t row, uint32_t col,
				   uint64_t colors)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.row = (uint16_t)row;
	d.col = (uint16_t)col;
	d.rows = 8;
	d.cols = 8;
	d.color_mask = colors;
	MUST(hal_partition_create(dev, &d, &p));
	return p;
}

static struct hal_buffer *buffer(struct hal_partition *p, uint64_t bytes, uint32_t seed)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;
	uint8_t *fill = malloc(bytes);

	if (fill == NULL)
		exit(2);
	for (uint64_t i = 0; i < bytes; i++) {
		seed = seed * 1664525u + 1013904223u;
		fill[i] = (uint8_t)(seed >> 24);
	}
	d.bytes = bytes;
	MUST(hal_buffer_create(p, &d, &buf));
	MUST(hal_buffer_write(buf, 0, fill, bytes));
	free(fill);
	return buf;
}

static void equip(struct tenant *t, uint32_t bytes)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);

	MUST(hal_queue_create(t->part, &q, &t->queue));
	t->bytes = bytes;
	t->d = buffer(t->part, bytes, 1);
	t->a = buffer(t->part, bytes, 2);
	t->b = buffer(t->part, BYTES_B, 3);
}

static void submit(struct tenant *who, const struct hal_cmd *cmds, uint32_t count)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = count;
	MUST(hal_submit(who->queue, &d, &who->done));
}

static void multiply(struct trial *t)
{
	const struct tenant *who = &t->moved;
	struct hal_arg args[] = {{.buffer = who->d, .bytes = BYTES_D},
				 {.buffer = who->a, .bytes = BYTES_A},
				 {.buffer = who->b, .bytes = BYTES_B}};
	struct hal_cmd cmd = hal_cmd_launch(t->kernel, args, 3);

	submit(&t->moved, &cmd, 1);
}

static void copy(struct trial *t)
{
	const struct tenant *who = &t->neighbour;
	const struct hal_cmd cmds[] = {hal_cmd_copy(who->d, 0, who->a, 0, BYTES_COPY),
				       hal_cmd_copy(who->a, 0, who->d, 0, BYTES_COPY)};

	submit(&t->neighbour, cmds, 2);
}

static void collect(struct tenant *t)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	MUST(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	MUST(hal_queue_get_stats(t->queue, &s));
	MUST(hal_buffer_read(t->d, 0, t->got, t->bytes));
	t->cycles = s.busy_ns; /* a cycle is a nanosecond here */
	MUST(hal_queue_destroy(t->queue));
	MUST(hal_buffer_destroy(t->d));
	MUST(hal_buffer_destroy(t->a));
	MUST(hal_buffer_destroy(t->b));
	MUST(hal_partition_destroy(t->part));
}

/* Channels: the neighbour's, and of who may be moved. */
struct channels {
	uint64_t neighbour, moved;
};

/* With a third tenant who comes at cycle at_ns, or without one (0). */
static void run(struct trial *t, const char *target, uint64_t at_ns, struct channels on)
{
	static const char *const options[] = {"hal.compact=1", NULL};
	struct hal_partition_desc quarter = HAL_INIT(hal_partition_desc);
	struct hal_partition_desc half = HAL_INIT(hal_partition_desc);
	struct hal_partition *right, *left, *third = NULL;

	MUST(hal_open(target, options, &t->dev));
	load(t);
	t->neighbour.part = place(t->dev, 0, 0, on.neighbour);
	right = place(t->dev, 0, 8, 0);
	left = place(t->dev, 8, 0, 0);
	quarter.units_floor = 64;
	quarter.color_mask = on.moved;
	MUST(hal_partition_create(t->dev, &quarter, &t->moved.part));
	MUST(hal_partition_destroy(right));
	MUST(hal_partition_destroy(left));
	equip(&t->neighbour, BYTES_COPY);
	equip(&t->moved, BYTES_D);
	copy(t);
	multiply(t);
	if (at_ns != 0) {
		MUST(hal_device_poll(t->dev, at_ns));
		half.units_floor = 128;
		MUST(hal_partition_create(t->dev, &half, &third));
	}
	collect(&t->moved);
	collect(&t->neighbour);
	MUST(hal_partition_destroy(third));
	MUST(hal_program_unload(t->prog));
	MUST(hal_close(t->dev));
}

/* Of so many trials, in how many a move changes the neighbour's cycles. */
static uint64_t shared_differ(const char *target, unsigned long trials)
{
	static const struct channels shared = {0, 0}; /* whatever nobody has */
	static struct trial alone, with;
	uint64_t differ = 0;

	run(&alone, target, 0, shared);
	for (unsigned long i = 0; i < trials; i++) {
		run(&with, target, 1 + alone.moved.cycles * i / trials, shared);
		differ += with.neighbour.cycles != alone.neighbour.cycles;
	}
	return differ;
}

int main(int argc, char **argv)
{
	static const struct channels own = {3, 4};
	static struct trial alone, with;
	unsigned long trials = argc > 2 ? strtoul(argv[2], NULL, 10) : 40;
	uint64_t worst = 0, sum = 0, changes = 0, wrong = 0, differ;

	if (argc < 2 || argc > 3 || trials == 0) {
		fprintf(stderr, "usage: room_pause TARGET [TRIALS]\n");
		return 2;
	}
	run(&alone, argv[1], 0, own);
	for (unsigned long i = 0; i < trials; i++) {
		uint64_t pause;

		run(&with, argv[1], 1 + alone.moved.cycles * i / trials, own);
		pause = with.moved.cycles > alone.moved.cycles
				? with.moved.cycles - alone.moved.cycles
				: 0;
		worst = pause > worst ? pause : worst;
		sum += pause;
		changes += with.neighbour.cycles != alone.neighbour.cycles;
		wrong += memcmp(with.moved.got, alone.moved.got, BYTES_D) != 0 ||
			 memcmp(with.neighbour.got, alone.neighbour.got, BYTES_COPY) != 0;
	}
	differ = shared_differ(argv[1], (trials + 3) / 4);
	printf("figure place.compact.pause_cycles %llu\n", (unsigned long long)worst);
	printf("figure place.compact.neighbour_cycle_changes %llu\n",
	       (unsigned long long)changes);
	printf("figure place.compact.shared_differ %llu\n", (unsigned long long)differ);
	printf("%lu trials, mean %llu cycles, of %llu; %llu with other bytes\n", trials,
	       (unsigned long long)(sum / trials), (unsigned long long)alone.moved.cycles,
	       (unsigned long long)wrong);
	return wrong != 0 || changes != 0 || differ == 0;
}
