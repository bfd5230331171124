/* SPDX-License-Identifier: Apache-2.0 */
/* libze_old_loader.so: a loader from before most of the calls there are. */
#include <stdint.h>

__attribute__((visibility("default"))) uint32_t zeInit(uint32_t flags);

uint32_t zeInit(uint32_t flags)
{
	(void)flags;
	return 0;
}
