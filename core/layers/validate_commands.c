/* SPDX-License-Identifier: Apache-2.0 */
/* validate_commands.c - layer validate: check commands, suspends and moves, and match
 * each event with one of them. */
#include "layers/validate.h"

#include <errno.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

/* ---- commands --------------------------------------------------------------------- */

/* Check that mem is a buffer of the queue's partition, has the given range and is host
 * memory or not. */
static int check_side(struct validate *v, const struct layer_call *c,
		      const struct tracked *q, const void *mem, uint64_t offset,
		      uint64_t bytes, bool host)
{
	const struct tracked *m = tracked_require(v, c, MEM, mem);

	if (m == NULL)
		return -EPROTO;
	if (m->parent != q->parent)
		return CORE(v,
			    "submit: buffer %u is of partition %u, but queue %u is of "
			    "partition %u",
			    m->h.id, m->parent->h.id, q->h.id, q->parent->h.id);
	if (m->host != host)
		return CORE(v, "submit: buffer %u is %s memory", m->h.id,
			    m->host ? "host" : "not host");
	if (m->out)
		return CORE(v, "submit: buffer %u is evicted (mem_out)", m->h.id);
	if (offset > m->bytes || bytes > m->bytes - offset)
		return CORE(v,
			    "submit: %llu bytes at offset %llu exceed buffer %u of %llu "
			    "bytes",
			    U64(bytes), U64(offset), m->h.id, U64(m->bytes));
	return 0;
}

static int check_range(struct validate *v, const struct layer_call *c,
		       const struct tracked *q, const void *mem, uint64_t offset,
		       uint64_t bytes)
{
	return check_side(v, c, q, mem, offset, bytes, false);
}

static int check_copy(struct validate *v, const struct layer_call *c,
		      const struct tracked *q)
{
	const struct hal_bk_cmd *cmd = c->cmd;
	bool from = (cmd->flags & HAL_BK_CMD_FROM_HOST) != 0;
	bool to = (cmd->flags & HAL_BK_CMD_TO_HOST) != 0;
	int err;

	if (from && to)
		return CORE(v, "submit: a copy from host memory to host memory");
	err = check_side(v, c, q, cmd->copy.dst, cmd->copy.dst_offset, cmd->copy.bytes,
			 to);
	return err != 0 ? err
			: check_side(v, c, q, cmd->copy.src, cmd->copy.src_offset,
				     cmd->copy.bytes, from);
}

/* Check the shape of a launch of k. */
static int check_shape(struct validate *v, const struct tracked *k,
		       const struct hal_bk_cmd *cmd)
{
	const struct hal_bk_shape *s = hal_bk_shape(cmd);
	uint64_t items;

	if (s == NULL)
		return 0;
	items = (uint64_t)s->group_size[0] * s->group_size[1];
	if ((s->group_size[0] | s->group_size[1] | s->group_size[2]) != 0 &&
	    (items == 0 || s->group_size[2] == 0 ||
	     items > k->group_size_max / s->group_size[2]))
		return CORE(v, "submit: groups of %u x %u x %u; kernel %u allows %u",
			    s->group_size[0], s->group_size[1], s->group_size[2], k->h.id,
			    k->group_size_max);
	if (s->shared_bytes > k->shared_max)
		return CORE(v, "submit: %u bytes of shared memory; kernel %u allows %u",
			    s->shared_bytes, k->h.id, k->shared_max);
	return 0;
}

static int check_launch(struct validate *v, const struct layer_call *c,
			const struct tracked *q)
{
	const struct hal_bk_cmd *cmd = c->cmd;
	const struct tracked *k = tracked_require(v, c, KERNEL, cmd->launch.kernel);
	int err = 0;

	if (k == NULL)
		return -EPROTO;
	if (tracked_binding(k->parent, q->parent) == NULL)
		return CORE(v,
			    "submit: kernel %u cannot run: program %u is not bound to "
			    "partition %u",
			    k->h.id, k->parent->h.id, q->parent->h.id);
	if (cmd->launch.arg_count != k->arg_count ||
	    (cmd->launch.arg_count != 0 && cmd->launch.args == NULL))
		return CORE(v, "submit: %u arguments were passed, but kernel %u takes %u",
			    cmd->launch.arg_count, k->h.id, k->arg_count);
	for (int i = 0; i < 3; i++)
		if (cmd->launch.groups[i] == 0)
			return CORE(v, "submit: groups[%d] is 0", i);
	err = check_shape(v, k, cmd);
	for (uint32_t i = 0; err == 0 && i < cmd->launch.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];

		if (a->mem != NULL)
			err = check_range(v, c, q, a->mem, a->value, a->bytes);
		if (err == 0 && k->arg_bytes[i] != 0 &&
		    (a->mem == NULL || a->bytes < k->arg_bytes[i]))
			err = CORE(v,
				   "submit: argument %u of kernel %u has %llu bytes, "
				   "at least %llu are needed",
				   i, k->h.id, U64(a->mem != NULL ? a->bytes : 0),
				   U64(k->arg_bytes[i]));
	}
	return err;
}

static int check_command(struct validate *v, const struct layer_call *c,
			 const struct tracked *q)
{
	const struct hal_bk_cmd *cmd = c->cmd;
	const uint32_t known =
		HAL_CMD_REPLAYABLE | HAL_BK_CMD_RECORDED | HAL_BK_CMD_LAST |
		HAL_BK_CMD_BEST_EFFORT |
		(cmd->op == HAL_OP_LAUNCH ? HAL_BK_CMD_SHAPED : 0) |
		(cmd->op == HAL_OP_COPY ? HAL_BK_CMD_FROM_HOST | HAL_BK_CMD_TO_HOST : 0);

	if ((cmd->flags & 0xffff & ~known) != 0 ||
	    (cmd->flags & (HAL_BK_CMD_RECORDED | HAL_BK_CMD_LAST)) == HAL_BK_CMD_LAST)
		return CORE(v, "submit: invalid flags 0x%x", cmd->flags & 0xffff);
	switch (cmd->op) {
	case HAL_OP_NOP:
		return 0;
	case HAL_OP_COPY:
		return check_copy(v, c, q);
	case HAL_OP_FILL:
		if (((cmd->fill.offset | cmd->fill.bytes) & 3) != 0)
			return CORE(v,
				    "submit: a fill of %llu bytes at offset %llu: these "
				    "are not multiples of 4",
				    U64(cmd->fill.bytes), U64(cmd->fill.offset));
		return check_range(v, c, q, cmd->fill.dst, cmd->fill.offset,
				   cmd->fill.bytes);
	case HAL_OP_LAUNCH:
		return check_launch(v, c, q);
	case HAL_OP_TIMESTAMP:
		if ((cmd->timestamp.offset & 7) != 0)
			return CORE(v,
				    "submit: a timestamp at offset %llu: this is not a "
				    "multiple of 8",
				    U64(cmd->timestamp.offset));
		return check_range(v, c, q, cmd->timestamp.dst, cmd->timestamp.offset, 8);
	default:
		return CORE(v, "submit: operation %u is not one that devices execute",
			    cmd->op);
	}
}

int validate_submit(struct validate *v, const struct layer_call *c)
{
	const struct tracked *q = tracked_require(v, c, QUEUE, c->queue);
	const struct tracked *old;

	if (q == NULL)
		return -EPROTO;
	if (q->stopping || q->stopped)
		return CORE(v, "submit: queue %u is suspended", q->h.id);
	if (q->failed)
		return CORE(v,
			    "submit: a command of queue %u has failed; the queue accepts "
			    "no more",
			    q->h.id);
	old = tracked_find(v, COMMAND, c->cmd->cookie);
	if (old != NULL && old->h.alive)
		return CORE(v,
			    "submit: cookie 0x%llx is in use by command %u on the device",
			    U64(c->cmd->cookie), old->h.id);
	return check_command(v, c, q);
}

static void count_mem_use(struct validate *v, const void *mem, bool on)
{
	struct tracked *m = mem != NULL ? tracked_find(v, MEM, (uintptr_t)mem) : NULL;

	if (m != NULL)
		m->uses += on ? 1u : UINT32_MAX;
}

/* Add 1 to .uses of all objects that a command of queue q uses, or subtract 1 if on is
 * false. */
static void count_use(struct validate *v, struct tracked *q, const struct hal_bk_cmd *cmd,
		      bool on)
{
	const struct tracked *k;
	struct binding *b;

	q->uses += on ? 1u : UINT32_MAX;
	v->owed += on ? 1u : UINT32_MAX;
	switch (cmd->op) {
	case HAL_OP_COPY:
		count_mem_use(v, cmd->copy.dst, on);
		count_mem_use(v, cmd->copy.src, on);
		break;
	case HAL_OP_FILL:
		count_mem_use(v, cmd->fill.dst, on);
		break;
	case HAL_OP_TIMESTAMP:
		count_mem_use(v, cmd->timestamp.dst, on);
		break;
	case HAL_OP_LAUNCH:
		k = tracked_find(v, KERNEL, (uintptr_t)cmd->launch.kernel);
		if (k != NULL)
			k->parent->uses += on ? 1u : UINT32_MAX;
		b = k != NULL ? tracked_binding(k->parent, q->parent) : NULL;
		if (b != NULL)
			b->uses += on ? 1u : UINT32_MAX;
		for (uint32_t i = 0; i < cmd->launch.arg_count; i++)
			count_mem_use(v, cmd->launch.args[i].mem, on);
		break;
	default:
		break;
	}
}

void validated_submit(struct validate *v, struct layer_call *c)
{
	struct tracked **at;
	struct tracked *t;

	if (c->result == -EAGAIN && v->owed == 0) {
		c->result = BACKEND(v, "submit returned -EAGAIN, but the device is idle "
				       "and no event can come");
		return;
	}
	if (c->result != 0)
		return;
	t = tracked_add(v, COMMAND, c->cmd->cookie);
	t->parent = tracked_find(v, QUEUE, (uintptr_t)c->queue);
	t->cmd = c->cmd;
	for (at = &t->parent->oldest; *at != NULL; at = &(*at)->newer)
		;
	*at = t;
	count_use(v, t->parent, c->cmd, true);
}

/* ---- suspending ------------------------------------------------------------------- */

int validate_suspend(struct validate *v, const struct layer_call *c)
{
	const struct tracked *q = tracked_require(v, c, QUEUE, c->queue);

	if (q == NULL)
		return -EPROTO;
	if (c->mode > HAL_SUSPEND_KILL || (v->info.suspend_modes >> c->mode & 1) == 0)
		return CORE(v,
			    "suspend: mode %u is not among the modes of the device, 0x%x",
			    c->mode, v->info.suspend_modes);
	if (q->stopping || q->stopped)
		return CORE(v, "suspend: queue %u is suspended already", q->h.id);
	return 0;
}

int validate_resume(struct validate *v, const struct layer_call *c)
{
	const struct tracked *q = tracked_require(v, c, QUEUE, c->queue);

	if (q == NULL)
		return -EPROTO;
	if (!q->stopped)
		return CORE(v, "resume: queue %u is %s", q->h.id,
			    q->stopping ? "not quiet yet" : "not suspended");
	return 0;
}

/* Expect a QUIET event with this cookie, for `of`: a suspended queue or moved partition.
 */
static void expect_quiet(struct validate *v, uint64_t cookie, struct tracked *of)
{
	tracked_add(v, QUIET, cookie)->parent = of;
	v->owed++;
}

void validated_suspend(struct validate *v, struct layer_call *c)
{
	struct tracked *q = tracked_find(v, QUEUE, (uintptr_t)c->queue);

	if (c->result != 0)
		return;
	expect_quiet(v, c->cookie, q);
	q->stopping = true;
	q->mode = c->mode;
}

/* Count the events of a queue's kept commands as owed again. */
static void release_kept(struct validate *v, struct tracked *q)
{
	v->owed += q->kept;
	q->kept = 0;
}

void validated_resume(struct validate *v, struct layer_call *c)
{
	struct tracked *q = tracked_find(v, QUEUE, (uintptr_t)c->queue);

	if (c->result != 0)
		return;
	q->stopped = false;
	release_kept(v, q);
}

void validated_resize(struct validate *v, struct layer_call *c)
{
	struct tracked *p = tracked_find(v, PART, (uintptr_t)c->part);

	if (c->result != 0)
		return;
	expect_quiet(v, c->cookie, p);
	p->target = *c->desc;
}

/* ---- events ----------------------------------------------------------------------- */

/* Return whether a suspend of q with mode KILL is under way. */
static bool is_killing(const struct tracked *q)
{
	return q->stopping && q->mode == HAL_SUSPEND_KILL;
}

static int check_done_fields(struct validate *v, const struct tracked *t,
			     const struct hal_bk_event *e)
{
	const struct tracked *q = t->parent;

	if (e->status != 0 && e->status != -EIO && e->status != -ECANCELED)
		return BACKEND(v, "command %u of queue %u completed with status %d",
			       t->h.id, q->h.id, e->status);
	if (q->stopped)
		return BACKEND(
			v,
			"command %u of queue %u completed while the queue was suspended",
			t->h.id, q->h.id);
	if (e->status == -ECANCELED && !is_killing(q) && !q->failed)
		return BACKEND(
			v,
			"command %u of queue %u was cancelled without a KILL or a fault",
			t->h.id, q->h.id);
	if (e->status == 0 && q->failed)
		return BACKEND(
			v, "command %u of queue %u succeeded after an earlier one failed",
			t->h.id, q->h.id);
	if (e->end_ns < e->start_ns)
		return BACKEND(v, "command %u of queue %u ran from %llu to %llu ns",
			       t->h.id, q->h.id, U64(e->start_ns), U64(e->end_ns));
	if (memchr(e->fault, '\0', sizeof(e->fault)) == NULL)
		return BACKEND(v,
			       "command %u of queue %u: the fault text is not terminated",
			       t->h.id, q->h.id);
	if (e->status != -EIO && e->fault[0] != '\0')
		return BACKEND(v,
			       "command %u of queue %u completed with status %d and the "
			       "fault text \"%s\"",
			       t->h.id, q->h.id, e->status, e->fault);
	if (q->oldest != t)
		return BACKEND(v, "command %u of queue %u completed before an older one",
			       t->h.id, q->h.id);
	return 0;
}

/* Stop tracking command t: the device no longer has it. */
static void end_command(struct validate *v, struct tracked *t)
{
	struct tracked **at = &t->parent->oldest;

	while (*at != t)
		at = &(*at)->newer;
	*at = t->newer;
	t->newer = NULL;
	t->h.alive = false;
	count_use(v, t->parent, t->cmd, false);
}

/* Stop tracking the commands of a destroyed queue that the device kept. */
void validated_queue_destroy(struct validate *v, struct layer_call *c)
{
	struct tracked *q = tracked_find(v, QUEUE, (uintptr_t)c->queue);

	if (c->result != 0)
		return;
	release_kept(v, q);
	while (q->oldest != NULL)
		end_command(v, q->oldest);
}

static int check_done(struct validate *v, const struct hal_bk_event *e)
{
	struct tracked *t = tracked_find(v, COMMAND, e->cookie);
	int err;

	if (t == NULL)
		return BACKEND(v,
			       "an event for a command that was never submitted: "
			       "cookie 0x%llx",
			       U64(e->cookie));
	if (!t->h.alive)
		return BACKEND(v, "command %u of queue %u %s", t->h.id, t->parent->h.id,
			       t->lost ? "completed after the device was lost"
				       : "completed twice");
	err = check_done_fields(v, t, e);
	end_command(v, t);
	if (e->status == -EIO)
		t->parent->failed = true;
	return err;
}

static int check_quiet(struct validate *v, const struct hal_bk_event *e)
{
	struct tracked *t = tracked_find(v, QUIET, e->cookie);
	struct tracked *of;

	if (t == NULL || !t->h.alive)
		return BACKEND(v, "a QUIET event with cookie 0x%llx, but %s",
			       U64(e->cookie),
			       t != NULL ? "its suspend or move has already ended"
					 : "no suspend or move has this cookie");
	t->h.alive = false;
	v->owed--;
	of = t->parent;
	if (of->h.kind == PART) {
		if (e->status == 0)
			of->desc = of->target;
		of->target.units = 0;
		return e->status > 0
			       ? BACKEND(v, "a move completed with status %d", e->status)
			       : 0;
	}
	of->stopping = false;
	of->stopped = true;
	if (e->end_ns < e->start_ns)
		return BACKEND(
			v, "queue %u is quiet, but its command ran from %llu to %llu ns",
			of->h.id, U64(e->start_ns), U64(e->end_ns));
	if (of->uses == 0)
		return 0;
	/* After FOLD and SAVE the device keeps the progress of the queue's commands. */
	if (of->mode != HAL_SUSPEND_FOLD && of->mode != HAL_SUSPEND_SAVE)
		return BACKEND(v, "queue %u is quiet with %u commands on the device",
			       of->h.id, of->uses);
	of->kept = of->uses;
	v->owed -= of->kept;
	return 0;
}

/* After the loss of the device: forget all pending commands, suspends and moves.  The
 * core only destroys objects from now on. */
static void forget_pending(struct validate *v)
{
	for (uint32_t i = 0; i < v->handles.slot_count; i++) {
		for (struct handle *h = v->handles.slots[i]; h != NULL; h = h->next) {
			struct tracked *t = container_of(h, struct tracked, h);

			if (!h->alive || (h->kind != COMMAND && h->kind != QUIET))
				continue;
			t->lost = true;
			if (h->kind == COMMAND) {
				release_kept(v, t->parent);
				end_command(v, t);
				continue;
			}
			h->alive = false;
			if (t->parent->h.kind == PART)
				t->parent->target.units = 0;
			else
				t->parent->stopping = false;
		}
	}
	v->owed = 0;
}

void validated_poll(struct validate *v, struct layer_call *c)
{
	int err = 0;

	if (c->result == 0 && v->owed == 0 && c->until_ns != UINT64_MAX &&
	    (v->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0)
		v->reach_ns = c->until_ns;

	if (c->result > (int64_t)c->max) {
		c->result = BACKEND(
			v, "poll returned %lld events, but there was space for %u",
			(long long)c->result, c->max);
	} else {
		for (int64_t i = 0; err == 0 && i < c->result; i++) {
			const struct hal_bk_event *e = &c->events[i];

			if (e->kind == HAL_BK_DONE)
				err = check_done(v, e);
			else if (e->kind == HAL_BK_QUIET)
				err = check_quiet(v, e);
			else
				err = BACKEND(v,
					      "poll returned an event of unknown kind %u",
					      e->kind);
		}
		if (err != 0)
			c->result = err;
	}
	if (c->result < 0) {
		v->lost = true;
		forget_pending(v);
	}
}
