/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - the whole NPU on a bench: a model, an address space and a ring a slot, and for
 * each space a shadow that says what memory must hold.  Everything goes through
 * descriptors and registers; rig_check() runs the same descriptors through npu-rtl/golden
 * on the shadow and compares every byte of the space.
 *
 * Failures of the rig itself (no model, no memory, a slot that never ends) end the
 * process: 77 when the model is not there, else 2.
 */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"
#include "hash.h"
#include "layers.h"
#include "npu_golden.h"
#include "npu_model.h"
#include "npu_panel.h"
#include "npu_regs.h"

#define RIG_SLOTS  8
#define RIG_DEPTH  512                                  /* ring entries of a slot */
#define RIG_STAMPS 256                                  /* timestamps of a slot */
#define RIG_ALL    0xffffu                              /* every channel */
#define RIG_SAVE   (NPU_CONTEXT_SUMS + NPU_DEPTH * 128) /* bytes of a save area */

struct rig_rect {
	uint32_t row, col, rows, cols;
};

struct rig_memory {
	bool ideal;
	uint32_t k, q; /* channels in use: q * 2^k */
	uint32_t gran; /* 8..12 */
	uint32_t xmask[4];
	uint32_t timing; /* 0: as after reset */
	struct npu_model_memory extra;
	uint32_t turns; /* cycles; 0: fair */
};

struct rig_space {
	uint32_t pages, *frame; /* physical page of each virtual page */
	uint8_t *shadow;
	uint32_t channels; /* mask */
	uint32_t free_va;
	uint32_t ring, stamps; /* virtual addresses */
	uint32_t tail, done;   /* descriptors pushed, run by the golden model */
	uint32_t nstamps;
	uint32_t table;  /* the root's physical address */
	uint32_t number; /* PT_CONTEXT */
	uint64_t macs;   /* of the golden model, since the space was made */
};

struct rig {
	const struct npu_model_api *api;
	struct npu_model_api shaped; /* api of a model of any shape, with its shape */
	struct npu_model *model;
	uint8_t *memory;
	uint64_t bytes;
	struct rig_memory cfg;
	uint8_t *taken; /* physical pages */
	uint32_t npages;
	struct rig_space space[RIG_SLOTS];
	uint32_t ended;   /* one bit a slot: a SIGNAL with the IRQ flag came */
	uint32_t faulted; /* one bit a slot */
	uint32_t quieted;
};

struct rig_counters {
	uint64_t cycles, active, stall_a, stall_bank, stall_w, stall_out, stall_seq, idle;
	uint64_t macs, folds, rows, descs, read_beats, write_beats, tlb_misses;
};

/* Loads libnpu_<shape>.so; without one the process ends with 77.  engine: a model in C of
 * that shape, libnpu_<engine>.so; NULL: the RTL's.  rig_open takes it from
 * NPU_MODEL_ENGINE. */
void rig_open(struct rig *r, const char *shape, uint64_t bytes);
void rig_open_engine(struct rig *r, const char *engine, const char *shape,
		     uint64_t bytes);
void rig_close(struct rig *r);
/* A machine fresh from reset, all spaces gone, memory configured. */
void rig_reset(struct rig *r, const struct rig_memory *cfg);
void rig_run(struct rig *r, uint64_t cycles);
struct rig_memory rig_ideal(const struct rig *r);
/* 1 to 16 of them. */
struct rig_memory rig_channels(uint32_t channels);
/* As the backend sets it, with that hash_seed. */
struct rig_memory rig_backend(uint32_t channels, uint32_t hash_seed);

/* An address space of bytes for slot s on these channels, with ring and stamps in it. */
void rig_space(struct rig *r, uint32_t s, uint32_t bytes, uint32_t channels);
uint32_t rig_alloc(struct rig *r, uint32_t s, uint32_t bytes, uint32_t align);
/* Frees all that rig_alloc gave. */
void rig_free_all(struct rig *r, uint32_t s);
/* Host access to memory and shadow. */
void rig_poke(struct rig *r, uint32_t s, uint32_t va, const void *data, uint32_t bytes);
void rig_peek(struct rig *r, uint32_t s, uint32_t va, void *data, uint32_t bytes);
void rig_random(struct rig *r, uint32_t s, uint32_t va, uint32_t bytes, struct rng *g);
/* Page table entry of va as it is, and changed: for fault tests. */
void rig_set_pte(struct rig *r, uint32_t s, uint32_t va, uint32_t pte);
uint32_t rig_pte(const struct rig *r, uint32_t s, uint32_t va);
/* The channel of a physical address. */
uint32_t rig_channel(const struct rig *r, uint32_t pa);

/* Stages every slot's rectangle (rows 0: none) and commits; the MAP code. */
uint32_t rig_map(struct rig *r, const struct rig_rect *rects, uint32_t count);
/* Slot s alone, on that rectangle; and one drawn from all that there are. */
void rig_place(struct rig *r, uint32_t s, const struct rig_rect *rect);
struct rig_rect rig_anywhere(const struct rig *r, struct rng *g);
uint32_t rig_reg(struct rig *r, uint32_t address);
void rig_write(struct rig *r, uint32_t address, uint32_t value);

/* Into the ring; nothing starts before rig_bell(). */
void rig_push(struct rig *r, uint32_t s, const uint32_t desc[16]);
/* A TIMESTAMP; the index for rig_stamp(). */
uint32_t rig_push_stamp(struct rig *r, uint32_t s);
uint64_t rig_stamp(struct rig *r, uint32_t s, uint32_t index);
/* A SIGNAL with the IRQ flag. */
void rig_push_end(struct rig *r, uint32_t s);
void rig_bell(struct rig *r, uint32_t s);
/* Ring anew, at entry 0: after a fault. */
void rig_restart(struct rig *r, uint32_t s);
/* Until all slots of the mask have ended or faulted; cycles beyond the limit fail. */
void rig_wait(struct rig *r, uint32_t mask, uint64_t limit);
/* Until the register's bits of mask have the value. */
void rig_wait_reg(struct rig *r, uint32_t address, uint32_t mask, uint32_t value,
		  uint64_t limit);

/* Golden model over all descriptors pushed since the last time; then memory == shadow. */
void rig_golden(struct rig *r, uint32_t s);
void rig_compare(struct rig *r, uint32_t s, const char *what);
/* What lies there is no output but what FOLD or SAVE has stored. */
void rig_forget(struct rig *r, uint32_t s, uint32_t va, uint32_t bytes);
void rig_check(struct rig *r, uint32_t s, const char *what);
/* Snapshot, read, and check the conservation law and MACS == golden's (all since reset).
 */
struct rig_counters rig_counters(struct rig *r, uint32_t s, bool check_macs);

/* ---- random work ------------------------------------------------------------------- */

struct rig_conv {
	uint32_t h, w, cin, pix; /* input, channels used, bytes a pixel */
	uint32_t oh, ow, n;
	uint32_t kh, kw, sy, sx, dy, dx, pt, pl;
	uint32_t lda, ldb, ldd; /* 0: dense */
	bool out32, au8, bu8, ou8, noparam, block, onnx, once;
	uint32_t gc; /* not 0: grouped, as many channels a group, anywhere among cin */
	/* gc = 1: channel n of the input for output n; operands as a compiler places them
	 */
	bool depthwise;
	uint32_t panel; /* most rows of a tile; 0: as many as fit */
	uint32_t kcut;  /* GEMM: K is cut; 0: where that is faster */
};

/* m rows of k by k rows of n, for GEMM; all else is 0 and 1 as GEMM wants it. */
struct rig_conv rig_matrix(uint32_t m, uint32_t n, uint32_t k);
/* Allocates operands with random contents and fills desc; GEMM is kh = kw = oh = 1 ...
 * with gemm true: h = M rows of cin = K. */
void rig_conv_desc(struct rig *r, uint32_t s, const struct rig_conv *c, bool gemm,
		   uint32_t desc[16], struct rng *g);
void rig_gemm_desc(struct rig *r, uint32_t s, uint32_t m, uint32_t n, uint32_t k,
		   uint32_t desc[16], struct rng *g);
/* Something random: any operation. */
void rig_random_desc(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g);
void rig_random_gemm(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g);
void rig_random_conv(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g);
void rig_random_vec(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g);

/* ---- layer tables in SCALE-Sim's format -------------------------------------------- */

/* Bytes of the operands of l, for rig_alloc. */
void rig_layer_bytes(const struct layer *l, uint32_t *a, uint32_t *b, uint32_t *d);
/* One multiplier for all, int8 output; operands wherever they are. */
void rig_layer_desc(const struct layer *l, uint32_t a, uint32_t b, uint32_t d,
		    uint32_t desc[16]);

#endif
