/* SPDX-License-Identifier: Apache-2.0 */
/* residency.c - core/memory's entry points for lower modules (struct residency in
 * loop/device.h). */
#include "memory/residency.h"

#include "memory/bimodal.h"
#include "memory/check.h"
#include "memory/recolor.h"

const struct residency memory_residency = {
	.begin = recolor_begin,
	.end = recolor_end,
	.put = recolor_put,
	.lets = recolor_lets,
	.look = recolor_look,
	.wake = bimodal_wake,
#ifndef NDEBUG
	.check = memory_check,
#endif
};
