/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queued copies between host memory and a Level Zero device's: that an engine which only
 * copies does them, where a tile has one, in the queue's order and beside its kernels;
 * and memory of the program's that is imported.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

enum { BYTES = 65536, PAGE = 4096, COPIES = 1 /* group of engines that copy */ };

static const struct hal_backend *b;

struct rig {
	void *dev, *part, *queue[3], *prog, *work, *mem;
	struct hal_bk_arg args[2];
	uint32_t live;
};

static void open_rig(struct rig *r, const struct hal_bk_config *cfg, uint32_t device)
{
	static const char *const kernels[] = {"work:m8"};
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_kernel_info info;
	uint64_t bytes;
	size_t size;
	void *image = make_image(kernels, 1, 1, &size);
	int i;

	memset(r, 0, sizeof(*r));
	stand_in()->reset();
	r->live = stand_in()->live();
	if (b->cold.open(cfg, device, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	assert_int_equal(b->cold.program_load(r->dev, image, size, &r->prog), 0);
	assert_int_equal(b->cold.program_bind(r->dev, r->prog, r->part, &bytes), 0);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, 0, &info, &r->work), 0);
	assert_int_equal(b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, 0, &r->mem), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, &r->queue[i]),
				 0);
	free(image);
}

static void close_rig(struct rig *r)
{
	const char *text = "";
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.queue_destroy(r->dev, r->queue[i]), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unbind(r->dev, r->prog, r->part), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), r->live);
}

static void *host_memory(struct rig *r, uint8_t **p)
{
	void *mem, *address;

	if (b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, HAL_BK_MEM_HOST, &mem))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.mem_map(r->dev, mem, &address), 0);
	*p = address;
	return mem;
}

static void *registered(struct rig *r, void *p, uint64_t bytes)
{
	void *mem;

	if (b->cold.mem_register(r->dev, r->part, p, bytes, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void release(struct rig *r, void *mem)
{
	assert_int_equal(b->cold.mem_free(r->dev, mem), 0);
}

static void launch(struct rig *r, uint32_t queue, uint64_t ns, uint64_t cookie)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};

	r->args[0] = (struct hal_bk_arg){r->mem, 0, 64};
	r->args[1] = (struct hal_bk_arg){NULL, ns, 0};
	cmd.launch.kernel = r->work;
	cmd.launch.args = r->args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	if (b->hot.submit(r->dev, r->queue[queue], &cmd))
		fail_msg("%s", host_text);
}

static void copy(struct rig *r, uint32_t queue, void *dst, uint64_t to, void *src,
		 uint64_t from, uint64_t bytes, uint64_t cookie)
{
	const struct hal_bk_cmd cmd = {
		.op = HAL_OP_COPY, .cookie = cookie, .copy = {dst, src, to, from, bytes}};

	if (b->hot.submit(r->dev, r->queue[queue], &cmd))
		fail_msg("%s", host_text);
}

/* The next commands to end are those, in that order. */
static void end_in_order(struct rig *r, uint64_t first, uint64_t last)
{
	struct hal_bk_event ev;

	for (; first <= last; first++) {
		assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.status, 0);
		assert_int_equal(ev.cookie, first);
		assert_true(ev.end_ns >= ev.start_ns);
	}
}

static void forget_jobs(void)
{
	struct lz_stand_in_job job;

	while (stand_in()->jobs(&job, 1))
		;
}

static uint8_t *pages(uint32_t count)
{
	void *p = mmap(NULL, (size_t)count * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* ---- cases --------------------------------------------------------------------------- */

static const struct hal_bk_config immediate = {.clock = 1, .inflight = 8},
				  regular = {.clock = 1, .inflight = 8, .lists = 1},
				  on_host = {.clock = 1, .inflight = 8, .memory = 2},
				  bounded = {.clock = 1, .inflight = 8, .timeout_ms = 5};
/* Devices with engines that only copy, and without. */
static const struct {
	const struct hal_bk_config *cfg;
	uint32_t device;
	bool apart; /* copies have an engine of their own */
} all[] = {
	{&immediate, 0, true}, {&regular, 0, false},  {&immediate, 3, false},
	{&on_host, 0, true},   {&immediate, 1, true}, {&immediate, 2, false},
};
enum { ALL = sizeof(all) / sizeof(all[0]) };

static void memory_is(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	uint64_t before;
	struct rig r;
	uint8_t *p;
	void *mem;
	uint32_t i;

	(void)state;
	open_rig(&r, &immediate, 0);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_true(info.caps & HAL_CAP_HOST_REGISTER);
	before = info.memory_free;
	mem = host_memory(&r, &p);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.memory_free, before);
	assert_int_equal(b->cold.partition_destroy(r.dev, r.part), -EBUSY);
	release(&r, mem);
	close_rig(&r);
}

/* Each sees what the one before it wrote, though they are in two lists. */
static void in_order(void **state)
{
	uint8_t *p, *own = pages(2);
	struct lz_stand_in_job jobs[32];
	struct rig r;
	void *from, *mine, *other;
	uint32_t *word, i, k, n, copies;

	(void)state;
	for (i = 0; i < ALL; i++) {
		open_rig(&r, all[i].cfg, all[i].device);
		from = host_memory(&r, &p);
		mine = registered(&r, own + 12, PAGE);
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, 0, &other),
				 0);
		forget_jobs();
		word = (uint32_t *)(void *)p;
		word[0] = 100;
		word[1] = 7;
		copy(&r, 0, r.mem, 0, from, 0, 4, 1);
		launch(&r, 0, 1000000, 2);
		copy(&r, 0, mine, 4, r.mem, 0, 4, 3);
		copy(&r, 0, other, 0, r.mem, 0, 4, 4);
		copy(&r, 0, r.mem, 0, from, 4, 4, 5);
		launch(&r, 0, 1000, 6);
		copy(&r, 0, from, 8, r.mem, 0, 4, 7);
		copy(&r, 0, from, 12, other, 0, 4, 8);
		end_in_order(&r, 1, 8);
		assert_int_equal(*(uint32_t *)(void *)(own + 16), 101);
		assert_int_equal(word[2], 8);
		assert_int_equal(word[3], 101);
		n = stand_in()->jobs(jobs, 32);
		for (k = 0, copies = 0; k < n; k++) {
			if (k)
				assert_true(jobs[k].start_ns >= jobs[k - 1].end_ns);
			copies += strcmp(jobs[k].what, "copy") == 0 &&
				  jobs[k].ordinal == COPIES;
		}
		if (copies != (all[i].apart ? 5 : 0))
			fail_msg("way %u: %u copies by engines for copies", i, copies);
		release(&r, from);
		release(&r, mine);
		release(&r, other);
		close_rig(&r);
	}
	assert_int_equal(munmap(own, 2 * PAGE), 0);
}

/* A copy runs while a kernel of another queue has the tile's engine; without an engine
 * for copies it comes behind the kernel. */
static void beside_kernels(void **state)
{
	struct lz_stand_in_job jobs[8];
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i, k, n;
	uint8_t *p;
	void *from, *mem;

	(void)state;
	for (i = 0; i < ALL; i++) {
		const struct lz_stand_in_job *work = NULL, *moved = NULL;

		open_rig(&r, all[i].cfg, all[i].device);
		from = host_memory(&r, &p);
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, 0, &mem),
				 0);
		forget_jobs();
		/* The partition's engines are given to queues in turn. */
		launch(&r, 0, 1000000, 1);
		copy(&r, 1, mem, 0, from, 0, BYTES, 2);
		for (k = 0; k < 2; k++)
			assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		n = stand_in()->jobs(jobs, 8);
		for (k = 0; k < n; k++)
			if (strcmp(jobs[k].what, "copy") == 0)
				moved = &jobs[k];
			else if (strcmp(jobs[k].what, "work") == 0)
				work = &jobs[k];
		assert_true(work && moved);
		if (all[i].apart)
			assert_true(moved->end_ns < work->end_ns);
		release(&r, from);
		release(&r, mem);
		close_rig(&r);
	}
}

/* Copies of two queues, one each way, run at once. */
static void both_ways(void **state)
{
	struct lz_stand_in_job jobs[4];
	struct hal_bk_event ev;
	struct rig r;
	uint8_t *p;
	void *from, *mem;
	int i;

	(void)state;
	open_rig(&r, &immediate, 0);
	from = host_memory(&r, &p);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, 0, &mem), 0);
	forget_jobs();
	copy(&r, 0, mem, 0, from, 0, BYTES / 2, 1);
	copy(&r, 1, from, BYTES / 2, r.mem, 0, BYTES / 2, 2);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(stand_in()->jobs(jobs, 4), 2);
	assert_int_equal(jobs[0].ordinal, COPIES);
	assert_int_equal(jobs[1].ordinal, COPIES);
	assert_int_not_equal(jobs[0].index, jobs[1].index);
	assert_true(jobs[1].start_ns < jobs[0].end_ns);
	release(&r, from);
	release(&r, mem);
	close_rig(&r);
}

/* A queue that has copied once keeps its order, also where a list does: the next launches
 * come behind the copy. */
static void behind_copies(void **state)
{
	struct rig r;
	uint32_t i;
	uint8_t *p;
	void *from;

	(void)state;
	open_rig(&r, &immediate, 0);
	from = host_memory(&r, &p);
	for (i = 0; i < 50; i++) {
		*(uint32_t *)(void *)p = i;
		copy(&r, 0, r.mem, 0, from, 0, 4, 1);
		launch(&r, 0, 1000, 2);
		launch(&r, 0, 1000, 3);
		copy(&r, 0, from, 4, r.mem, 0, 4, 4);
		end_in_order(&r, 1, 4);
		assert_int_equal(((uint32_t *)(void *)p)[1], i + 2);
	}
	release(&r, from);
	close_rig(&r);
}

/* What a command that does not end may use is kept, registered memory, too. */
static void timed_out(void **state)
{
	struct hal_bk_event ev;
	uint8_t *own = pages(1);
	struct rig r;
	void *mine, *again;

	(void)state;
	open_rig(&r, &bounded, 0);
	mine = registered(&r, own, PAGE);
	launch(&r, 0, 20000000, 1);
	copy(&r, 0, mine, 0, r.mem, 0, 64, 2);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, -ECANCELED);
	release(&r, mine);
	assert_int_equal(b->cold.mem_register(r.dev, r.part, own, PAGE, &again), -EBUSY);
	assert_non_null(strstr(host_text, "are registered already"));
	/* By then both have ended. */
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 40000000, &ev, 1), 0);
	again = registered(&r, own, PAGE);
	release(&r, again);
	close_rig(&r);
	assert_int_equal(munmap(own, PAGE), 0);
}

static void refused(struct rig *r, void *p, uint64_t bytes, int err, const char *text)
{
	void *mem;

	assert_int_equal(b->cold.mem_register(r->dev, r->part, p, bytes, &mem), err);
	if (!strstr(host_text, text))
		fail_msg("%s: not %s", host_text, text);
}

static void register_refused(void **state)
{
	uint8_t *own = pages(4);
	struct rig r;
	void *mem[2];

	(void)state;
	assert_int_equal(mprotect(own + 3 * PAGE, PAGE, PROT_READ), 0);
	open_rig(&r, &immediate, 0);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): no process has memory there. */
	refused(&r, (void *)(uintptr_t)PAGE, 5, -EFAULT, "is not mapped");
	refused(&r, own, 4 * PAGE, -EFAULT, "cannot be both read and written");
	mem[0] = registered(&r, own + 8, PAGE);
	mem[1] = registered(&r, own, 8);
	refused(&r, own + PAGE, 2 * PAGE, -EBUSY, "are registered already");
	release(&r, mem[0]);
	refused(&r, own + PAGE, 2 * PAGE, -EBUSY, "are registered already");
	release(&r, mem[1]);
	mem[0] = registered(&r, own + PAGE, 2 * PAGE);
	release(&r, mem[0]);
	close_rig(&r);
	assert_int_equal(munmap(own, 4 * (size_t)PAGE), 0);
}

/* A driver, or a loader, of old cannot import memory. */
static void no_import(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	static uint8_t own[64];
	struct rig r;
	uint8_t *p;
	void *mem;

	(void)state;
	setenv("HAL_STAND_IN_ZE_IMPORT", "0", 1);
	open_rig(&r, &immediate, 0);
	unsetenv("HAL_STAND_IN_ZE_IMPORT");
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_false(info.caps & HAL_CAP_HOST_REGISTER);
	refused(&r, own, sizeof(own), -ENOTSUP, "use hal_host_alloc");
	mem = host_memory(&r, &p);
	copy(&r, 0, r.mem, 0, mem, 0, 64, 1);
	end_in_order(&r, 1, 1);
	release(&r, mem);
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is),      cmocka_unit_test(in_order),
		cmocka_unit_test(beside_kernels), cmocka_unit_test(both_ways),
		cmocka_unit_test(behind_copies),  cmocka_unit_test(register_refused),
		cmocka_unit_test(no_import),      cmocka_unit_test(timed_out),
	};

	b = hal_backend_levelzero(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
