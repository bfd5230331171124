/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.h - engine "fast": what decides the machine's cycles, and nothing else of it.
 *
 * Each file steps one part of the machine by a cycle, in the terms of the RTL's module of
 * the same name: queues, counters and addresses are there, data are not.  What a
 * descriptor computes is the golden model's, when it retires.  A step sees the state that
 * the last cycle left, like flip-flops do: who needs another part's old state is stepped
 * before it.
 */
#ifndef NPU_FAST_H
#define NPU_FAST_H

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "npu_golden.h"
#include "npu_map.h"
#include "npu_model.h"
#include "npu_regs.h"

#define SLOTS    8u
#define CHANNELS 16u
#define ROWS_MAX 32u /* PE rows, PE columns: npu_pkg has no more */
#define SIDE     64u /* of what a rectangle's rows or columns count */
#define BANKS    8u
#define REQUANT  6u /* npu_math_pkg::RequantCycles */
#define SPAD     (128u * 1024u)

/* ---- memory requests ---------------------------------------------------------------- */

#define TAG_ACT  0x0C0u /* ... 0x0FF: activation lines; below: fetch FIFO */
#define TAG_DESC 0x180u
#define TAG_WAIT 0x181u
#define TAG_FROM 0x182u
#define TAG_SUMS 0x183u /* bits 5:2: which line */
#define TAG_WALK 0x1C0u

struct request {
	bool v, we, walk;
	bool fence; /* a write whose data count: SIGNAL, TIMESTAMP, a context */
	uint8_t channel, beats, len, slot;
	uint16_t tag;
	uint32_t lline; /* channel-local line */
	uint32_t pa;
};

struct response {
	bool v, denied;
	uint16_t tag;
};

/* Answers to stores that come in one cycle, by epoch. */
struct acks {
	bool denied;
	uint32_t n[2];
};

/* Loads and stores of a slot go apart. */
enum way { LOADS, STORES, WAYS };

/* ---- npu_ports, npu_dram ------------------------------------------------------------- */

struct arb_cfg {
	uint32_t mode, pass;
};

struct turn {
	bool open, close;
	uint32_t slot;
};

struct flight {
	uint64_t done;
	struct request req;
};

struct channel {
	/* npu_port */
	struct queue {
		struct request fifo[32];
		uint32_t wp, rp;
	} queue[WAYS][SLOTS];
	uint32_t pend[WAYS]; /* slots with a request waiting */
	uint32_t stores;     /* slots whose stores go before their loads */
	/* npu_arb */
	int32_t charge[SLOTS];
	uint32_t last, passed;
	uint32_t open; /* banks with an open row, as far as it knows */
	uint32_t row[BANKS];
	uint32_t opened[BANKS]; /* by whom */
	uint32_t had[SLOTS][2]; /* rows, with their banks, that each used last, + 1 */
	int64_t charged,
		used[BANKS]; /* bus cycles, in all and at a bank's last request */
	/* npu_dram */
	uint32_t bank_open, bank_row[BANKS];
	uint64_t refreshed; /* periods of refresh when it took a request last */
	uint64_t free[BANKS], bus_free;
	struct flight fly[32];
	uint32_t fly_wp, fly_rp;
	bool rsp_v;
	struct request rsp;
	uint32_t count[16], shadow[16]; /* words of the CHAN page */
	/* npu_cache */
	uint32_t line[NPU_MODEL_SETS][NPU_MODEL_WAYS]; /* + 1 */
	uint8_t oldest[NPU_MODEL_SETS];
	uint16_t taken[NPU_MODEL_SETS];
};

/* npu_return */
struct back {
	struct response fifo[CHANNELS][16];
	uint32_t wp[CHANNELS], rp[CHANNELS];
	uint32_t out[CHANNELS]; /* taken and not yet given to the slot */
	uint32_t have, any_out;
	uint32_t last;
};

/* npu_acks */
struct acks_due {
	uint32_t out[CHANNELS]; /* taken and not yet answered */
	uint32_t any_out;
};

struct bucket {
	uint32_t window, left, budget, burst, tokens;
};

/* ---- npu_mmu ----------------------------------------------------------------------- */

enum client { FETCH, ACT, SEQ, CLIENTS }; /* that load */
enum walk { WALK_IDLE, WALK_TABLE, WALK_LINE, WALK_ASK, WALK_WAIT, WALK_CHECK };

struct ask {
	bool we, fence;
	uint8_t len, seq;
	uint16_t tag;
	uint32_t va;
};

struct tlb {
	bool v, w;
	uint8_t channel, context;
	uint32_t vpn, pa, local; /* pa: of the page; local: granule inside the channel */
};

/* npu_translate: one way to memory */
struct translate {
	struct request req; /* to the ports, held until accepted */
	bool ask_v, have;
	struct ask ask;
	struct tlb entry;
	/* of this cycle */
	bool free, ok, miss, next, fault;
	uint32_t kind;
};

struct mmu {
	struct translate way[WAYS];
	uint32_t rr, burst;
	/* npu_walk */
	enum walk walk;
	enum way whose;
	bool leaf;
	bool more;    /* the rest of the line that has been read is filled in */
	bool stale;   /* flushed since the walk under way asked */
	bool hold;    /* flushed, and what was translated before is not answered */
	uint32_t vpn; /* whose entry is looked for */
	uint32_t pte;
	struct {
		bool v;
		uint8_t context;
		uint32_t index, pa;
	} table[16];
	struct {
		bool v;
		uint32_t address;
		uint32_t entry[16];
	} line[8];
	uint32_t walk_line[16]; /* the line that was read for the walk */
	struct tlb tlb[1024];
};

/* ---- npu_fetch -------------------------------------------------------------------- */

struct piece {
	uint32_t va, len, meta, jump;
	bool cut;
};

struct fetch {
	uint32_t head, ready, tail, part;
	uint8_t pend[64];
	struct piece piece[64];
};

/* ---- npu_conv ---------------------------------------------------------------------- */

struct conv_op {
	bool out32, noparam, block, group, pair;
	struct npu_progress at;  /* it begins there; .t 0: at its beginning */
	uint32_t row;            /* first input row that is loaded */
	uint32_t addr_a, addr_m; /* of that; of output row at.m */
	uint32_t addr_b, addr_p, lda, ldb, ldd, row_bytes;
	uint32_t m, h, n, k, kcin, last_group, w, ow, kw, pl, sx, sy, dx, dy;
	uint32_t sps, step_x, step_y, kstep_x, kstep_y, depth;
	uint32_t kcut; /* K is taken in parts of 2^kcut, unless 0 */
};

struct window {
	uint32_t ox;
	int32_t iy, ix;
	uint32_t ad, row, low;
};

struct fold {
	bool first, last, new_panel, new_op, ends;
	uint32_t seq, kr, nc, t, tid;
	uint32_t m, n, k; /* where its tile is, and it in that */
	uint32_t again;   /* the first rows, which have its products */
};

struct tile {
	bool pair, out32, quad, ends, panel;
	uint32_t tid, nc, t, addr, ldd, seq, upto;
};

struct folds {
	bool v, new_panel, new_op, odd, first;
	bool kept; /* sums of the tile are there: it is as wide as they are */
	uint32_t m0, n0, k0, t, row, tid;
	struct fold fold;
	struct tile tile;
};

struct weights {
	bool v, rows, kept;
	bool held; /* a piece is asked for and not taken */
	uint32_t m0, t, n0, k, j, va, tid, ahead;
};

/* Lanes of a fold: what each PE row is fed from. */
struct lanes {
	uint64_t v, start, again;
	uint32_t off[SIDE], dx[SIDE], dy[SIDE], more[SIDE];
	uint32_t dx_most, dy_most;
};

struct load {
	bool v, busy;
	struct fold fold;
	uint32_t i, bank, reach;
	uint32_t c, kx, off, x_off, y_off, dx, dy;
	uint32_t run_at, run_more, last_off;
	struct lanes lanes[2];
	uint64_t start; /* cycle */
};

struct stream {
	bool v;
	struct fold fold;
	uint32_t bank, reach, macs, t;
	uint64_t start;
	struct window window, panel;
};

struct act {
	bool act, last_v;
	uint32_t row, done, lo, rva, va, end, last, last_line, rsp, line;
	uint32_t occupied, old, top;
	/* where K is cut: the row in its part, the part's first k, the tile's first
	 * column */
	uint32_t t, k, n;
	bool kept;
	uint32_t head, tail, count;
	uint64_t pend;
	uint32_t mark[64];
};

/* ---- npu_conv_gather ----------------------------------------------------------------- */

#define PORTS 6u
#define BEATS 8u

struct beat {
	bool row; /* and all of it is there */
	bool out, out32, eof, eot;
	uint8_t runs;
	struct fold fold;
	uint64_t start;
};

/* At most 16 bytes, in a word or two. */
struct run {
	uint16_t word; /* the first */
	uint8_t banks; /* a bit each; 0: there is none */
};

struct port {
	struct run run, next;
	uint8_t runs, got, claimed, filled;
};

struct gather {
	uint64_t done;
	uint32_t win, tail, head;
	struct beat beat[BEATS];
	uint32_t bt, bh, count, ripe, young, old;
	struct port port[PORTS];
	uint32_t busy; /* ports that are not at rest */
};

/* npu_conv_cols: windows of a tile's columns */
struct cols {
	uint32_t n, first, more;
	uint32_t win[4][SIDE], win_more[4][SIDE], col_win[4][SIDE];
};

/* ---- npu_conv_out ------------------------------------------------------------------- */

struct out {
	struct tile tile[8];
	uint32_t live, done, in_tid, out_tid, in_t, out_t, va;
	bool quad, out32, end;
	uint32_t kept[4]; /* rows of short tiles, by bank */
	bool st_v, st_end, st_panel;
	uint32_t st_va, st_bytes, st_at, st_upto;
};

/* What comes out of the array: rows of outputs, and folds' ends. */
struct end {
	uint64_t at;
	bool eot;
	struct fold fold;
	uint64_t start;
};

struct conv {
	struct conv_op op[4]; /* by number */
	struct window origin[4];
	bool behind[4];
	uint32_t base[4];
	/* numbers of operations, free running */
	uint32_t in, weights_n, rows_n, folds_n, streamed_n, computed_n, head;
	struct folds folds;
	struct weights weights;
	struct load load;
	struct stream stream;
	struct act act;
	struct gather gather;
	struct cols cols;
	struct out out;
	uint64_t row_at[256]; /* cycles in which rows come to npu_conv_out */
	uint32_t row_wp, row_rp;
	struct end end[64];
	uint32_t end_wp, end_rp;
	uint64_t in_array; /* last cycle in which a row is on its way */
	uint32_t apart;
	bool group, taken, stray;
	/* no row is to go into the array; nothing was in it; the blocks before it are cut
	 * off */
	bool freeze, still, frozen;
	bool hold, stalled; /* no fold is to be streamed; FOLD has found no input */
	bool held;          /* a row was offered and is still */
	bool second;        /* the first of two rows of weights has gone */
	struct npu_progress frozen_at;
	uint32_t stray_seq, tile_seq[8];
	/* of this cycle */
	bool offer, row, row_last, load_row, weights_take, last_row, load_last, load_take,
		next_take; /* last_row: of its piece */
	bool go, all, take;
	uint64_t in_image, pick;
	uint32_t runs, reach, lo;
	struct piece piece; /* pushed, if any */
	bool pushes, param_take, weights_start, rows_start, folds_start;
	struct window base_window;
	bool stall_a, stall_bank, stall_w, stall_out, stuck, cut;
	bool a_req, a_fits, a_dup;
};

/* ---- npu_vec -------------------------------------------------------------------------- */

struct vec {
	bool start, out_act;
	struct npu_progress from; /* it begins there */
	bool add, two, relu, pool, avg, fill, lut, softmax;
	uint32_t step, cols, tables;
	/* npu_vec_fetch */
	bool act, b, some;
	uint32_t row, col, ox, a_va, b_va, win_va, line_va, pixel_va, ky, kx, tab, pass;
	int32_t iy, ix;
	/* pieces */
	uint32_t taken, tab_in, in_pass, in_col;
	bool second;
	/* outputs on their way */
	uint64_t emit[16];
	uint32_t emit_wp, emit_rp;
	uint32_t waiting; /* in the FIFO before the stores */
	uint32_t out_row, out_col, out_va;
	/* units */
	uint32_t quarter, div, index, step_n, round;
	bool half;
	/* of this cycle */
	bool push, push_table, last_in, in_image, k_last, col_last, work, empty, take;
	bool pop, makes, emits, halt;
	struct piece piece;
};

/* ---- npu_slot ------------------------------------------------------------------------- */

enum state {
	S_IDLE,
	S_FETCH,
	S_DECODE,
	S_RUN,
	S_FLUSH,
	S_WRITE,
	S_WAIT_ASK,
	S_WAIT_RSP,
	S_WAIT_PAUSE,
	S_DONE,
	S_STOPPING,
	S_STOPPED,
	S_FROM_ASK,
	S_FROM_RSP,
	S_FROM_SUMS,
	S_FROM_WORK,
	S_SAVE,
	S_SUMS
};

/* npu_sums */
struct sums {
	bool head, have;
	uint32_t t, at, asked, open;
	struct npu_progress of;
};

struct range {
	bool any, wraps;
	uint32_t lo, hi;
};
enum what { RANGE_NONE, RANGE_A, RANGE_P, RANGE_B, RANGE_D };
struct ahead {
	bool own, own_1, own_2;
	uint32_t own_seq, step;
	enum what what_1, what_2;
	struct range range_1, range_2, writes[4], next_d;
	bool bad, behind;
};

/* npu_acked */
struct acked {
	bool epoch, wait, v;
	uint32_t wait_upto, upto, out[2];
};

enum {
	CNT_CYCLES,
	CNT_ACTIVE,
	CNT_STALL_A,
	CNT_STALL_W,
	CNT_STALL_OUT,
	CNT_STALL_SEQ,
	CNT_IDLE,
	CNT_MACS,
	CNT_FOLDS,
	CNT_ROWS,
	CNT_DESCS,
	CNT_READ,
	CNT_WRITE,
	CNT_TLB,
	CNT_STALL_BANK,
	COUNTERS
};

struct slot {
	uint32_t id;
	/* registers of the privileged page */
	uint32_t pt_base, pt_count, context, ch_mask, staged;
	bool serial, flush;
	struct npu_rect rect;
	/* of its own page */
	uint32_t ring_base, ring_log2, head, tail, preempt_cycles, desc_cycles;
	uint64_t desc_from; /* in which cycle .desc_cycles was 0 */
	uint32_t fault_kind, fault_addr, fault_desc, save;
	enum state state;
	uint32_t stop;
	bool drain, fold, freeze, timing;
	bool from_save; /* the descriptor at HEAD goes on from the context there */
	bool from_ok, save_due, sums_due;
	struct sums sums;
	uint32_t sums_desc[16];   /* whose they are */
	uint32_t from_left;       /* cycles until it is known where that is */
	struct npu_progress from; /* as read */
	uint32_t desc[16], next[16];
	/* operations of the array, by number, and where they began */
	uint32_t run[4][16];
	struct npu_progress run_from[4];
	struct npu_rect run_rect[4]; /* it may be another's before all is stored */
	uint32_t op, next_kind, next_word, bad_kind, bad_word;
	bool next_v, next_ask, next_sent;
	bool late_v, late_desc;
	uint32_t late_seq, late_kind, late_va;
	uint32_t pending, pause;
	bool q_sent, wait_ok;
	bool st_v, st_fence, st_mark;
	uint32_t st_va, st_len, st_upto;
	struct acked acked;
	/* what SIGNAL or TIMESTAMP stores, or FOLD */
	uint32_t fence[NPU_CONTEXT_WORDS];
	uint32_t line[16]; /* of a descriptor that was read */
	uint64_t waited;   /* what WAIT has read */
	bool irq_signal, irq_fault, irq_quiet;
	bool rests; /* it had nothing to do when the cycle began */
	bool quiet; /* its rectangle could be given away in this cycle */
	/* Of the array rows alone move, one a cycle, from still_from on and up to wake:
	 * they are made up for then.  0: not so. */
	uint64_t still_from, wake;
	bool moves;  /* meanwhile, what has to do with memory, but for pieces that come */
	bool asleep; /* nothing changes without a register access */
	struct response rsp, next_rsp; /* what came; what comes in the next cycle */
	struct acks ack, next_ack;
	bool acc[WAYS]; /* its request is accepted in this cycle */
	struct mmu mmu;
	struct fetch fetch;
	struct conv conv;
	struct vec vec;
	struct ahead ahead;
	uint64_t count[COUNTERS], shadow[COUNTERS];
	struct bucket bucket[2];
	uint32_t held;
	enum way bucket_last; /* whose request passed the buckets last, */
	uint32_t bucket_run;  /* and how many of it have in a row */
	struct back back;
	struct acks_due due;
};

/* A write to the slot's page, in this cycle. */
struct access {
	bool v;
	uint32_t offset, value;
};

struct npu_model {
	struct npu_model_shape shape;
	uint8_t *memory;
	uint64_t bytes;
	uint64_t cycle;
	struct slot slot[SLOTS];
	struct channel channel[CHANNELS];
	struct npu_model_memory extra;
	uint64_t extra_since;   /* the cycle it was told */
	uint32_t busy_channels; /* mask: something waits or is under way there */
	struct npu_hash hash;
	bool hash_opaque, hash_lock;
	uint32_t irq_pend, irq_mask, irq_bits, map_status, timing, time_hi;
	bool ideal, snap;
	struct arb_cfg arb[2];
	uint32_t prio;
	uint32_t turn_cycles, turn_last, turn_order, turn_left, turn_now;
	bool turn_restart;
	uint32_t ch_group, mode_status;
	struct bucket staged;
	bool bucket_due;
	uint32_t bucket_slot, bucket_group;
	uint32_t limited; /* slots with a bucket */
	npu_fold_fn fold;
	void *fold_user;
	npu_desc_fn desc;
	void *desc_user;
};

/* fast_mem.c */
void mem_accept(struct npu_model *m);
void mem_step(struct npu_model *m);
bool mem_busy(const struct npu_model *m);
void mem_snapshot(struct npu_model *m);

/* fast_mmu.c: what is known before clients ask; who of them is served; the rest. */
/* A flush is not over. */
bool mmu_held(const struct slot *s);
void mmu_check(struct npu_model *m, struct slot *s);
int mmu_choose(struct mmu *u, uint32_t asks, uint32_t urgent);
/* load, store: the requests that were chosen in this cycle, or NULL */
void mmu_step(struct npu_model *m, struct slot *s, const struct ask *load,
	      const struct ask *store, bool kill);
static inline bool mmu_busy(const struct mmu *u)
{
	return u->way[LOADS].ask_v || u->way[LOADS].req.v || u->way[STORES].ask_v ||
	       u->way[STORES].req.v;
}

/* fast_fetch.c */
bool fetch_ask(const struct fetch *f, const struct piece *p, struct ask *ask);
bool fetch_last(const struct fetch *f, const struct piece *p);
/* The next piece has come. */
static inline bool fetch_ripe(const struct fetch *f)
{
	return f->ready != f->tail && !f->pend[f->ready & 63u];
}
void fetch_step(struct fetch *f, const struct response *rsp, const struct piece *asked,
		bool pop);

/* fast_conv.c */
void conv_start(struct conv *v, const uint32_t desc[16], struct npu_rect rect,
		bool behind, const struct npu_progress *from);
void conv_comb(struct npu_model *m, struct slot *s);
void conv_step(struct npu_model *m, struct slot *s, bool pushed, bool act_granted,
	       bool stored, bool retire);
bool conv_pops(const struct conv *v);
/* Cycles in which the array will take a row each, and nothing else of it move but what
 * conv_move does; 0: none, or it cannot be told. */
uint32_t conv_still(const struct conv *v);
/* Of such a cycle, what is known before; false: it is not one. */
bool conv_moves(struct slot *s);
void conv_move(struct npu_model *m, struct slot *s, bool pushed, bool act_granted,
	       bool stored);
/* Nothing for conv_move in the next cycle. */
bool conv_rests(struct slot *s);
/* Makes up for so many of them. */
void conv_advance(struct slot *s, uint32_t rows);
void conv_kill(struct conv *v);
bool conv_quiet(const struct npu_model *m, const struct conv *v);
bool conv_ready(const struct slot *s);
/* No tile begins, and the oldest operation's that have begun are stored: all up to *at.
 */
bool conv_halted(const struct slot *s, struct npu_progress *at);
static inline bool conv_busy(const struct conv *v)
{
	return v->in != v->head;
}
/* The cycle in which the next fold ends, if its end is known. */
static inline uint64_t fold_end(const struct conv *v)
{
	return v->end_wp != v->end_rp ? v->end[v->end_rp & 63u].at : UINT64_MAX;
}

/* fast_act.c: the activation loader */
void act_comb(struct conv *v, const struct conv_op *op);
void act_step(struct conv *v, const struct response *rsp, bool granted, uint32_t lo,
	      bool start, uint32_t cols);
static inline bool act_idle(const struct act *a)
{
	return !a->act && !a->count;
}

/* fast_gather.c */
void gather_offer(struct conv *v);
void gather_step(struct npu_model *m, struct slot *s);
/* The outputs of a row that leaves now will come. */
void gather_output(const struct npu_model *m, struct slot *s, bool out32);
bool gather_steady(const struct gather *g);
void gather_kill(struct gather *g);

/* fast_out.c */
bool out_full(const struct out *o, const struct tile *t);
void out_store(const struct out *o, uint32_t *va, uint32_t *len, bool *mark);
bool out_step(struct out *o, uint32_t head, const struct tile *tile, bool row,
	      bool stored, bool retire);
/* All rows that can be stored are. */
bool out_even(const struct out *o, uint32_t head);
void out_kill(struct out *o);

/* fast_vec.c */
void vec_comb(struct npu_model *m, struct slot *s);
void vec_step(struct npu_model *m, struct slot *s, bool pushed, bool stored, bool kill);
bool vec_store(const struct vec *v, const uint32_t *desc, uint32_t *va, uint32_t *len);
bool vec_busy(const struct vec *v);
/* Asked to stop it hands over no further store; and some outputs are left: from *at on.
 */
bool vec_holds(const struct slot *s);
bool vec_halted(const struct slot *s, struct npu_progress *at);

/* fast_ahead.c */
bool ahead_known(const struct ahead *a, bool next_v);
bool ahead_held(const struct slot *s);
bool ahead_array(const uint32_t *desc);
void ahead_step(struct slot *s, bool start, bool take, bool next_v, bool clear);

/* fast_slot.c */
void slot_step(struct npu_model *m, struct slot *s, const struct access *a);
/* Makes up for the cycles in which it was still. */
void slot_wake(const struct npu_model *m, struct slot *s);
/* A cycle of a still slot in which nothing but a piece comes. */
void slot_fetched(struct slot *s);
/* One in which more moves; false: it is still no more. */
bool slot_move(struct npu_model *m, struct slot *s);
bool slot_idle(const struct slot *s);
bool slot_quiet(const struct npu_model *m, const struct slot *s);
uint32_t slot_read(const struct npu_model *m, const struct slot *s, uint32_t offset);
void slot_snapshot(const struct npu_model *m, struct slot *s);

/* npu_fast_model.c: untimed access to physical memory */
void memory_read(const struct npu_model *m, uint64_t pa, void *data, uint32_t bytes);
void memory_write(struct npu_model *m, uint64_t pa, const void *data, uint32_t bytes);
/* and to a slot's space; false: not mapped */
bool space_peek(const struct npu_model *m, const struct slot *s, uint32_t va, void *data,
		uint32_t bytes);
/* The descriptor takes effect. */
void retire_effect(struct npu_model *m, struct slot *s);
/* The array's oldest operation does, or the vector unit's, up to there. */
void fold_effect(struct npu_model *m, struct slot *s, const struct npu_progress *to);
/* The sums of s->sums.of come to the save area. */
void sums_effect(const struct npu_model *m, const struct slot *s);

#endif
