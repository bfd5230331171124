/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal_preempt.h - kernels that can be stopped between their blocks, for HIP: each block
 * looks at a flag before it begins; one that is not to begin writes its number to a list,
 * and a later launch runs the list.
 *
 *	HAL_PREEMPT_KERNEL(scale)(float *d, float by HAL_PREEMPT_LAST)
 *	{
 *		HAL_PREEMPT_ENTER();
 *		d[blockIdx.x * 256 + threadIdx.x] *= by;
 *	}
 *
 * HAL_PREEMPT_KERNEL is extern "C" __global__ void, and leaves a mark in the code by
 * which the device rocm knows that it is so (preempt=block).  HAL_PREEMPT_LAST, without
 * a comma in front of it, is one more argument, the last of at least two; images and
 * launches do not name it.  HAL_PREEMPT_ENTER() is the first statement, reached by all
 * threads of the block; some may return behind it.  From there on blockIdx and gridDim
 * are those of the whole kernel, whatever has been launched: hipBlockIdx_x, and
 * functions that look at blockIdx themselves, would see another one.
 *
 * Not for kernels whose blocks wait for each other (cooperative launches): one that was
 * stopped would be waited for until its queue goes on, which waits for this launch.
 * Blocks begin in any order anyway.
 *
 * In CUDA C++ the three are a plain kernel: there preempt=block rewrites its PTX, to the
 * same effect.
 *
 * It costs a read of the host's memory, a barrier and 4 bytes of LDS a block.
 */
#ifndef HAL_DEVICE_HAL_PREEMPT_H
#define HAL_DEVICE_HAL_PREEMPT_H

/* What is in the argument; addresses are the device's.  A grid has less than 2^31 blocks.
 */
struct hal_preempt_launch {
	/* In memory that the host writes while the kernel runs.  Not 0: no block begins
	 * any more.  NULL: all do. */
	unsigned int *flag;
	unsigned int *stopped; /* numbers in to[] so far */
	unsigned int *from;    /* resumed of them: numbers of the blocks to run */
	unsigned int *to;      /* room for as many as are launched */
	unsigned int grid[3];  /* of the whole kernel */
	unsigned int
		resumed; /* 0: the grid is launched; else (resumed, 1, 1), of from[] */
};

/* A kernel NAME that follows this has a variable hal_preempt_1_NAME in its code; another
 * struct would have another number. */
#define HAL_PREEMPT_MARK "hal_preempt_1_"

#if defined(__HIP__) || defined(__HIPCC__)

#define HAL_PREEMPT_KERNEL(name)                                                         \
	extern "C" {                                                                     \
	__attribute__((device))                                                          \
	__attribute__((used)) unsigned int hal_preempt_1_##name =                        \
		(unsigned int)sizeof(struct hal_preempt_launch);                         \
	}                                                                                \
	extern "C" __attribute__((global)) void name

#define HAL_PREEMPT_LAST , const struct hal_preempt_launch hal_preempt

#define HAL_PREEMPT_ENTER()                                                              \
	const struct hal_preempt_place hal_preempt_at = hal_preempt_enter(&hal_preempt); \
	const struct hal_preempt_xyz blockIdx __attribute__((unused)) =                  \
		hal_preempt_at.block;                                                    \
	const struct hal_preempt_xyz gridDim __attribute__((unused)) =                   \
		hal_preempt_at.grid;                                                     \
                                                                                         \
	if (hal_preempt_at.stopped)                                                      \
	return

struct hal_preempt_xyz {
	unsigned int x, y, z;
};

struct hal_preempt_place {
	struct hal_preempt_xyz block, grid;
	unsigned int stopped;
};

__attribute__((device)) static inline struct hal_preempt_place
hal_preempt_enter(const struct hal_preempt_launch *p)
{
	__attribute__((shared)) static unsigned int seen;
	const unsigned int x = p->grid[0], y = p->grid[1];
	const bool first =
		!(__builtin_amdgcn_workitem_id_x() | __builtin_amdgcn_workitem_id_y() |
		  __builtin_amdgcn_workitem_id_z());
	unsigned int number = __builtin_amdgcn_workgroup_id_x();
	struct hal_preempt_place at;

	/* All threads of a block agree, by what one of them sees. */
	if (first)
		seen = p->flag ? __atomic_load_n(p->flag, __ATOMIC_RELAXED) : 0;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
	if (p->resumed)
		number = p->from[number];
	else
		number += x * (__builtin_amdgcn_workgroup_id_y() +
			       y * __builtin_amdgcn_workgroup_id_z());
	at.stopped = seen;
	if (seen && first)
		p->to[__atomic_fetch_add(p->stopped, 1u, __ATOMIC_RELAXED)] = number;
	at.block.x = number % x;
	at.block.y = number / x % y;
	at.block.z = number / x / y;
	at.grid.x = x;
	at.grid.y = y;
	at.grid.z = p->grid[2];
	return at;
}

#elif defined(__CUDA__) || defined(__CUDACC__)

#define HAL_PREEMPT_KERNEL(name) extern "C" __attribute__((global)) void name
#define HAL_PREEMPT_LAST
#define HAL_PREEMPT_ENTER() ((void)0)

#endif

#endif
