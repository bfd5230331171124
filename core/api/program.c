/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - load and unload programs, find kernels, place programs in partitions.
 *
 * A program is loaded on the device once.  It is placed in (bound to) a partition when
 * that partition first submits or records a launch of one of its kernels.  The memory for
 * its constants is charged to the partition then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "command/deferred.h"
#include "far/far.h"
#include "lib/pack.h"
#include "loop/engine.h"
#include "memory/evict.h"
#include "memory/quota.h"
#include "observe/trace.h"
#include "sched/expect.h"
#include "space/resize.h"

/* Free the core's memory of prog.  The backend must have unloaded it before. */
static void program_free(struct hal_program *prog)
{
	for (uint32_t i = 0; i < prog->kernel_count; i++)
		object_free(OBJECT_KERNEL, prog->kernels[i]);
	free(prog->kernels);
	free(prog->bound_bytes);
	free(prog->image);
	prog->kernels = NULL;
	prog->kernel_count = 0;
	prog->bound_bytes = NULL;
	prog->image = NULL;
	object_free(OBJECT_PROGRAM, prog);
}

/* Append a kernel that the backend has listed.  Return 0 or -errno. */
static int kernel_add(struct hal_program *prog, const struct hal_bk_kernel_info *info,
		      void *bk)
{
	struct hal_kernel **more;
	struct hal_kernel *k;

	if (info->arg_count > HAL_ARGS_MAX)
		return fail(EPROTO,
			    "kernel %.31s has %u arguments, at most %d are allowed",
			    info->name, info->arg_count, HAL_ARGS_MAX);
	more = realloc(prog->kernels,
		       (prog->kernel_count + 1) * sizeof(struct hal_kernel *));
	if (more == NULL)
		return fail(ENOMEM, "no memory for the kernels of a program");
	prog->kernels = more;
	k = object_alloc(OBJECT_KERNEL, sizeof(*k));
	if (k == NULL)
		return -ENOMEM;
	k->prog = prog;
	k->user = prog->dev;
	k->bk = bk;
	k->info = *info;
	k->bound = prog->bound;
	k->inline_args =
		info->arg_count <= INLINE_ARGS_MAX ? info->arg_count : UINT32_MAX;
	k->slots = launch_slots(info->arg_count);
	k->flags = record_flags(0, k->slots, REC_END | REC_WHOLE);
	k->info.name[sizeof(k->info.name) - 1] = '\0';
	k->known = profile_find(prog->dev->observe.profile, &k->info);
	prog->kernels[prog->kernel_count++] = k;
	return 0;
}

struct load {
	struct hal_program *prog;
	size_t size;
};

/* Store in each kernel of prog the number that prog has in the device's profile. */
static void number_program(struct hal_program *prog)
{
	uint32_t number = profile_program(prog->dev->observe.profile, prog->kernels,
					  prog->kernel_count);

	for (uint32_t i = 0; i < prog->kernel_count; i++)
		prog->kernels[i]->program = number;
}

/* Load an image and list its kernels.  Runs on the calling thread if the backend allows
 * that (HAL_BK_BESIDE_PROGRAM), else in the engine. */
static int load(struct hal_device *dev, void *arg)
{
	const struct load *l = arg;
	struct hal_program *prog = l->prog;
	int err = dev->table->cold.program_load(dev->bk, prog->image, l->size, &prog->bk);

	for (uint32_t i = 0; err == 0; i++) {
		struct hal_bk_kernel_info info;
		void *bk = NULL;

		memset(&info, 0, sizeof(info));
		err = dev->table->cold.kernel_get(dev->bk, prog->bk, i, &info, &bk);
		if (err == -ENOENT) {
			number_program(prog);
			return 0;
		}
		if (err == 0)
			err = kernel_add(prog, &info, bk);
		if (err != 0)
			prog->loaded = true; /* makes load_image unload the program */
	}
	return err;
}

static int enter_program(struct hal_device *dev, void *arg)
{
	struct hal_program *prog = arg;

	list_add_before(&dev->programs_loaded, &prog->on_device);
	return 0;
}

static int unload(struct hal_device *dev, void *arg)
{
	const struct hal_program *prog = arg;

	return dev->table->cold.program_unload(dev->bk, prog->bk);
}

/* Allocate a program with a copy of image.  Return NULL on -ENOMEM. */
static struct hal_program *program_make(struct hal_device *dev, const void *image,
					size_t size)
{
	size_t words = (partition_numbers(dev) + 63) / 64;
	struct hal_program *prog = object_alloc(
		OBJECT_PROGRAM, sizeof(*prog) + words * sizeof(prog->bound[0]));

	if (prog == NULL)
		return NULL;
	prog->dev = dev;
	atomic_init(&prog->pins, 1);
	list_init(&prog->on_device);
	prog->image = malloc(size);
	prog->bound_bytes = calloc(partition_numbers(dev), sizeof(uint64_t));
	if (prog->image == NULL || prog->bound_bytes == NULL) {
		program_free(prog);
		(void)fail(ENOMEM, "no memory for an image of %zu bytes", size);
		return NULL;
	}
	memcpy(prog->image, image, size);
	return prog;
}

/* Load one image.  Return 0 or -errno. */
static int load_image(struct hal_device *dev, const void *image, size_t size,
		      struct hal_program **out)
{
	struct load l = {.size = size};
	char text[400];
	int err;

	l.prog = program_make(dev, image, size);
	if (l.prog == NULL)
		return -ENOMEM;
	err = device_beside(dev, HAL_BK_BESIDE_PROGRAM, load, &l);
	if (err == 0)
		err = engine_call(dev, enter_program, l.prog);
	if (err != 0) {
		format_text(text, sizeof(text), "%s", hal_last_error());
		if (l.prog->loaded)
			(void)engine_call(dev, unload, l.prog);
		program_free(l.prog);
		return fail(err, "%s", text);
	}
	atomic_fetch_add(&dev->programs, 1);
	*out = l.prog;
	return 0;
}

/* Return whether err means that the device cannot run this image but may run another. */
static bool is_refusal(int err)
{
	return err == -EINVAL || err == -ENOTSUP || err == -ENOEXEC;
}

/* Load the first image of a pack that the device accepts.  Try them in order, because
 * only the backend knows what the device and its driver can run. */
static int load_pack(struct hal_device *dev, const uint8_t *pack, size_t size,
		     struct hal_program **out)
{
	char text[400] = "", why[200];
	size_t used = 0;
	bool few;

	if (!pack_check(pack, size, why, sizeof(why)))
		return fail(EINVAL, "hal_program_load: pack: %s", why);
	few = pack_count(pack) <= 4;
	for (uint32_t i = 0; i < pack_count(pack); i++) {
		const struct hal_pack_entry e = pack_entry(pack, i);
		int err = load_image(dev, pack + e.offset, e.bytes, out);

		if (err == 0)
			return 0;
		if (!is_refusal(err)) {
			format_text(text, sizeof(text), "%s", hal_last_error());
			return fail(err, "image %u of the pack (%s): %s", i, e.label,
				    text);
		}
		/* With many images the text has space only for their labels. */
		format_text(text + used, sizeof(text) - used, "%s%s%s%.80s",
			    i == 0 ? "" : "; ", e.label, few ? ": " : "",
			    few ? hal_last_error() : "");
		used = strlen(text);
	}
	return fail(ENOTSUP, "the device accepts none of the pack's %u images: %s",
		    pack_count(pack), text);
}

int hal_program_load(struct hal_device *dev, const void *image, size_t size,
		     struct hal_program **out)
{
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_program_load(dev, image, size, out));
	if (image == NULL || out == NULL)
		return fail(EINVAL, "hal_program_load: %s is NULL",
			    image == NULL ? "image" : "prog");
	if (size == 0)
		return fail(EINVAL, "hal_program_load: size is 0");
	err = device_alive(dev);
	if (err != 0)
		return err;
	err = pack_is(image, size) ? load_pack(dev, image, size, out)
				   : load_image(dev, image, size, out);
	return tried(err);
}

struct naming {
	struct hal_program *prog;
	const char *name;
};

/* Set the name of a program.  Engine only, because the engine reads the name when it
 * writes a trace. */
static int set_name(struct hal_device *dev, void *arg)
{
	const struct naming *n = arg;

	(void)dev;
	format_text(n->prog->name, sizeof(n->prog->name), "%s", n->name);
	return 0;
}

int hal_program_set_name(struct hal_program *prog, const char *name)
{
	struct naming n = {prog, name};

	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return FAR_OR_BAD(prog, OBJECT_PROGRAM, far_program_set_name(prog, name));
	if (name == NULL)
		return fail(EINVAL, "hal_program_set_name: name is NULL");
	if (strlen(name) >= sizeof(prog->name))
		return fail(EINVAL,
			    "hal_program_set_name: the name has %zu characters, at most "
			    "%zu are allowed",
			    strlen(name), sizeof(prog->name) - 1);
	return engine_call(prog->dev, set_name, &n);
}

struct told {
	const struct hal_program *prog;
	struct hal_program_info info;
};

/* Copy the name of a program.  Engine only: set_name writes it there. */
static int get_name(struct hal_device *dev, void *arg)
{
	struct told *t = arg;

	(void)dev;
	memcpy(t->info.name, t->prog->name, sizeof(t->info.name));
	return 0;
}

int hal_program_get_info(const struct hal_program *prog, struct hal_program_info *info)
{
	struct told t = {prog, HAL_INIT(hal_program_info)};
	int err;

	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return FAR_OR_BAD(prog, OBJECT_PROGRAM, far_program_get_info(prog, info));
	_Static_assert(sizeof(prog->name) == sizeof(info->name), "one name");
	t.info.kernel_count = prog->kernel_count;
	err = engine_call(prog->dev, get_name, &t);
	if (err != 0)
		return err;
	return export_struct(info, &t.info, sizeof(t.info),
			     offsetof(struct hal_program_info, name), "hal_program_info");
}

/* ---- placing in partitions --------------------------------------------------------- */

static bool program_is_bound(const struct hal_program *prog, uint32_t index)
{
	return (atomic_load_explicit(&prog->bound[index / 64], memory_order_relaxed) >>
			index % 64 &
		1) != 0;
}

/* Remove prog from part, and release the memory of its constants.  Engine only. */
static void unbind(struct hal_program *prog, struct hal_partition *part)
{
	struct hal_device *dev = prog->dev;
	uint32_t i = part->desc.index;

	(void)dev->table->cold.program_unbind(dev->bk, prog->bk, part->bk);
	partition_release(part, prog->bound_bytes[i]);
	trace_memory(dev, part);
	prog->bound_bytes[i] = 0;
	atomic_fetch_and(&prog->bound[i / 64], ~(UINT64_C(1) << i % 64));
}

/* Place prog in part.  Write the size of its constants to *bytes and charge it to part.
 * Return 0 or -errno. */
static int place_constants(struct hal_program *prog, struct hal_partition *part,
			   uint64_t *bytes)
{
	const struct hal_bk_cold *cold = &prog->dev->table->cold;
	int err;

	*bytes = 0;
	err = cold->program_bind(prog->dev->bk, prog->bk, part->bk, bytes);
	if (err != 0)
		return err;
	err = partition_charge(part, *bytes, "constants of a program");
	if (err != 0)
		(void)cold->program_unbind(prog->dev->bk, prog->bk, part->bk);
	return err;
}

struct bind {
	struct hal_program *prog;
	struct hal_partition *part;
};

/* Place a program in a partition, if it is not there yet.  Engine only. */
static int bind(struct hal_device *dev, void *arg)
{
	const struct bind *b = arg;
	struct hal_program *prog = b->prog;
	struct hal_partition *part = b->part;
	uint32_t i = part->desc.index;
	uint64_t bytes = 0;
	bool busy = false;
	int err;

	if (program_is_bound(prog, i))
		return 0;
	/* Evict cold buffers of the partition, if it has any, until the constants fit. */
	while ((err = place_constants(prog, part, &bytes)) != 0) {
		err = evict_room(part, bytes, err, &busy);
		if (err != 0)
			return err;
	}
	trace_memory(dev, part);
	prog->bound_bytes[i] = bytes;
	atomic_fetch_or_explicit(&prog->bound[i / 64], UINT64_C(1) << i % 64,
				 memory_order_release);
	return 0;
}

int program_bind(struct hal_program *prog, struct hal_partition *part)
{
	struct bind b = {prog, part};

	return evict_call(prog->dev, part->memory.evict, bind, &b);
}

void program_unbind_all(struct hal_partition *part)
{
	hal_list_for_each (it, &part->dev->programs_loaded) {
		struct hal_program *prog =
			container_of(it, struct hal_program, on_device);

		if (program_is_bound(prog, part->desc.index))
			unbind(prog, part);
	}
}

/* ---- unload ------------------------------------------------------------------------ */

/* Deferred free of a program that no submitted work uses any more.  Engine only. */
static void free_program(struct deferred *d)
{
	struct hal_program *prog = container_of(d, struct hal_program, deferred);
	struct hal_device *dev = prog->dev;

	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		if (program_is_bound(prog, p->desc.index))
			unbind(prog, p);
	}
	list_del(&prog->on_device);
	(void)dev->table->cold.program_unload(dev->bk, prog->bk);
	program_free(prog);
}

/* Free prog once submitted work has stopped using it.  Engine only. */
static int free_when_unused(struct hal_device *dev, void *arg)
{
	struct hal_program *prog = arg;

	prog->deferred.dev = dev;
	prog->deferred.home = NULL;
	prog->deferred.free = free_program;
	deferred_free(&prog->deferred);
	return 0;
}

void program_pin(struct hal_program *prog)
{
	atomic_fetch_add(&prog->pins, 1);
}

void program_unpin(struct hal_program *prog)
{
	if (atomic_fetch_sub(&prog->pins, 1) == 1)
		(void)engine_call(prog->dev, free_when_unused, prog);
}

int hal_program_unload(struct hal_program *prog)
{
	if (prog == NULL)
		return 0;
	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return FAR_OR_BAD(prog, OBJECT_PROGRAM, far_program_unload(prog));
	object_retire(&prog->obj);
	for (uint32_t i = 0; i < prog->kernel_count; i++) {
		object_retire(&prog->kernels[i]->obj);
		prog->kernels[i]->user = NULL;
	}
	atomic_fetch_sub(&prog->dev->programs, 1);
	program_unpin(prog);
	return 0;
}

int hal_kernel_find(struct hal_program *prog, const char *name,
		    struct hal_kernel **kernel)
{
	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return FAR_OR_BAD(prog, OBJECT_PROGRAM,
				  far_kernel_find(prog, name, kernel));
	if (name == NULL || kernel == NULL)
		return fail(EINVAL, "hal_kernel_find: %s is NULL",
			    name == NULL ? "name" : "kernel");
	for (uint32_t i = 0; i < prog->kernel_count; i++) {
		if (strcmp(prog->kernels[i]->info.name, name) == 0) {
			*kernel = prog->kernels[i];
			return 0;
		}
	}
	return fail(ENOENT, "the program has no kernel \"%s\" among its kernels (%u)",
		    name, prog->kernel_count);
}

int hal_kernel_get(struct hal_program *prog, uint32_t index, struct hal_kernel **kernel)
{
	if (!OBJECT_OK(prog, OBJECT_PROGRAM))
		return FAR_OR_BAD(prog, OBJECT_PROGRAM,
				  far_kernel_get(prog, index, kernel));
	if (kernel == NULL)
		return fail(EINVAL, "hal_kernel_get: kernel is NULL");
	if (index >= prog->kernel_count)
		return fail(ERANGE, "the program has no kernel %u: it has %u", index,
			    prog->kernel_count);
	*kernel = prog->kernels[index];
	return 0;
}

int hal_kernel_get_info(const struct hal_kernel *kernel, struct hal_kernel_info *info)
{
	struct hal_kernel_info i = HAL_INIT(hal_kernel_info);

	if (!OBJECT_OK(kernel, OBJECT_KERNEL))
		return FAR_OR_BAD(kernel, OBJECT_KERNEL,
				  far_kernel_get_info(kernel, info));
	i.arg_count = kernel->info.arg_count;
	memcpy(i.name, kernel->info.name, sizeof(i.name));
	for (uint32_t n = 0; n < HAL_ARGS_MAX; n++)
		i.arg_bytes[n] = kernel->info.arg_bytes[n];
	i.work = kernel->info.work;
	memcpy(i.group_size, kernel->info.group_size, sizeof(i.group_size));
	i.group_size_max = kernel->info.group_size_max;
	i.shared_max = kernel->info.shared_max;
	return export_struct(info, &i, sizeof(i), offsetof(struct hal_kernel_info, name),
			     "hal_kernel_info");
}
