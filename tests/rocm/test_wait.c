/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may wait for the device: the cases of tests/gpu. */
#define _GNU_SOURCE
#include "host.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/gpu/rig.h"

static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1},
				  between = {.clock = 1},
				  pinned = {.clock = 1, .memory = 1},
				  real = {.hang_ms = 20};

static void lose(void *device, uint32_t result)
{
	((struct rocm_device *)device)->base.lost = result;
}

struct rig_face rig_face = {
	.how = {[RIG_PLAIN] = &blockwise,
		[RIG_BETWEEN] = &between,
		[RIG_HOST] = &pinned,
		[RIG_REAL] = &real},
	.device = 1,
	.kernels = {"work:m8", "iota:m4"},
	.stand_in = stand_in,
	.image = make_rocm_image,
	.lose = lose,
	.copy = "hipMemcpyAsync",
	.fill = "hipMemsetD32Async",
	.wait = "hipEventSynchronize",
	.free = "hipFree",
	.enter = "hipSetDevice",
};

int main(void)
{
	const struct CMUnitTest tests[] = {WAIT_CASES};

	rig_face.backend = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
