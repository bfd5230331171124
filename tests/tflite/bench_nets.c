/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nets.c - cycles of the MLPerf Tiny networks on the whole array alone, beside the
 * least they could take there; and the same at a memory of 8 bytes a cycle in all.
 *
 *   bench_nets MODELS TARGET STEADY.so [figures] [WINDOW]
 *
 * The bound of a layer is npuc's estimate: a fold of T rows costs max(T, rows of the
 * array), and what has no folds takes a cycle for each load from memory.  Of what has
 * folds it is held against a number that npuc has no part in (.folds).  Depthwise
 * layers are shown apart: 9 rows of 16 are the most that a 3 x 3 kernel can use.
 *
 * 8 bytes a cycle: the policy of steady.c gives the partition, which is alone, 8 x WINDOW
 * bytes in each WINDOW cycles, descriptors, tables and walks included: a token bucket of
 * the machine itself, in RTL and engine=fast alike.  What has moved is counted and held
 * against that.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/npu.h>

#include "npuc.h"

/* Of the bound, depthwise layers left out.  kws_dscnn's first layer, of one channel, has
 * ten runs a row, for which the scratchpad's ports need more than a cycle: 0.755. */
#define LEAST        0.75
#define LEAST_NARROW 0.75

#define RATE         8u  /* bytes a cycle */
#define WINDOW       8u  /* cycles */
#define BEAT         16u /* bytes */

/* From the networks' published layers alone: the sum of ceil(K / 16) ceil(N / 16)
 * max(M, 16) over convolutions (M: output pixels, K: a window, N: output channels) and
 * fully connected layers; the same of depthwise ones, where K is a window of one channel
 * and N all channels.  vww_mobilenet, for one: 48 x 48 x 8 of a 3 x 3 x 3 window, 2
 * * 2,304, then 1 x 1 windows from 8 channels at 48 x 48 up to 256 at 3 x 3, and 256 to
 * 2. */
static const struct {
	const char *name;
	uint64_t folds, depthwise;
} networks[] = {
	{"kws_dscnn", 9564, 2000},
	{"resnet8", 49216, 0},
	{"vww_mobilenet", 32896, 6864},
	{"ad01", 16640, 0},
};
#define NETWORKS (sizeof(networks) / sizeof(networks[0]))

struct total {
	uint64_t cycles, bound;
	uint64_t folds; /* of the bound: layers that are made of them */
};

static int fail(const char *network, const char *why)
{
	printf("%s: %s\n", network, why);
	return -1;
}

/* The second of two runs: the first meets an empty TLB. */
static int run_twice(struct npuc_run *run, const char *kernel, uint64_t *cycles,
		     char why[NPUC_WHY])
{
	int rc = npuc_run_kernel(run, kernel, cycles, why);

	return rc ? rc : npuc_run_kernel(run, kernel, cycles, why);
}

/* Each layer alone: all of them, and the depthwise ones. */
static int run_layers(const struct npuc_program *p, struct npuc_run *run,
		      struct total *all, struct total *depthwise, char why[NPUC_WHY])
{
	for (uint32_t i = 0; i < p->layer_count; i++) {
		const struct npuc_layer *l = &p->layers[i];
		bool apart = strcmp(l->operator_name, "DEPTHWISE_CONV_2D") == 0;
		struct total *t = apart ? depthwise : all;
		uint64_t cycles;

		if (!l->kernel[0])
			continue;
		if (run_twice(run, l->kernel, &cycles, why))
			return -1;
		if (apart)
			printf("  layer %2u %-18s %-40s %7" PRIu64
			       " cycles, bound %7" PRIu64 ", MAC use %.3f\n",
			       i, l->operator_name, l->shape, cycles, l->cycles,
			       (double)l->macs / (double)(cycles * 256));
		t->cycles += cycles;
		t->bound += l->cycles;
		if (apart || strcmp(l->operator_name, "CONV_2D") == 0 ||
		    strcmp(l->operator_name, "FULLY_CONNECTED") == 0)
			t->folds += l->cycles;
	}
	return 0;
}

static void report(const char *network, const struct npuc_program *p, uint64_t cycles,
		   const struct total *rest, const struct total *depthwise, bool figures)
{
	uint64_t bound = rest->bound + depthwise->bound;
	double of_bound = (double)rest->bound / (double)rest->cycles;

	if (figures) {
		printf("figure npu.net.%s.cycles %" PRIu64 "\n", network, cycles);
		printf("figure npu.net.%s.mac_util %.5f\n", network,
		       (double)p->macs / (double)(cycles * 256));
		printf("figure npu.net.%s.mac_util_bound %.5f\n", network,
		       (double)p->macs / (double)(bound * 256));
		printf("figure npu.net.%s.of_bound %.5f\n", network, of_bound);
		return;
	}
	printf("%s: %" PRIu64 " cycles, bound %" PRIu64
	       "; without depthwise layers %" PRIu64 ", bound %" PRIu64 ": %.3f of it\n",
	       network, cycles, bound, rest->cycles, rest->bound, of_bound);
}

/* One of them on all PEs. */
struct net {
	struct npuc_program program;
	struct hal_partition *part;
	struct npuc_run *run;
};

static void close_net(struct net *n)
{
	npuc_run_close(n->run);
	hal_partition_destroy(n->part);
	npuc_program_free(&n->program);
}

static int open_net(struct hal_device *dev, const char *models, const char *network,
		    struct net *n)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct npuc_options options = {.layers = true};
	char path[4096], why[NPUC_WHY];

	*n = (struct net){0};
	snprintf(path, sizeof(path), "%s/%s_int8.tflite", models, network);
	desc.rows = desc.cols = 16;
	if (npuc_program_open(path, &options, &n->program, why))
		return fail(network, why);
	if (hal_partition_create(dev, &desc, &n->part))
		return fail(network, hal_last_error());
	if (npuc_run_open(dev, n->part, &n->program, &n->run, why))
		return fail(network, why);
	return 0;
}

static int one(struct hal_device *dev, const char *models, size_t i, bool figures,
	       uint64_t *cycles)
{
	const char *network = networks[i].name;
	struct total rest = {0}, depthwise = {0};
	char why[NPUC_WHY];
	struct net n;
	int rc = open_net(dev, models, network, &n);

	if (!rc && (run_twice(n.run, "run", cycles, why) ||
		    run_layers(&n.program, n.run, &rest, &depthwise, why)))
		rc = fail(network, why);
	if (!rc) {
		report(network, &n.program, *cycles, &rest, &depthwise, figures);
		if ((double)rest.bound < LEAST * (double)rest.cycles)
			rc = fail(network, "less than 0.75 of its bound");
		else if (rest.folds != networks[i].folds ||
			 depthwise.folds != networks[i].depthwise)
			rc = fail(network, "npuc's bound is not that of its layers");
	}
	close_net(&n);
	return rc;
}

/* ---- 8 bytes a cycle ----------------------------------------------------------------- */

/* What the slot has moved, and its cycles. */
static int moved(struct hal_device *dev, const struct hal_partition *part,
		 uint64_t *bytes, uint64_t *cycles)
{
	const struct hal_npu_extension *npu = hal_device_get_extension(dev, "npu");
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_npu_counters c = HAL_INIT(hal_npu_counters);

	if (!npu || hal_partition_get_info(part, &info) ||
	    npu->counters(hal_device_get_native(dev), info.index, &c))
		return -1;
	*bytes = (c.read_beats + c.write_beats) * BEAT;
	*cycles = c.cycles;
	return 0;
}

/* The second of two runs; bytes: what it moves. */
static int run_counted(struct hal_device *dev, const char *network, struct net *n,
		       uint64_t *cycles, uint64_t *bytes, uint64_t *passed)
{
	uint64_t first, start;
	char why[NPUC_WHY];

	if (npuc_run_kernel(n->run, "run", cycles, why))
		return fail(network, why);
	if (moved(dev, n->part, &first, &start))
		return fail(network, hal_last_error());
	if (npuc_run_kernel(n->run, "run", cycles, why))
		return fail(network, why);
	if (moved(dev, n->part, bytes, passed))
		return fail(network, hal_last_error());
	*bytes -= first;
	*passed -= start;
	return 0;
}

/* Slower than at 4 channels (fast), and by what it moves. */
static int narrow(struct hal_device *dev, const char *models, const char *network,
		  uint32_t window, bool figures, uint64_t fast)
{
	uint64_t cycles = 0, bytes = 0, passed = 0, bound;
	struct net n;
	int rc = open_net(dev, models, network, &n);

	if (!rc)
		rc = run_counted(dev, network, &n, &cycles, &bytes, &passed);
	if (!rc) {
		bound = bytes / RATE > n.program.cycles ? bytes / RATE : n.program.cycles;
		if (figures)
			printf("figure npu.net8B.%s.cycles %" PRIu64 "\n", network,
			       cycles);
		else
			printf("%s: %" PRIu64 " cycles at 8 bytes a cycle, moves %" PRIu64
			       " bytes; bound %" PRIu64 ", %.3f of it; %.2f bytes a "
			       "cycle with 4 channels\n",
			       network, cycles, bytes, bound,
			       (double)bound / (double)cycles,
			       (double)bytes / (double)fast);
		/* A bucket begins full, and a window may begin before the run. */
		if (bytes > RATE * (passed + 2 * (uint64_t)window))
			rc = fail(network, "more than 8 bytes a cycle");
		else if (cycles < fast)
			rc = fail(network, "sooner than with 4 channels");
		else if ((double)bound < LEAST_NARROW * (double)cycles)
			rc = fail(network, "at 8 bytes a cycle: too far from its bound");
	}
	close_net(&n);
	return rc;
}

static int open_device(const char *target, const char *const *options,
		       struct hal_device **dev)
{
	if (!hal_open(target, options, dev))
		return 0;
	printf("%s: %s\n", target, hal_last_error());
	return -1;
}

int main(int argc, char **argv)
{
	bool figures = argc > 4 && !strcmp(argv[4], "figures");
	uint32_t window = argc > 4 + figures
				  ? (uint32_t)strtoul(argv[4 + figures], NULL, 0)
				  : WINDOW;
	char plugin[4096], bytes[64], cycles[64];
	const char *const options[] = {plugin, "policy.name=steady", bytes, cycles, NULL};
	uint64_t fast[NETWORKS] = {0};
	struct hal_device *dev;
	int rc = 0;

	if (argc < 4 || !window) {
		fprintf(stderr,
			"usage: bench_nets MODELS TARGET STEADY.so [figures] [WINDOW]\n");
		return 2;
	}
	if (!argv[1][0] || access(argv[1], R_OK)) {
		printf("skipped: no folder of MLPerf Tiny networks: configure with "
		       "-DHAL_MLPERF_TINY=FOLDER\n");
		return 77;
	}
	if (open_device(argv[2], NULL, &dev))
		return 1;
	for (size_t i = 0; i < NETWORKS; i++)
		rc |= one(dev, argv[1], i, figures, &fast[i]);
	hal_close(dev);
	snprintf(plugin, sizeof(plugin), "hal.plugins=%s", argv[3]);
	snprintf(bytes, sizeof(bytes), "policy.steady_bytes=%u", RATE * window);
	snprintf(cycles, sizeof(cycles), "policy.steady_window=%u", window);
	if (open_device(argv[2], options, &dev))
		return 1;
	for (size_t i = 0; i < NETWORKS; i++)
		rc |= narrow(dev, argv[1], networks[i].name, window, figures, fast[i]);
	hal_close(dev);
	return rc ? 1 : 0;
}
