/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - check the arguments and the groups of a launch, and say what is wrong.
 */
#ifndef BACKENDS_STREAM_ARGS_H
#define BACKENDS_STREAM_ARGS_H

#include "slots.h"

/* The parameters and limits of a kernel. */
struct stream_params {
	uint32_t groups_max[3];              /* in each dimension */
	uint32_t scalar_bytes[HAL_ARGS_MAX]; /* 0: memory */
	uint64_t value_max[HAL_ARGS_MAX];    /* of a scalar; memory: UINT64_MAX */
};

/* Describe parameter i: a scalar of 1, 2, 4 or 8 bytes, or memory (0). */
STREAM_FN void stream_param_set(struct stream_params *p, uint32_t i, uint32_t bytes)
{
	p->scalar_bytes[i] = bytes;
	p->value_max[i] =
		bytes && bytes < 8 ? (UINT64_C(1) << 8 * bytes) - 1 : UINT64_MAX;
}

/* Return the device address of a buffer.  The backend's own header defines it. */
static inline uint64_t vendor_address(const void *mem);

__attribute__((cold)) STREAM_FN void stream_refuse_groups(const char *kernel,
							  const struct stream_params *p,
							  const uint32_t g[3])
{
	(void)STREAM_FAIL(EINVAL,
			  STREAM_NAME
			  ": kernel %s: %u x %u x %u groups; the device allows at "
			  "most %u x %u x %u",
			  kernel, g[0], g[1], g[2], p->groups_max[0], p->groups_max[1],
			  p->groups_max[2]);
}

__attribute__((cold)) STREAM_FN void stream_refuse_arg(const char *kernel,
						       const struct stream_params *p,
						       uint32_t i,
						       const struct hal_bk_arg *a)
{
	const char *why = "is a scalar that does not fit into its bytes";

	if (a->mem && p->scalar_bytes[i])
		why = "must be a scalar, but is a buffer";
	else if (!a->mem && !p->scalar_bytes[i])
		why = "must be a buffer, but is a scalar";
	(void)STREAM_FAIL(EINVAL, STREAM_NAME ": kernel %s: argument %u %s", kernel, i,
			  why);
}

/* Return 0 if the device allows that many groups of the kernel. */
STREAM_INLINE int stream_check_groups(const char *kernel, const struct stream_params *p,
				      const uint32_t g[3])
{
	if (__builtin_expect(g[0] <= p->groups_max[0] && g[1] <= p->groups_max[1] &&
				     g[2] <= p->groups_max[2],
			     1))
		return 0;
	stream_refuse_groups(kernel, p, g);
	return -EINVAL;
}

/* Set *value to what the device gets as argument i: of a buffer, its address. */
STREAM_INLINE int stream_arg(const char *kernel, const struct stream_params *p,
			     uint32_t i, const struct hal_bk_arg *a, uint64_t *value)
{
	uint64_t v = a->value;

	if (__builtin_expect(v > p->value_max[i], 0))
		goto refuse;
	if (a->mem) {
		if (__builtin_expect(p->scalar_bytes[i] != 0, 0))
			goto refuse;
		v += vendor_address(a->mem);
	} else if (__builtin_expect(p->scalar_bytes[i] == 0, 0)) {
		goto refuse;
	}
	*value = v;
	return 0;
refuse:
	stream_refuse_arg(kernel, p, i, a);
	return -EINVAL;
}

#endif
