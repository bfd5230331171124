/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - programs, queues, submissions and sequences of far devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "far/internal.h"
#include "util/compiler.h"
#include "util/error.h"

/* ---- programs ---------------------------------------------------------------------- */

static void program_free(struct far_program *prog)
{
	struct far_device *dev = prog->far.dev;
	struct far_program **at = &dev->programs;

	pthread_mutex_lock(&dev->lock);
	while (*at != NULL && *at != prog)
		at = &(*at)->next;
	if (*at != NULL)
		*at = prog->next;
	pthread_mutex_unlock(&dev->lock);
	for (uint32_t i = 0; prog->kernels != NULL && i < prog->kernel_count; i++)
		if (prog->kernels[i] != NULL) {
			prog->kernels[i]->user = NULL;
			far_object_free(OBJECT_KERNEL, prog->kernels[i]);
		}
	free((void *)prog->kernels);
	far_object_free(OBJECT_PROGRAM, prog);
}

/* Make the objects of the kernels that hald lists. */
static int kernels_made(struct far_program *prog, const struct far_kernel_entry *list)
{
	prog->kernels = calloc((size_t)prog->kernel_count + 1, sizeof(void *));
	if (prog->kernels == NULL)
		return fail(ENOMEM, "no memory for %u kernels", prog->kernel_count);
	for (uint32_t i = 0; i < prog->kernel_count; i++) {
		struct far_kernel *k = far_object(prog->far.dev, OBJECT_KERNEL,
						  sizeof(*k), list[i].handle);

		if (k == NULL)
			return -ENOMEM;
		k->user = prog->far.dev;
		k->prog = prog;
		k->info = list[i].info;
		far_ring_kernel(k);
		prog->kernels[i] = k;
	}
	return 0;
}

int far_program_load(struct hal_device *device, const void *image, size_t size,
		     struct hal_program **out)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {
		.op = FAR_PROGRAM, .out = image, .out_bytes = size, .in_any = true};
	struct far_program *prog;
	int err;

	if (out == NULL || image == NULL)
		return fail(EINVAL, "hal_program_load: %s is NULL",
			    out == NULL ? "prog" : "image");
	err = far_ask(dev, &c);
	if (err != 0)
		return err;
	prog = far_object(dev, OBJECT_PROGRAM, sizeof(*prog), c.a[0]);
	if (prog != NULL) {
		prog->kernel_count =
			(uint32_t)(c.in_bytes / sizeof(struct far_kernel_entry));
		err = kernels_made(prog, c.in);
	} else {
		err = -ENOMEM;
	}
	free(c.in);
	if (err == 0) {
		pthread_mutex_lock(&dev->lock);
		prog->next = dev->programs;
		dev->programs = prog;
		pthread_mutex_unlock(&dev->lock);
		*out = (struct hal_program *)prog;
		return 0;
	}
	c = (struct far_call){.op = FAR_PROGRAM_UNLOAD, .a = {c.a[0]}};
	(void)far_ask(dev, &c);
	if (prog != NULL)
		program_free(prog);
	return err;
}

int far_program_set_name(struct hal_program *program, const char *name)
{
	const struct far *prog = (const struct far *)program;
	struct far_call c = {.op = FAR_PROGRAM_NAME, .a = {prog->handle}, .out = name};

	if (name == NULL)
		return fail(EINVAL, "hal_program_set_name: name is NULL");
	c.out_bytes = strlen(name) + 1;
	return far_ask(prog->dev, &c);
}

int far_program_get_info(const struct hal_program *prog, struct hal_program_info *info)
{
	return far_get(FAR_PROGRAM_INFO, (const struct far *)prog, info);
}

int far_program_unload(struct hal_program *program)
{
	struct far_program *prog = (struct far_program *)program;
	int err = far_destroy(FAR_PROGRAM_UNLOAD, &prog->far);

	if (err == 0)
		program_free(prog);
	return err;
}

int far_kernel_get(struct hal_program *program, uint32_t index, struct hal_kernel **out)
{
	const struct far_program *prog = (const struct far_program *)program;

	if (out == NULL)
		return fail(EINVAL, "hal_kernel_get: kernel is NULL");
	if (index >= prog->kernel_count)
		return fail(ERANGE,
			    "hal_kernel_get: there is no kernel %u; the program "
			    "has %u",
			    index, prog->kernel_count);
	*out = (struct hal_kernel *)prog->kernels[index];
	return 0;
}

int far_kernel_find(struct hal_program *program, const char *name,
		    struct hal_kernel **out)
{
	const struct far_program *prog = (const struct far_program *)program;

	if (out == NULL || name == NULL)
		return fail(EINVAL, "hal_kernel_find: %s is NULL",
			    out == NULL ? "kernel" : "name");
	for (uint32_t i = 0; i < prog->kernel_count; i++)
		if (strncmp(prog->kernels[i]->info.name, name,
			    sizeof(prog->kernels[i]->info.name)) == 0) {
			*out = (struct hal_kernel *)prog->kernels[i];
			return 0;
		}
	return fail(ENOENT, "the program has no kernel \"%s\"", name);
}

int far_kernel_get_info(const struct hal_kernel *kernel, struct hal_kernel_info *info)
{
	const struct far_kernel *k = (const struct far_kernel *)kernel;

	return export_struct(info, &k->info, sizeof(k->info),
			     offsetof(struct hal_kernel_info, arg_bytes),
			     "hal_kernel_info");
}

/* ---- queues ------------------------------------------------------------------------ */

/* Write d, with a handle for its ring of completions, to `to`.  Return the bytes. */
static size_t put_queue_desc(struct far_device *dev, char *to, size_t room,
			     const struct hal_queue_desc *d, int *err)
{
	size_t n = far_copy_struct(to, room, d, err);
	uint64_t ring;

	if (*err != 0 || n < offsetof(struct hal_queue_desc, completions) + sizeof(ring))
		return n;
	ring = far_handle(dev, d->completions, OBJECT_COMPLETIONS,
			  "hal_queue_desc.completions", err);
	memcpy(to + offsetof(struct hal_queue_desc, completions), &ring, sizeof(ring));
	return n;
}

/* hal_submit looks at .open alone. */
static void forked(void *object)
{
	atomic_store(&((struct far_queue *)object)->far.open, 0);
}

int far_queue_create(struct hal_partition *part, const struct hal_queue_desc *desc,
		     struct hal_queue **out)
{
	const struct far *p = (const struct far *)part;
	struct far_device *dev = p->dev;
	char payload[512];
	struct far_call c = {.op = FAR_QUEUE, .a = {p->handle}, .out = payload};
	struct far_queue *q;
	int err = 0;

	if (out == NULL)
		return fail(EINVAL, "hal_queue_create: queue is NULL");
	object_on_fork(OBJECT_FAR(OBJECT_QUEUE), forked);
	q = far_object(dev, OBJECT_QUEUE, sizeof(*q), 0);
	if (q == NULL)
		return -ENOMEM;
	q->told = &far_not_told;
	c.a[1] = (uint64_t)(uintptr_t)q;
	c.out_bytes = put_queue_desc(dev, payload, sizeof(payload), desc, &err);
	if (err == 0)
		err = far_ask(dev, &c);
	if (err == 0) {
		q->far.handle = c.a[0];
		q->part = p;
		atomic_store(&q->far.open, QUEUE_OPEN_FAR);
		q->timeline = far_timeline_of(dev, c.a[1], c.a[0]);
		err = q->timeline == NULL ? -ENOMEM : 0;
	}
	if (err == 0) {
		if (c.out_bytes >= offsetof(struct hal_queue_desc, name) + LAZY_NAME)
			memcpy(q->name, desc->name, sizeof(q->name));
		far_ring_map(q, &c);
	}
	if (c.in_fd >= 0)
		(void)close(c.in_fd);
	if (err != 0) {
		atomic_store(&q->far.open, 0);
		far_object_free(OBJECT_QUEUE, q);
		return err;
	}
	*out = (struct hal_queue *)q;
	return 0;
}

int far_queue_destroy(struct hal_queue *queue)
{
	struct far_queue *q = (struct far_queue *)queue;
	int err = far_destroy(FAR_QUEUE_DESTROY, &q->far);

	if (err != 0)
		return err;
	atomic_store(&q->far.open, 0);
	far_ring_unmap(q);
	far_timelines_free(q->far.dev, q->far.handle);
	far_object_free(OBJECT_QUEUE, q);
	return 0;
}

int far_queue_suspend(struct hal_queue *queue, uint32_t mode, struct hal_point *quiet)
{
	const struct far *q = (const struct far *)queue;
	struct far_call c = {.op = FAR_QUEUE_SUSPEND, .a = {q->handle, mode}};
	int err = far_ask(q->dev, &c);

	return err != 0 ? err : far_point(q->dev, &c, q->handle, quiet);
}

int far_queue_resume(struct hal_queue *queue)
{
	const struct far *q = (const struct far *)queue;
	struct far_call c = {.op = FAR_QUEUE_RESUME, .a = {q->handle}};

	return far_ask(q->dev, &c);
}

int far_queue_get_stats(struct hal_queue *q, struct hal_stats *stats)
{
	return far_get(FAR_QUEUE_STATS, (const struct far *)q, stats);
}

int far_queue_get_fault(const struct hal_queue *q, struct hal_fault_info *fault)
{
	return far_get(FAR_QUEUE_FAULT, (const struct far *)q, fault);
}

struct hal_timeline *far_queue_get_timeline(struct hal_queue *q)
{
	return (struct hal_timeline *)((const struct far_queue *)q)->timeline;
}

/* ---- submissions ------------------------------------------------------------------- */

/* The bytes of a payload that grows. */
struct payload {
	char *data;
	size_t bytes, room;
	int err;
};

static void add(struct payload *p, const void *data, size_t bytes)
{
	if (p->err != 0)
		return;
	if (bytes > p->room - p->bytes) {
		size_t room = (p->bytes + bytes) * 2;
		char *more = realloc(p->data, room);

		if (more == NULL) {
			p->err = fail(ENOMEM, "no memory for a submission of %zu bytes",
				      p->bytes + bytes);
			return;
		}
		p->data = more;
		p->room = room;
	}
	if (bytes > 0)
		memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
}

/* Replace the pointer *at, to an object of kind, by its handle. */
static void to_handle(struct far_device *dev, void *at, enum object_kind kind,
		      const char *what, struct payload *p)
{
	void *o;
	uint64_t handle;

	_Static_assert(sizeof(o) == sizeof(handle), "a handle takes a pointer's place");
	memcpy(&o, at, sizeof(o));
	handle = far_handle(dev, o, kind, what, &p->err);
	memcpy(at, &handle, sizeof(handle));
}

/* Return the number of d's commands, and command i. */
static const struct hal_cmd *command_of(const struct hal_submit_desc *d, uint32_t i)
{
	uint32_t stride = d->cmd_stride != 0 ? d->cmd_stride : sizeof(struct hal_cmd);

	return (const void *)((const char *)d->cmds + (size_t)i * stride);
}

static void add_command(struct far_device *dev, struct payload *p,
			const struct hal_cmd *cmd)
{
	struct hal_cmd ours = *cmd;

	if (cmd->op == HAL_OP_COPY) {
		to_handle(dev, &ours.copy.dst, OBJECT_BUFFER, "copy, destination", p);
		to_handle(dev, &ours.copy.src, OBJECT_BUFFER, "copy, source", p);
	} else if (cmd->op == HAL_OP_FILL) {
		to_handle(dev, &ours.fill.dst, OBJECT_BUFFER, "fill", p);
	} else if (cmd->op == HAL_OP_TIMESTAMP) {
		to_handle(dev, &ours.timestamp.dst, OBJECT_BUFFER, "timestamp", p);
	} else if (cmd->op == HAL_OP_LAUNCH) {
		to_handle(dev, &ours.launch.kernel, OBJECT_KERNEL, "launch", p);
		if (cmd->launch.args == NULL && cmd->launch.arg_count > 0)
			p->err = fail(EINVAL, "launch: args is NULL, but arg_count is %u",
				      cmd->launch.arg_count);
		else if (cmd->launch.arg_count > HAL_ARGS_MAX)
			p->err = fail(EINVAL,
				      "launch: %u arguments, at most %d are "
				      "allowed",
				      cmd->launch.arg_count, HAL_ARGS_MAX);
	}
	add(p, &ours, sizeof(ours));
}

static void add_args(struct far_device *dev, struct payload *p,
		     const struct hal_arg *args, uint32_t count)
{
	for (uint32_t i = 0; p->err == 0 && i < count; i++) {
		struct hal_arg ours = args[i];

		to_handle(dev, &ours.buffer, OBJECT_BUFFER, "launch, argument", p);
		add(p, &ours, sizeof(ours));
	}
}

static void add_points(struct far_device *dev, struct payload *p,
		       const struct hal_point *points, uint32_t count, const char *what)
{
	if (points == NULL) {
		if (count > 0 && p->err == 0)
			p->err = fail(EINVAL,
				      "hal_submit_desc.%s is NULL, but its count is %u",
				      what, count);
		return;
	}
	for (uint32_t i = 0; p->err == 0 && i < count; i++) {
		struct hal_point ours = points[i];

		if (ours.timeline == NULL)
			p->err = fail(EINVAL, "%s[%u]: the timeline is NULL", what, i);
		else
			to_handle(dev, &ours.timeline, OBJECT_TIMELINE, what, p);
		add(p, &ours, sizeof(ours));
	}
}

/* Refuse what cannot be put into a message; hald checks the rest. */
static int work_check(const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;

	if (all > HAL_COMMANDS_MAX)
		return fail(EINVAL,
			    "hal_submit_desc: %llu commands and points, at most %d are "
			    "allowed",
			    U64(all), HAL_COMMANDS_MAX);
	if (d->cmds == NULL && d->cmd_count > 0)
		return fail(EINVAL, "hal_submit_desc.cmds is NULL, but cmd_count is %u",
			    d->cmd_count);
	if (d->cmd_stride != 0 &&
	    (d->cmd_stride < sizeof(struct hal_cmd) || d->cmd_stride % 8 != 0))
		return fail(
			EINVAL,
			"hal_submit_desc.cmd_stride is %u: it must be 0, or a multiple "
			"of 8 and at least %zu",
			d->cmd_stride, sizeof(struct hal_cmd));
	return 0;
}

/* Write the submission of desc to p.  Start the thread for host functions if it has
 * one. */
static int work_put(struct far_device *dev, struct payload *p,
		    const struct hal_submit_desc *desc)
{
	struct hal_submit_desc d;
	struct far_work w;
	bool calls = false;
	int err = import_struct(&d, sizeof(d),
				offsetof(struct hal_submit_desc, not_before_ns), desc,
				"hal_submit_desc");

	if (err == 0)
		err = work_check(&d);
	if (err != 0)
		return err;
	w = (struct far_work){
		.size = d.size,
		.flags = d.flags,
		.cmd_count = d.cmd_count,
		.wait_count = d.wait_count,
		.signal_count = d.signal_count,
		.not_before_ns = d.not_before_ns,
		.deadline_ns = d.deadline_ns,
		.priority = d.priority,
		.reserved = d.reserved,
		.tag = d.tag,
	};
	for (uint32_t i = 0; i < d.cmd_count; i++) {
		const struct hal_cmd *cmd = command_of(&d, i);

		calls |= cmd->op == HAL_OP_HOST;
		w.arg_count += cmd->op == HAL_OP_LAUNCH ? cmd->launch.arg_count : 0;
	}
	add(p, &w, sizeof(w));
	for (uint32_t i = 0; p->err == 0 && i < d.cmd_count; i++)
		add_command(dev, p, command_of(&d, i));
	for (uint32_t i = 0; p->err == 0 && i < d.cmd_count; i++)
		if (command_of(&d, i)->op == HAL_OP_LAUNCH)
			add_args(dev, p, command_of(&d, i)->launch.args,
				 command_of(&d, i)->launch.arg_count);
	add_points(dev, p, d.waits, d.wait_count, "waits");
	add_points(dev, p, d.signals, d.signal_count, "signals");
	if (p->err == 0 && calls)
		p->err = far_callbacks_start(dev);
	return p->err;
}

/* Ask for c with the submission of desc as its payload. */
static int ask_work(struct far_device *dev, struct far_call *c,
		    const struct hal_submit_desc *desc)
{
	struct payload p = {0};
	int err = work_put(dev, &p, desc);

	if (err == 0) {
		c->out = p.data;
		c->out_bytes = p.bytes;
		err = far_ask(dev, c);
	}
	free(p.data);
	return err;
}

int far_submit_request(struct far_queue *q, const struct hal_submit_desc *desc,
		       struct hal_point *done)
{
	struct far_call c = {.op = FAR_SUBMIT, .a = {q->far.handle}};
	int err = ask_work(q->far.dev, &c, desc);

	if (err != 0)
		return err;
	far_ring_moved(q, &c);
	far_ring_bound(q, desc);
	return far_point(q->far.dev, &c, q->far.handle, done);
}

int far_sequence_create(struct hal_partition *part, const struct hal_submit_desc *desc,
			struct hal_sequence **out)
{
	const struct far *p = (const struct far *)part;
	struct far_call c = {.op = FAR_SEQUENCE, .a = {p->handle}};
	struct far *seq;
	int err;

	if (out == NULL)
		return fail(EINVAL, "hal_sequence_create: seq is NULL");
	err = ask_work(p->dev, &c, desc);
	if (err != 0)
		return err;
	seq = far_object(p->dev, OBJECT_SEQUENCE, sizeof(*seq), c.a[0]);
	if (seq == NULL)
		return -ENOMEM;
	*out = (struct hal_sequence *)seq;
	return 0;
}

int far_sequence_destroy(struct hal_sequence *seq)
{
	int err = far_destroy(FAR_SEQUENCE_DESTROY, (const struct far *)seq);

	if (err == 0)
		far_object_free(OBJECT_SEQUENCE, seq);
	return err;
}

int far_sequence_set_args(struct hal_sequence *sequence, uint32_t cmd,
			  const struct hal_arg *args, uint32_t arg_count)
{
	const struct far *seq = (const struct far *)sequence;
	struct far_call c = {.op = FAR_SEQUENCE_ARGS, .a = {seq->handle, cmd}};
	struct payload p = {0};
	int err;

	if (args == NULL && arg_count > 0)
		return fail(EINVAL, "hal_sequence_set_args: args is NULL");
	if (arg_count > HAL_ARGS_MAX)
		return fail(EINVAL,
			    "hal_sequence_set_args: %u arguments, at most %d are "
			    "allowed",
			    arg_count, HAL_ARGS_MAX);
	add_args(seq->dev, &p, args, arg_count);
	c.out = p.data;
	c.out_bytes = p.bytes;
	err = p.err != 0 ? p.err : far_ask(seq->dev, &c);
	free(p.data);
	return err;
}

int far_sequence_submit(struct hal_queue *queue, struct hal_sequence *seq,
			const struct hal_submit_desc *desc, struct hal_point *done)
{
	const struct far *q = (const struct far *)queue;
	struct far_call c = {.op = FAR_SEQUENCE_SUBMIT, .a = {q->handle}};
	int err = 0;

	if (seq == NULL)
		return object_bad(seq, OBJECT_SEQUENCE);
	c.a[1] = far_handle(q->dev, seq, OBJECT_SEQUENCE, "hal_sequence_submit", &err);
	if (err == 0)
		err = desc != NULL ? ask_work(q->dev, &c, desc) : far_ask(q->dev, &c);
	if (err != 0)
		return err;
	far_ring_moved((struct far_queue *)queue, &c);
	return far_point(q->dev, &c, q->handle, done);
}
