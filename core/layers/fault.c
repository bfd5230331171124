/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - the layer that makes every n-th call of an operation fail, so that what
 * happens then can be tested on a device that works.
 *
 * "submit:5:EIO,mem_alloc:3:ENOSPC" - calls are counted from 1, a rule each; the same
 * calls fail in the same way.  A call that fails is not made, but for the operations
 * whose result the core has no use for: those are made and then answered with the error.
 */
#include "layers/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

#define RULES_MAX 32

/* What an operation may answer; those without a row have no errors. */
struct op_errors {
	enum layer_op op;
	bool made; /* the call is made all the same */
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
	{CALL_mem_swap, false, {EIO}},
	{CALL_colors_set, false, {ENOTSUP, EINVAL, EIO}},
	{CALL_program_load, false, {EINVAL, ENOMEM, ENOSPC, EIO}},
	{CALL_program_unload, true, {EIO}},
	{CALL_kernel_get, false, {EIO, ENOMEM}},
	{CALL_program_bind, false, {ENOSPC, ENOMEM, EIO}},
	{CALL_program_unbind, true, {EIO}},
	{CALL_counters, false, {EIO}},
	{CALL_partition_widen, false, {EIO}},
	{CALL_mem_out, false, {EIO}},
	{CALL_mem_in, false, {ENOSPC, ENOMEM, EIO}},
	{CALL_mem_clear, false, {EIO, ENOMEM}},
	{CALL_submit, false, {EAGAIN, EIO, ENOMEM, ENOSPC, EINVAL}},
	{CALL_poll, false, {EIO}},
	{CALL_suspend, false, {EIO, ENOTSUP, ENOSPC}},
	{CALL_resume, false, {EIO}},
	{CALL_resize, false, {EIO, EBUSY, ENOSPC, ENOTSUP}},
	{CALL_event_fd, false, {ENOTSUP}},
	{CALL_limit, false, {ENOTSUP, EINVAL, EIO}},
};

struct rule {
	const struct op_errors *of;
	int err;
	uint64_t every, calls;
};

enum kind { QUEUE, COMMAND, STOP };

/* A queue; and by their cookies, its commands and what suspends it. */
struct at_device {
	struct handle h;
	struct at_device *queue;
	uint32_t commands; /* that the device has of a queue */
	uint32_t frozen;   /* those, while FOLD or SAVE holds it: none of them ends */
};

struct fault {
	const struct layers *layers;
	uint32_t count;
	bool lost;     /* poll has failed: nothing begins any more */
	uint64_t owed; /* events of the device that are to come */
	struct handles handles;
	struct rule rules[RULES_MAX];
	const struct rule *due; /* of the call that is being made */
};

/* ---- rules ------------------------------------------------------------------------ */

/* ENOTSUP has two names. */
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

static void list_ops(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(op_errors) && used < size; i++) {
		format_text(text + used, size - used, " %s",
			    layer_op_names[op_errors[i].op]);
		used += strlen(text + used);
	}
}

/* The names of its errors; *err is that of name, 0 when it is none of them. */
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

/* OPERATION:N:ERRNO, which it cuts up. */
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
	r->of = find_op(op);
	if (r->of == NULL) {
		list_ops(known, sizeof(known));
		return fail(EINVAL,
			    "[layers] fault: no operation %s can fail; there are%s", op,
			    known);
	}
	r->every = strtoull(every, &end, 10);
	if (every[0] < '0' || every[0] > '9' || *end != '\0' || r->every == 0)
		return fail(EINVAL, "[layers] fault: %s: \"%s\" is not a count from 1",
			    op, every);
	find_err(r->of, rest, &r->err, known, sizeof(known));
	if (r->err == 0)
		return fail(EINVAL, "[layers] fault: %s does not answer \"%s\", but%s",
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
	if (handles_init(&f->handles, sizeof(struct at_device)) != 0) {
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

/* ---- what the device owes --------------------------------------------------------- */

static struct at_device *find_device_object(const struct fault *f, enum kind kind,
					    uint64_t key)
{
	struct handle *h = handles_find(&f->handles, kind, key);

	return h != NULL && h->alive ? container_of(h, struct at_device, h) : NULL;
}

/* before() has made room for it. */
static struct at_device *add_device_object(struct fault *f, enum kind kind, uint64_t key)
{
	return container_of(handles_add(&f->handles, kind, key), struct at_device, h);
}

static void begun(struct fault *f, enum kind kind, const struct layer_call *c)
{
	struct at_device *a =
		add_device_object(f, kind, kind == COMMAND ? c->cmd->cookie : c->cookie);

	a->queue = find_device_object(f, QUEUE, (uintptr_t)c->queue);
	a->queue->commands += kind == COMMAND;
	f->owed++;
}

static void thawed(struct fault *f, struct at_device *queue)
{
	f->owed += queue->frozen;
	queue->frozen = 0;
}

static void queue_gone(struct at_device *queue)
{
	queue->commands = 0;
	queue->frozen = 0;
	queue->h.alive = false;
}

static void told(struct fault *f, const struct hal_bk_event *ev)
{
	struct at_device *a = find_device_object(
		f, ev->kind == HAL_BK_DONE ? COMMAND : STOP, ev->cookie);

	f->owed -= f->owed > 0;
	if (a == NULL)
		return; /* a move */
	a->h.alive = false;
	if (ev->kind == HAL_BK_DONE) {
		a->queue->commands--;
		return;
	}
	/* Of what it has still, nothing is to come until it goes on. */
	a->queue->frozen = a->queue->commands;
	f->owed -= a->queue->frozen;
}

/* ---- calls ------------------------------------------------------------------------ */

static int inject(const struct rule *r)
{
	return fail(r->err, "injected: call %llu of %s answers %s",
		    (unsigned long long)r->calls, layer_op_names[r->of->op],
		    err_name(r->err));
}

static bool begins(enum layer_op op)
{
	return op == CALL_submit || op == CALL_poll || op == CALL_suspend ||
	       op == CALL_resize;
}

static bool keeps(enum layer_op op)
{
	return op == CALL_queue_create || op == CALL_submit || op == CALL_suspend;
}

#define ROUNDS_MAX (1u << 20)

/* The device is lost: nobody will hear of what it is doing, but it does end it, so that
 * it can be given back.  Not for ever: a program may have no end. */
static void lose(struct fault *f)
{
	const struct layers *l = f->layers;
	struct hal_bk_event ev[16];

	f->lost = true;
	for (uint32_t i = 0; i < ROUNDS_MAX && f->owed > 0; i++) {
		uint64_t until = l->real->hot.now(l->bk) + 1000000;
		int n = l->real->hot.poll(l->bk, until, ev, ARRAY_LENGTH(ev));

		for (int k = 0; k < n; k++)
			told(f, &ev[k]);
		if (n < 0)
			return;
	}
}

static int fault_before(void *state, const struct layer_call *c)
{
	struct fault *f = state;

	f->due = NULL;
	if (f->lost && begins(c->op))
		return fail(EIO, "injected: the device has been lost by a poll before");
	if (keeps(c->op) && handles_reserve(&f->handles) != 0)
		return fail(ENOMEM, "no memory for layer fault");
	for (uint32_t i = 0; i < f->count; i++) {
		struct rule *r = &f->rules[i];

		if (r->of->op != c->op)
			continue;
		/* A device that has nothing to do is not full: who is told so waits for
		 * an event that cannot come. */
		if (r->err == EAGAIN && f->owed == 0)
			continue;
		r->calls++;
		if (r->calls % r->every == 0 && f->due == NULL)
			f->due = r;
	}
	if (f->due == NULL || f->due->of->made)
		return 0;
	if (c->op == CALL_poll)
		lose(f);
	return inject(f->due);
}

static void happened(struct fault *f, const struct layer_call *c)
{
	switch (c->op) {
	case CALL_queue_create:
		(void)add_device_object(f, QUEUE, (uintptr_t)*c->out);
		break;
	case CALL_queue_destroy:
		queue_gone(find_device_object(f, QUEUE, (uintptr_t)c->queue));
		break;
	case CALL_submit:
		begun(f, COMMAND, c);
		break;
	case CALL_suspend:
		begun(f, STOP, c);
		break;
	case CALL_resume:
		thawed(f, find_device_object(f, QUEUE, (uintptr_t)c->queue));
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
		told(f, &c->events[i]);
	if (c->result == 0)
		happened(f, c);
	if (f->due != NULL)
		c->result = inject(f->due);
	f->due = NULL;
}

const struct layer_type layer_fault = {
	.name = "fault",
	.create = fault_create,
	.destroy = fault_destroy,
	.before = fault_before,
	.after = fault_after,
};
