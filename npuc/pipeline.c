/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - halrun's runs of a program.  Each run in flight is a slot with inputs and
 * outputs of its own; slots take turns. */
#include "pipeline.h"

#include <math.h>
#include <time.h>

#include "tool.h"

struct slot {
	struct npuc_run *run;
	uint64_t image;     /* in the inputs; UINT64_MAX: none yet */
	uint64_t launch;    /* the last one's number */
	uint64_t submit_ns; /* its wall time */
	struct hal_point done;
	bool busy;
};

struct pipeline {
	const struct pipeline_desc *desc;
	struct fed *in;
	struct result *r;
	struct slot slots[PIPELINE_MAX];
	uint64_t busy_ns; /* of the queue, when the last run ended */
	/* The image that was written last, and the random numbers before it: other slots
	 * get the same bytes. */
	uint64_t image, random;
};

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int busy_ns(const struct pipeline *p, uint64_t *ns)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	if (hal_queue_get_stats(npuc_run_queue(p->slots[0].run), &s) < 0)
		return tool_fail("%s", hal_last_error());
	*ns = s.busy_ns;
	return 0;
}

/* The first launches warm up, with the first image. */
static uint64_t image_of(const struct pipeline *p, uint64_t launch)
{
	return launch < p->desc->warm_up ? 0
					 : (launch - p->desc->warm_up) / p->desc->repeat;
}

static bool last_of_image(const struct pipeline *p, uint64_t launch)
{
	return launch >= p->desc->warm_up &&
	       (launch - p->desc->warm_up) % p->desc->repeat == p->desc->repeat - 1;
}

static int give(struct pipeline *p, struct slot *s, uint64_t image)
{
	if (s->image == image)
		return 0;
	if (p->image != image)
		p->random = p->in->state;
	p->in->state = p->random;
	p->image = image;
	s->image = image;
	return feed_write(p->in, p->r->program, s->run, image);
}

static void count(struct pipeline *p, const struct slot *s, uint64_t busy)
{
	struct result *r = p->r;

	r->wall_ns[r->runs] = wall_ns() - s->submit_ns;
	r->cycles[r->runs] = (uint64_t)llround((double)(busy - p->busy_ns) *
					       (double)r->device->clock_hz / 1e9);
	r->runs++;
}

/* Wait until the slot's run has ended, and take what it gave. */
static int finish(struct pipeline *p, struct slot *s)
{
	uint64_t busy = p->busy_ns;

	if (!s->busy)
		return 0;
	s->busy = false;
	if (hal_wait(&s->done, 1, 0, HAL_FOREVER) < 0)
		return tool_fail("%s", hal_last_error());
	if (busy_ns(p, &busy))
		return TOOL_FAILED;
	if (s->launch >= p->desc->warm_up)
		count(p, s, busy);
	p->busy_ns = busy;
	return last_of_image(p, s->launch) ? result_read(p->r, s->run, s->image) : 0;
}

static int launch(struct pipeline *p, struct slot *s, uint64_t number)
{
	char why[NPUC_WHY];
	int rc = finish(p, s);

	if (!rc)
		rc = give(p, s, image_of(p, number));
	if (rc)
		return rc;
	s->launch = number;
	s->submit_ns = wall_ns();
	if (npuc_run_submit(s->run, "run", NULL, &s->done, why))
		return tool_fail("%s", why);
	s->busy = true;
	return 0;
}

static int open_slots(struct pipeline *p, struct npuc_run *run)
{
	char why[NPUC_WHY];

	p->slots[0].run = run;
	for (uint32_t i = 0; i < p->desc->in_flight; i++) {
		if (i && npuc_run_open_beside(run, &p->slots[i].run, why))
			return tool_fail("run %u of %u in flight: %s", i + 1,
					 p->desc->in_flight, why);
		p->slots[i].image = UINT64_MAX;
	}
	return busy_ns(p, &p->busy_ns);
}

/* After an error runs may be in flight: their queue's end cancels them. */
static void close_slots(struct pipeline *p)
{
	for (uint32_t i = p->desc->in_flight; i-- > 1;)
		(void)npuc_run_close(p->slots[i].run);
}

int pipeline_run(const struct pipeline_desc *desc, struct fed *in, struct npuc_run *run,
		 struct result *r)
{
	struct pipeline p = {.desc = desc, .in = in, .r = r, .image = UINT64_MAX};
	uint64_t total = desc->warm_up + in->images * desc->repeat;
	uint32_t n = desc->in_flight;
	int rc = result_open(r, in->images, in->images * desc->repeat);

	r->in_flight = n;
	if (!rc)
		rc = open_slots(&p, run);
	for (uint64_t i = 0; !rc && i < total; i++)
		rc = launch(&p, &p.slots[i % n], i);
	for (uint64_t i = total; !rc && i < total + n; i++)
		rc = finish(&p, &p.slots[i % n]);
	close_slots(&p);
	if (!rc)
		result_sort(r);
	return rc;
}
