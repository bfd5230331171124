/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of HSA's: a ring of packets that the engine writes and the device reads, with a
 * mask of compute units that can be changed while kernels run.  All that a queue does is
 * a packet: a launch, a fill and a copy are kernels (where.h), the rest is a barrier.
 *
 * Packets are in order, each behind the end of the one before it, and each lets the whole
 * system see what it wrote and sees what that wrote: the host writes arguments, and reads
 * buffers that are mapped.  A slot has a signal, which its packet counts down, and a
 * block of arguments, which is the packet's until then.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_PACKETS                                                                     \
	ROCM_RING_PACKETS /* as few as there can be; one or two a command                \
			   */
#define MOVE_ITEMS  256u  /* of a group of a fill or a copy */
#define MOVE_GROUPS 1024u /* at most: each item does several then */
#define WAIT_TURNS  1000u /* of 10 ms */

/* Those whose queue is still there, though nobody uses it. */
static struct {
	pthread_mutex_t lock;
	struct rocm_aql *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A queue of the parent's is none of the child's: its list begins anew. */
static void start_over(void)
{
	(void)pthread_mutex_init(&kept.lock, NULL);
	kept.first = NULL;
}

__attribute__((constructor)) static void at_forks(void)
{
	(void)pthread_atfork(NULL, NULL, start_over);
}

/* ---- masks ------------------------------------------------------------------------- */

/* In CUs: where HIP's bits are pairs each is two here. */
static void spread(const struct rocm_device *dev, const uint32_t *mask,
		   uint32_t to[ROCM_MASK_WORDS])
{
	const struct rocm_units *u = &dev->units;
	const uint32_t each = u->together > 1 && 2 * u->bits <= dev->hsa.cus ? 2 : 1;
	uint32_t i;

	memset(to, 0, ROCM_MASK_WORDS * sizeof(*to));
	for (i = 0; i < each * u->bits; i++)
		if (mask[i / each / 32] >> i / each % 32 & 1)
			to[i / 32] |= UINT32_C(1) << i % 32;
}

static int differs(struct rocm_device *dev, const uint32_t *asked, const uint32_t *got,
		   uint32_t words)
{
	uint32_t i = 0;

	while (i < words - 1 && asked[i] == got[i])
		i++;
	return rocm_refuse(
		dev, ENOTSUP,
		"partitions: mask of CUs %u to %u: set to 0x%08x, but HSA reports 0x%08x",
		32 * i, 32 * i + 31, asked[i], got[i]);
}

int rocm_aql_mask(struct rocm_device *dev, struct rocm_aql *a, const uint32_t *mask)
{
	const uint32_t words = (dev->hsa.cus + 31) / 32;
	uint32_t asked[ROCM_MASK_WORDS], got[ROCM_MASK_WORDS] = {0}, r;
	int err;

	spread(dev, mask, asked);
	r = hsa.hsa_amd_queue_cu_set_mask(a->queue, 32 * words, asked);
	/* HSA_CU_MASK took of it: how much is read. */
	err = r == HSAR_CU_MASK_REDUCED
		      ? 0
		      : rocm_hsa_check(dev, r, "hsa_amd_queue_cu_set_mask");
	if (!err)
		err = HSA(dev, hsa_amd_queue_cu_get_mask, a->queue, 32 * words, got);
	if (!err && memcmp(asked, got, words * sizeof(*got)) != 0)
		err = differs(dev, asked, got, words);
	if (!err && r == HSAR_CU_MASK_REDUCED)
		err = rocm_hsa_failed(dev, r, "hsa_amd_queue_cu_set_mask");
	return err;
}

/* ---- creation ---------------------------------------------------------------------- */

/* On a thread of HSA's.  The queue takes no more then, and its signals stay as they are.
 */
static void failed(uint32_t status, struct hsa_queue *queue, void *aql)
{
	struct rocm_aql *a = aql;

	(void)queue;
	atomic_store(&a->fault, status ? status : HSAR_ERROR);
}

static int fill_in(struct rocm_device *dev, struct rocm_aql *a, const uint32_t *mask,
		   int32_t priority)
{
	void *p = NULL, *at = NULL;
	uint32_t i;
	int err = HSA(dev, hsa_queue_create, dev->hsa.agent, RING_PACKETS,
		      HSAN_QUEUE_SINGLE, failed, a, UINT32_MAX, UINT32_MAX, &a->queue);

	if (err) {
		a->queue = NULL;
		return err;
	}
	err = rocm_aql_mask(dev, a, mask);
	if (!err && priority)
		err = HSA(dev, hsa_amd_queue_set_priority, a->queue,
			  HSAN_PRIORITY_LOW + (priority > 0 ? 2u : 0u));
	if (!err)
		err = HSA(dev, hsa_amd_profiling_set_profiler_enabled, a->queue, 1);
	if (!err)
		err = rocm_pin(dev, (uint64_t)a->slots * ROCM_ARGUMENT_ROOM, &p, &at);
	a->arguments = p;
	a->arguments_at = at;
	for (i = 0; !err && i < a->slots; i++) {
		err = HSA(dev, hsa_amd_signal_create, 0, 0, NULL, HSAN_SIGNAL_GPU_ONLY,
			  &a->signals[i]);
		if (err)
			a->signals[i] = 0;
	}
	return err;
}

int rocm_aql_open(struct rocm_device *dev, uint32_t slots, const uint32_t *mask,
		  int32_t priority, struct rocm_aql **out)
{
	struct rocm_aql *a = calloc(1, sizeof(*a) + slots * sizeof(a->signals[0]));
	int ignored = 0, err;

	*out = NULL;
	if (!a)
		return rocm_refuse(dev, ENOMEM, "no memory for a queue");
	a->slots = slots;
	err = fill_in(dev, a, mask, priority);
	if (!err)
		*out = a;
	else
		rocm_aql_close(dev, a, &ignored);
	return err;
}

void rocm_aql_keep(struct rocm_aql *a)
{
	pthread_mutex_lock(&kept.lock);
	a->older = kept.first;
	kept.first = a;
	pthread_mutex_unlock(&kept.lock);
}

void rocm_aql_close(struct rocm_device *dev, struct rocm_aql *a, int *err)
{
	int first = 0;
	uint32_t i;

	if (!a)
		return;
	if (a->queue && atomic_load(&dev->base.lost)) {
		rocm_aql_keep(a);
		return;
	}
	if (a->queue)
		first = HSA(dev, hsa_queue_destroy, a->queue);
	if (first)
		rocm_give_back(dev, ROCM_KIND_QUEUE, a->queue, &first);
	for (i = 0; i < a->slots; i++)
		rocm_give_back(dev, ROCM_KIND_SIGNAL, rocm_handle(a->signals[i]), &first);
	rocm_give_back(dev, ROCM_KIND_HOST, a->arguments, &first);
	if (first)
		rocm_aql_keep(a);
	else
		free(a);
	if (!*err)
		*err = first;
}

/* ---- packets ----------------------------------------------------------------------- */

/* Asked for again only where it might be: the device goes on. */
static inline bool is_full(struct rocm_aql *a)
{
	if (__builtin_expect(a->written - a->read < RING_PACKETS, 1))
		return false;
	a->read = hsa.hsa_queue_load_read_index_scacquire(a->queue);
	return a->written - a->read >= RING_PACKETS;
}

/* The next packet, which is like that but for its first word, its grid and what the slot
 * has: the ring has room.  The first word comes last: from it on it is the device's. */
static inline __attribute__((always_inline)) void publish(struct rocm_aql *a,
							  uint32_t slot, uint32_t type,
							  const struct hsa_packet *like,
							  const uint32_t grid[3])
{
	const struct hsa_queue *queue = a->queue;
	const uint64_t signal = a->signals[slot];
	struct hsa_packet *p = queue->base;
	uint64_t number;

	hsa.hsa_signal_store_relaxed(signal, 1);
	number = hsa.hsa_queue_add_write_index_screlease(queue, 1);
	a->written = number + 1;
	p += number % RING_PACKETS;
	*p = *like;
	if (grid) {
		p->grid[0] = grid[0] * like->block[0];
		p->grid[1] = grid[1] * like->block[1];
		p->grid[2] = grid[2] * like->block[2];
		p->kernarg =
			(uintptr_t)a->arguments_at + (uint64_t)slot * ROCM_ARGUMENT_ROOM;
	}
	p->completion = signal;
	__atomic_store_n((uint32_t *)(void *)p,
			 type | HSA_PACKET_IN_ORDER | HSA_PACKET_ACQUIRE |
				 HSA_PACKET_RELEASE | (uint32_t)like->setup << 16,
			 __ATOMIC_RELEASE);
	hsa.hsa_signal_store_screlease(queue->doorbell, (int64_t)number);
}

void *rocm_aql_arguments(struct rocm_aql *a, uint32_t slot)
{
	return a->arguments + (size_t)slot * ROCM_ARGUMENT_ROOM;
}

void rocm_aql_packet(const struct rocm_entry *e, const uint32_t block[3],
		     uint32_t shared_bytes, struct hsa_packet *p)
{
	uint32_t i;

	*p = (struct hsa_packet){.header = HSA_PACKET_INVALID,
				 .setup = 3,
				 .private_bytes = e->private_bytes,
				 .group_bytes = e->group_bytes + shared_bytes,
				 .kernel = e->object};
	for (i = 0; i < 3; i++)
		p->block[i] = (uint16_t)block[i];
}

int rocm_aql_kernel(struct rocm_aql *a, uint32_t slot, const struct rocm_entry *e,
		    const uint32_t groups[3], const uint32_t block[3])
{
	struct hsa_packet p;

	if (is_full(a))
		return -EAGAIN;
	rocm_aql_packet(e, block, 0, &p);
	publish(a, slot, HSA_PACKET_DISPATCH, &p, groups);
	return 0;
}

static int barrier(struct rocm_aql *a, uint32_t slot)
{
	static const struct hsa_packet p = {.header = HSA_PACKET_INVALID};

	if (is_full(a))
		return -EAGAIN;
	publish(a, slot, HSA_PACKET_BARRIER, &p, NULL);
	return 0;
}

bool rocm_aql_ended(const struct rocm_aql *a, uint32_t slot)
{
	return hsa.hsa_signal_load_scacquire(a->signals[slot]) < 1;
}

int rocm_aql_wait(struct rocm_device *dev, const struct rocm_aql *a, uint32_t slot)
{
	const uint64_t ticks =
		dev->hsa.tick_ns > 0 ? (uint64_t)(1e7 / dev->hsa.tick_ns) : 1000000;
	uint32_t i, fault = 0;

	for (i = 0; i < WAIT_TURNS && !fault; i++) {
		if (hsa.hsa_signal_wait_scacquire(a->signals[slot], HSAN_CONDITION_LT, 1,
						  ticks, HSAN_WAIT_BLOCKED) < 1)
			return 0;
		fault = atomic_load(&a->fault);
	}
	(void)hsa.hsa_queue_inactivate(a->queue);
	if (fault)
		return rocm_hsa_failed(dev, fault, "a kernel");
	return rocm_refuse(dev, EIO,
			   "the trial kernel, which reports where it runs, did not end");
}

/* ---- commands ---------------------------------------------------------------------- */

static uint32_t slot_of(const struct rocm_queue *q, const struct rocm_slot *s)
{
	return (uint32_t)(s - q->slots);
}

/* Make *p the packet of a launch that is not of its kernel's own shape, and tell the
 * kernel of that shape where it reads it. */
static __attribute__((cold, noinline)) int shape(const struct rocm_device *dev,
						 const struct hal_bk_cmd *cmd, char *to,
						 struct hsa_packet *p)
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	uint32_t block[3], shared_bytes, i;
	int err = rocm_shape(dev, cmd, block, &shared_bytes);

	if (err)
		return err;
	rocm_aql_packet(&k->entry, block, shared_bytes, p);
	for (i = 0; i < 3; i++) {
		const uint16_t items = (uint16_t)block[i];

		if (k->hidden[ROCM_HIDDEN_ITEMS + i] != ROCM_NOWHERE)
			memcpy(to + k->hidden[ROCM_HIDDEN_ITEMS + i], &items,
			       sizeof(items));
	}
	if (k->hidden[ROCM_HIDDEN_SHARED] != ROCM_NOWHERE)
		memcpy(to + k->hidden[ROCM_HIDDEN_SHARED], &shared_bytes,
		       sizeof(shared_bytes));
	return 0;
}

/* Arguments are in order, and what is behind them comes last: each is written as 8 bytes,
 * and what is too much of it is written over. */
static inline __attribute__((always_inline)) int
launch_as(const struct rocm_device *dev, struct rocm_queue *q, uint32_t slot,
	  const struct hal_bk_cmd *cmd, const uint32_t groups[3],
	  const struct hal_preempt_launch *given)
{
	const struct rocm_kernel *k = cmd->launch.kernel;
	char *to = rocm_aql_arguments(q->aql, slot);
	const struct hal_bk_arg *a = cmd->launch.args;
	const uint32_t n = cmd->launch.arg_count;
	const struct hsa_packet *packet = &k->packet;
	struct hsa_packet shaped;
	uint64_t value;
	uint32_t i;
	int err = stream_check_groups(k->info.name, &k->params, groups);

	if (err)
		return err;
	for (i = 0; i < n; i++) {
		err = stream_arg(k->info.name, &k->params, i, &a[i], &value);
		if (err)
			return err;
		memcpy(to + k->at[i], &value, sizeof(value));
	}
	if (given)
		memcpy(to + k->at[i], given, sizeof(*given));
	memcpy(to + k->rest_at, k->rest, k->entry.argument_bytes - k->rest_at);
	for (i = 0; i < 3; i++)
		memcpy(to + k->groups_at[i], &groups[i], sizeof(groups[i]));
	if (__builtin_expect((cmd->flags & HAL_BK_CMD_SHAPED) != 0, 0)) {
		err = shape(dev, cmd, to, &shaped);
		if (err)
			return err;
		packet = &shaped;
	}
	if (is_full(q->aql))
		return -EAGAIN;
	publish(q->aql, slot, HSA_PACKET_DISPATCH, packet, groups);
	return 0;
}

int rocm_aql_launch(struct rocm_device *dev, struct rocm_queue *q, uint32_t slot,
		    const struct hal_bk_cmd *cmd, const uint32_t groups[3],
		    const struct hal_preempt_launch *given)
{
	return launch_as(dev, q, slot, cmd, groups, given);
}

static inline __attribute__((always_inline)) int launch(struct rocm_device *dev,
							struct rocm_queue *q,
							uint32_t slot,
							const struct hal_bk_cmd *cmd)
{
	const struct rocm_kernel *k = cmd->launch.kernel;

	if (__builtin_expect(!k->follows, 1))
		return launch_as(dev, q, slot, cmd, cmd->launch.groups, NULL);
	return rocm_stops_launch(dev, q, &q->slots[slot], cmd);
}

static int moves(struct rocm_aql *a, uint32_t slot, const struct rocm_entry *e,
		 const uint64_t values[3], uint64_t items)
{
	const uint64_t groups = (items + MOVE_ITEMS - 1) / MOVE_ITEMS;
	const uint32_t block[3] = {MOVE_ITEMS, 1, 1},
		       grid[3] = {groups < MOVE_GROUPS ? (uint32_t)groups : MOVE_GROUPS,
				  1, 1};
	char *to = rocm_aql_arguments(a, slot);

	memset(to, 0, e->argument_bytes);
	memcpy(to, values, 3 * sizeof(values[0]));
	return rocm_aql_kernel(a, slot, e, grid, block);
}

static int fill(struct rocm_device *dev, struct rocm_aql *a, uint32_t slot,
		const void *to, uint64_t bytes, uint64_t pattern)
{
	const uint64_t values[3] = {(uintptr_t)to, bytes / 4, pattern};

	return moves(a, slot, &dev->hsa.fill, values, bytes / 4);
}

int rocm_aql_zero(struct rocm_device *dev, struct rocm_aql *a, uint32_t slot,
		  const uint32_t *words, uint32_t count)
{
	return fill(dev, a, slot, words, count * sizeof(*words), 0);
}

void rocm_aql_undo(const struct rocm_aql *a, uint32_t slot)
{
	hsa.hsa_signal_store_relaxed(a->signals[slot], 1);
}

/* Have a kernel copy within memory that kernels reach; else a barrier comes, behind which
 * an engine copies.  Not inlined: a launch must not pay for it. */
__attribute__((noinline)) static int give_copy(struct rocm_device *dev,
					       struct rocm_queue *q, uint32_t slot,
					       const struct hal_bk_cmd *cmd)
{
	const struct rocm_mem *to = cmd->copy.dst, *from = cmd->copy.src;
	const uint64_t bytes = cmd->copy.bytes;
	struct stream_slot *s = &q->slots[slot].base;
	uint64_t values[3] = {0, 0, bytes};

	s->late = bytes && dev->hsa.cpu && (to->copied || from->copied);
	q->base.fenced = s->late; /* else submit had not come here */
	if (bytes && !s->late) {
		values[0] = (uintptr_t)(to->address + cmd->copy.dst_offset);
		values[1] = (uintptr_t)(from->address + cmd->copy.src_offset);
		return moves(q->aql, slot, &dev->hsa.copy, values, (bytes + 15) / 16);
	}
	q->slots[slot].timed = false;
	return barrier(q->aql, slot);
}

int rocm_aql_give(struct rocm_device *dev, struct rocm_queue *q, uint32_t slot,
		  const struct hal_bk_cmd *cmd)
{
	q->slots[slot].timed = true;
	if (cmd->op == HAL_OP_LAUNCH)
		return launch(dev, q, slot, cmd);
	if (cmd->op == HAL_OP_FILL && cmd->fill.bytes) {
		const struct rocm_mem *to = cmd->fill.dst;

		return fill(dev, q->aql, slot, to->address + cmd->fill.offset,
			    cmd->fill.bytes,
			    cmd->fill.pattern | (uint64_t)cmd->fill.pattern << 32);
	}
	if (cmd->op == HAL_OP_COPY)
		return give_copy(dev, q, slot, cmd);
	q->slots[slot].timed = false;
	return barrier(q->aql, slot);
}

int rocm_aql_stamp(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		   uint64_t now)
{
	const struct rocm_mem *mem = s->base.cmd.timestamp.dst;

	return fill(dev, q->aql, slot_of(q, s),
		    mem->address + s->base.cmd.timestamp.offset, sizeof(now), now);
}

/* An engine waits for the signals of a copy at the head of its own ring, where copies of
 * other queues wait, too.  So the copy is given to it only when nothing is left to wait
 * for; then nothing can stop it, and it ends by itself. */
int rocm_aql_copy(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s)
{
	const struct hal_bk_cmd *cmd = &s->base.cmd;
	const struct rocm_mem *to = cmd->copy.dst, *from = cmd->copy.src;
	const uint64_t gpu = dev->hsa.agent, cpu = dev->hsa.cpu,
		       signal = q->aql->signals[slot_of(q, s)];
	uint32_t r;

	hsa.hsa_signal_store_relaxed(signal, 1);
	r = hsa.hsa_amd_memory_async_copy(
		to->address + cmd->copy.dst_offset, to->copied ? cpu : gpu,
		from->address + cmd->copy.src_offset, from->copied ? cpu : gpu,
		cmd->copy.bytes, 0, NULL, signal);
	if (r) {
		stream_break(&q->base, "hsa_amd_memory_async_copy: %s (0x%x)",
			     rocm_status_name(r), r);
		return rocm_hsa_failed(dev, r, "hsa_amd_memory_async_copy");
	}
	q->copying = signal;
	q->copy_began_ns = stream_now(&dev->base);
	return 0;
}

bool rocm_aql_copies(struct rocm_queue *q)
{
	if (q->copying && hsa.hsa_signal_load_scacquire(q->copying) < 1)
		q->copying = 0;
	return q->copying != 0;
}

bool rocm_aql_copied(struct rocm_queue *q, const struct rocm_slot *s)
{
	const int64_t value =
		hsa.hsa_signal_load_scacquire(q->aql->signals[slot_of(q, s)]);

	q->copying = 0;
	if (value >= 0)
		return true;
	stream_break(&q->base, "hsa_amd_memory_async_copy: the copy failed (%lld)",
		     (long long)value);
	q->base.wrong = true;
	return false;
}

/* ---- times ------------------------------------------------------------------------- */

static bool times_of(struct rocm_device *dev, struct rocm_queue *q,
		     const struct rocm_slot *s, struct hsa_times *t)
{
	return s->timed && dev->hsa.tick_ns > 0 &&
	       !hsa.hsa_amd_profiling_get_dispatch_time(
		       dev->hsa.agent, q->aql->signals[slot_of(q, s)], t) &&
	       t->end >= t->start;
}

static uint64_t ticks(const struct rocm_device *dev, uint64_t n)
{
	return (uint64_t)(dev->hsa.tick_ns * (double)n + 0.5);
}

void rocm_aql_times(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		    const struct rocm_slot *before)
{
	s->base.took_ns = s->base.after_ns = 0;
	if (s->base.cmd.op == HAL_OP_COPY && s->base.late)
		s->base.took_ns = s->base.after_ns = q->base.seen_ns - q->copy_began_ns;
	if (!times_of(dev, q, s, &s->ran)) {
		s->ran.end = s->ran.start = 0;
		return;
	}
	s->base.took_ns = ticks(dev, s->ran.end - s->ran.start);
	s->base.after_ns = s->base.took_ns;
	if (before != s && before->ran.end && s->ran.end >= before->ran.end)
		s->base.after_ns = ticks(dev, s->ran.end - before->ran.end);
}

int rocm_aql_end(struct rocm_device *dev, struct rocm_queue *q)
{
	return HSA(dev, hsa_queue_inactivate, q->aql->queue);
}
