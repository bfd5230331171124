/* SPDX-License-Identifier: Apache-2.0 */
/* dut.h - single modules of the NPU, Verilated, as the unit benches in C see them. */
#ifndef DUT_H
#define DUT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- npu_hash_pkg: combinational --------------------------------------------------- */

struct dut_hash;
struct dut_hash_cfg {
	uint32_t k, q, gran;
	uint32_t xmask[4];
};
struct dut_hash *dut_hash_create(void);
void dut_hash_destroy(struct dut_hash *d);
void dut_hash_config(struct dut_hash *d, const struct dut_hash_cfg *cfg);
/* map() of a granule. */
void dut_hash_granule(struct dut_hash *d, uint32_t granule, uint32_t *ch,
		      uint32_t *local);
/* line() of an address. */
void dut_hash_line(struct dut_hash *d, uint32_t pa, uint32_t *ch, uint32_t *local);

/* ---- npu_map ----------------------------------------------------------------------- */

#define DUT_MAP_ROWS  16
#define DUT_MAP_COLS  16
#define DUT_MAP_SLOTS 8

struct dut_map;
struct dut_map_rect {
	uint32_t row, col, rows, cols;
};
struct dut_map *dut_map_create(void);
void dut_map_destroy(struct dut_map *d);
void dut_map_stage(struct dut_map *d, uint32_t slot, const struct dut_map_rect *rect);
uint32_t dut_map_staged(struct dut_map *d, uint32_t slot);
void dut_map_commit(struct dut_map *d, uint32_t quiet, uint32_t *result, uint32_t *slot);
void dut_map_get(struct dut_map *d, uint32_t slot, struct dut_map_rect *rect);

/* ---- ports and memory ------------------------------------------------------------- */

#define DUT_MEM_SLOTS 4
#define DUT_MEM_BYTES (1u << 20) /* addresses wrap */
#define DUT_MEM_PIECE 32         /* bytes that a store has at most */

/* A slot's two ways to memory. */
enum dut_mem_way { DUT_MEM_LOAD, DUT_MEM_STORE, DUT_MEM_WAYS };

struct dut_mem_req {
	bool v, walk;
	uint32_t ch, lline, beats, len, tag, pa;
	uint8_t data[DUT_MEM_PIECE]; /* a store's: the byte at pa first */
};
/* A load's answer. */
struct dut_mem_rsp {
	bool v, denied;
	uint32_t tag, at;
	uint8_t data[64];
};
/* Stores that are answered in one cycle. */
struct dut_mem_ack {
	bool denied;
	uint32_t n[2]; /* by their tag's lowest bit */
};
/* Registers ARB, PRIO, TURNS, TURN_ORDER, CH_GROUP. */
struct dut_mem_share {
	uint32_t mode[2], pass[2], prio;
	uint32_t cycles, last, order;
	uint32_t groups;
};
struct dut_mem_bucket {
	uint32_t window, budget, burst;
};
struct dut_mem;
/* channels: as built, 8 or 6. */
struct dut_mem *dut_mem_create(uint32_t channels);
void dut_mem_destroy(struct dut_mem *d);
void dut_mem_reset(struct dut_mem *d, bool ideal, uint32_t timing);
/* From the next step on; turns begin anew. */
void dut_mem_share(struct dut_mem *d, const struct dut_mem_share *share);
/* From behind the next step on; one in a cycle. */
void dut_mem_bucket(struct dut_mem *d, uint32_t slot, uint32_t group,
		    const struct dut_mem_bucket *bucket);
uint32_t dut_mem_held(struct dut_mem *d, uint32_t slot);
/* The bytes that every machine made here works on, one at a time. */
uint8_t *dut_mem_bytes(void);
void dut_mem_request(struct dut_mem *d, uint32_t slot, enum dut_mem_way way,
		     const struct dut_mem_req *req);
/* Channels the slot may use; all of them after reset. */
void dut_mem_mask(struct dut_mem *d, uint32_t slot, uint32_t channels);
/* Two bits a slot, the load's the lower: it is accepted in this cycle.  After the
 * requests are set. */
uint32_t dut_mem_accepted(struct dut_mem *d);
bool dut_mem_busy(struct dut_mem *d);
void dut_mem_step(struct dut_mem *d);
void dut_mem_response(struct dut_mem *d, uint32_t slot, struct dut_mem_rsp *rsp);
void dut_mem_answered(struct dut_mem *d, uint32_t slot, struct dut_mem_ack *ack);
void dut_mem_snapshot(struct dut_mem *d);
uint32_t dut_mem_counter(struct dut_mem *d, uint32_t ch, uint32_t word);

/* ---- npu_axi ----------------------------------------------------------------------- */

#define DUT_AXI_SLOTS 4

struct dut_axi_burst { /* AW or AR */
	uint32_t v, id, addr, len, size, burst;
};
struct dut_axi_beat {
	uint32_t v, last, strb;
	uint8_t data[16];
};
struct dut_axi_in {
	/* the port: a request, and the data of the write taken one cycle ago */
	bool v, we;
	uint32_t slot, lline, beats, len, at;
	uint8_t line[64];
	/* the bus */
	bool awready, wready, arready, bvalid, rvalid, rlast;
	uint32_t bid, bresp, rid, rresp;
	uint8_t rdata[16];
};
struct dut_axi_out {
	bool ready, rsp_v, rsp_we, err;
	uint32_t rsp_slot;
	uint8_t line[64];
	struct dut_axi_burst aw, ar;
	struct dut_axi_beat w;
	bool bready, rready;
};
struct dut_axi;
struct dut_axi *dut_axi_create(void);
void dut_axi_destroy(struct dut_axi *d);
void dut_axi_reset(struct dut_axi *d, bool reset);
/* Inputs of this cycle, and the outputs they make. */
void dut_axi_show(struct dut_axi *d, const struct dut_axi_in *in,
		  struct dut_axi_out *out);
void dut_axi_step(struct dut_axi *d);

/* ---- npu_requant -------------------------------------------------------------------- */

struct dut_requant;
struct dut_requant_mode {
	bool is_float, is_once, is_unsigned;
	uint8_t zp, lo, hi;
};
struct dut_requant_in {
	bool clear, v;
	int32_t x;
	uint32_t mult;
	int32_t shift;
};
struct dut_requant_out {
	bool v;
	int32_t rescaled;
	uint8_t y;
};
struct dut_requant *dut_requant_create(void);
void dut_requant_destroy(struct dut_requant *d);
void dut_requant_mode(struct dut_requant *d, const struct dut_requant_mode *m);
/* One cycle: what goes in, and what is out after it. */
void dut_requant_step(struct dut_requant *d, const struct dut_requant_in *in,
		      struct dut_requant_out *out);

/* ---- npu_conv_gather over npu_conv_spad, 16 x 16, 128 KiB --------------------------- */

#define DUT_LANES 16

struct dut_gather_op {
	bool group, u8;
	uint32_t zp, rows, cols, kcin, sx, dx;
};
struct dut_gather_lane {
	bool v, start, again;
	uint32_t off, dx, dy, more;
};
struct dut_gather_cols {
	uint32_t wins, win[DUT_LANES], more[DUT_LANES]; /* one less than there are */
	uint32_t of[DUT_LANES], at[DUT_LANES];
};
struct dut_gather_row {
	bool v, fresh;
	int32_t iy, ix;
	uint32_t ad, tag;
};
struct dut_gather_out {
	bool row, load;
	uint32_t tag, at;
	int32_t a[DUT_LANES], g[DUT_LANES][DUT_LANES], w[DUT_LANES];
};
struct dut_gather;
struct dut_gather *dut_gather_create(void);
void dut_gather_destroy(struct dut_gather *d);
void dut_gather_reset(struct dut_gather *d);
void dut_gather_write(struct dut_gather *d, uint32_t line, const uint8_t data[64]);
uint32_t dut_gather_bank(struct dut_gather *d, uint32_t word);
void dut_gather_set(struct dut_gather *d, const struct dut_gather_op *op,
		    const struct dut_gather_lane lane[DUT_LANES],
		    const struct dut_gather_cols *cols);
/* What is offered in this cycle; whether the row is taken, and whether a load could be.
 */
bool dut_gather_offer(struct dut_gather *d, const struct dut_gather_row *row,
		      bool *ready);
void dut_gather_load(struct dut_gather *d, bool v, uint32_t at,
		     const int32_t w[DUT_LANES]);
/* What leaves in this cycle. */
void dut_gather_out(struct dut_gather *d, struct dut_gather_out *out);
void dut_gather_step(struct dut_gather *d);

#ifdef __cplusplus
}
#endif
#endif
