/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - a device as its engine sees it; see view.h. */
#include "engine/view.h"

#include <string.h>

#include "engine/policy.h"

static enum view_state state_of(struct hal_queue *q)
{
	if (q->err != 0)
		return VIEW_FAILED;
	if (q->state == QUEUE_SUSPENDING)
		return VIEW_STOPPING;
	if (q->state == QUEUE_SUSPENDED)
		return VIEW_STOPPED;
	if (q->flight_count != 0)
		return VIEW_RUNNING;
	if (q->runnable)
		return VIEW_READY;
	return queue_empty(q) ? VIEW_IDLE : VIEW_WAITING;
}

static void take_queue(struct hal_queue *q, struct view_queue *v)
{
	v->id = q->obj.id;
	v->partition = q->part->desc.index;
	v->home = q->home->desc.index;
	v->service_class = q->view.service_class;
	v->priority = q->usual.priority;
	v->deadline_ns = q->usual.deadline_ns;
	v->weight = q->view.weight;
	v->running = q->flight_count;
	v->state = state_of(q);
}

static void take_partition(const struct hal_partition *p, struct view_partition *v)
{
	const struct hal_bk_partition_desc *d = &p->desc;

	v->index = d->index;
	v->row = d->row;
	v->col = d->col;
	v->rows = d->rows;
	v->cols = d->cols;
	v->units = d->units;
	v->floor = p->view.floor;
	v->ceiling = p->view.ceiling;
	v->running = p->inflight;
	v->runnable = p->view.runnable + (p->sole != NULL);
	v->moving = p->moving.units != 0;
	v->held = p->held;
	memcpy(v->name, p->name, sizeof(v->name));
}

static void take_guest(const struct hal_partition *p, struct view_guest *v)
{
	v->index = p->desc.index;
	v->host = p->host->desc.index;
	v->queues = p->queue_count;
	memcpy(v->name, p->name, sizeof(v->name));
}

static void take_queues(struct hal_partition *p, struct view *v)
{
	hal_list_for_each (it, &p->queues) {
		if (v->queue_count == VIEW_QUEUES)
			return;
		take_queue(container_of(it, struct hal_queue, on_partition),
			   &v->queues[v->queue_count++]);
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
	v->partitions_all = 0;
	v->guests_all = 0;
	v->queues_all = 0;
	hal_list_for_each (it, &dev->partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		v->queues_all += p->queue_count;
		if (p->host == p && v->partitions_all++ < VIEW_PARTITIONS)
			take_partition(p, &v->partitions[v->partition_count++]);
		if (p->host != p && v->guests_all++ < VIEW_GUESTS)
			take_guest(p, &v->guests[v->guest_count++]);
		take_queues(p, v);
	}
	if (dev->decisions != NULL)
		v->decisions = *dev->decisions;
	return 0;
}
