/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - copy the state of a device for the monitor; see view.h. */
#include "observe/view.h"

#include <string.h>

#include "sched/beside.h"
#include "sched/expect.h"
#include "sched/policy.h"

static enum view_state view_state_of(struct hal_queue *q)
{
	if (q->err != 0)
		return VIEW_FAILED;
	if (q->state == QUEUE_SUSPENDING)
		return VIEW_STOPPING;
	if (q->state == QUEUE_SUSPENDED)
		return VIEW_STOPPED;
	if (q->inflight_count != 0)
		return VIEW_RUNNING;
	if (q->runnable)
		return VIEW_READY;
	return queue_empty(q) ? VIEW_IDLE : VIEW_WAITING;
}

static void copy_queue(struct hal_queue *q, struct view_queue *v)
{
	v->id = q->obj.id;
	v->partition = q->part->desc.index;
	v->home = q->home->desc.index;
	v->service_class = q->sched.policy_view.service_class;
	v->priority = q->default_terms.priority;
	v->deadline_ns = q->default_terms.deadline_ns;
	v->weight = q->sched.policy_view.weight;
	v->running = q->inflight_count;
	v->state = view_state_of(q);
	memcpy(v->name, q->name, sizeof(v->name));
}

static void copy_partition(const struct hal_partition *p, struct view_partition *v)
{
	const struct hal_bk_partition_desc *d = &p->desc;

	v->index = d->index;
	v->row = d->row;
	v->col = d->col;
	v->rows = d->rows;
	v->cols = d->cols;
	v->units = d->units;
	v->floor = p->sched.policy_view.floor;
	v->ceiling = p->sched.policy_view.ceiling;
	v->running = p->command.inflight;
	v->runnable = p->sched.policy_view.runnable + (p->sched.sole != NULL);
	v->moving = p->moving.units != 0;
	v->held = p->sched.held;
	memcpy(v->name, p->name, sizeof(v->name));
}

static void copy_guest(const struct hal_partition *p, struct view_guest *v)
{
	v->index = p->desc.index;
	v->host = p->host->desc.index;
	v->queues = p->queue_count;
	memcpy(v->name, p->name, sizeof(v->name));
}

/* ---- learned run times ------------------------------------------------------------- */

/* Return the next free entry of v->learned, or NULL if it is full. */
static struct view_learned *add_learned(struct view *v)
{
	if (v->learned_count < VIEW_LEARNED)
		return &v->learned[v->learned_count++];
	v->learned_cut = true;
	return NULL;
}

static void copy_pair(struct hal_device *dev, uint32_t index, struct view *v)
{
	const struct profile *p = dev->observe.profile;
	struct view_learned *l = add_learned(v);

	if (l == NULL)
		return;
	*l = (struct view_learned){.of = VIEW_PAIR,
				   .id = index / p->programs + 1,
				   .other = index % p->programs + 1,
				   .commands = p->pairs[index].seen};
	l->takes = beside_expect(dev, l->id, l->other, &l->sure_permille);
}

/* Add an entry for each used element of by[0..count).  The entry `like` has the
 * fields that all of them share. */
static void copy_units(const struct by_units *by, uint32_t count,
		       const struct view_learned *like, struct view *v)
{
	for (; count > 0 && by->units != 0; by++, count--) {
		struct view_learned *l = by->seen != 0 ? add_learned(v) : NULL;
		double of = by->plain ? 1 : VIEW_WORK_OF;

		if (l == NULL)
			continue;
		*l = *like;
		l->of = by->plain ? like->of : VIEW_WORK;
		l->units = by->units;
		l->commands = by->seen;
		l->takes = (uint64_t)(by->ns / by->of * of + 0.5);
	}
}

static void copy_known(const struct known *k, struct view *v)
{
	struct view_learned like = {.of = VIEW_KERNEL,
				    .id = k->program,
				    .sure_permille = expect_sure(&k->sure)};

	memcpy(like.kernel, k->kernel.name, sizeof(like.kernel));
	copy_units(k->by, KNOWN_UNITS, &like, v);
}

static void copy_profile(struct hal_device *dev, struct view *v)
{
	const struct profile *p = dev->observe.profile;

	for (uint32_t i = 0; i < p->paired.count && i < NOTED_MAX; i++)
		copy_pair(dev, p->paired.index[i], v);
	for (uint32_t i = 0; i < p->taught.count && i < NOTED_MAX; i++)
		copy_known(&p->kernels[p->taught.index[i]], v);
	v->learned_cut |= p->paired.count > NOTED_MAX || p->taught.count > NOTED_MAX;
}

static void copy_learned(const struct hal_queue *q, struct view *v)
{
	const struct view_learned like = {.of = VIEW_QUEUE,
					  .id = q->obj.id,
					  .sure_permille =
						  expect_sure(&q->sched.learned.sure)};

	copy_units(q->sched.learned.by, LEARNED_UNITS, &like, v);
}

/* ---- the whole device -------------------------------------------------------------- */

static void copy_queues(struct hal_partition *p, struct view *v)
{
	hal_list_for_each (it, &p->queues) {
		struct hal_queue *q = container_of(it, struct hal_queue, on_partition);

		if (v->queue_count == VIEW_QUEUES)
			return;
		copy_queue(q, &v->queues[v->queue_count++]);
		if (q->sched.learned.by[0].units != 0)
			copy_learned(q, v);
	}
}

int view_take(struct hal_device *dev, void *to)
{
	struct view *v = to;

	v->now_ns = dev->now;
	v->lost = atomic_load(&dev->lost);
	policy_info(dev, &v->policy);
	v->partition_count = 0;
	v->guest_count = 0;
	v->queue_count = 0;
	v->learned_count = 0;
	v->learned_cut = false;
	v->partitions_all = 0;
	v->guests_all = 0;
	v->queues_all = 0;
	if (dev->observe.profile != NULL)
		copy_profile(dev, v);
	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		v->queues_all += p->queue_count;
		if (p->host == p && v->partitions_all++ < VIEW_PARTITIONS)
			copy_partition(p, &v->partitions[v->partition_count++]);
		if (p->host != p && v->guests_all++ < VIEW_GUESTS)
			copy_guest(p, &v->guests[v->guest_count++]);
		copy_queues(p, v);
	}
	if (dev->observe.decisions != NULL)
		v->decisions = *dev->observe.decisions;
	return 0;
}
