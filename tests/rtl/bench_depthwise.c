/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_depthwise.c - how well depthwise convolutions use the array: the depthwise layers
 * of MobileNet v1 (Howard et al. 2017, table 1; 224 x 224), one descriptor each, one slot
 * on the whole array, 4 channels.
 *
 *   bench_depthwise [figures]
 *
 * MAC use is useful multiply-accumulates over PEs times cycles.  A 3 x 3 kernel has 9 of
 * 16 rows to fill, so that 0.5625 is the most; a stride of 2 wants a line of 64 bytes a
 * cycle, which leaves less.  Held to limits are all layers together with 4 channels that
 * granules go round (hash_seed=-1), with the masks that the backend sets if it is not
 * told which, with ideal memory, and with that those of stride 2 alone.  Each layer is
 * also compared with the golden model byte by byte, at a quarter of its channels.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static const struct {
	uint32_t size, channels, stride, times;
} layers[] = {
	{112, 32, 1, 1}, {112, 64, 2, 1}, {56, 128, 1, 1},
	{56, 128, 2, 1}, {28, 256, 1, 1}, {28, 256, 2, 1},
	{14, 512, 1, 5}, {14, 512, 2, 1}, {7, 1024, 1, 1},
};
#define LAYERS (sizeof(layers) / sizeof(layers[0]))
/* MAC use with 4 channels, with the masks of hash_seed=0, with ideal memory, with that of
 * stride 2. */
#define LEAST         0.42
#define LEAST_SPREAD  0.40
#define LEAST_IDEAL   0.45
#define LEAST_STRIDED 0.39

static struct rig_conv geometry(uint32_t size, uint32_t channels, uint32_t stride)
{
	uint32_t out = (size + stride - 1) / stride;
	/* TensorFlow's SAME padding: the odd one below and right */
	uint32_t pad = ((out - 1) * stride + 3 - size) / 2;

	return (struct rig_conv){.h = size,
				 .w = size,
				 .cin = channels,
				 .oh = out,
				 .ow = out,
				 .n = channels,
				 .kh = 3,
				 .kw = 3,
				 .sy = stride,
				 .sx = stride,
				 .dy = 1,
				 .dx = 1,
				 .pt = pad,
				 .pl = pad,
				 .gc = 1,
				 .depthwise = true,
				 .block = true};
}

/* Cycles of one layer, from a TIMESTAMP before it to one after. */
static uint64_t run(struct rig *r, const struct rig_conv *c, const struct rig_memory *cfg,
		    bool check)
{
	struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
	struct rng g = {.state = 5};
	uint32_t desc[16], first, last;

	rig_reset(r, cfg);
	CHECK(rig_map(r, &rect, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, 1u << 23, RIG_ALL);
	rig_conv_desc(r, 0, c, false, desc, &g);
	first = rig_push_stamp(r, 0);
	rig_push(r, 0, desc);
	last = rig_push_stamp(r, 0);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, UINT64_C(1) << 24);
	CHECK(!r->faulted, "fault %u", rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)));
	if (check)
		rig_check(r, 0, "depthwise");
	return rig_stamp(r, 0, last) - rig_stamp(r, 0, first);
}

/* Of the layers with that stride, or of all. */
static double measure(struct rig *r, const struct rig_memory *cfg, const char *name,
		      uint32_t stride)
{
	uint64_t macs = 0, cycles = 0, pes = (uint64_t)r->api->rows * r->api->cols;

	for (size_t i = 0; i < LAYERS; i++) {
		struct rig_conv c =
			geometry(layers[i].size, layers[i].channels, layers[i].stride);
		uint64_t m = (uint64_t)c.oh * c.ow * c.n * 9, n;

		if (stride && stride != layers[i].stride)
			continue;
		n = run(r, &c, cfg, false);
		printf("  %-12s %3u x %3u x %4u stride %u: %8llu cycles, MAC use %.3f\n",
		       name, c.h, c.w, c.n, c.sy, (unsigned long long)n,
		       (double)m / (double)(n * pes));
		macs += m * layers[i].times;
		cycles += n * layers[i].times;
	}
	return (double)macs / (double)(cycles * pes);
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	struct rig_memory four = rig_backend(4, NPU_HASH_PLAIN), spread, ideal;
	struct rig r;
	double use, hashed, best, strided;

	rig_open(&r, "16x16x4x8", UINT64_C(1) << 26);
	ideal = rig_ideal(&r);
	spread = rig_backend(4, NPU_HASH_SPREAD);
	for (size_t i = 0; i < LAYERS; i++) {
		struct rig_conv c = geometry(layers[i].size / 4 + 3,
					     layers[i].channels / 4, layers[i].stride);

		run(&r, &c, &four, true);
	}
	use = measure(&r, &four, "4 channels", 0);
	CHECK(use >= LEAST, "MAC use %.3f", use);
	hashed = measure(&r, &spread, "spread", 0);
	CHECK(hashed >= LEAST_SPREAD, "MAC use with masks that spread strides %.3f",
	      hashed);
	best = measure(&r, &ideal, "ideal memory", 0);
	CHECK(best >= LEAST_IDEAL, "MAC use with ideal memory %.3f", best);
	strided = measure(&r, &ideal, "ideal memory", 2);
	CHECK(strided >= LEAST_STRIDED, "MAC use with stride 2 %.3f", strided);
	if (figures) {
		printf("figure npu.depthwise.mac_util %.5f\n", use);
		printf("figure npu.depthwise.mac_util.spread %.5f\n", hashed);
		printf("figure npu.depthwise.mac_util_ideal %.5f\n", best);
		printf("figure npu.depthwise.mac_util_ideal.stride2 %.5f\n", strided);
	}
	rig_close(&r);
	return bench_end("bench_depthwise");
}
