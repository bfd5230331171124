/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - the backend table of a device with layers.
 *
 * Each function of this table calls before() of the layers in order, then the backend,
 * then after() of the layers in reverse order.
 */
#include "layers/layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "util/compiler.h"
#include "util/error.h"

/* In order from the core to the backend. */
static const struct layer_type *const layer_types[] = {
	&layer_trace,
	&layer_validate,
	&layer_fault,
};

/* ---- operations ------------------------------------------------------------------- */

/* Call before() of the layers up to the first that refuses.  Return how many let c
 * pass. */
static uint32_t run_before(struct layers *l, struct layer_call *c)
{
	uint32_t i;

	pthread_mutex_lock(&l->lock);
	for (i = 0; i < l->count; i++) {
		int err = l->at[i].type->before(l->at[i].state, c);

		if (err != 0) {
			c->result = err;
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
	return i;
}

/* Call after() of the layers that let c pass; return the result of c. */
static int run_after(struct layers *l, struct layer_call *c, uint32_t passed)
{
	pthread_mutex_lock(&l->lock);
	while (passed-- > 0)
		l->at[passed].type->after(l->at[passed].state, c);
	pthread_mutex_unlock(&l->lock);
	return (int)c->result;
}

/* Pass c through the layers and evaluate real, the call of the backend, if all of them
 * let it pass. */
#define THROUGH(l, c, real)                                                              \
	__extension__({                                                                  \
		uint32_t passed_ = run_before((l), &(c));                                \
                                                                                         \
		if (passed_ == (l)->count)                                               \
			(c).result = (real);                                             \
		run_after((l), &(c), passed_);                                           \
	})
#define REAL(l, name)       ((l)->real->cold.name)
#define REAL_HOT(l, name)   ((l)->real->hot.name)
#define REAL_EXTRA(l, name) ((l)->real->extra.name)

static void call_close(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_close};
	uint32_t passed = run_before(l, &c);

	/* Close the device even if a layer has found an error. */
	REAL(l, close)(l->bk);
	c.result = 0;
	(void)run_after(l, &c, passed);
}

static int call_get_info(void *dev, struct hal_device_info *info)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_get_info, .info = info};

	return THROUGH(l, c, REAL(l, get_info)(l->bk, info));
}

static int call_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
				 void **part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_partition_create, .desc = desc, .out = part};

	return THROUGH(l, c, REAL(l, partition_create)(l->bk, desc, part));
}

static int call_partition_destroy(void *dev, void *part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_partition_destroy, .part = part};

	return THROUGH(l, c, REAL(l, partition_destroy)(l->bk, part));
}

static int call_queue_create(void *dev, void *part, int32_t priority, void **queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_queue_create,
			       .part = part,
			       .priority = priority,
			       .out = queue};

	return THROUGH(l, c, REAL(l, queue_create)(l->bk, part, priority, queue));
}

static int call_queue_destroy(void *dev, void *queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_queue_destroy, .queue = queue};

	return THROUGH(l, c, REAL(l, queue_destroy)(l->bk, queue));
}

static int call_mem_alloc(void *dev, void *part, uint64_t bytes,
			  const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_alloc,
			       .part = part,
			       .bytes = bytes,
			       .colors = colors,
			       .flags = flags,
			       .out = mem};

	return THROUGH(l, c, REAL(l, mem_alloc)(l->bk, part, bytes, colors, flags, mem));
}

static int call_mem_free(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_free, .mem = mem};

	return THROUGH(l, c, REAL(l, mem_free)(l->bk, mem));
}

static int call_mem_write(void *dev, void *mem, uint64_t offset, const void *data,
			  uint64_t bytes)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_write,
			       .mem = mem,
			       .offset = offset,
			       .data = data,
			       .bytes = bytes};

	return THROUGH(l, c, REAL(l, mem_write)(l->bk, mem, offset, data, bytes));
}

static int call_mem_read(void *dev, void *mem, uint64_t offset, void *data,
			 uint64_t bytes)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_read,
			       .mem = mem,
			       .offset = offset,
			       .data = data,
			       .bytes = bytes};

	return THROUGH(l, c, REAL(l, mem_read)(l->bk, mem, offset, data, bytes));
}

static int call_mem_map(void *dev, void *mem, void **address)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_map, .mem = mem, .out = address};

	return THROUGH(l, c, REAL(l, mem_map)(l->bk, mem, address));
}

static int call_mem_unmap(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_unmap, .mem = mem};

	return THROUGH(l, c, REAL(l, mem_unmap)(l->bk, mem));
}

static int call_program_load(void *dev, const void *image, size_t size, void **prog)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_program_load, .data = image, .bytes = size, .out = prog};

	return THROUGH(l, c, REAL(l, program_load)(l->bk, image, size, prog));
}

static int call_program_unload(void *dev, void *prog)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_unload, .prog = prog};

	return THROUGH(l, c, REAL(l, program_unload)(l->bk, prog));
}

static int call_kernel_get(void *dev, void *prog, uint32_t index,
			   struct hal_bk_kernel_info *info, void **kernel)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_kernel_get,
			       .prog = prog,
			       .index = index,
			       .kernel = info,
			       .out = kernel};

	return THROUGH(l, c, REAL(l, kernel_get)(l->bk, prog, index, info, kernel));
}

static int call_program_bind(void *dev, void *prog, void *part, uint64_t *bytes)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_bind,
			       .prog = prog,
			       .part = part,
			       .bound_bytes = bytes};

	return THROUGH(l, c, REAL(l, program_bind)(l->bk, prog, part, bytes));
}

static int call_program_unbind(void *dev, void *prog, void *part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_unbind, .prog = prog, .part = part};

	return THROUGH(l, c, REAL(l, program_unbind)(l->bk, prog, part));
}

static int call_mem_swap(void *dev, void *mem, void *other)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_swap, .mem = mem, .other = other};

	return THROUGH(l, c, REAL_EXTRA(l, mem_swap)(l->bk, mem, other));
}

static int call_partition_widen(void *dev, void *part, uint32_t wide)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_partition_widen, .part = part, .index = wide};

	return THROUGH(l, c, REAL_EXTRA(l, partition_widen)(l->bk, part, wide));
}

static int call_mem_out(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_out, .mem = mem};

	return THROUGH(l, c, REAL_EXTRA(l, mem_out)(l->bk, mem));
}

static int call_mem_in(void *dev, void *mem, const struct hal_bk_colors *colors)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_in, .mem = mem, .colors = colors};

	return THROUGH(l, c, REAL_EXTRA(l, mem_in)(l->bk, mem, colors));
}

static int call_mem_clear(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_clear, .mem = mem};

	return THROUGH(l, c, REAL(l, mem_clear)(l->bk, mem));
}

static int call_mem_register(void *dev, void *part, void *address, uint64_t bytes,
			     void **mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_register,
			       .part = part,
			       .data = address,
			       .bytes = bytes,
			       .flags = HAL_BK_MEM_HOST,
			       .out = mem};

	return THROUGH(l, c, REAL(l, mem_register)(l->bk, part, address, bytes, mem));
}

static int call_mem_export(void *dev, void *mem, int *fd)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_export, .mem = mem, .fd = fd};

	return THROUGH(l, c, REAL(l, mem_export)(l->bk, mem, fd));
}

static int call_mem_import(void *dev, void *part, int fd, uint64_t bytes, uint32_t flags,
			   void **mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_import,
			       .part = part,
			       .index = (uint32_t)fd,
			       .bytes = bytes,
			       .flags = flags,
			       .out = mem};

	return THROUGH(l, c, REAL(l, mem_import)(l->bk, part, fd, bytes, flags, mem));
}

static int call_colors_set(void *dev, const struct hal_bk_color_map *map)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_colors_set, .index = map->colors};

	return THROUGH(l, c, REAL(l, colors_set)(l->bk, map));
}

static const void *call_extension(void *dev, const char *name)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_extension, .name = name};
	const void *table = NULL;
	uint32_t passed = run_before(l, &c);

	if (passed == l->count) {
		table = REAL(l, extension)(l->bk, name);
		c.result = table != NULL;
	}
	(void)run_after(l, &c, passed);
	return table;
}

static uint32_t call_isolation(void *dev, const struct hal_bk_partition_desc *desc)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_isolation, .desc = desc};

	return (uint32_t)THROUGH(l, c, REAL(l, isolation)(l->bk, desc));
}

static int call_counters(void *dev, struct hal_bk_counter *out, uint32_t max,
			 uint64_t *at_ns)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_counters, .counters = out, .max = max};

	return THROUGH(l, c, REAL_EXTRA(l, counters)(l->bk, out, max, at_ns));
}

static int call_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_submit, .queue = queue, .cmd = cmd};

	return THROUGH(l, c, REAL_HOT(l, submit)(l->bk, queue, cmd));
}

static int call_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_poll, .until_ns = until_ns, .events = ev, .max = max};

	return THROUGH(l, c, REAL_HOT(l, poll)(l->bk, until_ns, ev, max));
}

static uint64_t call_now(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_now};
	unsigned long long reported = atomic_load(&l->reported_ns);
	uint64_t now = REAL_HOT(l, now)(l->bk);
	uint32_t passed;

	/* Layers compare this time only with times returned before this call began,
	 * because a concurrent call may return a later time. */
	c.until_ns = reported;
	while (reported < now &&
	       !atomic_compare_exchange_weak(&l->reported_ns, &reported, now))
		;
	passed = run_before(l, &c);
	c.result = (int64_t)now;
	(void)run_after(l, &c, passed);
	return now;
}

static int call_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_suspend, .queue = queue, .mode = mode, .cookie = cookie};

	return THROUGH(l, c, REAL_HOT(l, suspend)(l->bk, queue, mode, cookie));
}

static int call_resume(void *dev, void *queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_resume, .queue = queue};

	return THROUGH(l, c, REAL_HOT(l, resume)(l->bk, queue));
}

static int call_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		       uint64_t cookie)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_resize, .part = part, .desc = desc, .cookie = cookie};

	return THROUGH(l, c, REAL_HOT(l, resize)(l->bk, part, desc, cookie));
}

static int call_event_fd(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_event_fd};

	return THROUGH(l, c, REAL_HOT(l, event_fd)(l->bk));
}

static uint64_t call_next(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_next};
	uint32_t passed = run_before(l, &c);
	uint64_t next = passed == l->count ? REAL_HOT(l, next)(l->bk) : 0;

	c.result = (int64_t)next;
	(void)run_after(l, &c, passed);
	return next;
}

static void call_doorbell(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_doorbell};
	uint32_t passed = run_before(l, &c);

	REAL_HOT(l, doorbell)(l->bk);
	c.result = 0;
	(void)run_after(l, &c, passed);
}

static int call_limit(void *dev, void *part, uint64_t bytes, uint64_t window_ns)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_limit, .part = part, .bytes = bytes, .until_ns = window_ns};

	return THROUGH(l, c, REAL_EXTRA(l, limit)(l->bk, part, bytes, window_ns));
}

static const struct hal_bk_cold call_cold = {
	.close = call_close,
	.get_info = call_get_info,
	.partition_create = call_partition_create,
	.partition_destroy = call_partition_destroy,
	.queue_create = call_queue_create,
	.queue_destroy = call_queue_destroy,
	.mem_alloc = call_mem_alloc,
	.mem_free = call_mem_free,
	.mem_write = call_mem_write,
	.mem_read = call_mem_read,
	.mem_map = call_mem_map,
	.mem_unmap = call_mem_unmap,
	.colors_set = call_colors_set,
	.program_load = call_program_load,
	.program_unload = call_program_unload,
	.kernel_get = call_kernel_get,
	.program_bind = call_program_bind,
	.program_unbind = call_program_unbind,
	.extension = call_extension,
	.isolation = call_isolation,
	.mem_clear = call_mem_clear,
	.mem_register = call_mem_register,
	.mem_export = call_mem_export,
	.mem_import = call_mem_import,
};

static const struct hal_bk_hot call_hot = {
	.submit = call_submit,
	.poll = call_poll,
	.now = call_now,
	.suspend = call_suspend,
	.resume = call_resume,
	.resize = call_resize,
	.event_fd = call_event_fd,
	.next = call_next,
	.doorbell = call_doorbell,
};

static const struct hal_bk_extra call_extra = {
	.mem_swap = call_mem_swap,
	.mem_out = call_mem_out,
	.mem_in = call_mem_in,
	.partition_widen = call_partition_widen,
	.counters = call_counters,
	.limit = call_limit,
};

/* ---- opening and closing ---------------------------------------------------------- */

static int layers_destroy(struct layers *l)
{
	int err = 0;

	/* If several layers found problems, return the error of the one nearest to the
	 * core. */
	while (l->count-- > 0) {
		int e = l->at[l->count].type->destroy(l->at[l->count].state);

		if (e != 0)
			err = e;
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
	return err;
}

static int layers_create(struct hal_device *dev, const struct backend *b,
			 const struct hal_bk_config *cfg, struct layers **out)
{
	struct layers *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return fail(ENOMEM, "no memory for layers");
	(void)pthread_mutex_init(&l->lock, NULL);
	l->dev = dev;
	l->real = &b->table;
	l->table = b->table;
	l->table.cold = call_cold;
	l->table.hot = call_hot;
	l->table.extra = call_extra;
	/* The core tests whether these optional operations are NULL. */
	if (l->real->cold.isolation == NULL)
		l->table.cold.isolation = NULL;
	if (l->real->extra.counters == NULL)
		l->table.extra.counters = NULL;
	if (l->real->cold.mem_clear == NULL)
		l->table.cold.mem_clear = NULL;
	if (l->real->hot.next == NULL)
		l->table.hot.next = NULL;
	if (l->real->hot.doorbell == NULL)
		l->table.hot.doorbell = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(layer_types); i++) {
		void *state = NULL;
		int err = layer_types[i]->create(l, cfg, &state);

		if (err != 0) {
			(void)layers_destroy(l);
			return err;
		}
		if (state == NULL)
			continue;
		l->at[l->count].type = layer_types[i];
		l->at[l->count++].state = state;
	}
	if (l->count == 0)
		(void)layers_destroy(l);
	else
		*out = l;
	return 0;
}

int layers_open(struct hal_device *dev, const struct config *config,
		const struct backend *b, const struct hal_bk_config *bk_cfg,
		uint32_t index, struct layers **out)
{
	struct layer_call c = {.op = CALL_open, .index = index};
	struct hal_bk_config *cfg;
	struct layers *l = NULL;
	uint32_t passed;
	bool opened = false;
	int err =
		config_resolve(config, "layers", layer_options, layer_option_count, &cfg);

	dev->table = &b->table;
	if (err != 0)
		return err;
	err = layers_create(dev, b, cfg, &l);
	config_values_free(cfg);
	if (err != 0)
		return err;
	if (l == NULL)
		return b->table.cold.open(bk_cfg, index, &dev->bk);
	*out = l;
	dev->table = &l->table;
	c.out = &l->bk;
	passed = run_before(l, &c);
	if (passed == l->count) {
		c.result = REAL(l, open)(bk_cfg, index, &l->bk);
		opened = c.result == 0;
	}
	err = run_after(l, &c, passed);
	if (err != 0) {
		if (opened && l->bk != NULL)
			REAL(l, close)(l->bk);
		l->bk = NULL;
		return err;
	}
	dev->bk = l;
	return 0;
}

int layers_close(struct layers *l)
{
	return layers_destroy(l);
}

void *layers_native(const struct layers *l, void *bk)
{
	return l != NULL ? l->bk : bk;
}

void layers_living(struct layers *l, char *text, size_t size)
{
	text[0] = '\0';
	if (l == NULL)
		return;
	pthread_mutex_lock(&l->lock);
	validate_living(l, text, size);
	pthread_mutex_unlock(&l->lock);
}
