/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.h - what programs of a profile cost each other, learned while they run; by the
 * engine.
 */
#ifndef HAL_SCHED_BESIDE_H
#define HAL_SCHED_BESIDE_H

#include "sched/expect.h"

/* f, a command of q on a device with a profile, has ended as ev says; before what it ran
 * is learned otherwise. */
void beside_learn(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev);
/* hal_policy_host.beside */
uint64_t beside_expect(void *device, uint32_t program, uint32_t other,
		       uint32_t *sure_permille);

#endif
