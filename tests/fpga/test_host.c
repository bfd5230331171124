/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queued copies between host memory and a card: in the queue's order, beside runs of
 * other queues, and not by the engine's thread.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/fpga/internal.h"

static const char text[] = "bank DDR[0] ddr4 0x0 16M\n"
			   "bank DDR[1] ddr4 0x100000000 16M\n"
			   "kernel work 4\narg d memory 4 0-1\narg ns ulong\n";
enum { BYTES = 40000 };

static const struct hal_backend *b;
static struct hal_bk_config driven = {.clock = 1, .inflight = 8}, paced = {.inflight = 8};

struct world {
	void *dev, *prog, *work, *part[2], *queue[2], *mem, *from;
	uint8_t *p; /* of .from */
	struct hal_bk_arg args[2];
};

static void sure(int err)
{
	if (err)
		fail_msg("%d: %s", err, host_text);
}

static void begin(struct world *w, const struct hal_bk_config *cfg)
{
	const struct hal_bk_colors colors = {.mask = 3};
	struct hal_bk_kernel_info info;
	void *image, *address;
	size_t size;
	uint32_t i;

	memset(w, 0, sizeof(*w));
	stand_in()->reset();
	sure(b->cold.open(cfg, 0, &w->dev));
	for (i = 0; i < 2; i++) {
		const struct hal_bk_partition_desc d = {.index = i,
							.units = 1,
							.col = (uint16_t)i,
							.rows = 1,
							.cols = 1,
							.color_mask = 3};

		sure(b->cold.partition_create(w->dev, &d, &w->part[i]));
		sure(b->cold.queue_create(w->dev, w->part[i], 0, &w->queue[i]));
	}
	image = make_image(text, &size);
	sure(b->cold.program_load(w->dev, image, size, &w->prog));
	free(image);
	sure(b->cold.kernel_get(w->dev, w->prog, 0, &info, &w->work));
	sure(b->cold.mem_alloc(w->dev, w->part[0], BYTES, &colors, 0, &w->mem));
	sure(b->cold.mem_alloc(w->dev, w->part[0], BYTES, &colors, HAL_BK_MEM_HOST,
			       &w->from));
	sure(b->cold.mem_map(w->dev, w->from, &address));
	w->p = address;
}

static void end(struct world *w)
{
	const char *misuse = "";
	uint32_t i;

	for (i = 0; i < 2; i++)
		sure(b->cold.queue_destroy(w->dev, w->queue[i]));
	sure(b->cold.mem_free(w->dev, w->mem));
	sure(b->cold.mem_free(w->dev, w->from));
	for (i = 0; i < 2; i++)
		sure(b->cold.partition_destroy(w->dev, w->part[i]));
	sure(b->cold.program_unload(w->dev, w->prog));
	b->cold.close(w->dev);
	if (stand_in()->misuse(&misuse))
		fail_msg("misused: %s", misuse);
	assert_int_equal(stand_in()->live(), 0);
}

static void launch(struct world *w, uint32_t queue, uint64_t ns, uint64_t cookie)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};

	w->args[0] = (struct hal_bk_arg){.mem = w->mem, .bytes = 4};
	w->args[1] = (struct hal_bk_arg){.value = ns};
	cmd.launch.kernel = w->work;
	cmd.launch.args = w->args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	sure(b->hot.submit(w->dev, w->queue[queue], &cmd));
}

static void copy(struct world *w, uint32_t queue, void *dst, uint64_t to, void *src,
		 uint64_t from, uint64_t bytes, uint64_t cookie)
{
	const struct hal_bk_cmd cmd = {
		.op = HAL_OP_COPY, .cookie = cookie, .copy = {dst, src, to, from, bytes}};

	sure(b->hot.submit(w->dev, w->queue[queue], &cmd));
}

static struct hal_bk_event next(struct world *w)
{
	struct hal_bk_event e;
	int n;

	do
		n = b->hot.poll(w->dev, UINT64_MAX - 1, &e, 1);
	while (!n);
	if (n != 1)
		fail_msg("poll: %d: %s", n, host_text);
	return e;
}

static void end_in_order(struct world *w, uint64_t first, uint64_t last)
{
	b->hot.doorbell(w->dev);
	for (; first <= last; first++) {
		const struct hal_bk_event e = next(w);

		assert_int_equal(e.status, 0);
		assert_int_equal(e.cookie, first);
	}
}

/* It is zeros, in no bank, and the only memory that has an address for the host. */
static void memory_is(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct world w;
	uint64_t before;
	uint32_t i;
	void *p;

	(void)state;
	begin(&w, &driven);
	assert_int_equal(b->cold.get_info(w.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_true(info.caps & HAL_CAP_HOST_REGISTER);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(w.p[i], 0);
	before = info.memory_free;
	assert_int_equal(b->cold.mem_map(w.dev, w.mem, &p), -ENOTSUP);
	assert_non_null(strstr(host_text, "cannot be mapped"));
	sure(b->cold.mem_free(w.dev, w.from));
	assert_int_equal(b->cold.get_info(w.dev, &info), 0);
	assert_int_equal(info.memory_free, before);
	sure(b->cold.mem_alloc(w.dev, w.part[0], 1, NULL, HAL_BK_MEM_HOST, &w.from));
	end(&w);
}

static void in_order(void **state)
{
	static uint8_t own[64];
	struct world w;
	uint32_t *word, i;
	void *mine;

	(void)state;
	for (i = 0; i < 2; i++) {
		begin(&w, i ? &driven : &paced);
		sure(b->cold.mem_register(w.dev, w.part[0], own + 1, 63, &mine));
		word = (uint32_t *)(void *)w.p;
		word[0] = 100;
		word[1] = 7;
		copy(&w, 0, w.mem, 0, w.from, 0, 4, 1);
		launch(&w, 0, 100000, 2);
		copy(&w, 0, w.from, 8, w.mem, 0, 4, 3);
		copy(&w, 0, w.mem, 64, w.mem, 0, 4, 4);
		copy(&w, 0, w.mem, 0, w.from, 4, 4, 5);
		launch(&w, 0, 1000, 6);
		copy(&w, 0, mine, 3, w.mem, 0, 4, 7);
		copy(&w, 0, w.from, 12, w.mem, 64, 4, 8);
		end_in_order(&w, 1, 8);
		assert_int_equal(word[2], 101);
		assert_int_equal(*(uint32_t *)(void *)(own + 4), 8);
		assert_int_equal(word[3], 101);
		sure(b->cold.mem_free(w.dev, mine));
		end(&w);
	}
}

/* What the host has changed meanwhile is not what the card has. */
static void only_its_bytes(void **state)
{
	struct world w;
	uint32_t i;

	(void)state;
	begin(&w, &driven);
	for (i = 0; i < BYTES; i++)
		w.p[i] = (uint8_t)(i * 3);
	copy(&w, 0, w.mem, 0, w.from, 0, BYTES, 1);
	end_in_order(&w, 1, 1);
	memset(w.p, 0x55, BYTES);
	copy(&w, 0, w.from, 101, w.mem, 7, 300, 2);
	end_in_order(&w, 2, 2);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(w.p[i], i < 101 || i >= 401
						 ? 0x55
						 : (uint8_t)((i - 101 + 7) * 3));
	end(&w);
}

/* Copies of a queue go on while a run of another has its slot: time that they take is
 * none of the run's. */
static void beside_runs(void **state)
{
	struct fpga_stand_in_job job;
	struct hal_bk_event e[2];
	struct world w;

	(void)state;
	begin(&w, &driven);
	launch(&w, 1, 1000, 1); /* the configuration is there */
	end_in_order(&w, 1, 1);
	while (stand_in()->jobs(&job, 1))
		;
	launch(&w, 1, 1000000, 2);
	copy(&w, 0, w.mem, 64, w.from, 0, BYTES - 64, 3);
	b->hot.doorbell(w.dev);
	e[0] = next(&w);
	e[1] = next(&w);
	assert_int_equal(e[0].cookie, 3);
	assert_int_equal(e[1].cookie, 2);
	assert_true(e[0].end_ns > e[0].start_ns);
	assert_true(e[0].end_ns < e[1].end_ns);
	assert_true(e[1].end_ns - e[1].start_ns < 1010000);
	end(&w);
}

/* No call of the engine's thread waits inside XRT. */
static void by_the_mover(void **state)
{
	struct world w;
	uint32_t i;

	(void)state;
	begin(&w, &paced);
	stand_in()->hot(1);
	for (i = 1; i < 20; i += 2) {
		copy(&w, 0, w.mem, 0, w.from, 0, BYTES, i);
		copy(&w, 0, w.from, 0, w.mem, 0, BYTES, i + 1);
		end_in_order(&w, i, i + 1);
	}
	stand_in()->hot(0);
	assert_true(stand_in()->calls("xrtBOSync") >= 20);
	end(&w);
}

static void copy_fails(void **state)
{
	struct hal_bk_event e;
	struct world w;

	(void)state;
	begin(&w, &driven);
	stand_in()->break_call("xrtBOSync", 1, EIO);
	copy(&w, 0, w.from, 0, w.mem, 0, 64, 1);
	b->hot.doorbell(w.dev);
	e = next(&w);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "xrtBOSync: EIO");
	end(&w);
}

static void register_refused(void **state)
{
	struct world w;
	void *mem;

	(void)state;
	begin(&w, &driven);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): no process has memory there. */
	assert_int_equal(
		b->cold.mem_register(w.dev, w.part[0], (void *)(uintptr_t)4096, 64, &mem),
		-EFAULT);
	assert_non_null(strstr(host_text, "fpga:0: cannot register 64 bytes at 0x1000: "
					  "at 0x1000 the memory of this process is not "
					  "mapped"));
	assert_int_equal(b->cold.mem_register(w.dev, w.part[0], (void *)(uintptr_t)text,
					      sizeof(text), &mem),
			 -EFAULT);
	assert_non_null(strstr(host_text, "cannot be both read and written"));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is),        cmocka_unit_test(in_order),
		cmocka_unit_test(only_its_bytes),   cmocka_unit_test(beside_runs),
		cmocka_unit_test(by_the_mover),     cmocka_unit_test(copy_fails),
		cmocka_unit_test(register_refused),
	};

	b = hal_backend_fpga(&host);
	driven.xclbin = paced.xclbin = make_file(text);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
