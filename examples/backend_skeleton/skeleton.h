/* SPDX-License-Identifier: Apache-2.0 */
/* skeleton.h - the functions of the skeleton's device, separate from the backend. */
#ifndef SKELETON_H
#define SKELETON_H

#include <stddef.h>
#include <stdint.h>

enum { SKELETON_ARGS = 3, SKELETON_FAULT = 96 };

/* Run the function; arg[i] is the memory of argument i.  Return 0, or -1 after writing a
 * text of up to SKELETON_FAULT bytes to fault. */
typedef int (*skeleton_fn)(uint8_t *const arg[], char *fault);

struct skeleton_function {
	const char *name;
	uint32_t arg_count;
	skeleton_fn fn;
};

/* Return the function of that name, or NULL. */
const struct skeleton_function *skeleton_function(const char *name);

#endif
