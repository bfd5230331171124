/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h - what the files of requests share. */
#ifndef HALD_REQUESTS_H
#define HALD_REQUESTS_H

#include "hald.h"

enum { STRUCT_MAX = 1024 }; /* bytes of a caller's struct */

/* Fail with -EPROTO: no correct library sends r.  Its client is ended. */
int broken(struct request *r, const char *what);
/* Return zeroed room for the payload of the answer; NULL with an error. */
void *answer_room(struct request *r, uint64_t bytes);
/* Copy the caller's struct that begins at `at` of the payload to `to`, which has room
 * bytes, and set *in to it; to NULL if at is end, since the caller's pointer was NULL. */
int struct_in(struct request *r, uint64_t at, uint64_t end, void *to, size_t room,
	      void **in);
/* Return the payload as a text; NULL with an error. */
const char *text_in(struct request *r);
/* Write p into the answer.  parent is the handle of what its timeline goes with. */
int point_out(struct request *r, const struct hal_point *p, uint64_t parent);
/* Write a handle for object, which the client has created, into the answer. */
int made(struct request *r, enum far_kind kind, void *object);

/* Points of a request.  While they are held, nothing destroys their timelines. */
struct held_points {
	struct hal_point *points;
	struct entry **entries;
	uint32_t count;
};
int points_hold(struct request *r, const char *from, uint32_t count,
		struct held_points *held);
void points_release(struct request *r, struct held_points *held);

/* Hold q, a queue, so that the caller may submit to it; and end that, with the state of
 * its ring in the answer. */
void queue_hold(struct entry *q);
void queue_let_go(struct request *r, struct entry *q);

/* Return the device that hald serves. */
struct hal_device *device_of(const struct request *r);
/* Return 0 if the client is an operator, else fail with -EPERM; what is the operator's.
 */
int operator_check(const struct request *r, const char *what);
/* Return 0; with ticks fail with -ENOTSUP: what would show when something happens. */
int tick_refuse(const struct request *r, const char *what);
/* Begin and end to use the object of kind that number `which` of r names. */
struct entry *hold(struct request *r, uint32_t which, enum far_kind kind);
void release(struct request *r, struct entry *e);

/* Requests, by the files that have them. */
/* work.c */
int do_queue(struct request *r);
int do_queue_suspend(struct request *r);
int do_queue_resume(struct request *r);
int do_submit(struct request *r);
int do_sequence(struct request *r);
int do_sequence_args(struct request *r);
int do_sequence_submit(struct request *r);
/* device.c, memory.c, time.c */
int do_close(struct request *r);
int do_set_policy(struct request *r);
int do_poll(struct request *r);
int do_tenant_add(struct request *r);
int do_tenant_remove(struct request *r);
int do_tenant_list(struct request *r);
int do_status(struct request *r);
/* trace.c */
int do_trace_start(struct request *r);
int do_trace_stop(struct request *r);
/* device.c, memory.c, time.c */
int do_time(struct request *r);
int do_callback(struct request *r);
int do_called(struct request *r);
int do_partition(struct request *r);
int do_partition_named(struct request *r);
int do_resize(struct request *r);
int do_move(struct request *r);
int do_buffer(struct request *r);
int do_buffer_import(struct request *r);
int do_buffer_write(struct request *r);
int do_buffer_read(struct request *r);
int do_buffer_map(struct request *r);
int do_buffer_unmap(struct request *r);
int do_buffer_export(struct request *r);
int do_buffer_recolor(struct request *r);
int do_host(struct request *r);
int do_program(struct request *r);
int do_program_name(struct request *r);
int do_completions(struct request *r);
int do_completions_fd(struct request *r);
int do_completions_read(struct request *r);
int do_timeline(struct request *r);
int do_timeline_import(struct request *r);
int do_timeline_value(struct request *r);
int do_timeline_signal(struct request *r);
int do_timeline_export(struct request *r);
int do_wait(struct request *r);
int do_point_fd(struct request *r);

#endif
