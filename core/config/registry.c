/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - the lists of backends and policies, built in or from plug-ins.
 *
 * A backend may leave out operations.  The registry copies its table and fills the gaps
 * with stubs that fail with -ENOTSUP, so that callers need not test for NULL.
 */
#include "config/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "memory/granules.h"
#include "util/caller.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/log.h"

/* The entry functions are weak symbols, so that the library links without backends that
 * the build leaves out. */
#define HAL_BACKEND(name)                                                                \
	extern const struct hal_backend *hal_backend_##name(const struct hal_host *)     \
		__attribute__((weak, visibility("hidden")));
#include "hal_backends.h"
#undef HAL_BACKEND

static const hal_backend_entry_fn builtin[] = {
#define HAL_BACKEND(name) hal_backend_##name,
#include "hal_backends.h"
#undef HAL_BACKEND
	NULL,
};

static const char *const builtin_names[] = {
#define HAL_BACKEND(name) #name,
#include "hal_backends.h"
#undef HAL_BACKEND
	NULL,
};

#define BACKENDS_MAX 64

/* Entries are only added; they never move or change, so that devices may point to them.
 *
 * A thread holds .loading while it loads backends and plug-ins.  Loading runs code of
 * drivers, which may take long and may fork.  So a fork does not wait for .loading; the
 * child initializes it again.  The loading thread takes .lock for each change of the
 * lists, for a short time.  A fork waits for .lock, so that the child never sees an
 * unfinished change. */
static struct {
	pthread_mutex_t loading, lock;
	size_t builtins; /* entries of builtin that were loaded or found broken */
	bool loaded;     /* everything built in has been loaded */
	_Atomic uint32_t count;
	struct backend *at[BACKENDS_MAX];
	char *plugins[2 * BACKENDS_MAX]; /* paths of loaded plug-ins */
	uint32_t plugin_count;
} registry = {.loading = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
	pthread_mutex_lock(&registry.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&registry.lock);
}

/* Let the child load plug-ins, even if another thread of the parent was loading some. */
static void in_child(void)
{
	(void)pthread_mutex_init(&registry.loading, NULL);
	pthread_mutex_unlock(&registry.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

static int granules_open(const struct hal_bk_color_map *desc,
			 struct hal_bk_granules **out)
{
	char why[COLOR_MAP_WHY];
	struct color_map map;

	color_map_of(&map, desc);
	if (color_map_check(&map, why) != 0)
		return fail(EINVAL, "invalid map of memory channels: %s", why);
	return granules_make(&map, out);
}

const struct hal_host core_host = {
	.size = sizeof(struct hal_host),
	.abi = HAL_BACKEND_ABI,
	.fail = fail,
	.option_int = option_int,
	.option_str = option_str,
	.granules_open = granules_open,
	.granules_close = granules_free,
	.granules_take = granules_take,
	.granules_take_run = granules_take_run,
	.granules_give = granules_give,
	.granules_left = granules_left,
	.caller = caller_number,
};

/* ---- stubs for operations that a backend lacks ----------------------------------- */

#define LACKS(what) fail(ENOTSUP, "the device cannot " what)

static int no_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		    uint32_t max)
{
	(void)cfg, (void)out, (void)max;
	return fail(ENODEV, "the backend cannot search for devices");
}

static int no_open(const struct hal_bk_config *cfg, uint32_t index, void **dev)
{
	(void)cfg, (void)index, (void)dev;
	return LACKS("be opened");
}

static void no_close(void *dev)
{
	(void)dev;
}

static int no_get_info(void *dev, struct hal_device_info *info)
{
	(void)dev, (void)info;
	return LACKS("describe itself");
}

static int no_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
			       void **part)
{
	(void)dev, (void)desc, (void)part;
	return LACKS("be partitioned");
}

static int no_partition_destroy(void *dev, void *part)
{
	(void)dev, (void)part;
	return LACKS("destroy partitions");
}

static int no_queue_create(void *dev, void *part, int32_t priority, void **queue)
{
	(void)dev, (void)part, (void)priority, (void)queue;
	return LACKS("create queues");
}

static int no_queue_destroy(void *dev, void *queue)
{
	(void)dev, (void)queue;
	return LACKS("destroy queues");
}

static int no_mem_alloc(void *dev, void *part, uint64_t bytes,
			const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	(void)dev, (void)part, (void)bytes, (void)colors, (void)flags, (void)mem;
	return LACKS("allocate memory");
}

static int no_mem_free(void *dev, void *mem)
{
	(void)dev, (void)mem;
	return LACKS("free memory");
}

static int no_mem_write(void *dev, void *mem, uint64_t offset, const void *data,
			uint64_t bytes)
{
	(void)dev, (void)mem, (void)offset, (void)data, (void)bytes;
	return LACKS("be written by the host");
}

static int no_mem_read(void *dev, void *mem, uint64_t offset, void *data, uint64_t bytes)
{
	(void)dev, (void)mem, (void)offset, (void)data, (void)bytes;
	return LACKS("be read by the host");
}

static int no_mem_map(void *dev, void *mem, void **address)
{
	(void)dev, (void)mem, (void)address;
	return LACKS("map memory");
}

static int no_mem_unmap(void *dev, void *mem)
{
	(void)dev, (void)mem;
	return LACKS("unmap memory");
}

static int no_program_load(void *dev, const void *image, size_t size, void **prog)
{
	(void)dev, (void)image, (void)size, (void)prog;
	return LACKS("load programs");
}

static int no_program_unload(void *dev, void *prog)
{
	(void)dev, (void)prog;
	return LACKS("unload programs");
}

static int no_kernel_get(void *dev, void *prog, uint32_t index,
			 struct hal_bk_kernel_info *info, void **kernel)
{
	(void)dev, (void)prog, (void)index, (void)info, (void)kernel;
	return fail(ENOENT, "the program has no kernels");
}

static int no_program_bind(void *dev, void *prog, void *part, uint64_t *bytes)
{
	(void)dev, (void)prog, (void)part;
	*bytes = 0;
	return 0; /* hal/backend.h: a backend without it has nothing to do */
}

static int no_program_unbind(void *dev, void *prog, void *part)
{
	(void)dev, (void)prog, (void)part;
	return 0;
}

static int no_mem_swap(void *dev, void *mem, void *other)
{
	(void)dev, (void)mem, (void)other;
	return LACKS("exchange the memory of buffers");
}

static int no_mem_out(void *dev, void *mem)
{
	(void)dev, (void)mem;
	return LACKS("evict buffers");
}

static int no_mem_in(void *dev, void *mem, const struct hal_bk_colors *colors)
{
	(void)dev, (void)mem, (void)colors;
	return LACKS("evict buffers");
}

static int no_partition_widen(void *dev, void *part, uint32_t wide)
{
	(void)dev, (void)part, (void)wide;
	return LACKS("provide bimodal memory");
}

static int no_colors_set(void *dev, const struct hal_bk_color_map *map)
{
	(void)dev, (void)map;
	return LACKS("accept a map of its memory channels");
}

static const void *no_extension(void *dev, const char *name)
{
	(void)dev, (void)name;
	return NULL;
}

static int no_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	(void)dev, (void)queue, (void)cmd;
	return LACKS("run commands");
}

static int no_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	(void)dev, (void)until_ns, (void)ev, (void)max;
	return LACKS("be polled");
}

static uint64_t no_now(void *dev)
{
	(void)dev;
	return 0;
}

static int no_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	(void)dev, (void)queue, (void)mode, (void)cookie;
	return LACKS("suspend queues");
}

static int no_resume(void *dev, void *queue)
{
	(void)dev, (void)queue;
	return LACKS("resume queues");
}

static int no_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		     uint64_t cookie)
{
	(void)dev, (void)part, (void)desc, (void)cookie;
	return LACKS("resize partitions");
}

static int no_mem_register(void *dev, void *part, void *address, uint64_t bytes,
			   void **mem)
{
	(void)dev, (void)part, (void)address, (void)bytes, (void)mem;
	return LACKS("register host memory");
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the operation's type */
static int no_mem_export(void *dev, void *mem, int *fd)
{
	(void)dev, (void)mem, (void)fd;
	return LACKS("export memory");
}

static int no_mem_import(void *dev, void *part, int fd, uint64_t bytes, uint32_t flags,
			 void **mem)
{
	(void)dev, (void)part, (void)fd, (void)bytes, (void)flags, (void)mem;
	return LACKS("import memory");
}

static int no_event_fd(void *dev)
{
	(void)dev;
	return -ENOTSUP;
}

static int no_limit(void *dev, void *part, uint64_t bytes, uint64_t window_ns)
{
	(void)dev, (void)part, (void)bytes, (void)window_ns;
	return LACKS("limit bandwidth");
}

#undef LACKS

static const struct hal_bk_cold no_cold = {
	.probe = no_probe,
	.open = no_open,
	.close = no_close,
	.get_info = no_get_info,
	.partition_create = no_partition_create,
	.partition_destroy = no_partition_destroy,
	.queue_create = no_queue_create,
	.queue_destroy = no_queue_destroy,
	.mem_alloc = no_mem_alloc,
	.mem_free = no_mem_free,
	.mem_write = no_mem_write,
	.mem_read = no_mem_read,
	.mem_map = no_mem_map,
	.mem_unmap = no_mem_unmap,
	.program_load = no_program_load,
	.program_unload = no_program_unload,
	.kernel_get = no_kernel_get,
	.program_bind = no_program_bind,
	.program_unbind = no_program_unbind,
	.colors_set = no_colors_set,
	.extension = no_extension,
	.isolation = NULL, /* the core tests for NULL */
	.mem_clear = NULL, /* mem_alloc clears */
	.mem_register = no_mem_register,
	.mem_export = no_mem_export,
	.mem_import = no_mem_import,
};

static const struct hal_bk_hot no_hot = {
	.submit = no_submit,
	.poll = no_poll,
	.now = no_now,
	.suspend = no_suspend,
	.resume = no_resume,
	.resize = no_resize,
	.event_fd = no_event_fd,
	.next = NULL, /* the engine tests for NULL */
	.doorbell = NULL,
	.leave = NULL,
};

static const struct hal_bk_extra no_extra = {
	.mem_swap = no_mem_swap,
	.mem_out = no_mem_out,
	.mem_in = no_mem_in,
	.partition_widen = no_partition_widen,
	.counters = NULL, /* the core tests for NULL */
	.limit = no_limit,
};

/* Replace the NULL entries of table by those of stubs.  Both contain only pointers to
 * functions, size bytes in total. */
static void fill_gaps(void *table, const void *stubs, size_t size)
{
	typedef void (*operation)(void);

	for (size_t at = 0; at < size; at += sizeof(operation)) {
		operation op;

		memcpy(&op, (const char *)table + at, sizeof(op));
		if (op == NULL)
			memcpy((char *)table + at, (const char *)stubs + at, sizeof(op));
	}
}

/* Copy the operations at *from, size bytes, to a table of room bytes, and move *from to
 * their end.  Those that are missing or NULL become stubs. */
static void table_copy(void *table, size_t room, const char **from, size_t size,
		       const void *stubs)
{
	memcpy(table, *from, size < room ? size : room);
	*from += size;
	fill_gaps(table, stubs, room);
}

/* ---- registration ---------------------------------------------------------------- */

/* Check the table of a backend; from names its origin in messages. */
static int table_check(const struct hal_backend *t, const char *from)
{
	const size_t head = offsetof(struct hal_backend, cold);

	if (t->abi != HAL_BACKEND_ABI)
		return fail(EPROTO, "%s has backend ABI %u; this library needs ABI %u",
			    from, t->abi, HAL_BACKEND_ABI);
	if (t->size < head || (uint64_t)t->size - head < (uint64_t)t->cold_size +
								 t->hot_size +
								 t->extra_size)
		return fail(EPROTO,
			    "%s: a table of %u bytes cannot hold cold, hot and extra "
			    "operations of %u, %u and %u bytes",
			    from, t->size, t->cold_size, t->hot_size, t->extra_size);
	if (t->name == NULL || t->name[0] == '\0' || strlen(t->name) > 15 ||
	    strpbrk(t->name, ":?. ") != NULL)
		return fail(EPROTO,
			    "%s: a backend name has 1 to 15 characters and none of "
			    "\":?. \"",
			    from);
	if (t->option_count > 0 && t->options == NULL)
		return fail(EPROTO, "%s: %u options but no option table", from,
			    t->option_count);
	return 0;
}

/* Copy table t and add it to the list; path is its plug-in, or NULL.  The caller holds
 * .lock. */
static int backend_add(const struct hal_backend *t, const char *from, const char *path)
{
	const size_t head = offsetof(struct hal_backend, cold);
	uint32_t count = atomic_load(&registry.count);
	const char *from_table;
	struct backend *b;
	int err = table_check(t, from);

	if (err != 0)
		return err;
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(registry.at[i]->table.name, t->name) == 0)
			return fail(EINVAL, "%s: a backend %s is already loaded", from,
				    t->name);
	if (count == BACKENDS_MAX)
		return fail(ENOSPC, "%s: cannot load more than %d backends", from,
			    BACKENDS_MAX);
	b = calloc(1, sizeof(*b));
	if (b == NULL || (path != NULL && (b->path = strdup(path)) == NULL)) {
		free(b);
		return fail(ENOMEM, "no memory for backend %s", t->name);
	}
	memcpy(&b->table, t, head);
	/* The tables of another version of this ABI may be shorter or longer.  Each one
	 * starts where the one before it ends. */
	from_table = (const char *)t + head;
	table_copy(&b->table.cold, sizeof(no_cold), &from_table, t->cold_size, &no_cold);
	table_copy(&b->table.hot, sizeof(no_hot), &from_table, t->hot_size, &no_hot);
	table_copy(&b->table.extra, sizeof(no_extra), &from_table, t->extra_size,
		   &no_extra);
	format_text(b->section, sizeof(b->section), "backend.%s", t->name);
	registry.at[count] = b;
	atomic_store(&registry.count, count + 1);
	return 0;
}

/* Add built-in backend name, which failed to load with err.  The backend is listed, and
 * opening it returns err with the reason; other backends still work.  The caller holds
 * .lock. */
static int builtin_broken(const char *name, int err)
{
	struct hal_backend t = {
		.size = sizeof(t),
		.abi = HAL_BACKEND_ABI,
		.name = name,
		.summary = "a backend that does not load",
		.score = INT32_MIN,
	};
	char *why = strdup(hal_last_error());
	int added;

	LOG(HAL_LOG_WARNING, "backend %s cannot be used: %s", name, hal_last_error());
	added = why != NULL ? backend_add(&t, name, NULL)
			    : fail(ENOMEM, "no memory for backend %s", name);

	if (added != 0) {
		free(why);
		return added;
	}
	registry.at[registry.count - 1]->err = err;
	registry.at[registry.count - 1]->why = why;
	return 0;
}

/* Load the next entry of builtin.  Skip a backend that the build left out. */
static int builtin_next(void)
{
	const hal_backend_entry_fn entry = builtin[registry.builtins];
	const char *name = builtin_names[registry.builtins];
	const struct hal_backend *t = NULL;
	int err = 0;

	if (entry != NULL) {
		(void)fail(EPROTO, "no reason given");
		t = entry(&core_host);
		if (t == NULL)
			err = fail(EPROTO, "%s: refused to load: %s", name,
				   hal_last_error());
	}
	pthread_mutex_lock(&registry.lock);
	if (t != NULL)
		err = backend_add(t, name, NULL);
	if (err != 0 && err != -ENOMEM)
		err = builtin_broken(name, err);
	if (err == 0)
		registry.builtins++;
	pthread_mutex_unlock(&registry.lock);
	return err;
}

static int builtin_load(void)
{
	int err = 0;

	while (err == 0 && registry.builtins + 1 < ARRAY_LENGTH(builtin))
		err = builtin_next();
	return err;
}

/* Add path to the list of loaded plug-ins.  The caller holds .lock. */
static int plugin_remember(const char *path)
{
	/* If the list is full, the next attempt to load path fails, because its backend
	 * or policy already exists. */
	if (registry.plugin_count == ARRAY_LENGTH(registry.plugins))
		return 0;
	registry.plugins[registry.plugin_count] = strdup(path);
	if (registry.plugins[registry.plugin_count] == NULL)
		return fail(ENOMEM, "no memory for the list of plugins");
	registry.plugin_count++;
	return 0;
}

/* Add the policy of plug-in lib, which has no backend. */
static int policy_plugin(void *lib, const char *path)
{
	union {
		void *object;
		hal_policy_entry_fn function;
	} entry = {.object = dlsym(lib, HAL_POLICY_SYMBOL)};
	const struct hal_policy *p;
	int err;

	if (entry.object == NULL)
		return fail(EPROTO, "plugin %s has no symbol %s or %s", path,
			    HAL_BACKEND_SYMBOL, HAL_POLICY_SYMBOL);
	(void)fail(EPROTO, "no reason given");
	p = entry.function(&core_host);
	if (p == NULL)
		return fail(EPROTO, "plugin %s refused to load: %s", path,
			    hal_last_error());
	pthread_mutex_lock(&registry.lock);
	err = policy_add(p, path);
	if (err == 0)
		err = plugin_remember(path);
	pthread_mutex_unlock(&registry.lock);
	return err;
}

/* Fail with why, the text of dlerror.  Do not repeat path if why begins with it. */
static int not_loaded(const char *path, const char *why)
{
	size_t length = strlen(path);

	if (strncmp(why, path, length) == 0 && strncmp(why + length, ": ", 2) == 0)
		why += length + 2;
	return fail(ENOENT, "plugin %s: %s", path, why);
}

/* Load plug-in path and add its backend or policy, unless it is already loaded. */
static int plugin_load(const char *path)
{
	union {
		void *object;
		hal_backend_entry_fn function;
	} entry;
	const struct hal_backend *t;
	void *lib;
	int err;

	for (uint32_t i = 0; i < registry.plugin_count; i++)
		if (strcmp(registry.plugins[i], path) == 0)
			return 0;
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		return not_loaded(path, dlerror());
	entry.object = dlsym(lib, HAL_BACKEND_SYMBOL);
	if (entry.object == NULL) {
		err = policy_plugin(lib, path);
		goto out;
	}
	(void)fail(EPROTO, "no reason given");
	t = entry.function(&core_host);
	if (t == NULL) {
		err = fail(EPROTO, "plugin %s refused to load: %s", path,
			   hal_last_error());
		goto out;
	}
	pthread_mutex_lock(&registry.lock);
	err = backend_add(t, path, path);
	if (err == 0)
		err = plugin_remember(path);
	pthread_mutex_unlock(&registry.lock);
out:
	/* A registered plug-in is never unloaded, because users of its code are not
	 * counted. */
	if (err != 0)
		(void)dlclose(lib);
	else
		LOG(HAL_LOG_INFO, "plugin %s has been loaded", path);
	return err;
}

/* Load the plug-ins of a list separated by colons, and ignore the first `faults` of them
 * that fail.  At the next one that fails, store its file name up to the first dot in file
 * and return its error. */
static int plugins_load(const char *plugins, uint32_t faults, char *file, size_t size)
{
	char *copy = strdup(plugins);
	char *rest = copy;
	char *path;
	int err = 0;

	if (copy == NULL)
		return fail(ENOMEM, "no memory for the list of plugins");
	while (err == 0 && (path = strsep(&rest, ":")) != NULL) {
		if (path[0] != '\0')
			err = plugin_load(path);
		if (err != 0 && faults == UINT32_MAX)
			LOG(HAL_LOG_WARNING, "%s", hal_last_error());
		if (err != 0)
			format_text(file, size, "%.*s", (int)strcspn(basename(path), "."),
				    basename(path));
		if (err != 0 && faults > 0) {
			faults--;
			err = 0;
		}
	}
	free(copy);
	return err;
}

int registry_fault(const char *plugins, uint32_t index, char *file, size_t size)
{
	int err;

	pthread_mutex_lock(&registry.loading);
	err = plugins_load(plugins, index, file, size);
	pthread_mutex_unlock(&registry.loading);
	return err;
}

/* Load the built-in backends and policies, unless this has been done. */
static int all_builtin_load(void)
{
	int err;

	if (registry.loaded)
		return 0;
	err = builtin_load();
	if (err != 0)
		return err;
	pthread_mutex_lock(&registry.lock);
	err = policies_load();
	registry.loaded = err == 0;
	pthread_mutex_unlock(&registry.lock);
	return err;
}

int registry_load(const char *plugins)
{
	char file[1];
	int err;

	pthread_mutex_lock(&registry.loading);
	err = all_builtin_load();
	/* First load all that can be loaded, then return the first error. */
	if (err == 0)
		err = plugins_load(plugins, UINT32_MAX, file, sizeof(file));
	if (err == 0)
		err = plugins_load(plugins, 0, file, sizeof(file));
	pthread_mutex_unlock(&registry.loading);
	return err;
}

uint32_t registry_count(void)
{
	return atomic_load(&registry.count);
}

const struct backend *registry_at(uint32_t index)
{
	return registry.at[index];
}

const struct backend *registry_find(const char *name)
{
	uint32_t count = registry_count();

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(registry.at[i]->table.name, name) == 0)
			return registry.at[i];
	return NULL;
}

__attribute__((destructor)) static void registry_free(void)
{
	uint32_t count = registry_count();

	atomic_store(&registry.count, 0);
	while (registry.plugin_count > 0)
		free(registry.plugins[--registry.plugin_count]);
	for (uint32_t i = 0; i < count; i++) {
		free(registry.at[i]->path);
		free(registry.at[i]->why);
		free(registry.at[i]);
	}
}
