/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig.h - MIG instances of the stand-in's GPU 0, for its libcuda and its libnvidia-ml:
 * HAL_STAND_IN_CUDA_MIG has them as "GPU INSTANCE:PROFILE:MULTIPROCESSORS:MIB,...".
 * libcuda shows one of each GPU instance of those in CUDA_VISIBLE_DEVICES; with
 * HAL_STAND_IN_CUDA_MIG_OLD a single one, as drivers before 570.
 */
#ifndef TESTS_FAKES_CUDA_MIG_H
#define TESTS_FAKES_CUDA_MIG_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIG_MOST = 8 };

struct mig_instance {
	uint32_t gpu_instance;
	char profile[16];
	uint32_t multiprocessors, mib;
};

static inline uint32_t mig_read(struct mig_instance out[MIG_MOST])
{
	const char *at = getenv("HAL_STAND_IN_CUDA_MIG");
	uint32_t n = 0;

	while (at && n < MIG_MOST &&
	       sscanf(at, "%u:%15[^:]:%u:%u", &out[n].gpu_instance, out[n].profile,
		      &out[n].multiprocessors, &out[n].mib) == 4) {
		n++;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return n;
}

static inline void mig_uuid(uint32_t i, unsigned char uuid[16])
{
	memset(uuid, 0xa0, 16);
	uuid[15] = (unsigned char)i;
}

static inline void mig_uuid_text(uint32_t i, char text[48])
{
	(void)snprintf(text, 48, "MIG-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0%02x", i);
}

#endif
