/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c - which function carries out each request. */
#include "requests.h"

#include <errno.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "util/compiler.h"
#include "util/error.h"

/* Call a function of hal.h that fills in a struct of the caller. */
typedef int (*get_fn)(void *object, void *out);

static int get(struct request *r, void *object, get_fn fn)
{
	uint64_t size = r->m.a[1];
	uint32_t head = (uint32_t)size;
	char *out;
	int err;

	if (size == FAR_NO_STRUCT)
		return fn(object, NULL);
	if (size > STRUCT_MAX)
		size = STRUCT_MAX;
	out = answer_room(r, STRUCT_MAX);
	if (out == NULL)
		return -ENOMEM;
	head = (uint32_t)size;
	memcpy(out, &head, sizeof(head));
	err = fn(object, out);
	r->out_bytes = size;
	return err;
}

/* Do as get, for the object that a0 names. */
static int get_of(struct request *r, enum far_kind kind, get_fn fn)
{
	struct entry *e = hold(r, 0, kind);
	int err;

	if (e == NULL)
		return -EINVAL;
	err = get(r, e->object, fn);
	release(r, e);
	return err;
}

#define GETTER(name, type, call, info)                                                   \
	static int name(void *object, void *out)                                         \
	{                                                                                \
		return call((struct type *)object, (struct info *)out);                  \
	}
GETTER(device_info, hal_device, hal_device_get_info, hal_device_info)
GETTER(device_stats, hal_device, hal_device_get_stats, hal_stats)
GETTER(device_policy, hal_device, hal_device_get_policy, hal_policy_info)
GETTER(partition_info, hal_partition, hal_partition_get_info, hal_partition_info)
GETTER(partition_stats, hal_partition, hal_partition_get_stats, hal_stats)
GETTER(partition_memory, hal_partition, hal_partition_get_memory_info,
       hal_partition_memory_info)
GETTER(program_info, hal_program, hal_program_get_info, hal_program_info)
GETTER(queue_stats, hal_queue, hal_queue_get_stats, hal_stats)
GETTER(queue_fault, hal_queue, hal_queue_get_fault, hal_fault_info)

/* Do as get_of, for statistics. */
static int stats_of(struct request *r, enum far_kind kind, get_fn fn)
{
	int err = get_of(r, kind, fn);

	if (err == 0)
		tick_blur(r->client->server, (struct hal_stats *)(void *)r->out);
	return err;
}

/* Call fn to destroy the object of e, which no request and no record finds any more. */
static int destroy_object(struct client *c, struct entry *e, int (*fn)(void *object))
{
	struct ring *ring = e->ring;
	const bool partition = e->kind == KIND_PARTITION;
	struct tally done;
	int err;

	if (ring != NULL)
		ring_withdraw(c, ring);
	/* The engine may be taking a record that names it. */
	if (atomic_load(&c->had_rings))
		inlet_pass(c->server->dev);
	if (partition)
		tally_settle(c, e, &done);
	err = fn(e->object);
	if (partition && err != 0)
		tally_unsettle(c, e, &done);
	if (ring == NULL)
		return err;
	if (err != 0) {
		ring_put_back(c, ring);
		return err;
	}
	e->ring = NULL;
	ring_free(c, ring);
	return 0;
}

/* Call a function that destroys the object that a0 names. */
static int destroy(struct request *r, enum far_kind kind, int (*fn)(void *object))
{
	struct entry *e;
	int err;

	client_sweep(r->client);
	e = hold(r, 0, kind);
	if (e == NULL)
		return -EINVAL;
	err = e->owned ? handle_begin_destroy(&r->client->handles, e) : fn(e->object);
	if (err == 0 && e->owned) {
		err = destroy_object(r->client, e, fn);
		if (err == -EBUSY && e->memory != NULL) {
			handle_doom(&r->client->handles, e);
			err = 0;
		} else {
			handle_end_destroy(&r->client->handles, e, err == 0);
		}
	}
	release(r, e);
	return err;
}

#define DESTROYER(name, type, call)                                                      \
	static int name(void *object)                                                    \
	{                                                                                \
		return call((struct type *)object);                                      \
	}
DESTROYER(partition_destroy, hal_partition, hal_partition_destroy)
DESTROYER(buffer_destroy, hal_buffer, hal_buffer_destroy)
DESTROYER(program_unload, hal_program, hal_program_unload)
DESTROYER(queue_destroy, hal_queue, hal_queue_destroy)
DESTROYER(sequence_destroy, hal_sequence, hal_sequence_destroy)
DESTROYER(completions_destroy, hal_completions, hal_completions_destroy)
DESTROYER(timeline_destroy, hal_timeline, hal_timeline_destroy)

/* ---- requests that only name an object ---------------------------------------------- */

/* The struct of the caller in the answer may be older, and shorter, than this one. */
static int do_device_info(struct request *r)
{
	int err = get(r, device_of(r), device_info);
	struct hal_device_info *info = (struct hal_device_info *)(void *)r->out;

	if (err != 0)
		return err;
	info->caps = caps_of_clients(r->client->server, info->caps);
	tenant_info(r->client, info);
	return 0;
}

static int do_device_stats(struct request *r)
{
	int err = get(r, device_of(r), device_stats);
	struct hal_stats *stats = (struct hal_stats *)(void *)r->out;

	if (err == 0)
		err = tenant_stats(r->client, stats);
	if (err == 0)
		tick_blur(r->client->server, stats);
	return err;
}

static int do_get_policy(struct request *r)
{
	return get(r, device_of(r), device_policy);
}

static int do_partition_destroy(struct request *r)
{
	return destroy(r, KIND_PARTITION, partition_destroy);
}

static int do_partition_info(struct request *r)
{
	return get_of(r, KIND_PARTITION, partition_info);
}

static int do_partition_stats(struct request *r)
{
	return stats_of(r, KIND_PARTITION, partition_stats);
}

static int do_partition_memory(struct request *r)
{
	return get_of(r, KIND_PARTITION, partition_memory);
}

static int do_buffer_destroy(struct request *r)
{
	return destroy(r, KIND_BUFFER, buffer_destroy);
}

static int do_program_info(struct request *r)
{
	return get_of(r, KIND_PROGRAM, program_info);
}

static int do_program_unload(struct request *r)
{
	return destroy(r, KIND_PROGRAM, program_unload);
}

static int do_completions_destroy(struct request *r)
{
	return destroy(r, KIND_COMPLETIONS, completions_destroy);
}

static int do_timeline_destroy(struct request *r)
{
	return destroy(r, KIND_TIMELINE, timeline_destroy);
}

static int do_queue_destroy(struct request *r)
{
	return destroy(r, KIND_QUEUE, queue_destroy);
}

static int do_queue_stats(struct request *r)
{
	return stats_of(r, KIND_QUEUE, queue_stats);
}

static int do_queue_fault(struct request *r)
{
	return get_of(r, KIND_QUEUE, queue_fault);
}

static int do_sequence_destroy(struct request *r)
{
	return destroy(r, KIND_SEQUENCE, sequence_destroy);
}

/* ---- all requests ------------------------------------------------------------------- */

static int (*const functions[FAR_OPS])(struct request *r) = {
	[FAR_CLOSE] = do_close,
	[FAR_DEVICE_INFO] = do_device_info,
	[FAR_DEVICE_STATS] = do_device_stats,
	[FAR_DEVICE_POLL] = do_poll,
	[FAR_DEVICE_TIME] = do_time,
	[FAR_SET_POLICY] = do_set_policy,
	[FAR_GET_POLICY] = do_get_policy,
	[FAR_TRACE_START] = do_trace_start,
	[FAR_TRACE_STOP] = do_trace_stop,
	[FAR_PARTITION] = do_partition,
	[FAR_PARTITION_NAMED] = do_partition_named,
	[FAR_RESIZE] = do_resize,
	[FAR_MOVE] = do_move,
	[FAR_PARTITION_DESTROY] = do_partition_destroy,
	[FAR_PARTITION_INFO] = do_partition_info,
	[FAR_PARTITION_STATS] = do_partition_stats,
	[FAR_PARTITION_MEMORY] = do_partition_memory,
	[FAR_BUFFER] = do_buffer,
	[FAR_BUFFER_DESTROY] = do_buffer_destroy,
	[FAR_BUFFER_WRITE] = do_buffer_write,
	[FAR_BUFFER_READ] = do_buffer_read,
	[FAR_BUFFER_MAP] = do_buffer_map,
	[FAR_BUFFER_UNMAP] = do_buffer_unmap,
	[FAR_BUFFER_EXPORT] = do_buffer_export,
	[FAR_BUFFER_IMPORT] = do_buffer_import,
	[FAR_HOST] = do_host,
	[FAR_BUFFER_RECOLOR] = do_buffer_recolor,
	[FAR_PROGRAM] = do_program,
	[FAR_PROGRAM_NAME] = do_program_name,
	[FAR_PROGRAM_INFO] = do_program_info,
	[FAR_PROGRAM_UNLOAD] = do_program_unload,
	[FAR_QUEUE] = do_queue,
	[FAR_QUEUE_DESTROY] = do_queue_destroy,
	[FAR_QUEUE_SUSPEND] = do_queue_suspend,
	[FAR_QUEUE_RESUME] = do_queue_resume,
	[FAR_QUEUE_STATS] = do_queue_stats,
	[FAR_QUEUE_FAULT] = do_queue_fault,
	[FAR_SUBMIT] = do_submit,
	[FAR_SEQUENCE] = do_sequence,
	[FAR_SEQUENCE_DESTROY] = do_sequence_destroy,
	[FAR_SEQUENCE_ARGS] = do_sequence_args,
	[FAR_SEQUENCE_SUBMIT] = do_sequence_submit,
	[FAR_COMPLETIONS] = do_completions,
	[FAR_COMPLETIONS_DESTROY] = do_completions_destroy,
	[FAR_COMPLETIONS_READ] = do_completions_read,
	[FAR_COMPLETIONS_FD] = do_completions_fd,
	[FAR_TIMELINE] = do_timeline,
	[FAR_TIMELINE_DESTROY] = do_timeline_destroy,
	[FAR_TIMELINE_VALUE] = do_timeline_value,
	[FAR_TIMELINE_SIGNAL] = do_timeline_signal,
	[FAR_TIMELINE_EXPORT] = do_timeline_export,
	[FAR_TIMELINE_IMPORT] = do_timeline_import,
	[FAR_WAIT] = do_wait,
	[FAR_POINT_FD] = do_point_fd,
	[FAR_TENANT_ADD] = do_tenant_add,
	[FAR_TENANT_REMOVE] = do_tenant_remove,
	[FAR_TENANT_LIST] = do_tenant_list,
	[FAR_CALLBACK] = do_callback,
	[FAR_CALLED] = do_called,
	[FAR_STATUS] = do_status,
};

int request_run(struct request *r)
{
	int err;

	if (r->m.op >= FAR_OPS || functions[r->m.op] == NULL)
		return broken(r, "there is no such request");
	err = functions[r->m.op](r);
	tenant_refused(r->client->tenant, err);
	/* The text says what others have left, and who they are. */
	if (err == -ENOSPC && !r->client->tenant->sees_all)
		(void)fail(ENOSPC, "the device has no room for this now");
	return err;
}
