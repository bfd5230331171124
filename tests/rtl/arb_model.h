/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arb_model.h - what npu_arb, npu_turns and npu_bucket must do, in C: who of a channel's
 * slots goes next and what it is charged, whose turn it is, what a slot may move.
 */
#ifndef ARB_MODEL_H
#define ARB_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define ARB_BANKS 8
#define ARB_SLOTS 8
#define ARB_MINE  2

struct arb_timing {
	uint32_t cl, rcd, rp, rowbits;
};

/* The head of a slot's FIFO. */
struct arb_head {
	bool may; /* is there, and could go */
	uint32_t lline, beats;
};

/* A row that a slot used lately, which would be open if there were no others. */
struct arb_mine {
	bool is;
	uint32_t bank, row;
};

struct arb {
	uint32_t slots, mode, pass, prio; /* codes and fields of the registers */
	struct arb_timing t;
	int32_t charge[ARB_SLOTS];
	uint32_t last, passed;
	struct {
		bool open;
		uint32_t row, ago;
		uint32_t by; /* who opened it */
	} bank[ARB_BANKS];
	struct arb_mine mine[ARB_SLOTS][ARB_MINE];
};

enum arb_row { ARB_ROW_HIT, ARB_ROW_CLOSED, ARB_ROW_CONFLICT };

struct turns {
	uint32_t cycles, last, order;
	struct arb_timing t;
	uint32_t left, turn;
};

struct turn {
	bool open, close;
	uint32_t slot;
};

struct bucket {
	uint32_t window, budget, burst; /* window 0: no limit */
	uint32_t left, tokens;
};

/* A slot's two ways; of a slot that has a limit one is asked a cycle, eight times in a
 * row unless it pauses. */
struct ways {
	uint32_t last, run; /* went last, so many in a row */
};

void arb_reset(struct arb *a, uint32_t slots, struct arb_timing t);
void arb_place(const struct arb_timing *t, uint32_t lline, uint32_t *bank, uint32_t *row);
/* The slot that goes, or -1. */
int arb_pick(const struct arb *a, const struct arb_head *heads, struct turn turn);
/* It went, of those heads. */
enum arb_row arb_take(struct arb *a, const struct arb_head *heads, struct turn turn,
		      int who);
/* The end of a turn. */
void arb_close(struct arb *a);

void turns_reset(struct turns *t, uint32_t slots, struct arb_timing timing);
struct turn turns_now(const struct turns *t);
void turns_step(struct turns *t, bool restart);

void bucket_set(struct bucket *b, uint32_t window, uint32_t budget, uint32_t burst);
bool bucket_ok(const struct bucket *b, uint32_t beats);
void bucket_step(struct bucket *b, uint32_t taken);

uint32_t ways_asked(const struct ways *w, bool way0, bool way1);
void ways_went(struct ways *w, uint32_t way);

#endif
