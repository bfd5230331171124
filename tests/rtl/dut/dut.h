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

/* ---- npu_mem ----------------------------------------------------------------------- */

#define DUT_MEM_SLOTS 4

struct dut_mem_req {
	bool v, we;
	uint32_t ch, lline, beats, tag, pa;
};
struct dut_mem_rsp {
	bool v, we;
	uint32_t slot, tag, pa;
};
struct dut_mem;
/* channels: as built, 8 or 6. */
struct dut_mem *dut_mem_create(uint32_t channels);
void dut_mem_destroy(struct dut_mem *d);
void dut_mem_reset(struct dut_mem *d, bool ideal, uint32_t timing);
void dut_mem_request(struct dut_mem *d, uint32_t slot, const struct dut_mem_req *req);
/* One bit a slot: its request is accepted in this cycle.  After the requests are set. */
uint32_t dut_mem_accepted(struct dut_mem *d);
bool dut_mem_busy(struct dut_mem *d);
void dut_mem_step(struct dut_mem *d);
void dut_mem_response(struct dut_mem *d, uint32_t ch, struct dut_mem_rsp *rsp);
void dut_mem_ideal_response(struct dut_mem *d, uint32_t slot, struct dut_mem_rsp *rsp);
void dut_mem_snapshot(struct dut_mem *d);
uint32_t dut_mem_counter(struct dut_mem *d, uint32_t ch, uint32_t word);

#ifdef __cplusplus
}
#endif
#endif
