/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no HIP. */
#include <stdint.h>

__attribute__((visibility("default"))) uint32_t hipInit(uint32_t flags);
uint32_t hipInit(uint32_t flags)
{
	return flags;
}
