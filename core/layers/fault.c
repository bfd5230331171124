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
	{CALL_mem_move, false, {ENOSPC, EIO}},
	{CALL_program_load, false, {EINVAL, ENOMEM, ENOSPC, EIO}},
	{CALL_program_unload, true, {EIO}},
	{CALL_kernel_get, false, {EIO, ENOMEM}},
	{CALL_program_bind, false, {ENOSPC, ENOMEM, EIO}},
	{CALL_program_unbind, true, {EIO}},
	{CALL_counters, false, {EIO}},
	{CALL_submit, false, {EAGAIN, EIO, ENOMEM, ENOSPC, EINVAL}},
	{CALL_poll, false, {EIO}},
	{CALL_suspend, false, {EIO, ENOTSUP}},
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

struct fault {
	const struct layers *layers;
	uint32_t count;
	bool lost;     /* poll has failed: nothing begins any more */
	uint64_t owed; /* events of the device that have not come */
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
	if (err != 0)
		free(f);
	else
		*state = f;
	return err;
}

static int fault_destroy(void *state)
{
	free(state);
	return 0;
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

		if (n < 0)
			return;
		f->owed -= (uint64_t)n < f->owed ? (uint64_t)n : f->owed;
	}
}

static int fault_before(void *state, const struct layer_call *c)
{
	struct fault *f = state;

	f->due = NULL;
	if (f->lost && begins(c->op))
		return fail(EIO, "injected: the device has been lost by a poll before");
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

static void fault_after(void *state, struct layer_call *c)
{
	struct fault *f = state;

	if (c->op == CALL_poll && c->result > 0)
		f->owed -= (uint64_t)c->result < f->owed ? (uint64_t)c->result : f->owed;
	if ((c->op == CALL_submit || c->op == CALL_suspend || c->op == CALL_resize) &&
	    c->result == 0)
		f->owed++;
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
