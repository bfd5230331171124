/* SPDX-License-Identifier: Apache-2.0 */
/* skeleton.h - what the device can compute, apart from how a backend is made. */
#ifndef SKELETON_H
#define SKELETON_H

#include <stddef.h>
#include <stdint.h>

enum { SKELETON_ARGS = 3, SKELETON_FAULT = 96 };

/* arg[] is the memory of each argument.  0, or -1 with a text in fault. */
typedef int (*skeleton_fn)(uint8_t *const arg[], char *fault);

struct skeleton_function {
	const char *name;
	uint32_t arg_count;
	skeleton_fn fn;
};

/* NULL: the device has none of that name. */
const struct skeleton_function *skeleton_function(const char *name);

#endif
