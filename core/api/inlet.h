/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inlet.h - the end of a queue's ring that another process writes (far/ring.h).
 *
 * The engine copies each record out of the shared ring once, and then checks and uses
 * only the copy, by the functions that hal_submit uses (write.h).  Whatever it refuses,
 * the other process's library has refused before.  So a record that is refused comes from
 * a process that breaks the rules: the inlet closes, and its owner is told to end it.
 *
 * The thread that takes records is the queue's submitting thread.  Where its owner
 * submits to the queue itself, it holds the inlet meanwhile.
 */
#ifndef HAL_API_INLET_H
#define HAL_API_INLET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "far/names.h"
#include "far/ring.h"

struct hal_device;
struct hal_queue;

struct inlet {
	/* Constant. */
	struct hal_queue *queue;
	const struct far_ring *ring; /* another process writes it */
	struct far_told *told;
	const struct far_names *names; /* of that process */
	int64_t priority_max;          /* of submissions */
	bool deadlines;                /* submissions may have them */
	int fd; /* eventfd that is signalled when .wrong has been set */

	atomic_uint taker; /* 1 while a thread takes records, or holds the inlet */
	atomic_uint seen;  /* tail of the ring when it was last read */
	/* What no correct library submits; from here on nothing is taken.  NULL: nothing.
	 */
	_Atomic(const char *) wrong;
};

/* Serve other processes by dev from now on: descriptors of points and of completion rings
 * hang up when this process ends.  This process ignores SIGPIPE.  Call right after
 * hal_open. */
void inlet_serve(struct hal_device *dev);
/* Under a virtual clock, run dev until over(arg) holds, which is asked before each engine
 * turn, or until_ns of device time (UINT64_MAX: for ever).  Return false if nothing is
 * left before that could happen. */
bool inlet_run(struct hal_device *dev, bool (*over)(void *arg), void *arg,
	       uint64_t until_ns);
/* Take the records of in->ring from now on.  No record has been submitted yet.  Call
 * before the queue's handle is given to the other process. */
int inlet_open(struct inlet *in);
/* Take nothing any more.  On return the engine uses neither in->ring nor in->told. */
void inlet_close(struct inlet *in);
/* Take nothing any more, for that reason.  Any thread. */
void inlet_refuse(struct inlet *in, const char *why);
/* Return whether the ring has records that have not been taken.  Any thread. */
bool inlet_has(const struct inlet *in);
/* Have the engine take what the ring has: the other process has rung.  Any thread. */
void inlet_rung(struct inlet *in);
/* Take what the rings of these inlets, of one device, have now.  On return it is taken.
 */
void inlets_take(struct inlet *const *in, uint32_t count);
/* Return once no engine turn that had begun before uses an inlet or a name. */
void inlet_pass(struct hal_device *dev);

/* Hold in, so that the caller may submit to its queue; and end that.  What was in the
 * ring has been taken; the other process may submit nothing meanwhile. */
void inlet_hold(struct inlet *in);
void inlet_release(struct inlet *in);

#endif
