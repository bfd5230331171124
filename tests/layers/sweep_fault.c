/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_fault.c - a scenario with layer fault on, for every operation that can fail, each
 * of its errors, and n = 1, 2, 3 ... until no call fails any more: sweep_fault TARGET.
 *
 * Nothing crashes or hangs; the step that meets the error answers it, or -EIO or
 * -ECANCELED where the device or other work is lost; its text says that it was injected;
 * and the device can be closed wherever the operations that destroy go well.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"

struct op {
	const char *name;
	const char *errs; /* as fault.c has them */
	bool takes;       /* an answer other than 0 may leave something behind */
};

static const struct op ops[] = {
	{"open", "ENODEV ENOMEM EIO EBUSY EACCES", false},
	{"get_info", "EIO", false},
	{"partition_create", "ENOSPC ENOMEM EIO ENOTSUP EBUSY", false},
	{"partition_destroy", "EIO EBUSY", true},
	{"queue_create", "ENOSPC ENOMEM EIO ENOTSUP", false},
	{"queue_destroy", "EIO EBUSY", true},
	{"mem_alloc", "ENOSPC ENOMEM EIO ENOTSUP", false},
	{"mem_free", "EIO", true},
	{"mem_write", "EIO ENOMEM", false},
	{"mem_read", "EIO ENOMEM", false},
	{"mem_map", "ENOTSUP ENOMEM EIO", false},
	{"mem_unmap", "EIO", false},
	{"program_load", "EINVAL ENOMEM ENOSPC EIO", false},
	{"program_unload", "EIO", true},
	{"kernel_get", "EIO ENOMEM", false},
	{"program_bind", "ENOSPC ENOMEM EIO", false},
	{"program_unbind", "EIO", false},
	{"submit", "EAGAIN EIO ENOMEM ENOSPC EINVAL", false},
	{"poll", "EIO", false},
	{"suspend", "EIO ENOTSUP ENOSPC", false},
	{"resume", "EIO", true},
	{"resize", "EIO EBUSY ENOSPC ENOTSUP", false},
};

static int bad;
static unsigned long runs, hits;
static char trace[] = "/tmp/hal-sweep-XXXXXX";
static char trace_option[64];

static int errno_of(const char *name)
{
	if (strcmp(name, "ENOTSUP") == 0)
		return ENOTSUP;
	for (int e = 1; e < 134; e++) {
		const char *known = strerrorname_np(e);

		if (known != NULL && strcmp(known, name) == 0)
			return e;
	}
	return 0;
}

/* A call of op has answered err, by what layer trace wrote. */
static bool was_hit(const char *op, int err)
{
	FILE *f = fopen(trace, "r");
	static char line[65536];
	char want_op[64], want_err[32];
	bool hit = false;

	if (f == NULL)
		abort();
	snprintf(want_op, sizeof(want_op), "\"op\":\"%s\"", op);
	snprintf(want_err, sizeof(want_err), "\"result\":-%d", err);
	while (!hit && fgets(line, sizeof(line), f) != NULL)
		hit = strstr(line, want_op) != NULL && strstr(line, want_err) != NULL &&
		      (err == EAGAIN || strstr(line, "injected") != NULL);
	fclose(f);
	return hit;
}

static void complain(const struct scenario *s, const char *rule, const char *what)
{
	printf("%s on %s: %s: %s is %d: %s; hal_close is %d: %s\n", rule, s->target, what,
	       s->step != NULL ? s->step : "no step", s->err, s->text, s->close_err,
	       s->close_text);
	bad++;
}

static bool fine(const struct scenario *s, int err)
{
	if (s->err == 0)
		return true;
	/* -ENODEV: the device has been lost before. */
	return (s->err == -err || s->err == -EIO || s->err == -ECANCELED ||
		s->err == -ENODEV) &&
	       (strstr(s->text, "injected") != NULL ||
		strstr(s->text, "the device refused to resize") != NULL);
}

/* False: no call failed. */
static bool one(const char *target, const struct op *op, const char *name,
		unsigned long n)
{
	char rule[96], rule_option[128];
	const char *const options[] = {"partition \"second\".units=4",
				       "hal.queue_depth=8",
				       "layers.validate=1",
				       trace_option,
				       rule_option,
				       NULL};
	struct scenario s = {.target = target, .options = options};
	int err = errno_of(name);
	bool hit;

	snprintf(rule, sizeof(rule), "%s:%lu:%s", op->name, n, name);
	snprintf(rule_option, sizeof(rule_option), "layers.fault=%s", rule);
	if (truncate(trace, 0) != 0)
		abort();
	scenario_run(&s);
	runs++;
	hit = was_hit(op->name, err);
	hits += hit;
	if (!fine(&s, err))
		complain(&s, rule, "another answer");
	if (!hit && s.err != 0)
		complain(&s, rule, "nothing was injected, and yet");
	if (s.close_err != 0 && !(op->takes && hit))
		complain(&s, rule, "cannot be closed");
	return hit;
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "ref";
	int fd = mkstemp(trace);

	if (fd < 0 || scenario_begin() != 0)
		return 2;
	close(fd);
	snprintf(trace_option, sizeof(trace_option), "layers.trace=%s", trace);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		char errs[64], *rest = errs, *name;

		snprintf(errs, sizeof(errs), "%s", ops[i].errs);
		while ((name = strsep(&rest, " ")) != NULL) {
			unsigned long n = 1;

			while (bad < 20 && one(target, &ops[i], name, n))
				n++;
			if (n == 1)
				complain(&(struct scenario){.target = target},
					 ops[i].name, "never called");
		}
	}
	unlink(trace);
	scenario_end();
	printf("%s: %lu scenarios, %lu with failures, %d bad\n", target, runs, hits, bad);
	return bad != 0;
}
