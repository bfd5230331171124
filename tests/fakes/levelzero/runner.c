/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libze_runner.so: in front of a driver whose device executes nothing, for the backend's
 * option loader=.  What the driver has taken is done here at once: device memory is a
 * shadow in the host's, kernels are those of kernels.c, and of the events it is said that
 * they are signalled.  Discovery, objects, arguments, order and limits are the driver's
 * to judge; faults and times do not come.
 */
#define _GNU_SOURCE
#include "forward.h"
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Something of the driver's, by its handle or address, and what is known of it here. */
struct known {
	struct known *next;
	const void *handle;
	enum { KNOWN_MEMORY, KNOWN_KERNEL, KNOWN_LIST, KNOWN_SIGNAL } kind;
	size_t bytes; /* memory */
	void *shadow;
	const struct kernel_spec *spec; /* kernel */
	uint32_t size[3];
	uint64_t args[ARGS_MAX];
	struct command *first, **last; /* regular list: what it will do */
	bool signaled;                 /* event or fence */
};

struct command {
	struct command *next;
	void *event, *dst;
	const void *src;
	size_t bytes, pattern_bytes;
	uint8_t pattern[16];
	struct call call; /* spec NULL: no kernel */
};

static struct known *all[4];

static struct known *find(int kind, const void *handle)
{
	struct known *k = all[kind];

	while (k && k->handle != handle)
		k = k->next;
	return k;
}

static struct known *learn(int kind, const void *handle)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k)
		abort();
	k->kind = kind;
	k->handle = handle;
	k->last = &k->first;
	k->next = all[kind];
	all[kind] = k;
	return k;
}

static void drop_ops(struct known *k)
{
	struct command *op;

	while ((op = k->first)) {
		k->first = op->next;
		free(op);
	}
	k->last = &k->first;
}

static void forget(int kind, const void *handle)
{
	struct known **at = &all[kind], *k;

	pthread_mutex_lock(&lock);
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	k = *at;
	if (k) {
		*at = k->next;
		drop_ops(k);
		free(k->shadow);
		free(k);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- execution --------------------------------------------------------------------- */

void *memory_at(uint64_t address, uint64_t bytes)
{
	const struct known *k;

	for (k = all[KNOWN_MEMORY]; k; k = k->next) {
		uint64_t base = (uintptr_t)k->handle;

		if (address >= base && address - base <= k->bytes &&
		    bytes <= k->bytes - (address - base))
			return (char *)k->shadow + (address - base);
	}
	return (void *)(uintptr_t)address; /* the host's own */
}

static void signal_it(const void *handle)
{
	struct known *k = find(KNOWN_SIGNAL, handle);

	if (k)
		k->signaled = true;
}

static void perform(const struct command *op)
{
	uint8_t *dst = memory_at((uintptr_t)op->dst, op->bytes);
	size_t i;

	if (op->call.spec && strcmp(op->call.spec->name, "wild") != 0)
		(void)op->call.spec->run(&op->call);
	else if (op->src)
		memmove(dst, memory_at((uintptr_t)op->src, op->bytes), op->bytes);
	else
		for (i = 0; op->pattern_bytes && i < op->bytes; i++)
			dst[i] = op->pattern[i % op->pattern_bytes];
	signal_it(op->event);
}

/* The driver has taken it into the list. */
static uint32_t taken(uint32_t result, const void *list, const struct command *op)
{
	struct known *l;
	struct command *copy;

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	l = find(KNOWN_LIST, list);
	if (!l) {
		perform(op);
	} else {
		copy = malloc(sizeof(*copy));
		if (!copy)
			abort();
		*copy = *op;
		*l->last = copy;
		l->last = &copy->next;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Of what has ended the driver is asked no more: it would wait for a device to write it.
 */

/* ---- calls ------------------------------------------------------------------------- */

/* A call that makes or ends what is known here. */
#define CREATE(name, params, args, made, KIND, then)                                     \
	EXPORT uint32_t name params;                                                     \
	uint32_t name params                                                             \
	{                                                                                \
		uint32_t r = real()->name args;                                          \
		struct known *k;                                                         \
                                                                                         \
		if (r)                                                                   \
			return r;                                                        \
		pthread_mutex_lock(&lock);                                               \
		k = learn(KIND, *(made));                                                \
		then;                                                                    \
		pthread_mutex_unlock(&lock);                                             \
		return r;                                                                \
	}
#define DESTROY(name, KIND)                                                              \
	EXPORT uint32_t name(void *handle);                                              \
	uint32_t name(void *handle)                                                      \
	{                                                                                \
		forget(KIND, handle);                                                    \
		return real()->name(handle);                                             \
	}

CREATE(zeMemAllocDevice,
       (void *context, const struct ze_device_mem_alloc_desc *desc, size_t bytes,
	size_t align, void *device, void **p),
       (context, desc, bytes, align, device, p), p, KNOWN_MEMORY,
       (k->bytes = bytes, k->shadow = malloc(bytes)))
CREATE(zeKernelCreate, (void *module, const struct ze_kernel_desc *desc, void **kernel),
       (module, desc, kernel), kernel, KNOWN_KERNEL, k->spec = kernel_find(desc->name))
CREATE(zeCommandListCreate,
       (void *context, void *device, const struct ze_command_list_desc *desc,
	void **list),
       (context, device, desc, list), list, KNOWN_LIST, (void)k)
CREATE(zeEventCreate, (void *pool, const struct ze_event_desc *desc, void **event),
       (pool, desc, event), event, KNOWN_SIGNAL, (void)k)
CREATE(zeFenceCreate, (void *queue, const struct ze_fence_desc *desc, void **fence),
       (queue, desc, fence), fence, KNOWN_SIGNAL, (void)k)
DESTROY(zeFenceDestroy, KNOWN_SIGNAL)
DESTROY(zeKernelDestroy, KNOWN_KERNEL)
DESTROY(zeCommandListDestroy, KNOWN_LIST)
DESTROY(zeEventDestroy, KNOWN_SIGNAL)

EXPORT uint32_t zeMemFree(void *context, void *p);
uint32_t zeMemFree(void *context, void *p)
{
	forget(KNOWN_MEMORY, p);
	return real()->zeMemFree(context, p);
}

/* What was mapped is forgotten when it is unmapped: nothing maps the same memory again.
 * The driver maps first, and makes resident then, which it cannot without a device. */
EXPORT uint32_t zeVirtualMemMap(void *context, const void *p, size_t bytes,
				void *physical, size_t offset, uint32_t access);
uint32_t zeVirtualMemMap(void *context, const void *p, size_t bytes, void *physical,
			 size_t offset, uint32_t access)
{
	const uint32_t r =
		real()->zeVirtualMemMap(context, p, bytes, physical, offset, access);
	struct known *k;

	if (r && r != LZ_ERROR_UNINITIALIZED)
		return r;
	pthread_mutex_lock(&lock);
	k = learn(KNOWN_MEMORY, p);
	k->bytes = bytes;
	k->shadow = malloc(bytes);
	pthread_mutex_unlock(&lock);
	return LZ_SUCCESS;
}

EXPORT uint32_t zeVirtualMemUnmap(void *context, const void *p, size_t bytes);
uint32_t zeVirtualMemUnmap(void *context, const void *p, size_t bytes)
{
	forget(KNOWN_MEMORY, p);
	return real()->zeVirtualMemUnmap(context, p, bytes);
}

EXPORT uint32_t zeKernelSetArgumentValue(void *kernel, uint32_t index, size_t bytes,
					 const void *value);
uint32_t zeKernelSetArgumentValue(void *kernel, uint32_t index, size_t bytes,
				  const void *value)
{
	struct known *k = find(KNOWN_KERNEL, kernel);

	if (k && index < ARGS_MAX && bytes <= sizeof(k->args[0])) {
		k->args[index] = 0;
		memcpy(&k->args[index], value, bytes);
	}
	return real()->zeKernelSetArgumentValue(kernel, index, bytes, value);
}

EXPORT uint32_t zeCommandListReset(void *list);
uint32_t zeCommandListReset(void *list)
{
	struct known *l = find(KNOWN_LIST, list);

	if (l)
		drop_ops(l);
	return real()->zeCommandListReset(list);
}

EXPORT uint32_t zeCommandQueueExecuteCommandLists(void *queue, uint32_t count,
						  void **lists, void *fence);
uint32_t zeCommandQueueExecuteCommandLists(void *queue, uint32_t count, void **lists,
					   void *fence)
{
	uint32_t r = real()->zeCommandQueueExecuteCommandLists(queue, count, lists,
							       fence),
		 i;

	pthread_mutex_lock(&lock);
	for (i = 0; !r && i < count; i++) {
		const struct known *l = find(KNOWN_LIST, lists[i]);
		const struct command *op;

		for (op = l ? l->first : NULL; op; op = op->next)
			perform(op);
	}
	signal_it(r ? NULL : fence);
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT uint32_t zeCommandListAppendBarrier(void *list, void *signal, uint32_t count,
					   void **waits);
uint32_t zeCommandListAppendBarrier(void *list, void *signal, uint32_t count,
				    void **waits)
{
	const struct command op = {.event = signal};

	return taken(real()->zeCommandListAppendBarrier(list, signal, count, waits), list,
		     &op);
}

EXPORT uint32_t zeCommandListAppendMemoryCopy(void *list, void *dst, const void *src,
					      size_t bytes, void *signal, uint32_t count,
					      void **waits);
uint32_t zeCommandListAppendMemoryCopy(void *list, void *dst, const void *src,
				       size_t bytes, void *signal, uint32_t count,
				       void **waits)
{
	const struct command op = {
		.event = signal, .dst = dst, .src = src, .bytes = bytes};

	return taken(real()->zeCommandListAppendMemoryCopy(list, dst, src, bytes, signal,
							   count, waits),
		     list, &op);
}

EXPORT uint32_t zeCommandListAppendMemoryFill(void *list, void *dst, const void *pattern,
					      size_t pattern_bytes, size_t bytes,
					      void *signal, uint32_t count, void **waits);
uint32_t zeCommandListAppendMemoryFill(void *list, void *dst, const void *pattern,
				       size_t pattern_bytes, size_t bytes, void *signal,
				       uint32_t count, void **waits)
{
	struct command op = {.event = signal,
			     .dst = dst,
			     .bytes = bytes,
			     .pattern_bytes = pattern_bytes};
	uint32_t r = real()->zeCommandListAppendMemoryFill(
		list, dst, pattern, pattern_bytes, bytes, signal, count, waits);

	if (!r && pattern_bytes <= sizeof(op.pattern))
		memcpy(op.pattern, pattern, pattern_bytes);
	return taken(r, list, &op);
}

EXPORT uint32_t zeCommandListAppendLaunchKernel(void *list, void *kernel,
						const struct ze_group_count *groups,
						void *signal, uint32_t count,
						void **waits);
uint32_t zeCommandListAppendLaunchKernel(void *list, void *kernel,
					 const struct ze_group_count *groups,
					 void *signal, uint32_t count, void **waits)
{
	const struct known *k = find(KNOWN_KERNEL, kernel);
	struct command op = {.event = signal};

	if (k) {
		op.call.spec = k->spec;
		memcpy(op.call.args, k->args, sizeof(k->args));
	}
	return taken(real()->zeCommandListAppendLaunchKernel(list, kernel, groups, signal,
							     count, waits),
		     list, &op);
}

static bool has_ended(const void *handle)
{
	const struct known *k;
	bool yes;

	pthread_mutex_lock(&lock);
	k = find(KNOWN_SIGNAL, handle);
	yes = k && k->signaled;
	pthread_mutex_unlock(&lock);
	return yes;
}

static void reset(const void *handle)
{
	struct known *k;

	pthread_mutex_lock(&lock);
	k = find(KNOWN_SIGNAL, handle);
	if (k)
		k->signaled = false;
	pthread_mutex_unlock(&lock);
}

EXPORT uint32_t zeFenceQueryStatus(void *fence);
uint32_t zeFenceQueryStatus(void *fence)
{
	return has_ended(fence) ? LZ_SUCCESS : real()->zeFenceQueryStatus(fence);
}

EXPORT uint32_t zeFenceReset(void *fence);
uint32_t zeFenceReset(void *fence)
{
	reset(fence);
	return real()->zeFenceReset(fence);
}

EXPORT uint32_t zeEventHostSynchronize(void *event, uint64_t timeout_ns);
uint32_t zeEventHostSynchronize(void *event, uint64_t timeout_ns)
{
	return has_ended(event) ? LZ_SUCCESS
				: real()->zeEventHostSynchronize(event, timeout_ns);
}

EXPORT uint32_t zeEventQueryStatus(void *event);
uint32_t zeEventQueryStatus(void *event)
{
	return has_ended(event) ? LZ_SUCCESS : real()->zeEventQueryStatus(event);
}

EXPORT uint32_t zeEventQueryKernelTimestamp(void *event, struct ze_kernel_timestamp *t);
uint32_t zeEventQueryKernelTimestamp(void *event, struct ze_kernel_timestamp *t)
{
	if (!has_ended(event))
		return real()->zeEventQueryKernelTimestamp(event, t);
	*t = (struct ze_kernel_timestamp){0};
	return LZ_SUCCESS;
}

EXPORT uint32_t zeEventHostReset(void *event);
uint32_t zeEventHostReset(void *event)
{
	reset(event);
	return real()->zeEventHostReset(event);
}
