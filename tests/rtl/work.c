/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - random programs for benches: every operation, with every flag and odd shapes.
 */
#include "work.h"

#include <string.h>

#include "npu_panel.h"

#define WIDE 4095 /* softmax's longest row */

/* ---- descriptors that the rig does not make -------------------------------------- */

/* A row as long as it may be, or so flat that its sum is large. */
static void long_softmax(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t rows = rng_range(g, 1, 3), cols = rng_range(g, 300, WIDE);
	uint32_t a = rig_alloc(r, s, rows * cols, rng_range(g, 1, 64));
	uint32_t d = rig_alloc(r, s, rows * cols, rng_range(g, 1, 64));
	uint32_t table = rig_alloc(r, s, 1024, 16), spread = rng_range(g, 1, 255);
	double value = 2147483647.0, decay = 1 - 1.0 / rng_range(g, 1, 300);

	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, NPU_VOP_SOFTMAX);
	NPU_SET(desc, F_AU8, rng_next(g) % 2);
	NPU_SET(desc, F_OU8, rng_next(g) % 2);
	NPU_SET(desc, DM, rows);
	NPU_SET(desc, VCOLS, cols);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_P, table);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, LDA, cols);
	NPU_SET(desc, LDD, cols);
	for (uint32_t i = 0; i < rows * cols; i++) {
		uint8_t byte = (uint8_t)rng_range(g, 0, spread);

		rig_poke(r, s, a + i, &byte, 1);
	}
	for (uint32_t i = 0; i < 256; i++, value *= decay) {
		int32_t entry = (int32_t)value;

		rig_poke(r, s, table + 4 * i, &entry, 4);
	}
}

/* One pixel out of a whole image, or nearly. */
static void large_pool(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t h = rng_range(g, 1, 40), w = rng_range(g, 1, 40);
	uint32_t c = rng_range(g, 1, 40);
	uint32_t kh = h + rng_range(g, 0, 9), kw = w + rng_range(g, 0, 9);
	uint32_t sy = rng_range(g, 1, 15), sx = rng_range(g, 1, 15);
	uint32_t pt = rng_range(g, 0, kh - 1), pl = rng_range(g, 0, kw - 1);
	uint32_t oh = rng_range(g, 1, (h - 1 + pt) / sy % 3 + 1);
	uint32_t ow = rng_range(g, 1, (w - 1 + pl) / sx % 3 + 1);
	uint32_t a = rig_alloc(r, s, h * w * c, rng_range(g, 1, 64));
	uint32_t d = rig_alloc(r, s, oh * ow * c, rng_range(g, 1, 64));

	memset(desc, 0, 64);
	rig_random(r, s, a, h * w * c, g);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, rng_next(g) % 3 ? NPU_VOP_AVGPOOL : NPU_VOP_MAXPOOL);
	NPU_SET(desc, F_AU8, rng_next(g) % 2);
	NPU_SET(desc, F_OU8, rng_next(g) % 2);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, oh * ow);
	NPU_SET(desc, OW, ow);
	NPU_SET(desc, CIN, c);
	NPU_SET(desc, H, h);
	NPU_SET(desc, W, w);
	NPU_SET(desc, LDA, w * c);
	NPU_SET(desc, PIX, c);
	NPU_SET(desc, LDD, c);
	NPU_SET(desc, KH, kh);
	NPU_SET(desc, KW, kw);
	NPU_SET(desc, SY, sy);
	NPU_SET(desc, SX, sx);
	NPU_SET(desc, DY, rng_range(g, 1, 15)); /* not used by pools */
	NPU_SET(desc, DX, rng_range(g, 1, 15));
	NPU_SET(desc, PT, pt);
	NPU_SET(desc, PL, pl);
	NPU_SET(desc, AMIN, NPU_GET(desc, F_OU8) ? 0 : 128);
	NPU_SET(desc, AMAX, NPU_GET(desc, F_OU8) ? 255 : 127);
}

/* Depthwise and grouped as networks have them: every kernel lane of its own, strides,
 * dilation, one or more outputs a channel. */
static void grouped_conv(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t groups = rng_range(g, 2, 20), each = rng_range(g, 1, 3);
	struct rig_conv c = {.gc = rng_next(g) % 2 ? 1 : rng_range(g, 1, 4)};

	c.cin = groups * c.gc;
	c.n = groups * each;
	c.pix = c.cin + rng_range(g, 0, 3);
	c.h = rng_range(g, 1, 16);
	c.w = rng_range(g, 1, 16);
	c.kh = rng_range(g, 1, rng_next(g) % 4 ? 3 : 10);
	c.kw = rng_range(g, 1, rng_next(g) % 4 ? 3 : 10);
	c.sy = rng_range(g, 1, 3);
	c.sx = rng_range(g, 1, 3);
	c.dy = rng_range(g, 1, 2);
	c.dx = rng_range(g, 1, 2);
	c.pt = rng_range(g, 0, (c.kh - 1) * c.dy);
	c.pl = rng_range(g, 0, (c.kw - 1) * c.dx);
	c.oh = rng_range(g, 1, (c.h - 1 + c.pt) / c.sy + 1);
	c.ow = rng_range(g, 1, (c.w - 1 + c.pl) / c.sx + 1);
	c.out32 = rng_next(g) % 6 == 0;
	c.onnx = rng_next(g) % 4 == 0;
	c.once = rng_next(g) % 3 == 0;
	c.au8 = rng_next(g) % 2;
	c.bu8 = rng_next(g) % 2;
	c.ou8 = rng_next(g) % 2;
	c.block = true;
	rig_conv_desc(r, s, &c, false, desc, g);
	for (uint32_t n = 0; n < c.n; n++) {
		uint32_t at = n / each * c.gc;

		rig_poke(r, s, NPU_GET(desc, ADDR_P) + 16 * n + 12, &at, 4);
	}
}

/* Tiles of a row or a few, a fold or two each: as many as there are columns for. */
void work_tiny(struct rig *r, uint32_t s, uint32_t cols, uint32_t desc[16], struct rng *g)
{
	bool gemm = rng_next(g) % 2, group = !gemm && rng_next(g) % 2;
	uint32_t each = rng_range(g, 1, 2);
	struct rig_conv c = {.h = rng_range(g, 1, 3),
			     .w = gemm ? 1 : rng_range(g, 1, 3),
			     .kh = gemm ? 1 : rng_range(g, 1, 2),
			     .kw = gemm ? 1 : rng_range(g, 1, 2),
			     .sy = 1,
			     .sx = 1,
			     .dy = 1,
			     .dx = 1,
			     .out32 = rng_next(g) % 8 == 0,
			     .onnx = rng_next(g) % 8 == 0,
			     .once = rng_next(g) % 4 == 0,
			     .au8 = rng_next(g) % 2,
			     .bu8 = rng_next(g) % 2,
			     .ou8 = rng_next(g) % 2};

	c.n = cols * rng_range(g, 1, 24) - rng_range(g, 0, cols - 1);
	if (group) {
		c.gc = 1;
		c.cin = (c.n + each - 1) / each;
		c.n = c.cin * each;
		c.block = true;
	} else {
		c.cin = rng_range(g, 1, 3);
		c.noparam = rng_next(g) % 2;
		c.block = rng_next(g) % 2;
	}
	c.pt = rng_range(g, 0, c.kh - 1);
	c.pl = rng_range(g, 0, c.kw - 1);
	c.oh = gemm ? c.h : rng_range(g, 1, c.h + c.pt);
	c.ow = gemm ? 1 : rng_range(g, 1, c.w + c.pl);
	rig_conv_desc(r, s, &c, gemm, desc, g);
	for (uint32_t n = 0; group && n < c.n; n++) {
		uint32_t at = n / each;

		rig_poke(r, s, NPU_GET(desc, ADDR_P) + 16 * n + 12, &at, 4);
	}
}

/* Rows so long that the scratchpad holds few more than one output needs, and more of them
 * than it holds.  A panel too many, and the operation stops as stuck. */
static void tight_conv(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	struct rig_conv c = {.kh = rng_range(g, 1, 4), .kw = rng_range(g, 1, 3)};
	bool gemm = rng_next(g) % 4 == 0;
	uint32_t held;

	c.sy = rng_range(g, 1, 3);
	c.sx = rng_range(g, 1, 2);
	c.dy = rng_range(g, 1, 2);
	c.dx = 1;
	if (gemm)
		c.kh = c.kw = c.sy = c.sx = c.dy = 1;
	held = (c.kh - 1) * c.dy + 1 + rng_range(g, 0, 4);
	if (gemm)
		held += rng_range(g, 10, 40);
	c.h = held + rng_range(g, 1, held);
	c.cin = NPU_SPAD_USE / held - 256 - rng_range(g, 0, 255);
	if (c.h * c.cin > WORK_ROOM / 8 * 5)
		c.h = WORK_ROOM / 8 * 5 / c.cin;
	c.w = 1;
	if (!gemm) {
		c.w = rng_range(g, 2, 60);
		c.pix = c.cin / c.w;
		c.cin = rng_range(g, 1, c.pix < 20 ? c.pix : 20);
	}
	c.pt = rng_range(g, 0, (c.kh - 1) * c.dy);
	c.pl = rng_range(g, 0, c.kw - 1);
	c.oh = (c.h - 1 + c.pt) / c.sy + 1;
	c.ow = (c.w - 1 + c.pl) / c.sx + 1;
	c.n = rng_range(g, 1, gemm ? 6 : 12);
	c.out32 = rng_next(g) % 6 == 0;
	c.noparam = rng_next(g) % 2;
	c.block = rng_next(g) % 2;
	rig_conv_desc(r, s, &c, gemm, desc, g);
}

/* K in parts, of all rows in the scratchpad at a time: of one part, of several, or of not
 * quite two. */
void work_cut(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	struct rig_conv c = rig_matrix(0, 0, 0);
	uint32_t part, most;

	c.kcut = rng_next(g) % 8 ? 8 : rng_range(g, 9, 11);
	c.out32 = rng_next(g) % 4 == 0;
	c.au8 = rng_next(g) % 2;
	c.bu8 = rng_next(g) % 2;
	c.ou8 = rng_next(g) % 2;
	c.onnx = rng_next(g) % 4 == 0;
	c.once = rng_next(g) % 3 == 0;
	c.noparam = rng_next(g) % 2;
	c.block = rng_next(g) % 2;
	part = 1u << c.kcut;
	most = NPU_SPAD_USE / npu_panel_cut_sps(c.kcut);
	c.cin = part + rng_range(g, 1, rng_next(g) % 2 ? 2 * part : 20);
	if (rng_next(g) % 2)
		c.lda = c.cin + rng_range(g, 0, 90);
	if (most > NPU_DEPTH_OUT32)
		most = NPU_DEPTH_OUT32;
	c.h = rng_range(g, 1, rng_next(g) % 8 ? 12 : most);
	while (c.h > 1 && c.h * (c.cin + 90) > WORK_ROOM / 2)
		c.h /= 2;
	c.oh = c.h;
	c.n = rng_range(g, 1, rng_next(g) % 8 ? 6 : 20);
	while (c.n > 1 && c.cin * ((c.n + 15) / 16 * 16) > WORK_ROOM / 4)
		c.n /= 2;
	rig_conv_desc(r, s, &c, true, desc, g);
}

void work_desc(struct rig *r, uint32_t s, uint32_t desc[16], bool array, struct rng *g)
{
	if (array && rng_next(g) % 16 == 0) {
		work_cut(r, s, desc, g);
		return;
	}
	if (array && rng_next(g) % 16 == 0) {
		tight_conv(r, s, desc, g);
		return; /* its panels are those of this DM */
	}
	if (array && rng_next(g) % 8 == 0) {
		work_tiny(r, s, rng_range(g, 1, r->api->cols), desc, g);
		return;
	}
	switch (rng_range(g, array ? 0 : 6, 11)) {
	case 0:
		rig_random_gemm(r, s, desc, g);
		break;
	case 1:
	case 2:
		rig_random_conv(r, s, desc, g);
		break;
	case 3:
	case 4:
	case 5:
		grouped_conv(r, s, desc, g);
		break;
	case 6:
		long_softmax(r, s, desc, g);
		break;
	case 7:
		large_pool(r, s, desc, g);
		break;
	default:
		rig_random_vec(r, s, desc, g);
	}
	/* An image's last line need not be whole. */
	if (rng_next(g) % 4 == 0)
		NPU_SET(desc, DM, rng_range(g, 1, NPU_GET(desc, DM)));
}

/* ---- machine and map ------------------------------------------------------------- */

struct rig_memory work_memory(const struct rig *r, struct rng *g)
{
	struct rig_memory cfg = rig_channels(r->api->channels);

	switch (rng_next(g) % 4) {
	case 0:
		return rig_ideal(r);
	case 1:
		cfg = rig_channels(rng_range(g, 1, 7) % 6 + 1);
		if (cfg.q << cfg.k > r->api->channels)
			cfg = rig_channels(1);
		cfg.timing = 4u << 24 | rng_range(g, 1, 30) | rng_range(g, 0, 30) << 8 |
			     rng_range(g, 0, 30) << 16;
		break;
	case 2:
		for (int i = 0; i < 4; i++)
			cfg.xmask[i] = rng_next(g) & 0xffffff;
		break;
	default:
		break;
	}
	cfg.gran = rng_range(g, 9, 12);
	return cfg;
}

void work_map(const struct rig *r, struct rig_rect *rects, uint32_t *slots, struct rng *g)
{
	uint32_t most = r->api->slots < r->api->cols ? r->api->slots : r->api->cols;
	uint32_t col = 0;

	*slots = rng_next(g) % 2 ? 1 : rng_range(g, 1, most);
	memset(rects, 0, RIG_SLOTS * sizeof(*rects));
	for (uint32_t s = 0; s < *slots; s++) {
		uint32_t strip = (r->api->cols - col) / (*slots - s), skip;

		skip = rng_range(g, 0, strip - 1);
		rects[s].cols = rng_range(g, 1, strip - skip);
		rects[s].col = col + skip;
		rects[s].rows = rng_range(g, 1, r->api->rows);
		if (rng_next(g) % 3 == 0)
			rects[s].rows = r->api->rows;
		rects[s].row = rng_range(g, 0, r->api->rows - rects[s].rows);
		if (rng_next(g) % 8 == 0)
			memset(&rects[s], 0, sizeof(rects[s]));
		col += strip;
	}
}

/* ---- programs -------------------------------------------------------------------- */

static bool is_array(const uint32_t desc[16])
{
	return NPU_GET(desc, OPCODE) == NPU_OP_GEMM ||
	       NPU_GET(desc, OPCODE) == NPU_OP_CONV;
}

/* Bytes that desc reads from ADDR_A, ADDR_B, ADDR_P on. */
static uint32_t bytes_read(const uint32_t desc[16], uint32_t word)
{
	bool gemm = NPU_GET(desc, OPCODE) == NPU_OP_GEMM;
	uint32_t n = NPU_GET(desc, DN), cin = NPU_GET(desc, CIN);
	uint32_t taps = gemm ? 1 : NPU_GET(desc, KH) * NPU_GET(desc, KW);
	uint32_t k = taps * (NPU_GET(desc, F_GROUP) ? NPU_GET(desc, GC) : cin);

	if (word == NPU_DESC_ADDR_P_WORD)
		return 16 * n;
	if (word == NPU_DESC_ADDR_B_WORD)
		return NPU_GET(desc, F_BLOCK) ? (n + 15) / 16 * 16 * k
					      : (k - 1) * NPU_GET(desc, LDB) + n;
	if (gemm)
		return (NPU_GET(desc, DM) - 1) * NPU_GET(desc, LDA) + cin;
	return (NPU_GET(desc, H) - 1) * NPU_GET(desc, LDA) +
	       (NPU_GET(desc, W) - 1) * NPU_GET(desc, PIX) + cin;
}

void work_connect(uint32_t (*descs)[16], uint32_t count, struct rng *g)
{
	static const uint32_t words[6] = {NPU_DESC_ADDR_A_WORD, NPU_DESC_ADDR_A_WORD,
					  NPU_DESC_ADDR_B_WORD, NPU_DESC_ADDR_P_WORD};
	uint32_t back = rng_range(g, 1, 2), at = rng_range(g, 0, 40);
	uint32_t *desc = descs[count], *last, word;

	if (back > count)
		return;
	last = descs[count - back];
	if (!is_array(desc) || !is_array(last))
		return;
	word = words[rng_next(g) % 6];
	if (word == 0 || (word == NPU_DESC_ADDR_P_WORD &&
			  (!NPU_GET(desc, F_OUT32) || NPU_GET(desc, F_GROUP))))
		return;
	at += NPU_GET(last, ADDR_D);
	if (word == NPU_DESC_ADDR_B_WORD)
		at &= ~15u;
	/* Nothing says when an operation reads what it writes itself. */
	if (at + bytes_read(desc, word) <= NPU_GET(desc, ADDR_D))
		desc[word] = at;
}
