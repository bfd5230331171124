/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - submitted waits for points of another device.
 *
 * A queue waits for a timeline of its own device, struct foreign.line, in a REC_FOREIGN
 * record.  The engine of the other device keeps a waiter for the point itself.  When that
 * point is reached or has failed, it sends the message .told to the waiting engine, which
 * raises .line or makes it fail.  Engines exchange messages only, and no engine waits for
 * another, so there is no order of locks to observe.
 *
 *   submitting thread        waiting engine             engine of the point
 *   foreign_make, _start --- .add ---------------------> add the waiter
 *                            raise .line <---- .told --- point reached or failed
 *                            foreign_put --- .drop ----> remove the waiter
 *
 * The point's timeline counts the wait in .pending until .told or .drop has been read, so
 * that neither it nor its device can be destroyed before.
 */
#ifndef HAL_COMMAND_FOREIGN_H
#define HAL_COMMAND_FOREIGN_H

#include "command/record.h"
#include "command/timeline.h"

struct foreign {
	struct hal_timeline line; /* of the waiting device; its value 1 ends the wait */
	struct hal_point point;
	struct message add, drop, told;
	/* One reference for the record, one until .told is read or the waiter is removed,
	 * one for .drop. */
	atomic_uint refs;
	bool over; /* .told has been read; only the waiting engine uses it */
	/* Only the point's engine uses these, until it sends .told. */
	struct waiter waiter;
	int err;
	char text[200]; /* why the point has failed */
};

/* Make a wait of a queue of dev for *point, which is of another device.  NULL: ENOMEM. */
struct foreign *foreign_make(struct hal_device *dev, const struct hal_point *point);
/* Begin the wait, whose record will be published. */
void foreign_start(struct foreign *f);
/* Free a wait that has not begun. */
void foreign_cancel(struct foreign *f);
/* The record of f retires: end the wait if it is not over.  Only by the waiting engine.
 */
void foreign_put(struct foreign *f);

/* Return the wait of r, a REC_FOREIGN record. */
static inline struct foreign *record_foreign(const struct record *r)
{
	return (struct foreign *)(void *)((char *)r->point[0].timeline -
					  offsetof(struct foreign, line));
}

#endif
