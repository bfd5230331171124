/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that follow hal/device/hal_preempt.h; see test_clang.c.  No headers of HIP. */
#include <hal/device/hal_preempt.h>

HAL_PREEMPT_KERNEL(scale)(float *d, float by HAL_PREEMPT_LAST)
{
	HAL_PREEMPT_ENTER();
	d[blockIdx.x * 256 + __builtin_amdgcn_workitem_id_x()] *= by;
}

/* Where each block is. */
HAL_PREEMPT_KERNEL(places)(unsigned *d HAL_PREEMPT_LAST)
{
	HAL_PREEMPT_ENTER();
	d[blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)] = blockIdx.z;
}

extern "C" __attribute__((global)) void plain(unsigned *d)
{
	*d = 1;
}
