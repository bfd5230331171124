/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XRT without what marks a stand-in, so that cards are counted as those of a driver are.
 * None of them can be opened.
 */
#include <errno.h>

#include "backends/fpga/xrt_calls.h"

#define EXPORT __attribute__((visibility("default")))

/* What a call answers that fails. */
#define FAILED(result) _Generic((result)0, void * : NULL, int : -1, uint32_t : XRT_ABORT)

#define UNPACK(...)    __VA_ARGS__

static void ignore(int first, ...)
{
	(void)first;
}

#define ENTRY(name, result, params, args)                                                \
	EXPORT result name params;                                                       \
	result name params                                                               \
	{                                                                                \
		ignore(0, UNPACK args);                                                  \
		errno = ENODEV;                                                          \
		return FAILED(result);                                                   \
	}
XRT_CALLS(ENTRY)

EXPORT int xrtRunSetArg(void *run, int index, ...);
int xrtRunSetArg(void *run, int index, ...)
{
	ignore(index, run);
	errno = ENODEV;
	return -1;
}
