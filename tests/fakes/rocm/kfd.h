/* SPDX-License-Identifier: Apache-2.0 */
/* kfd.h - GPUs as the kernel's driver sees them, and what it makes of a mask of compute
 * units: bits go round the engines. */
#ifndef TESTS_FAKES_ROCM_KFD_H
#define TESTS_FAKES_ROCM_KFD_H

#include <stdbool.h>
#include <stdint.h>

enum { KFD_CUS_MAX = 320, KFD_ARRAYS_MAX = 64 };

struct kfd_gpu {
	const char *name, *arch;
	uint32_t target;               /* gfx_target_version */
	uint32_t xccs, engines;        /* engines of an XCC */
	uint32_t arrays;               /* of an engine */
	uint32_t places;               /* for CUs in an array */
	uint32_t dead[KFD_ARRAYS_MAX]; /* of each array: how many of these do not work */
	uint64_t memory;
	bool pairs; /* RDNA */
};

enum { KFD_GPUS = 4 };
extern const struct kfd_gpu kfd_gpus[KFD_GPUS];

uint32_t kfd_cus(const struct kfd_gpu *g);
/* The processor, as a code object's flags have it. */
uint32_t kfd_machine(const struct kfd_gpu *g);
/* Where a CU is, by its number: engine by engine, array by array. */
struct kfd_place {
	uint32_t xcc, engine, array, cu;
};
struct kfd_place kfd_place(const struct kfd_gpu *g, uint32_t cu);
/* What of HW_ID and of the XCC's number says where a CU is: on RDNA its pair. */
uint32_t kfd_hw_id(const struct kfd_gpu *g, uint32_t cu);
/* Which CUs run waves under this mask; false: none does, which hangs the queue.  An XCC
 * that is given no bit runs on all it has. */
bool kfd_apply(const struct kfd_gpu *g, const uint32_t *mask, uint32_t bits,
	       bool on[KFD_CUS_MAX]);
/* As the text of sysfs has it, at that bus. */
int kfd_properties(const struct kfd_gpu *g, uint32_t bus, char *text, uint32_t room);

#endif
