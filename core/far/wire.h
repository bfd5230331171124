/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the messages between a program and hald, the process that serves a device.
 *
 * A program has one or more channels: connections of type SOCK_SEQPACKET.  On each it
 * sends a request and then reads the answer; hald sends nothing that was not asked for.
 * A request is one function of hal.h.  hald carries it out by calling that function, so
 * both give the same results and error texts.
 *
 * Both messages are a struct far_message and a payload.  Objects are named by handles.
 * Structs of hal.h travel as they are, with .size, and with handles in place of pointers.
 * A payload above FAR_INLINE bytes lies in a memfd, which is the message's first file
 * descriptor; the operation's own descriptor, if it has one, comes after it.
 *
 * Whoever reads a message checks it as hostile input.
 */
#ifndef HAL_FAR_WIRE_H
#define HAL_FAR_WIRE_H

#include <stdint.h>

#include <hal/hal.h>

#include "far/names.h"

#define FAR_INLINE      49152u              /* bytes */
#define FAR_PAYLOAD_MAX (UINT32_C(1) << 28) /* bytes */
/* Longer data of hal_buffer_write and hal_buffer_read goes in several requests. */
#define FAR_CHUNK   (UINT32_C(1) << 20)
#define FAR_NUMBERS 6

/* In an answer .payload of a failed request is the text of hal_last_error. */
struct far_message {
	uint32_t op;    /* enum far_op; the same in the answer */
	int32_t result; /* of the function, in the answer */
	uint64_t bytes; /* of the payload */
	uint64_t a[FAR_NUMBERS];
};

#define FAR_NO_RING UINT64_MAX
/* Rights of a queue: these bits, and the highest priority in the lower half. */
#define FAR_MAY_DEADLINE (UINT64_C(1) << 32) /* submissions may have a deadline */
#define FAR_HAS_DEADLINE (UINT64_C(1) << 33) /* they have one by default */

/* Instead of the size of a caller's struct: the pointer is NULL. */
#define FAR_NO_STRUCT UINT64_MAX

/* What follows each name: the numbers and the payload of a request -> of its answer, "fd"
 * for the operation's descriptor.  "point": a0 timeline, a1 value. */
enum far_op {
	/* a0 FAR_VERSION; a1, a2: 0, or the client's numbers from the answer to its first
	 * channel -> a1, a2, struct hal_device_info; first channel: fds of the board and
	 * the bell (ring.h) */
	FAR_HELLO,
	FAR_CLOSE,           /* -> */
	FAR_DEVICE_INFO,     /* a1 size -> struct */
	FAR_DEVICE_STATS,    /* a1 size -> struct */
	FAR_DEVICE_POLL,     /* a0 ns -> */
	FAR_DEVICE_TIME,     /* -> a0 */
	FAR_SET_POLICY,      /* name, options, each with its zero byte -> */
	FAR_GET_POLICY,      /* a1 size -> struct */
	FAR_TRACE_START,     /* a0 bytes to keep or 0, fd of the file -> */
	FAR_TRACE_STOP,      /* -> a0 events, a1 dropped events */
	FAR_PARTITION,       /* a0 1 with limits, desc, limits -> a0 */
	FAR_PARTITION_NAMED, /* name -> a0 */
	FAR_RESIZE,          /* a0 partition, a1 1 with limits, desc, limits -> point */
	FAR_MOVE,            /* a0 count, a1 size of a desc, partitions, descs -> point */
	FAR_PARTITION_DESTROY,
	FAR_PARTITION_INFO,   /* a0, a1 size -> struct */
	FAR_PARTITION_STATS,  /* a0, a1 size -> struct */
	FAR_PARTITION_MEMORY, /* a0, a1 size -> struct */
	FAR_BUFFER,           /* a0 partition, a1 count of weights, a2 size
				 of the desc; desc, weights -> a0, a1 bytes */
	FAR_BUFFER_DESTROY,
	FAR_BUFFER_WRITE,  /* a0, a1 offset, data -> */
	FAR_BUFFER_READ,   /* a0, a1 offset, a2 bytes -> data */
	FAR_BUFFER_MAP,    /* a0, a1 1: the client has the memory -> fd, unless a1 is 1 */
	FAR_BUFFER_UNMAP,  /* a0 -> */
	FAR_BUFFER_EXPORT, /* a0 -> fd */
	FAR_BUFFER_IMPORT, /* a0 partition, desc, fd -> a0, a1 bytes */
	FAR_HOST,          /* a0 partition, a1 bytes -> a0, fd of the memory */
	FAR_BUFFER_RECOLOR, /* a0, a1 queue, a2 mask, weights or nothing -> point */
	FAR_PROGRAM,        /* image -> a0, struct far_kernel_entry of each kernel */
	FAR_PROGRAM_NAME,   /* a0, name -> */
	FAR_PROGRAM_INFO,   /* a0, a1 size -> struct */
	FAR_PROGRAM_UNLOAD,
	/* a0 partition, a1 its number at the client, desc -> a0, a1 its timeline, a2 its
	 * place on the board or FAR_NO_RING; with a ring: a3 slots, a4 its number in
	 * hald, a5 rights, fd */
	FAR_QUEUE,
	FAR_QUEUE_DESTROY,
	FAR_QUEUE_SUSPEND, /* a0, a1 mode -> point */
	FAR_QUEUE_RESUME,  /* a0 -> */
	FAR_QUEUE_STATS,   /* a0, a1 size -> struct */
	FAR_QUEUE_FAULT,   /* a0, a1 size -> struct */
	/* These answer with the state of the queue's ring: a2 tail, a3 submissions. */
	FAR_SUBMIT,   /* a0 queue, struct far_work -> point */
	FAR_SEQUENCE, /* a0 partition, struct far_work -> a0 */
	FAR_SEQUENCE_DESTROY,
	FAR_SEQUENCE_ARGS,   /* a0, a1 command, args -> */
	FAR_SEQUENCE_SUBMIT, /* a0 queue, a1 sequence, struct far_work or nothing -> point
			      */
	FAR_COMPLETIONS,     /* a0 entries -> a0 */
	FAR_COMPLETIONS_DESTROY,
	FAR_COMPLETIONS_READ, /* a0, a1 max, a2 until -> result entries */
	FAR_COMPLETIONS_FD,   /* a0 -> fd */
	FAR_TIMELINE,         /* -> a0 */
	FAR_TIMELINE_DESTROY,
	FAR_TIMELINE_VALUE,  /* a0 -> a0 value, a1 err */
	FAR_TIMELINE_SIGNAL, /* a0, a1 value -> */
	FAR_TIMELINE_EXPORT, /* a0, a1 rights -> fd */
	FAR_TIMELINE_IMPORT, /* fd -> a0 */
	FAR_WAIT,            /* a0 flags, a1 until, points -> */
	FAR_POINT_FD,        /* point -> fd */
	FAR_TENANT_ADD,      /* a section [tenant "name"] -> path of its socket */
	FAR_TENANT_REMOVE,   /* name -> */
	FAR_TENANT_LIST,     /* -> lines, as hal_hald_extension.tenant_list */
	/* Wait for a host function that is to be called -> a0 number, a1 function, a2 its
	 * argument, as they were in hal_cmd. */
	FAR_CALLBACK,
	FAR_CALLED, /* a0 number: it has returned -> */
	FAR_STATUS, /* -> JSON, as hal_hald_extension.status */
	FAR_OPS,
};

/* Both sides must be of one version, which changes with each request that is added.
 * Change the first number when a request changes. */
#define FAR_VERSION (2u << 16 | FAR_OPS)

/* A kernel of a program. */
struct far_kernel_entry {
	uint64_t handle;
	struct hal_kernel_info info;
};

/* A submission: this, then .cmd_count struct hal_cmd, then the arguments of all launches,
 * in order, then the waits, then the signals. */
struct far_work {
	uint32_t size; /* of the caller's hal_submit_desc */
	uint32_t flags;
	uint32_t cmd_count, wait_count, signal_count, arg_count;
	uint64_t not_before_ns, deadline_ns;
	int32_t priority;
	uint32_t reserved;
	uint64_t tag;
};

#endif
