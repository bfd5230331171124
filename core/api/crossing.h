/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.h - submissions with points of other devices. */
#ifndef HAL_API_CROSSING_H
#define HAL_API_CROSSING_H

#include "api/write.h"
#include "command/foreign.h"

/* What points_check returns for a valid point of another device, without an error text.
 * No public call returns it. */
#define CROSSING (-EXDEV)

/* A submission, split into points of its own device and waits for other devices.  Signals
 * of other devices' timelines need no treatment of their own: timeline_raise notifies the
 * engine of the timeline. */
struct crossing {
	struct hal_submit_desc d; /* the submission, without waits for other devices */
	struct hal_point *waits;  /* of .d */
	struct foreign **foreign;
	uint32_t count; /* of .foreign */
};

/* Split *d, a submission to q for which points_check has returned CROSSING, and check all
 * of its points.  Return 0 or -errno with nothing to free. */
int crossing_make(const struct hal_queue *q, const struct hal_submit_desc *d,
		  struct crossing *x);
/* Write x's waits for other devices as records. */
void crossing_write(const struct crossing *x, struct record_target *to);
/* Begin these waits.  Call before the records are published: an engine that drops them
 * ends the waits. */
void crossing_start(const struct crossing *x);
/* Free x.  started: its waits have begun; else cancel them. */
void crossing_end(struct crossing *x, bool started);

#endif
