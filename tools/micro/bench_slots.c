/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_slots - what it costs an NPU's slot to go from one tenant to another.
 *
 *   bench_slots figure [TARGET]   a host and its guests take turns, a command each that
 *                                 stores the time; from one's to the next one's: the end
 *                                 of one command, the switch, the beginning of the other
 *
 * Of two tenants, whose translations the slot keeps; of 300, of which it cannot keep all;
 * and of one tenant alone, the control.  The first round, in which no translation is
 * known, is not counted.  On npu:0, the RTL, with channels.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { TENANTS_MAX = 300, ROUNDS = 6 };

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *times;
	struct hal_point done;
};

struct switches {
	uint64_t most, sum, count;
};

struct world {
	struct hal_device *dev;
	struct hal_partition *host;
	struct tenant tenant[TENANTS_MAX];
	unsigned int count;
};

static int add_tenant(struct world *w, struct tenant *t)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	pd.host = w->host;
	pd.memory_bytes = 4096;
	bd.bytes = (uint64_t)ROUNDS * 8;
	if (hal_partition_create(w->dev, &pd, &t->part) != 0 ||
	    hal_queue_create(t->part, &qd, &t->queue) != 0 ||
	    hal_buffer_create(t->part, &bd, &t->times) != 0)
		return bench_die("a guest");
	return 0;
}

static int open_world(struct world *w, const char *target, unsigned int count)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	int err = hal_open(target, NULL, &w->dev);

	if (err == -ENODEV)
		return BENCH_SKIP;
	if (err != 0 || hal_device_get_info(w->dev, &info) != 0)
		return bench_die("a device");
	pd.units_floor = info.unit_rows * info.unit_cols;
	if (hal_partition_create(w->dev, &pd, &w->host) != 0)
		return bench_die("a host");
	for (w->count = 0; w->count < count; w->count++)
		if (add_tenant(w, &w->tenant[w->count]) != 0)
			return TOOL_FAILED;
	return 0;
}

static int close_world(struct world *w)
{
	int err = 0;

	for (unsigned int i = 0; i < w->count; i++) {
		err |= hal_queue_destroy(w->tenant[i].queue);
		err |= hal_buffer_destroy(w->tenant[i].times);
		err |= hal_partition_destroy(w->tenant[i].part);
	}
	err |= hal_partition_destroy(w->host);
	err |= hal_close(w->dev);
	return err != 0 ? bench_die("closing") : 0;
}

/* Each in its turn, with no time in between. */
static int play(struct world *w)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd;

	d.cmds = &cmd;
	d.cmd_count = 1;
	for (unsigned int n = 0; n < ROUNDS; n++)
		for (unsigned int i = 0; i < w->count; i++) {
			struct tenant *t = &w->tenant[i];

			cmd = hal_cmd_timestamp(t->times, (uint64_t)n * 8);
			if (hal_submit(t->queue, &d, &t->done) != 0)
				return bench_die("hal_submit");
		}
	for (unsigned int i = 0; i < w->count; i++)
		if (hal_wait(&w->tenant[i].done, 1, 0, HAL_FOREVER) != 0)
			return bench_die("hal_wait");
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Between neighbours in time; the first round's are not counted. */
static int measure(const char *target, unsigned int count, struct switches *out)
{
	static uint64_t at[TENANTS_MAX * ROUNDS];
	static struct world w;
	int err = open_world(&w, target, count);

	if (err != 0)
		return err;
	err = play(&w);
	for (unsigned int i = 0; err == 0 && i < count; i++)
		if (hal_buffer_read(w.tenant[i].times, 0, at + (size_t)i * ROUNDS,
				    (uint64_t)ROUNDS * 8) != 0)
			err = bench_die("the times");
	if (err != 0)
		return err;
	qsort(at, (size_t)count * ROUNDS, sizeof(*at), compare);
	memset(out, 0, sizeof(*out));
	for (unsigned int i = count + 1; i < count * ROUNDS; i++) {
		uint64_t ns = at[i] - at[i - 1];

		out->most = ns > out->most ? ns : out->most;
		out->sum += ns;
		out->count++;
	}
	return close_world(&w);
}

static int figure(const char *target)
{
	static const struct {
		const char *name;
		unsigned int tenants;
	} ways[] = {{"switch_cycles", 2}, {"switch_cycles.300", 300}, {"same_cycles", 1}};
	struct switches s;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int err = measure(target, ways[i].tenants, &s);

		if (err != 0)
			return err;
		printf("figure slots.virtual.%s %llu\n", ways[i].name,
		       (unsigned long long)s.most);
		fprintf(stderr, "%u tenants: %llu in the mean, %llu at most\n",
			ways[i].tenants, (unsigned long long)(s.sum / s.count),
			(unsigned long long)s.most);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3 || strcmp(argv[1], "figure") != 0) {
		fprintf(stderr, "usage: bench_slots figure [TARGET]\n");
		return 2;
	}
	bench_within(300);
	return tool_end(figure(argc > 2 ? argv[2] : "npu:0"));
}
