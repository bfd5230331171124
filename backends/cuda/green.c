/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: the multiprocessors are split once, into as many equal groups as the
 * driver can make, and these are the units.  A context is made of the groups of a
 * partition, all of that one split, as the driver demands.  Making one takes about a
 * millisecond, so the one that a partition leaves is kept for the next partition that
 * lies there; of those, the ones that were left last, so that there is a limit.
 *
 * What is over and makes no group, and as many groups as the option remainder says, are
 * one context for work that is in no partition.
 *
 * What the driver says is not believed: at open a kernel runs in each unit and writes
 * down on which multiprocessors it was.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST 256u
#define IDLE_MORE   8u /* contexts that no partition has, besides one a unit */

struct cu_green_context {
	struct cu_green_context *next;
	uint32_t first, count;
	uint32_t users; /* partitions, and what hangs in it */
	void *handle;
};

struct cu_green {
	struct cu_resource *groups; /* of .all, then what is over; constant once it is
				     * open, as what follows */
	uint32_t all, units, per;   /* groups, those for partitions, multiprocessors */
	uint32_t over;              /* multiprocessors in no group */
	void *remainder;            /* a context in .pool; NULL: none */
	/* Held while a context is made or destroyed, which may wait for the device: by
	 * who makes a queue, never by the engine's thread with a real clock. */
	pthread_mutex_t making;
	pthread_mutex_t lock;          /* of .pool, held for as long as a look takes */
	struct cu_green_context *pool; /* the one that was left last first */
};

/* ---- the split --------------------------------------------------------------------------- */

/* The groups, and behind them what is over; .count of that may be 0. */
static int split(int device, struct cu_resource **groups, uint32_t *count, uint32_t *per)
{
	struct cu_resource whole, rest, *parts;
	uint32_t n = 0, i;
	int err;

	if (!cu.cuDeviceGetDevResource || !cu.cuDevSmResourceSplitByCount ||
	    !cu.cuDevResourceGenerateDesc || !cu.cuGreenCtxCreate ||
	    !cu.cuGreenCtxDestroy || !cu.cuGreenCtxStreamCreate)
		return cu_host->fail(
			ENOTSUP, "cuda: partitions=green: the driver has no green "
				 "contexts with streams; CUDA 12.5 or later is needed");
	memset(&whole, 0, sizeof(whole));
	memset(&rest, 0, sizeof(rest));
	err = CU(NULL, cuDeviceGetDevResource, device, &whole, CU_RESOURCE_SM);
	if (!err)
		err = CU(NULL, cuDevSmResourceSplitByCount, NULL, &n, &whole, NULL, 0,
			 whole.least);
	if (err)
		return err;
	if (!n || n > GROUPS_MOST)
		return cu_host->fail(ENOTSUP,
				     "cuda: partitions=green: cannot use %u groups of %u "
				     "multiprocessors",
				     n, whole.least);
	parts = calloc(n + 1, sizeof(*parts));
	if (!parts)
		return cu_host->fail(ENOMEM, "cuda: no memory for %u groups", n);
	err = CU(NULL, cuDevSmResourceSplitByCount, parts, &n, &whole, &rest, 0,
		 whole.least);
	for (i = 1; !err && i < n; i++)
		if (parts[i].count != parts[0].count)
			err = cu_host->fail(ENOTSUP,
					    "cuda: partitions=green: groups have "
					    "different sizes, %u and %u multiprocessors",
					    parts[0].count, parts[i].count);
	if (err) {
		free(parts);
		return err;
	}
	parts[n] = rest;
	*groups = parts;
	*count = n;
	*per = parts[0].count;
	return 0;
}

int cu_green_count(int device, uint32_t *units)
{
	struct cu_resource *groups = NULL;
	uint32_t per;
	int err = split(device, &groups, units, &per);

	if (!err)
		free(groups);
	return err;
}

uint32_t cu_green_units(const struct cu_device *dev)
{
	return dev->green->units;
}

uint32_t cu_green_per(const struct cu_device *dev)
{
	return dev->green->per;
}

void *cu_green_remainder(const struct cu_device *dev)
{
	return dev->green->remainder;
}

/* ---- contexts ---------------------------------------------------------------------------- */

static void add(struct cu_green *g, struct cu_green_context *c)
{
	pthread_mutex_lock(&g->lock);
	c->next = g->pool;
	g->pool = c;
	pthread_mutex_unlock(&g->lock);
}

/* Take a context that no partition has out of the pool, the one that was left longest
 * ago, if there is no place for one more. */
static struct cu_green_context *surplus(struct cu_green *g)
{
	struct cu_green_context **at, **oldest = NULL, *c = NULL;
	uint32_t idle = 0;

	pthread_mutex_lock(&g->lock);
	for (at = &g->pool; *at; at = &(*at)->next)
		if (!(*at)->users && ++idle >= g->units + IDLE_MORE)
			oldest = at;
	if (oldest) {
		c = *oldest;
		*oldest = c->next;
	}
	pthread_mutex_unlock(&g->lock);
	return c;
}

/* Destroy contexts until there is a free place for one more. */
static void evict(struct cu_device *dev)
{
	struct cu_green_context *c;

	while ((c = surplus(dev->green))) {
		if (CU(dev, cuGreenCtxDestroy, c->handle)) {
			add(dev->green, c); /* the next call tries again */
			return;
		}
		free(c);
	}
}

/* Make a context of those groups, which its first user has. */
static int make_context(struct cu_device *dev, uint32_t first, uint32_t count,
			struct cu_green_context **made)
{
	struct cu_green_context *c = calloc(1, sizeof(*c));
	struct cu_green *g = dev->green;
	void *desc = NULL;
	int err;

	if (!c)
		return cu_host->fail(ENOMEM, "cuda: no memory for a green context");
	err = CU(dev, cuDevResourceGenerateDesc, &desc, &g->groups[first], count);
	if (!err)
		err = CU(dev, cuGreenCtxCreate, &c->handle, desc, dev->shape.device,
			 CU_GREEN_DEFAULT_STREAM);
	if (err) {
		free(c);
		if (cu_refused.result == CUR_NOT_SUPPORTED && cu_mask_hooked())
			err = cu_host->fail(
				ENOTSUP,
				"cuda:%u: the driver creates no green contexts in a "
				"process that has used partitions=mask",
				dev->index);
		return err;
	}
	c->first = first;
	c->count = count;
	c->users = 1;
	add(g, c);
	*made = c;
	return 0;
}

/* Find the context of those groups, for one user more. */
static struct cu_green_context *find(struct cu_green *g, uint32_t first, uint32_t count)
{
	struct cu_green_context *c;

	pthread_mutex_lock(&g->lock);
	for (c = g->pool; c && (c->first != first || c->count != count); c = c->next)
		;
	if (c)
		c->users++;
	pthread_mutex_unlock(&g->lock);
	return c;
}

int cu_green_take(struct cu_device *dev, uint32_t first, uint32_t count, void **green)
{
	struct cu_green *g = dev->green;
	struct cu_green_context *c = NULL;
	int err = 0;

	pthread_mutex_lock(&g->making);
	if (!*green)
		c = find(g, first, count);
	if (!*green && !c) {
		evict(dev);
		err = make_context(dev, first, count, &c);
	}
	if (c)
		*green = c->handle;
	pthread_mutex_unlock(&g->making);
	return err;
}

void cu_green_leave(struct cu_device *dev, void *green)
{
	struct cu_green *g = dev->green;
	struct cu_green_context **at, *c;

	pthread_mutex_lock(&g->lock);
	for (at = &g->pool; (*at)->handle != green; at = &(*at)->next)
		;
	c = *at;
	*at = c->next;
	c->next = g->pool;
	g->pool = c;
	c->users--;
	pthread_mutex_unlock(&g->lock);
}

/* Return whether the driver makes no context of what is over, as too few
 * multiprocessors. */
static bool refused(void)
{
	return cu_refused.result == CUR_INVALID_VALUE ||
	       cu_refused.result == CUR_INVALID_RESOURCE_TYPE ||
	       cu_refused.result == CUR_INVALID_RESOURCE_CONFIGURATION;
}

/* Make the context of all that is behind the partitions' groups, if there is any. */
static int make_remainder(struct cu_device *dev)
{
	struct cu_green *g = dev->green;
	struct cu_green_context *c = NULL;
	uint32_t count = g->all - g->units + (g->over != 0);
	int err = count ? make_context(dev, g->units, count, &c) : 0;

	if (err && g->over && refused()) {
		g->over = 0;
		err = --count ? make_context(dev, g->units, count, &c) : 0;
	}
	g->remainder = c ? c->handle : NULL;
	return err;
}

/* After a loss they are the process's end's. */
void cu_green_close(struct cu_device *dev)
{
	struct cu_green *g = dev->green;
	struct cu_green_context *c;

	if (!g)
		return;
	while ((c = g->pool)) {
		g->pool = c->next;
		if (!atomic_load(&dev->base.lost) && cu.cuGreenCtxDestroy(c->handle))
			(void)cu.cuGreenCtxDestroy(c->handle);
		free(c);
	}
	pthread_mutex_destroy(&g->lock);
	pthread_mutex_destroy(&g->making);
	free(g->groups);
	free(g);
	dev->green = NULL;
}

/* ---- where kernels really run ------------------------------------------------------------ */

/* As many multiprocessors as it has, and none of another one's. */
static int judge(struct cu_device *dev, const char *what, uint32_t want, const bool *ran,
		 bool *taken)
{
	uint32_t i, own = 0, strange = 0;

	for (i = 0; i < CU_SM_MOST; i++) {
		own += ran[i] && !taken[i];
		strange += ran[i] && taken[i];
		taken[i] |= ran[i];
	}
	if (own == want && !strange)
		return 0;
	return cu_host->fail(
		ENOTSUP,
		"cuda:%u: partitions=green: in the trial, %s ran on %u "
		"multiprocessors of its own instead of %u, and on %u of other units",
		dev->index, what, own, want, strange);
}

static int run_on(struct cu_device *dev, struct cu_trial *t, void *green,
		  const char *what, uint32_t multiprocessors, bool *taken)
{
	bool ran[CU_SM_MOST];
	void *stream = NULL;
	int again = 0, err;

	err = CU(dev, cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING,
		 dev->greatest_priority);
	if (err)
		return err;
	err = cu_trial_run(dev, t, stream, multiprocessors, ran);
	if (!err)
		err = judge(dev, what, multiprocessors, ran, taken);
	cu_give_back(dev, CU_KIND_STREAM, stream, &again);
	return err ? err : again;
}

static int run_in(struct cu_device *dev, struct cu_trial *t, uint32_t unit, bool *taken)
{
	char what[24];
	void *green = NULL;
	int err = cu_green_take(dev, unit, 1, &green);

	if (err)
		return err;
	snprintf(what, sizeof(what), "unit %u", unit);
	err = run_on(dev, t, green, what, dev->green->per, taken);
	cu_green_leave(dev, green);
	return err;
}

/* Multiprocessors of the context that no partition has. */
static uint32_t left_over(const struct cu_green *g)
{
	return (g->all - g->units) * g->per + g->over;
}

static int try_out(struct cu_device *dev)
{
	struct cu_trial *t = NULL;
	bool taken[CU_SM_MOST] = {false};
	const struct cu_green *g = dev->green;
	const uint32_t rest = left_over(g), most = rest > g->per ? rest : g->per;
	int again = 0, err = cu_trial_open(dev, most, &t);
	uint32_t i;

	for (i = 0; !err && i < g->units; i++)
		err = run_in(dev, t, i, taken);
	if (!err && g->remainder)
		err = run_on(dev, t, g->remainder, "what no partition has", rest, taken);
	cu_trial_close(dev, t, &again);
	return err ? err : again;
}

static int compare(const struct cu_device *dev, const struct cu_tried *tried)
{
	if (dev->green->all == tried->units && dev->green->per == tried->per)
		return 0;
	return cu_host->fail(ENOTSUP,
			     "cuda:%u: partitions=green: the device has %u units of %u "
			     "multiprocessors, but the stored trial found %u of %u",
			     dev->index, dev->green->all, dev->green->per, tried->units,
			     tried->per);
}

/* Split the device, and set some of it apart. */
static int divide(struct cu_device *dev)
{
	struct cu_green *g = dev->green;
	int err = split(dev->shape.device, &g->groups, &g->all, &g->per);

	if (err)
		return err;
	err = cu_check_remainder(dev, g->all);
	if (err)
		return err;
	g->units = g->all - dev->opt.remainder;
	g->over = g->groups[g->all].count;
	return make_remainder(dev);
}

int cu_green_open(struct cu_device *dev, const struct cu_tried *tried)
{
	int err;

	dev->green = calloc(1, sizeof(*dev->green));
	if (!dev->green)
		return cu_host->fail(ENOMEM, "cuda: no memory for green contexts");
	(void)pthread_mutex_init(&dev->green->lock, NULL);
	(void)pthread_mutex_init(&dev->green->making, NULL);
	err = divide(dev);
	if (!err)
		err = tried ? compare(dev, tried) : try_out(dev);
	cu_catch_up(dev);
	if (err)
		cu_green_close(dev);
	return err;
}
