/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA's queues: a ring of packets that the host writes, and what a packet does when it is
 * its turn.  A queue is a stream of the world, so that packets come one after the other;
 * those that do not ask for that are misuse.  Arguments are read when a kernel begins.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LEAST    64u
#define SIZE_MOST     131072u
#define PRIVATE_MOST  262128u
#define GROUP_MOST    65536u
#define BLOCK_MOST    1024u
#define WORDS         (KFD_CUS_MAX / 32)
#define HIDDEN_BYTES  16u
#define INACTIVATE_NS 1000u

struct aql {
	struct masked m; /* a stream: first */
	struct hsa_queue face;
	struct signal *doorbell;
	void (*failed)(uint32_t status, struct hsa_queue *queue, void *user);
	void *user;
	uint64_t written, read, seen; /* packets; .seen: by the doorbell */
	int64_t rung;
	bool profiled, inactive;
	uint32_t status;          /* that it failed with; 0 */
	struct hsa_packet *ring;  /* the host's */
	struct hsa_packet *taken; /* as they were when the doorbell rang */
};

static struct aql *aql_of(const struct hsa_queue *queue)
{
	struct object *o;

	for (o = world.objects; o && (!queue || o->inner != queue); o = o->next)
		;
	for (o = o ? o : world.gone; o && (!queue || o->inner != queue); o = o->next)
		;
	if (o && !o->gone)
		return (struct aql *)(void *)o;
	misuse("%p is no queue, or no more", (const void *)queue);
	return NULL;
}

static const struct kfd_gpu *gpu_of(const struct aql *q)
{
	return &kfd_gpus[q->m.stream.object.dev->index];
}

/* ---- masks ------------------------------------------------------------------------- */

/* "GPU:FROM-TO"; what is none is no limit. */
static bool environment_has(const struct aql *q, uint32_t cu)
{
	const char *text = getenv("HSA_CU_MASK");
	uint32_t gpu, from, to;

	if (!text || sscanf(text, "%u:%u-%u", &gpu, &from, &to) != 3 ||
	    gpu != q->m.stream.object.dev->index)
		return true;
	return cu >= from && cu <= to;
}

static bool has_bit(const uint32_t *mask, uint32_t bit)
{
	return mask[bit / 32] >> bit % 32 & 1;
}

/* Of a mask of so many bits, 0 for all, what the queue gets; true: all of it. */
static bool take_mask(struct aql *q, uint32_t bits, const uint32_t *mask)
{
	const uint32_t cus = q->m.stream.object.dev->units;
	bool whole = true;
	uint32_t i;

	memset(q->m.mask, 0, sizeof(q->m.mask));
	for (i = 0; i < cus; i++) {
		if (bits && (i >= bits || !has_bit(mask, i)))
			continue;
		if (environment_has(q, i))
			q->m.mask[i / 32] |= 1u << i % 32;
		else
			whole = false;
	}
	(void)kfd_apply(gpu_of(q), q->m.mask, cus, q->m.unit);
	return whole;
}

static bool splits_a_pair(const struct aql *q, uint32_t bits, const uint32_t *mask)
{
	uint32_t i;

	for (i = 0; i + 1 < bits; i += 2)
		if (has_bit(mask, i) != has_bit(mask, i + 1))
			return gpu_of(q)->pairs && hip_version() >= 60000000;
	return false;
}

/* What runs goes on with the new one; what is longer than the device is cut. */
uint32_t do_hsa_amd_queue_cu_set_mask(const struct hsa_queue *queue, uint32_t bits,
				      const uint32_t *mask)
{
	struct aql *q = aql_of(queue);
	bool whole;

	if (!q)
		return HSAR_INVALID_QUEUE;
	if (bits % 32 || (bits && !mask) || splits_a_pair(q, bits, mask))
		return HSAR_INVALID_ARGUMENT;
	whole = take_mask(q, bits, mask);
	stream_moved(&q->m.stream);
	return whole ? HSAR_SUCCESS : HSAR_CU_MASK_REDUCED;
}

uint32_t do_hsa_amd_queue_cu_get_mask(const struct hsa_queue *queue, uint32_t bits,
				      uint32_t *mask)
{
	const struct aql *q = aql_of(queue);
	uint32_t i;

	if (!q)
		return HSAR_INVALID_QUEUE;
	if (!bits || bits % 32 || !mask)
		return HSAR_INVALID_ARGUMENT;
	for (i = 0; i < bits / 32; i++)
		mask[i] = i < WORDS ? q->m.mask[i] : 0;
	return HSAR_SUCCESS;
}

/* ---- queues ------------------------------------------------------------------------ */

static struct aql *make_queue(struct device *d, uint32_t size)
{
	const size_t ring = size * sizeof(struct hsa_packet);
	struct aql *q;
	uint32_t i;

	if (!room_for_stream())
		return NULL;
	q = make(OBJECT_STREAM, sizeof(*q) + 64 + 2 * ring);
	if (!q)
		return NULL;
	q->m.stream.object.dev = d;
	q->m.stream.object.inner = &q->face;
	q->m.stream.last = &q->m.stream.first;
	q->m.stream.only = q->m.unit;
	q->m.stream.apart = true;
	q->ring = (void *)(((uintptr_t)(q + 1) + 63) / 64 * 64);
	q->taken = q->ring + size;
	for (i = 0; i < size; i++)
		q->ring[i].header = HSA_PACKET_INVALID;
	q->rung = -1;
	q->doorbell = make_signal(0);
	if (!q->doorbell) {
		q->m.stream.object.gone = true;
		return NULL;
	}
	q->doorbell->object.dev = d;
	q->doorbell->rings = q;
	(void)take_mask(q, 0, NULL);
	return q;
}

uint32_t do_hsa_queue_create(uint64_t agent, uint32_t size, uint32_t type,
			     void (*failed)(uint32_t status, struct hsa_queue *queue,
					    void *user),
			     void *user, uint32_t private_bytes, uint32_t group_bytes,
			     struct hsa_queue **queue)
{
	struct device *d = device_of(agent);
	struct aql *q;

	(void)group_bytes;
	*queue = (void *)(uintptr_t)HSA_JUNK;
	if (!d)
		return HSAR_INVALID_AGENT;
	if (size < SIZE_LEAST || size & (size - 1) || type > 2)
		return HSAR_INVALID_ARGUMENT;
	if (size > SIZE_MOST ||
	    (private_bytes > PRIVATE_MOST && private_bytes != UINT32_MAX))
		return HSAR_OUT_OF_RESOURCES;
	q = make_queue(d, size);
	if (!q)
		return HSAR_OUT_OF_RESOURCES;
	q->failed = failed;
	q->user = user;
	q->face = (struct hsa_queue){.type = type,
				     .features = 1,
				     .base = q->ring,
				     .doorbell = (uintptr_t)q->doorbell,
				     .size = size,
				     .id = world.made};
	*queue = &q->face;
	return HSAR_SUCCESS;
}

/* Signals of packets that will not be counted down. */
static void drop(struct aql *q)
{
	const struct job *j;

	for (j = q->m.stream.first; j; j = j->next)
		if (j->packet->completion)
			signal_of(j->packet->completion)->users--;
	stream_drop(&q->m.stream);
}

/* What it has is dropped, for good; also a kernel without an end.  Taking it off the
 * device takes its time. */
uint32_t do_hsa_queue_inactivate(struct hsa_queue *queue)
{
	struct aql *q = aql_of(queue);

	if (!q)
		return HSAR_INVALID_QUEUE;
	drop(q);
	q->inactive = true;
	if (world.drivers)
		(void)world_run(world.now_ns + INACTIVATE_NS, false);
	return HSAR_SUCCESS;
}

uint32_t do_hsa_queue_destroy(struct hsa_queue *queue)
{
	struct aql *q = aql_of(queue);

	if (!q)
		return HSAR_INVALID_QUEUE;
	if (q->m.stream.first)
		misuse("a queue goes with packets in it");
	drop(q);
	q->doorbell->object.gone = q->m.stream.object.gone = true;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_amd_queue_set_priority(struct hsa_queue *queue, uint32_t priority)
{
	struct aql *q = aql_of(queue);

	if (!q)
		return HSAR_INVALID_QUEUE;
	if (priority > 2)
		return HSAR_INVALID_ARGUMENT;
	q->m.stream.priority = 1 - (int)priority;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_amd_profiling_set_profiler_enabled(struct hsa_queue *queue, int on)
{
	struct aql *q = aql_of(queue);

	if (!q)
		return HSAR_INVALID_QUEUE;
	q->profiled = on != 0;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_amd_profiling_get_dispatch_time(uint64_t agent, uint64_t signal,
						struct hsa_times *times)
{
	const struct signal *s = signal_of(signal);

	*times = (struct hsa_times){HSA_JUNK, HSA_JUNK};
	if (!device_of(agent))
		return HSAR_INVALID_AGENT;
	if (!s)
		return HSAR_INVALID_SIGNAL;
	if (!s->timed)
		misuse("times of what was not measured, or has not ended");
	*times = (struct hsa_times){s->start_ns / 10, s->end_ns / 10};
	return HSAR_SUCCESS;
}

uint64_t do_hsa_queue_load_read_index_scacquire(const struct hsa_queue *queue)
{
	const struct aql *q = aql_of(queue);

	return q ? q->read : 0;
}

uint64_t do_hsa_queue_add_write_index_screlease(const struct hsa_queue *queue,
						uint64_t value)
{
	struct aql *q = aql_of(queue);

	if (!q)
		return 0;
	if (q->inactive)
		misuse("a packet for a queue that was ended");
	q->written += value;
	if (q->written - q->read > q->face.size)
		misuse("more packets than the ring has room for");
	return q->written - value;
}

/* ---- packets ----------------------------------------------------------------------- */

static struct function *kernel_of(const struct aql *q, const struct hsa_packet *p)
{
	struct object *o;

	for (o = world.objects; o && (uintptr_t)o != p->kernel; o = o->next)
		;
	if (!o || o->kind != OBJECT_FUNCTION || o->gone ||
	    o->dev != q->m.stream.object.dev)
		return NULL;
	return (struct function *)(void *)o;
}

/* What is wrong with it, as the packet processor tells; 0. */
static uint32_t check_dispatch(const struct aql *q, const struct hsa_packet *p)
{
	const uint32_t items = (uint32_t)p->block[0] * p->block[1] * p->block[2];
	uint32_t i;

	if (p->setup < 1 || p->setup > 3)
		return HSAR_INCOMPATIBLE_ARGUMENTS;
	for (i = 0; i < 3; i++) {
		if (!p->grid[i])
			return HSAR_INCOMPATIBLE_ARGUMENTS;
		if (!p->block[i] || p->block[i] > BLOCK_MOST)
			return HSAR_INVALID_ARGUMENT;
	}
	if (items > BLOCK_MOST)
		return HSAR_INVALID_ARGUMENT;
	if (p->group_bytes > GROUP_MOST)
		return HSAR_INVALID_ALLOCATION;
	return kernel_of(q, p) ? HSAR_SUCCESS : HSAR_INVALID_CODE_OBJECT;
}

/* With what is not seen in time, or not in order. */
static void check_header(const struct hsa_packet *p)
{
	const uint32_t fences = HSA_PACKET_ACQUIRE | HSA_PACKET_RELEASE;

	if (!(p->header & HSA_PACKET_IN_ORDER))
		misuse("a packet that may overlap with the one before it");
	if ((p->header & fences) != fences)
		misuse("a packet whose memory is not the whole system's");
	if (p->header >> 13 || p->reserved0 || p->reserved2)
		misuse("a packet with something in its reserved fields");
}

static const void *arguments_of(const struct hsa_packet *p, uint32_t bytes)
{
	struct allocation *a = allocation_of(p->kernarg, bytes);

	if (!bytes)
		return "";
	if (p->kernarg % 16 || !a || a->dev) {
		misuse("arguments at 0x%llx: not the host's, or not at a multiple of 16",
		       (unsigned long long)p->kernarg);
		return NULL;
	}
	return memory_at(p->kernarg, bytes);
}

/* What says how the kernel was launched, which a compiler may read. */
static void check_hidden(const struct job *j, const char *at)
{
	const struct call *c = &j->call;
	const struct {
		uint32_t groups;
		uint16_t items, dimensions;
		uint64_t offset;
	} want = {c->grid[0], (uint16_t)c->block[0], 3, 0};

	_Static_assert(sizeof(want) == HIDDEN_BYTES, "as image.h says");
	if (memcmp(at, &want, sizeof(want)) != 0)
		misuse("%s: what is hidden of its arguments is not of this launch",
		       c->spec->name);
}

/* False: they are not there. */
static bool read_arguments(struct job *j)
{
	const struct function *f = j->function;
	const uint32_t end = argument_at(f, PARAMS_MAX);
	const char *from = arguments_of(j->packet, end + (f->hidden ? HIDDEN_BYTES : 0));
	uint32_t i;

	if (!from)
		return false;
	for (i = 0; i < f->shape.arg_count; i++) {
		const char *at = from + argument_at(f, i);

		j->call.args[i] = 0;
		if (f->shape.arg_bytes[i] <= sizeof(j->call.args[i]))
			memcpy(&j->call.args[i], at, f->shape.arg_bytes[i]);
		else
			memcpy(&j->call.given, at, sizeof(j->call.given));
	}
	if (f->hidden)
		check_hidden(j, from + end);
	return true;
}

static void tell(void *queue)
{
	struct aql *q = queue;

	q->failed(q->status, &q->face, q->user);
}

/* It takes no more, and nothing that it has will end. */
static bool fail(struct aql *q, uint32_t status)
{
	q->status = status;
	if (!q->failed) {
		fprintf(stderr, "stand-in: Queue error 0x%x, and nobody to tell\n",
			status);
		abort();
	}
	call_apart(tell, q);
	return false;
}

/* What of a packet is there once it is published: nobody reads it but the device. */
static struct hsa_packet published(const struct hsa_packet *p)
{
	struct hsa_packet seen;

	memset(&seen, 0xa5, sizeof(seen));
	seen.header = p->header;
	return seen;
}

static bool begins(struct job *j)
{
	struct aql *q = (struct aql *)(void *)j->stream;
	const struct hsa_packet *p = j->packet, seen = published(p);
	const struct call first = j->call;
	uint32_t status;

	if (memcmp(&seen, &q->ring[j->number % q->face.size], sizeof(seen)) != 0)
		misuse("packet %llu was changed behind its doorbell",
		       (unsigned long long)j->number);
	q->read = j->number; /* those before it are over */
	if ((p->header & HSA_PACKET_TYPE) == HSA_PACKET_BARRIER)
		return true;
	if ((p->header & HSA_PACKET_TYPE) != HSA_PACKET_DISPATCH)
		return fail(q, HSAR_INVALID_PACKET_FORMAT);
	status = check_dispatch(q, p);
	if (!status && !read_arguments(j))
		status = HSAR_EXCEPTION;
	if (!status && j->read &&
	    (memcmp(first.args, j->call.args, sizeof(first.args)) != 0 ||
	     memcmp(&first.given, &j->call.given, sizeof(first.given)) != 0))
		misuse("arguments of packet %llu were changed behind its doorbell",
		       (unsigned long long)j->number);
	return status ? fail(q, status) : true;
}

static void ends(struct job *j)
{
	struct aql *q = (struct aql *)(void *)j->stream;
	struct signal *s =
		j->packet->completion ? signal_of(j->packet->completion) : NULL;

	q->ring[j->number % q->face.size].header = HSA_PACKET_INVALID;
	if (!s)
		return;
	s->users--;
	s->value--;
	s->timed = q->profiled && j->op == OP_LAUNCH;
	s->start_ns = j->start_ns;
	s->end_ns = world.now_ns;
}

static void take_signal(const struct hsa_packet *p)
{
	struct signal *s = p->completion ? signal_of(p->completion) : NULL;

	if (s && (s->users || s->value < 1))
		misuse("a completion signal at %lld, of %u packets before",
		       (long long)s->value, s->users);
	if (s)
		s->users++;
}

static void give(struct aql *q, uint64_t number)
{
	struct hsa_packet *p = &q->taken[number % q->face.size];
	struct function *f;
	struct job *j = calloc(1, sizeof(*j));
	uint32_t i;

	if (!j)
		abort();
	*p = q->ring[number % q->face.size];
	q->ring[number % q->face.size] = published(p);
	check_header(p);
	take_signal(p);
	*j = (struct job){.op = OP_BARRIER,
			  .begins = begins,
			  .ends = ends,
			  .packet = p,
			  .number = number};
	f = kernel_of(q, p);
	if ((p->header & HSA_PACKET_TYPE) == HSA_PACKET_DISPATCH &&
	    !check_dispatch(q, p)) {
		j->op = OP_LAUNCH;
		j->function = f;
		j->arguments = p->kernarg;
		j->call = f->shape;
		for (i = 0; i < 3; i++) {
			j->call.block[i] = p->block[i];
			j->call.grid[i] = (p->grid[i] - 1) / p->block[i] + 1;
		}
		j->read = read_arguments(j); /* which memory it names, till it begins */
	}
	stream_push(&q->m.stream, j);
}

/* ---- copies ------------------------------------------------------------------------- */

static void copy_ends(struct job *j)
{
	struct signal *s = j->user;

	s->users--;
	s->value = j->value ? -1 : s->value - 1;
}

/* Is it memory of that agent's, which the device reaches? */
static bool is_memory_of(uint64_t agent, const void *p, size_t bytes)
{
	const struct allocation *a = allocation_of((uintptr_t)p, bytes);

	return a && !a->freed && a->dev == device_of(agent);
}

/* An engine does it, beside all queues.  It is a stream's that is gone as soon as it is
 * made, so that it ends by itself. */
uint32_t do_hsa_amd_memory_async_copy(void *dst, uint64_t dst_agent, const void *src,
				      uint64_t src_agent, size_t bytes, uint32_t count,
				      const uint64_t *waits, uint64_t signal)
{
	struct device *d = device_of(device_of(dst_agent) ? dst_agent : src_agent);
	struct signal *s = signal_of(signal);
	struct stream *engine;
	struct job *j;

	if (!d)
		return HSAR_INVALID_AGENT;
	if (!s)
		return HSAR_INVALID_SIGNAL;
	if (!bytes || count || waits)
		return HSAR_INVALID_ARGUMENT;
	if (!is_memory_of(dst_agent, dst, bytes) ||
	    !is_memory_of(src_agent, src, bytes)) {
		misuse("hsa_amd_memory_async_copy: %p to %p: not memory of its agent",
		       src, dst);
		return HSAR_INVALID_ARGUMENT;
	}
	if (s->users || s->value < 1)
		misuse("a copy's signal at %lld, of %u before", (long long)s->value,
		       s->users);
	engine = make(OBJECT_STREAM, sizeof(*engine));
	j = calloc(1, sizeof(*j));
	if (!engine || !j)
		abort();
	engine->object.dev = d;
	engine->object.gone = true;
	engine->apart = true;
	engine->last = &engine->first;
	s->users++;
	/* An engine says in the signal that it has failed. */
	*j = (struct job){.op = world.fail_next ? OP_BARRIER : OP_COPY,
			  .value = world.fail_next != 0,
			  .ends = copy_ends,
			  .user = s,
			  .dst = (uintptr_t)dst,
			  .src = (uintptr_t)src,
			  .bytes = bytes};
	world.fail_next = 0;
	stream_push(engine, j);
	return HSAR_SUCCESS;
}

/* It waits at the first that is not valid yet. */
void ring(struct aql *q, int64_t number)
{
	if (number <= q->rung)
		misuse("a doorbell that goes back");
	if (number >= (int64_t)q->written)
		misuse("a doorbell for what has not been written");
	q->rung = number > q->rung ? number : q->rung;
	while (q->seen < q->written && (int64_t)q->seen <= q->rung && !q->inactive &&
	       (q->ring[q->seen % q->face.size].header & HSA_PACKET_TYPE) !=
		       HSA_PACKET_INVALID)
		give(q, q->seen++);
}
