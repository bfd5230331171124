/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of some of a device's CUs (hipGreenCtxCreate), from HIP 7.14 on: streams in
 * them have these CUs, as streams with a mask have, and a priority besides.
 *
 * Which CUs a group of the runtime's has it does not say, but the mask of a stream there
 * does (hipExtStreamGetCUMask).  So each group's is read at open.  Where the groups do
 * not make up each unit, or HIP has no contexts, streams have masks alone.  A context
 * must outlive its streams: it goes with the last one.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS       ROCM_MASK_WORDS
#define GROUPS_MOST 1024u

struct context {
	struct context *next;
	uint32_t mask[WORDS];
	void *handle;
	uint32_t streams;
};

struct tenant {
	struct tenant *next;
	const void *stream;
	struct context *context;
};

struct rocm_green {
	pthread_mutex_t lock; /* of the lists */
	struct context *contexts;
	struct tenant *tenants;
	uint32_t count; /* groups; constant, as these are */
	struct hip_resource *groups;
	uint32_t (*masks)[WORDS];
};

static bool is_within(const uint32_t *mask, const uint32_t *whole)
{
	uint32_t i = 0;

	while (i < WORDS && !(mask[i] & ~whole[i]))
		i++;
	return i == WORDS;
}

/* ---- contexts ---------------------------------------------------------------------- */

/* Make the context of all groups that lie in mask. */
static int make_context(struct rocm_device *dev, const uint32_t *mask, void **handle)
{
	const struct rocm_green *g = dev->green;
	struct hip_resource *parts = calloc(g->count, sizeof(*parts));
	uint32_t i, n = 0;
	void *desc = NULL;
	int err;

	if (!parts)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a context");
	for (i = 0; i < g->count; i++)
		if (is_within(g->masks[i], mask))
			parts[n++] = g->groups[i];
	err = HIP(dev, hipDevResourceGenerateDesc, &desc, parts, n);
	if (!err)
		err = HIP(dev, hipGreenCtxCreate, handle, desc, dev->shape.device, 0);
	free(parts);
	return err;
}

/* The context of mask, which is made if there is none.  The lock is held. */
static int find_context(struct rocm_device *dev, const uint32_t *mask,
			struct context **out)
{
	struct rocm_green *g = dev->green;
	struct context *c = g->contexts;
	int err;

	while (c && memcmp(c->mask, mask, sizeof(c->mask)) != 0)
		c = c->next;
	*out = c;
	if (c)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a context");
	err = make_context(dev, mask, &c->handle);
	if (err) {
		free(c);
		return err;
	}
	memcpy(c->mask, mask, sizeof(c->mask));
	c->next = g->contexts;
	g->contexts = *out = c;
	return 0;
}

/* The lock is held. */
static void drop_unused(struct rocm_device *dev)
{
	struct context **at = &dev->green->contexts, *c;

	while ((c = *at)) {
		if (c->streams) {
			at = &c->next;
			continue;
		}
		if (!atomic_load(&dev->base.lost) &&
		    HIP(dev, hipExecutionCtxDestroy, c->handle))
			return; /* the next one that goes tries again */
		*at = c->next;
		free(c);
	}
}

int rocm_green_stream(struct rocm_device *dev, const uint32_t *mask, int32_t priority,
		      void **stream)
{
	struct rocm_green *g = dev->green;
	struct tenant *t = calloc(1, sizeof(*t));
	struct context *c = NULL;
	int err;

	*stream = NULL;
	if (!t)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a stream");
	pthread_mutex_lock(&g->lock);
	err = find_context(dev, mask, &c);
	if (!err)
		err = HIP(dev, hipExecutionCtxStreamCreate, stream, c->handle,
			  HIP_STREAM_NON_BLOCKING, rocm_level(dev, priority));
	if (!err) {
		c->streams++;
		*t = (struct tenant){g->tenants, *stream, c};
		g->tenants = t;
	}
	if (err)
		drop_unused(dev);
	pthread_mutex_unlock(&g->lock);
	if (err) {
		free(t);
		*stream = NULL;
	}
	return err;
}

void rocm_green_leave(struct rocm_device *dev, const void *stream)
{
	struct tenant **at, *t;

	pthread_mutex_lock(&dev->green->lock);
	for (at = &dev->green->tenants; *at && (*at)->stream != stream; at = &(*at)->next)
		;
	t = *at;
	if (t) {
		*at = t->next;
		t->context->streams--;
		drop_unused(dev);
	}
	pthread_mutex_unlock(&dev->green->lock);
	free(t);
}

/* ---- open and close ---------------------------------------------------------------- */

/* Groups of as few CUs as there can be. */
static int split(struct rocm_device *dev, struct rocm_green *g)
{
	struct hip_resource whole;
	uint32_t n = 0;
	int err;

	memset(&whole, 0, sizeof(whole));
	err = HIP(dev, hipDeviceGetDevResource, dev->shape.device, &whole,
		  HIP_RESOURCE_CUS);
	if (!err)
		err = HIP(dev, hipDevSmResourceSplitByCount, NULL, &n, &whole, NULL, 0,
			  whole.together);
	if (err)
		return err;
	if (!n || n > GROUPS_MOST)
		return rocm_host->fail(ENOTSUP,
				       "rocm: HIP splits the device into %u groups", n);
	g->groups = calloc(n, sizeof(*g->groups));
	g->masks = calloc(n, sizeof(*g->masks));
	if (!g->groups || !g->masks)
		return rocm_host->fail(ENOMEM, "rocm: no memory for %u groups", n);
	g->count = n;
	return HIP(dev, hipDevSmResourceSplitByCount, g->groups, &g->count, &whole, NULL,
		   0, whole.together);
}

/* Read the mask of a stream in a context of group i. */
static int read_group(struct rocm_device *dev, struct rocm_green *g, uint32_t i)
{
	const uint32_t words = ((uint32_t)dev->shape.multiprocessors + 31) / 32;
	void *desc = NULL, *context = NULL, *stream = NULL;
	int err = HIP(dev, hipDevResourceGenerateDesc, &desc, &g->groups[i], 1), again;

	if (!err)
		err = HIP(dev, hipGreenCtxCreate, &context, desc, dev->shape.device, 0);
	if (err)
		return err;
	err = HIP(dev, hipExecutionCtxStreamCreate, &stream, context,
		  HIP_STREAM_NON_BLOCKING, dev->least_priority);
	if (!err) {
		err = HIP(dev, hipExtStreamGetCUMask, stream, words, g->masks[i]);
		again = HIP(dev, hipStreamDestroy, stream);
		err = err ? err : again;
	}
	again = HIP(dev, hipExecutionCtxDestroy, context);
	return err ? err : again;
}

/* Fail unless each unit is some of the groups, all in all. */
static int check_units(const struct rocm_device *dev, const struct rocm_green *g)
{
	uint32_t unit[WORDS], made[WORDS], i, k, w;

	for (i = 0; i < dev->units.count; i++) {
		rocm_topology_mask(&dev->units, i, 1, unit);
		memset(made, 0, sizeof(made));
		for (k = 0; k < g->count; k++)
			for (w = 0; is_within(g->masks[k], unit) && w < WORDS; w++)
				made[w] |= g->masks[k][w];
		if (memcmp(unit, made, sizeof(unit)) != 0)
			return rocm_host->fail(ENOTSUP,
					       "rocm: HIP's groups of CUs do not make up "
					       "unit %u",
					       i);
	}
	return 0;
}

static int fill(struct rocm_device *dev, struct rocm_green *g)
{
	int err = split(dev, g);
	uint32_t i;

	for (i = 0; !err && i < g->count; i++)
		err = read_group(dev, g, i);
	return err ? err : check_units(dev, g);
}

static void drop(struct rocm_green *g)
{
	pthread_mutex_destroy(&g->lock);
	free(g->groups);
	free(g->masks);
	free(g);
}

static bool is_there(void)
{
	return hip.hipDeviceGetDevResource && hip.hipDevSmResourceSplitByCount &&
	       hip.hipDevResourceGenerateDesc && hip.hipGreenCtxCreate &&
	       hip.hipExecutionCtxDestroy && hip.hipExecutionCtxStreamCreate;
}

int rocm_green_open(struct rocm_device *dev)
{
	struct rocm_green *g;
	int err;

	snprintf(dev->not_green, sizeof(dev->not_green),
		 "HIP has no contexts of some CUs (7.14)");
	if (!is_there())
		return 0;
	g = calloc(1, sizeof(*g));
	if (!g)
		return rocm_host->fail(ENOMEM, "rocm: no memory for contexts");
	(void)pthread_mutex_init(&g->lock, NULL);
	err = fill(dev, g);
	if (!err) {
		dev->green = g;
		return 0;
	}
	drop(g);
	snprintf(dev->not_green, sizeof(dev->not_green), "contexts of some CUs: %s (%d)",
		 strerrordesc_np(-err), -err);
	if (atomic_load(&dev->base.lost))
		return rocm_gone(dev);
	return err == -ENOMEM ? err : 0;
}

void rocm_green_close(struct rocm_device *dev)
{
	struct rocm_green *g = dev->green;
	struct context *c;
	struct tenant *t;

	if (!g)
		return;
	drop_unused(dev);
	while ((c = g->contexts)) {
		g->contexts = c->next;
		free(c);
	}
	while ((t = g->tenants)) {
		g->tenants = t->next;
		free(t);
	}
	drop(g);
	dev->green = NULL;
}
