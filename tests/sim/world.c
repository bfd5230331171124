/* SPDX-License-Identifier: Apache-2.0 */
/* The operations a run is made of. */
#define _GNU_SOURCE
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../conformance/conformance.h"

enum { REGISTER_NS = 2000 };

/* ---- kernels of ref --------------------------------------------------------------- */

/* step(state, number, work): the counter in state must be number; counts on. */
static int step_fn(const struct hal_ref_call *call)
{
	uint64_t *counter = call->at(call, 0, 0, 8);

	if (!counter)
		return -EIO;
	if (*counter != call->args[1].value) {
		snprintf(call->fault, call->fault_bytes,
			 "step %" PRIu64 " ran after %" PRIu64 " steps",
			 call->args[1].value, *counter);
		return -EIO;
	}
	++*counter;
	return 0;
}

static uint64_t step_cost(const struct hal_ref_call *call)
{
	return call->args[2].value;
}

static int bad_fn(const struct hal_ref_call *call)
{
	snprintf(call->fault, call->fault_bytes, "kernel bad: meant to");
	return -EIO;
}

static const struct {
	struct hal_ref_image head;
	struct hal_ref_kernel kernels[2];
} ref_image = {
	{HAL_REF_MAGIC, HAL_REF_VERSION, sizeof(struct hal_ref_kernel), 2},
	{
		{.name = "step",
		 .fn = step_fn,
		 .cost = step_cost,
		 .arg_count = 3,
		 .arg_bytes = {8, 0, 0}},
		{.name = "bad",
		 .fn = bad_fn,
		 .work = 10,
		 .arg_count = 1,
		 .arg_bytes = {STATE_BYTES}},
	},
};

/* Kernel packs of the conformance suite, for backends that are not ref. */
static const struct conf_pack *packs[8];
static uint32_t pack_count;

void conf_register(const struct conf_pack *pack)
{
	if (pack_count < 8)
		packs[pack_count++] = pack;
}

static int load_pack(struct sim *s)
{
	void *image = NULL;
	size_t size = 0;
	uint32_t i;
	int err;

	for (i = 0; i < pack_count; i++)
		if (strcmp(packs[i]->backend, s->info.backend) == 0)
			break;
	if (i == pack_count)
		return sim_fail(s, __FILE__, __LINE__, "no kernels for %s",
				s->info.backend);
	SIM_OK(packs[i]->image(&image, &size));
	err = hal_program_load(s->dev, image, size, &s->prog);
	packs[i]->free(image);
	SIM_OK(err);
	SIM_OK(hal_kernel_find(s->prog, "spin", &s->spin));
	SIM_OK(hal_kernel_find(s->prog, "copy", &s->copy));
	SIM_OK(hal_kernel_find(s->prog, "wild", &s->bad_kernel));
	return 0;
}

static int load_ref(struct sim *s)
{
	SIM_OK(hal_program_load(s->dev, &ref_image, sizeof(ref_image), &s->prog));
	SIM_OK(hal_kernel_find(s->prog, "step", &s->step_kernel));
	SIM_OK(hal_kernel_find(s->prog, "bad", &s->bad_kernel));
	return 0;
}

/* ---- begin ------------------------------------------------------------------------ */

/* splitmix64 */
uint64_t sim_random(struct sim *s, uint64_t below)
{
	uint64_t z = (s->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return below ? z % below : z;
}

int sim_wait(struct hal_point p)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return hal_wait(&p, 1, 0, ((int64_t)ts.tv_sec + 300) * 1000000000);
}

/* Nobody has to ask before what is there keeps to its limits: they are short. */
static const char *const limits[] = {
	"quota_window_us=20",    "quota_permille=300",   "quota_unknown_us=2",
	"token_rate=300000",     "token_burst=3",        "static_slots=12",
	"static_slot_us=10",     "tgs_period_us=10",     "laxity_unknown_us=3",
	"prema_unknown_us=3",    "preempt_unknown_us=3", "orion_unknown_us=3",
	"orion_memory_mbs=1000", "themis_lease_us=5",    "themis_unknown_us=3",
	"tidal_idle_us=3",       "krisp_wait_us=5",      "fission_period_us=5",
	"fission_unknown_us=3",  "weave_wait_us=3",      "weave_memory_mbs=1000",
	"v10_slice_us=3",        "v10_wait_us=5",        NULL,
};

static int set_policy(struct sim *s, const char *name)
{
	if (s->verbose)
		printf("  policy %s\n", name);
	SIM_OK(hal_device_set_policy(s->dev, name, limits));
	s->stops |= !strcmp(name, "reef") || !strcmp(name, "out_reef");
	s->moves |= strstr(name, "tidal") || strstr(name, "krisp") ||
		    strstr(name, "fission") || strstr(name, "v10");
	return 0;
}

/* Since it was set. */
static int check_policy(struct sim *s)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);

	SIM_OK(hal_device_get_policy(s->dev, &i));
	if (i.invalid + i.stalls + i.fallback != 0)
		return sim_fail(s, __FILE__, __LINE__, "policy %s: %s", i.name, i.reason);
	return 0;
}

static int random_policy(struct sim *s)
{
	static const char *const names[] = {
		"fifo",   "rr",     "priority", "wfq",   "edf",  "quota", "token",
		"static", "laxity", "tgs",      "prema", "reef", "orion", "themis",
		"tidal",  "krisp",  "fission",  "weave", "v10"};
	uint64_t k = sim_random(s, sizeof(names) / sizeof(*names));

	if (check_policy(s))
		return -1;
	return set_policy(s, s->policy ? s->policy : names[k]);
}

int sim_begin(struct sim *s)
{
	uint32_t i;

	SIM_OK(hal_open(s->target, NULL, &s->dev));
	if (random_policy(s))
		return -1;
	s->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	SIM_OK(hal_device_get_info(s->dev, &s->info));
	SIM_CHECK(s->info.caps & HAL_CAP_VIRTUAL_CLOCK);
	s->running = calloc(s->info.partitions_max, sizeof(*s->running));
	SIM_CHECK(s->running);
	s->ref = hal_device_extension(s->dev, "ref");
	if (s->ref)
		SIM_OK(s->ref->on_event(hal_device_native(s->dev), sim_on_event, s));
	for (i = 0; i < GATES; i++)
		SIM_OK(hal_timeline_create(s->dev, &s->gates[i]));
	return s->ref ? load_ref(s) : load_pack(s);
}

/* ---- partitions ------------------------------------------------------------------- */

static void random_units(struct sim *s, struct hal_partition_desc *d)
{
	uint32_t rows = s->info.unit_rows, cols = s->info.unit_cols;

	if (sim_random(s, 2)) {
		d->units_floor = 1 + (uint32_t)sim_random(s, rows * cols / 2 + 1);
		return;
	}
	d->row = (uint16_t)sim_random(s, rows);
	d->col = (uint16_t)sim_random(s, cols);
	d->rows = (uint16_t)(1 + sim_random(s, rows - d->row));
	d->cols = (uint16_t)(1 + sim_random(s, (cols - d->col + 1) / 2));
}

static uint32_t floor_of(const struct hal_partition_desc *d)
{
	return d->rows != 0 ? (uint32_t)d->rows * d->cols : d->units_floor;
}

/* Sometimes the policy may let it grow. */
static uint32_t random_ceiling(struct sim *s, const struct hal_partition_desc *d)
{
	uint32_t least = floor_of(d);
	uint32_t all = (uint32_t)s->info.unit_rows * s->info.unit_cols;

	if ((s->info.caps & HAL_CAP_RESIZE_IDLE) == 0 || least > all ||
	    sim_random(s, 2) != 0)
		return 0;
	return least + (uint32_t)sim_random(s, all - least + 1);
}

static struct sim_part *random_part(struct sim *s)
{
	uint32_t i = (uint32_t)sim_random(s, PARTS), n;

	for (n = 0; n < PARTS; n++, i = (i + 1) % PARTS)
		if (s->parts[i].p)
			return &s->parts[i];
	return NULL;
}

static int part_create(struct sim *s)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct sim_part *host = NULL;
	uint32_t i;
	int err;

	for (i = 0; i < PARTS && s->parts[i].p; i++)
		;
	if (i == PARTS)
		return 0;
	if (s->info.guests_max != 0 && sim_random(s, 3) == 0)
		host = random_part(s);
	if (host && host->host)
		host = host->host;
	if (host) {
		d.host = host->p;
	} else {
		random_units(s, &d);
		d.units_ceiling = random_ceiling(s, &d);
	}
	if (sim_random(s, 2))
		d.memory_bytes = 65536 + 4096 * sim_random(s, 64);
	if (!host && s->info.colors > 1 && sim_random(s, 3) == 0)
		d.color_mask = UINT64_C(1) << sim_random(s, s->info.colors);
	err = hal_partition_create(s->dev, &d, &s->parts[i].p);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (err)
		SIM_ANSWER(err == -ENOSPC || (err == -ENOMEM && s->injected));
	else
		s->parts[i].quota = d.memory_bytes;
	if (!err)
		s->parts[i].floor = floor_of(&d);
	if (!err && host) {
		s->parts[i].host = host;
		host->guests++;
	}
	return 0;
}

/* 0: not yet; of no timeline: long ago. */
static int reached(struct hal_point p)
{
	return !p.timeline || hal_timeline_value(p.timeline, NULL) >= p.value;
}

static void forget_part(struct sim *s, struct sim_part *p)
{
	s->past_submitted += p->past_submitted;
	s->past_completed += p->past_completed;
	s->past_failed += p->past_failed;
	s->past_dropped += p->past_dropped;
	if (p->host)
		p->host->guests--;
	memset(p, 0, sizeof(*p));
}

static int part_destroy(struct sim *s)
{
	struct sim_part *p = random_part(s);
	int err;

	if (!p)
		return 0;
	err = hal_partition_destroy(p->p);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (p->queues || p->guests)
		SIM_ANSWER(err == -EBUSY);
	else
		SIM_ANSWER(!err || (err == -EBUSY && reached(p->moved) == 0));
	if (!err)
		forget_part(s, p);
	return 0;
}

static int part_resize(struct sim *s)
{
	struct sim_part *p = random_part(s);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved = {0};
	int err;

	if (!p)
		return 0;
	random_units(s, &d);
	d.units_ceiling = random_ceiling(s, &d);
	d.memory_bytes = p->quota;
	err = hal_partition_resize(p->p, &d, &moved);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (p->host)
		SIM_ANSWER(err == -EINVAL);
	else if (!(s->info.caps & HAL_CAP_RESIZE_IDLE))
		SIM_ANSWER(err == -ENOTSUP);
	else
		SIM_ANSWER(!err || err == -ENOSPC || err == -EBUSY);
	if (err)
		return 0;
	p->moved = moved;
	/* Until then the old one may be in force, and when it is refused. */
	if (floor_of(&d) < p->floor)
		p->floor = floor_of(&d);
	if (sim_random(s, 2)) {
		SIM_OK(sim_wait(moved));
		p->floor = floor_of(&d);
	}
	return 0;
}

/* ---- queues ----------------------------------------------------------------------- */

static struct sim_queue *random_queue(struct sim *s)
{
	uint32_t i = (uint32_t)sim_random(s, QUEUES), n;

	for (n = 0; n < QUEUES; n++, i = (i + 1) % QUEUES)
		if (s->queues[i].q)
			return &s->queues[i];
	return NULL;
}

static int buffer_create(struct sim *s, struct sim_part *p, uint64_t bytes,
			 struct hal_buffer **buf)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	int err;

	d.bytes = bytes;
	err = hal_buffer_create(p->p, &d, buf);
	if (err) {
		*buf = NULL;
		if (err == -ENOMEM && s->injected)
			err = -ENOSPC;
		return err == -ENOSPC
			       ? err
			       : sim_fail(s, __FILE__, __LINE__, "buffer_create: %d: %s",
					  err, hal_last_error());
	}
	p->buffer_bytes += bytes;
	return 0;
}

static int buffer_destroy(struct sim *s, struct sim_part *p, uint64_t bytes,
			  struct hal_buffer **buf)
{
	if (!*buf)
		return 0;
	SIM_OK(hal_buffer_destroy(*buf));
	*buf = NULL;
	p->buffer_bytes -= bytes;
	return 0;
}

/* What is left of a partition's numbers when those of its live queues are taken away. */
static int past_of(struct sim *s, uint32_t part, struct hal_stats *past)
{
	uint32_t i;

	*past = (struct hal_stats)HAL_INIT(hal_stats);
	SIM_OK(hal_partition_get_stats(s->parts[part].p, past));
	for (i = 0; i < QUEUES; i++) {
		struct hal_stats t = HAL_INIT(hal_stats);

		if (!s->queues[i].q || s->queues[i].part != part)
			continue;
		SIM_OK(hal_queue_get_stats(s->queues[i].q, &t));
		past->submitted -= t.submitted;
		past->completed -= t.completed;
		past->failed -= t.failed;
		past->dropped -= t.dropped;
	}
	return 0;
}

/* q's handle is destroyed: all it had has ended, and stays in its partition's numbers. */
static int queue_gone(struct sim *s, struct sim_queue *q)
{
	struct sim_part *p = &s->parts[q->part];
	struct hal_stats past;
	uint64_t ended;

	q->q = NULL;
	if (past_of(s, q->part, &past))
		return -1;
	ended = past.completed + past.failed + past.dropped - p->past_completed -
		p->past_failed - p->past_dropped;
	SIM_CHECK(past.submitted - p->past_submitted == q->commands);
	SIM_CHECK(ended == q->commands);
	SIM_CHECK(q->tainted || past.completed - p->past_completed == q->commands);
	SIM_CHECK(q->tainted || q->host_done == q->host_submitted);
	p->past_submitted = past.submitted;
	p->past_completed = past.completed;
	p->past_failed = past.failed;
	p->past_dropped = past.dropped;
	SIM_OK(buffer_destroy(s, p, STATE_BYTES, &q->state));
	SIM_OK(buffer_destroy(s, p, BUFFER_BYTES, &q->buf));
	SIM_OK(hal_timeline_destroy(q->line));
	p->queues--;
	memset(q, 0, sizeof(*q));
	return 0;
}

static int queue_create(struct sim *s)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	static const uint8_t zero[STATE_BYTES];
	struct sim_part *p = random_part(s);
	struct sim_queue *q;
	uint32_t i;
	int err;

	for (i = 0; i < QUEUES && s->queues[i].q; i++)
		;
	if (i == QUEUES || !p)
		return 0;
	q = &s->queues[i];
	memset(q, 0, sizeof(*q));
	q->part = (uint32_t)(p - s->parts);
	err = buffer_create(s, p, STATE_BYTES, &q->state);
	if (!err)
		err = buffer_create(s, p, BUFFER_BYTES, &q->buf);
	if (err == -ENOSPC)
		return buffer_destroy(s, p, STATE_BYTES, &q->state);
	if (err)
		return err;
	SIM_OK(hal_buffer_write(q->state, 0, zero, STATE_BYTES));
	d.priority = (int32_t)sim_random(s, 3) - 1;
	d.service_class = (uint16_t)sim_random(s, HAL_CLASS_BEST_EFFORT + 1);
	if (d.service_class == HAL_CLASS_BEST_EFFORT)
		s->stops = true;
	else
		d.deadline_ns = sim_random(s, 2) * 5000;
	SIM_OK(hal_timeline_create(s->dev, &q->line));
	p->queues++;
	err = hal_queue_create(p->p, &d, &q->q);
	if (err) {
		q->q = NULL;
		SIM_ANSWER(err == -ENOMEM && s->injected);
		return queue_gone(s, q);
	}
	return 0;
}

/* Somebody may still wait for what this queue's line or timeline will reach. */
static int queue_destroy(struct sim *s)
{
	struct sim_queue *q = random_queue(s);
	struct hal_timeline *line;
	int err;

	if (!q)
		return 0;
	line = q->line;
	/* The line first: it tells whether others wait. */
	err = hal_timeline_destroy(line);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || err == -EBUSY);
	if (err)
		return 0;
	SIM_OK(hal_timeline_create(s->dev, &q->line));
	q->line_value = q->line_seen = 0;
	err = hal_queue_destroy(q->q);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || err == -EBUSY);
	/* What is left in a suspended one is dropped. */
	q->tainted |= !err && q->suspended;
	return err ? 0 : queue_gone(s, q);
}

static int queue_suspend(struct sim *s)
{
	struct sim_queue *q = random_queue(s);
	static const uint32_t modes[] = {HAL_SUSPEND_DRAIN, HAL_SUSPEND_KILL,
					 HAL_SUSPEND_FOLD};
	uint32_t fold = s->info.suspend_modes >> HAL_SUSPEND_FOLD & 1;
	uint32_t mode = modes[sim_random(s, 2 + fold)];
	struct hal_point quiet = {0};
	int err;

	if (!q)
		return 0;
	err = hal_queue_suspend(q->q, mode, &quiet);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (q->suspended) {
		SIM_ANSWER(err == -EBUSY);
		return 0;
	}
	/* Not replayable, or not in this device's modes; or the resume of the one before
	 * has not happened yet, or the policy has stopped it. */
	SIM_ANSWER(!err || err == -ENOTSUP ||
		   (err == -EBUSY && (!reached(q->quiet) || s->stops)));
	if (err)
		return 0;
	q->suspended = true;
	q->quiet = quiet;
	if (sim_random(s, 2)) {
		struct hal_stats before = HAL_INIT(hal_stats), t = before;
		uint64_t worst_ns = s->info.suspend_worst_ns[mode];

		SIM_OK(hal_queue_get_stats(q->q, &before));
		SIM_OK(sim_wait(quiet));
		SIM_OK(hal_queue_get_stats(q->q, &t));
		sim_mix(s, t.suspend_ns);
		SIM_CHECK(worst_ns == 0 || t.suspend_ns - before.suspend_ns <= worst_ns);
	}
	return 0;
}

static int queue_resume(struct sim *s)
{
	struct sim_queue *q = random_queue(s);
	int err;

	if (!q)
		return 0;
	err = hal_queue_resume(q->q);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(err == (q->suspended ? 0 : -EINVAL) || (!err && s->stops));
	q->suspended = false;
	return 0;
}

/* ---- work ------------------------------------------------------------------------- */

static void host_fn(void *user)
{
	struct sim_item *item = user;
	struct sim *s = item->s;

	if (item->q->host_done != item->sequence)
		sim_fail(s, __FILE__, __LINE__, "callback %" PRIu64 " after %" PRIu64,
			 item->sequence, item->q->host_done);
	item->q->host_done++;
	sim_mix(s, item->sequence);
}

struct work {
	struct hal_cmd cmds[6];
	struct hal_arg args[6][3];
	struct hal_point waits[3], signals[1];
	uint32_t n, wait_count, signal_count;
	uint32_t device, steps, hosts;
	bool bad, taint;
};

static void add_step(struct sim *s, struct sim_queue *q, struct work *w)
{
	struct hal_arg *a = w->args[w->n];

	if (!s->step_kernel) {
		a[0] = (struct hal_arg){q->buf, 0, CONF_COPY_BYTES};
		a[1] = (struct hal_arg){q->buf, CONF_COPY_BYTES, CONF_COPY_BYTES};
		w->cmds[w->n] = hal_cmd_launch(s->copy, a, 2);
	} else {
		a[0] = (struct hal_arg){q->state, 0, STATE_BYTES};
		a[1] = (struct hal_arg){.offset = q->steps + w->steps++};
		a[2] = (struct hal_arg){.offset = 1 + sim_random(s, 20000)};
		w->cmds[w->n] = hal_cmd_launch(s->step_kernel, a, 3);
	}
	/* An effect at the very end, so that dropping it in the middle is safe. */
	if (sim_random(s, 4))
		w->cmds[w->n].flags |= HAL_CMD_REPLAYABLE;
	w->device++;
}

static void add_bad(struct sim *s, struct sim_queue *q, struct work *w)
{
	w->args[w->n][0] = (struct hal_arg){q->state, 0, STATE_BYTES};
	w->cmds[w->n] = hal_cmd_launch(s->bad_kernel, w->args[w->n], 1);
	w->device++;
	w->bad = true;
}

static int add_host(struct sim *s, struct sim_queue *q, struct work *w)
{
	struct sim_item *item = calloc(1, sizeof(*item));

	SIM_CHECK(item);
	item->next = s->items;
	item->s = s;
	item->q = q;
	item->sequence = q->host_submitted + w->hosts++;
	s->items = item;
	w->cmds[w->n] = hal_cmd_host(host_fn, item);
	return 0;
}

static int add_command(struct sim *s, struct sim_queue *q, struct work *w)
{
	uint64_t at = 4 * sim_random(s, BUFFER_BYTES / 16);
	uint64_t bytes = 4 * (1 + sim_random(s, BUFFER_BYTES / 16));

	switch (sim_random(s, 12)) {
	case 0:
	case 1:
	case 2:
	case 3:
		add_step(s, q, w);
		break;
	case 4:
	case 5:
		w->cmds[w->n] = hal_cmd_fill(q->buf, at, bytes, (uint32_t)at);
		w->device++;
		break;
	case 6:
		w->cmds[w->n] =
			hal_cmd_copy(q->buf, BUFFER_BYTES / 2 + at, q->buf, at, bytes);
		w->device++;
		break;
	case 7:
	case 8:
		if (add_host(s, q, w))
			return -1;
		break;
	case 9:
		w->cmds[w->n] = hal_cmd_barrier();
		break;
	case 10:
		w->cmds[w->n] = hal_cmd_timestamp(q->buf, at / 2 * 2 & ~UINT64_C(7));
		w->device++;
		break;
	default:
		if (sim_random(s, 16) == 0)
			add_bad(s, q, w);
		else
			add_step(s, q, w);
	}
	w->n++;
	return 0;
}

/* Waits for what is already submitted, or for a gate the host opens: no cycles. */
static void add_waits(struct sim *s, struct work *w)
{
	uint64_t kind = sim_random(s, 6);
	struct sim_queue *q;

	if (kind == 0) {
		uint32_t g = (uint32_t)sim_random(s, GATES);

		s->gate_waited[g] = s->gate_value[g] + 1;
		w->waits[w->wait_count++] =
			(struct hal_point){s->gates[g], s->gate_waited[g]};
	}
	if (kind > 2)
		return;
	q = random_queue(s);
	if (!q)
		return;
	w->taint = q->tainted;
	if (kind == 1 && q->line_value)
		w->waits[w->wait_count++] =
			(struct hal_point){q->line, 1 + sim_random(s, q->line_value)};
	else if (q->submissions)
		w->waits[w->wait_count++] = (struct hal_point){
			hal_queue_timeline(q->q), 1 + sim_random(s, q->submissions)};
}

static int queue_submit(struct sim *s)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct sim_queue *q = random_queue(s);
	struct hal_point point = {0};
	struct work w;
	uint64_t n;
	int err;

	if (!q || !q->buf)
		return 0;
	memset(&w, 0, sizeof(w));
	add_waits(s, &w);
	for (n = sim_random(s, 5); n; n--)
		if (add_command(s, q, &w))
			return -1;
	if (sim_random(s, 3) == 0) {
		w.signals[0] = (struct hal_point){q->line, q->line_value + 1};
		w.signal_count = 1;
	}
	d.cmds = w.cmds;
	d.cmd_count = w.n;
	d.waits = w.waits;
	d.wait_count = w.wait_count;
	d.signals = w.signals;
	d.signal_count = w.signal_count;
	err = hal_submit(q->q, &d, &point);
	if (s->verbose) {
		uint32_t i;

		printf("    queue %d of partition %u, submission %" PRIu64
		       ": %u commands, "
		       "%d",
		       (int)(q - s->queues), q->part, q->submissions + 1, w.n, err);
		for (i = 0; i < w.n; i++)
			printf(" op %u", w.cmds[i].op);
		for (i = 0; i < w.wait_count; i++)
			printf(" waits %p %" PRIu64, (void *)w.waits[i].timeline,
			       w.waits[i].value);
		printf("; own %p line %p\n", (void *)hal_queue_timeline(q->q),
		       (void *)q->line);
	}
	sim_mix(s, (uint64_t)(int64_t)err);
	/* A program's constants may not fit into what is left of the quota. */
	if (err == -ENOSPC && !s->ref)
		return 0;
	if (err) {
		SIM_ANSWER(err == -EAGAIN ||
			   (q->tainted && (err == -EIO || err == -ECANCELED)));
		return 0;
	}
	q->submissions++;
	SIM_CHECK(point.value == q->submissions);
	/* Nothing at all is a barrier, which counts. */
	q->commands += w.n + w.wait_count + w.signal_count ? w.n : 1;
	q->device_commands += w.device;
	q->steps += w.steps;
	q->host_submitted += w.hosts;
	q->line_value += w.signal_count;
	q->tainted |= w.bad || w.taint;
	/* The work keeps its buffer alive. */
	if (sim_random(s, 8) == 0) {
		struct sim_part *p = &s->parts[q->part];

		SIM_OK(buffer_destroy(s, p, BUFFER_BYTES, &q->buf));
		err = buffer_create(s, p, BUFFER_BYTES, &q->buf);
		return err == -ENOSPC ? 0 : err;
	}
	return 0;
}

static int new_buffer(struct sim *s)
{
	struct sim_queue *q = random_queue(s);
	int err;

	if (!q || q->buf)
		return 0;
	err = buffer_create(s, &s->parts[q->part], BUFFER_BYTES, &q->buf);
	return err == -ENOSPC ? 0 : err;
}

/* ---- time ------------------------------------------------------------------------- */

static int poll_device(struct sim *s)
{
	uint64_t before = hal_device_now(s->dev), ns = sim_random(s, 4000), now;
	int n = hal_device_poll(s->dev, ns);

	SIM_CHECK(n >= 0);
	/* The NPU's clock runs while its registers are accessed: what begins or ends in
	 * the last moment takes the poll a little past its end. */
	now = hal_device_now(s->dev);
	if (now > before + ns + (s->ref ? 0 : REGISTER_NS))
		return sim_fail(s, __FILE__, __LINE__,
				"polled %" PRIu64 " ns for %" PRIu64, now - before, ns);
	sim_mix(s, (uint64_t)n);
	return 0;
}

static int wait_for_queue(struct sim *s)
{
	struct sim_queue *q = random_queue(s);
	struct hal_point p;
	int err;

	if (!q || !q->submissions)
		return 0;
	p = (struct hal_point){hal_queue_timeline(q->q),
			       1 + sim_random(s, q->submissions)};
	if (sim_random(s, 2)) {
		err = hal_wait(&p, 1, 0, 0);
		SIM_ANSWER(!err || err == -ETIMEDOUT || q->tainted);
	} else {
		/* Suspended, or behind a gate or another's suspend. */
		err = sim_wait(p);
		SIM_ANSWER(!err || err == -EDEADLK || q->tainted);
	}
	sim_mix(s, (uint64_t)(int64_t)err);
	if (!err)
		SIM_CHECK(hal_timeline_value(p.timeline, NULL) >= p.value);
	return 0;
}

static int open_gate(struct sim *s)
{
	uint32_t g = (uint32_t)sim_random(s, GATES);

	SIM_OK(hal_timeline_signal(s->gates[g], ++s->gate_value[g]));
	SIM_CHECK(hal_timeline_value(s->gates[g], NULL) == s->gate_value[g]);
	return 0;
}

/* One creation that the device fails. */
static int inject(struct sim *s)
{
	static const struct {
		uint32_t op;
		int (*fn)(struct sim *s);
	} what[] = {{HAL_REF_OP_PARTITION_CREATE, part_create},
		    {HAL_REF_OP_QUEUE_CREATE, queue_create},
		    {HAL_REF_OP_MEM_ALLOC, queue_create},
		    {HAL_REF_OP_MEM_ALLOC, new_buffer}};
	uint64_t k = sim_random(s, 4), nth = 1 + sim_random(s, 2);
	int err;

	if (!s->ref)
		return 0;
	SIM_OK(s->ref->inject(hal_device_native(s->dev), what[k].op, nth, ENOMEM));
	s->injected = true;
	err = what[k].fn(s);
	s->injected = false;
	SIM_OK(s->ref->inject(hal_device_native(s->dev), what[k].op, 0, 0));
	return err;
}

static const struct {
	const char *name;
	int (*fn)(struct sim *s);
	uint32_t weight;
} operations[] = {
	{"part_create", part_create, 6},
	{"part_destroy", part_destroy, 2},
	{"part_resize", part_resize, 3},
	{"queue_create", queue_create, 8},
	{"queue_destroy", queue_destroy, 4},
	{"queue_suspend", queue_suspend, 10},
	{"queue_resume", queue_resume, 12},
	{"submit", queue_submit, 40},
	{"new_buffer", new_buffer, 3},
	{"poll", poll_device, 25},
	{"wait", wait_for_queue, 8},
	{"open_gate", open_gate, 5},
	{"inject", inject, 3},
	{"policy", random_policy, 1},
};

int sim_do(struct sim *s)
{
	uint32_t n = sizeof(operations) / sizeof(operations[0]), i, all = 0;
	uint64_t pick;
	int err;

	for (i = 0; i < n; i++)
		all += operations[i].weight;
	pick = sim_random(s, all);
	for (i = 0; pick >= operations[i].weight; i++)
		pick -= operations[i].weight;
	if (s->verbose)
		printf("  step %u at %" PRIu64 ": %s\n", s->step, s->now,
		       operations[i].name);
	sim_mix(s, i);
	err = operations[i].fn(s);
	return err ? err : sim_check(s);
}

/* ---- end -------------------------------------------------------------------------- */

int sim_end(struct sim *s)
{
	uint32_t i;

	if (check_policy(s))
		return -1;

	for (i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];

		if (q->q && q->suspended) {
			SIM_OK(hal_queue_resume(q->q));
			q->suspended = false;
		}
	}
	for (i = 0; i < GATES; i++)
		if (s->gate_waited[i] > s->gate_value[i])
			SIM_OK(hal_timeline_signal(s->gates[i], s->gate_waited[i]));
	for (i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];

		if (!q->q || !q->submissions)
			continue;
		if (q->tainted)
			(void)sim_wait((struct hal_point){hal_queue_timeline(q->q),
							  q->submissions});
		else
			SIM_OK(sim_wait((struct hal_point){hal_queue_timeline(q->q),
							   q->submissions}));
	}
	/* What was dropped may be told of a moment after the error was. */
	SIM_CHECK(hal_device_poll(s->dev, 1000000000) >= 0);
	if (sim_check(s) || sim_check_ended(s))
		return -1;
	for (i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];

		if (!q->q)
			continue;
		SIM_OK(hal_queue_destroy(q->q));
		if (queue_gone(s, q))
			return -1;
	}
	/* Guests before their hosts. */
	for (i = 0; i < 2 * PARTS; i++) {
		struct hal_partition_info info = HAL_INIT(hal_partition_info);
		struct sim_part *p = &s->parts[i % PARTS];

		if (!p->p || (i < PARTS && !p->host))
			continue;
		SIM_OK(hal_partition_get_info(p->p, &info));
		SIM_CHECK(info.memory_used == 0 || !s->ref);
		SIM_OK(hal_partition_destroy(p->p));
		forget_part(s, p);
	}
	for (i = 0; i < GATES; i++) {
		SIM_OK(hal_timeline_destroy(s->gates[i]));
		s->gates[i] = NULL;
	}
	SIM_OK(hal_program_unload(s->prog));
	s->prog = NULL;
	SIM_OK(hal_close(s->dev));
	s->dev = NULL;
	return 0;
}

void sim_abandon(struct sim *s)
{
	while (s->items) {
		struct sim_item *next = s->items->next;

		free(s->items);
		s->items = next;
	}
	free(s->running);
	s->running = NULL;
}
