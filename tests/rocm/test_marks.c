/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in a stream that are marked together: the cases of tests/gpu. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"

enum { KERNELS = 3, WORK = 0, WILD, NEVER };
static const char *const names[KERNELS] = {"work:m8", "wild:m", "never:m"};
static const struct hal_backend *b;

static void age(void *queue, uint32_t by)
{
	struct rocm_queue *q = queue;

	q->base.given += by;
	q->base.marked = q->base.given;
	__atomic_store_n(q->word, q->base.given, __ATOMIC_RELEASE);
}

#undef TOO_LARGE
#define MAKE_IMAGE   make_rocm_image
#define CALL_WRITE   "hipStreamWriteValue32"
#define CALL_QUERY   "hipStreamQuery"
#define CALL_RECORD  "hipEventRecord"
#define CALL_ELAPSED "hipEventElapsedTime"
#define LIBRARY      "libamdhip64.so.5"
#define ADVANCE      "halStandInHipAdvance"
#define AGE          age
#define SAYS_FAULT   "hipErrorIllegalAddress (700)"
#include "tests/gpu/mark_cases.h"

static int setup(void **state)
{
	(void)state;
	b = hal_backend_rocm(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {MARK_CASES};

	return cmocka_run_group_tests(tests, setup, NULL);
}
