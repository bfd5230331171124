/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm - how near hal_npu_gemm comes to the bound of the array, as an application
 * calls it: through hal/npu.h, on a device with default options.
 *
 *   bench_gemm [-b const|arg|blocked|conv] [-m LEAST] [-t TARGET] [-vs] MxNxK...
 *                                 these shapes
 *   bench_gemm [...] table            the shapes of docs/performance.md
 *   bench_gemm [...] random [SEED [COUNT]]   random ones, log-uniform: M to 4,096, N to
 *               16,384, K to 32,768, operands within 60 MiB, bounds within 2^24 cycles
 *
 * -v: a line a shape; -s: what the array has waited for since the device was opened.
 * -b: where B is: a constant of the program (the default), an argument, or an argument in
 * blocks (HAL_NPU_B_BLOCKED); conv: the weights of a 1 x 1 convolution.  -m LEAST: fail
 * if a shape is below that part of the bound.
 *
 * The bound of an array: folds of 16 x 16 weights, each with the rows of A one a cycle,
 * and at least 16.  The bound of random shapes, many of which are small: the longest of
 * that, of its stores, one a cycle, and of the bytes of A, B and D at 64 a cycle; the
 * lines of A that its first rows wait for; and what a GEMM of 1 x 1 x 1 takes on the same
 * device beyond its 16 cycles.  Cycles: from the submission to its end.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/npu.h>

#include "bench.h"
#include "npu_world.h"

enum { PES = 16, LINE = 64, OPERANDS = 60 << 20, RANDOM_BOUND = 1 << 24 };
enum {
	FIRST_ROWS = 32,
	LEAST_PART = 256
}; /* rows of the first panel; bytes of a part of K */

struct shape {
	uint32_t m, n, k;
};

enum source { B_CONST, B_ARG, B_BLOCKED, B_CONV };

struct world {
	struct npu_world npu;
	enum source source;
	int verbose, stalls;
	double least;   /* of the bound, or it is an error */
	uint64_t start; /* cycles of a GEMM without the array's: 0 where they count */
};

/* ---- one shape --------------------------------------------------------------------- */

static uint64_t b_bytes(const struct shape *s, enum source source)
{
	return source == B_ARG ? (uint64_t)s->n * s->k
			       : (uint64_t)(s->n + 15) / 16 * 16 * s->k;
}

/* The same as a 1 x 1 convolution over a column of pixels. */
static int build_conv(struct hal_npu_builder *b, const struct shape *s,
		      const struct hal_npu_gemm *gemm)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	int8_t *weights = calloc(s->n, s->k);
	int err;

	if (weights == NULL)
		return -ENOMEM;
	op.a = gemm->a;
	op.d = gemm->d;
	op.weights = weights;
	op.h = op.oh = s->m;
	op.w = op.ow = op.kh = op.kw = op.groups = 1;
	op.stride_h = op.stride_w = op.dilation_h = op.dilation_w = 1;
	op.c = s->k;
	op.n = s->n;
	op.out = gemm->out;
	err = hal_npu_conv(b, &op);
	free(weights);
	return err;
}

static int build(struct hal_npu_builder *b, const struct shape *s, enum source source)
{
	static const int32_t mult = 1073741824, shift = -6;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int err = 0;

	op.m = s->m;
	op.n = s->n;
	op.k = s->k;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	op.flags = source == B_BLOCKED ? HAL_NPU_B_BLOCKED : 0;
	if (source == B_CONST) {
		void *weights = calloc(s->k, s->n);

		if (weights == NULL)
			return -ENOMEM;
		err = hal_npu_const(b, weights, (uint64_t)s->k * s->n, &op.b.id);
		free(weights);
	}
	if (err == 0)
		err = hal_npu_kernel(b, "gemm");
	if (err == 0)
		err = hal_npu_arg(b, (uint64_t)s->m * s->k, &op.a.id);
	if (err == 0)
		err = hal_npu_arg(b, (uint64_t)s->m * s->n, &op.d.id);
	if (err == 0 && source == B_CONV)
		return build_conv(b, s, &op);
	if (err == 0 && source != B_CONST)
		err = hal_npu_arg(b, b_bytes(s, source), &op.b.id);
	return err != 0 ? err : hal_npu_gemm(b, &op);
}

static uint32_t arg_count(const struct world *w)
{
	return w->source == B_ARG || w->source == B_BLOCKED ? 3 : 2;
}

static int run(const struct world *w, const struct shape *s, uint64_t *cycles)
{
	const uint64_t bytes[] = {(uint64_t)s->m * s->k, (uint64_t)s->m * s->n,
				  b_bytes(s, w->source)};
	struct hal_npu_builder *b = NULL;
	int err = hal_npu_builder_create(&b);

	if (err == 0)
		err = build(b, s, w->source);
	if (err == 0)
		err = npu_world_run(&w->npu, b, "gemm", bytes, arg_count(w), cycles);
	if (b != NULL)
		(void)hal_npu_builder_destroy(b);
	if (err != 0)
		fprintf(stderr, "%u x %u x %u: ", s->m, s->n, s->k);
	return err != 0 ? bench_die("a GEMM") : 0;
}

static uint64_t bound_of(const struct world *w, const struct shape *s)
{
	return npu_world_bound(&w->npu, s->m, s->n, s->k);
}

/* Stores of D: a row of 16 columns each, of 32 where two folds make a tile, in two where
 * that crosses a line. */
static uint64_t stores_of(const struct shape *s)
{
	uint32_t wide = s->k <= 2 * PES ? 2 * PES : PES;
	uint64_t stores = 0;

	for (uint32_t m = 0; m < s->m; m++)
		for (uint32_t n = 0; n < s->n; n += wide) {
			uint32_t at = (uint32_t)(((uint64_t)m * s->n + n) % LINE);
			uint32_t bytes = s->n - n < wide ? s->n - n : wide;

			stores += at + bytes > LINE ? 2 : 1;
		}
	return stores;
}

/* Cycles in which the first fold's rows wait for the lines of A before them: of each row
 * a part is loaded before the next row's. */
static uint64_t first_lines(const struct shape *s)
{
	uint64_t rows = s->m < FIRST_ROWS ? s->m : FIRST_ROWS;
	uint64_t bytes = rows * (s->k < LEAST_PART ? s->k : (uint32_t)LEAST_PART);

	return bytes / LINE > rows ? bytes / LINE - rows : 0;
}

/* The cycles that no machine of this size and memory goes below. */
static uint64_t whole_bound(const struct world *w, const struct shape *s)
{
	uint64_t bytes =
		(uint64_t)s->m * s->k + (uint64_t)s->m * s->n + (uint64_t)s->n * s->k;
	uint64_t bound = bound_of(w, s), stores;

	if (w->start == 0)
		return bound;
	stores = stores_of(s);
	if (bound < stores)
		bound = stores;
	if (bound < bytes / LINE)
		bound = bytes / LINE;
	return w->start + first_lines(s) + bound;
}

/* Sets *ratio: of the bound. */
static int measure(const struct world *w, const struct shape *s, double *ratio)
{
	uint64_t cycles = 0, bound = whole_bound(w, s);
	double macs = (double)s->m * s->n * s->k;

	if (run(w, s, &cycles) != 0)
		return TOOL_FAILED;
	*ratio = (double)bound / (double)cycles;
	if (w->verbose)
		printf("%5u x %5u x %5u  cycles %10llu  of bound %.3f  of peak %.3f\n",
		       s->m, s->n, s->k, (unsigned long long)cycles, *ratio,
		       macs / ((double)cycles * PES * PES));
	if (w->stalls)
		npu_world_print_stalls(&w->npu);
	if (*ratio >= w->least)
		return 0;
	fprintf(stderr, "%u x %u x %u: %.4f of the bound, which is less than %.4f\n",
		s->m, s->n, s->k, *ratio, w->least);
	return TOOL_FAILED;
}

/* Measures w->start. */
static int measure_start(struct world *w)
{
	const struct shape one = {1, 1, 1};
	uint64_t cycles = 0;

	if (run(w, &one, &cycles) != 0)
		return TOOL_FAILED;
	w->start = cycles - PES;
	return 0;
}

/* ---- sets of shapes ---------------------------------------------------------------- */

static const struct shape table[] = {
	{1, 512, 2048},   {1, 512, 2560},     {49, 512, 4608},  {196, 768, 3072},
	{128, 3072, 768}, {1, 1000, 2048},    {16, 4096, 4096}, {1024, 4096, 1024},
	{512, 33708, 1},  {128, 1024, 11008}, {256, 64, 30000},
};

static int run_table(const struct world *w)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct shape *s = &table[i];
		double ratio;

		if (measure(w, s, &ratio) != 0)
			return TOOL_FAILED;
		printf("figure npu.gemm.%ux%ux%u.of_bound %.6f\n", s->m, s->n, s->k,
		       ratio);
	}
	return 0;
}

static uint32_t draw(uint64_t *state, uint32_t most)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)exp2((double)(*state >> 11) / 0x1p53 * log2((double)most + 1));
}

static int run_random(struct world *w, uint64_t seed, uint32_t count)
{
	struct shape worst = {0};
	double least = 2, ratio, sum = 0;

	if (measure_start(w) != 0)
		return TOOL_FAILED;
	for (uint32_t done = 0; done < count;) {
		struct shape s;

		s.m = draw(&seed, 4096);
		s.n = draw(&seed, 16384);
		s.k = draw(&seed, 32768);
		if ((uint64_t)s.m * s.k + (uint64_t)s.m * s.n + b_bytes(&s, B_BLOCKED) >
			    OPERANDS ||
		    bound_of(w, &s) > RANDOM_BOUND)
			continue;
		if (measure(w, &s, &ratio) != 0)
			return TOOL_FAILED;
		sum += ratio;
		done++;
		if (ratio < least) {
			least = ratio;
			worst = s;
		}
	}
	printf("worst: %u x %u x %u; mean %.3f\n", worst.m, worst.n, worst.k,
	       sum / count);
	printf("figure npu.gemm.random.worst %.6f\n", least);
	printf("figure npu.gemm.random.mean %.6f\n", sum / count);
	return 0;
}

static int run_shapes(const struct world *w, int count, char **shapes)
{
	for (int i = 0; i < count; i++) {
		struct shape s;
		double ratio;

		/* NOLINTNEXTLINE(cert-err34-c): a wrong number is a wrong shape */
		if (sscanf(shapes[i], "%ux%ux%u", &s.m, &s.n, &s.k) != 3)
			return bench_die("a shape MxNxK");
		if (measure(w, &s, &ratio) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

static int run_all(struct world *w, int count, char **args)
{
	if (strcmp(args[0], "table") == 0)
		return run_table(w);
	if (strcmp(args[0], "random") == 0)
		return run_random(w, count > 1 ? strtoull(args[1], NULL, 10) : 1,
				  count > 2 ? (uint32_t)strtoul(args[2], NULL, 10) : 200);
	w->verbose = 1;
	return run_shapes(w, count, args);
}

int main(int argc, char **argv)
{
	static const char *const sources[] = {"const", "arg", "blocked", "conv"};
	const char *target = "npu:0?engine=fast";
	struct world w = {0};
	int o, err, known = 1;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while ((o = getopt(argc, argv, "b:m:t:vs")) != -1) {
		if (o == 't')
			target = optarg;
		else if (o == 'm')
			w.least = strtod(optarg, NULL);
		else if (o == 'v')
			w.verbose = 1;
		else if (o == 's')
			w.stalls = 1;
		else
			known = 0;
		for (int i = 0; o == 'b' && i < 4; i++)
			if (strcmp(optarg, sources[i]) == 0) {
				w.source = (enum source)i;
				known = 1;
			}
	}
	if (!known || optind == argc) {
		fprintf(stderr,
			"usage: bench_gemm [-b const|arg|blocked|conv] [-m LEAST] "
			"[-t TARGET] [-vs] table | random [SEED [COUNT]] | MxNxK...\n");
		return 2;
	}
	bench_within(1200);
	err = npu_world_open(&w.npu, target);
	if (err == 0) {
		err = run_all(&w, argc - optind, argv + optind);
		if (npu_world_close(&w.npu) != 0)
			err = TOOL_FAILED;
	}
	return tool_end(err);
}
