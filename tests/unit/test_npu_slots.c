/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More tenants than slots: 1,028 address spaces take turns in the four slots of the NPU,
 * more of them in a slot than its TLB tells apart.  All have the same virtual addresses,
 * so whoever saw another's memory would compute something else.  Nobody gets far ahead of
 * anybody of the same slot, and who faults, stands inside a network or goes changes
 * nothing for the others.  On the golden model and the fast one; what the TLB keeps on
 * the RTL, where its 16 x 16 model is built.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu_test.h"

enum { HOSTS = 4, M = 24, K = 40, N = 12, JOBS = 3, BYTES = 2048 };

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *a, *b, *d;
	uint8_t want[M * N];
	struct hal_point done;
	uint64_t submitted;
};

struct world {
	struct hal_device *dev;
	struct hal_partition *host[HOSTS];
	struct hal_program *prog;
	struct hal_kernel *net;
	struct tenant *tenant;
	uint32_t count; /* host i % HOSTS has tenant i */
	uint32_t random;
};

static uint32_t below(struct world *w, uint32_t n)
{
	w->random = w->random * 1664525u + 1013904223u;
	return (w->random >> 8) % n;
}

/* d = table[clamp(a * b)]: sums in scratch memory, a table in the program's. */
static uint8_t table_at(uint32_t i)
{
	return (uint8_t)(i * 37 + 11);
}

static void load(struct world *w)
{
	static const int32_t mult = 1073741824, shift = -5;
	struct hal_npu_gemm gemm = HAL_INIT(hal_npu_gemm);
	struct hal_npu_lut lut = HAL_INIT(hal_npu_lut);
	struct hal_npu_builder *b;
	uint8_t table[256];
	void *image;
	size_t size;

	for (uint32_t i = 0; i < 256; i++)
		table[i] = table_at(i);
	OK(hal_npu_builder_create(&b));
	OK(hal_npu_kernel(b, "net"));
	OK(hal_npu_arg(b, BYTES, &gemm.a.id));
	OK(hal_npu_arg(b, BYTES, &gemm.b.id));
	OK(hal_npu_arg(b, BYTES, &lut.d.id));
	OK(hal_npu_scratch(b, M * N, &gemm.d.id));
	gemm.m = M;
	gemm.n = N;
	gemm.k = K;
	gemm.out.mult = &mult;
	gemm.out.shift = &shift;
	gemm.out.min = -128;
	gemm.out.max = 127;
	OK(hal_npu_gemm(b, &gemm));
	lut.bytes = M * N;
	lut.a = gemm.d;
	lut.table = table;
	OK(hal_npu_lut(b, &lut));
	OK(hal_npu_build(b, &image, &size));
	OK(hal_npu_builder_destroy(b));
	OK(hal_program_load(w->dev, image, size, &w->prog));
	hal_npu_image_free(image);
	OK(hal_kernel_find(w->prog, "net", &w->net));
}

/* TensorFlow Lite's multiplication by 2^-6, in two roundings. */
static int32_t scaled(int32_t x)
{
	int64_t half = ((int64_t)x * 1073741824 + (INT64_C(1) << 30)) >> 31;
	int64_t up = half < 0 ? (-half + 16) >> 5 : (half + 16) >> 5;

	return (int32_t)(half < 0 ? -up : up);
}

static void expect(uint8_t *want, const int8_t *a, const int8_t *b)
{
	for (uint32_t m = 0; m < M; m++)
		for (uint32_t n = 0; n < N; n++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < K; k++)
				sum += a[m * K + k] * b[k * N + n];
			sum = scaled(sum);
			sum = sum < -128 ? -128 : sum > 127 ? 127 : sum;
			want[m * N + n] = table_at((uint8_t)sum);
		}
}

static void furnish(struct world *w, struct tenant *t)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	int8_t a[BYTES], b[BYTES];

	d.bytes = BYTES;
	OK(hal_queue_create(t->part, &q, &t->queue));
	OK(hal_buffer_create(t->part, &d, &t->a));
	OK(hal_buffer_create(t->part, &d, &t->b));
	OK(hal_buffer_create(t->part, &d, &t->d));
	for (uint32_t i = 0; i < BYTES; i++) {
		a[i] = (int8_t)below(w, 256);
		b[i] = (int8_t)below(w, 256);
	}
	OK(hal_buffer_write(t->a, 0, a, BYTES));
	OK(hal_buffer_write(t->b, 0, b, BYTES));
	expect(t->want, a, b);
}

static void open_world(struct world *w, const char *target, uint32_t tenants)
{
	const char *const options[] = {"policy.name=rr", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(w, 0, sizeof(*w));
	w->random = 99;
	w->count = tenants;
	w->tenant = calloc(tenants, sizeof(*w->tenant));
	assert_non_null(w->tenant);
	OK(hal_open(target, options, &w->dev));
	d.rows = 8;
	d.cols = 8;
	for (uint32_t i = 0; i < HOSTS; i++) {
		d.row = (uint16_t)(i / 2 * 8);
		d.col = (uint16_t)(i % 2 * 8);
		OK(hal_partition_create(w->dev, &d, &w->host[i]));
	}
	load(w);
	for (uint32_t i = 0; i < tenants; i++) {
		struct hal_partition_desc g = HAL_INIT(hal_partition_desc);
		struct tenant *t = &w->tenant[i];

		t->part = w->host[i % HOSTS];
		g.host = t->part;
		g.memory_bytes = 32768;
		if (i >= HOSTS)
			OK(hal_partition_create(w->dev, &g, &t->part));
		furnish(w, t);
	}
}

static void leave(struct tenant *t, bool guest)
{
	OK(hal_queue_destroy(t->queue));
	OK(hal_buffer_destroy(t->a));
	OK(hal_buffer_destroy(t->b));
	OK(hal_buffer_destroy(t->d));
	if (guest)
		OK(hal_partition_destroy(t->part));
	t->part = NULL;
}

static void close_world(struct world *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->tenant[i].part)
			leave(&w->tenant[i], i >= HOSTS);
	OK(hal_program_unload(w->prog));
	for (uint32_t i = 0; i < HOSTS; i++)
		OK(hal_partition_destroy(w->host[i]));
	OK(hal_close(w->dev));
	free(w->tenant);
}

static void submit(struct world *w, struct tenant *t)
{
	struct hal_arg args[] = {{t->a, 0, 0}, {t->b, 0, 0}, {t->d, 0, 0}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(w->net, args, 3);

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(t->queue, &d, &t->done));
	t->submitted++;
}

static uint64_t ended(const struct tenant *t)
{
	return hal_timeline_get_value(hal_queue_get_timeline(t->queue), NULL);
}

static void check(const struct world *w, struct tenant *t)
{
	uint8_t got[M * N];

	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(t->d, 0, got, sizeof(got)));
	for (uint32_t i = 0; i < sizeof(got); i++)
		if (got[i] != t->want[i])
			fail_msg("tenant %u: byte %u is 0x%02x, not 0x%02x",
				 (uint32_t)(t - w->tenant), i, got[i], t->want[i]);
}

/* How many jobs the first of a host's tenants is ahead of its last. */
static uint64_t spread(const struct world *w, uint32_t host)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = host; i < w->count; i += HOSTS) {
		uint64_t n = ended(&w->tenant[i]);

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	return most - least;
}

static void all_of_them(const char *target, uint32_t tenants)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct world w;
	uint64_t ahead = 0, looks = 0;

	open_world(&w, target, tenants);
	for (uint32_t n = 0; n < JOBS; n++)
		for (uint32_t i = 0; i < tenants; i++)
			submit(&w, &w.tenant[i]);
	do {
		assert_true(hal_device_poll(w.dev, 20000) >= 0);
		for (uint32_t h = 0; h < HOSTS; h++)
			ahead = spread(&w, h) > ahead ? spread(&w, h) : ahead;
		OK(hal_device_get_stats(w.dev, &s));
		looks++;
	} while (s.completed < JOBS * tenants && looks < 100000);
	for (uint32_t i = 0; i < tenants; i++) {
		assert_int_equal(ended(&w.tenant[i]), JOBS);
		check(&w, &w.tenant[i]);
	}
	OK(hal_device_get_stats(w.dev, &s));
	assert_int_equal(s.failed + s.dropped, 0);
	printf("%s: %u tenants, %llu jobs, at most %llu ahead, %llu ns\n", target,
	       tenants, (unsigned long long)s.completed, (unsigned long long)ahead,
	       (unsigned long long)s.now_ns);
	/* Turn by turn: two jobs of one while another waits for its first would be two.
	 */
	assert_int_equal(ahead, 1);
	assert_true(looks > 10);
	close_world(&w);
}

static void golden(void **state)
{
	(void)state;
	all_of_them("npu:0?model=" GOLDEN, 1028);
}

static void fast(void **state)
{
	(void)state;
	all_of_them("npu:0?model=" FAST, 1028);
}

/* Tenants come, go, and are stopped inside their networks at random. */
static void restless(const char *target, uint32_t tenants, uint32_t steps)
{
	struct world w;
	uint64_t saved;
	struct hal_stats s = HAL_INIT(hal_stats);
	bool *stopped = calloc(tenants, sizeof(*stopped));

	assert_non_null(stopped);
	open_world(&w, target, tenants);
	for (uint32_t n = 0; n < steps; n++) {
		uint32_t i = below(&w, tenants), what = below(&w, 100);
		struct tenant *t = &w.tenant[i];

		if (what < 50) {
			if (t->submitted - ended(t) < 4)
				submit(&w, t);
		} else if (what < 65) {
			if (!stopped[i]) {
				struct hal_point quiet;

				OK(hal_queue_suspend(t->queue, HAL_SUSPEND_FOLD, &quiet));
				OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
				stopped[i] = true;
			}
		} else if (what < 78) {
			if (stopped[i])
				OK(hal_queue_resume(t->queue));
			stopped[i] = false;
		} else if (what < 82 && i >= HOSTS && stopped[i]) {
			struct hal_partition_desc g = HAL_INIT(hal_partition_desc);

			/* With what it has begun and what it has not. */
			leave(t, true);
			*t = (struct tenant){0};
			g.host = w.host[i % HOSTS];
			g.memory_bytes = 32768;
			OK(hal_partition_create(w.dev, &g, &t->part));
			furnish(&w, t);
			stopped[i] = false;
		} else {
			assert_true(hal_device_poll(w.dev, below(&w, 1500)) >= 0);
		}
	}
	for (uint32_t i = 0; i < tenants; i++)
		if (stopped[i])
			OK(hal_queue_resume(w.tenant[i].queue));
	for (uint32_t i = 0; i < tenants; i++)
		if (w.tenant[i].submitted)
			check(&w, &w.tenant[i]);
	OK(hal_device_get_stats(w.dev, &s));
	saved = s.saved_bytes;
	printf("%s: %u tenants, %llu jobs, %llu stood inside an operation\n", target,
	       tenants, (unsigned long long)s.completed, (unsigned long long)saved / 32);
	assert_int_equal(s.failed, 0);
	close_world(&w);
	free(stopped);
}

static void restless_golden(void **state)
{
	(void)state;
	restless("npu:0?model=" GOLDEN, 40, 6000);
}

static void restless_fast(void **state)
{
	(void)state;
	restless("npu:0?model=" FAST "&memory=ideal", 24, 3000);
}

/* Two whose translations the TLB has under the same number, in turn.  The models in C
 * look into page tables, so only the RTL can go wrong. */
static void same_number(void **state)
{
	struct hal_device *dev;
	struct world w;
	int rc = getenv("LD_PRELOAD") ? -ENODEV : hal_open("npu:0", NULL, &dev);

	(void)state;
	if (rc == -ENODEV)
		skip();
	OK(rc);
	OK(hal_close(dev));
	open_world(&w, "npu:0", HOSTS + NPU_CONTEXTS + 2);
	for (uint32_t n = 0; n < 3; n++) {
		struct tenant *a = &w.tenant[HOSTS + 1];
		struct tenant *b = &w.tenant[HOSTS + 1 + NPU_CONTEXTS];

		submit(&w, a);
		submit(&w, b);
		check(&w, a);
		check(&w, b);
	}
	close_world(&w);
}

/* As many as there are numbers, and one more. */
static void full(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part[NPU_GUESTS], *host, *more;
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_device *dev;

	(void)state;
	OK(hal_open("npu:0?model=" GOLDEN "&memory_size=256M&granule=4096", NULL, &dev));
	OK(hal_device_get_info(dev, &info));
	assert_int_equal(info.guests_max, NPU_GUESTS);
	d.rows = d.cols = 1;
	OK(hal_partition_create(dev, &d, &host));
	d.rows = d.cols = 0;
	d.host = host;
	d.memory_bytes = 4096;
	for (uint32_t i = 0; i < NPU_GUESTS; i++)
		OK(hal_partition_create(dev, &d, &part[i]));
	assert_int_equal(hal_partition_create(dev, &d, &more), -ENOSPC);
	assert_non_null(strstr(hal_last_error(), "guests"));
	OK(hal_partition_destroy(part[77]));
	OK(hal_partition_create(dev, &d, &part[77]));
	for (uint32_t i = 0; i < NPU_GUESTS; i++)
		OK(hal_partition_destroy(part[i]));
	OK(hal_partition_destroy(host));
	OK(hal_close(dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),          cmocka_unit_test(fast),
		cmocka_unit_test(restless_golden), cmocka_unit_test(restless_fast),
		cmocka_unit_test(same_number),     cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
