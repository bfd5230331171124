/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.h - the software device: kernels are C functions of this process, time is modelled.
 *
 *   static const struct hal_ref_kernel scale_kernel = {
 *           .name = "scale", .fn = scale, .work = 4096, .arg_count = 2};
 *   hal_ref_load(dev, &scale_kernel, 1, &prog);
 *
 * hal_ref_load registers functions of the application with the device, then loads an
 * image that names them.  An image holds names only, so it may come from another process
 * or a file.  Its kernels are those that the application has registered with the device,
 * and those of the libraries that the option kernels= of the device lists.
 *
 * A launch takes max(span_ns, ceil(work * groups / units)) ns on a partition of that many
 * units.  The function is called once, at the end of that time, from inside hal_wait or
 * hal_device_poll (virtual clock) or on the engine's thread (real clock); a launch that
 * is killed was never called.
 *
 * Isolation of memory is advisory: a C function can follow any pointer.  One that takes
 * its arguments through hal_ref_call.at() faults instead, as on a device.
 */
#ifndef HAL_REF_H
#define HAL_REF_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_REF_MAGIC   0x46455248u /* "HREF" */
#define HAL_REF_VERSION 2u
#define HAL_REF_NAME    32u /* bytes of a kernel's name, its zero byte included */

struct hal_ref_arg {
	void *data;     /* NULL: a scalar */
	uint64_t bytes; /* of the range; 0 for a scalar */
	uint64_t value; /* the scalar, else the device address of data */
};

/* One launch, as its kernel sees it. */
struct hal_ref_call {
	const struct hal_ref_arg *args;
	uint32_t arg_count;
	uint32_t units; /* of the partition at its end */
	uint32_t groups[3];
	uint32_t reserved;
	const char *kernel;
	void *user;  /* hal_ref_kernel.user */
	char *fault; /* text of a fault, for the function that returns an error */
	size_t fault_bytes;
	/* Argument arg's bytes offset .. offset + bytes, or NULL with .fault set when
	 * they are not all inside it: return -EIO then. */
	void *(*at)(const struct hal_ref_call *call, uint32_t arg, uint64_t offset,
		    uint64_t bytes);
};

/* 0, or -errno: the launch ends with -EIO and .fault, or the error's name. */
typedef int (*hal_ref_fn)(const struct hal_ref_call *call);
/* Work of one group in unit-nanoseconds, where it depends on the arguments. */
typedef uint64_t (*hal_ref_cost_fn)(const struct hal_ref_call *call);

struct hal_ref_kernel {
	char name[HAL_REF_NAME];
	hal_ref_fn fn;
	hal_ref_cost_fn cost; /* NULL: .work */
	void *user;
	uint64_t work;    /* unit-nanoseconds a group */
	uint64_t span_ns; /* never faster than this, however many units */
	uint32_t arg_count;
	uint32_t reserved;
	uint64_t arg_bytes[HAL_ARGS_MAX]; /* least size; 0: a scalar, or any */
};

/* An image: this, then kernel_count names of HAL_REF_NAME bytes, each ended by a zero
 * byte and different from the others. */
struct hal_ref_image {
	uint32_t magic;
	uint32_t version;
	uint32_t name_bytes; /* HAL_REF_NAME */
	uint32_t kernel_count;
};

/* Symbol and type of the table that a library of the option kernels= exports. */
#define HAL_REF_LIBRARY_SYMBOL "hal_ref_library"
struct hal_ref_library {
	uint32_t version;     /* HAL_REF_VERSION */
	uint32_t kernel_size; /* sizeof(struct hal_ref_kernel) */
	uint32_t kernel_count;
	uint32_t reserved;
	const struct hal_ref_kernel *kernels;
};

/* ---- extension "ref": hal_device_get_extension(dev, "ref") ---------------------------- */

/* Operations that can be made to fail. */
enum hal_ref_op {
	HAL_REF_OP_PARTITION_CREATE,
	HAL_REF_OP_QUEUE_CREATE,
	HAL_REF_OP_MEM_ALLOC,
	HAL_REF_OP_MEM_WRITE,
	HAL_REF_OP_MEM_READ,
	HAL_REF_OP_MEM_MAP,
	HAL_REF_OP_MEM_EXPORT,
	HAL_REF_OP_MEM_SWAP,
	HAL_REF_OP_MEM_OUT,
	HAL_REF_OP_MEM_IN,
	HAL_REF_OP_WIDEN, /* partition_widen: bimodal memory stays where it is */
	HAL_REF_OP_PROGRAM_LOAD,
	HAL_REF_OP_SUBMIT,  /* the device refuses the command; EAGAIN: full for once */
	HAL_REF_OP_EXECUTE, /* a command ends with a fault */
	HAL_REF_OP_SUSPEND,
	HAL_REF_OP_RESIZE,
	HAL_REF_OPS,
};

enum hal_ref_event_kind {
	HAL_REF_STARTED,
	HAL_REF_ENDED,
	HAL_REF_FAULTED,
	HAL_REF_KILLED,  /* it had started */
	HAL_REF_DROPPED, /* it had not */
	HAL_REF_QUIET,   /* a suspend has let go */
	HAL_REF_MOVED,   /* a resize is done */
	HAL_REF_STOPPED, /* inside; it is STARTED once more when it goes on */
};

struct hal_ref_event {
	uint32_t kind;      /* enum hal_ref_event_kind */
	uint32_t op;        /* enum hal_op */
	uint32_t partition; /* hal_partition_info.index */
	uint32_t units;
	uint64_t queue;    /* 1, 2, ... in the order queues were created */
	uint64_t sequence; /* of the command in its queue, from 0; replays count again */
	uint64_t now_ns;
};

struct hal_ref_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_get_native(dev), for all of these. */
	/* The nth (1: next) operation from now fails with -err, once; nth 0: disarm. */
	int (*inject)(void *native, uint32_t op, uint64_t nth, int err);
	/* Partition index of each unit, -1 where free.  Returns the number of units. */
	int (*unit_owners)(void *native, int32_t *owners, uint32_t count);
	/* Free bytes of one colour; colour 0 is all of it on a device without colours. */
	int (*color_free)(void *native, uint32_t color, uint64_t *bytes);
	/* Told of everything the device does, from inside hal_wait, hal_device_poll or
	 * on the engine's thread; NULL: off.  Set it while nothing is in flight. */
	int (*on_event)(void *native,
			void (*fn)(void *user, const struct hal_ref_event *ev),
			void *user);
	/* Copy kernels, which images loaded on this device from now on may name.  A
	 * kernel replaces an earlier one of the same name, and one of a library; loaded
	 * programs keep what they have.  -EINVAL: a kernel has no valid name, no function
	 * or too many arguments.  -ENOMEM.  Nothing is registered then.  Any thread. */
	int (*add_kernels)(void *native, const struct hal_ref_kernel *kernels,
			   uint32_t count);
};

/* Register kernels with dev, a device of ref, and load a program of them.
 * Errors: those of add_kernels and hal_program_load.  ENOTSUP: dev is of another backend.
 * ENOMEM.
 * Threads: any, but two at once must not register different functions of one name.
 * Memory: kernels are copied.  *prog lasts until hal_program_unload. */
static inline int hal_ref_load(struct hal_device *dev,
			       const struct hal_ref_kernel *kernels, uint32_t count,
			       struct hal_program **prog)
{
	const struct hal_ref_extension *ref =
		(const struct hal_ref_extension *)hal_device_get_extension(dev, "ref");
	const struct hal_ref_image head = {HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME,
					   count};
	size_t size = sizeof(head) + (size_t)count * HAL_REF_NAME;
	char *image;
	int err;

	if (ref == NULL || ref->size < sizeof(*ref))
		return -ENOTSUP;
	err = ref->add_kernels(hal_device_get_native(dev), kernels, count);
	if (err != 0)
		return err;
	image = (char *)malloc(size);
	if (image == NULL)
		return -ENOMEM;
	memcpy(image, &head, sizeof(head));
	for (uint32_t i = 0; i < count; i++)
		memcpy(image + sizeof(head) + (size_t)i * HAL_REF_NAME, kernels[i].name,
		       HAL_REF_NAME);
	err = hal_program_load(dev, image, size, prog);
	free(image);
	return err;
}

#ifdef __cplusplus
}
#endif
#endif
