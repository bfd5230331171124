/* SPDX-License-Identifier: Apache-2.0 */
/* tier.h - which of its cases a test runs: "TEST full" runs all of them, as make
 * check-full does; TEST alone leaves out what takes long, or does fewer rounds, as make
 * check does. */
#ifndef HAL_TESTS_TIER_H
#define HAL_TESTS_TIER_H

#include <stdbool.h>
#include <string.h>

/* Set by main() from its arguments, before any case runs. */
static bool tier_full;

static inline void tier_choose(int argc, char **argv)
{
	tier_full = argc > 1 && strcmp(argv[argc - 1], "full") == 0;
}

/* End a case, as skipped, that only the full tier runs. */
#define IN_FULL_TIER()                                                                   \
	do {                                                                             \
		if (!tier_full)                                                          \
			skip();                                                          \
	} while (0)

#endif
