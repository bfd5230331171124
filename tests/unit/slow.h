/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that would take minutes under valgrind look at fewer cases there. */
#ifndef TESTS_UNIT_SLOW_H
#define TESTS_UNIT_SLOW_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

#endif
