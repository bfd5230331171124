/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_evict.c - a tenant whose buffers are twice its quota, beside one within its own.
 *
 *   bench_evict TARGET NAME [figures]
 *
 * It fills pieces of its buffers in three orders: round and round, which is the worst one
 * for evicting the least recently used; forth and back, as the layers of a network that
 * learns; and at random, some buffers more often than others.  Printed are the bytes that
 * went to the host and came back, over the fewest that are possible for that order
 * (Belady: evict what is needed last).  All bytes are compared in the end.  The other
 * tenant's buffers stay on the device.
 *
 * Fails if a byte is wrong, if the other tenant's buffers were evicted, if nothing was,
 * or if much more was moved than had to be.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>
#include <hal/hal.h>

enum { BUFFERS = 16, FIT = BUFFERS / 2, STEPS = 128, PIECE = 4096 };
/* Evicting the least recently used moves 1.8 and 2.1 times the fewest in two orders. */
#define MOST  1.5
#define BYTES (UINT64_C(2) << 20) /* of a buffer: granules of its own */

static void check(int err, const char *call)
{
	if (err == 0)
		return;
	fprintf(stderr, "%s: %d: %s\n", call, err, hal_last_error());
	exit(1);
}
#define OK(call) check(call, #call)

struct tenant {
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf[BUFFERS];
	uint32_t count;
	uint32_t want[BUFFERS][STEPS]; /* the word of each piece */
};

static struct hal_partition_memory_info memory_of(const struct tenant *t)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);

	OK(hal_partition_get_memory_info(t->part, &i));
	return i;
}

static void open_tenant(struct hal_device *dev, struct tenant *t, uint32_t buffers)
{
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	t->count = buffers;
	pd.units_floor = 1;
	pd.memory_bytes = FIT * BYTES;
	limits.memory_limit = buffers * BYTES;
	pd.limits = buffers > FIT ? &limits : NULL;
	OK(hal_partition_create(dev, &pd, &t->part));
	OK(hal_queue_create(t->part, &qd, &t->q));
	bd.bytes = BYTES;
	for (uint32_t i = 0; i < buffers; i++)
		OK(hal_buffer_create(t->part, &bd, &t->buf[i]));
}

static void close_tenant(struct tenant *t)
{
	OK(hal_queue_destroy(t->q));
	for (uint32_t i = 0; i < t->count; i++)
		OK(hal_buffer_destroy(t->buf[i]));
	OK(hal_partition_destroy(t->part));
}

/* Fill one piece of buffer i. */
static struct hal_point fill(struct tenant *t, uint32_t i, uint32_t piece, uint32_t word)
{
	struct hal_cmd cmd =
		hal_cmd_fill(t->buf[i], (uint64_t)piece * PIECE, PIECE, word);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(t->q, &d, &done));
	t->want[i][piece] = word;
	return done;
}

static uint64_t wrong_bytes(const struct tenant *t)
{
	static uint32_t got[BYTES / 4];
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		OK(hal_buffer_read(t->buf[i], 0, got, BYTES));
		for (uint32_t k = 0; k < BYTES / 4; k++) {
			const uint32_t piece = k / (PIECE / 4);

			wrong +=
				got[k] != (piece < STEPS ? t->want[i][piece] : 0) ? 4 : 0;
		}
	}
	return wrong;
}

/* ---- orders ------------------------------------------------------------------------ */

static const char *const orders[] = {"round", "sweep", "random"};
enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

static uint32_t buffer_at(uint32_t order, uint32_t step, uint64_t *random)
{
	const uint32_t turn = step % (2 * BUFFERS);

	if (order == 0)
		return step % BUFFERS;
	if (order == 1)
		return turn < BUFFERS ? turn : 2 * BUFFERS - 1 - turn;
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	/* The lesser of two: low numbers more often. */
	return (uint32_t)(*random % BUFFERS < (*random >> 32) % BUFFERS
				  ? *random % BUFFERS
				  : (*random >> 32) % BUFFERS);
}

/* Return the step from `from` on that uses buffer i; STEPS: none. */
static uint32_t next_use(const uint32_t *uses, uint32_t from, uint32_t i)
{
	while (from < STEPS && uses[from] != i)
		from++;
	return from;
}

/* Return the fewest fetches for uses, where here says which buffers begin on the device:
 * the one that is needed last goes. */
static uint32_t fewest_fetches(const uint32_t *uses, const bool *begin)
{
	bool here[BUFFERS];
	uint32_t fetches = 0;

	memcpy(here, begin, sizeof(here));
	for (uint32_t s = 0; s < STEPS; s++) {
		uint32_t last = 0, victim = 0;

		if (here[uses[s]])
			continue;
		fetches++;
		for (uint32_t i = 0; i < BUFFERS; i++)
			if (here[i] && next_use(uses, s, i) >= last) {
				last = next_use(uses, s, i);
				victim = i;
			}
		here[victim] = false;
		here[uses[s]] = true;
	}
	return fetches;
}

/* Fill pieces in that order, beside a neighbour that fills its own.  Return the bytes
 * moved over the fewest. */
static double run(struct tenant *t, struct tenant *beside, uint32_t order)
{
	/* The last ones that were touched are on the device: make that known. */
	bool here[BUFFERS] = {false};
	uint32_t uses[STEPS];
	uint64_t random = 88172645463325252u, moved;
	struct hal_partition_memory_info before, after;
	struct hal_point done, other = {0};

	for (uint32_t i = 0; i < BUFFERS; i++) {
		done = fill(t, i, 0, i);
		here[i] = i >= BUFFERS - FIT;
	}
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	before = memory_of(t);
	for (uint32_t s = 0; s < STEPS; s++) {
		uses[s] = buffer_at(order, s, &random);
		done = fill(t, uses[s], s, s * 7919 + order);
		other = fill(beside, s % FIT, s, s);
	}
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_wait(&other, 1, 0, HAL_FOREVER));
	after = memory_of(t);
	moved = after.evicted_bytes - before.evicted_bytes + after.fetched_bytes -
		before.fetched_bytes;
	return (double)moved / (double)(2 * fewest_fetches(uses, here) * BYTES);
}

int main(int argc, char **argv)
{
	static const char *const options[] = {"hal.oversubscribe=yes",
					      "hal.queue_depth=512", NULL};
	const bool figures = argc > 3;
	static struct tenant t, beside;
	struct hal_device *dev;
	uint64_t wrong, away, many = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: bench_evict TARGET NAME [figures]\n");
		return 2;
	}
	OK(hal_open(argv[1], options, &dev));
	open_tenant(dev, &beside, FIT);
	open_tenant(dev, &t, BUFFERS);
	for (uint32_t order = 0; order < ORDERS; order++) {
		const double of_min = run(&t, &beside, order);

		many += of_min > MOST;
		printf(figures ? "figure %s.evict.%s_of_min %.2f\n"
			       : "%s: %s: %.2f times the fewest bytes\n",
		       argv[2], orders[order], of_min);
	}
	wrong = wrong_bytes(&t) + wrong_bytes(&beside);
	away = memory_of(&beside).evictions;
	printf(figures ? "figure %s.evict.wrong_bytes %llu\n" : "%s: %llu wrong bytes\n",
	       argv[2], (unsigned long long)wrong);
	if (memory_of(&t).evictions == 0)
		fprintf(stderr, "nothing was evicted\n");
	if (many != 0)
		fprintf(stderr,
			"%llu orders moved more than %.1f times the fewest bytes\n",
			(unsigned long long)many, MOST);
	wrong += away + many + (memory_of(&t).evictions == 0);
	close_tenant(&t);
	close_tenant(&beside);
	OK(hal_close(dev));
	return wrong != 0;
}
