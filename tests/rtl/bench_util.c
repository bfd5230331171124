/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_util.c - how near the machine comes to its bound on whole networks: every layer
 * of a table in SCALE-Sim's format, one descriptor each, one slot on the whole array.
 *
 *   bench_util [figures|layers] [DIRECTORY|- [TOPOLOGY...]]
 *   bench_util deep [figures|K...]  multiplications with a K of 30,000, of few rows; of
 *                                other Ks are told, and not held to anything
 *
 * Utilisation is sum over layers of ceil(K/h) * ceil(N/w) * max(M, h) over the cycles
 * between a TIMESTAMP before the first layer and one after the last; one between layers
 * tells each layer's own.  Beside it stands the use of the peak: multiply-accumulates
 * over PEs times cycles, which is less where K or N is no multiple of the array.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

struct util {
	double all, worst; /* of a table; of its worst layer */
	double peak;       /* multiply-accumulates over what all PEs could have done */
	uint32_t worst_layer;
};

static struct util run(struct rig *r, const struct rig_layer *layers, uint32_t count,
		       const char *name, const struct rig_memory *cfg, bool verbose)
{
	struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
	uint32_t a = 0, b = 0, d = 0;
	uint64_t bound = 0, macs = 0, cycles;
	struct util u = {.worst = 2};
	bool gemm = true;
	struct rig_counters c;

	rig_reset(r, cfg);
	CHECK(rig_map(r, &rect, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, 1u << 25, RIG_ALL);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t x, y, z;

		rig_layer_bytes(&layers[i], &x, &y, &z);
		a = x > a ? x : a;
		b = y > b ? y : b;
		d = z > d ? z : d;
	}
	a = rig_alloc(r, 0, a, 64);
	b = rig_alloc(r, 0, b, 64);
	d = rig_alloc(r, 0, d, 64);
	rig_push_stamp(r, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t desc[16];

		rig_layer_desc(&layers[i], a, b, d, desc);
		rig_push(r, 0, desc);
		rig_push_stamp(r, 0);
		bound += rig_layer_bound(&layers[i], rect.rows, rect.cols);
		macs += (uint64_t)layers[i].m * layers[i].n * layers[i].k;
		gemm = gemm && layers[i].gemm;
	}
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, UINT64_C(1) << 32);
	CHECK(!r->faulted, "%s: fault %u", name,
	      rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)));
	cycles = rig_stamp(r, 0, count) - rig_stamp(r, 0, 0);
	c = rig_counters(r, 0, false);
	CHECK(c.macs == macs, "%s: %llu MACs counted, %llu done", name,
	      (unsigned long long)c.macs, (unsigned long long)macs);
	CHECK(!gemm || !c.stall_bank, "%s: a GEMM waits for banks", name);
	for (uint32_t i = 0; i < count; i++) {
		const struct rig_layer *l = &layers[i];
		uint64_t n = rig_stamp(r, 0, i + 1) - rig_stamp(r, 0, i);
		uint64_t best = rig_layer_bound(l, rect.rows, rect.cols);
		double util = (double)best / (double)n;

		if (util < u.worst) {
			u.worst = util;
			u.worst_layer = i;
		}
		if (verbose)
			printf("  %-14s M %6u N %5u K %5u cycles %8llu bound %8llu %7.3f "
			       "%%\n",
			       l->name, l->m, l->n, l->k, (unsigned long long)n,
			       (unsigned long long)best, 100. * util);
	}
	printf("%s %s: %llu cycles, bound %llu, active %llu stalls: activations %llu "
	       "banks %llu weights %llu "
	       "output %llu sequencer %llu; beats read %llu written %llu\n",
	       name, cfg->ideal ? "ideal memory" : "4 channels",
	       (unsigned long long)cycles, (unsigned long long)bound,
	       (unsigned long long)c.active, (unsigned long long)c.stall_a,
	       (unsigned long long)c.stall_bank, (unsigned long long)c.stall_w,
	       (unsigned long long)c.stall_out, (unsigned long long)c.stall_seq,
	       (unsigned long long)c.read_beats, (unsigned long long)c.write_beats);
	u.all = (double)bound / (double)cycles;
	u.peak = (double)macs / (double)(cycles * rect.rows * rect.cols);
	return u;
}

static void tell(const char *figure, const char *name, const struct util *u)
{
	printf("figure npu.%s.%s %.5f\n", figure, name, u->all);
	printf("figure npu.%s.%s.worst_layer %.5f\n", figure, name, u->worst);
}

/* Few rows, far more of K than the scratchpad holds of them. */
static void deep(struct rig *r, uint32_t k, bool figures)
{
	static const struct {
		uint32_t m;
		double ideal, four; /* of the bound, at least */
	} shapes[] = {
		{1, 0.99, 0.96},  {4, 0.98, 0.94},  {8, 0.99, 0.96},
		{16, 0.99, 0.94}, {32, 0.99, 0.97}, {49, 0.99, 0.97},
	};

	for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct rig_layer l = {.gemm = true, .m = shapes[i].m, .n = 64, .k = k};
		struct rig_memory ideal = rig_ideal(r),
				  four = rig_backend(4, NPU_HASH_SPREAD);
		struct util u, u4;

		snprintf(l.name, sizeof(l.name), "M %u", l.m);
		u = run(r, &l, 1, l.name, &ideal, false);
		u4 = run(r, &l, 1, l.name, &four, false);
		if (k != 30000) {
			printf("K %u, M %u: %.3f of the bound, %.3f with 4 channels\n", k,
			       l.m, u.all, u4.all);
			continue;
		}
		CHECK(u.all >= shapes[i].ideal && u4.all >= shapes[i].four,
		      "K 30,000, M %u: %.4f of the bound, %.4f with 4 channels", l.m,
		      u.all, u4.all);
		if (figures)
			printf("figure npu.util.k30000.m%u %.5f\n"
			       "figure npu.util4ch.k30000.m%u %.5f\n",
			       l.m, u.all, l.m, u4.all);
	}
}

int main(int argc, char **argv)
{
	static struct rig_layer layers[RIG_LAYERS];
	const char *directory = getenv("HAL_SCALE_SIM");
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	bool verbose = argc > 1 && !strcmp(argv[1], "layers");
	int at = 1 + (figures || verbose);
	struct rig r;

	if (argc > 1 && !strcmp(argv[1], "deep")) {
		rig_open(&r, "16x16x4x8", UINT64_C(1) << 26);
		figures = argc > 2 && !strcmp(argv[2], "figures");
		if (argc == 2 || figures)
			deep(&r, 30000, figures);
		for (int i = 2 + figures; i < argc; i++)
			deep(&r, (uint32_t)strtoul(argv[i], NULL, 0), false);
		rig_close(&r);
		return bench_end("bench_util deep");
	}
	if (argc > at && strcmp(argv[at], "-") != 0)
		directory = argv[at];
	at++;
	if (!directory || !*directory) {
		printf("skipped: no folder of layer tables: configure with "
		       "-DHAL_SCALE_SIM=FOLDER\n");
		return 77;
	}
	rig_open(&r, "16x16x4x8", UINT64_C(1) << 26);
	for (int i = at < argc ? at : 0; i < (at < argc ? argc : RIG_TOPOLOGIES); i++) {
		const char *name = at < argc ? argv[i] : rig_topologies[i];
		uint32_t count = rig_layers(directory, name, layers);
		struct rig_memory ideal = rig_ideal(&r),
				  four = rig_backend(4, NPU_HASH_SPREAD);
		struct util u, u4;

		if (!count) {
			printf("skipped: no %s.csv in %s\n", name, directory);
			return 77;
		}
		u = run(&r, layers, count, name, &ideal, verbose);
		u4 = run(&r, layers, count, name, &four, verbose);
		CHECK(u.all >= 0.99, "%s: %.4f of the bound", name, u.all);
		CHECK(u4.all >= 0.97, "%s: %.4f of the bound with 4 channels", name,
		      u4.all);
		if (figures) {
			tell("util", name, &u);
			tell("util4ch", name, &u4);
		} else {
			printf("%s: %.5f of the bound (%s: %.5f), %.5f with 4 channels "
			       "(%s: %.5f); of the peak %.5f, %.5f with 4 channels\n",
			       name, u.all, layers[u.worst_layer].name, u.worst, u4.all,
			       layers[u4.worst_layer].name, u4.worst, u.peak, u4.peak);
		}
		fflush(stdout);
	}
	rig_close(&r);
	return bench_end("bench_util");
}
