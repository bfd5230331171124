/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - what clients and tenants have done, destroyed partitions included; see
 * hald.h. */
#include "hald.h"
#include "observe/stats.h"

void client_ends(struct client *c, enum ended how)
{
	int unknown = ENDED_UNKNOWN;

	(void)atomic_compare_exchange_strong(&c->ended, &unknown, (int)how);
}

void tally_add(struct tally *sum, const struct tally *more)
{
	sum->busy_ns += more->busy_ns;
	sum->submitted += more->submitted;
	sum->completed += more->completed;
	sum->failed += more->failed;
	sum->deadline_misses += more->deadline_misses;
	sum->request_ns += more->request_ns;
	for (uint32_t i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		sum->requests[i] += more->requests[i];
}

void tally_subtract(struct tally *sum, const struct tally *less)
{
	sum->busy_ns -= less->busy_ns;
	sum->submitted -= less->submitted;
	sum->completed -= less->completed;
	sum->failed -= less->failed;
	sum->deadline_misses -= less->deadline_misses;
	sum->request_ns -= less->request_ns;
	for (uint32_t i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		sum->requests[i] -= less->requests[i];
}

void tally_read(struct hal_partition *part, struct tally *done, struct hal_stats *stats)
{
	struct request_times times;

	stats_read(part, stats, &times);
	*done = (struct tally){
		/* That of a host includes its guests'. */
		.busy_ns = part->host == part ? stats->busy_ns : 0,
		.submitted = stats->submitted,
		.completed = stats->completed,
		.failed = stats->failed,
		.deadline_misses = stats->deadline_misses,
		.request_ns = times.ns,
	};
	for (uint32_t i = 0; i < HAL_HISTOGRAM_BUCKETS; i++)
		done->requests[i] = times.histogram[i];
}

static void settled_set(struct client *c, struct entry *e, bool settled)
{
	pthread_mutex_lock(&c->handles.lock);
	e->settled = settled;
	pthread_mutex_unlock(&c->handles.lock);
}

/* A partition is destroyed after its queues, so its counters are final if it is. */
void tally_settle(struct client *c, struct entry *e, struct tally *done)
{
	struct hal_stats stats;

	pthread_mutex_lock(&c->tenant->lock_past);
	tally_read(e->object, done, &stats);
	tally_add(&c->past, done);
	tally_add(&c->tenant->past, done);
	settled_set(c, e, true);
	pthread_mutex_unlock(&c->tenant->lock_past);
}

void tally_unsettle(struct client *c, struct entry *e, const struct tally *done)
{
	pthread_mutex_lock(&c->tenant->lock_past);
	tally_subtract(&c->past, done);
	tally_subtract(&c->tenant->past, done);
	settled_set(c, e, false);
	pthread_mutex_unlock(&c->tenant->lock_past);
}
