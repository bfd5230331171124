/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what crosses a queue's ring: 64 bytes a command, more with arguments.
 *
 * The ring is Concurrency Kit's, but for its entries: ours take several slots, so its
 * ends are moved by as many at once.  Its fences are assembly, which the thread sanitizer
 * does not see: it is told.
 */
#ifndef HAL_COMMAND_RECORD_H
#define HAL_COMMAND_RECORD_H

#include <ck_ring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <hal/backend.h>

#include "util/compiler.h"

/* Kinds of record beside those of enum hal_op. */
enum {
	REC_WAIT = 32,
	REC_SIGNAL,
	REC_HEAD,    /* what a submission asks for beside its commands */
	REC_BLOCK,   /* the commands lie elsewhere: a recorded sequence, or too many */
	REC_RECOLOR, /* recolor.h: a buffer is about to move */
	REC_RECOLORED,
};

/* record.own */
#define REC_END          1u /* last of its submission */
#define REC_INNER        2u /* in a block, not in the ring */
#define REC_WHOLE        4u /* its submission has one command */

#define SLOT_BYTES       64u
#define INLINE_ARGS_MAX  8u
#define RECORD_SLOTS_MAX 4u /* a launch of INLINE_ARGS_MAX arguments */
#define RECORD_POINTS    2u

/* record.submit_ns: the engine slept; it takes its own time when it wakes. */
#define SUBMIT_ASLEEP UINT64_MAX

struct block;
struct recolor;

/* A record takes one slot of 64 bytes, a launch more: its arguments lie behind it.  What
 * the device is to do lies there as the backend takes it, so that nothing is copied. */
struct record {
	union {
		struct hal_bk_cmd cmd;
		struct {
			uint32_t cmd_op;
			/* The halves of cmd.flags: HAL_CMD_*, and the core's own. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			uint16_t flags;
			uint8_t slots, own;
#else
			uint8_t own, slots;
			uint16_t flags;
#endif
			uint64_t cmd_cookie;
			union {
				struct {
					uint64_t cmd_launch[4];
					struct hal_kernel *kernel;
				} launch;
				struct {
					hal_host_fn fn;
					void *user;
				} host;
				/* Behind the first there may be none. */
				struct hal_point point[RECORD_POINTS];
				struct {
					uint64_t not_before_ns, deadline_ns, tag;
					int32_t priority;
					uint32_t flags; /* HAL_SUBMIT_* */
				} head;
				struct block *block;
				struct recolor *recolor;
			};
		};
	};
	uint64_t
		submit_ns; /* or SUBMIT_ASLEEP; of records of a block: its own record's */
};

_Static_assert(sizeof(struct record) == SLOT_BYTES, "a record is one slot");
_Static_assert(offsetof(struct record, launch.kernel) >=
		       offsetof(struct hal_bk_cmd, launch.groups) + 3 * sizeof(uint32_t),
	       "the kernel's handle lies behind what the backend sees of a launch");

/* Not changed while anybody but its maker has it. */
struct block {
	atomic_uint refs;
	uint32_t slots;
	struct record rec[];
};

static inline bool block_put(struct block *b)
{
	return atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1;
}

/* As cmd.flags of a record. */
static inline uint32_t record_flags(uint32_t flags, uint32_t slots, uint32_t own)
{
	return flags | slots << 16 | own << 24;
}

static inline bool record_has_points(const struct record *r)
{
	return r->cmd.op == REC_WAIT || r->cmd.op == REC_SIGNAL;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): it is a name to declare */
#define record_for_each_point(p, r)                                                      \
	for (const struct hal_point *p = (r)->point;                                     \
	     p != (r)->point + RECORD_POINTS && p->timeline != NULL; p++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Records of n points. */
static inline uint32_t point_slots(uint32_t n)
{
	return (n + RECORD_POINTS - 1) / RECORD_POINTS;
}

/* Slots of a launch with n arguments. */
static inline uint32_t launch_slots(uint32_t n)
{
	return 1 +
	       (n * (uint32_t)sizeof(struct hal_bk_arg) + SLOT_BYTES - 1) / SLOT_BYTES;
}

static inline struct hal_bk_arg *record_args(struct record *r)
{
	return (struct hal_bk_arg *)(void *)(r + 1);
}

/* A command for the device, not one that the engine carries out. */
static inline bool record_for_device(const struct record *r)
{
	return r->cmd.op <= HAL_OP_LAUNCH || r->cmd.op == HAL_OP_TIMESTAMP;
}

#define RECORD_MEMORY_MAX HAL_ARGS_MAX

/* The memory that a command uses, as the backend names it, to mem; how much. */
static inline uint32_t record_memory(const struct record *r, const void **mem)
{
	const struct hal_bk_cmd *c = &r->cmd;
	uint32_t n = 0;

	switch (c->op) {
	case HAL_OP_COPY:
		mem[n++] = c->copy.dst;
		mem[n++] = c->copy.src;
		return n;
	case HAL_OP_FILL:
		mem[n++] = c->fill.dst;
		return n;
	case HAL_OP_TIMESTAMP:
		mem[n++] = c->timestamp.dst;
		return n;
	case HAL_OP_LAUNCH:
		for (uint32_t i = 0; i < c->launch.arg_count; i++)
			if (c->launch.args[i].mem != NULL)
				mem[n++] = c->launch.args[i].mem;
		return n;
	default:
		return 0;
	}
}

/* For texts and traces. */
const char *record_name(const struct record *r);

/* A place in a queue's stream of records; inner counts slots inside a block. */
union cursor {
	struct {
		unsigned int pos;
		uint32_t inner;
	};
	uint64_t both; /* for one comparison */
};

static inline bool cursor_same(union cursor a, union cursor b)
{
	return a.both == b.both;
}

/* ---- the ring --------------------------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
#define RING_ACQUIRE(p) __tsan_acquire(p)
#define RING_RELEASE(p) __tsan_release(p)
#else
#define RING_ACQUIRE(p) ((void)0)
#define RING_RELEASE(p) ((void)0)
#endif

/* The engine: where the submitting thread is. */
static inline unsigned int ring_tail(struct ck_ring *ring)
{
	unsigned int tail = ck_pr_load_uint(&ring->p_tail);

	ck_pr_fence_acquire();
	RING_ACQUIRE(&ring->p_tail);
	return tail;
}

/* The engine: slots before pos may be written again. */
static inline void ring_release(struct ck_ring *ring, unsigned int pos)
{
	RING_RELEASE(&ring->c_head);
	ck_pr_fence_release();
	ck_pr_store_uint(&ring->c_head, pos);
}

/* The submitting thread: where the engine is. */
static inline unsigned int ring_head(struct ck_ring *ring)
{
	unsigned int head = ck_pr_load_uint(&ring->c_head);

	ck_pr_fence_acquire();
	RING_ACQUIRE(&ring->c_head);
	return head;
}

static inline void ring_publish(struct ck_ring *ring, unsigned int tail)
{
	RING_RELEASE(&ring->p_tail);
	ck_pr_fence_release();
	ck_pr_store_uint(&ring->p_tail, tail);
}

#endif
