/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nets.c - cycles of the MLPerf Tiny networks on the whole array alone, beside the
 * least they could take there.
 *
 *   bench_nets MODELS TARGET [figures]
 *
 * The bound of a layer is npuc's estimate: a fold of T rows costs max(T, rows of the
 * array), and what has no folds takes a cycle for each request to memory.  Depthwise
 * layers are shown apart: 9 rows of 16 are the most that a 3 x 3 kernel can use, and
 * their stores take the memory port longer than the array needs.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hal/hal.h>

#include "npuc.h"

/* Of the bound, depthwise layers left out.  kws_dscnn's first layer, of one channel, has
 * ten runs a row, for which the scratchpad's ports need more than a cycle: 0.755. */
#define LEAST 0.75

static const char *const networks[] = {"kws_dscnn", "resnet8", "vww_mobilenet", "ad01"};

struct total {
	uint64_t cycles, bound;
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

static int one(struct hal_device *dev, const char *models, const char *network,
	       bool figures)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct npuc_options options = {.layers = true};
	struct npuc_program p = {0};
	struct npuc_run *run = NULL;
	struct hal_partition *part = NULL;
	struct total rest = {0}, depthwise = {0};
	char path[4096], why[NPUC_WHY];
	uint64_t cycles = 0;
	int rc = -1;

	snprintf(path, sizeof(path), "%s/%s_int8.tflite", models, network);
	desc.rows = desc.cols = 16;
	if (npuc_program_open(path, &options, &p, why))
		return fail(network, why);
	if (hal_partition_create(dev, &desc, &part)) {
		fail(network, hal_last_error());
	} else if (npuc_run_open(dev, part, &p, &run, why) ||
		   run_twice(run, "run", &cycles, why) ||
		   run_layers(&p, run, &rest, &depthwise, why)) {
		fail(network, why);
	} else {
		report(network, &p, cycles, &rest, &depthwise, figures);
		rc = (double)rest.bound >= LEAST * (double)rest.cycles
			     ? 0
			     : fail(network, "less than 0.75 of its bound");
	}
	npuc_run_close(run);
	hal_partition_destroy(part);
	npuc_program_free(&p);
	return rc;
}

int main(int argc, char **argv)
{
	struct hal_device *dev;
	int rc = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: bench_nets MODELS TARGET [figures]\n");
		return 2;
	}
	if (!argv[1][0] || access(argv[1], R_OK)) {
		printf("skipped: no folder of MLPerf Tiny networks: configure with "
		       "-DHAL_MLPERF_TINY=FOLDER\n");
		return 77;
	}
	if (hal_open(argv[2], NULL, &dev)) {
		printf("%s: %s\n", argv[2], hal_last_error());
		return 1;
	}
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		rc |= one(dev, argv[1], networks[i], argc > 3);
	hal_close(dev);
	return rc ? 1 : 0;
}
