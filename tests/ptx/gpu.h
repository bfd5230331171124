/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - runs kernels of PTX on the first GPU, by CUDA's driver, which is opened at run
 * time.  A kernel's text is loaded without the module's other kernels, which saves their
 * compilation.
 */
#ifndef TESTS_PTX_GPU_H
#define TESTS_PTX_GPU_H

#include "cu_calls.h"
#include "interp.h"

#define GPU_NONE 77 /* exit status: there is no driver, or no GPU */

/* clang-format off */
#define GPU_CALLS(X) CU_CALLS(X) \
X(cuGetErrorName, (int error, const char **name), (error, name))
/* clang-format on */

struct gpu {
#define GPU_POINTER(name, params, args) int(*name) params;
	GPU_CALLS(GPU_POINTER)
#undef GPU_POINTER
	void *stream, *beside; /* neither waits for the other */
	int multiprocessors;
	bool lost; /* a call has failed that does not: nothing works any more */
};

extern struct gpu gpu;

/* Within a function that returns 0 or not, and has why. */
#define GPU_TRY(name, ...)                                                               \
	do {                                                                             \
		const int rc_ = gpu.name(__VA_ARGS__);                                   \
                                                                                         \
		if (rc_)                                                                 \
			return gpu_failed(why, #name, rc_);                              \
	} while (0)

int gpu_failed(char why[PTX_WHY], const char *call, int rc);
int gpu_open(char why[PTX_WHY]); /* 0, GPU_NONE, or else */
uint64_t gpu_now(void);          /* nanoseconds */
int gpu_function(const struct ptx *m, uint32_t kernel, uint32_t shared_bytes,
		 void **function, char why[PTX_WHY]);
int gpu_launch(void *function, const uint32_t grid[3], const uint32_t block[3],
	       uint32_t shared_bytes, const void *params, uint32_t param_bytes,
	       char why[PTX_WHY]);
/* Sets the word while the stream may be running. */
int gpu_raise(uint64_t address, char why[PTX_WHY]);

/* As interp_run; regions are device memory at these addresses, filled before, and read
 * after.  With a tick above 1, l->stop's word is set at about the time the launch begins.
 */
int gpu_run(const struct ptx *m, struct interp_launch *l, char why[PTX_WHY]);
/* What the passes cost, and stops in the midst: exit status. */
int gpu_time(const char *folder);

#endif
