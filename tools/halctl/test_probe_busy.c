/* SPDX-License-Identifier: Apache-2.0 */
/* test_probe_busy.c - an opaque NPU is asked for its map while another tenant copies, and
 * with pairs of granules of which some look wrong for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "npu/hash.h"
#include "prober_npu.h"

#define GRANULE 1024u
#define COPY    (UINT64_C(32) << 10)
#define AHEAD   6u

struct scene {
	struct probe_npu npu;
	struct npu_hash hash;
	uint32_t wrong_percent; /* of pairs */
	uint64_t swapped;       /* tests of such */
	struct hal_partition *other;
	struct hal_queue *queue;
	struct hal_buffer *buffer;
	struct hal_point last;
	uint64_t copies;
};

/* ---- another tenant -------------------------------------------------------------------- */

/* permille: of the bandwidth of all channels, that it may have. */
static void add_other(struct scene *s, uint32_t channels, uint32_t permille)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);

	assert_int_equal(hal_device_get_info(s->npu.dev, &info), 0);
	part.rows = 4;
	part.cols = 4;
	part.col = 4;
	part.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits),
		.bandwidth = info.clock_hz * 16 * channels / 1000 * permille};
	buffer.bytes = 2 * COPY;
	if (hal_partition_create(s->npu.dev, &part, &s->other) != 0 ||
	    hal_queue_create(s->other, &queue, &s->queue) != 0 ||
	    hal_buffer_create(s->other, &buffer, &s->buffer) != 0)
		fail_msg("%s", hal_last_error());
}

static void feed(struct scene *s)
{
	struct hal_cmd copy = hal_cmd_copy(s->buffer, COPY, s->buffer, 0, COPY);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &copy;
	d.cmd_count = 1;
	while (s->last.value == 0 ||
	       s->last.value - hal_timeline_get_value(s->last.timeline, NULL) < AHEAD) {
		if (hal_submit(s->queue, &d, &s->last) != 0)
			fail_msg("%s", hal_last_error());
		s->copies++;
	}
}

/* ---- pairs that look wrong --------------------------------------------------------------- */

static uint32_t channel(const struct scene *s, uint64_t at)
{
	return npu_hash_map(&s->hash, (uint32_t)(at / GRANULE)).channel;
}

static uint32_t mixed(uint64_t a, uint64_t b)
{
	uint64_t x = (a < b ? a << 32 | b : b << 32 | a) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 40);
}

/* In place of the second, a granule near it that shares a channel with the first where it
 * does not, and the other way round. */
static void swap(struct scene *s, uint64_t at[2])
{
	uint64_t end = s->npu.first + s->npu.bytes - GRANULE;
	bool same = channel(s, at[0]) == channel(s, at[1]);

	if (at[0] / GRANULE == at[1] / GRANULE ||
	    mixed(at[0] / GRANULE, at[1] / GRANULE) % 100 >= s->wrong_percent)
		return;
	for (uint64_t to = at[1]; to < end && to < at[1] + 256 * GRANULE; to += GRANULE)
		if (to / GRANULE != at[0] / GRANULE &&
		    (channel(s, at[0]) == channel(s, to)) != same) {
			at[1] = to;
			s->swapped++;
			return;
		}
}

static int measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		   uint64_t *cycles)
{
	struct scene *s = user;
	uint64_t pair[2] = {at[0], at[1]};

	assert_int_equal(count, 2);
	swap(s, pair);
	if (s->queue != NULL)
		feed(s);
	return probe_npu_measure(&s->npu, pair, count, lines, cycles);
}

/* ---- a probe ------------------------------------------------------------------------------- */

/* Every granule, names of channels apart. */
static void compare(const struct scene *s, const struct color_map *map, uint32_t channels)
{
	uint32_t to[16];

	memset(to, 0xff, sizeof(to));
	assert_int_equal(map->channels, channels);
	assert_int_equal(map->granule, GRANULE);
	for (uint32_t g = 0; g < color_map_granules(map); g++) {
		uint32_t c = npu_hash_map(&s->hash, g).channel;

		if (to[c] == UINT32_MAX)
			to[c] = color_map_channel(map, g);
		assert_int_equal(color_map_channel(map, g), to[c]);
	}
}

static void drop_other(struct scene *s)
{
	if (s->queue == NULL)
		return;
	assert_int_equal(hal_wait(&s->last, 1, 0, HAL_FOREVER), 0);
	assert_int_equal(hal_queue_destroy(s->queue), 0);
	assert_int_equal(hal_buffer_destroy(s->buffer), 0);
	assert_int_equal(hal_partition_destroy(s->other), 0);
}

static void probe(uint32_t channels, uint32_t seed, uint32_t permille,
		  uint32_t wrong_percent)
{
	struct scene s = {.hash = {.gran = 10}, .wrong_percent = wrong_percent};
	struct discover_result r = {0};
	char target[512];
	int err;

	assert_true(npu_hash_split(channels, &s.hash.q, &s.hash.k));
	npu_hash_choose(&s.hash, seed);
	snprintf(target, sizeof(target),
		 "%s&memory_size=16M&hash=opaque&channels=%u&hash_seed=%u", NPU_TARGET,
		 channels, seed);
	if (hal_open(target, NULL, &s.npu.dev) != 0)
		fail_msg("%s", hal_last_error());
	if (permille != 0)
		add_other(&s, channels, permille);
	assert_int_equal(probe_npu_open(&s.npu), 0);
	s.npu.measure = measure;
	s.npu.user = &s;
	err = probe_npu_find(&s.npu, 1, &r);
	printf("%s: %u channels, others' share %u permille, %u %% wrong: %llu tests, "
	       "%llu of "
	       "pairs that look wrong, %llu copies; slow %.3f of two, %.3f of one\n",
	       probe_npu_loads_by(&s.npu), channels, permille, wrong_percent,
	       (unsigned long long)r.tests, (unsigned long long)s.swapped,
	       (unsigned long long)s.copies, r.p0, r.p1);
	if (err != 0)
		fail_msg("%d: %u attempts", err, r.attempts);
	assert_true(color_map_verified(r.map));
	compare(&s, r.map, channels);
	assert_true(permille == 0 || s.copies > 100);
	assert_true(wrong_percent == 0 || s.swapped * 100 > r.tests * 4);
	color_map_free(r.map);
	assert_int_equal(probe_npu_close(&s.npu), 0);
	drop_other(&s);
	assert_int_equal(hal_close(s.npu.dev), 0);
}

/* What takes long and is for check-long alone: "all" runs it, too. */
static bool all;

static void if_all(void)
{
	if (!all)
		skip();
}

static void beside_traffic(void **state)
{
	(void)state;
	if_all();
	probe(4, 21, 50, 0);
}

static void with_wrong_pairs(void **state)
{
	(void)state;
	probe(4, 23, 0, 5);
	if_all();
	probe(6, 24, 0, 5);
}

static void with_both(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	if_all();
#endif
	probe(6, 26, 50, 5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_traffic),
		cmocka_unit_test(with_wrong_pairs),
		cmocka_unit_test(with_both),
	};

	all = argc == 2 && strcmp(argv[1], "all") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
