/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in of HSA's runtime does with masks of compute units, and priorities;
 * see test_hsa_stand_in.c. */
#define _GNU_SOURCE
#include "hsa_kit.h"

/* ---- masks ------------------------------------------------------------------------- */

static void mask_sizes(void **state)
{
	const uint32_t all[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	const uint32_t some[2] = {0x0f0f0f0f, 0};
	uint32_t got[4];
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_queue_cu_set_mask, k.queue, 33, all);
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_queue_cu_get_mask, k.queue, 0, got);
	/* Nothing is said of what is longer than the device: 60 CUs. */
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 128, all);
	IS(0, hsa_amd_queue_cu_get_mask, k.queue, 128, got);
	assert_int_equal(got[0], UINT32_MAX);
	assert_int_equal(got[1], 0x0fffffff);
	assert_int_equal(got[2], 0);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, some);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 0, NULL);
	IS(0, hsa_amd_queue_cu_get_mask, k.queue, 64, got);
	assert_int_equal(got[1], 0x0fffffff);
	setenv("HSA_CU_MASK", "0:0-7", 1);
	IS(HSAR_CU_MASK_REDUCED, hsa_amd_queue_cu_set_mask, k.queue, 64, some);
	IS(0, hsa_amd_queue_cu_get_mask, k.queue, 64, got);
	assert_int_equal(got[0], 0x0f);
	unsetenv("HSA_CU_MASK");
	close_well(&k);
}

/* Half a pair is taken by old releases, and refused by later ones. */
static void half_a_pair(void **state)
{
	const uint32_t half[3] = {0x1, 0, 0};
	struct kit k;

	(void)state;
	open_kit(&k, 3, WORK);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 96, half);
	setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1);
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_queue_cu_set_mask, k.queue, 96, half);
	unsetenv("HAL_STAND_IN_HIP_VERSION");
	close_kit(&k);
}

/* No unit: nothing runs, and nothing is said. */
static void no_unit(void **state)
{
	const uint32_t none[2] = {0, 0};
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, none);
	p = packet(&k, 1);
	give(&k, &p);
	rules_run_for(1000000);
	assert_int_equal(value(&k), 1);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 0, NULL);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	close_well(&k);
}

/* Of the unit of each of so many blocks, those that are CUs of the mask's. */
static uint32_t on_mask(struct kit *k, uint32_t blocks, uint32_t gpu,
			const uint32_t *mask, uint32_t bits)
{
	uint32_t ids[512], i, n = 0;
	bool on[KFD_CUS_MAX];
	void *pinned, *stream;

	assert_true(kfd_apply(&kfd_gpus[gpu], mask, bits, on));
	HIP_IS(0, hipHostMalloc, &pinned, sizeof(ids),
	       HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT);
	HIP_IS(0, hipStreamCreateWithPriority, &stream, HIP_STREAM_NON_BLOCKING, 0);
	HIP_IS(0, hipMemcpyAsync, pinned, k->mem, 4 * (size_t)blocks, HIP_COPY_DEFAULT,
	       stream);
	rules_run_for(100000);
	memcpy(ids, pinned, 4 * (size_t)blocks);
	HIP_IS(0, hipStreamDestroy, stream);
	HIP_IS(0, hipHostFree, pinned);
	for (i = 0; i < blocks; i++)
		n += on[ids[i] - 1];
	return n;
}

/* A mask that changes while a kernel runs: what runs moves, what follows is there. */
static void live_mask(void **state)
{
	const uint32_t left[2] = {0x0000000f, 0}, right[2] = {0, 0x00000f00};
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WHERE);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, left);
	hide(&k, 1, 400);
	p = packet(&k, 400); /* 2 us each, on 4 units */
	give(&k, &p);
	rules_run_for(3000); /* they run, none has ended */
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, right);
	rules_run_for(1000000);
	assert_int_equal(value(&k), 0);
	assert_int_equal(on_mask(&k, 400, 0, right, 60), 400);
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, left);
	give(&k, &p);
	rules_run_for(100000);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 64, right);
	rules_run_for(1000000);
	assert_in_range(on_mask(&k, 400, 0, left, 60), 100, 300);
	assert_int_equal(on_mask(&k, 400, 0, left, 60) + on_mask(&k, 400, 0, right, 60),
			 400);
	close_well(&k);
}

/* An XCC without a bit runs on all it has. */
static void open_xccs(void **state)
{
	const uint32_t one[10] = {0x1};
	bool on[KFD_CUS_MAX];
	uint32_t i, n = 0;
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 2, WHERE);
	IS(0, hsa_amd_queue_cu_set_mask, k.queue, 320, one);
	hide(&k, 1, 400);
	p = packet(&k, 400);
	give(&k, &p);
	rules_run_for(1000000);
	assert_true(kfd_apply(&kfd_gpus[2], one, 304, on));
	for (i = 0; i < KFD_CUS_MAX; i++)
		n += on[i];
	assert_true(n > 200);
	assert_int_equal(on_mask(&k, 400, 2, one, 304), 400);
	close_well(&k);
}

/* Better ones go first. */
static void priority(void **state)
{
	struct gpu_stand_in_job jobs[2];
	struct kit low, high;
	struct hsa_packet p;

	(void)state;
	open_kit(&low, 0, WORK);
	open_kit(&high, 0, WORK);
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_queue_set_priority, low.queue, 3);
	IS(0, hsa_amd_queue_set_priority, low.queue, 0);
	IS(0, hsa_amd_queue_set_priority, high.queue, 2);
	hide(&low, 2, 60);
	hide(&high, 2, 60);
	p = packet(&low, 60);
	give(&low, &p);
	p = packet(&high, 60);
	give(&high, &p);
	rules_run_for(1000000);
	assert_int_equal(s->jobs(jobs, 2), 2);
	assert_int_equal(jobs[0].priority, -1);
	close_kit(&low);
	close_kit(&high);
	all_is_well();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(mask_sizes), RULE(half_a_pair), RULE(no_unit),
		RULE(live_mask),  RULE(open_xccs),   RULE(priority),
	};

	if (load_libraries() || hsa.hsa_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
