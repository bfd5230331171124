/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - requests about queues, submissions and sequences. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command/queue.h"
#include "requests.h"
#include "util/error.h"

/* ---- queues ------------------------------------------------------------------------ */

/* Write what the client has to know of ring, which is that of q, into the answer. */
static void ring_out(struct request *r, const struct hal_queue *q,
		     const struct ring *ring)
{
	const struct inlet *in = &ring->inlet;
	int64_t most = in->priority_max < INT32_MAX ? in->priority_max : INT32_MAX;

	r->m.a[2] = (uint64_t)(in->told - r->client->board->told);
	r->m.a[3] = q->slot_count;
	r->m.a[4] = q->obj.id;
	r->m.a[5] = (uint32_t)(int32_t)most;
	r->m.a[5] |= in->deadlines ? FAR_MAY_DEADLINE : 0;
	r->m.a[5] |= q->default_terms.deadline_ns != 0 ? FAR_HAS_DEADLINE : 0;
}

/* Give the client names for q, its new queue, and a ring unless it cannot have one. */
static int queue_out(struct request *r, struct hal_queue *q, bool notifies)
{
	struct handles *t = &r->client->handles;
	struct entry *e;

	r->m.a[0] = handle_add_hidden(t, KIND_QUEUE, q, &e);
	if (r->m.a[0] == 0)
		return -ENOMEM;
	/* Its address in the client. */
	memcpy(&q->told_as, &r->m.a[1], sizeof(r->m.a[1]));
	e->service_class = q->sched.own_class;
	r->m.a[1] =
		handle_add(t, KIND_TIMELINE, hal_queue_get_timeline(q), false, r->m.a[0]);
	r->m.a[2] = FAR_NO_RING;
	/* A submission to a queue with a ring of completions reserves an entry there. */
	e->ring = notifies || r->m.a[1] == 0 ? NULL : ring_make(r->client, q, &r->out_fd);
	if (e->ring != NULL)
		ring_out(r, q, e->ring);
	/* From here on other requests find it. */
	handle_end_destroy(t, e, r->m.a[1] == 0);
	return r->m.a[1] != 0 ? 0 : -ENOMEM;
}

/* Make a queue as d says, with its handles in the answer. */
static int queue_make(struct request *r, struct hal_partition *part,
		      const struct hal_queue_desc *d)
{
	struct tenant *t = r->client->tenant;
	struct hal_queue *q;
	int err;

	pthread_mutex_lock(&t->lock);
	err = tenant_check_queue(r->client, d);
	if (err == 0)
		err = hal_queue_create(part, d, &q);
	if (err == 0) {
		err = queue_out(r, q, d != NULL && d->completions != NULL);
		if (err != 0)
			(void)hal_queue_destroy(q);
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

int do_queue(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *part = handle_hold(t, r->m.a[0], KIND_PARTITION), *ring = NULL;
	union {
		struct hal_queue_desc d;
		char room[STRUCT_MAX];
	} own;
	uint64_t handle = 0;
	void *d = NULL;
	int err;

	if (part == NULL)
		return -EINVAL;
	err = struct_in(r, 0, r->m.bytes, &own, sizeof(own), &d);
	if (err == 0 && d != NULL) {
		memcpy(&handle, &own.d.completions, sizeof(handle));
		own.d.completions = NULL;
	}
	if (handle != 0) {
		ring = handle_hold(t, handle, KIND_COMPLETIONS);
		if (ring != NULL)
			own.d.completions = ring->object;
		else
			err = -EINVAL;
	}
	if (err == 0)
		err = queue_make(r, part->object, d);
	handle_release(t, ring);
	handle_release(t, part);
	return err;
}

int do_queue_suspend(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *q = handle_hold(t, r->m.a[0], KIND_QUEUE);
	uint64_t parent = r->m.a[0];
	struct hal_point quiet = {0};
	int err = q == NULL ? -EINVAL
			    : hal_queue_suspend(q->object, (uint32_t)r->m.a[1], &quiet);

	if (err == 0)
		err = point_out(r, &quiet, parent);
	handle_release(t, q);
	return err;
}

int do_queue_resume(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *q = handle_hold(t, r->m.a[0], KIND_QUEUE);
	int err = q == NULL ? -EINVAL : hal_queue_resume(q->object);

	handle_release(t, q);
	return err;
}

void queue_hold(struct entry *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->ring != NULL)
		inlet_hold(&q->ring->inlet);
}

void queue_let_go(struct request *r, struct entry *q)
{
	const struct hal_queue *queue = q->object;

	r->m.a[2] = atomic_load(&queue->tail);
	r->m.a[3] = counter_get(&queue->submissions);
	if (q->ring != NULL)
		inlet_release(&q->ring->inlet);
	pthread_mutex_unlock(&q->lock);
}

/* ---- submissions ------------------------------------------------------------------- */

/* A submission that a client has sent, with the objects that it names. */
struct work {
	struct hal_submit_desc d;
	struct hal_cmd *cmds;
	struct hal_arg *args;
	struct held_points waits, signals;
	struct entry **held; /* buffers and kernels */
	uint32_t held_count;
};

static void work_free(struct request *r, struct work *w)
{
	for (uint32_t i = 0; i < w->held_count; i++)
		handle_release(&r->client->handles, w->held[i]);
	points_release(r, &w->waits);
	points_release(r, &w->signals);
	free((void *)w->held);
	free(w->args);
	free(w->cmds);
}

/* Replace the handle in *at by the object that it names.  Return 0 or -EINVAL. */
static int from_handle(struct request *r, struct work *w, void *at, enum far_kind kind)
{
	struct entry *e = NULL;
	uint64_t handle;

	memcpy(&handle, at, sizeof(handle));
	if (handle != 0) {
		e = handle_hold(&r->client->handles, handle, kind);
		if (e == NULL)
			return -EINVAL;
		w->held[w->held_count++] = e;
	}
	memcpy(at, e != NULL ? &e->object : &(void *){NULL}, sizeof(void *));
	return 0;
}

/* Have the client call the function of cmd, a HAL_OP_HOST. */
static int call_back(struct request *r, struct hal_cmd *cmd)
{
	struct callback *cb;
	uint64_t fn, user;

	if (cmd->host.fn == NULL)
		return 0; /* hal_submit refuses it */
	memcpy(&fn, &cmd->host.fn, sizeof(fn));
	memcpy(&user, &cmd->host.user, sizeof(user));
	cb = callback_new(r->client, fn, user);
	if (cb == NULL)
		return -ENOMEM;
	cmd->host.fn = callback_run;
	cmd->host.user = cb;
	return 0;
}

/* Replace the handles in cmd, whose arguments begin at *args. */
static int command_in(struct request *r, struct work *w, struct hal_cmd *cmd,
		      struct hal_arg **args)
{
	int err = 0;

	switch (cmd->op) {
	case HAL_OP_COPY:
		err = from_handle(r, w, &cmd->copy.dst, KIND_BUFFER);
		return err != 0 ? err : from_handle(r, w, &cmd->copy.src, KIND_BUFFER);
	case HAL_OP_FILL:
		return from_handle(r, w, &cmd->fill.dst, KIND_BUFFER);
	case HAL_OP_TIMESTAMP:
		err = tick_refuse(r, "hal_cmd_timestamp");
		return err != 0 ? err
				: from_handle(r, w, &cmd->timestamp.dst, KIND_BUFFER);
	case HAL_OP_HOST:
		return call_back(r, cmd);
	case HAL_OP_LAUNCH:
		cmd->launch.args = *args;
		for (uint32_t i = 0; err == 0 && i < cmd->launch.arg_count; i++)
			err = from_handle(r, w, &(*args)++->buffer, KIND_BUFFER);
		return err != 0 ? err
				: from_handle(r, w, &cmd->launch.kernel, KIND_KERNEL);
	default:
		return 0; /* it names no object, or hal_submit refuses it */
	}
}

/* Free the callbacks of a submission that was refused. */
static void callbacks_free(const struct work *w)
{
	for (uint32_t i = 0; w->cmds != NULL && i < w->d.cmd_count; i++)
		if (w->cmds[i].op == HAL_OP_HOST && w->cmds[i].host.fn == callback_run)
			callback_free(w->cmds[i].host.user);
}

/* Check the sizes in the head of a submission, and copy it to w. */
static int head_in(struct request *r, struct work *w, struct far_work *head)
{
	uint64_t points, bytes, launched = 0;
	const char *cmds = r->data + sizeof(*head);

	if (r->m.bytes < sizeof(*head))
		return broken(r, "a submission is cut off");
	memcpy(head, r->data, sizeof(*head));
	points = (uint64_t)head->wait_count + head->signal_count;
	bytes = sizeof(*head) + head->cmd_count * sizeof(struct hal_cmd) +
		head->arg_count * sizeof(struct hal_arg) +
		points * sizeof(struct hal_point);
	if (points + head->cmd_count > HAL_COMMANDS_MAX ||
	    head->arg_count > HAL_COMMANDS_MAX * HAL_ARGS_MAX || bytes != r->m.bytes)
		return broken(r, "the sizes of a submission are wrong");
	for (uint32_t i = 0; i < head->cmd_count; i++) {
		struct hal_cmd c;

		memcpy(&c, cmds + i * sizeof(c), sizeof(c));
		launched += c.op == HAL_OP_LAUNCH ? c.launch.arg_count : 0;
	}
	if (launched != head->arg_count)
		return broken(r, "the number of arguments is wrong");
	w->d = (struct hal_submit_desc){
		.size = sizeof(w->d),
		.flags = head->flags,
		.cmd_count = head->cmd_count,
		.wait_count = head->wait_count,
		.signal_count = head->signal_count,
		.not_before_ns = head->not_before_ns,
		.deadline_ns = head->deadline_ns,
		.priority = head->priority,
		.reserved = head->reserved,
		.tag = head->tag,
	};
	return 0;
}

/* Copy the arrays of a submission to w. */
static int arrays_in(struct request *r, struct work *w, const struct far_work *head)
{
	const char *at = r->data + sizeof(*head);
	size_t commands = head->cmd_count, args = head->arg_count;
	int err;

	w->cmds = calloc(commands + 1, sizeof(*w->cmds));
	w->args = calloc(args + 1, sizeof(*w->args));
	w->held = calloc(2 * commands + args + 1, sizeof(void *));
	if (w->cmds == NULL || w->args == NULL || w->held == NULL)
		return fail(ENOMEM, "hald has no memory for a submission");
	memcpy(w->cmds, at, commands * sizeof(*w->cmds));
	at += commands * sizeof(*w->cmds);
	memcpy(w->args, at, args * sizeof(*w->args));
	at += args * sizeof(*w->args);
	err = points_hold(r, at, head->wait_count, &w->waits);
	if (err == 0)
		err = points_hold(r, at + head->wait_count * sizeof(struct hal_point),
				  head->signal_count, &w->signals);
	w->d.cmds = commands != 0 ? w->cmds : NULL;
	w->d.waits = head->wait_count != 0 ? w->waits.points : NULL;
	w->d.signals = head->signal_count != 0 ? w->signals.points : NULL;
	return err;
}

/* Read the submission in r into w, which the caller frees in any case. */
static int work_in(struct request *r, struct work *w)
{
	struct far_work head = {.size = 0};
	struct hal_arg *args;
	int err = head_in(r, w, &head);

	if (err == 0)
		err = arrays_in(r, w, &head);
	if (err != 0) {
		w->d.cmd_count = 0; /* no callback has been made */
		return err;
	}
	args = w->args;
	for (uint32_t i = 0; err == 0 && i < w->d.cmd_count; i++)
		err = command_in(r, w, &w->cmds[i], &args);
	return err;
}

int do_submit(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *q = handle_hold(t, r->m.a[0], KIND_QUEUE);
	uint64_t parent = r->m.a[0];
	struct hal_point done = {0};
	struct work w = {.held_count = 0};
	int err;

	if (q == NULL)
		return -EINVAL;
	err = work_in(r, &w);
	if (err == 0)
		err = tenant_check_work(r->client, &w.d);
	if (err == 0) {
		queue_hold(q);
		err = hal_submit(q->object, &w.d, &done);
		queue_let_go(r, q);
	}
	if (err == 0)
		err = point_out(r, &done, parent);
	else
		callbacks_free(&w);
	work_free(r, &w);
	handle_release(t, q);
	return err;
}

/* Return whether w calls a function of the client. */
static bool calls_back(const struct work *w)
{
	for (uint32_t i = 0; i < w->d.cmd_count; i++)
		if (w->cmds[i].op == HAL_OP_HOST)
			return true;
	return false;
}

int do_sequence(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *part = handle_hold(t, r->m.a[0], KIND_PARTITION);
	struct hal_sequence *seq;
	struct work w = {.held_count = 0};
	int err;

	if (part == NULL)
		return -EINVAL;
	err = work_in(r, &w);
	if (err == 0 && calls_back(&w))
		err = fail(ENOTSUP, "hald does not call host functions of sequences");
	if (err == 0)
		err = hal_sequence_create(part->object, &w.d, &seq);
	if (err == 0)
		err = made(r, KIND_SEQUENCE, seq);
	else
		callbacks_free(&w);
	work_free(r, &w);
	handle_release(t, part);
	return err;
}

int do_sequence_args(struct request *r)
{
	uint64_t count = r->m.bytes / sizeof(struct hal_arg);
	struct hal_arg args[HAL_ARGS_MAX];
	struct entry *held[HAL_ARGS_MAX], *seq;
	struct work w = {.held = held};
	int err = 0;

	if (count > HAL_ARGS_MAX || count * sizeof(args[0]) != r->m.bytes)
		return broken(r, "the number of arguments is wrong");
	seq = handle_hold(&r->client->handles, r->m.a[0], KIND_SEQUENCE);
	if (seq == NULL)
		return -EINVAL;
	memcpy(args, r->data, r->m.bytes);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		err = from_handle(r, &w, &args[i].buffer, KIND_BUFFER);
	if (err == 0) {
		pthread_mutex_lock(&seq->lock);
		err = hal_sequence_set_args(seq->object, (uint32_t)r->m.a[1],
					    count != 0 ? args : NULL, (uint32_t)count);
		pthread_mutex_unlock(&seq->lock);
	}
	for (uint32_t i = 0; i < w.held_count; i++)
		handle_release(&r->client->handles, held[i]);
	handle_release(&r->client->handles, seq);
	return err;
}

int do_sequence_submit(struct request *r)
{
	struct handles *t = &r->client->handles;
	struct entry *q = handle_hold(t, r->m.a[0], KIND_QUEUE);
	struct entry *seq = q != NULL ? handle_hold(t, r->m.a[1], KIND_SEQUENCE) : NULL;
	uint64_t parent = r->m.a[0];
	struct hal_point done = {0};
	struct work w = {.held_count = 0};
	int err = seq == NULL ? -EINVAL : 0;

	if (err == 0 && r->m.bytes > 0)
		err = work_in(r, &w);
	if (err == 0)
		err = tenant_check_work(r->client, &w.d);
	if (err == 0) {
		queue_hold(q);
		pthread_mutex_lock(&seq->lock);
		err = hal_sequence_submit(q->object, seq->object,
					  r->m.bytes > 0 ? &w.d : NULL, &done);
		pthread_mutex_unlock(&seq->lock);
		queue_let_go(r, q);
	}
	if (err == 0)
		err = point_out(r, &done, parent);
	callbacks_free(&w);
	work_free(r, &w);
	handle_release(t, seq);
	handle_release(t, q);
	return err;
}
