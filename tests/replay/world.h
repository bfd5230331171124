/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - tenants that do all there is to a device at once, by chance. */
#ifndef TESTS_REPLAY_WORLD_H
#define TESTS_REPLAY_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct trial {
	const char *target; /* of hal_open; a ref */
	const char *journal;
	const char *policy;
	uint64_t seed;
	uint32_t threads;            /* at most 8 */
	uint32_t rounds;             /* submissions a thread */
	uint32_t events;             /* suspends, resizes and so on, beside them */
	bool callbacks;              /* some of the commands are */
	const char *const *policies; /* NULL-ended: one after the other; NULL: it stays */
};

/* 0, or -1 after having said why on stderr. */
int trial_run(const struct trial *t);

#endif
