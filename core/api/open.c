/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - hal_open and hal_close.
 *
 * hal_open: load the configuration, choose a backend, open it with its layers, install
 * the policy, start trace, journal and engine.  hal_close does the reverse.  A replay
 * uses the same steps one by one (opened.h).
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/opened.h"
#include "api/target.h"
#include "command/callback.h"
#include "command/courier.h"
#include "command/flow.h"
#include "config/options.h"
#include "config/policy_section.h"
#include "far/far.h"
#include "loop/engine.h"
#include "loop/thread.h"
#include "memory/residency.h"
#include "observe/monitor.h"
#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/expect.h"
#include "sched/policy.h"
#include "sched/policy_host.h"
#include "sched/policy_text.h"
#include "sched/turn.h"
#include "space/moves.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/output.h"

/* Most units that a device may have; bounds rows times columns. */
#define UNITS_MAX (1u << 24)

/* Load the configuration of target into o, find its backend, and write what target names
 * to *t.  Return 0 or -errno. */
static int configure(struct opened *o, const char *target, const char *const *options,
		     struct target *t)
{
	struct hal_bk_config *first;
	char name[256];
	int err = config_load(&o->cfg, options, &first);

	if (err != 0)
		return err;
	err = config_complete(&o->cfg, first);
	if (err != 0)
		goto out;
	if (target == NULL && option_str(first, "device")[0] != '\0')
		target = option_str(first, "device");
	if (target != NULL && far_is_target(target)) {
		format_text(t->far, sizeof(t->far), "%s", target);
		format_text(t->folder, sizeof(t->folder), "%s",
			    option_str(first, "broker_dir"));
		err = config_check(&o->cfg);
		goto out;
	}
	t->far[0] = '\0';
	err = target != NULL ? target_parse(target, t) : target_best(&o->cfg, t);
	if (err != 0)
		goto out;
	o->backend = registry_find(t->backend);
	if (o->backend == NULL) {
		list_backends(name, sizeof(name));
		err = fail(ENODEV,
			   "target \"%s\": this build has no backend %s; it has%s",
			   target, t->backend, name);
		goto out;
	}
	err = backend_check(o->backend);
	if (err != 0)
		goto out;
	if (t->query != NULL)
		err = config_add_target(&o->cfg, t->backend, target, t->query);
	if (err == 0)
		err = config_check(&o->cfg);
	t->query = NULL; /* may point into first, which is freed below */
out:
	config_values_free(first);
	return err;
}

/* Commands that a device whose backend does not say may have at a time. */
#define INFLIGHT_UNKNOWN 2
#define INFLIGHT_MOST    64
/* Of a device that stops commands inside, which keeps memory for each of them, and does
 * something for each when it stops. */
#define INFLIGHT_STOPPED 8

/* Return the limit that option key of section [hal] sets.  0 leaves it to the backend,
 * which knows how many commands keep its device busy: its own option inflight, but not
 * less than least. */
static uint32_t inflight_of(const struct opened *o, const char *key, int64_t least)
{
	int64_t n = option_int(o->core_cfg, key);

	if (n != 0)
		return (uint32_t)n;
	n = option_int(o->bk_cfg, "inflight");
	if (n <= 0)
		n = INFLIGHT_UNKNOWN;
	if (n < least)
		n = least;
	return n < INFLIGHT_MOST ? (uint32_t)n : INFLIGHT_MOST;
}

/* Lower the limits of a device that stops commands inside, unless they are set. */
static void limit_stopped(struct hal_device *dev)
{
	const struct hal_bk_config *c = dev->opened->core_cfg;

	if ((dev->info.suspend_modes & (1u << HAL_SUSPEND_FOLD)) == 0)
		return;
	if (option_int(c, "inflight") == 0 && dev->inflight > INFLIGHT_STOPPED)
		dev->inflight = INFLIGHT_STOPPED;
	if (option_int(c, "partition_inflight") == 0 &&
	    dev->partition_inflight > INFLIGHT_STOPPED)
		dev->partition_inflight = INFLIGHT_STOPPED;
}

/* Values of caller_turns. */
enum { TURNS_NEVER, TURNS_AFTER_PAUSES, TURNS_ALWAYS };

/* Copy options of section [hal] to dev. */
static int core_values(struct hal_device *dev, const struct opened *o)
{
	const struct hal_bk_config *c = o->core_cfg;

	dev->queue_slots = (uint32_t)option_int(c, "queue_depth");
	dev->inflight = inflight_of(o, "inflight", 1);
	/* With one command of each queue, two queues still run side by side. */
	dev->partition_inflight = inflight_of(o, "partition_inflight", 2);
	dev->spin_ns = (uint64_t)option_int(c, "spin_us") * 1000;
	dev->lent.often_ns =
		option_int(c, "caller_turns") == TURNS_AFTER_PAUSES ? dev->spin_ns : 0;
	dev->space.compact = (uint32_t)option_int(c, "compact");
	dev->space.oversubscribe = option_int(c, "oversubscribe") != 0;
	if ((dev->queue_slots & (dev->queue_slots - 1)) != 0)
		return fail(EINVAL, "hal.queue_depth = %u is not a power of two",
			    dev->queue_slots);
	return 0;
}

/* Resolve the options of the core, the policy and the backend. */
static int resolve_all(struct hal_device *dev, struct opened *o)
{
	const struct backend *b = o->backend;
	int err;

	err = config_resolve(&o->cfg, "hal", core_options, core_option_count,
			     &o->core_cfg);
	if (err == 0)
		err = config_resolve(&o->cfg, "policy", policy_options,
				     policy_option_count, &o->policy_cfg);
	if (err == 0)
		err = config_resolve(&o->cfg, b->section, b->table.options,
				     b->table.option_count, &o->bk_cfg);
	if (err != 0)
		return err;
	return core_values(dev, o);
}

/* Check what the backend reports of the device, and fill in defaults. */
static int info_check(struct hal_device *dev)
{
	struct hal_device_info *i = &dev->info;

	if (i->unit_rows == 0)
		i->unit_rows = 1;
	if (i->backend[0] == '\0')
		format_text(i->backend, sizeof(i->backend), "%s", dev->table->name);
	if (i->unit_cols == 0 || i->partitions_max == 0 || i->colors > 64 ||
	    i->guests_max > 1u << 20 || i->unit_rows > UINT16_MAX ||
	    i->unit_cols > UINT16_MAX ||
	    ((i->caps & HAL_CAP_GRID) == 0 && i->unit_rows != 1))
		return fail(EPROTO,
			    "backend %s reports an invalid device: %u x %u units, %u "
			    "partitions and %u colours",
			    i->backend, i->unit_rows, i->unit_cols, i->partitions_max,
			    i->colors);
	if ((uint64_t)i->unit_rows * i->unit_cols > UNITS_MAX)
		return fail(EPROTO,
			    "backend %s reports %u x %u units: at most %u are "
			    "supported",
			    i->backend, i->unit_rows, i->unit_cols, UNITS_MAX);
	/* Every device supports draining, and preemption between commands: the engine
	 * just submits no more commands to it. */
	dev->sched.bk_suspend_modes = i->suspend_modes;
	i->suspend_modes |= 1u << HAL_SUSPEND_DRAIN;
	if (i->preempt < HAL_PREEMPT_BETWEEN)
		i->preempt = HAL_PREEMPT_BETWEEN;
	if (dev->virtual_clock && (i->caps & HAL_CAP_VIRTUAL_CLOCK) == 0)
		return fail(ENOTSUP, "%s has no virtual clock", dev->name);
	return 0;
}

int device_free(struct hal_device *dev)
{
	struct opened *o = dev->opened;
	int err = 0;

	monitor_close(dev);
	policy_remove(dev);
	if (dev->bk != NULL)
		dev->table->cold.close(dev->bk);
	if (o->layers != NULL)
		err = layers_close(o->layers);
	config_values_free(dev->sched.policy_cfg);
	config_values_free(o->core_cfg);
	config_values_free(o->bk_cfg);
	config_values_free(o->policy_cfg);
	config_free(&o->cfg);
	free(o);
	if (dev->space.plan.over != NULL) {
		timeline_fini(dev->space.plan.over);
		object_free(OBJECT_TIMELINE, dev->space.plan.over);
	}
	profile_free(dev->observe.profile);
	free(dev->space.partition_map);
	place_fini(&dev->space.place);
	account_fini(&dev->observe.past);
	pthread_mutex_destroy(&dev->space.room);
	pthread_mutex_destroy(&dev->observe.trace_start);
	pthread_mutex_destroy(&dev->share.lock);
	pthread_rwlock_destroy(&dev->shape);
	object_free(OBJECT_DEVICE, dev);
	return err;
}

/* Open device index of the backend, with its layers.  Return 0 or -errno. */
static int backend_start(struct hal_device *dev, uint32_t index)
{
	struct opened *o = dev->opened;
	const char *clock = option_str(o->bk_cfg, "clock");
	int err;

	format_text(dev->name, sizeof(dev->name), "%s:%u", o->backend->table.name, index);
	dev->virtual_clock = clock != NULL && strcmp(clock, "virtual") == 0;
	dev->side_by_side = (o->backend->table.flags & HAL_BK_SIDE_BY_SIDE) != 0;
	dev->lends = (o->backend->table.flags & HAL_BK_ANY_THREAD) != 0 &&
		     option_int(o->core_cfg, "caller_turns") != TURNS_NEVER;
	err = layers_open(dev, &o->cfg, o->backend, o->bk_cfg, index, &o->layers);
	if (err != 0) {
		dev->bk = NULL;
		return err;
	}
	/* Layers pass on no end of a caller's turns. */
	if (o->layers != NULL)
		dev->lends = false;
	dev->hot = dev->table->hot;
	dev->hot_bk = dev->bk;
	dev->limit = dev->table->extra.limit;
	dev->info.size = sizeof(dev->info);
	err = dev->table->cold.get_info(dev->bk, &dev->info);
	limit_stopped(dev);
	if (err == 0)
		err = colors_load(dev);
	return err != 0 ? err : device_prepare(dev);
}

int device_prepare(struct hal_device *dev)
{
	int err = info_check(dev);

	if (err != 0)
		return err;
	dev->command.served_at_once = dev->hot.doorbell == NULL ? 1 : -1;
	dev->space.partition_map =
		calloc((partition_numbers(dev) + 63) / 64, sizeof(uint64_t));
	if (dev->space.partition_map == NULL ||
	    place_init(&dev->space.place, dev->info.unit_rows, dev->info.unit_cols) != 0)
		return fail(ENOMEM, "no memory for %s", dev->name);
	device_now(dev);
	return 0;
}

int policy_start(struct hal_device *dev)
{
	const struct hal_policy *p;
	struct hal_bk_config *cfg;
	int err = policy_resolve(&dev->opened->cfg, &p, &cfg, &dev->sched.limits);

	if (err == 0)
		err = policy_install(dev, p, cfg);
	if (err != 0)
		config_values_free(cfg);
	return err;
}

static int trace_start(struct hal_device *dev)
{
	const char *pattern = option_str(dev->opened->core_cfg, "trace");
	char path[OUTPUT_BYTES];
	const struct trace_desc d = {
		.path = path,
		.fd = -1,
		.bytes = (uint64_t)option_int(dev->opened->core_cfg, "trace_size"),
	};
	struct trace *t;
	int err;

	if (d.bytes != 0 && d.bytes < TRACE_BYTES_MIN)
		return fail(EINVAL, "hal.trace_size = %llu: it must be 0 or 64K to 1G",
			    U64(d.bytes));
	if (pattern[0] == '\0')
		return 0;
	err = output_name("hal.trace", pattern, dev->number, path);
	if (err == 0)
		err = trace_make(dev, &d, &t);
	if (err == 0)
		trace_begin(dev, t);
	return err;
}

/* Complete the traces that are being written.  Return 0 or -EIO. */
static int traces_close(struct hal_device *dev)
{
	int err = 0;

	while (dev->observe.trace != NULL) {
		struct trace *t = dev->observe.trace;

		trace_end(dev, t);
		if (trace_close(t, NULL) != 0)
			err = -EIO;
	}
	return err;
}

static int journal_start(struct hal_device *dev)
{
	const char *pattern = option_str(dev->opened->core_cfg, "journal");
	char policy[POLICY_TEXT_BYTES], path[OUTPUT_BYTES];
	struct journal *j;
	int err;

	if (pattern[0] == '\0')
		return 0;
	err = output_name("hal.journal", pattern, dev->number, path);
	if (err == 0)
		err = journal_make(dev, path, &j);
	if (err != 0)
		return err;
	policy_text(dev->sched.policy, dev->sched.policy_cfg, &dev->sched.limits, policy);
	journal_begin(dev, j, policy);
	/* A journal is written by one thread. */
	dev->lends = false;
	return 0;
}

/* Prefer writers, so that a steady stream of readers cannot starve them. */
static void shape_init(pthread_rwlock_t *shape)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr,
					    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(shape, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
}

struct hal_device *device_make(void)
{
	struct hal_device *dev;

	dev = object_alloc(OBJECT_DEVICE, sizeof(*dev));
	if (dev == NULL)
		return NULL;
	dev->opened = calloc(1, sizeof(*dev->opened));
	if (dev->opened == NULL) {
		object_free(OBJECT_DEVICE, dev);
		(void)fail(ENOMEM, "no memory for a device");
		return NULL;
	}
	dev->sched.services = &core_host;
	dev->sched.listener = &turn_listener;
	dev->memory.residency = &memory_residency;
	dev->space.moves = &space_moves;
	shape_init(&dev->shape);
	(void)pthread_mutex_init(&dev->space.room, NULL);
	(void)pthread_mutex_init(&dev->observe.trace_start, NULL);
	(void)pthread_mutex_init(&dev->share.lock, NULL);
	engine_init(dev);
	callbacks_init(dev);
	return dev;
}

/* Calls of hal_open so far; each device's .number is taken from it. */
static atomic_uint opened_count;

/* Log which device has been opened, and who chose it: target, the configuration (NULL) or
 * the library. */
static void log_opened(const struct hal_device *dev, const char *target)
{
	const char *device = option_str(dev->opened->core_cfg, "device");

	LOG(HAL_LOG_INFO, "%s: opened %s, %s clock, policy %s; target %s%s", dev->name,
	    dev->info.name, dev->virtual_clock ? "virtual" : "real",
	    dev->sched.policy->name, target != NULL ? target : device,
	    target != NULL      ? ""
	    : device[0] != '\0' ? " (hal.device)"
				: "not given: the best backend with a device");
}

static int open_device(const char *target, const char *const *options,
		       struct hal_device **out)
{
	struct hal_device *dev;
	struct target t;
	int err;

	if (out == NULL)
		return fail(EINVAL, "hal_open: dev is NULL");
	dev = device_make();
	if (dev == NULL)
		return -ENOMEM;
	dev->number = atomic_fetch_add(&opened_count, 1);
	err = configure(dev->opened, target, options, &t);
	if (err == 0 && t.far[0] != '\0') {
		(void)device_free(dev);
		return far_open(t.far, t.folder, out);
	}
	if (err == 0)
		err = resolve_all(dev, dev->opened);
	if (err == 0)
		err = backend_start(dev, t.index);
	if (err == 0)
		err = monitor_open(dev);
	if (err == 0)
		err = profile_start(dev);
	if (err == 0)
		err = policy_start(dev);
	if (err == 0)
		err = trace_start(dev);
	if (err == 0)
		err = journal_start(dev);
	if (err == 0)
		err = engine_start(dev, engine_turn);
	if (err == 0) {
		monitor_start(dev);
		log_opened(dev, target);
		*out = dev;
		return 0;
	}
	callbacks_stop(dev);
	(void)traces_close(dev);
	(void)journal_end(dev);
	(void)device_free(dev);
	return err;
}

int hal_open(const char *target, const char *const *options, struct hal_device **out)
{
	int cancel = cancel_hold();
	int err = open_device(target, options, out);

	if (err != 0)
		LOG(HAL_LOG_WARNING, "hal_open(%s): %s", target != NULL ? target : "NULL",
		    hal_last_error());
	cancel_release(cancel);
	return tried(err);
}

/* Refuse to close dev while it has live objects; else invalidate its handle. */
static int retire_device(struct hal_device *dev, void *arg)
{
	const struct counted has[] = {
		{dev->space.partition_count, "partition"},
		{atomic_load(&dev->programs), "program"},
		{atomic_load(&dev->timelines), "timeline"},
		{atomic_load(&dev->rings), "completion ring"},
	};
	char counts[128], living[400];

	(void)arg;
	format_counts(counts, sizeof(counts), has, ARRAY_LENGTH(has));
	if (counts[0] == '\0') {
		object_retire(&dev->obj);
		return 0;
	}
	layers_living(dev->opened->layers, living, sizeof(living));
	return fail(EBUSY, "%s still has %s%s%s", dev->name, counts,
		    living[0] != '\0' ? ": " : "", living);
}

int hal_close(struct hal_device *dev)
{
	int cancel, err, traced, journaled;

	if (dev == NULL)
		return 0;
	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_close(dev));
	err = callback_refuse(dev, "hal_close");
	if (err == 0)
		err = engine_call(dev, retire_device, NULL);
	if (err != 0)
		return err;
	cancel = cancel_hold();
	/* Engines of other devices may still have messages of waits that have ended, and
	 * send their last message to this engine. */
	while (atomic_load(&dev->command.foreign) != 0)
		(void)sched_yield();
	courier_stop(dev);
	monitor_stop(dev);
	callbacks_stop(dev);
	engine_stop(dev);
	traced = traces_close(dev);
	journaled = journal_end(dev);
	LOG(HAL_LOG_INFO, "%s: closed", dev->name);
	err = device_free(dev);
	cancel_release(cancel);
	if (err == 0)
		err = traced;
	return err != 0 ? err : journaled;
}
