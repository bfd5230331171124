/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - memory that a program and hald share: the rings of its queues.
 *
 * A queue's ring has the form of the one that hal_submit writes locally (record.h), with
 * handles in place of pointers.  The program writes records and the tail; the engine in
 * hald copies each record to the same position of the queue's own ring, and checks and
 * uses only the copy (api/inlet.h).  So there is always room for what a program may
 * write.
 *
 * hald makes and seals all of this memory.  Each word has one writer:
 *
 *   struct far_ring    the program writes, hald reads each word once
 *   struct far_board   hald writes; the program cannot map it for writing
 *
 * A program wakes hald by its bell, an eventfd (bell.h).  "rung" is the program's own;
 * "message" is the message of the queue in the engine's inbox (wake.h):
 *
 *   program                   hald, thread of bells     engine
 *   R1  write the records     B1  tail has moved?       E1  take the message
 *   R2  tail = their end          then send message     E2  message may be sent
 *   R3  ---- full barrier     B2  else again++          E3  again++
 *   R4  announced is 2?           ---- full barrier         ---- full barrier
 *       then return               tail has moved?       E4  read tail, take the
 *   R5  again = rung?             then send message         records
 *       then return
 *   R6  rung = again,
 *       write the bell
 *
 * The message is sent only if it is not under way (wake.h).  E3 comes behind E2, so that
 * it also answers a bell for which it was.
 * So the bell is not written twice before the engine has looked.  If the engine watches
 * the ring (watch.h), it sets "announced" to 2 and reads the tail in every turn.  To end
 * that it sets it to 0, and reads the tail once more after a full barrier.
 */
#ifndef HAL_FAR_RING_H
#define HAL_FAR_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "loop/wake.h"

/* Values of far_slot.op beside those of enum hal_op; no HAL_OP_HOST comes in a ring. */
enum {
	FAR_OP_WAIT = 32,
	FAR_OP_SIGNAL,
	FAR_OP_HEAD,
};

/* Bits of far_slot.marks. */
#define FAR_LAST       1u /* last record of its submission */
#define FAR_WHOLE      2u /* its submission has one command, and no header */

#define FAR_SLOT_WORDS 8u
/* Slots of the largest record: it never wraps, so that many less one follow the ring. */
#define FAR_RECORD_SLOTS 4u
#define FAR_ARGS_MAX     8u /* of a launch in a ring */

/* The first word of a slot. */
union far_head {
	struct {
		uint32_t op;
		uint16_t flags; /* HAL_CMD_* */
		uint8_t marks, arg_count;
	};
	uint64_t word;
};

struct far_slot {
	union {
		struct {
			uint32_t op;
			uint16_t flags; /* HAL_CMD_* */
			uint8_t marks, arg_count;
			union {
				/* struct hal_arg follow in the next slots. */
				struct {
					uint64_t kernel;
					uint32_t groups[3]; /* none is 0 */
				} launch;
				struct {
					uint64_t dst, src, dst_offset, src_offset, bytes;
				} copy;
				struct {
					uint64_t dst, offset, bytes;
					uint32_t pattern;
				} fill;
				struct {
					uint64_t dst, offset;
				} timestamp;
				/* If the second one is unused, its .timeline is 0. */
				struct {
					uint64_t timeline, value;
				} point[2];
				struct {
					uint64_t not_before_ns, deadline_ns, tag;
					int32_t priority;
					uint32_t flags; /* HAL_SUBMIT_* */
				} head;
			};
		};
		uint64_t words[FAR_SLOT_WORDS];
	};
};
_Static_assert(sizeof(struct far_slot) == 64, "a slot of the queue's own ring");

struct far_ring {
	_Alignas(64) atomic_uint tail; /* end of the records; not masked */
	/* CLOCK_MONOTONIC when the bell was written.  A lie harms nobody. */
	uint64_t rung_ns;
	_Alignas(64) struct far_slot slots[];
};

#define FAR_OPEN 1u

/* What hald tells about one queue. */
struct far_told {
	_Alignas(64) WAKE_WORD announced; /* ANNOUNCED_NOT or _WATCHED */
	WAKE_WORD again;                  /* see bell.h */
	atomic_uint head;                 /* slots before it may be written again */
	atomic_uint open;                 /* FAR_OPEN; 0 once the queue has failed */
	_Atomic uint64_t value;           /* of the queue's timeline */
};

/* Queues of a program that have a ring.  Others are served by requests alone. */
#define FAR_RINGS_MAX 1024u

struct far_board {
	struct far_told told[FAR_RINGS_MAX];
};

/* Return the bytes of a ring with that many slots. */
static inline uint64_t far_ring_bytes(uint32_t slots)
{
	return sizeof(struct far_ring) +
	       (slots + FAR_RECORD_SLOTS - 1) * sizeof(struct far_slot);
}

/* Return the number of slots of a launch with n arguments. */
static inline uint32_t far_launch_slots(uint32_t n)
{
	return 1 + (n * 24 + 63) / 64;
}

#endif
