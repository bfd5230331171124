/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residue_hal.c - the same through the library: a tenant's secret goes through the units,
 * it ends, is killed or folded and thrown away, and the next partition on its units
 * launches images whose descriptors have been changed.  With two secrets its buffers must
 * be the same, and hold none of them.
 *
 *   residue_hal TARGET [TRIALS [FIRST_SEED]]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "../../backends/npu/image.h"
#include "../rtl/bench.h"

#define BYTES    (64u << 10)
#define PROGRAMS 4u
#define LONG_NS  20000u
#define NUMBERS  256u

enum way { ENDED, KILLED, FOLDED, WAYS };

uint64_t bench_checks, bench_failures;

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	printf("%s: %d: %s\n", what, rc, hal_last_error());
	exit(rc == -ENODEV ? 77 : 2);
}
#define MUST(call) must((call), #call)

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *in, *out;
};

static struct {
	uint8_t *image;
	size_t size;
	uint32_t programs, faults, refused, changed, found;
} all;

/* Multiplications: d[512][64], and d[64] of little. */
static void build(void)
{
	static const int32_t mult = 1073741824, shift = -6;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_builder *b;
	void *image;

	MUST(hal_npu_builder_create(&b));
	MUST(hal_npu_kernel(b, "work"));
	MUST(hal_npu_arg(b, BYTES, &op.a.id));
	MUST(hal_npu_arg(b, BYTES, &op.d.id));
	op.b = op.a;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	for (uint32_t i = 0; i < 3; i++) {
		op.m = i == 1 ? 40 : BYTES / 64;
		op.n = 64 - 8 * i;
		op.k = 64;
		MUST(hal_npu_gemm(b, &op));
	}
	MUST(hal_npu_build(b, &image, &all.size));
	hal_npu_builder_destroy(b);
	all.image = image;
}

static void make(struct hal_device *dev, struct tenant *t, uint64_t secret)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	uint64_t *words = malloc(BYTES);

	if (words == NULL)
		exit(2);
	MUST(hal_device_get_info(dev, &i));
	d.units_floor = i.unit_rows * i.unit_cols;
	b.bytes = BYTES;
	MUST(hal_partition_create(dev, &d, &t->part));
	MUST(hal_queue_create(t->part, &q, &t->queue));
	MUST(hal_buffer_create(t->part, &b, &t->in));
	MUST(hal_buffer_create(t->part, &b, &t->out));
	for (uint32_t w = 0; w < BYTES / 8; w++)
		words[w] = secret ^ (w % NUMBERS);
	MUST(hal_buffer_write(t->in, 0, words, BYTES));
	free(words);
}

static void away(struct tenant *t)
{
	MUST(hal_queue_destroy(t->queue));
	MUST(hal_buffer_destroy(t->in));
	MUST(hal_buffer_destroy(t->out));
	MUST(hal_partition_destroy(t->part));
}

static int launch(struct tenant *t, struct hal_program *prog, struct hal_point *done)
{
	struct hal_arg arg[2] = {{.buffer = t->in, .bytes = BYTES},
				 {.buffer = t->out, .bytes = BYTES}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_kernel *k;
	struct hal_cmd cmd;

	MUST(hal_kernel_find(prog, "work", &k));
	cmd = hal_cmd_launch(k, arg, 2);
	cmd.flags |= HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(t->queue, &d, done);
}

static void leave_secret(struct hal_device *dev, enum way way, uint64_t secret,
			 struct rng *g)
{
	struct hal_program *prog;
	struct hal_point done;
	struct tenant t;

	make(dev, &t, secret);
	MUST(hal_program_load(dev, all.image, all.size, &prog));
	MUST(launch(&t, prog, &done));
	if (way != ENDED) {
		MUST(hal_device_poll(dev, rng_range(g, 1000, 15000)));
		MUST(hal_queue_suspend(
			t.queue, way == KILLED ? HAL_SUSPEND_KILL : HAL_SUSPEND_FOLD,
			&done));
	}
	MUST(hal_wait(&done, 1, 0, HAL_FOREVER));
	away(&t);
	MUST(hal_program_unload(prog));
}

static int load_hostile(struct hal_device *dev, struct rng *g, struct hal_program **prog)
{
	struct npu_image_header h;
	uint8_t *copy = malloc(all.size);
	size_t descs;
	int rc;

	if (copy == NULL)
		exit(2);
	memcpy(copy, all.image, all.size);
	memcpy(&h, copy, sizeof(h));
	descs = sizeof(h) + h.kernels * sizeof(struct npu_image_kernel) +
		h.args * sizeof(struct npu_image_arg) +
		h.relocs * sizeof(struct npu_image_reloc);
	for (uint32_t n = rng_range(g, 1, 4); n > 0; n--) {
		size_t at = descs + rng_range(g, 0, h.descs - 1) * 64 +
			    rng_range(g, 5, 15) * (size_t)4;
		uint32_t word;

		memcpy(&word, copy + at, 4);
		word = rng_next(g) % 2 ? word + rng_range(g, 0, 16) - 8
				       : word ^ 1u << (rng_next(g) % 32);
		memcpy(copy + at, &word, 4);
	}
	h.checksum = 0;
	memcpy(copy, &h, sizeof(h));
	h.checksum = npu_image_crc(copy, all.size);
	memcpy(copy, &h, sizeof(h));
	rc = hal_program_load(dev, copy, all.size, prog);
	free(copy);
	return rc;
}

static void attack(struct hal_device *dev, struct tenant *t, struct rng *g)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct hal_program *prog;
	struct hal_point done;
	int rc;

	if (load_hostile(dev, g, &prog) != 0) {
		all.refused++;
		return;
	}
	all.programs++;
	MUST(launch(t, prog, &done));
	(void)hal_device_poll(dev, LONG_NS);
	rc = hal_wait(&done, 1, 0, 0);
	all.faults += rc == -EIO;
	if (rc == -ETIMEDOUT) {
		MUST(hal_queue_suspend(t->queue, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL,
				       &done));
		MUST(hal_wait(&done, 1, 0, HAL_FOREVER));
	}
	MUST(hal_queue_destroy(t->queue));
	MUST(hal_program_unload(prog));
	MUST(hal_queue_create(t->part, &q, &t->queue));
}

/* What the next tenant has: 2 * BYTES. */
static void both(const char *target, uint64_t seed, uint64_t secret, bool own,
		 uint8_t *got)
{
	struct rng rng = {seed * 7919 + 11}, *g = &rng;
	struct hal_device *dev;
	struct tenant t;

	MUST(hal_open(target, NULL, &dev));
	leave_secret(dev, (enum way)(seed % WAYS), secret, g);
	make(dev, &t, own ? secret : 0x0123456789abcdef);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		attack(dev, &t, g);
	MUST(hal_buffer_read(t.in, 0, got, BYTES));
	MUST(hal_buffer_read(t.out, 0, got + BYTES, BYTES));
	away(&t);
	MUST(hal_close(dev));
	for (uint32_t i = 0; i + 8 <= 2 * BYTES; i++) {
		uint64_t word;

		memcpy(&word, got + i, 8);
		all.found += (word ^ secret) < NUMBERS;
	}
}

static bool trial(const char *target, uint64_t seed, bool own)
{
	static uint8_t got[2][2 * BYTES];
	struct rng g = {seed};

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t high = rng_next(&g);

		both(target, seed, high << 32 | rng_next(&g), own, got[i]);
	}
	return memcmp(got[0], got[1], sizeof(got[0])) != 0;
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "npu:0?memory_size=4M";
	uint32_t trials = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 24;
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;

	build();
	for (uint32_t i = 0; i < trials; i++) {
		bool differ = trial(target, first + i, false);

		CHECK(!differ, "seed %llu: the tenant before shows in what the next has",
		      (unsigned long long)(first + i));
		all.changed += differ;
	}
	CHECK(all.found == 0, "%u words of a secret", all.found);
	printf("%s: %u trials, seeds %llu..%llu: of %u programs %u faulted, %u images "
	       "refused; %u trials differ, %u words of a secret\n",
	       target, trials, (unsigned long long)first,
	       (unsigned long long)(first + trials - 1), all.programs, all.faults,
	       all.refused, all.changed, all.found);
	CHECK(trial(target, first, true) && all.found > 0,
	      "the control: a secret in the tenant's own memory is not noticed");
	hal_npu_image_free(all.image);
	return bench_end("residue_hal");
}
