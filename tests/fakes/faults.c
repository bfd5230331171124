/* SPDX-License-Identifier: Apache-2.0 */
/* Each call fails, each time. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern char host_text[512]; /* of the test's host */

uint32_t faults_made, faults_bad;

/* ---- steps --------------------------------------------------------------------------- */

static bool note(struct faults_world *w, int err, const char *text)
{
	if (err < 0 && !w->first.err) {
		w->first.err = err;
		snprintf(w->first.text, sizeof(w->first.text), "%s", text);
	}
	return err >= 0 && !w->first.err;
}

bool faults_step(struct faults_world *w, int err)
{
	return note(w, err, host_text);
}

void faults_run_dry(struct faults_world *w)
{
	struct hal_bk_event ev[8];
	int n = 0, i, turns = 0;

	while (w->inflight && n >= 0 && turns++ < 10000) {
		n = w->b->hot.poll(w->dev, UINT64_MAX, ev, 8);
		for (i = 0; i < n; i++) {
			w->inflight--;
			note(w, ev[i].status, ev[i].fault);
		}
	}
	w->lost |= n < 0;
	if (!w->lost)
		assert_int_equal(w->inflight, 0);
}

bool faults_submit(struct faults_world *w, const struct hal_bk_cmd *cmd)
{
	int err = w->b->hot.submit(w->dev, w->queue, cmd);

	if (err == -EAGAIN) {
		faults_run_dry(w);
		if (w->first.err)
			return false;
		err = w->b->hot.submit(w->dev, w->queue, cmd);
	}
	w->inflight += !err;
	return faults_step(w, err);
}

bool faults_compute(struct faults_world *w, uint64_t ns)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, ns, 0}};
	struct hal_bk_cmd launch = {.op = HAL_OP_LAUNCH, .cookie = 1};
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 2};
	struct hal_bk_cmd copy = {.op = HAL_OP_COPY, .cookie = 3};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 4};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 5};
	uint32_t zero = 0, got[2] = {0, 0};
	uint64_t time = 0;
	int i;

	launch.launch.kernel = w->kernel;
	launch.launch.args = args;
	launch.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		launch.launch.groups[i] = 1;
	fill.fill.dst = w->mem[0];
	fill.fill.offset = 4;
	fill.fill.bytes = 4;
	fill.fill.pattern = 77;
	copy.copy.dst = w->mem[1];
	copy.copy.src = w->mem[0];
	copy.copy.bytes = 8;
	stamp.timestamp.dst = w->mem[2];
	if (!faults_step(w, w->b->cold.mem_write(w->dev, w->mem[0], 0, &zero, 4)))
		return false;
	for (i = 0; i < 3; i++)
		if (!faults_submit(w, &launch))
			return false;
	if (!faults_submit(w, &fill) || !faults_submit(w, &copy) ||
	    !faults_submit(w, &stamp) || !faults_submit(w, &nop))
		return false;
	faults_run_dry(w);
	if (w->first.err ||
	    !faults_step(w, w->b->cold.mem_read(w->dev, w->mem[1], 0, got, 8)) ||
	    !faults_step(w, w->b->cold.mem_read(w->dev, w->mem[2], 0, &time, 8)))
		return false;
	assert_int_equal(got[0], 3);
	assert_int_equal(got[1], 77);
	assert_true(time >= 3 * ns);
	return true;
}

void faults_put_away(struct faults_world *w)
{
	const struct hal_bk_cold *cold = &w->b->cold;
	int i;

	if (w->queue) {
		faults_run_dry(w);
		faults_step(w, cold->queue_destroy(w->dev, w->queue));
	}
	for (i = 0; i < 3; i++)
		if (w->mem[i])
			faults_step(w, cold->mem_free(w->dev, w->mem[i]));
	if (w->prog)
		faults_step(w, cold->program_unload(w->dev, w->prog));
	if (w->part)
		faults_step(w, cold->partition_destroy(w->dev, w->part));
	if (w->dev)
		cold->close(w->dev);
}

/* ---- failures ------------------------------------------------------------------------ */

static void complain(const char *call, uint64_t nth, const struct faults_result *r,
		     const struct faults_outcome *o, const char *why)
{
	faults_bad++;
	print_error("%s number %u answers %s: %s: errno %d, text \"%s\"\n", call,
		    (unsigned)nth, r->name, why, -o->err, o->text);
}

static void fail_once(const struct faults *f, const struct hal_bk_config *cfg,
		      const char *call, uint64_t nth, bool silent,
		      const struct faults_result *r)
{
	struct faults_outcome o;
	const char *misuse;
	uint32_t live;

	f->reset();
	live = f->live();
	assert_int_equal(f->break_call(call, nth, r->result), 0);
	o = f->run(cfg);
	if (f->armed())
		return; /* it was not called that often this time */
	faults_made++;
	if (o.err) {
		if ((!strstr(o.text, call) && !f->told_later(call, r, silent)) ||
		    !strstr(o.text, r->name))
			complain(call, nth, r, &o, "the text does not name it");
		/* A command that fails is a fault of the device, whatever it was. */
		else if (-o.err != r->err && o.err != -EIO)
			complain(call, nth, r, &o, "not its errno");
	} else if (!silent) {
		complain(call, nth, r, &o, "nobody was told");
	}
	if (f->live() != live)
		complain(call, nth, r, &o, "something was left at the library");
	if (f->misuse(&misuse))
		complain(call, nth, r, &o, misuse);
}

static uint64_t run_well(const struct faults *f, const struct hal_bk_config *cfg,
			 const char *when)
{
	struct faults_outcome o;
	const char *misuse = "";

	f->reset();
	o = f->run(cfg);
	if (o.err)
		fail_msg("%s: %d %s", when, o.err, o.text);
	if (f->misuse(&misuse))
		fail_msg("%s: %s", when, misuse);
	return f->calls(NULL);
}

/* How often the call is made, and the first time that it is close's, of those that it
 * makes: an open and its close tell how many. */
static void count(const struct faults *f, const struct hal_bk_config *cfg,
		  uint64_t *times, uint64_t *closing)
{
	void *dev = NULL;
	uint32_t c;

	(void)run_well(f, cfg, "without a failure");
	for (c = 0; c < f->name_count; c++)
		times[c] = f->calls(f->names[c]);
	f->reset();
	assert_int_equal(f->b->cold.open(cfg, 0, &dev), 0);
	for (c = 0; c < f->name_count; c++)
		closing[c] = times[c] + 1 + f->calls(f->names[c]);
	f->b->cold.close(dev);
	for (c = 0; c < f->name_count; c++)
		closing[c] -= f->calls(f->names[c]);
}

void faults_all(const struct faults *f, const struct hal_bk_config *cfg)
{
	uint64_t *times = calloc(f->name_count, 2 * sizeof(*times)), n;
	uint64_t *closing = times + f->name_count;
	uint32_t c;

	assert_non_null(times);
	count(f, cfg, times, closing);
	for (c = 0; c < f->name_count; c++) {
		const char *call = f->names[c];

		if (f->left_out(call))
			continue;
		for (n = 1; n <= times[c] && n <= f->most; n++)
			fail_once(f, cfg, call, n,
				  f->silent(call, n == times[c], n >= closing[c]),
				  &f->results[(c + n) % f->result_count]);
	}
	free(times);
	(void)run_well(f, cfg, "after all failures");
	assert_int_equal(faults_bad, 0);
}

void faults_cover(const struct faults *f, const struct hal_bk_config *const *cfgs,
		  uint32_t count, bool (*elsewhere)(const char *call))
{
	uint32_t c, i, missing = 0;

	for (c = 0; c < f->name_count; c++) {
		uint64_t calls = 0;

		if (elsewhere(f->names[c]))
			continue;
		for (i = 0; i < count && !calls; i++) {
			(void)run_well(f, cfgs[i], "without a failure");
			calls = f->calls(f->names[c]);
		}
		missing += !calls;
		if (!calls)
			print_error("%s is never called\n", f->names[c]);
	}
	assert_int_equal(missing, 0);
}
