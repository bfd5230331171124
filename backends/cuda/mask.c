/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of multiprocessors, of launches or of streams (stream_mask.c), and what their
 * bits stand for.
 *
 * At launch: the driver calls back before a launch's descriptor (QMD) goes to the
 * device, and there the partition's mask is put in.  The way in is an export table of the
 * driver's that its profiling tools use; nothing of it is documented, so all of it is
 * tried out at open, and what does not behave is refused.
 *
 * Which bit stands for which multiprocessors differs from device to device.  It is found
 * by taking one away at a time, so that there is always something left to run on.  Units
 * are counted by the lowest multiprocessor they have.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qmd.h"

#define SLOT_SUBSCRIBE ((size_t)3)
#define SLOT_ENABLE    ((size_t)6)
#define DOMAIN         0xb
#define BEFORE_UPLOAD  1
#define QMD_PARAM      4u /* of what is given to the callback, a word of 64 bits each */

typedef void (*callback_fn)(void *user, int domain, int id, const void *params);
typedef uint32_t (*subscribe_fn)(uint32_t *handle, callback_fn fn, void *user);
typedef uint32_t (*enable_fn)(uint32_t on, uint32_t handle, int domain, int id);

/* What the launch that this thread makes is to be kept off; NULL: it is not ours. */
struct pending {
	const uint32_t *mask;
	int major, minor;
	bool done;
};
static _Thread_local struct pending pending;

/* What launches of the program's own are kept off, of all devices: a launch does not say
 * which one it is for. */
static struct {
	atomic_bool on;
	pthread_mutex_t lock; /* of what follows */
	uint32_t mask[CU_QMD_WORDS];
	int major, minor;
} outside = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cu_mask_outside(const struct cu_device *dev, const uint32_t *mask)
{
	pthread_mutex_lock(&outside.lock);
	if (mask) {
		memcpy(outside.mask, mask, sizeof(outside.mask));
		outside.major = dev->shape.major;
		outside.minor = dev->shape.minor;
	}
	atomic_store(&outside.on, mask != NULL);
	pthread_mutex_unlock(&outside.lock);
}

static void keep_outside(void *qmd)
{
	pthread_mutex_lock(&outside.lock);
	if (atomic_load(&outside.on))
		(void)cu_qmd_disable(qmd, outside.major, outside.minor, outside.mask);
	pthread_mutex_unlock(&outside.lock);
}

static void before_upload(void *user, int domain, int id, const void *params)
{
	uint32_t bytes;
	void *qmd;

	(void)user;
	if (domain != DOMAIN || id != BEFORE_UPLOAD ||
	    (!pending.mask && !atomic_load(&outside.on)))
		return;
	memcpy(&bytes, params, sizeof(bytes));
	if (bytes < (QMD_PARAM + 1) * sizeof(void *))
		return;
	memcpy(&qmd, (const char *)params + QMD_PARAM * sizeof(void *), sizeof(qmd));
	if (qmd && !pending.mask)
		keep_outside(qmd);
	else if (qmd)
		pending.done =
			cu_qmd_disable(qmd, pending.major, pending.minor, pending.mask);
}

/* Once a process; there is no way back: from then on the driver makes no green contexts
 * (CUDA_ERROR_NOT_SUPPORTED), also when it is told to call back no more. */
static atomic_bool hooked;

static int find_hook(struct cu_device *dev)
{
	static const uint8_t name[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
					 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};
	const void *table = NULL;
	subscribe_fn subscribe;
	enable_fn enable;
	uint64_t bytes = 0;
	uint32_t handle = 0;
	int err = CU(dev, cuGetExportTable, &table, name);

	if (err)
		return err;
	memcpy(&bytes, table, sizeof(bytes));
	if (bytes < (SLOT_ENABLE + 1) * sizeof(void *))
		return cu_host->fail(ENOTSUP,
				     "cuda: partitions=mask: the driver's callback table "
				     "has only %u bytes",
				     (uint32_t)bytes);
	memcpy(&subscribe, (const char *)table + SLOT_SUBSCRIBE * 8, 8);
	memcpy(&enable, (const char *)table + SLOT_ENABLE * 8, 8);
	if (!subscribe || !enable)
		return cu_host->fail(ENOTSUP, "cuda: partitions=mask: the driver's "
					      "callback table lacks the entries needed");
	if (subscribe(&handle, before_upload, NULL) ||
	    enable(1, handle, DOMAIN, BEFORE_UPLOAD))
		return cu_host->fail(
			ENOTSUP,
			"cuda: partitions=mask: the driver refuses the callback");
	atomic_store(&hooked, true);
	return 0;
}

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;

/* The driver is called under it, so a fork does not wait for it. */
static void in_child(void)
{
	(void)pthread_mutex_init(&hook_lock, NULL);
	(void)pthread_mutex_init(&outside.lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

static int hook(struct cu_device *dev)
{
	int err;

	if (!cu.cuGetExportTable)
		return cu_host->fail(ENOTSUP, "cuda: partitions=mask: the driver has no "
					      "export tables");
	pthread_mutex_lock(&hook_lock);
	err = atomic_load(&hooked) ? 0 : find_hook(dev);
	pthread_mutex_unlock(&hook_lock);
	return err;
}

bool cu_mask_hooked(void)
{
	return atomic_load(&hooked);
}

void cu_mask_begin(const struct cu_device *dev, const uint32_t *mask)
{
	pending = (struct pending){
		.mask = mask, .major = dev->shape.major, .minor = dev->shape.minor};
}

bool cu_mask_end(void)
{
	const bool done = pending.done;

	pending.mask = NULL;
	return done;
}

/* ---- which bit is what ------------------------------------------------------------------ */

static int run_without(struct cu_device *dev, struct cu_trial *t, void *stream,
		       const uint32_t *mask, bool ran[CU_SM_MOST])
{
	int err;

	if (dev->mask->stream_at) {
		err = cu_stream_mask_set(dev, stream, mask, false);
		return err ? err
			   : cu_trial_run(dev, t, stream,
					  (uint32_t)dev->shape.multiprocessors, ran);
	}
	cu_mask_begin(dev, mask);
	err = cu_trial_run(dev, t, stream, (uint32_t)dev->shape.multiprocessors, ran);
	if (!cu_mask_end() && !err)
		err = cu_host->fail(
			ENOTSUP,
			"cuda:%u: partitions=mask: in the trial, the driver did not call "
			"back at launches, or its launch descriptors are unknown",
			dev->index);
	return err;
}

static int add_unit(struct cu_device *dev, uint32_t bit, uint32_t first, uint32_t lost)
{
	struct cu_mask *m = dev->mask;
	uint32_t i;

	if (!lost)
		return 0; /* nothing is there */
	if (lost > 2 || m->count == CU_UNITS_MOST)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: partitions=%s: in the trial, mask bit %u "
				     "excluded %u multiprocessors",
				     dev->index, cu_way_names[cu_way_of(dev)], bit, lost);
	for (i = m->count++; i && m->first[i - 1] > first; i--) {
		m->first[i] = m->first[i - 1];
		m->bit[i] = m->bit[i - 1];
	}
	m->first[i] = first;
	m->bit[i] = (uint8_t)bit;
	m->per = lost > m->per ? lost : m->per;
	return 0;
}

static int try_bits(struct cu_device *dev, struct cu_trial *t, void *stream)
{
	static const uint32_t none[CU_QMD_WORDS];
	bool all[CU_SM_MOST], ran[CU_SM_MOST], owned[CU_SM_MOST] = {false};
	uint32_t bit, i, first, lost, left = 0;
	int err = run_without(dev, t, stream, none, all);

	for (bit = 0; !err && bit < 32 * CU_QMD_WORDS; bit++) {
		uint32_t mask[CU_QMD_WORDS] = {0};

		mask[bit / 32] = 1u << bit % 32;
		err = run_without(dev, t, stream, mask, ran);
		/* Fewer bits than that: only in versions that are known. */
		if (err && bit >= 64 && dev->shape.major < 9 && dev->mask->count) {
			err = 0;
			break;
		}
		for (i = 0, first = lost = 0; !err && i < CU_SM_MOST; i++) {
			if (ran[i] && !all[i])
				err = cu_host->fail(
					ENOTSUP,
					"cuda:%u: partitions=%s: in the trial, "
					"multiprocessor %u was used only sometimes",
					dev->index, cu_way_names[cu_way_of(dev)], i);
			if (!all[i] || ran[i] || owned[i])
				continue;
			first = lost++ ? first : i;
			owned[i] = true;
		}
		if (!err)
			err = add_unit(dev, bit, first, lost);
	}
	for (i = 0; !err && i < CU_SM_MOST; i++)
		left += all[i] && !owned[i];
	if (!err && left)
		err = cu_host->fail(ENOTSUP,
				    "cuda:%u: partitions=%s: in the trial, %u "
				    "multiprocessors could not be masked",
				    dev->index, cu_way_names[cu_way_of(dev)], left);
	return err;
}

/* A stream; where masks are in streams it has to have none. */
static int make_stream(struct cu_device *dev, void **stream)
{
	static const uint32_t none[CU_QMD_WORDS];
	int err = CU(dev, cuStreamCreateWithPriority, stream, CU_STREAM_NON_BLOCKING,
		     dev->greatest_priority);

	if (err)
		*stream = NULL;
	else if (dev->mask->stream_at)
		err = cu_stream_mask_set(dev, *stream, none, true);
	return err;
}

static void drop_stream(struct cu_device *dev, void *stream, bool is_ours, int *err)
{
	if (stream && is_ours && dev->mask->stream_at)
		cu_stream_mask_clear(dev, stream);
	cu_give_back(dev, CU_KIND_STREAM, stream, err);
}

static int try_out(struct cu_device *dev)
{
	struct cu_trial *t = NULL;
	void *stream = NULL;
	bool ours = false;
	int again = 0;
	int err = cu_trial_open(dev, (uint32_t)dev->shape.multiprocessors, &t);

	if (!err)
		err = make_stream(dev, &stream);
	ours = !err;
	if (!err)
		err = try_bits(dev, t, stream);
	drop_stream(dev, stream, ours, &again);
	/* The next one may be the same again. */
	stream = NULL;
	ours = false;
	if (!err && dev->mask->stream_at) {
		err = make_stream(dev, &stream);
		ours = !err;
	}
	drop_stream(dev, stream, ours, &again);
	cu_trial_close(dev, t, &again);
	cu_catch_up(dev);
	return err ? err : again;
}

int cu_mask_open(struct cu_device *dev, enum cu_way way, const struct cu_mask *found)
{
	uint32_t place = 0;
	int err = way == CU_WAY_STREAM ? cu_stream_mask_place(&place) : hook(dev);

	if (err)
		return err;
	dev->mask = calloc(1, sizeof(*dev->mask));
	if (!dev->mask)
		return cu_host->fail(ENOMEM, "cuda: no memory for masks");
	dev->mask->stream_at = place;
	if (found && found->stream_at != place)
		err = cu_host->fail(ENOTSUP,
				    "cuda:%u: partitions=%s: the driver keeps masks at "
				    "another place than in the stored trial",
				    dev->index, cu_way_names[way]);
	else if (found)
		*dev->mask = *found;
	else
		err = try_out(dev);
	if (!err)
		err = cu_check_remainder(dev, dev->mask->count);
	if (err) {
		free(dev->mask);
		dev->mask = NULL;
	}
	return err;
}

uint32_t cu_mask_units(const struct cu_device *dev)
{
	return dev->mask->count - dev->opt.remainder;
}

void cu_mask_of(const struct cu_device *dev, uint32_t first, uint32_t count,
		uint32_t mask[CU_QMD_WORDS])
{
	const struct cu_mask *m = dev->mask;
	uint32_t i;

	memset(mask, 0, CU_QMD_WORDS * sizeof(*mask));
	for (i = 0; i < m->count; i++)
		if (i < first || i - first >= count)
			mask[m->bit[i] / 32] |= 1u << m->bit[i] % 32;
}
