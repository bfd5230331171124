/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - the table that a device with layers has, and how they are put on. */
#include "layers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct hal_option_def layer_options[] = {
	{"validate", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "check every call between the core and the backend, both ways, and leaks"},
	{"report", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "validate: append what is wrong to this file, a line each"},
	{"fault", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "fail every n-th call: OPERATION:N:ERRNO, several with commas between"},
	{"trace", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "append every call of the backend to this file, a line of JSON each"},
};
const uint32_t layer_option_count = ARRAY_LENGTH(layer_options);

const char *const layer_op_names[LAYER_OP_COUNT] = {
#define X(name) #name,
	LAYER_OPS(X)
#undef X
};

/* The first is next to the core. */
static const struct layer_type *const types[] = {
	&layer_trace,
	&layer_validate,
	&layer_fault,
};

/* ---- calls ------------------------------------------------------------------------ */

/* Down to the first layer that refuses; how many let it pass. */
static uint32_t down(struct layers *l, struct layer_call *c)
{
	for (uint32_t i = 0; i < l->count; i++) {
		int err = l->at[i].type->before(l->at[i].state, c);

		if (err != 0) {
			c->result = err;
			return i;
		}
	}
	return l->count;
}

static int up(struct layers *l, struct layer_call *c, uint32_t passed)
{
	while (passed-- > 0)
		l->at[passed].type->after(l->at[passed].state, c);
	return (int)c->result;
}

/* c through the layers, around what makes its result. */
#define THROUGH(l, c, real)                                                              \
	__extension__({                                                                  \
		uint32_t passed_ = down((l), &(c));                                      \
                                                                                         \
		if (passed_ == (l)->count)                                               \
			(c).result = (real);                                             \
		up((l), &(c), passed_);                                                  \
	})
#define COLD(l, name) ((l)->real->table.cold.name)
#define HOT(l, name)  ((l)->real->table.hot.name)

static void call_close(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_close};
	uint32_t passed = down(l, &c);

	/* Whatever they think of it. */
	COLD(l, close)(l->bk);
	c.result = 0;
	(void)up(l, &c, passed);
}

static int call_get_info(void *dev, struct hal_device_info *info)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_get_info, .info = info};

	return THROUGH(l, c, COLD(l, get_info)(l->bk, info));
}

static int call_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
				 void **part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_partition_create, .desc = desc, .out = part};

	return THROUGH(l, c, COLD(l, partition_create)(l->bk, desc, part));
}

static int call_partition_destroy(void *dev, void *part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_partition_destroy, .part = part};

	return THROUGH(l, c, COLD(l, partition_destroy)(l->bk, part));
}

static int call_queue_create(void *dev, void *part, int32_t priority, void **queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_queue_create,
			       .part = part,
			       .priority = priority,
			       .out = queue};

	return THROUGH(l, c, COLD(l, queue_create)(l->bk, part, priority, queue));
}

static int call_queue_destroy(void *dev, void *queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_queue_destroy, .queue = queue};

	return THROUGH(l, c, COLD(l, queue_destroy)(l->bk, queue));
}

static int call_mem_alloc(void *dev, void *part, uint64_t bytes, uint64_t color_mask,
			  uint32_t flags, void **mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_alloc,
			       .part = part,
			       .bytes = bytes,
			       .color_mask = color_mask,
			       .flags = flags,
			       .out = mem};

	return THROUGH(l, c,
		       COLD(l, mem_alloc)(l->bk, part, bytes, color_mask, flags, mem));
}

static int call_mem_free(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_free, .mem = mem};

	return THROUGH(l, c, COLD(l, mem_free)(l->bk, mem));
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

	return THROUGH(l, c, COLD(l, mem_write)(l->bk, mem, offset, data, bytes));
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

	return THROUGH(l, c, COLD(l, mem_read)(l->bk, mem, offset, data, bytes));
}

static int call_mem_map(void *dev, void *mem, void **address)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_map, .mem = mem, .out = address};

	return THROUGH(l, c, COLD(l, mem_map)(l->bk, mem, address));
}

static int call_mem_unmap(void *dev, void *mem)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_mem_unmap, .mem = mem};

	return THROUGH(l, c, COLD(l, mem_unmap)(l->bk, mem));
}

static int call_program_load(void *dev, const void *image, size_t size, void **prog)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_program_load, .data = image, .bytes = size, .out = prog};

	return THROUGH(l, c, COLD(l, program_load)(l->bk, image, size, prog));
}

static int call_program_unload(void *dev, void *prog)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_unload, .prog = prog};

	return THROUGH(l, c, COLD(l, program_unload)(l->bk, prog));
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

	return THROUGH(l, c, COLD(l, kernel_get)(l->bk, prog, index, info, kernel));
}

static int call_program_bind(void *dev, void *prog, void *part, uint64_t *bytes)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_bind,
			       .prog = prog,
			       .part = part,
			       .bound_bytes = bytes};

	return THROUGH(l, c, COLD(l, program_bind)(l->bk, prog, part, bytes));
}

static int call_program_unbind(void *dev, void *prog, void *part)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_program_unbind, .prog = prog, .part = part};

	return THROUGH(l, c, COLD(l, program_unbind)(l->bk, prog, part));
}

static const void *call_extension(void *dev, const char *name)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_extension, .name = name};
	const void *table = NULL;
	uint32_t passed = down(l, &c);

	if (passed == l->count) {
		table = COLD(l, extension)(l->bk, name);
		c.result = table != NULL;
	}
	(void)up(l, &c, passed);
	return table;
}

static uint32_t call_isolation(void *dev, const struct hal_bk_partition_desc *desc)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_isolation, .desc = desc};

	return (uint32_t)THROUGH(l, c, COLD(l, isolation)(l->bk, desc));
}

static int call_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_submit, .queue = queue, .cmd = cmd};

	return THROUGH(l, c, HOT(l, submit)(l->bk, queue, cmd));
}

static int call_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_poll, .until_ns = until_ns, .events = ev, .max = max};

	return THROUGH(l, c, HOT(l, poll)(l->bk, until_ns, ev, max));
}

static uint64_t call_now(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_now};
	uint64_t now = HOT(l, now)(l->bk);
	uint32_t passed = down(l, &c);

	c.result = (int64_t)now;
	(void)up(l, &c, passed);
	return now;
}

static int call_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_suspend, .queue = queue, .mode = mode, .cookie = cookie};

	return THROUGH(l, c, HOT(l, suspend)(l->bk, queue, mode, cookie));
}

static int call_resume(void *dev, void *queue)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_resume, .queue = queue};

	return THROUGH(l, c, HOT(l, resume)(l->bk, queue));
}

static int call_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		       uint64_t cookie)
{
	struct layers *l = dev;
	struct layer_call c = {
		.op = CALL_resize, .part = part, .desc = desc, .cookie = cookie};

	return THROUGH(l, c, HOT(l, resize)(l->bk, part, desc, cookie));
}

static int call_event_fd(void *dev)
{
	struct layers *l = dev;
	struct layer_call c = {.op = CALL_event_fd};

	return THROUGH(l, c, HOT(l, event_fd)(l->bk));
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
	.program_load = call_program_load,
	.program_unload = call_program_unload,
	.kernel_get = call_kernel_get,
	.program_bind = call_program_bind,
	.program_unbind = call_program_unbind,
	.extension = call_extension,
	.isolation = call_isolation,
};

static const struct hal_bk_hot call_hot = {
	.submit = call_submit,
	.poll = call_poll,
	.now = call_now,
	.suspend = call_suspend,
	.resume = call_resume,
	.resize = call_resize,
	.event_fd = call_event_fd,
};

/* ---- on and off ------------------------------------------------------------------- */

static int layers_destroy(struct layers *l)
{
	int err = 0;

	/* The one next to the core has the last word. */
	while (l->count-- > 0) {
		int e = l->at[l->count].type->destroy(l->at[l->count].state);

		if (e != 0)
			err = e;
	}
	free(l);
	return err;
}

static int layers_create(struct hal_device *dev, const struct hal_bk_config *cfg)
{
	struct layers *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return fail(ENOMEM, "no memory for layers");
	l->dev = dev;
	l->real = dev->backend;
	l->backend = *dev->backend;
	l->backend.table.cold = call_cold;
	l->backend.table.hot = call_hot;
	/* Whether there is one is an answer, too. */
	if (dev->backend->table.cold.isolation == NULL)
		l->backend.table.cold.isolation = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
		void *state = NULL;
		int err = types[i]->create(l, cfg, &state);

		if (err != 0) {
			(void)layers_destroy(l);
			return err;
		}
		if (state == NULL)
			continue;
		l->at[l->count].type = types[i];
		l->at[l->count++].state = state;
	}
	if (l->count == 0) {
		free(l);
		return 0;
	}
	dev->layers = l;
	dev->backend = &l->backend;
	return 0;
}

int layers_open(struct hal_device *dev, uint32_t index)
{
	struct layer_call c = {.op = CALL_open, .index = index};
	struct hal_bk_config *cfg;
	struct layers *l;
	uint32_t passed;
	bool opened = false;
	int err = config_resolve(&dev->cfg, "layers", layer_options, layer_option_count,
				 &cfg);

	if (err != 0)
		return err;
	err = layers_create(dev, cfg);
	config_values_free(cfg);
	if (err != 0)
		return err;
	l = dev->layers;
	if (l == NULL)
		return dev->backend->table.cold.open(dev->bk_cfg, index, &dev->bk);
	c.out = &l->bk;
	passed = down(l, &c);
	if (passed == l->count) {
		c.result = COLD(l, open)(dev->bk_cfg, index, &l->bk);
		opened = c.result == 0;
	}
	err = up(l, &c, passed);
	if (err != 0) {
		if (opened && l->bk != NULL)
			COLD(l, close)(l->bk);
		l->bk = NULL;
		return err;
	}
	dev->bk = l;
	return 0;
}

int layers_close(struct hal_device *dev)
{
	struct layers *l = dev->layers;

	if (l == NULL)
		return 0;
	dev->layers = NULL;
	dev->backend = l->real;
	return layers_destroy(l);
}

void *layers_native(const struct hal_device *dev)
{
	return dev->layers != NULL ? dev->layers->bk : dev->bk;
}

void layers_living(const struct hal_device *dev, char *text, size_t size)
{
	text[0] = '\0';
	if (dev->layers != NULL)
		validate_living(dev->layers, text, size);
}
