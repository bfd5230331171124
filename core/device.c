/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - opening, asking and closing devices; what outlives its handle. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lock
 * -------------------------------------------------------------------------- */

void device_lock(struct hal_device *dev)
{
	atomic_fetch_add_explicit(&dev->lock_waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&dev->lock);
	atomic_fetch_sub_explicit(&dev->lock_waiters, 1, memory_order_relaxed);
}

void device_unlock(struct hal_device *dev)
{
	/* A simulated device takes time for what was just done to it. */
	if (dev->virtual_clock && dev->bk != NULL)
		engine_now(dev);
	pthread_mutex_unlock(&dev->lock);
}

void device_yield(struct hal_device *dev)
{
	/* A mutex is not fair: who unlocks and locks again mostly wins. */
	while (atomic_load_explicit(&dev->lock_waiters, memory_order_relaxed) > 0)
		sched_yield();
}

static int lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err != 0)
		return err;
	(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	err = pthread_mutex_init(lock, &attr);
	(void)pthread_mutexattr_destroy(&attr);
	return err;
}

static _Thread_local const struct hal_device *inside_callback;

int callback_refuse(const char *what)
{
	if (LIKELY(inside_callback == NULL))
		return 0;
	return fail(EDEADLK, "%s was called from a host callback of %s", what,
		    inside_callback->name);
}

void callback_run(struct hal_device *dev, hal_host_fn fn, void *user)
{
	const struct hal_device *outer = inside_callback;

	inside_callback = dev;
	fn(user);
	inside_callback = outer;
}

/* ---- graves
 * ---------------------------------------------------------------------------- */

bool queue_idle(const struct hal_queue *q, uint64_t submission)
{
	/* After a failure the timeline stands still; nothing in the ring is what counts.
	 */
	return atomic_load(&q->timeline.value) >= submission ||
	       (q->err != 0 && q->flight_count == 0 &&
		ck_pr_load_uint(&q->ring.c_head) == ck_pr_load_uint(&q->ring.p_tail));
}

/* Counts the queues with work in them, of part or (NULL) of the device; notes them in g
 * (may be NULL) as far as it has room. */
static uint32_t find_busy(struct hal_device *dev, const struct hal_partition *part,
			  struct grave *g, uint32_t room)
{
	uint32_t n = 0;

	hal_list_for_each (p, &dev->partitions) {
		struct hal_partition *each =
			container_of(p, struct hal_partition, on_device);

		if (part != NULL && each != part)
			continue;
		hal_list_for_each (it, &each->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);
			uint64_t last = atomic_load(&q->submissions);

			if (queue_idle(q, last) || (g != NULL && n == room))
				continue;
			if (g != NULL) {
				g->until[n].queue = q;
				g->until[n].submission = last;
			}
			n++;
		}
	}
	return n;
}

int grave_dig(struct hal_device *dev, struct hal_partition *part,
	      void (*bury)(void *object), void *object)
{
	uint32_t count = find_busy(dev, part, NULL, 0);
	struct grave *g;

	if (count == 0) {
		bury(object);
		return 0;
	}
	g = calloc(1, sizeof(*g) + count * sizeof(g->until[0]));
	if (g == NULL)
		return fail(ENOMEM, "no memory to keep what submitted work uses");
	g->bury = bury;
	g->object = object;
	/* A queue that becomes busy between the two counts is another thread's, and its
	 * work cannot use what is being destroyed. */
	g->count = find_busy(dev, part, g, count);
	list_add_before(&dev->graves, &g->node);
	dev->errands |= ERRAND_GRAVES;
	return 0;
}

void grave_sweep(struct hal_device *dev)
{
	hal_list_for_each (it, &dev->graves) {
		struct grave *g = container_of(it, struct grave, node);

		while (g->count > 0 && queue_idle(g->until[g->count - 1].queue,
						  g->until[g->count - 1].submission))
			g->count--;
		if (g->count > 0)
			continue;
		list_del(&g->node);
		g->bury(g->object);
		free(g);
	}
	if (list_empty(&dev->graves))
		dev->errands &= (uint8_t)~ERRAND_GRAVES;
}

void grave_forget(struct hal_device *dev, const struct hal_queue *queue)
{
	hal_list_for_each (it, &dev->graves) {
		struct grave *g = container_of(it, struct grave, node);

		for (uint32_t i = g->count; i-- > 0;)
			if (g->until[i].queue == queue)
				g->until[i] = g->until[--g->count];
	}
	grave_sweep(dev);
}

/* ---- targets
 * ---------------------------------------------------------------------------- */

struct target {
	char backend[16];
	uint32_t index;
	const char *query; /* behind the ?; NULL: none */
};

/* name[:index][?key=value&...] */
static int target_parse(const char *text, struct target *t)
{
	size_t length = strcspn(text, ":?");
	const char *p = text + length;

	memset(t, 0, sizeof(*t));
	if (length == 0 || length >= sizeof(t->backend))
		return fail(EINVAL,
			    "target \"%s\" is not backend[:index][?key=value&...]", text);
	memcpy(t->backend, text, length);
	if (*p == ':') {
		char *end;
		unsigned long n = strtoul(p + 1, &end, 10);

		if (!isdigit((unsigned char)p[1]) || n > 65535 ||
		    (*end != '\0' && *end != '?'))
			return fail(EINVAL,
				    "target \"%s\": \"%s\" is not a device number", text,
				    p + 1);
		t->index = (uint32_t)n;
		p = end;
	}
	t->query = *p == '?' ? p + 1 : NULL;
	return 0;
}

static void list_backends(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < registry_count() && used < size; i++) {
		format_text(text + used, size - used, " %s", registry_at(i)->table.name);
		used += strlen(text + used);
	}
}

#define PROBE_MAX 16

static int backend_probe(const struct config *cfg, const struct backend *b,
			 struct hal_device_info *out, uint32_t max)
{
	struct hal_bk_config *values;
	int n;
	int err = config_resolve(cfg, b->section, b->table.options, b->table.option_count,
				 &values);

	if (err != 0)
		return err;
	for (uint32_t i = 0; i < max; i++) {
		memset(&out[i], 0, sizeof(out[i]));
		out[i].size = sizeof(out[i]);
	}
	n = b->table.cold.probe(values, out, max);
	config_values_free(values);
	if (n == 0)
		return fail(ENODEV, "no device found");
	for (uint32_t i = 0; n > 0 && i < max && i < (uint32_t)n; i++)
		if (out[i].backend[0] == '\0')
			format_text(out[i].backend, sizeof(out[i].backend), "%s",
				    b->table.name);
	return n;
}

/* The backend with the highest score that has a device. */
static int target_best(const struct config *cfg, struct target *t)
{
	const struct backend *best = NULL;
	char reasons[384] = "";
	size_t used = 0;

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < registry_count(); i++) {
		const struct backend *b = registry_at(i);
		struct hal_device_info info;
		int n;

		if (best != NULL && b->table.score <= best->table.score)
			continue;
		n = backend_probe(cfg, b, &info, 1);
		if (n > 0) {
			best = b;
			continue;
		}
		/* A wrong option is not an absent device. */
		if (n == -EINVAL)
			return n;
		if (used < sizeof(reasons)) {
			format_text(reasons + used, sizeof(reasons) - used, "; %s: %s",
				    b->table.name, hal_last_error());
			used += strlen(reasons + used);
		}
	}
	if (best == NULL)
		return fail(ENODEV, "no device is present%s",
			    reasons[0] != '\0' ? reasons : ": no backend is built in");
	format_text(t->backend, sizeof(t->backend), "%s", best->table.name);
	return 0;
}

/* ---- opening
 * ------------------------------------------------------------------------------ */

static int core_values(struct hal_device *dev)
{
	const struct hal_bk_config *c = dev->core_cfg;

	dev->queue_slots = (uint32_t)option_int(c, "queue_depth");
	dev->inflight = (uint32_t)option_int(c, "inflight");
	dev->partition_inflight = (uint32_t)option_int(c, "partition_inflight");
	dev->spin_ns = (uint32_t)option_int(c, "spin_us") * 1000;
	if ((dev->queue_slots & (dev->queue_slots - 1)) != 0)
		return fail(EINVAL, "hal.queue_depth = %u is not a power of two",
			    dev->queue_slots);
	return 0;
}

static int configure(struct hal_device *dev, const char *target,
		     const char *const *options, struct target *t)
{
	struct hal_bk_config *first = NULL;
	char name[256];
	int err = config_load(&dev->cfg, options);

	if (err != 0)
		return err;
	/* Plugins come first: they bring sections of their own. */
	err = config_resolve(&dev->cfg, "hal", core_options, core_option_count, &first);
	if (err == 0)
		err = registry_load(option_str(first, "plugins"));
	if (err == 0)
		err = config_check(&dev->cfg);
	if (err != 0)
		goto out;
	if (target == NULL && option_str(first, "device")[0] != '\0')
		target = option_str(first, "device");
	err = target != NULL ? target_parse(target, t) : target_best(&dev->cfg, t);
	if (err != 0)
		goto out;
	dev->backend = registry_find(t->backend);
	if (dev->backend == NULL) {
		list_backends(name, sizeof(name));
		err = fail(ENODEV,
			   "target \"%s\": this build has no backend %s; it has%s",
			   target, t->backend, name);
		goto out;
	}
	if (t->query != NULL)
		err = config_add_target(&dev->cfg, t->backend, target, t->query);
	if (err == 0)
		err = config_check(&dev->cfg);
	t->query = NULL; /* goes with first */
out:
	config_values_free(first);
	return err;
}

static int resolve_all(struct hal_device *dev)
{
	const struct backend *b = dev->backend;
	int err;

	err = config_resolve(&dev->cfg, "hal", core_options, core_option_count,
			     &dev->core_cfg);
	if (err == 0)
		err = config_resolve(&dev->cfg, "policy", policy_options,
				     policy_option_count, &dev->policy_cfg);
	if (err == 0)
		err = config_resolve(&dev->cfg, b->section, b->table.options,
				     b->table.option_count, &dev->bk_cfg);
	if (err == 0)
		err = core_values(dev);
	return err;
}

static int info_check(struct hal_device *dev)
{
	struct hal_device_info *i = &dev->info;

	if (i->unit_rows == 0)
		i->unit_rows = 1;
	if (i->backend[0] == '\0')
		format_text(i->backend, sizeof(i->backend), "%s",
			    dev->backend->table.name);
	if (i->unit_cols == 0 || i->partitions_max == 0 || i->colors > 64 ||
	    i->unit_rows > UINT16_MAX || i->unit_cols > UINT16_MAX ||
	    ((i->caps & HAL_CAP_GRID) == 0 && i->unit_rows != 1))
		return fail(EPROTO,
			    "backend %s describes %u x %u units, %u partitions and %u "
			    "colours: not a device",
			    i->backend, i->unit_rows, i->unit_cols, i->partitions_max,
			    i->colors);
	/* Whatever the device: the engine can hold back what it has not been given. */
	dev->bk_suspend_modes = i->suspend_modes;
	i->suspend_modes |= 1u << HAL_SUSPEND_DRAIN;
	if (i->preempt < HAL_PREEMPT_BETWEEN)
		i->preempt = HAL_PREEMPT_BETWEEN;
	if (dev->virtual_clock && (i->caps & HAL_CAP_VIRTUAL_CLOCK) == 0)
		return fail(ENOTSUP, "%s has no virtual clock", dev->name);
	return 0;
}

static void device_init(struct hal_device *dev)
{
	list_init(&dev->partitions);
	list_init(&dev->programs);
	list_init(&dev->todo);
	list_init(&dev->dirty);
	list_init(&dev->blocked);
	list_init(&dev->flights);
	list_init(&dev->graves);
	busy_init(&dev->busy);
	dev->wake_fd = -1;
	dev->event_fd = -1;
}

/* Takes back what open has made so far; 0, or what layers found wrong. */
static int device_free(struct hal_device *dev)
{
	int err;

	if (dev->bk != NULL)
		dev->backend->table.cold.close(dev->bk);
	err = layers_close(dev);
	if (dev->policy != NULL && dev->policy->destroy != NULL)
		dev->policy->destroy(dev->policy_state);
	config_values_free(dev->core_cfg);
	config_values_free(dev->bk_cfg);
	config_values_free(dev->policy_cfg);
	config_free(&dev->cfg);
	free(dev->partition_map);
	pthread_mutex_destroy(&dev->lock);
	object_free(OBJECT_DEVICE, dev);
	return err;
}

static int backend_start(struct hal_device *dev, uint32_t index)
{
	const struct hal_backend *t = &dev->backend->table;
	const char *clock = option_str(dev->bk_cfg, "clock");
	int err;

	format_text(dev->name, sizeof(dev->name), "%s:%u", t->name, index);
	dev->virtual_clock = clock != NULL && strcmp(clock, "virtual") == 0;
	err = layers_open(dev, index);
	if (err != 0) {
		dev->bk = NULL;
		return err;
	}
	dev->info.size = sizeof(dev->info);
	err = dev->backend->table.cold.get_info(dev->bk, &dev->info);
	if (err == 0)
		err = info_check(dev);
	if (err != 0)
		return err;
	dev->partition_map =
		calloc((dev->info.partitions_max + 63) / 64, sizeof(uint64_t));
	if (dev->partition_map == NULL)
		return fail(ENOMEM, "no memory for %s", dev->name);
	return 0;
}

static int policy_start(struct hal_device *dev)
{
	const struct hal_policy *p = policy_find(option_str(dev->policy_cfg, "name"));

	if (p == NULL)
		return fail(EINVAL, "no policy %s", option_str(dev->policy_cfg, "name"));
	if (p->create != NULL) {
		int err = p->create(&core_host, dev->policy_cfg, &dev->policy_state);

		if (err != 0)
			return err;
	}
	dev->policy = p;
	return 0;
}

int hal_open(const char *target, const char *const *options, struct hal_device **out)
{
	struct hal_device *dev;
	struct target t;
	const char *trace;
	int err;

	if (out == NULL)
		return fail(EINVAL, "hal_open: dev is NULL");
	err = callback_refuse("hal_open");
	if (err != 0)
		return err;
	dev = object_alloc(OBJECT_DEVICE, sizeof(*dev));
	if (dev == NULL)
		return -ENOMEM;
	device_init(dev);
	if (lock_init(&dev->lock) != 0) {
		object_free(OBJECT_DEVICE, dev);
		return fail(ENOMEM, "no memory for a lock");
	}
	err = configure(dev, target, options, &t);
	if (err == 0)
		err = resolve_all(dev);
	if (err == 0)
		err = backend_start(dev, t.index);
	if (err == 0)
		err = policy_start(dev);
	if (err != 0)
		goto out;
	trace = option_str(dev->core_cfg, "trace");
	if (trace[0] != '\0' && (err = trace_open(dev, trace)) != 0)
		goto out;
	if (!dev->virtual_clock)
		err = engine_start(dev);
	if (err != 0 && dev->trace != NULL)
		(void)trace_close(dev);
out:
	if (err != 0)
		(void)device_free(dev);
	else
		*out = dev;
	return err;
}

int hal_close(struct hal_device *dev)
{
	char living[400];
	int err;

	if (dev == NULL)
		return 0;
	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	err = callback_refuse("hal_close");
	if (err != 0)
		return err;
	device_lock(dev);
	if (dev->partition_count + dev->program_count +
		    atomic_load(&dev->timeline_count) !=
	    0) {
		layers_living(dev, living, sizeof(living));
		err = fail(EBUSY,
			   "%s still has %u partitions, %u programs, %u timelines%s%s",
			   dev->name, dev->partition_count, dev->program_count,
			   atomic_load(&dev->timeline_count),
			   living[0] != '\0' ? ": " : "", living);
		device_unlock(dev);
		return err;
	}
	object_retire(&dev->obj);
	device_unlock(dev);
	engine_stop(dev);
	/* No queue is left, so nothing that was destroyed is in use any more. */
	device_lock(dev);
	grave_sweep(dev);
	if (dev->trace != NULL)
		(void)trace_close(dev); /* hal_trace_stop is who can tell of errors */
	device_unlock(dev);
	return device_free(dev);
}

/* ---- asking
 * --------------------------------------------------------------------------------- */

int hal_device_get_info(const struct hal_device *device, struct hal_device_info *info)
{
	/* The handle is const for the caller; the lock inside is not. */
	const union {
		const struct hal_device *theirs;
		struct hal_device *ours;
	} handle = {.theirs = device};
	struct hal_device *dev = handle.ours;
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_device_info fresh = HAL_INIT(hal_device_info);

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	device_lock(dev);
	i = dev->info;
	i.memory_free = device_memory_left(dev);
	/* Grain and its own structures cost a device more than was asked for. */
	if (dev->backend->table.cold.get_info(dev->bk, &fresh) == 0 &&
	    fresh.memory_free != 0 && fresh.memory_free < i.memory_free)
		i.memory_free = fresh.memory_free;
	device_unlock(dev);
	return export_struct(info, &i, sizeof(i),
			     offsetof(struct hal_device_info, backend),
			     "hal_device_info");
}

int hal_device_get_stats(struct hal_device *dev, struct hal_stats *stats)
{
	struct account sum;
	struct hal_stats s;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	device_lock(dev);
	sum = dev->past;
	hal_list_for_each (p, &dev->partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		account_add(&sum, &part->past);
		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			account_add(&sum, &q->account);
			sum.submitted += queue_commands(q);
		}
	}
	account_export(&s, &sum, dev->busy.total, dev->backend->table.hot.now(dev->bk));
	device_unlock(dev);
	return export_struct(stats, &s, sizeof(s), offsetof(struct hal_stats, now_ns),
			     "hal_stats");
}

uint64_t hal_device_now(struct hal_device *dev)
{
	uint64_t now;

	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		(void)object_bad(dev, OBJECT_DEVICE);
		return 0;
	}
	device_lock(dev);
	now = dev->backend->table.hot.now(dev->bk);
	device_unlock(dev);
	return now;
}

static int poll_virtual(struct hal_device *dev, uint64_t ns)
{
	uint64_t before = atomic_load(&dev->ended);
	uint64_t until = dev->backend->table.hot.now(dev->bk);

	until = until + ns < until ? UINT64_MAX : until + ns;
	while (engine_step(dev, until))
		;
	before = atomic_load(&dev->ended) - before;
	return before > INT32_MAX ? INT32_MAX : (int)before;
}

int hal_device_poll(struct hal_device *dev, uint64_t ns)
{
	uint64_t ended;
	int n;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	n = callback_refuse("hal_device_poll");
	if (n != 0)
		return n;
	device_lock(dev);
	if (dev->virtual_clock) {
		n = poll_virtual(dev, ns);
	} else {
		/* The engine's thread does the work: what ended since the last call. */
		ended = atomic_load(&dev->ended);
		n = (int)((ended - dev->ended_reported) & INT32_MAX);
		dev->ended_reported = ended;
	}
	device_unlock(dev);
	return n;
}

const void *hal_device_extension(struct hal_device *dev, const char *name)
{
	const void *table;

	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		(void)object_bad(dev, OBJECT_DEVICE);
		return NULL;
	}
	if (name == NULL) {
		(void)fail(EINVAL, "hal_device_extension: name is NULL");
		return NULL;
	}
	device_lock(dev);
	table = dev->backend->table.cold.extension(dev->bk, name);
	device_unlock(dev);
	if (table == NULL)
		(void)fail(ENOTSUP, "%s has no extension \"%s\"", dev->name, name);
	return table;
}

void *hal_device_native(struct hal_device *dev)
{
	if (!OBJECT_OK(dev, OBJECT_DEVICE)) {
		(void)object_bad(dev, OBJECT_DEVICE);
		return NULL;
	}
	return layers_native(dev);
}

/* ---- what there is, without opening
 * ---------------------------------------------------------- */

static int default_config(struct config *cfg)
{
	struct hal_bk_config *core = NULL;
	int err = config_load(cfg, NULL);

	if (err != 0)
		return err;
	err = config_resolve(cfg, "hal", core_options, core_option_count, &core);
	if (err == 0)
		err = registry_load(option_str(core, "plugins"));
	if (err == 0)
		err = config_check(cfg);
	config_values_free(core);
	if (err != 0)
		config_free(cfg);
	return err;
}

int hal_backend_get_info(uint32_t index, struct hal_backend_info *info)
{
	struct hal_device_info devices[PROBE_MAX];
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	const struct backend *backend;
	struct config cfg;
	int n;
	int err;

	if (info == NULL)
		return fail(EINVAL, "hal_backend_get_info: info is NULL");
	err = default_config(&cfg);
	if (err != 0)
		return err;
	if (index >= registry_count()) {
		err = fail(ENOENT, "there are %u backends, index %u is past them",
			   registry_count(), index);
		goto out;
	}
	backend = registry_at(index);
	n = backend_probe(&cfg, backend, devices, PROBE_MAX);
	b.status = n < 0 ? n : 0;
	b.device_count = n > 0 ? (uint32_t)n : 0;
	format_text(b.name, sizeof(b.name), "%s", backend->table.name);
	format_text(b.summary, sizeof(b.summary), "%s",
		    backend->table.summary != NULL ? backend->table.summary : "");
	if (n < 0)
		format_text(b.reason, sizeof(b.reason), "%s", hal_last_error());
	err = export_struct(info, &b, sizeof(b), offsetof(struct hal_backend_info, name),
			    "hal_backend_info");
out:
	config_free(&cfg);
	return err;
}

int hal_device_probe(uint32_t index, struct hal_device_info *info)
{
	struct hal_device_info devices[PROBE_MAX];
	struct config cfg;
	uint32_t seen = 0;
	int err;

	if (info == NULL)
		return fail(EINVAL, "hal_device_probe: info is NULL");
	err = default_config(&cfg);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < registry_count(); i++) {
		int n = backend_probe(&cfg, registry_at(i), devices, PROBE_MAX);
		uint32_t have = n < 0 ? 0 : n > PROBE_MAX ? PROBE_MAX : (uint32_t)n;

		if (index - seen < have) {
			err = export_struct(info, &devices[index - seen],
					    sizeof(devices[0]),
					    offsetof(struct hal_device_info, backend),
					    "hal_device_info");
			goto out;
		}
		seen += have;
	}
	err = fail(ENOENT, "there are %u devices, index %u is past them", seen, index);
out:
	config_free(&cfg);
	return err;
}
