/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand_in.h - how a test steers a GPU's stand-in: libcuda.so.1 or libamdhip64.so.5.
 *
 * They test our code and say so in every device's name; nothing they answer is a result
 * on a GPU.  What is undefined with the real library is counted as misuse.
 *
 * Time is virtual: a multiprocessor or compute unit runs one block at a time, a copy
 * engine one copy.  It is paced by CLOCK_MONOTONIC on a thread of its own, until someone
 * drives it.  Environment, behind HAL_STAND_IN_CUDA_ or HAL_STAND_IN_HIP_: FAIL=CALL:NTH:
 * RESULT; STRICT=1: a process that misused it or left something there exits with 70;
 * DELAYS=1: unless time is driven, calls that allocate memory or make a stream take as
 * long as real ones (1 ms, 0.3 ms), and frees wait for the device;
 * PRETENDS=1 (CUDA): blocks run on any multiprocessor, whatever their green context or
 * mask says, and %smid says that they do not;
 * HOST=apart: the device finds pinned memory at another address than the host.
 */
#ifndef TESTS_FAKES_GPU_STAND_IN_H
#define TESTS_FAKES_GPU_STAND_IN_H

#include <pthread.h>
#include <stdint.h>

#define GPU_STAND_IN_SYMBOL "hal_stand_in_gpu"

/* One command that ran, in the order of ends. */
struct gpu_stand_in_job {
	char what[32]; /* kernel's name, "copy", "fill" */
	uint32_t device;
	int32_t priority;
	uint64_t start_ns, end_ns;
	uint64_t units[5]; /* a bit for each on which blocks of it began */
	const void *stream;
	uint32_t engine; /* that copied: 1: to the device, 2: from it; 0: none */
};

/* How much of it there is; 0: as much as one likes. */
struct gpu_stand_in_limits {
	uint64_t piece;   /* the most bytes of device memory that lie together */
	uint64_t granule; /* in multiples of which device memory is taken */
	uint64_t pinned;  /* bytes of the host's that can still be had; 0: 4 GiB */
	uint32_t streams; /* that can still be made */
	/* Channels that new streams share; 0: as many as the environment says (CUDA:
	 * CUDA_DEVICE_MAX_CONNECTIONS or 8, of 1,021 entries each; HIP: GPU_MAX_HW_QUEUES
	 * or 4, of 16,384). */
	uint32_t channels;
};

struct gpu_stand_in {
	uint32_t size;
	/* The nth call (1: next) of this name answers result and does nothing; nth 0:
	 * disarms.  -1: no such call. */
	int (*break_call)(const char *call, uint64_t nth, uint32_t result);
	/* The same, but the call is well: what it gave the device runs, half of its
	 * effect is there or none, and then the device is lost with that result. */
	int (*break_late)(const char *call, uint64_t nth, uint32_t result);
	/* The same, but what it gave the device is done, although it says that it is not.
	 */
	int (*break_half)(const char *call, uint64_t nth, uint32_t result);
	/* How many calls it still is to that, 0: it has been. */
	uint64_t (*armed)(void);
	/* Calls so far, of all names when call is NULL. */
	uint64_t (*calls)(const char *call);
	/* Count the calls of that thread, from 0. */
	void (*watch)(pthread_t thread);
	/* Return how many calls of this name the watched thread has made. */
	uint64_t (*watched)(const char *call);
	/* Objects and allocations that nobody has given back. */
	uint32_t (*live)(void);
	/* Things that are undefined with the driver, or that ours must never do: freed
	 * while in use, used when gone, the NULL stream, code loaded at a launch, calls
	 * that block on a thread that may not.  text may be NULL: the first one. */
	uint32_t (*misuse)(const char **text);
	/* The context of the device is lost with this result from now on. */
	void (*lose)(uint32_t device, uint32_t result);
	/* Device memory that can still be had: bytes, UINT64_MAX: all there is. */
	void (*memory_left)(uint64_t bytes);
	void (*limit)(const struct gpu_stand_in_limits *limits);
	/* Frees of memory and modules wait until the device is idle (1) or do not. */
	void (*frees_wait)(int yes);
	/* Nobody is called before launches (1). */
	void (*no_callback)(int yes);
	/* Blocks run on any unit (1), whatever green context or mask says. */
	void (*green_leaks)(int yes);
	/* Fills, and copies within device memory, are kernels of the driver (1, from the
	 * start): they need free units, and run on those of their stream and of the mask
	 * that the call was made under.  0: engines do them. */
	void (*moves_run)(int yes);
	/* Calls that waited for an entry of their stream's channel. */
	uint64_t (*blocked)(void);
	/* The nth newest stream that is not destroyed (0: the newest): queries of it
	 * answer result from now on; 0: the truth.  The device is not lost by that.  -1:
	 * no such stream. */
	int (*answer_query)(uint32_t nth, uint32_t result);
	/* How often that stream was queried. */
	uint64_t (*queries)(uint32_t nth);
	/* This thread may make no call that can block. */
	void (*hot)(int yes);
	/* The program's thread that calls this captures that stream, in a mode and 1 (1:
	 * global, 2: of the thread, 3: relaxed), or ends that (0). */
	void (*capture)(void *stream, int mode);
	uint64_t (*now)(void);
	/* Of the host's time, what waits have burnt (HSA). */
	uint64_t (*spun)(void);
	/* Commands that ended since the last call, oldest first. */
	uint32_t (*jobs)(struct gpu_stand_in_job *out, uint32_t max);
	/* A new process: forgets counts, jobs and losses, disarms.  Nothing is open. */
	void (*reset)(void);
};

#endif
