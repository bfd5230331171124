/* SPDX-License-Identifier: Apache-2.0 */
/* XRT as it was: devices, but no runs by handle. */
#include "backends/fpga/xrt_calls.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *xrtDeviceOpen(unsigned int index);
void *xrtDeviceOpen(unsigned int index)
{
	(void)index;
	return NULL;
}

EXPORT int xrtDeviceClose(void *device);
int xrtDeviceClose(void *device)
{
	(void)device;
	return -1;
}
