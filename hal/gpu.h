/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - what backends of GPUs have alike: the extension hal_device_get_extension(dev,
 * "gpu").  It says in words what no number of hal_device_info does, and which kernels can
 * be stopped; and it takes what a program has already, its memory and its streams.
 */
#ifndef HAL_GPU_H
#define HAL_GPU_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_GPU_SAID  1024
#define HAL_GPU_ALIGN 8u /* of memory that is offered */

/* How the device is shared.  Each text is one line without an end of line. */
struct hal_gpu_info {
	uint32_t size;
	uint32_t reserved;
	char way[32]; /* what a partition is, as the option "partitions" has it */
	/* How that was chosen, and why not a better way. */
	char why[HAL_GPU_SAID];
	/* What a fault, and a launch that does not end, takes along. */
	char faults[HAL_GPU_SAID];
};

/* What slices of a kernel's launches were (option slice_us), since its programs were
 * loaded; the sum over all programs that have such a kernel. */
struct hal_gpu_slices {
	uint32_t size;
	uint32_t reserved;
	uint64_t launches; /* that were cut */
	uint64_t slices;   /* of all of them */
	uint64_t calls;    /* of the driver, for these: what they cost the host */
	uint64_t block_ns; /* a block, as last measured; 0: it has not been */
};

struct hal_gpu_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_get_native(dev).  Any thread.  info->size is set; -EINVAL it
	 * is no size of the struct. */
	int (*info)(void *native, struct hal_gpu_info *info);
	/* Return 1 if the launches of each kernel of that name, in all programs that are
	 * loaded, can be stopped between blocks; 0 if those of at least one cannot.  Then
	 * why, of HAL_GPU_SAID bytes, says why not, for the one that was loaded last, and
	 * how many there are if others can.  -ENOENT: there is none. */
	int (*stops)(void *native, const char *kernel, char why[HAL_GPU_SAID]);

	/*
	 * What the program has already, of CUDA's primary context or of HIP's device.
	 * An offer belongs to the thread that makes it.  The next such object that this
	 * thread creates on the device is made from it; objects of other threads are not.
	 * A thread has at most one offer of each kind (-EBUSY).  An offer stays if the
	 * creation fails.  bytes 0 or stream NULL withdraws the thread's offer.  Withdraw
	 * it before the memory or the stream goes.  Any thread.
	 *
	 * It stays the program's: it outlives the object made of it, and is not freed or
	 * destroyed with that, with the device, or after a fault.  A fault of either's
	 * work takes along all that the process has on the device.
	 *
	 * Memory: the next buffer of exactly so many bytes that is neither mappable nor
	 * exportable.  It counts in its partition's quota.  -EINVAL: address is no
	 * multiple of HAL_GPU_ALIGN, or fewer bytes of the device's memory are there.
	 * -ENOTSUP: cuda with bounds=yes, where buffers lie in a range of their
	 * partition's.
	 */
	int (*offer_memory)(void *native, uint64_t address, uint64_t bytes);
	/*
	 * A stream (CUstream, cudaStream_t, hipStream_t): the next queue.  Its work runs
	 * behind what the program has put there before it submitted it, and before what
	 * the program puts there once it has seen its point: hal_submit itself does not
	 * say that the work is on the stream.
	 * The queue's priority is the stream's.  What the program has there counts for
	 * hang_ms and for how long commands took; it is not stopped, and DRAIN does not
	 * wait for it.
	 * While the application captures the stream, commands that are submitted to the
	 * queue fail with -EBUSY and timestamps wait; the capture stays valid.
	 * -EBUSY: the stream is being captured, or this thread has offered one already.
	 * -EINVAL: another context's, a NULL stream, one that waits for the NULL stream.
	 * -ENOTSUP: with preempt=block, or where a partition is what its streams were
	 * made with (green contexts; on rocm any partitions).
	 */
	int (*offer_stream)(void *native, void *stream);

	/* Describe the slices of the launches of each kernel of that name.  out->size is
	 * set.  Any thread.  -ENOENT: no loaded program has such a kernel; -EINVAL:
	 * out->size is no size of the struct; NULL, or the table is smaller: the backend
	 * cuts no launches. */
	int (*slices)(void *native, const char *kernel, struct hal_gpu_slices *out);
};

#ifdef __cplusplus
}
#endif
#endif
