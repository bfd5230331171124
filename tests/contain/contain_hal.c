/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain_hal.c - the same through the library: a tenant loads programs whose descriptors
 * are random (the image is sound, what it says is not), lets them fault, run for ever, be
 * killed and thrown away; the victim beside it takes the cycles and has the bytes it has
 * alone, and the hostile tenant's next program is an honest one that works.
 *
 *   contain_hal TARGET [TRIALS [FIRST_SEED]]
 *
 * The victim's and the honest work are the conformance suite's kernels.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "../../backends/npu/image.h"
#include "../conformance/conformance.h"
#undef CHECK /* the bench has its own, which counts */
#include "../rtl/bench.h"

#define HANG_NS 200000 /* a program that has not ended so long after the victim */

uint64_t bench_checks, bench_failures;

static const struct conf_pack *pack;

void conf_register(const struct conf_pack *p)
{
	pack = p;
}

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *buf[3];
	uint64_t busy_before;
};

struct world {
	struct hal_device *dev;
	struct tenant victim, hostile;
	struct hal_program *prog;
	struct hal_kernel *gemm, *spin;
	uint8_t *image;
	size_t size;
	bool alone;
	uint32_t loaded, refused, faults, ended, hangs, cycle_changes;
};

/* The bench itself fails: nothing to go on with. */
static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	printf("%s: %d: %s\n", what, rc, hal_last_error());
	exit(rc == -ENODEV ? 77 : 2);
}
#define MUST(call) must((call), #call)

/* ---- tenants ---------------------------------------------------------------------- */

static void make_queue(struct tenant *t)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);

	MUST(hal_queue_create(t->part, &d, &t->queue));
	t->busy_before = 0;
}

static void make_tenant(struct world *w, struct tenant *t, uint16_t row, uint64_t colors)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);

	d.row = row;
	d.rows = 8;
	d.cols = 16;
	d.color_mask = colors;
	d.memory_bytes = 8 << 20;
	MUST(hal_partition_create(w->dev, &d, &t->part));
	make_queue(t);
	b.bytes = 4096;
	for (int i = 0; i < 3; i++)
		MUST(hal_buffer_create(t->part, &b, &t->buf[i]));
}

static int launch(struct tenant *t, struct hal_kernel *k, uint32_t args,
		  struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_arg arg[3];
	struct hal_cmd cmd;

	for (uint32_t i = 0; i < 3; i++)
		arg[i] = (struct hal_arg){.buffer = t->buf[i], .bytes = 4096};
	cmd = hal_cmd_launch(k, arg, args);
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(t->queue, &d, done);
}

/* Device time of what has ended since the last question: here a cycle is a nanosecond. */
static uint64_t took(struct tenant *t)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	uint64_t ns;

	MUST(hal_queue_get_stats(t->queue, &s));
	ns = s.busy_ns - t->busy_before;
	t->busy_before = s.busy_ns;
	return ns;
}

static void check_gemm(struct tenant *t, uint64_t seed, const char *who)
{
	int8_t a[CONF_GEMM_BYTES], b[CONF_GEMM_BYTES], d[CONF_GEMM_BYTES],
		want[CONF_GEMM_BYTES];

	MUST(hal_buffer_read(t->buf[0], 0, d, sizeof(d)));
	MUST(hal_buffer_read(t->buf[1], 0, a, sizeof(a)));
	MUST(hal_buffer_read(t->buf[2], 0, b, sizeof(b)));
	conf_oracle_gemm(want, a, b);
	CHECK(memcmp(d, want, sizeof(d)) == 0, "seed %llu: %s has other bytes",
	      (unsigned long long)seed, who);
}

static void fill_operands(struct tenant *t, struct rng *g)
{
	uint32_t words[1024];

	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 1024; j++)
			words[j] = rng_next(g);
		MUST(hal_buffer_write(t->buf[i], 0, words, sizeof(words)));
	}
}

/* ---- the hostile one -------------------------------------------------------------- */

/* Some words of some descriptors become something else; the rest stays sound. */
static int load_hostile(struct world *w, struct rng *g, struct hal_program **prog)
{
	struct npu_image_header h;
	uint8_t *copy = malloc(w->size);
	size_t descs;
	uint32_t n = rng_range(g, 1, 6);
	int rc;

	if (copy == NULL)
		exit(2);
	memcpy(copy, w->image, w->size);
	memcpy(&h, copy, sizeof(h));
	descs = sizeof(h) + h.kernels * sizeof(struct npu_image_kernel) +
		h.args * sizeof(struct npu_image_arg) +
		h.relocs * sizeof(struct npu_image_reloc);
	while (n-- > 0) {
		/* Those of spin are many and all alike: its first few will do. */
		size_t at = descs +
			    rng_range(g, 0, h.descs < 12 ? h.descs - 1 : 11) * 64 +
			    rng_range(g, 0, 15) * (size_t)4;
		uint32_t word = rng_next(g);

		if (rng_next(g) % 2) {
			memcpy(&word, copy + at, 4);
			word ^= 1u << (rng_next(g) % 32);
		}
		memcpy(copy + at, &word, 4);
	}
	h.checksum = 0;
	memcpy(copy, &h, sizeof(h));
	h.checksum = npu_image_crc(copy, w->size);
	memcpy(copy, &h, sizeof(h));
	rc = hal_program_load(w->dev, copy, w->size, prog);
	free(copy);
	return rc;
}

/* Every kernel of it, one after the other. */
static struct hal_point attack(struct world *w, struct hal_program *prog)
{
	static const struct {
		const char *name;
		uint32_t args;
	} kernels[] = {{"copy", 2}, {"gemm", 3}, {"add", 3}, {"spin", 1}, {"wild", 1}};
	struct hal_point last = {0};

	for (int i = 0; i < 5; i++) {
		struct hal_kernel *k;

		MUST(hal_kernel_find(prog, kernels[i].name, &k));
		/* Refused once something before it has failed. */
		if (launch(&w->hostile, k, kernels[i].args, &last) != 0)
			break;
	}
	return last;
}

/* Ended, failed with a reason, or stopped by force. */
static void end_hostile(struct world *w, struct hal_point last, uint64_t seed)
{
	struct hal_point quiet;
	int rc = -ETIMEDOUT;

	for (int i = 0; i < 100 && last.timeline != NULL && rc == -ETIMEDOUT; i++) {
		(void)hal_device_poll(w->dev, HANG_NS / 100);
		rc = hal_wait(&last, 1, 0, 0);
	}
	if (rc == 0) {
		w->ended++;
	} else if (rc == -EIO) {
		const char *text = hal_last_error();

		w->faults++;
		CHECK(strstr(text, "descriptor ") && strstr(text, "kernel '") &&
			      (strstr(text, " 0x") || strstr(text, "operation") ||
			       strstr(text, "no units")),
		      "seed %llu: the cause is not told: %s", (unsigned long long)seed,
		      text);
	} else {
		w->hangs++;
		rc = hal_queue_suspend(w->hostile.queue,
				       HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &quiet);
		CHECK(rc == 0, "seed %llu: %s", (unsigned long long)seed,
		      hal_last_error());
		for (int i = 0; i < 100 && hal_wait(&quiet, 1, 0, 0) != 0; i++)
			(void)hal_device_poll(w->dev, 1000);
		CHECK(hal_wait(&quiet, 1, 0, 0) == 0,
		      "seed %llu: a KILL has not been carried out",
		      (unsigned long long)seed);
	}
	rc = hal_queue_destroy(w->hostile.queue);
	CHECK(rc == 0, "seed %llu: %s", (unsigned long long)seed, hal_last_error());
}

/* ---- trials ----------------------------------------------------------------------- */

/* The victim runs its two jobs; meanwhile the device is stepped unevenly.  cycles: what
 * they take alone. */
static void victim_runs(struct world *w, uint64_t seed, uint64_t cycles[2])
{
	struct hal_kernel *const jobs[2] = {w->spin, w->gemm};
	struct rng rng = {seed}, *g = &rng;
	uint64_t ns[2];

	fill_operands(&w->victim, g);
	for (int i = 0; i < 2; i++) {
		struct hal_point done;

		MUST(launch(&w->victim, jobs[i], i == 0 ? 1 : 3, &done));
		for (int k = 0; k < 100000 && hal_wait(&done, 1, 0, 0) != 0; k++)
			(void)hal_device_poll(w->dev, rng_range(g, 1, 5000));
		CHECK(hal_wait(&done, 1, 0, 0) == 0, "seed %llu: the victim: %s",
		      (unsigned long long)seed, hal_last_error());
		ns[i] = took(&w->victim);
	}
	check_gemm(&w->victim, seed, "the victim");
	if (w->alone) {
		memcpy(cycles, ns, sizeof(ns));
		return;
	}
	CHECK(memcmp(cycles, ns, sizeof(ns)) == 0,
	      "seed %llu: the victim takes %llu and %llu cycles, %llu and %llu alone",
	      (unsigned long long)seed, (unsigned long long)ns[0],
	      (unsigned long long)ns[1], (unsigned long long)cycles[0],
	      (unsigned long long)cycles[1]);
	w->cycle_changes += memcmp(cycles, ns, sizeof(ns)) != 0;
}

static void honest(struct world *w, uint64_t seed, struct rng *g)
{
	struct hal_point done;
	int rc;

	fill_operands(&w->hostile, g);
	make_queue(&w->hostile);
	MUST(launch(&w->hostile, w->gemm, 3, &done));
	rc = hal_wait(&done, 1, 0, HAL_FOREVER);
	CHECK(rc == 0, "seed %llu: honest work afterwards: %s", (unsigned long long)seed,
	      rc != 0 ? hal_last_error() : "");
	check_gemm(&w->hostile, seed, "honest work afterwards");
}

static void trial(struct world *w, uint64_t seed, uint64_t cycles[2])
{
	struct rng g = {seed * 7919 + 5};
	struct hal_program *prog = NULL;
	struct hal_point last = {0};

	if (w->alone) {
		victim_runs(w, seed, cycles);
		return;
	}
	if (load_hostile(w, &g, &prog) == 0) {
		w->loaded++;
		last = attack(w, prog);
	} else {
		w->refused++;
		CHECK(hal_last_error()[0] != '\0', "seed %llu: refused without a reason",
		      (unsigned long long)seed);
	}
	victim_runs(w, seed, cycles);
	if (prog != NULL) {
		end_hostile(w, last, seed);
		MUST(hal_program_unload(prog));
		honest(w, seed, &g);
	}
}

/* All trials on one device, of which the victim sees the same each time: where in its
 * ring and its memory a job lies is worth a few cycles. */
static void run(struct world *w, const char *target, uint32_t trials, uint64_t first,
		uint64_t (*cycles)[2])
{
	const char *const options[] = {"layers.validate=1", NULL};

	MUST(hal_open(target, options, &w->dev));
	MUST(hal_program_load(w->dev, w->image, w->size, &w->prog));
	MUST(hal_kernel_find(w->prog, "gemm", &w->gemm));
	MUST(hal_kernel_find(w->prog, "spin", &w->spin));
	make_tenant(w, &w->hostile, 0, 3);
	make_tenant(w, &w->victim, 8, 12);
	for (uint32_t i = 0; i < trials; i++)
		trial(w, first + i, cycles[i]);
	for (int i = 0; i < 3; i++) {
		MUST(hal_buffer_destroy(w->victim.buf[i]));
		MUST(hal_buffer_destroy(w->hostile.buf[i]));
	}
	MUST(hal_queue_destroy(w->victim.queue));
	MUST(hal_queue_destroy(w->hostile.queue));
	MUST(hal_partition_destroy(w->victim.part));
	MUST(hal_partition_destroy(w->hostile.part));
	MUST(hal_program_unload(w->prog));
	MUST(hal_close(w->dev));
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "npu:0";
	uint32_t trials = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 24;
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	uint64_t(*cycles)[2] = calloc(trials, sizeof(*cycles));
	struct world w = {.alone = true};
	void *image;

	if (cycles == NULL)
		return 2;
	MUST(pack->image(&image, &w.size));
	w.image = image;
	run(&w, target, trials, first, cycles);
	w.alone = false;
	run(&w, target, trials, first, cycles);
	pack->free(image);
	free(cycles);
	printf("%s: %u trials, seeds %llu..%llu: %u images refused; of %u programs %u "
	       "ended, "
	       "%u faulted, %u hung and were killed; %u victims took other cycles\n",
	       target, trials, (unsigned long long)first,
	       (unsigned long long)(first + trials - 1), w.refused, w.loaded, w.ended,
	       w.faults, w.hangs, w.cycle_changes);
	return bench_end("contain_hal");
}
