/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - layer fault: make every N-th call of an operation fail, to test error paths
 * on a device that works.
 *
 * An option like "submit:5:EIO,mem_alloc:3:ENOSPC" has one rule per operation and errno.
 * Each rule counts the calls of its operation from 1, so that the same calls fail in each
 * run.  A call that this layer makes fail does not reach the backend.  Exceptions are the
 * operations that the core never repeats (op_errors.forwarded): the backend executes
 * them, and the layer returns the error afterwards.
 *
 * The layer counts the events that the device has yet to report, for two reasons.  An
 * idle device must not return -EAGAIN.  After an injected failure of poll, the device
 * must become idle before its objects are destroyed.
 */
#include "layers/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

#define RULES_MAX 32

/* The errnos that an operation may return.  Operations without a row cannot fail. */
struct op_errors {
	enum layer_op op;
	bool forwarded; /* the backend is called before the error is returned */
	int errs[6];
};

static const struct op_errors op_errors[] = {
	{CALL_open, false, {ENODEV, ENOMEM, EIO, EBUSY, EACCES}},
	{CALL_get_info, false, {EIO}},
	{CALL_partition_create, false, {ENOSPC, ENOMEM, EIO, ENOTSUP, EBUSY}},
	{CALL_partition_destroy, false, {EIO, EBUSY}},
	{CALL_queue_create, false, {ENOSPC, ENOMEM, EIO, ENOTSUP}},
	{CALL_queue_destroy, false, {EIO, EBUSY}},
	{CALL_mem_alloc, false, {ENOSPC, ENOMEM, EIO, ENOTSUP}},
	{CALL_mem_free, true, {EIO}},
	{CALL_mem_write, false, {EIO, ENOMEM}},
	{CALL_mem_read, false, {EIO, ENOMEM}},
	{CALL_mem_map, false, {ENOTSUP, ENOMEM, EIO}},
	{CALL_mem_unmap, true, {EIO}},
	{CALL_colors_set, false, {ENOTSUP, EINVAL, EIO}},
	{CALL_program_load, false, {EINVAL, ENOMEM, ENOSPC, EIO}},
	{CALL_program_unload, true, {EIO}},
	{CALL_kernel_get, false, {EIO, ENOMEM}},
	{CALL_program_bind, false, {ENOSPC, ENOMEM, EIO}},
	{CALL_program_unbind, true, {EIO}},
	{CALL_mem_clear, false, {EIO, ENOMEM}},
	{CALL_mem_register, false, {ENOSPC, ENOMEM, EIO, ENOTSUP}},
	{CALL_mem_export, false, {EIO, ENOMEM, ENOTSUP}},
	{CALL_mem_import, false, {EINVAL, ENOSPC, ENOMEM, EIO, ENOTSUP}},
	{CALL_submit, false, {EAGAIN, EIO, ENOMEM, ENOSPC, EINVAL}},
	{CALL_poll, false, {EIO}},
	{CALL_suspend, false, {EIO, ENOTSUP, ENOSPC}},
	{CALL_resume, false, {EIO}},
	{CALL_resize, false, {EIO, EBUSY, ENOSPC, ENOTSUP}},
	{CALL_event_fd, false, {ENOTSUP}},
	{CALL_mem_swap, false, {EIO}},
	{CALL_mem_out, false, {EIO}},
	{CALL_mem_in, false, {ENOSPC, ENOMEM, EIO}},
	{CALL_partition_widen, false, {EIO}},
	{CALL_counters, false, {EIO}},
	{CALL_limit, false, {ENOTSUP, EINVAL, EIO}},
};

struct rule {
	const struct op_errors *errors;
	int err;
	uint64_t every, calls;
};

enum kind { QUEUE, COMMAND, STOP };

/* A queue, found by its handle; or a command or suspend, found by its cookie. */
struct device_object {
	struct handle h;
	struct device_object *queue; /* the queue of a command or suspend */
	uint32_t commands;           /* of a queue: commands on the device */
	uint32_t frozen; /* of a suspended queue: its commands, which do not complete */
};

struct fault {
	const struct layers *layers;
	uint32_t count;
	bool lost;     /* an injected failure of poll has lost the device */
	uint64_t owed; /* events that the device has yet to report */
	struct handles handles;
	struct rule rules[RULES_MAX];
};

/* The rule that makes this thread's current call fail; or NULL.  Other threads make calls
 * between fault_before and fault_after. */
static _Thread_local const struct rule *due;

/* ---- rules ------------------------------------------------------------------------ */

/* ENOTSUP and EOPNOTSUPP are the same number; the backend interface uses ENOTSUP. */
static const char *err_name(int err)
{
	return err == ENOTSUP ? "ENOTSUP" : strerrorname_np(err);
}

static const struct op_errors *find_op(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(op_errors); i++)
		if (strcmp(layer_op_names[op_errors[i].op], name) == 0)
			return &op_errors[i];
	return NULL;
}

/* Write the names of the operations that can fail into text. */
static void list_ops(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(op_errors) && used < size; i++) {
		format_text(text + used, size - used, " %s",
			    layer_op_names[op_errors[i].op]);
		used += strlen(text + used);
	}
}

/* Set *err to the errno called name, or to 0 if it is not one of `of`.  Write the names
 * of all errnos of `of` into text. */
static void find_err(const struct op_errors *of, const char *name, int *err, char *text,
		     size_t size)
{
	size_t used = 0;

	*err = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(of->errs) && of->errs[i] != 0; i++) {
		const char *known = err_name(of->errs[i]);

		if (strcmp(known, name) == 0)
			*err = of->errs[i];
		format_text(text + used, size - used, " %s", known);
		used += strlen(text + used);
	}
}

/* Parse OPERATION:N:ERRNO; modifies text. */
static int rule_parse(char *text, struct rule *r)
{
	char known[400] = "";
	char *rest = text;
	const char *op = strsep(&rest, ":");
	const char *every = strsep(&rest, ":");
	char *end = NULL;

	if (every == NULL || rest == NULL)
		return fail(EINVAL,
			    "[layers] fault: \"%s\" is not OPERATION:N:ERRNO, as in "
			    "submit:5:EIO",
			    op);
	r->errors = find_op(op);
	if (r->errors == NULL) {
		list_ops(known, sizeof(known));
		return fail(EINVAL,
			    "[layers] fault: operation \"%s\" cannot be made to fail; "
			    "choose one "
			    "of%s",
			    op, known);
	}
	r->every = strtoull(every, &end, 10);
	if (every[0] < '0' || every[0] > '9' || *end != '\0' || r->every == 0)
		return fail(EINVAL,
			    "[layers] fault: %s: \"%s\" is not an integer of 1 or more",
			    op, every);
	find_err(r->errors, rest, &r->err, known, sizeof(known));
	if (r->err == 0)
		return fail(EINVAL,
			    "[layers] fault: %s cannot return \"%s\"; choose one of%s",
			    op, rest, known);
	return 0;
}

static int fault_destroy(void *state)
{
	struct fault *f = state;

	handles_fini(&f->handles);
	free(f);
	return 0;
}

static int fault_create(struct layers *l, const struct hal_bk_config *cfg, void **state)
{
	const char *text = option_str(cfg, "fault");
	char *copy, *rest, *word;
	struct fault *f;
	int err = 0;

	if (text[0] == '\0')
		return 0;
	f = calloc(1, sizeof(*f));
	copy = strdup(text);
	if (f == NULL || copy == NULL) {
		err = fail(ENOMEM, "no memory for layer fault");
		goto out;
	}
	f->layers = l;
	if (handles_init(&f->handles, sizeof(struct device_object)) != 0) {
		err = fail(ENOMEM, "no memory for layer fault");
		goto out;
	}
	rest = copy;
	while (err == 0 && (word = strsep(&rest, ",")) != NULL) {
		if (f->count == RULES_MAX)
			err = fail(EINVAL, "[layers] fault: more than %d rules",
				   RULES_MAX);
		else
			err = rule_parse(word, &f->rules[f->count++]);
	}
out:
	free(copy);
	if (err == 0)
		*state = f;
	else if (f != NULL)
		(void)fault_destroy(f);
	return err;
}

/* ---- events that the device owes -------------------------------------------------- */

static struct device_object *find_device_object(const struct fault *f, enum kind kind,
						uint64_t key)
{
	struct handle *h = handles_find(&f->handles, kind, key);

	return h != NULL && h->alive ? container_of(h, struct device_object, h) : NULL;
}

/* Add an entry to the table of objects.  Cannot fail: fault_before() has reserved it. */
static struct device_object *add_device_object(struct fault *f, enum kind kind,
					       uint64_t key)
{
	return container_of(handles_add(&f->handles, kind, key), struct device_object, h);
}

/* Count a command or suspend that the device has accepted. */
static void note_started(struct fault *f, enum kind kind, const struct layer_call *c)
{
	struct device_object *a =
		add_device_object(f, kind, kind == COMMAND ? c->cmd->cookie : c->cookie);

	a->queue = find_device_object(f, QUEUE, (uintptr_t)c->queue);
	a->queue->commands += kind == COMMAND;
	f->owed++;
}

/* Count the events of a resumed queue's commands as owed again. */
static void note_resumed(struct fault *f, struct device_object *queue)
{
	f->owed += queue->frozen;
	queue->frozen = 0;
}

static void note_queue_destroyed(struct device_object *queue)
{
	queue->commands = 0;
	queue->frozen = 0;
	queue->h.alive = false;
}

/* Count an event that the device has reported. */
static void note_event(struct fault *f, const struct hal_bk_event *ev)
{
	struct device_object *a = find_device_object(
		f, ev->kind == HAL_BK_DONE ? COMMAND : STOP, ev->cookie);

	f->owed -= f->owed > 0;
	if (a == NULL)
		return; /* the end of a move; moves have no entry */
	a->h.alive = false;
	if (ev->kind == HAL_BK_DONE) {
		a->queue->commands--;
		return;
	}
	/* The commands left on a suspended queue do not complete until it is resumed. */
	a->queue->frozen = a->queue->commands;
	f->owed -= a->queue->frozen;
}

/* ---- calls ------------------------------------------------------------------------ */

static int inject(const struct rule *r)
{
	return fail(r->err, "injected: call %llu of %s returns %s",
		    (unsigned long long)r->calls, layer_op_names[r->errors->op],
		    err_name(r->err));
}

/* Return whether op is refused after the loss of the device. */
static bool starts_work(enum layer_op op)
{
	return op == CALL_submit || op == CALL_poll || op == CALL_suspend ||
	       op == CALL_resize;
}

/* Return whether a successful call of op adds an entry to the table of objects. */
static bool adds_object(enum layer_op op)
{
	return op == CALL_queue_create || op == CALL_submit || op == CALL_suspend;
}

#define POLLS_MAX (1u << 20)

/* Lose the device: poll it until its work has completed and discard the events, so that
 * its objects can be destroyed.  The number of polls has a limit, because a program may
 * run forever. */
static void drain_lost_device(struct fault *f)
{
	const struct layers *l = f->layers;
	struct hal_bk_event ev[16];

	f->lost = true;
	for (uint32_t i = 0; i < POLLS_MAX && f->owed > 0; i++) {
		uint64_t until = l->real->hot.now(l->bk) + 1000000;
		int n = l->real->hot.poll(l->bk, until, ev, ARRAY_LENGTH(ev));

		for (int k = 0; k < n; k++)
			note_event(f, &ev[k]);
		if (n < 0)
			return;
	}
}

static int fault_before(void *state, const struct layer_call *c)
{
	struct fault *f = state;

	due = NULL;
	if (f->lost && starts_work(c->op))
		return fail(EIO,
			    "injected: an earlier poll failed, so the device is lost");
	if (adds_object(c->op) && handles_reserve(&f->handles) != 0)
		return fail(ENOMEM, "no memory for layer fault");
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *r = &f->rules[i];

		if (r->errors->op != c->op)
			continue;
		/* An idle device is not full.  If it returned -EAGAIN, the engine would
		 * wait for an event that never comes. */
		if (r->err == EAGAIN && f->owed == 0)
			continue;
		r->calls++;
		if (r->calls % r->every == 0 && due == NULL)
			due = r;
	}
	if (due == NULL || due->errors->forwarded)
		return 0;
	if (c->op == CALL_poll)
		drain_lost_device(f);
	return inject(due);
}

/* Record the effect of a call that has succeeded. */
static void note_success(struct fault *f, const struct layer_call *c)
{
	switch (c->op) {
	case CALL_queue_create:
		(void)add_device_object(f, QUEUE, (uintptr_t)*c->out);
		break;
	case CALL_queue_destroy:
		note_queue_destroyed(find_device_object(f, QUEUE, (uintptr_t)c->queue));
		break;
	case CALL_submit:
		note_started(f, COMMAND, c);
		break;
	case CALL_suspend:
		note_started(f, STOP, c);
		break;
	case CALL_resume:
		note_resumed(f, find_device_object(f, QUEUE, (uintptr_t)c->queue));
		break;
	case CALL_resize:
		f->owed++;
		break;
	default:
		break;
	}
}

static void fault_after(void *state, struct layer_call *c)
{
	struct fault *f = state;

	for (int64_t i = 0; c->op == CALL_poll && i < c->result; i++)
		note_event(f, &c->events[i]);
	if (c->result == 0)
		note_success(f, c);
	if (due != NULL)
		c->result = inject(due);
	due = NULL;
}

const struct layer_type layer_fault = {
	.name = "fault",
	.create = fault_create,
	.destroy = fault_destroy,
	.before = fault_before,
	.after = fault_after,
};
