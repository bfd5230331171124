/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the records in a queue's ring: one for each command, wait or signal.
 *
 * The submitting thread writes records into the ring, the engine reads them.  A record
 * takes one slot of 64 bytes.  A launch takes up to three more for its arguments.
 *
 * The two ends of the ring lie in struct hal_queue, each beside what the same thread
 * writes.
 */
#ifndef HAL_COMMAND_RECORD_H
#define HAL_COMMAND_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/backend.h>

#include "util/compiler.h"

/* Values of record.cmd.op in addition to enum hal_op. */
enum {
	REC_WAIT = 32,
	REC_SIGNAL,
	REC_HEAD,      /* submission header: start time, deadline, tag, priority */
	REC_BLOCK,     /* refers to a block of records outside the ring */
	REC_RECOLOR,   /* begins to move a buffer to other channels (recolor.h) */
	REC_RECOLORED, /* ends that move */
	REC_FOREIGN,   /* waits for a point of another device (foreign.h) */
};

/* Bits of record.own. */
#define REC_END          1u /* last of its submission */
#define REC_INNER        2u /* in a block, not in the ring */
#define REC_WHOLE        4u /* the only command of its submission */

#define SLOT_BYTES       64u
#define INLINE_ARGS_MAX  8u
#define RECORD_SLOTS_MAX 4u /* a launch of INLINE_ARGS_MAX arguments */
#define RECORD_POINTS    2u /* points in a REC_WAIT or REC_SIGNAL record */

/* Value of record.submit_ns if the engine slept at the submit.  The engine replaces it by
 * the device time when it reads the record. */
#define SUBMIT_ASLEEP UINT64_MAX

struct block;
struct recolor;

/* One record.  .cmd of a device command has the form that the backend takes, so that the
 * engine need not copy it.  The arguments of a launch follow in the next slots. */
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
				/* REC_WAIT, REC_SIGNAL, REC_FOREIGN.  If the second
				 * point is unused, its .timeline is NULL. */
				struct hal_point point[RECORD_POINTS];
				struct {
					uint64_t not_before_ns, deadline_ns, tag;
					int32_t priority;
					uint32_t flags; /* HAL_SUBMIT_* */
				} head;                 /* REC_HEAD */
				struct block *block;    /* REC_BLOCK */
				struct recolor *recolor;
			};
		};
	};
	/* Device time of the submit, or SUBMIT_ASLEEP.  Not used in a record of a
	 * block, for which the REC_BLOCK record has the time. */
	uint64_t submit_ns;
};

_Static_assert(sizeof(struct record) == SLOT_BYTES, "a record is one slot");
_Static_assert(offsetof(struct record, launch.kernel) >=
		       offsetof(struct hal_bk_cmd, launch.groups) + 3 * sizeof(uint32_t),
	       "the kernel's handle is outside of the fields that backends read");

/* Records outside of the ring: a recorded sequence, or a submission too large for the
 * ring.  Constant once it is submitted, since several queues may share it. */
struct block {
	atomic_uint refs; /* records and sequences that refer to it */
	uint32_t slots;
	struct record rec[];
};

/* Release a reference to b.  Return true if it was the last: the caller then frees b. */
static inline bool block_put(struct block *b)
{
	return atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1;
}

/* Return the value of cmd.flags of a record with these parts. */
static inline uint32_t record_flags(uint32_t flags, uint32_t slots, uint32_t own)
{
	return flags | slots << 16 | own << 24;
}

static inline bool record_has_points(const struct record *r)
{
	return r->cmd.op == REC_WAIT || r->cmd.op == REC_SIGNAL;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): p is a name to declare */
#define record_for_each_point(p, r)                                                      \
	for (const struct hal_point *p = (r)->point;                                     \
	     p != (r)->point + RECORD_POINTS && p->timeline != NULL; p++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Return the number of records that n points take. */
static inline uint32_t point_slots(uint32_t n)
{
	return (n + RECORD_POINTS - 1) / RECORD_POINTS;
}

/* Return the number of slots that a launch with n arguments takes. */
static inline uint32_t launch_slots(uint32_t n)
{
	return 1 +
	       (n * (uint32_t)sizeof(struct hal_bk_arg) + SLOT_BYTES - 1) / SLOT_BYTES;
}

/* Return the arguments of r, a launch. */
static inline struct hal_bk_arg *record_args(struct record *r)
{
	return (struct hal_bk_arg *)(void *)(r + 1);
}

/* Return true if r is a command for the device, false if the engine executes it. */
static inline bool record_for_device(const struct record *r)
{
	return r->cmd.op <= HAL_OP_LAUNCH || r->cmd.op == HAL_OP_TIMESTAMP;
}

#define RECORD_MEMORY_MAX HAL_ARGS_MAX

/* Write the backend's handles of the memory that r uses to mem, which has
 * RECORD_MEMORY_MAX entries.  Return their number. */
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

/* Return whether r uses the memory with backend handle mem. */
static inline bool record_uses(const struct record *r, const void *mem)
{
	const void *used[RECORD_MEMORY_MAX];
	uint32_t n = record_memory(r, used);

	for (uint32_t i = 0; i < n; i++)
		if (used[i] == mem)
			return true;
	return false;
}

/* Return the name of r for messages and traces. */
const char *record_name(const struct record *r);

/* A position in a queue's stream of records. */
union cursor {
	struct {
		unsigned int pos; /* in the ring, not masked */
		uint32_t inner;   /* slot inside the block at .pos */
	};
	uint64_t both; /* to compare both fields at once */
};

static inline bool cursor_same(union cursor a, union cursor b)
{
	return a.both == b.both;
}

#endif
