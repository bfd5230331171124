/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that are masks at launch, or in streams: each version of launch descriptors,
 * bit by bit; which bit is which multiprocessor; where kernels run; a driver that does
 * not call back, or does not do what the mask says. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"
#include "backends/cuda/qmd.h"

#define BLOCKS 256u

static const struct hal_backend *b;
static struct hal_bk_config cfg = {.clock = 1, .partitions = CU_WAY_MASK};
static uint32_t passed;

/* ---- descriptors ------------------------------------------------------------------------- */

/* As the class headers have them, by bits: where bit i of a mask is. */
static uint32_t place(uint32_t version, bool ada, uint32_t i)
{
	if (version >= 0x50)
		return 280 * 8 + i;
	if (version >= 0x40)
		return 304 * 8 + i;
	if (ada && i >= 70)
		return 379 + i - 70;
	if (ada && i >= 64)
		return 372 + i - 64;
	return 84 * 8 + i;
}

static void set_bit(uint8_t *q, uint32_t at)
{
	q[at / 8] = (uint8_t)(q[at / 8] | 1u << at % 8);
}

static void fresh(uint8_t *q, uint32_t version, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < CU_QMD_BYTES; i++)
		q[i] = (uint8_t)(((i + seed) * 2654435761u) >> 13);
	q[72] = version >= 0x50 ? 0 : (uint8_t)version;
	if (version >= 0x50)
		q[58] = (uint8_t)version;
}

static void versions(void **state)
{
	static const struct {
		uint32_t version;
		int major, minor;
		uint32_t bits;
	} all[] = {
		{0x06, 3, 0, 0},    {0x16, 5, 0, 64},   {0x17, 6, 1, 64},
		{0x20, 6, 0, 64},   {0x21, 7, 0, 64},   {0x22, 7, 5, 64},
		{0x23, 8, 0, 64},   {0x24, 8, 9, 64},   {0x30, 8, 6, 64},
		{0x30, 8, 9, 72},   {0x30, 9, 0, 64},   {0x40, 9, 0, 128},
		{0x41, 10, 0, 128}, {0x50, 10, 0, 128}, {0x51, 12, 0, 128},
		{0x60, 13, 0, 0},
	};
	uint8_t was[CU_QMD_BYTES], q[CU_QMD_BYTES], want[CU_QMD_BYTES];
	uint32_t v, i, k;

	(void)state;
	for (v = 0; v < sizeof(all) / sizeof(all[0]); v++) {
		const uint32_t version = all[v].version;
		const bool ada = all[v].bits == 72;
		const uint32_t valid = version >= 0x50 ? 159 : 31;

		assert_int_equal(cu_qmd_bits(version, all[v].major, all[v].minor),
				 all[v].bits);
		for (i = 0; i < 128; i++) {
			uint32_t mask[4] = {0};

			/* The driver's own mask is there already, in half of the cases.
			 */
			fresh(was, version, i);
			if (version >= 0x40)
				was[valid / 8] = (uint8_t)((was[valid / 8] & 0x7f) |
							   (i & 1 ? 0x80 : 0));
			memcpy(q, was, sizeof(q));
			assert_int_equal(cu_qmd_version(q, all[v].major), version);
			assert_int_equal(
				cu_qmd_disable(q, all[v].major, all[v].minor, mask),
				all[v].bits != 0);
			assert_memory_equal(q, was, sizeof(q)); /* an empty mask */
			mask[i / 32] = 1u << i % 32;
			assert_int_equal(
				cu_qmd_disable(q, all[v].major, all[v].minor, mask),
				i < all[v].bits);
			memcpy(want, was, sizeof(want));
			if (i < all[v].bits) {
				if (version >= 0x40 && !(i & 1))
					for (k = 0; k < 16; k++)
						want[place(version, ada, 0) / 8 + k] = 0;
				set_bit(want, place(version, ada, i));
				if (version >= 0x40)
					set_bit(want, valid);
			}
			assert_memory_equal(q, want, sizeof(q));
		}
		passed++;
	}
}

/* ---- where kernels run ------------------------------------------------------------------- */

static struct hal_bk_partition_desc line(uint32_t col, uint32_t units)
{
	return (struct hal_bk_partition_desc){
		.col = (uint16_t)col, .units = units, .rows = 1, .cols = (uint16_t)units};
}

static void clean(void)
{
	const char *text = "";

	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

struct rig {
	void *dev, *part, *prog, *queue;
	struct hal_bk_cmd cmd;
	struct hal_bk_arg arg;
};

static void begin(struct rig *r, uint32_t index, uint32_t col, uint32_t units)
{
	static const char *const names[] = {"hal_sm:m"};
	const struct hal_bk_partition_desc desc = line(col, units);
	struct hal_bk_kernel_info info;
	size_t size;
	void *image = make_cuda_image(names, 1, 1, &size);

	memset(r, 0, sizeof(*r));
	stand_in()->reset();
	if (b->cold.open(&cfg, index, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	assert_int_equal(b->cold.program_load(r->dev, image, size, &r->prog), 0);
	assert_int_equal(
		b->cold.kernel_get(r->dev, r->prog, 0, &info, &r->cmd.launch.kernel), 0);
	assert_int_equal(
		b->cold.mem_alloc(r->dev, r->part, 8 * BLOCKS, NULL, 0, &r->arg.mem), 0);
	assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, &r->queue), 0);
	free(image);
	r->arg.bytes = 4 * BLOCKS;
	r->cmd.op = HAL_OP_LAUNCH;
	r->cmd.launch.args = &r->arg;
	r->cmd.launch.arg_count = 1;
	r->cmd.launch.groups[0] = BLOCKS;
	r->cmd.launch.groups[1] = r->cmd.launch.groups[2] = 1;
}

static void end(struct rig *r)
{
	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->arg.mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	clean();
}

static void ran_on(struct rig *r, uint32_t least, uint32_t most)
{
	uint32_t ids[BLOCKS], i, seen = 0;
	bool was[UINT16_MAX] = {false};
	struct hal_bk_event ev;

	assert_int_equal(b->hot.submit(r->dev, r->queue, &r->cmd), 0);
	assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(r->dev, r->arg.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < BLOCKS; i++) {
		assert_in_range(ids[i] - 1, least, most);
		seen += !was[ids[i]];
		was[ids[i]] = true;
	}
	assert_int_equal(seen, most - least + 1);
}

/* Every unit alone, and some together, whatever the order of the bits. */
static void places(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 66; i += 5) {
		begin(&r, 0, i, 1);
		ran_on(&r, 2 * i, 2 * i + 1);
		end(&r);
	}
	begin(&r, 0, 7, 30);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.unit_cols, 66);
	ran_on(&r, 14, 73);
	end(&r);
	begin(&r, 1, 20, 3);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.unit_cols, 23);
	ran_on(&r, 40, 45);
	end(&r);
}

/* The same on the stand-in with descriptors of each version. */
static void each_version(void **state)
{
	static const char *const small[] = {"0x16", "0x17", "0x20", "0x21",
					    "0x22", "0x23", "0x24", "0x30"};
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		assert_int_equal(setenv("HAL_STAND_IN_CUDA_QMD", small[i], 1), 0);
		begin(&r, 1, 3, 2);
		ran_on(&r, 6, 9);
		end(&r);
	}
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_QMD", "0x41", 1), 0);
	begin(&r, 0, 3, 2);
	ran_on(&r, 6, 9);
	end(&r);
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_QMD"), 0);
}

/* A launch that the device has stays where it is, the next one is where the partition
 * went; quiet is when the first has ended. */
static void moves(void **state)
{
	const struct hal_bk_partition_desc to = line(40, 2), bad = line(66, 1);
	struct hal_bk_arg second;
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	uint32_t ids[2 * BLOCKS], i;
	struct rig r;

	(void)state;
	begin(&r, 0, 10, 3);
	assert_int_equal(b->hot.resize(r.dev, r.part, &bad, 7), -EINVAL);
	r.cmd.cookie = 1;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &r.cmd), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 8), -EBUSY);
	assert_int_equal(b->cold.partition_destroy(r.dev, r.part), -EBUSY);
	second = r.arg;
	second.value = 4 * BLOCKS;
	cmd = r.cmd;
	cmd.cookie = 2;
	cmd.launch.args = &second;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].kind, HAL_BK_DONE);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	assert_int_equal(ev[1].cookie, 7);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(b->cold.mem_read(r.dev, r.arg.mem, 0, ids, sizeof(ids)), 0);
	for (i = 0; i < BLOCKS; i++) {
		assert_in_range(ids[i] - 1, 20, 25);
		assert_in_range(ids[BLOCKS + i] - 1, 80, 83);
	}
	/* With nothing in flight at once; and lost with commands that it waits for. */
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 9), 0);
	assert_int_equal(b->hot.next(r.dev), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].cookie, 9);
	assert_int_equal(b->hot.next(r.dev), UINT64_MAX);
	end(&r);
}

/* ---- who does not keep to it ------------------------------------------------------------- */

static void refused(const char *why)
{
	void *dev;

	assert_int_equal(b->cold.open(&cfg, 0, &dev), -ENOTSUP);
	if (!strstr(host_text, why))
		fail_msg("%s, not %s", host_text, why);
	clean();
	stand_in()->reset();
}

static void tried_out(void **state)
{
	void *kept;
	struct rig r;

	(void)state;
	begin(&r, 0, 0, 1); /* loaded */
	end(&r);
	stand_in()->no_callback(1);
	refused("the driver did not call back at launches");
	stand_in()->green_leaks(1);
	refused("132 multiprocessors could not be masked");
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_QMD", "0x06", 1), 0);
	refused("its launch descriptors are unknown");
	assert_int_equal(setenv("HAL_STAND_IN_CUDA_QMD", "0x30", 1), 0);
	refused("its launch descriptors are unknown"); /* 72 places, 64 bits */
	assert_int_equal(unsetenv("HAL_STAND_IN_CUDA_QMD"), 0);
	memcpy(&kept, &cu.cuGetExportTable, sizeof(kept));
	cu.cuGetExportTable = NULL;
	refused("has no export tables");
	memcpy(&cu.cuGetExportTable, &kept, sizeof(kept));
}

/* As the driver does: no green contexts once somebody is called back. */
static void not_with_green(void **state)
{
	const struct hal_bk_config green = {.clock = 1, .partitions = CU_WAY_GREEN};
	void *mask, *other;

	(void)state;
	assert_int_equal(b->cold.open(&cfg, 0, &mask), 0);
	assert_int_equal(b->cold.open(&green, 0, &other), -ENOTSUP);
	assert_non_null(strstr(host_text, "in a process that has used partitions=mask"));
	b->cold.close(mask);
	assert_int_equal(b->cold.open(&green, 0, &other), -ENOTSUP);
	clean();
	stand_in()->reset(); /* else as in another process */
}

/* A launch that is not masked is the last one. */
static void lost_hook(void **state)
{
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	begin(&r, 0, 2, 1);
	ran_on(&r, 4, 5);
	stand_in()->no_callback(1);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &r.cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &r.cmd), -EIO);
	assert_non_null(strstr(host_text, "the driver ignored a mask"));
	end(&r);
}

/* ---- other cards ------------------------------------------------------------------------- */

static uint32_t card[3]; /* multiprocessors, of a unit of masks, of green contexts */

/* Each unit alone, and two together: on its own multiprocessors, all of them, and on no
 * others, wherever the part has places that do not work. */
static void card_masks(void **state)
{
	const uint32_t all = card[0], per = card[1];
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_bk_partition_desc to;
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i;

	(void)state;
	begin(&r, 0, all / per - 2, 2);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.unit_cols, all / per);
	ran_on(&r, all - 2 * per, all - 1);
	for (i = 0; i < all / per; i++) {
		to = line(i, 1);
		assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), 0);
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		ran_on(&r, per * i, per * i + per - 1);
	}
	end(&r);
}

static void card_green(void **state)
{
	const struct hal_bk_config green = {.clock = 1, .partitions = CU_WAY_GREEN};
	struct hal_device_info info = {.size = sizeof(info)};
	void *dev;

	(void)state;
	if (b->cold.open(&green, 0, &dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.get_info(dev, &info), 0);
	assert_int_equal(info.unit_cols, card[0] / card[2]);
	b->cold.close(dev);
	clean();
}

/* ---- masks in streams -------------------------------------------------------------------- */

static int in_streams(void **state)
{
	(void)state;
	cfg.partitions = CU_WAY_STREAM;
	return 0;
}

static int at_launch(void **state)
{
	(void)state;
	cfg.partitions = CU_WAY_MASK;
	unsetenv("HAL_STAND_IN_CUDA_STREAM");
	unsetenv("HAL_STAND_IN_CUDA_VERSION");
	return 0;
}

static void no_place(void **state)
{
	static const struct {
		const char *version;
		bool known;
	} all[] = {{"12040", true},  {"12050", true}, {"12060", true}, {"12080", true},
		   {"12090", false}, {"13000", true}, {"13010", false}};
	void *dev;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		setenv("HAL_STAND_IN_CUDA_VERSION", all[i].version, 1);
		assert_int_equal(b->cold.open(&cfg, 0, &dev),
				 all[i].known ? 0 : -ENOTSUP);
		if (all[i].known)
			b->cold.close(dev);
		else
			assert_non_null(strstr(host_text,
					       "stores a stream's mask; use "
					       "partitions=auto, mask or green"));
	}
	unsetenv("HAL_STAND_IN_CUDA_VERSION");
	setenv("HAL_STAND_IN_CUDA_STREAM", "ignored", 1);
	assert_int_equal(b->cold.open(&cfg, 0, &dev), -ENOTSUP);
	assert_non_null(strstr(host_text, "132 multiprocessors could not be masked"));
	clean();
}

/* Another driver has something else there: it is not touched. */
static void taken(void **state)
{
	struct hal_bk_partition_desc half = line(0, 8);
	void *dev, *part, *queue, *s, *inner;

	(void)state;
	assert_int_equal(b->cold.open(&cfg, 0, &dev), 0);
	assert_int_equal(b->cold.partition_create(dev, &half, &part), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	s = ((struct cu_queue *)queue)->stream;
	memcpy(&inner, s, sizeof(inner));
	assert_int_equal(
		cu_stream_mask_set(dev, s, ((struct cu_partition *)part)->mask, true),
		-ENOTSUP);
	assert_non_null(strstr(host_text, "unexpected data where its mask should be"));
	assert_int_equal(*(uint32_t *)((char *)inner + 0x51c), 1);
	assert_int_equal(*(uint32_t *)((char *)inner + 0x520), 0xffffff00);
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	clean();
}

/* A new stream, which the fake driver makes of the last old one, has no mask. */
static void no_mask_left(void)
{
	void *stream = NULL, *inner;
	uint32_t on;

	assert_int_equal(cu.cuStreamCreateWithPriority(&stream, 1, 0), 0);
	memcpy(&inner, stream, sizeof(inner));
	memcpy(&on, (char *)inner + 0x51c, sizeof(on));
	assert_int_equal(on, 0);
	assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
}

/* However a stream is given back, no mask is left in it: new streams are made of old ones
 * (by the driver, as it seems). */
static void left_clean(void **state)
{
	static const char *const calls[] = {"cuEventCreate", "cuMemHostAlloc",
					    "cuMemAlloc_v2", "cuLaunchKernel",
					    "cuStreamSynchronize"};
	const struct hal_bk_config stop = {
		.clock = 1, .partitions = CU_WAY_STREAM, .preempt = 1};
	struct hal_bk_partition_desc half = line(0, 8);
	struct cu_device *dev;
	void *part, *queue;
	uint32_t i, nth, failed = 0;
	bool last;
	int err;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (nth = 1, last = false; !last && nth < 150; nth++) {
			stand_in()->reset();
			stand_in()->break_call(calls[i], nth, CUR_OUT_OF_MEMORY);
			err = b->cold.open(&stop, 0, (void **)&dev);
			if (!err) {
				assert_int_equal(
					b->cold.partition_create(dev, &half, &part), 0);
				err = b->cold.queue_create(dev, part, 0, &queue);
				if (!err)
					assert_int_equal(
						b->cold.queue_destroy(dev, queue), 0);
				assert_int_equal(stand_in()->break_call(calls[i], 0, 0),
						 0);
				assert_int_equal(cu.cuCtxPushCurrent_v2(dev->context), 0);
				no_mask_left();
				assert_int_equal(cu.cuCtxPopCurrent_v2(&queue), 0);
				assert_int_equal(b->cold.partition_destroy(dev, part), 0);
				b->cold.close(dev);
			}
			last = !err;
			failed += err != 0;
			clean();
		}
	stand_in()->break_call("cuEventCreate", 0, 0);
	assert_true(failed > 100);
}

/* Green contexts before anything is masked: see not_with_green. */
static int on_card(char **numbers)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(card_green),
		cmocka_unit_test(card_masks),
		cmocka_unit_test_setup_teardown(card_masks, in_streams, at_launch),
	};
	uint32_t i;

	for (i = 0; i < 3; i++)
		card[i] = (uint32_t)strtoul(numbers[i], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_with_green),
		cmocka_unit_test(versions),
		cmocka_unit_test(places),
		cmocka_unit_test(each_version),
		cmocka_unit_test(tried_out),
		cmocka_unit_test(moves),

		cmocka_unit_test(lost_hook),

		cmocka_unit_test_setup_teardown(places, in_streams, at_launch),
		cmocka_unit_test_setup_teardown(moves, in_streams, at_launch),
		cmocka_unit_test_setup_teardown(no_place, in_streams, at_launch),
		cmocka_unit_test_setup_teardown(taken, in_streams, at_launch),
		cmocka_unit_test_setup_teardown(left_clean, in_streams, at_launch),
	};
	int rc;

	b = hal_backend_cuda(&host);
	if (argc == 4)
		return on_card(argv + 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	printf("figure qmd.versions.passed %u\n", passed);
	return rc;
}
