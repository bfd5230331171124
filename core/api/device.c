/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - functions of an open device: info, statistics, time, extensions, traces and
 * the policy. */
#include <errno.h>
#include <string.h>

#include "api/handle.h"
#include "api/opened.h"
#include "api/tracing.h"
#include "command/callback.h"
#include "command/flow.h"
#include "command/lend.h"
#include "config/policy_section.h"
#include "far/far.h"
#include "loop/engine.h"
#include "memory/quota.h"
#include "observe/stats.h"
#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/policy.h"
#include "sched/policy_host.h"
#include "sched/policy_text.h"
#include "space/resize.h"
#include "util/error.h"
#include "util/fd.h"

static int get_info(struct hal_device *dev, void *arg)
{
	struct hal_device_info *fresh = arg;

	return dev->table->cold.get_info(dev->bk, fresh);
}

int hal_device_get_info(struct hal_device *dev, struct hal_device_info *info)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_device_info fresh = HAL_INIT(hal_device_info);

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_device_get_info(dev, info));
	i = dev->info;
	i.lost = atomic_load(&dev->lost);
	i.memory_free = memory_left(dev);
	if (i.lost == 0 && engine_call(dev, get_info, &fresh) == 0) {
		i.loads = fresh.loads;
		i.load_ns = fresh.load_ns;
		/* The backend may have less memory left than the core has counted: it
		 * rounds allocations up and needs memory of its own. */
		if (fresh.memory_free != 0 && fresh.memory_free < i.memory_free)
			i.memory_free = fresh.memory_free;
	}
	return export_struct(info, &i, sizeof(i),
			     offsetof(struct hal_device_info, backend),
			     "hal_device_info");
}

/* ---- statistics -------------------------------------------------------------------- */

/* Return the device's time, ns.  Any thread. */
static uint64_t device_time(struct hal_device *dev)
{
	/* Any thread may read a real clock.  Only the engine may read a virtual one:
	 * while another thread is the engine, return the time that the engine has read
	 * last. */
	if (!dev->virtual_clock)
		return dev->table->hot.now(dev->bk);
	if (engine_try(dev)) {
		device_now(dev);
		engine_leave(dev);
	}
	return atomic_load(&dev->now_cached);
}

/* Write *sum and the busy time to the caller's *stats.  Return 0 or -errno. */
static int stats_out(struct hal_device *dev, struct account *sum, uint64_t busy_ns,
		     struct hal_stats *stats)
{
	struct hal_stats s;

	account_export(&s, sum, busy_ns, device_time(dev));
	return export_struct(stats, &s, sizeof(s), offsetof(struct hal_stats, now_ns),
			     "hal_stats");
}

int hal_device_get_stats(struct hal_device *dev, struct hal_stats *stats)
{
	struct account sum;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_device_get_stats(dev, stats));
	memset(&sum, 0, sizeof(sum));
	lend_look(dev);
	pthread_rwlock_rdlock(&dev->shape);
	account_add(&sum, &dev->observe.past);
	hal_list_for_each (p, &dev->space.partitions)
		stats_add_partition(&sum,
				    container_of(p, struct hal_partition, on_device));
	pthread_rwlock_unlock(&dev->shape);
	return stats_out(dev, &sum, counter_get(&dev->observe.ran.total), stats);
}

int hal_partition_get_stats(struct hal_partition *part, struct hal_stats *stats)
{
	struct account sum;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_partition_get_stats(part, stats));
	memset(&sum, 0, sizeof(sum));
	lend_look(part->dev);
	pthread_rwlock_rdlock(&part->dev->shape);
	stats_add_partition(&sum, part);
	pthread_rwlock_unlock(&part->dev->shape);
	return stats_out(part->dev, &sum, stats_busy(part, &sum), stats);
}

int hal_queue_get_stats(struct hal_queue *q, struct hal_stats *stats)
{
	struct account sum;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, far_queue_get_stats(q, stats));
	memset(&sum, 0, sizeof(sum));
	lend_look(q->dev);
	pthread_rwlock_rdlock(&q->dev->shape);
	stats_add_queue(&sum, q);
	pthread_rwlock_unlock(&q->dev->shape);
	return stats_out(q->dev, &sum, counter_get(&q->observe.account.busy_ns), stats);
}

/* ---- time -------------------------------------------------------------------------- */

uint64_t hal_device_get_time(struct hal_device *dev)
{
	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		if (OBJECT_IS_FAR(dev, OBJECT_DEVICE))
			return far_device_get_time(dev);
		(void)object_bad(dev, OBJECT_DEVICE);
		return 0;
	}
	return device_time(dev);
}

/* Be the engine for ns of device time.  Return the number of completed commands. */
static int poll_virtual(struct hal_device *dev, uint64_t ns)
{
	uint64_t before, until, ended;

	engine_enter(dev);
	before = counter_get(&dev->command.ended);
	until = hal_bk_after(dev->now, ns);
	while (engine_turn(dev, until, true))
		;
	ended = counter_get(&dev->command.ended) - before;
	engine_leave(dev);
	return ended > INT32_MAX ? INT32_MAX : (int)ended;
}

int hal_device_poll(struct hal_device *dev, uint64_t ns)
{
	uint64_t ended, reported;
	int n;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_device_poll(dev, ns));
	n = callback_refuse(dev, "hal_device_poll");
	if (n != 0)
		return n;
	if (dev->virtual_clock) {
		atomic_store_explicit(&dev->polled, true, memory_order_relaxed);
		return poll_virtual(dev, ns);
	}
	lend_look(dev);
	/* The engine's thread makes progress by itself: return the number of commands
	 * that have completed since the last call.  Concurrent calls never count one
	 * twice. */
	reported = atomic_load(&dev->ended_reported);
	do
		ended = counter_get(&dev->command.ended);
	while (!atomic_compare_exchange_weak(&dev->ended_reported, &reported, ended));
	return (int)((ended - reported) & INT32_MAX);
}

/* ---- extensions -------------------------------------------------------------------- */

struct extension {
	const char *name;
	const void *table;
};

static int get_extension(struct hal_device *dev, void *arg)
{
	struct extension *e = arg;

	e->table = dev->table->cold.extension(dev->bk, e->name);
	return 0;
}

/* Say why dev, which is no local device, does not have `what`. */
static void far_has_no(const struct hal_device *dev, const char *what)
{
	(void)FAR_OR_BAD(dev, OBJECT_DEVICE,
			 fail(ENOTSUP,
			      "%s: the device is in another process, whose functions "
			      "cannot be called",
			      what));
}

const void *hal_device_get_extension(struct hal_device *dev, const char *name)
{
	struct extension e = {.name = name};

	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		if (name != NULL && OBJECT_IS_FAR(dev, OBJECT_DEVICE) &&
		    (e.table = far_device_extension(dev, name)) != NULL)
			return e.table;
		far_has_no(dev, name != NULL ? name : "an extension");
		return NULL;
	}
	if (name == NULL) {
		(void)fail(EINVAL, "hal_device_get_extension: name is NULL");
		return NULL;
	}
	(void)engine_call(dev, get_extension, &e);
	if (e.table == NULL)
		(void)fail(ENOTSUP, "%s has no extension \"%s\"", dev->name, name);
	return e.table;
}

void *hal_device_get_native(struct hal_device *dev)
{
	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		far_has_no(dev, "the backend's handle");
		return NULL;
	}
	return layers_native(dev->opened->layers, dev->bk);
}

/* ---- trace ------------------------------------------------------------------------- */

#define ALREADY_TRACED                                                                   \
	"a trace of %s is being written already, by hal_trace_start or the option "      \
	"hal.trace; hal_trace_stop ends it"

/* Begin the trace arg, made by trace_make. */
static int begin_trace(struct hal_device *dev, void *arg)
{
	if (trace_own(dev) != NULL)
		return fail(EBUSY, ALREADY_TRACED, dev->name);
	trace_begin(dev, arg);
	return 0;
}

static int check_not_tracing(struct hal_device *dev, void *arg)
{
	(void)arg;
	return trace_own(dev) != NULL ? fail(EBUSY, ALREADY_TRACED, dev->name) : 0;
}

int hal_trace_start(struct hal_device *dev, const char *path)
{
	struct trace_desc d = {.path = path, .fd = -1};
	struct trace *t;
	int cancel, err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_trace_start(dev, path, 0));
	if (path == NULL || path[0] == '\0')
		return fail(EINVAL, "hal_trace_start: path is NULL or empty");
	d.bytes = (uint64_t)option_int(dev->opened->core_cfg, "trace_size");
	cancel = cancel_hold();
	/* Opening a file may block, for example a FIFO.  Only other calls of
	 * hal_trace_start wait for this mutex. */
	pthread_mutex_lock(&dev->observe.trace_start);
	/* Check before trace_make truncates path: it may be the file of the running
	 * trace. */
	err = engine_call(dev, check_not_tracing, NULL);
	if (err == 0)
		err = trace_make(dev, &d, &t);
	if (err == 0)
		err = engine_call(dev, begin_trace, t);
	pthread_mutex_unlock(&dev->observe.trace_start);
	cancel_release(cancel);
	return err;
}

static int end_trace(struct hal_device *dev, void *arg)
{
	struct trace **t = arg;

	*t = trace_own(dev);
	if (*t == NULL)
		return fail(EINVAL, "no trace of %s is being written", dev->name);
	trace_end(dev, *t);
	return 0;
}

int hal_trace_stop(struct hal_device *dev)
{
	struct trace *t;
	int cancel, err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_trace_stop(dev, NULL, NULL));
	err = engine_call(dev, end_trace, &t);
	if (err != 0)
		return err;
	cancel = cancel_hold();
	err = trace_close(t, NULL);
	cancel_release(cancel);
	return err;
}

/* ---- traces of others ---------------------------------------------------------------- */

static int begin_other(struct hal_device *dev, void *arg)
{
	trace_begin(dev, arg);
	return 0;
}

int tracing_begin(struct hal_device *dev, const struct trace_desc *d, struct trace **out)
{
	int err = trace_make(dev, d, out);

	return err != 0 ? err : engine_call(dev, begin_other, *out);
}

static int end_other(struct hal_device *dev, void *arg)
{
	trace_end(dev, arg);
	return 0;
}

void tracing_end(struct hal_device *dev, struct trace *t)
{
	(void)engine_call(dev, end_other, t);
}

struct tenancy {
	struct hal_partition *part;
	uint64_t tenant;
};

static int set_tenant(struct hal_device *dev, void *arg)
{
	const struct tenancy *x = arg;

	trace_tenant(dev, x->part, x->tenant);
	return 0;
}

void tracing_tenant(struct hal_partition *part, uint64_t tenant)
{
	struct tenancy x = {part, tenant};

	(void)engine_call(part->dev, set_tenant, &x);
}

/* ---- policy ------------------------------------------------------------------------ */

struct install {
	const struct hal_policy *policy;
	struct hal_bk_config *cfg;
	struct policy_limits limits;
};

/* Install the policy i, with its limits.  On success write the options of the replaced
 * policy to i->cfg, for the caller to free. */
static int install(struct hal_device *dev, void *arg)
{
	struct install *i = arg;
	struct hal_bk_config *old = dev->sched.policy_cfg;
	const struct policy_limits limits = dev->sched.limits;
	char text[POLICY_TEXT_BYTES];
	int err;

	if (dev->replay.journal != NULL) {
		policy_text(i->policy, i->cfg, &i->limits, text);
		journal_write_text(dev->replay.journal, JOURNAL_POLICY, text);
	}
	dev->sched.limits = i->limits;
	err = policy_install(dev, i->policy, i->cfg);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	if (err != 0)
		dev->sched.limits = limits;
	else
		i->cfg = old;
	return err;
}

int hal_device_set_policy(struct hal_device *dev, const char *name,
			  const char *const *options)
{
	struct install i = {0};
	struct config cfg = {.entries = NULL};
	char pair[64];
	int err = 0;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_device_set_policy(dev, name, options));
	if (name == NULL)
		return fail(EINVAL, "hal_device_set_policy: name is NULL");
	if (policy_find(name) == NULL)
		return policy_unknown(name);
	format_text(pair, sizeof(pair), "name=%s", name);
	err = config_set(&cfg, "policy", pair);
	for (size_t n = 0; err == 0 && options != NULL && options[n] != NULL; n++)
		err = config_set(&cfg, "policy", options[n]);
	if (err == 0)
		err = config_check(&cfg);
	if (err == 0)
		err = policy_resolve(&cfg, &i.policy, &i.cfg, &i.limits);
	if (err == 0) {
		pthread_rwlock_wrlock(&dev->shape);
		err = engine_call(dev, install, &i);
		pthread_rwlock_unlock(&dev->shape);
	}
	config_values_free(i.cfg);
	config_free(&cfg);
	return err;
}

static int get_policy(struct hal_device *dev, void *arg)
{
	policy_info(dev, arg);
	return 0;
}

int hal_device_get_policy(struct hal_device *dev, struct hal_policy_info *info)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE, far_device_get_policy(dev, info));
	(void)engine_call(dev, get_policy, &i);
	return export_struct(info, &i, sizeof(i), offsetof(struct hal_policy_info, name),
			     "hal_policy_info");
}
