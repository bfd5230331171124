/* SPDX-License-Identifier: Apache-2.0 */
/* residency.c - what memory does when a turn or a stop tells it of something. */
#include "memory/residency.h"

#include "memory/bimodal.h"
#include "memory/recolor.h"

const struct residency memory_residency = {
	.begin = recolor_begin,
	.end = recolor_end,
	.put = recolor_put,
	.lets = recolor_lets,
	.look = recolor_look,
	.wake = bimodal_wake,
};
