/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units from the kernel driver's topology, held against what that driver does with a mask
 * (tests/fakes/rocm/kfd.c): each unit has as many CUs in each engine or XCC, no two have
 * one in common, no pair is split, no XCC is left without a bit; and on the stand-in,
 * where kernels ran.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"
#include "tests/fakes/rocm/kfd.h"

static const struct hal_backend *b;
static uint32_t passed;

static void bus_of(uint32_t gpu, char text[32])
{
	snprintf(text, 32, "0000:%02x:00.0", ROCM_STAND_IN_BUS + gpu);
}

static struct rocm_topology read_it(uint32_t gpu)
{
	struct rocm_topology t;
	char bus[32];

	bus_of(gpu, bus);
	if (rocm_topology_read(TOPOLOGY, bus, &t))
		fail_msg("%s", host_text);
	return t;
}

/* The files are what the stand-in's devices are. */
static void files(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < KFD_GPUS; i++) {
		const struct kfd_gpu *g = &kfd_gpus[i];
		const struct rocm_topology t = read_it(i);
		char text[1024], got[1024] = "", path[512];
		FILE *f;

		kfd_properties(g, ROCM_STAND_IN_BUS + i, text, sizeof(text));
		snprintf(path, sizeof(path), "%s/%u/properties", TOPOLOGY, i + 1);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_true(fread(got, 1, sizeof(got) - 1, f) > 0);
		fclose(f);
		assert_string_equal(text, got);
		assert_int_equal(t.cus, kfd_cus(g));
		assert_int_equal(t.xccs, g->xccs);
		assert_int_equal(t.arrays, g->arrays);
		assert_int_equal(t.target, g->target);
		if (g->xccs == 1)
			assert_int_equal(t.engines, g->engines);
	}
}

/* How many CUs are on in each engine, or XCC; -1: not as many in all. */
static int32_t in_each(const struct kfd_gpu *g, const bool *on)
{
	uint32_t count[64] = {0}, i;
	const uint32_t all = g->xccs > 1 ? g->xccs : g->engines;

	for (i = 0; i < kfd_cus(g); i++) {
		const struct kfd_place p = kfd_place(g, i);

		count[g->xccs > 1 ? p.xcc : p.engine] += on[i];
	}
	for (i = 1; i < all; i++)
		if (count[i] != count[0])
			return -1;
	return (int32_t)count[0];
}

/* As CUs: a bit of HIP's is a pair there. */
static void widen(uint32_t mask[ROCM_MASK_WORDS])
{
	uint32_t wide[ROCM_MASK_WORDS] = {0}, i;

	for (i = 0; i < 16 * ROCM_MASK_WORDS; i++)
		if (mask[i / 32] >> i % 32 & 1)
			wide[i / 16] |= 3u << 2 * (i % 16);
	memcpy(mask, wide, sizeof(wide));
}

static void hold_units(uint32_t gpu, uint32_t multiprocessors, bool single, bool pairs)
{
	const struct kfd_gpu *g = &kfd_gpus[gpu];
	const struct rocm_topology t = read_it(gpu);
	bool on[KFD_CUS_MAX], taken[KFD_CUS_MAX] = {false};
	uint32_t mask[ROCM_MASK_WORDS], i, u, all = 0;
	struct rocm_units units;

	assert_int_equal(rocm_topology_units(&t, multiprocessors, single, &units), 0);
	for (u = 0; u < units.count; u++) {
		uint32_t count = 0;

		rocm_topology_mask(&units, u, 1, mask);
		if (pairs)
			widen(mask);
		assert_true(kfd_apply(g, mask, kfd_cus(g), on));
		for (i = 0; i < kfd_cus(g); i++) {
			assert_false(on[i] && taken[i]);
			taken[i] |= on[i];
			count += on[i];
			/* Waves run on both of a pair. */
			if (g->pairs)
				assert_true(on[i] == on[i ^ 1]);
		}
		assert_true(count > 0);
		all += count;
		/* Engines of the MI210 are not all as large: those that are short drop
		 * out of the last unit. */
		if (!single && !(gpu == 1 && u + 1 == units.count))
			assert_true(in_each(g, on) > 0);
	}
	/* Of a device of pairs, where a bit is a CU, half: which it is HIP does not say.
	 */
	assert_int_equal(all, g->pairs && !pairs ? kfd_cus(g) / 2 : kfd_cus(g));
}

static void engines(void **state)
{
	static const uint32_t counts[KFD_GPUS] = {15, 13, 38, 4};
	uint32_t i;

	(void)state;
	for (i = 0; i < KFD_GPUS; i++) {
		const struct rocm_topology t = read_it(i);
		const uint32_t mps = t.cus / (kfd_gpus[i].pairs ? 2 : 1);
		struct rocm_units u;

		assert_int_equal(rocm_topology_units(&t, mps, false, &u), 0);
		assert_int_equal(u.count, counts[i]);
		hold_units(i, mps, false, false);
		if (kfd_gpus[i].pairs)
			hold_units(i, mps, false, true);
		passed++;
	}
}

static void single(void **state)
{
	const struct rocm_topology mi300 = read_it(2);
	struct rocm_units u;

	(void)state;
	hold_units(0, 60, true, false);
	hold_units(1, 104, true, false);
	hold_units(3, 48, true, false);
	hold_units(3, 48, true, true);
	assert_int_equal(rocm_topology_units(&mi300, 304, true, &u), -ENOTSUP);
	assert_non_null(strstr(host_text, "8 XCCs"));
}

/* ---- what is not understood -------------------------------------------------------- */

static void says(const char *properties, const char *bus, int want, const char *why)
{
	char dir[] = "/tmp/rocm_topology_XXXXXX", path[64];
	struct rocm_topology t;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/0", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/0/properties", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(properties, f);
	fclose(f);
	assert_int_equal(rocm_topology_read(dir, bus, &t), want);
	if (why && !strstr(host_text, why))
		fail_msg("%s, not %s", host_text, why);
	unlink(path);
	snprintf(path, sizeof(path), "%s/0", dir);
	rmdir(path);
	rmdir(dir);
}

static void odd_files(void **state)
{
	struct rocm_topology t;

	(void)state;
#define GOOD                                                                             \
	"location_id 256\nsimd_count 16\nsimd_per_cu 4\narray_count 2\n"                 \
	"simd_arrays_per_engine 1\n"
	says(GOOD, "0000:01:00.0", 0, NULL);
	says(GOOD, "0000:02:00.0", -ENODEV, "no topology node for device 0000:02:00.0");
	says(GOOD "domain 1\n", "0000:01:00.0", -ENODEV, "no topology node");
	says(GOOD, "card 1", -ENOTSUP, "'card 1' is not a PCI address");
	says(GOOD "simd_per_cu 0\n", "0000:01:00.0", -ENOTSUP, "simd_per_cu is 0");
	says(GOOD "simd_per_cu 5\n", "0000:01:00.0", -ENOTSUP, "simd_per_cu is 5");
	says(GOOD "simd_count 4096\n", "0000:01:00.0", -ENOTSUP, "too many SIMDs: 4096");
	says(GOOD "array_count 0\n", "0000:01:00.0", -ENOTSUP, "array_count is 0");
	says(GOOD "simd_arrays_per_engine 4\n", "0000:01:00.0", -ENOTSUP,
	     "array_count is 2");
	says(GOOD "num_xcc 65\n", "0000:01:00.0", -ENOTSUP, "num_xcc is 65");
	says("", "0000:01:00.0", -ENODEV, "no topology node");
	assert_int_equal(rocm_topology_read("/nowhere", "0000:01:00.0", &t), -ENODEV);
}

/* Two nodes of one address, as a device in several parts shows them. */
static void twice(void **state)
{
	char dir[] = "/tmp/rocm_topology_XXXXXX", path[64];
	struct rocm_topology t;
	uint32_t i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%u", dir, i);
		assert_int_equal(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "%s/%u/properties", dir, i);
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(GOOD, f);
		fclose(f);
	}
	assert_int_equal(rocm_topology_read(dir, "0000:01:00.0", &t), -ENOTSUP);
	assert_non_null(
		strstr(host_text, "2 topology nodes have the address 0000:01:00.0"));
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%u/properties", dir, i);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		rmdir(path);
	}
	rmdir(dir);
}

/* ---- where kernels run ------------------------------------------------------------- */

#define BLOCKS 1024u

static void ran_on(uint32_t gpu, uint32_t col, uint32_t units, bool on[KFD_CUS_MAX])
{
	static const char *const names[] = {"hal_sm:m"};
	const struct hal_bk_config cfg = {.clock = 1, .partitions = ROCM_ENGINES};
	const struct hal_bk_partition_desc desc = {
		.col = (uint16_t)col, .units = units, .rows = 1, .cols = (uint16_t)units};
	void *dev, *part, *prog, *queue, *mem, *kernel, *image;
	uint32_t ids[BLOCKS], i;
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	struct hal_bk_arg arg;
	const char *text = "";
	size_t size;

	stand_in()->reset();
	if (b->cold.open(&cfg, gpu, &dev))
		fail_msg("%s", host_text);
	image = make_rocm_image(names, 1, 1, &size);
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	if (b->cold.program_load(dev, image, size, &prog))
		fail_msg("%s", host_text);
	free(image);
	assert_int_equal(b->cold.kernel_get(dev, prog, 0, &info, &kernel), 0);
	assert_int_equal(b->cold.mem_alloc(dev, part, sizeof(ids), NULL, 0, &mem), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	arg = (struct hal_bk_arg){mem, 0, sizeof(ids)};
	cmd.launch.kernel = kernel;
	cmd.launch.args = &arg;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = BLOCKS;
	cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(dev, mem, 0, ids, sizeof(ids)), 0);
	memset(on, 0, KFD_CUS_MAX * sizeof(*on));
	for (i = 0; i < BLOCKS; i++) {
		assert_in_range(ids[i], 1, kfd_cus(&kfd_gpus[gpu]));
		on[ids[i] - 1] = true;
	}
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.mem_free(dev, mem), 0);
	assert_int_equal(b->cold.program_unload(dev, prog), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

static void places(void **state)
{
	static const struct {
		uint32_t gpu, col, units, cus;
	} all[] = {{0, 0, 1, 4}, {0, 14, 1, 4},  {0, 3, 7, 28},   {1, 2, 4, 32},
		   {2, 0, 1, 8}, {2, 30, 8, 64}, {2, 0, 38, 304}, {3, 1, 2, 24}};
	bool on[KFD_CUS_MAX], other[KFD_CUS_MAX];
	uint32_t i, k, n;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct kfd_gpu *g = &kfd_gpus[all[i].gpu];

		ran_on(all[i].gpu, all[i].col, all[i].units, on);
		for (k = n = 0; k < kfd_cus(g); k++)
			n += on[k];
		assert_int_equal(n, all[i].cus);
		assert_true(in_each(g, on) > 0);
	}
	/* The same partition where a bit is a pair; nothing of it is another's. */
	assert_int_equal(setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1), 0);
	ran_on(3, 1, 2, on);
	ran_on(3, 3, 1, other);
	for (k = n = 0; k < 96; k++) {
		assert_false(on[k] && other[k]);
		n += on[k];
	}
	assert_int_equal(n, 48);
	assert_int_equal(unsetenv("HAL_STAND_IN_HIP_VERSION"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),  cmocka_unit_test(engines),
		cmocka_unit_test(single), cmocka_unit_test(odd_files),
		cmocka_unit_test(twice),  cmocka_unit_test(places),
	};
	int rc;

	b = hal_backend_rocm(&host);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	printf("figure kfd.topologies.passed %u\n", passed);
	return rc;
}
