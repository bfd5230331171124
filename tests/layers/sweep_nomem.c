/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_nomem.c - a scenario in which the first allocation fails, then the second, until
 * there are none left to fail: sweep_nomem TARGET [STEP].
 *
 * The step in which one fails answers -ENOMEM, or can do without; everything there is can
 * be put away, layer validate finds nothing wrong, and the device can be closed.  What is
 * lost, a sanitizer or valgrind finds.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nomem.h"
#include "scenario.h"

static int bad;

/* A queue whose work fails says so to those that wait for it. */
static int fine(const struct scenario *s)
{
	return s->err == 0 || s->err == -ENOMEM ||
	       (s->err == -ECANCELED && strstr(s->text, "memory") != NULL);
}

static void complain(const struct scenario *s, unsigned long k, const char *what)
{
	printf("allocation %lu of %s: %s: %s is %d: %s; hal_close is %d: %s\n", k,
	       s->target, what, s->step != NULL ? s->step : "no step", s->err, s->text,
	       s->close_err, s->close_text);
	bad++;
}

int main(int argc, char **argv)
{
	const char *const options[] = {
		"partition \"second\".units=4",
		"hal.queue_depth=8",
		"layers.validate=1",
		"layers.trace=/dev/null",
		"layers.report=/dev/stderr",
		"layers.fault=event_fd:1:ENOTSUP",
		NULL,
	};
	struct scenario s = {.target = argc > 1 ? argv[1] : "ref", .options = options};
	unsigned long step = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	unsigned long k, refused = 0, total;

	if (scenario_begin() != 0)
		return 2;
	/* Once as it should be, and for what is made once a process. */
	scenario_run(&s);
	if (s.err == -ENODEV) {
		printf("%s\n", s.text);
		scenario_end();
		return 77;
	}
	if (s.err != 0 || s.close_err != 0)
		complain(&s, 0, "without a failure");
	nomem_arm(0);
	scenario_run(&s);
	(void)nomem_disarm();
	total = nomem_count();
	for (k = 1; bad < 20; k += step) {
		bool failed;

		nomem_arm(k);
		scenario_run(&s);
		failed = nomem_disarm();
		if (!failed)
			break;
		refused++;
		if (!fine(&s))
			complain(&s, k, "not -ENOMEM");
		if (s.close_err != 0)
			complain(&s, k, "cannot be closed");
	}
	if (s.err != 0 || s.close_err != 0)
		complain(&s, k, "at the end, without a failure");
	scenario_end();
	printf("%s: %lu of about %lu allocations failed, %d bad\n", s.target, refused,
	       total, bad);
	return bad != 0 || total < 50 || refused < total / step / 2;
}
