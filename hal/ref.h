/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref.h - the software device: kernels are C functions of this process, time is modelled.
 *
 *   struct {
 *           struct hal_ref_image head;
 *           struct hal_ref_kernel kernels[1];
 *   } image = {{HAL_REF_MAGIC, HAL_REF_VERSION, sizeof(struct hal_ref_kernel), 1},
 *              {{.name = "scale", .fn = scale, .work = 4096, .arg_count = 2}}};
 *   hal_program_load(dev, &image, sizeof(image), &prog);
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

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_REF_MAGIC   0x46455248u /* "HREF" */
#define HAL_REF_VERSION 1u

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
	char name[32];
	hal_ref_fn fn;
	hal_ref_cost_fn cost; /* NULL: .work */
	void *user;
	uint64_t work;    /* unit-nanoseconds a group */
	uint64_t span_ns; /* never faster than this, however many units */
	uint32_t arg_count;
	uint32_t reserved;
	uint64_t arg_bytes[HAL_ARGS_MAX]; /* least size; 0: a scalar, or any */
};

/* An image: this, then kernel_count kernels.  Good in the process that made it. */
struct hal_ref_image {
	uint32_t magic;
	uint32_t version;
	uint32_t kernel_size; /* sizeof(struct hal_ref_kernel) */
	uint32_t kernel_count;
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
};

#ifdef __cplusplus
}
#endif
#endif
