/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota.c - count the memory of partitions and devices against their limits.
 *
 * device.memory.taken is the sum of all quotas and of the bytes used by partitions
 * without quota.  A charge adds to its counter only if the sum stays within the limit, so
 * threads need no lock.
 */
#include "memory/quota.h"

#include <errno.h>

#include "memory/evict.h"
#include "util/error.h"

uint64_t memory_left(const struct hal_device *dev)
{
	uint64_t taken = counter_get(&dev->memory.taken);

	return taken < dev->info.memory_bytes ? dev->info.memory_bytes - taken : 0;
}

/* Add bytes to *used if the sum does not exceed limit.  Otherwise return false.  In both
 * cases set *left to the bytes that were left before the call. */
static bool charge_under(counter *used, uint64_t limit, uint64_t bytes, uint64_t *left)
{
	uint64_t now = counter_get(used);

	do {
		*left = now < limit ? limit - now : 0;
		if (bytes > *left)
			return false;
	} while (!atomic_compare_exchange_weak(used, &now, now + bytes));
	return true;
}

int memory_promise(struct hal_device *dev, uint64_t bytes)
{
	uint64_t limit = dev->info.memory_bytes, left;

	/* If the device does not report its memory size, its backend refuses allocations.
	 */
	if (charge_under(&dev->memory.taken, limit != 0 ? limit : UINT64_MAX, bytes,
			 &left))
		return 0;
	return fail(
		ENOSPC,
		"%llu bytes of memory requested, but only %llu of %llu are free on %s",
		U64(bytes), U64(left), U64(limit), dev->name);
}

void memory_unpromise(struct hal_device *dev, uint64_t bytes)
{
	atomic_fetch_sub(&dev->memory.taken, bytes);
}

static COLD int charge_failed(const struct hal_partition *part, uint64_t bytes,
			      const char *what, uint64_t left, const char *of)
{
	char text[64];

	partition_describe(part, text, sizeof(text));
	return fail(ENOSPC,
		    "no space for %s of %llu bytes: %llu are left of the %s of %s", what,
		    U64(bytes), U64(left), of, text);
}

int partition_charge(struct hal_partition *part, uint64_t bytes, const char *what)
{
	struct hal_device *dev = part->dev;
	uint64_t quota = counter_get(&part->memory.quota);
	uint64_t limit = dev->info.memory_bytes, left;

	if (quota != 0) {
		if (!charge_under(&part->memory.used, quota, bytes, &left))
			return charge_failed(part, bytes, what, left, "quota");
		return 0;
	}
	if (!charge_under(&dev->memory.taken, limit != 0 ? limit : UINT64_MAX, bytes,
			  &left))
		return charge_failed(part, bytes, what, left, "free memory");
	atomic_fetch_add(&part->memory.used, bytes);
	return 0;
}

int limit_charge(const struct hal_buffer *buf)
{
	struct evict *e = buf->part->memory.evict;
	char name[BUFFER_DESCRIPTION];
	uint64_t left;

	return charge_under(&e->all, e->limit, buf->charge, &left)
		       ? 0
		       : charge_failed(buf->part, buf->charge,
				       buffer_describe(buf, "a buffer", name), left,
				       "memory_limit");
}

void limit_release(struct hal_partition *part, uint64_t bytes)
{
	atomic_fetch_sub(&part->memory.evict->all, bytes);
}

void partition_release(struct hal_partition *part, uint64_t bytes)
{
	atomic_fetch_sub(&part->memory.used, bytes);
	if (counter_get(&part->memory.quota) == 0)
		memory_unpromise(part->dev, bytes);
}

int quota_change(struct hal_partition *p, uint64_t to)
{
	uint64_t quota = counter_get(&p->memory.quota);
	uint64_t has = quota != 0 ? quota : counter_get(&p->memory.used);

	if (to == 0 || to == quota)
		return 0;
	if (to > has) {
		int err = memory_promise(p->dev, to - has);

		if (err != 0)
			return err;
	} else {
		memory_unpromise(p->dev, has - to);
	}
	counter_set(&p->memory.quota, to);
	return 0;
}

void quota_undo(struct hal_partition *p)
{
	uint64_t quota = counter_get(&p->memory.quota),
		 used = counter_get(&p->memory.used);
	uint64_t to = p->quota_before, left;
	uint64_t limit = p->dev->info.memory_bytes;

	if (to == quota)
		return;
	if (to > quota) {
		if (!charge_under(&p->dev->memory.taken, limit != 0 ? limit : UINT64_MAX,
				  to - quota, &left))
			return;
	} else {
		if (to != 0 && to < used)
			to = used;
		memory_unpromise(p->dev, quota - (to != 0 ? to : used));
	}
	counter_set(&p->memory.quota, to);
}
