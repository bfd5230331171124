/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_util - how near the NPU comes to its bound on whole networks, as an application
 * calls it: through hal/npu.h, on a device with default options.
 *
 *   bench_util [OPTION...] nets [DIRECTORY|- [NETWORK...]]   layer tables in SCALE-Sim's
 *               format; -: the folder that HAL_SCALE_SIM in the environment names
 *   bench_util [OPTION...] deep [K]   multiplications of few rows, by 64 columns; K is
 *               30,000 unless it is given
 *
 * -t TARGET: of hal_open; "npu:0?engine=fast" is the default.  -f NAME: figures are
 * npu.NAME...; "util" is the default.  -m LEAST: fail if a network or a multiplication is
 * below that part of the bound.  -v: a line a layer; -s: what the array has waited for.
 *
 * Use of the bound: the sum over layers of ceil(K/h) * ceil(N/w) * max(M, h), over the
 * cycles of one launch of a kernel with all layers, an operation each.  Of a layer: the
 * same of a launch of that layer alone.  Cycles are device time from the submission until
 * its completion was seen, so each launch's start counts.  Use of the peak:
 * multiply-accumulates over PEs times cycles, which is less where K or N is no multiple
 * of the array, or M less than its rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/npu.h>

#include "bench.h"
#include "layers.h"
#include "npu_world.h"

struct world {
	struct npu_world npu;
	const char *figures; /* part of their names */
	double least;        /* of the bound, or it is an error */
	int verbose, stalls;
};

struct use {
	double bound, peak;
};

/* ---- layers as operations ------------------------------------------------------------ */

static struct hal_npu_requant requant(void)
{
	static const int32_t mult = 1073741824, shift = -6;

	return (struct hal_npu_requant){
		.mult = &mult, .shift = &shift, .min = -128, .max = 127};
}

static int add_gemm(struct hal_npu_builder *b, const struct layer *l, uint32_t a,
		    uint32_t weights, uint32_t d)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.a.id = a;
	op.b.id = weights;
	op.d.id = d;
	op.m = l->m;
	op.n = l->n;
	op.k = l->k;
	op.out = requant();
	return hal_npu_gemm(b, &op);
}

/* Return how many rows or columns of input the operation has.  A table counts one output
 * more than hal_npu_conv accepts where a 1 x 1 kernel has a stride of 2: a row beyond the
 * input. */
static uint32_t extent(uint32_t in, uint32_t out, uint32_t stride)
{
	uint32_t last = (out - 1) * stride + 1;

	return in > last ? in : last;
}

static int add_conv(struct hal_npu_builder *b, const struct layer *l, uint32_t a,
		    const int8_t *weights, uint32_t d)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);

	op.a.id = a;
	op.d.id = d;
	op.weights = weights;
	op.h = extent(l->h, l->oh, l->stride);
	op.w = extent(l->w, l->ow, l->stride);
	op.c = l->c;
	op.oh = l->oh;
	op.ow = l->ow;
	op.n = l->n;
	op.kh = l->kh;
	op.kw = l->kw;
	op.stride_h = op.stride_w = l->stride;
	op.dilation_h = op.dilation_w = op.groups = 1;
	op.out = requant();
	return hal_npu_conv(b, &op);
}

/* Bytes of the input and of the output. */
static uint64_t input_bytes(const struct layer *l)
{
	if (l->gemm)
		return (uint64_t)l->m * l->k;
	return (uint64_t)extent(l->h, l->oh, l->stride) * extent(l->w, l->ow, l->stride) *
	       l->c;
}

static uint64_t output_bytes(const struct layer *l)
{
	return (uint64_t)l->m * l->n;
}

/* Add layer l with constant weights, all zeros: no cycle depends on a value. */
static int add_layer(struct hal_npu_builder *b, const struct layer *l, uint32_t a,
		     uint32_t d)
{
	int8_t *weights = calloc(l->n, l->k);
	uint32_t id;
	int err = weights != NULL ? 0 : -ENOMEM;

	if (err == 0 && l->gemm)
		err = hal_npu_const(b, weights, (uint64_t)l->n * l->k, &id);
	if (err == 0)
		err = l->gemm ? add_gemm(b, l, a, id, d) : add_conv(b, l, a, weights, d);
	free(weights);
	return err;
}

/* Build kernel "layers" of all count layers, one after the other, which read and write
 * the same two buffers. */
static int build(struct hal_npu_builder *b, const struct layer *layers, uint32_t count,
		 uint64_t bytes[2])
{
	uint32_t a, d;
	int err = hal_npu_kernel(b, "layers");

	bytes[0] = bytes[1] = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t in = input_bytes(&layers[i]), out = output_bytes(&layers[i]);

		bytes[0] = in > bytes[0] ? in : bytes[0];
		bytes[1] = out > bytes[1] ? out : bytes[1];
	}
	if (err == 0)
		err = hal_npu_arg(b, bytes[0], &a);
	if (err == 0)
		err = hal_npu_arg(b, bytes[1], &d);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		err = add_layer(b, &layers[i], a, d);
	return err;
}

/* ---- measuring ------------------------------------------------------------------------ */

static int run(const struct world *w, const struct layer *layers, uint32_t count,
	       uint64_t *cycles)
{
	struct hal_npu_builder *b = NULL;
	uint64_t bytes[2];
	int err = hal_npu_builder_create(&b);

	if (err == 0)
		err = build(b, layers, count, bytes);
	if (err == 0)
		err = npu_world_run(&w->npu, b, "layers", bytes, 2, cycles);
	if (b != NULL)
		(void)hal_npu_builder_destroy(b);
	return err;
}

/* Fail if the machine has counted other multiply-accumulates than macs. */
static int check_macs(const struct world *w, const char *name, uint64_t before,
		      uint64_t macs)
{
	struct hal_npu_counters c;

	if (npu_world_counters(&w->npu, &c) != 0)
		return bench_die("counters");
	if (c.macs - before == macs)
		return 0;
	return tool_fail("%s: %llu MACs counted, %llu done", name,
			 (unsigned long long)(c.macs - before), (unsigned long long)macs);
}

/* Measure one launch of all count layers. */
static int measure(const struct world *w, const char *name, const struct layer *layers,
		   uint32_t count, struct use *use)
{
	const struct npu_world *npu = &w->npu;
	uint64_t bound = 0, macs = 0, cycles = 0;
	struct hal_npu_counters c;

	for (uint32_t i = 0; i < count; i++) {
		const struct layer *l = &layers[i];

		bound += npu_world_bound(npu, l->m, l->n, l->k);
		macs += (uint64_t)l->m * l->n * l->k;
	}
	if (npu_world_counters(npu, &c) != 0 || run(w, layers, count, &cycles) != 0) {
		fprintf(stderr, "%s: ", name);
		return bench_die("a launch");
	}
	use->bound = (double)bound / (double)cycles;
	use->peak = (double)macs / ((double)cycles * npu->rows * npu->cols);
	if (w->verbose)
		printf("  %-14s cycles %9llu  bound %9llu  of bound %.5f  of peak %.5f\n",
		       name, (unsigned long long)cycles, (unsigned long long)bound,
		       use->bound, use->peak);
	if (w->stalls)
		npu_world_print_stalls(npu);
	return check_macs(w, name, c.macs, macs);
}

static int check_least(const struct world *w, const char *name, const struct use *use)
{
	if (use->bound >= w->least)
		return 0;
	return tool_fail("%s: %.5f of the bound, which is less than %.5f", name,
			 use->bound, w->least);
}

/* A network in one launch, then each layer in one of its own. */
static int run_network(const struct world *w, const char *name,
		       const struct layer *layers, uint32_t count)
{
	struct use all = {0}, one = {0};
	double worst = 2;
	const char *worst_name = "";

	if (measure(w, name, layers, count, &all) != 0)
		return TOOL_FAILED;
	for (uint32_t i = 0; i < count; i++) {
		if (measure(w, layers[i].name, &layers[i], 1, &one) != 0)
			return TOOL_FAILED;
		if (one.bound < worst) {
			worst = one.bound;
			worst_name = layers[i].name;
		}
	}
	printf("%s: %.5f of the bound, %.5f of the peak; worst layer %s, %.5f of its "
	       "bound\n",
	       name, all.bound, all.peak, worst_name, worst);
	printf("figure npu.%s.%s %.5f\n", w->figures, name, all.bound);
	printf("figure npu.%s.%s.of_peak %.5f\n", w->figures, name, all.peak);
	printf("figure npu.%s.%s.worst_layer %.5f\n", w->figures, name, worst);
	(void)fflush(stdout);
	return check_least(w, name, &all);
}

/* ---- what to measure ------------------------------------------------------------------ */

static int run_networks(const struct world *w, int argc, char **argv)
{
	static struct layer layers[LAYERS_MAX];
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	const char *directory = getenv("HAL_SCALE_SIM");
	int given = argc > 1, count = given ? argc - 1 : LAYERS_NETWORKS;

	if (argc > 0 && strcmp(argv[0], "-") != 0)
		directory = argv[0];
	if (directory == NULL || directory[0] == '\0') {
		printf("skipped: no folder of layer tables: configure with "
		       "-DHAL_SCALE_SIM=FOLDER\n");
		return BENCH_SKIP;
	}
	for (int i = 0; i < count; i++) {
		const char *name = given ? argv[i + 1] : layers_networks[i];
		uint32_t n = layers_read(directory, name, layers);

		if (n == 0) {
			printf("skipped: no %s.csv in %s\n", name, directory);
			return BENCH_SKIP;
		}
		if (run_network(w, name, layers, n) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

/* Few rows, of far more of K than the scratchpad holds. */
static int run_deep(const struct world *w, uint32_t k)
{
	static const uint32_t rows[] = {1, 4, 8, 16, 32, 49};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct layer l = {.gemm = true, .m = rows[i], .n = 64, .k = k};
		struct use use = {0};

		(void)snprintf(l.name, sizeof(l.name), "k%u.m%u", k, l.m);
		if (measure(w, l.name, &l, 1, &use) != 0)
			return TOOL_FAILED;
		printf("figure npu.%s.%s %.5f\n", w->figures, l.name, use.bound);
		printf("figure npu.%s.%s.of_peak %.5f\n", w->figures, l.name, use.peak);
		if (check_least(w, l.name, &use) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

static int run_all(const struct world *w, int argc, char **argv)
{
	if (strcmp(argv[0], "nets") == 0)
		return run_networks(w, argc - 1, argv + 1);
	return run_deep(w, argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 30000);
}

int main(int argc, char **argv)
{
	const char *target = "npu:0?engine=fast";
	struct world w = {.figures = "util"};
	int o, err, known = 1;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while ((o = getopt(argc, argv, "f:m:t:vs")) != -1) {
		if (o == 'f')
			w.figures = optarg;
		else if (o == 'm')
			w.least = strtod(optarg, NULL);
		else if (o == 't')
			target = optarg;
		else if (o == 'v')
			w.verbose = 1;
		else if (o == 's')
			w.stalls = 1;
		else
			known = 0;
	}
	if (known && optind < argc)
		known = strcmp(argv[optind], "nets") == 0 ||
			strcmp(argv[optind], "deep") == 0;
	if (!known || optind >= argc) {
		fprintf(stderr,
			"usage: bench_util [-f NAME] [-m LEAST] [-t TARGET] [-vs] "
			"nets [DIRECTORY|- [NETWORK...]] | deep [K]\n");
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
