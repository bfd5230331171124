/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.h - learn how much programs of a profile slow each other down when they run on
 * the same device.  Engine only.
 */
#ifndef HAL_SCHED_BESIDE_H
#define HAL_SCHED_BESIDE_H

#include "sched/expect.h"

/* Learn from command f of q, which ended as ev says.  The device must have a profile. */
void beside_learn(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev);
/* Implement hal_policy_host.beside. */
uint64_t beside_expect(void *device, uint32_t program, uint32_t other,
		       uint32_t *sure_permille);

#endif
