/* SPDX-License-Identifier: Apache-2.0 */
/* Extension "levelzero": units, drain bound, sysman's scheduler, IPC handles, caches. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULERS_MAX 32u

static int ext_unit(void *native, uint32_t unit, struct hal_levelzero_unit *out)
{
	const struct lz_device *dev = native;
	const struct lz_engine *e;

	if (unit >= dev->shape.unit_count)
		return lz_host->fail(EINVAL,
				     "levelzero: there is no unit %u; the device has %u",
				     unit, dev->shape.unit_count);
	e = &dev->shape.engines[dev->shape.units[unit].first];
	out->tile = e->tile;
	out->group = e->ordinal;
	out->engine = e->index;
	out->engines = dev->shape.units[unit].count;
	return 0;
}

static int ext_drain_worst(void *native, uint64_t *ns)
{
	const struct lz_device *dev = native;

	*ns = dev->longest_ns * dev->opt.inflight;
	return 0;
}

/* Schedulers of compute engines, one a tile or one for all. */
struct schedulers {
	void *all[SCHEDULERS_MAX];
	uint32_t count;
	struct zes_sched_properties first;
};

static int has_sysman(void)
{
	const char *enabled = secure_getenv("ZES_ENABLE_SYSMAN");

	if (!lz.zesDeviceEnumSchedulers || !lz.zesSchedulerGetProperties ||
	    !lz.zesSchedulerGetCurrentMode || !lz.zesSchedulerGetTimeoutModeProperties ||
	    !lz.zesSchedulerGetTimesliceModeProperties ||
	    !lz.zesSchedulerSetTimeoutMode || !lz.zesSchedulerSetTimesliceMode ||
	    !lz.zesSchedulerSetExclusiveMode)
		return lz_host->fail(ENOTSUP,
				     "levelzero: the loader has no sysman functions");
	if (!enabled || strcmp(enabled, "1") != 0)
		return lz_host->fail(ENOTSUP,
				     "levelzero: ZES_ENABLE_SYSMAN is not 1, so the "
				     "driver gives no access to its scheduler");
	return 0;
}

static int find_schedulers(const struct lz_device *dev, struct schedulers *s)
{
	struct zes_sched_properties p;
	void *all[SCHEDULERS_MAX];
	uint32_t count = 0, i;
	int err = has_sysman();

	memset(s, 0, sizeof(*s));
	if (!err)
		err = LZ(zesDeviceEnumSchedulers, dev->shape.root, &count, NULL);
	count = count < SCHEDULERS_MAX ? count : SCHEDULERS_MAX;
	if (!err && count)
		err = LZ(zesDeviceEnumSchedulers, dev->shape.root, &count, all);
	for (i = 0; !err && i < count; i++) {
		p = (struct zes_sched_properties){.stype = LZS_STYPE_SCHED_PROPERTIES};
		err = LZ(zesSchedulerGetProperties, all[i], &p);
		if (err || !(p.engines & LZS_ENGINE_COMPUTE))
			continue;
		if (!s->count)
			s->first = p;
		s->all[s->count++] = all[i];
	}
	if (!err && !s->count)
		err = lz_host->fail(ENOTSUP,
				    "levelzero: %s has no scheduler of compute engines",
				    dev->shape.props.name);
	return err;
}

static int ext_scheduler_get(void *native, struct hal_levelzero_scheduler *out)
{
	struct schedulers s;
	int err = find_schedulers(native, &s);

	if (!err)
		err = LZ(zesSchedulerGetCurrentMode, s.all[0], &out->mode);
	if (err)
		return err;
	out->modes = s.first.supported_modes & 7u;
	out->settable = s.first.can_control;
	snprintf(out->reason, sizeof(out->reason), "%s",
		 s.first.can_control ? "" : "this user may not control it");
	return 0;
}

/* With the driver's own default times. */
static int set_mode(void *scheduler, uint32_t mode, uint8_t *reload)
{
	struct zes_sched_timeout_properties t = {
		.stype = LZS_STYPE_SCHED_TIMEOUT_PROPERTIES};
	struct zes_sched_timeslice_properties s = {
		.stype = LZS_STYPE_SCHED_TIMESLICE_PROPERTIES};
	int err;

	switch (mode) {
	case LZ_SCHED_TIMEOUT:
		err = LZ(zesSchedulerGetTimeoutModeProperties, scheduler, 1, &t);
		return err ? err : LZ(zesSchedulerSetTimeoutMode, scheduler, &t, reload);
	case LZ_SCHED_TIMESLICE:
		err = LZ(zesSchedulerGetTimesliceModeProperties, scheduler, 1, &s);
		return err ? err
			   : LZ(zesSchedulerSetTimesliceMode, scheduler, &s, reload);
	default:
		return LZ(zesSchedulerSetExclusiveMode, scheduler, reload);
	}
}

int lz_set_scheduler(struct lz_device *dev, uint32_t mode)
{
	struct schedulers s;
	uint8_t reload = 0;
	uint32_t i;
	int err = find_schedulers(dev, &s);

	if (err)
		return err;
	if (mode > LZ_SCHED_EXCLUSIVE || !(s.first.supported_modes >> mode & 1))
		return lz_host->fail(
			ENOTSUP, "levelzero: scheduler mode %u is not supported", mode);
	if (!s.first.can_control)
		return lz_host->fail(
			EPERM, "levelzero: this user may not control the scheduler");
	for (i = 0; !err && i < s.count; i++)
		err = set_mode(s.all[i], mode, &reload);
	if (!err && reload)
		return lz_host->fail(EBUSY, "levelzero: the new scheduler mode takes "
					    "effect only after the driver is reloaded");
	return err;
}

static int ext_scheduler_set(void *native, uint32_t mode)
{
	return lz_set_scheduler(native, mode);
}

/* Find the buffer of that id, which the caller must not destroy meanwhile. */
static int find_buffer(struct lz_device *dev, uint64_t id, struct lz_mem **mem)
{
	struct lz_mem *m;

	pthread_mutex_lock(&dev->memory_lock);
	for (m = dev->memory; m && m->id != id; m = m->next)
		;
	pthread_mutex_unlock(&dev->memory_lock);
	*mem = m;
	return m ? 0
		 : lz_host->fail(EINVAL, "levelzero: there is no buffer with id %" PRIu64,
				 id);
}

static int ext_ipc_export(void *native, uint64_t buffer, struct hal_levelzero_ipc *ipc)
{
	struct lz_device *dev = native;
	struct ze_ipc_mem_handle h;
	struct lz_mem *mem;
	int err = find_buffer(dev, buffer, &mem);

	if (err)
		return err;
	if (!dev->shape.ipc)
		return lz_host->fail(
			ENOTSUP,
			"levelzero: the driver cannot share memory between processes");
	err = LZ(zeMemGetIpcHandle, dev->context, mem->p, &h);
	if (!err)
		memcpy(ipc->data, h.data, sizeof(ipc->data));
	return err;
}

static int ext_ipc_open(void *native, const struct hal_levelzero_ipc *ipc, void **address)
{
	const struct lz_device *dev = native;
	struct ze_ipc_mem_handle h;

	if (!dev->shape.ipc)
		return lz_host->fail(
			ENOTSUP,
			"levelzero: the driver cannot share memory between processes");
	memcpy(h.data, ipc->data, sizeof(h.data));
	return LZ(zeMemOpenIpcHandle, dev->context, dev->shape.root, h, 0, address);
}

static int ext_ipc_close(void *native, void *address)
{
	const struct lz_device *dev = native;

	if (!dev->shape.ipc)
		return lz_host->fail(
			ENOTSUP,
			"levelzero: the driver cannot share memory between processes");
	return LZ(zeMemCloseIpcHandle, dev->context, address);
}

static int ext_cache_reserve(void *native, uint32_t level, uint64_t bytes)
{
	const struct lz_device *dev = native;

	if (!dev->shape.cache)
		return lz_host->fail(ENOTSUP,
				     "levelzero: the driver cannot reserve cache");
	return LZ(zeDeviceReserveCacheExt, dev->shape.root, level, bytes);
}

static int ext_cache_advise(void *native, uint64_t buffer, uint32_t region)
{
	struct lz_device *dev = native;
	struct lz_mem *mem;
	int err = find_buffer(dev, buffer, &mem);

	if (err)
		return err;
	if (!dev->shape.cache)
		return lz_host->fail(ENOTSUP,
				     "levelzero: the driver cannot reserve cache");
	return LZ(zeDeviceSetCacheAdviceExt, dev->shape.root, mem->p, mem->bytes, region);
}

static const struct hal_levelzero_extension extension = {
	.size = sizeof(extension),
	.unit = ext_unit,
	.drain_worst = ext_drain_worst,
	.scheduler_get = ext_scheduler_get,
	.scheduler_set = ext_scheduler_set,
	.ipc_export = ext_ipc_export,
	.ipc_open = ext_ipc_open,
	.ipc_close = ext_ipc_close,
	.cache_reserve = ext_cache_reserve,
	.cache_advise = ext_cache_advise,
};

const void *lz_extension(void *device, const char *name)
{
	(void)device;
	return strcmp(name, "levelzero") == 0 ? &extension : NULL;
}
