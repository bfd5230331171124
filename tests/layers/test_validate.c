/* SPDX-License-Identifier: Apache-2.0 */
/* Layer validate: one test for each thing it catches, of the backend and of the core. */
#include "api/opened.h"
#include "util/compiler.h" /* before cmocka.h, which has a macro fail */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/ext/memory.h>
#include <hal/ext/options.h>

#include "broken.h"
#include "tests/scan.h"

static char report_path[] = "/tmp/hal-layers-XXXXXX";
static char report_option[64];
static char target[64];
static const char *const options[] = {"hal.plugins=" BROKEN_PLUGIN, "layers.validate=1",
				      report_option, NULL};

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ < 0)                                                             \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

static int make_report(void **state)
{
	int fd = mkstemp(report_path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(report_option, sizeof(report_option), "layers.report=%s", report_path);
	return 0;
}

static int remove_report(void **state)
{
	(void)state;
	return unlink(report_path);
}

/* A line of the report has all of text. */
static bool reported(const char *text)
{
	FILE *f = fopen(report_path, "r");
	char line[1024];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, text) != NULL;
	fclose(f);
	return found;
}

static int open_broken(const char *breaks, struct hal_device **dev)
{
	assert_int_equal(truncate(report_path, 0), 0);
	snprintf(target, sizeof(target), "broken?break=%s", breaks);
	return hal_open(target, options, dev);
}

/* ---- the backend's mistakes ------------------------------------------------------- */

struct world {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_buffer *buf;
	struct hal_queue *q[2];
	struct hal_program *prog;
};

static struct hal_cmd fill(struct world *w, uint32_t pattern)
{
	struct hal_cmd c = hal_cmd_fill(w->buf, 0, 64, pattern);

	c.flags = HAL_CMD_REPLAYABLE;
	return c;
}

/* Whatever happens, it comes to an end. */
static void run(struct world *w, struct hal_queue *q, struct hal_cmd a, struct hal_cmd b)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[2] = {a, b};
	struct hal_point done;

	(void)w;
	d.cmds = cmds;
	d.cmd_count = 2;
	if (q != NULL && hal_submit(q, &d, &done) == 0)
		(void)hal_wait(&done, 1, 0, 1000000);
}

static void suspend_and_move(struct world *w)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_cmd stays = fill(w, 2);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_point p, done;

	s.cmds = &stays;
	s.cmd_count = 1;
	if (w->q[1] == NULL || hal_submit(w->q[1], &s, &done) != 0)
		return;
	(void)hal_device_poll(w->dev, 0);
	if (hal_queue_suspend(w->q[1], HAL_SUSPEND_KILL, &p) == 0)
		(void)hal_wait(&p, 1, 0, 1000000);
	d.rows = 1;
	d.cols = 3;
	if (hal_partition_resize(w->part, &d, &p) == 0)
		(void)hal_wait(&p, 1, 0, 1000000);
}

static void use(struct world *w)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_partition_info pi = HAL_INIT(hal_partition_info);
	struct hal_device_info di = HAL_INIT(hal_device_info);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_kernel *k;
	void *address;
	char data[64] = {0};

	(void)hal_device_get_info(w->dev, &di);
	if (hal_trace_start(w->dev, "/dev/null") == 0)
		(void)hal_trace_stop(w->dev);
	pd.rows = 1;
	pd.cols = 2;
	if (hal_partition_create(w->dev, &pd, &w->part) != 0)
		return;
	(void)hal_partition_get_info(w->part, &pi);
	(void)hal_queue_create(w->part, &qd, &w->q[0]);
	(void)hal_queue_create(w->part, &qd, &w->q[1]);
	bd.bytes = 256;
	if (hal_buffer_create(w->part, &bd, &w->buf) != 0)
		return;
	(void)hal_buffer_write(w->buf, 0, data, 64);
	if (hal_buffer_map(w->buf, &address) == 0)
		(void)hal_buffer_unmap(w->buf);
	if (hal_program_load(w->dev, "x", 1, &w->prog) == 0 &&
	    hal_kernel_find(w->prog, "one", &k) == 0) {
		struct hal_arg args[2] = {{.buffer = w->buf}, {.offset = 7}};

		run(w, w->q[0], hal_cmd_launch(k, args, 2), fill(w, 0));
	}
	run(w, w->q[0], fill(w, 0), fill(w, 0));
	suspend_and_move(w);
	run(w, w->q[0], fill(w, 1), fill(w, 0));
	(void)hal_device_poll(w->dev, 1000);
}

static void put_away(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		if (w->q[i] == NULL)
			continue;
		/* Suspended with a killed command in it, which then runs. */
		if (hal_queue_resume(w->q[i]) == 0)
			(void)hal_device_poll(w->dev, 1000000);
		(void)hal_queue_destroy(w->q[i]);
	}
	(void)hal_buffer_destroy(w->buf);
	(void)hal_program_unload(w->prog);
	(void)hal_partition_destroy(w->part);
}

static const struct {
	const char *name;
	const char *text;
} breaks[] = {
	{"none", NULL},
	{"open_null", "open returned success without a device"},
	{"info_size", "get_info changed .size to 8"},
	{"info_text", "get_info: a text is not terminated"},
	{"info_kind", "get_info: an unknown value in: kind 9"},
	{"info_verified", "caps 0x27f, or bits of verified 0x100"},
	{"info_lost", "get_info: lost is 3"},
	{"info_free", "get_info: 2097152 bytes free of 1048576"},
	{"info_changes", "get_info describes a different device"},
	{"part_null", "partition_create returned success without a handle"},
	{"queue_twice", "queue_create returned the handle of queue 0 of partition 0"},
	{"mem_null", "mem_alloc returned success without a handle"},
	{"mem_answer", "mem_write returned the invalid result 7"},
	{"mem_leak", "close: 1 object(s) still alive: buffer 0"},
	{"map_null", "mem_map returned success without an address"},
	{"prog_null", "program_load returned success without a handle"},
	{"kernel_name", "the name of kernel 0 is empty or not terminated"},
	{"kernel_args", "kernel one takes 17 arguments; the limit is 16"},
	{"kernel_engines", "kernel one: unknown engines in 0x4"},
	{"isolation", "isolation returned 12, which is not in"},
	{"counters_many", "counters returned "},
	{"counters_kind", "counters: there is no counter of kind 7, index 0"},
	{"counters_index", "counters: there is no counter of kind 0, index "},
	{"again", "-EAGAIN, but the device is idle"},
	{"event_stranger", "never submitted: cookie 0x1234"},
	{"event_twice", "command 0 of queue 0 completed twice"},
	{"event_status", "command 0 of queue 0 completed with status -16"},
	{"event_killed", "command 0 of queue 0 was cancelled without a KILL"},
	{"event_times", "command 0 of queue 0 ran from 1000 to 999 ns"},
	{"event_endless_text", "command 0 of queue 0: the fault text is not terminated"},
	{"event_says", "status 0 and the fault text \"all is well\""},
	{"event_kind", "an event of unknown kind 7"},
	{"event_many", "poll returned 17 events, but there was space for 16"},
	{"event_order", "command 1 of queue 0 completed before an older one"},
	{"event_behind_fault", "succeeded after an earlier one failed"},
	{"idle_stands", "on an idle device left time at"},
	{"quiet_stranger", "a QUIET event with cookie 0x77, but no suspend"},
	{"quiet_early", "queue 1 is quiet with 1 commands on the device"},
	{"move_status", "a move completed with status 5"},
	{"time", "time went back from"},
};

/* Every kind of mistake there is has a row above: broken.h counts them. */
static const char *const all_breaks[] = {
#define X(name) #name,
	BREAKS(X)
#undef X
};

static void backend_is_wrong(void **state)
{
	_Static_assert(ARRAY_LENGTH(breaks) == ARRAY_LENGTH(all_breaks), "a row each");
	(void)state;
	for (size_t i = 0; i < ARRAY_LENGTH(breaks); i++) {
		struct world w = {0};
		int err;

		assert_string_equal(breaks[i].name, all_breaks[i]);
		err = open_broken(breaks[i].name, &w.dev);
		if (err == 0) {
			use(&w);
			put_away(&w);
			err = hal_close(w.dev);
		}
		if (breaks[i].text == NULL) {
			if (err != 0)
				fail_msg("%s: %s", breaks[i].name, hal_last_error());
			assert_false(reported(""));
			continue;
		}
		if (err != -EPROTO)
			fail_msg("%s: %d: %s", breaks[i].name, err, hal_last_error());
		assert_non_null(strstr(hal_last_error(), "validate: the "));
		if (!reported(breaks[i].text))
			fail_msg("%s: \"%s\" is not reported; %s", breaks[i].name,
				 breaks[i].text, hal_last_error());
	}
}

/* Off, the same is not looked at. */
static void off(void **state)
{
	const char *const plain[] = {"hal.plugins=" BROKEN_PLUGIN, NULL};
	struct hal_device *dev;

	(void)state;
	OK(hal_open("broken?break=mem_leak", plain, &dev));
	assert_null(dev->opened->layers);
	assert_ptr_equal(dev->table, &registry_find("broken")->table);
	assert_ptr_equal(hal_device_get_native(dev), dev->bk);
	OK(hal_close(dev));
}

/* What the application left is named with the place that made it. */
static void living(void **state)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_device *dev;

	(void)state;
	OK(open_broken("none", &dev));
	assert_ptr_not_equal(hal_device_get_native(dev), dev->bk);
	pd.units_floor = 2;
	strcpy(pd.name, "video");
	OK(hal_partition_create(dev, &pd, &part));
	OK(hal_queue_create(part, &qd, &q));
	assert_int_equal(hal_close(dev), -EBUSY);
	assert_non_null(strstr(hal_last_error(), "partition 0 \"video\", made at test_"));
	assert_non_null(strstr(hal_last_error(), "queue 0 of partition 0 \"video\""));
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
	assert_false(reported(""));
}

/* ---- the core's mistakes ---------------------------------------------------------- */

static struct hal_device *dev;
static const struct hal_backend *t;
static void *bk, *part, *other_part, *queue, *mem, *other_mem, *prog, *kernel;
static struct hal_bk_partition_desc desc, other_desc;

/* The call is refused, and the text has all of words. */
#define REFUSED(call, words)                                                             \
	do {                                                                             \
		int is_ = (call);                                                        \
		if (is_ != -EPROTO || strstr(hal_last_error(), words) == NULL ||         \
		    strstr(hal_last_error(), "validate: the core: ") == NULL)            \
			fail_msg("%s is %d: %s", #call, is_, hal_last_error());          \
	} while (0)

static struct hal_bk_partition_desc rectangle(uint32_t index, uint16_t row, uint16_t col,
					      uint16_t rows, uint16_t cols)
{
	struct hal_bk_partition_desc d = {.index = index,
					  .units = (uint32_t)rows * cols,
					  .row = row,
					  .col = col,
					  .rows = rows,
					  .cols = cols,
					  .color_mask = 1};

	return d;
}

static const uint8_t none[64];
static const struct hal_bk_colors first = {.mask = 1}, second = {.mask = 2},
				  no_color = {.mask = 0},
				  no_part = {.mask = 1, .weights = none};

static int core_begin(void **state)
{
	struct hal_bk_kernel_info info = {.engines = 0};
	uint64_t bytes;

	(void)state;
	OK(open_broken("none", &dev));
	t = dev->table;
	bk = dev->bk;
	desc = rectangle(0, 0, 0, 1, 2);
	other_desc = rectangle(1, 1, 0, 1, 2);
	OK(t->cold.partition_create(bk, &desc, &part));
	OK(t->cold.partition_create(bk, &other_desc, &other_part));
	OK(t->cold.queue_create(bk, part, 0, &queue));
	OK(t->cold.mem_alloc(bk, part, 256, &first, 0, &mem));
	OK(t->cold.mem_alloc(bk, other_part, 256, &first, 0, &other_mem));
	OK(t->cold.program_load(bk, "x", 1, &prog));
	OK(t->cold.kernel_get(bk, prog, 0, &info, &kernel));
	OK(t->cold.program_bind(bk, prog, part, &bytes));
	return 0;
}

static int core_end(void **state)
{
	(void)state;
	OK(t->cold.queue_destroy(bk, queue));
	OK(t->cold.mem_free(bk, mem));
	OK(t->cold.mem_free(bk, other_mem));
	OK(t->cold.program_unbind(bk, prog, part));
	OK(t->cold.program_unload(bk, prog));
	OK(t->cold.partition_destroy(bk, part));
	OK(t->cold.partition_destroy(bk, other_part));
	/* Each of the calls above was refused, and hal_close says so. */
	assert_int_equal(hal_close(dev), -EPROTO);
	assert_false(reported("alive"));
	return 0;
}

static void handles_foreign(void **state)
{
	static char stranger[8];
	void *out, *address;
	uint64_t bytes;

	(void)state;
	REFUSED(t->cold.partition_destroy(bk, stranger),
		"is not a partition of this device");
	REFUSED(t->cold.queue_create(bk, stranger, 0, &out), "is not a partition");
	REFUSED(t->cold.queue_destroy(bk, stranger), "is not a queue");
	REFUSED(t->cold.mem_alloc(bk, stranger, 8, &first, 0, &out),
		"is not a partition");
	REFUSED(t->cold.mem_free(bk, stranger), "is not a buffer");
	REFUSED(t->cold.mem_write(bk, NULL, 0, "x", 1), "is not a buffer");
	REFUSED(t->cold.mem_map(bk, stranger, &address), "is not a buffer");
	REFUSED(t->cold.program_unload(bk, stranger), "is not a program");
	REFUSED(t->cold.program_bind(bk, prog, stranger, &bytes), "is not a partition");
	REFUSED(t->hot.suspend(bk, stranger, HAL_SUSPEND_KILL, 1), "is not a queue");
	REFUSED(t->hot.resume(bk, stranger), "is not a queue");
	REFUSED(t->hot.resize(bk, stranger, &desc, 1), "is not a partition");
	REFUSED(t->cold.mem_free(bk, queue),
		"queue 0 of partition 0 was passed where a buffer");
}

static void handles_dead(void **state)
{
	void *p, *q, *m, *x;
	struct hal_bk_partition_desc d = rectangle(2, 0, 2, 2, 1);
	struct hal_bk_kernel_info info = {.engines = 0};
	char byte;

	(void)state;
	OK(t->cold.partition_create(bk, &d, &p));
	OK(t->cold.queue_create(bk, p, 0, &q));
	OK(t->cold.mem_alloc(bk, p, 8, &first, 0, &m));
	OK(t->cold.program_load(bk, "x", 1, &x));
	REFUSED(t->cold.partition_destroy(bk, p), "still has 2 objects (queues");
	OK(t->cold.mem_free(bk, m));
	OK(t->cold.queue_destroy(bk, q));
	OK(t->cold.partition_destroy(bk, p));
	OK(t->cold.program_unload(bk, x));
	REFUSED(t->cold.mem_free(bk, m), "buffer 2 of partition 2 was destroyed earlier");
	REFUSED(t->cold.mem_read(bk, m, 0, &byte, 1), "was destroyed earlier");
	REFUSED(t->cold.queue_destroy(bk, q), "queue 1 of partition 2 was destroyed");
	REFUSED(t->cold.partition_destroy(bk, p), "partition 2 was destroyed");
	REFUSED(t->cold.program_unload(bk, x), "program 1 was destroyed");
	REFUSED(t->cold.kernel_get(bk, x, 0, &info, &q), "program 1 was destroyed");
}

static void partitions(void **state)
{
	struct hal_bk_partition_desc d = rectangle(9, 0, 3, 1, 1);
	void *p;

	(void)state;
	REFUSED(t->cold.partition_create(bk, &d, &p),
		"index 9 is out of range; the device has 4");
	d = rectangle(1, 0, 3, 1, 1);
	REFUSED(t->cold.partition_create(bk, &d, &p),
		"partition 1 already has that index");
	d = rectangle(2, 0, 1, 1, 2);
	REFUSED(t->cold.partition_create(bk, &d, &p), "already has some of the units");
	d = rectangle(2, 0, 3, 1, 2);
	REFUSED(t->cold.partition_create(bk, &d, &p),
		"2 units, 1 x 2 at row 0, column 3 of a device of 2 x 4");
	d = rectangle(2, 0, 3, 1, 1);
	d.units = 2;
	REFUSED(t->cold.partition_create(bk, &d, &p), "2 units, 1 x 1");
	d = rectangle(2, 0, 3, 1, 1);
	d.color_mask = 0;
	REFUSED(t->cold.partition_create(bk, &d, &p),
		"colours 0x0 are invalid; the device has 4");
	d.color_mask = 16;
	REFUSED(t->cold.partition_create(bk, &d, &p),
		"colours 0x10 are invalid; the device has 4");
}

static void memory(void **state)
{
	uint64_t at_ns;
	struct hal_bk_kernel_info info = {.engines = 0};
	void *m, *address, *other;
	char byte[8] = "";

	(void)state;
	REFUSED(t->cold.mem_alloc(bk, part, 0, &first, 0, &m), "0 bytes");
	REFUSED(t->cold.mem_alloc(bk, part, 8, &second, 0, &m),
		"colours 0x2 are empty or not all among");
	REFUSED(t->cold.mem_alloc(bk, part, 8, &no_color, 0, &m),
		"colours 0x0 are empty or not all among");
	REFUSED(t->cold.mem_alloc(bk, part, 8, &no_part, 0, &m),
		"the weights of colours 0x1 are all 0");
	REFUSED(t->cold.mem_alloc(bk, part, 8, NULL, 0, &m), "without colours");
	REFUSED(t->cold.mem_alloc(bk, part, 8, &first, 16, &m), "unknown flags in 0x10");
	REFUSED(t->cold.mem_write(bk, mem, 250, byte, 8),
		"8 bytes at offset 250 exceed buffer 0");
	REFUSED(t->cold.mem_read(bk, mem, UINT64_MAX, byte, 8), "exceed buffer 0 of 256");
	REFUSED(t->cold.mem_read(bk, mem, 0, NULL, 8), "data is NULL");
	REFUSED(t->extra.counters(bk, NULL, 0, &at_ns),
		"counters: called with space for 0 counters");
	REFUSED(t->cold.mem_unmap(bk, mem), "buffer 0 is not mapped");
	OK(t->cold.mem_map(bk, mem, &address));
	REFUSED(t->cold.mem_map(bk, mem, &address), "buffer 0 is mapped");
	REFUSED(t->cold.mem_free(bk, mem), "buffer 0 is mapped");
	OK(t->cold.mem_unmap(bk, mem));
	OK(t->cold.mem_alloc(bk, part, 8, &first, 0, &other));
	REFUSED(t->extra.mem_swap(bk, part, mem), "a buffer belongs");
	REFUSED(t->extra.mem_swap(bk, mem, mem),
		"mem_swap: cannot swap buffer 0 (256 bytes,");
	REFUSED(t->extra.mem_swap(bk, mem, other_mem),
		"buffer 1 (256 bytes, partition 1)");
	REFUSED(t->extra.mem_swap(bk, mem, other), "(8 bytes, partition 0)");
	OK(t->cold.mem_free(bk, other));
	OK(t->cold.mem_alloc(bk, part, 256, &first, 0, &other));
	OK(t->cold.mem_map(bk, other, &address));
	REFUSED(t->extra.mem_swap(bk, mem, other), "is mapped");
	OK(t->cold.mem_unmap(bk, other));
	assert_int_equal(t->extra.mem_swap(bk, mem, other), -ENOTSUP);
	OK(t->cold.mem_free(bk, other));
	REFUSED(t->cold.mem_alloc(bk, part, 8, &first, HAL_BUFFER_BIMODAL, &m),
		"bimodal buffer, but partition 0 has one placement");
	OK(t->cold.mem_map(bk, mem, &address));
	REFUSED(t->extra.mem_out(bk, mem), "mem_out: buffer 0 is mapped");
	OK(t->cold.mem_unmap(bk, mem));
	REFUSED(t->cold.mem_alloc(bk, part, 8, &first,
				  HAL_BK_MEM_HOST | HAL_BUFFER_MAPPABLE, &m),
		"mem_alloc: host memory with flags 0x10001");
	REFUSED(t->cold.mem_register(bk, part, NULL, 8, &m), "mem_register: 8 bytes at");
	REFUSED(t->cold.mem_register(bk, mem, byte, 8, &m), "a partition belongs");
	OK(t->cold.mem_alloc(bk, part, 8, &first, HAL_BK_MEM_HOST, &other));
	OK(t->cold.mem_map(bk, other, &address));
	REFUSED(t->cold.mem_unmap(bk, other), "is host memory");
	REFUSED(t->cold.mem_write(bk, other, 0, byte, 8), "is host memory");
	REFUSED(t->extra.mem_out(bk, other), "is host memory");
	OK(t->cold.mem_free(bk, other));
	REFUSED(t->extra.mem_out(bk, part), "a buffer belongs");
	REFUSED(t->extra.mem_in(bk, mem, &first), "mem_in: buffer 0 is not evicted");
	assert_int_equal(t->extra.mem_out(bk, mem), -ENOTSUP);
	REFUSED(t->extra.partition_widen(bk, mem, 1), "a partition belongs");
	REFUSED(t->extra.partition_widen(bk, part, 1),
		"partition_widen: partition 0 has one placement");
	REFUSED(t->extra.limit(bk, mem, 64, 1000), "a partition belongs");
	REFUSED(t->extra.limit(bk, part, 64, 0),
		"limit: 64 bytes for partition 0 in a window of 0 ns");
	assert_int_equal(t->extra.limit(bk, part, 0, 0), -ENOTSUP);
	REFUSED(t->cold.program_load(bk, NULL, 4, &m),
		"image is NULL or empty (4 bytes)");
	REFUSED(t->cold.program_load(bk, "x", 0, &m), "image is NULL or empty (0 bytes)");
	REFUSED(t->cold.program_unload(bk, prog), "program 0 is still bound");
	REFUSED(t->cold.program_bind(bk, prog, part, (uint64_t *)(void *)byte),
		"program 0 is already bound to partition 0");
	REFUSED(t->cold.program_unbind(bk, prog, other_part),
		"program 0 is not bound to partition 1");
	/* A kernel may be asked for again. */
	OK(t->cold.kernel_get(bk, prog, 0, &info, &m));
	assert_ptr_equal(m, kernel);
}

static struct hal_bk_cmd launch(const struct hal_bk_arg *args, uint32_t n)
{
	struct hal_bk_cmd c = {.op = HAL_OP_LAUNCH, .cookie = 500};

	c.launch.kernel = kernel;
	c.launch.args = args;
	c.launch.arg_count = n;
	for (int i = 0; i < 3; i++)
		c.launch.groups[i] = 1;
	return c;
}

static struct hal_bk_cmd fill_of(void *of, uint64_t offset, uint64_t bytes)
{
	struct hal_bk_cmd c = {.op = HAL_OP_FILL, .cookie = 500};

	c.fill.dst = of;
	c.fill.offset = offset;
	c.fill.bytes = bytes;
	return c;
}

static void commands(void **state)
{
	struct hal_bk_arg args[3] = {{.mem = mem, .bytes = 64}, {.value = 3}};
	struct hal_bk_shape *shape = (struct hal_bk_shape *)&args[2];
	struct hal_bk_cmd c = {.op = HAL_OP_HOST};

	(void)state;
	REFUSED(t->hot.submit(bk, queue, &c),
		"operation 4 is not one that devices execute");
	c = fill_of(mem, 0, 8);
	c.flags = 0x80;
	REFUSED(t->hot.submit(bk, queue, &c), "flags 0x80");
	c = fill_of(mem, 2, 8);
	REFUSED(t->hot.submit(bk, queue, &c), "not multiples of 4");
	c = fill_of(mem, 252, 8);
	REFUSED(t->hot.submit(bk, queue, &c),
		"8 bytes at offset 252 exceed buffer 0 of 256");
	c = fill_of(other_mem, 0, 8);
	REFUSED(t->hot.submit(bk, queue, &c), "buffer 1 is of partition 1");
	c = (struct hal_bk_cmd){.op = HAL_OP_TIMESTAMP};
	c.timestamp.dst = mem;
	c.timestamp.offset = 4;
	REFUSED(t->hot.submit(bk, queue, &c), "not a multiple of 8");
	c.timestamp.offset = 256;
	REFUSED(t->hot.submit(bk, queue, &c),
		"8 bytes at offset 256 exceed buffer 0 of 256");
	c = (struct hal_bk_cmd){.op = HAL_OP_COPY};
	c.copy.dst = mem;
	c.copy.src = kernel;
	REFUSED(t->hot.submit(bk, queue, &c), "where a buffer belongs");
	c = launch(args, 1);
	REFUSED(t->hot.submit(bk, queue, &c),
		"1 arguments were passed, but kernel 0 takes 2");
	c = launch(args, 2);
	c.launch.groups[1] = 0;
	REFUSED(t->hot.submit(bk, queue, &c), "groups[1] is 0");
	c = launch(args, 2);
	c.flags = HAL_BK_CMD_SHAPED;
	shape->group_size[0] = shape->group_size[1] = shape->group_size[2] = 1;
	REFUSED(t->hot.submit(bk, queue, &c), "groups of 1 x 1 x 1; kernel 0 allows 0");
	*shape = (struct hal_bk_shape){.shared_bytes = 4};
	REFUSED(t->hot.submit(bk, queue, &c),
		"4 bytes of shared memory; kernel 0 allows 0");
	c = fill_of(mem, 0, 8);
	c.flags = HAL_BK_CMD_SHAPED;
	REFUSED(t->hot.submit(bk, queue, &c), "invalid flags 0x800");
	c = launch(args, 2);
	args[0].bytes = 63;
	REFUSED(t->hot.submit(bk, queue, &c), "argument 0 of kernel 0 has 63 bytes");
	args[0].mem = NULL;
	REFUSED(t->hot.submit(bk, queue, &c), "argument 0 of kernel 0 has 0 bytes");
	c.launch.kernel = mem;
	REFUSED(t->hot.submit(bk, queue, &c), "where a kernel belongs");
}

static void unbound(void **state)
{
	struct hal_bk_arg args[2] = {{.mem = other_mem, .bytes = 64}, {.value = 3}};
	struct hal_bk_cmd c = launch(args, 2);
	void *q;

	(void)state;
	OK(t->cold.queue_create(bk, other_part, 0, &q));
	REFUSED(t->hot.submit(bk, q, &c), "program 0 is not bound to partition 1");
	OK(t->cold.queue_destroy(bk, q));
}

static void in_flight(void **state)
{
	struct hal_bk_cmd c = fill_of(mem, 0, 8);
	struct hal_bk_arg args[2] = {{.mem = mem, .bytes = 64}, {.value = 3}};
	struct hal_bk_cmd l = launch(args, 2);
	struct hal_bk_event ev[4];

	(void)state;
	l.cookie = 501;
	OK(t->hot.submit(bk, queue, &c));
	REFUSED(t->hot.submit(bk, queue, &c), "cookie 0x1f4 is in use by command 0");
	OK(t->hot.submit(bk, queue, &l));
	REFUSED(t->cold.mem_free(bk, mem), "2 commands on the device use buffer 0");
	REFUSED(t->cold.queue_destroy(bk, queue), "queue 0 still has 2 commands");
	REFUSED(t->cold.program_unbind(bk, prog, part), "1 commands on the device use");
	REFUSED(t->hot.poll(bk, 0, ev, 0), "space for 0 events");
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 0);
}

static void suspended(void **state)
{
	struct hal_bk_cmd c = fill_of(mem, 0, 8);
	struct hal_bk_event ev[4];

	(void)state;
	REFUSED(t->hot.suspend(bk, queue, HAL_SUSPEND_FOLD, 9),
		"mode 1 is not among the modes of the device");
	REFUSED(t->hot.suspend(bk, queue, 77, 9), "mode 77");
	REFUSED(t->hot.resume(bk, queue), "queue 0 is not suspended");
	OK(t->hot.suspend(bk, queue, HAL_SUSPEND_KILL, 9));
	REFUSED(t->hot.suspend(bk, queue, HAL_SUSPEND_KILL, 9), "suspended already");
	REFUSED(t->hot.resume(bk, queue), "queue 0 is not quiet yet");
	REFUSED(t->hot.submit(bk, queue, &c), "queue 0 is suspended");
	REFUSED(t->cold.queue_destroy(bk, queue), "queue 0 is being suspended");
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
	REFUSED(t->hot.submit(bk, queue, &c), "queue 0 is suspended");
	OK(t->hot.resume(bk, queue));
	OK(t->hot.submit(bk, queue, &c));
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
}

static void failed(void **state)
{
	struct hal_bk_cmd c = fill_of(mem, 0, 8);
	struct hal_bk_event ev[4];

	(void)state;
	c.fill.pattern = 1;
	OK(t->hot.submit(bk, queue, &c));
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	REFUSED(t->hot.submit(bk, queue, &c), "a command of queue 0 has failed");
}

static void moves(void **state)
{
	struct hal_bk_partition_desc d = rectangle(0, 0, 1, 1, 3), again;
	struct hal_bk_event ev[4];
	void *p;

	(void)state;
	REFUSED(t->hot.resize(bk, part, &other_desc, 9),
		"index 1 was passed, but partition 0 has 0");
	again = rectangle(0, 0, 0, 2, 1);
	REFUSED(t->hot.resize(bk, part, &again, 9),
		"partition 1 already has some of the units");
	OK(t->hot.resize(bk, part, &d, 9));
	REFUSED(t->hot.resize(bk, part, &d, 9), "partition 0 is being moved already");
	/* Both places are its own until it has moved. */
	again = rectangle(2, 0, 3, 1, 1);
	REFUSED(t->cold.partition_create(bk, &again, &p),
		"already has some of the units");
	again = rectangle(2, 0, 0, 1, 1);
	REFUSED(t->cold.partition_create(bk, &again, &p),
		"already has some of the units");
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 1);
	OK(t->cold.partition_create(bk, &again, &p));
	OK(t->cold.partition_destroy(bk, p));
}

/* Time that passes while nothing runs does so up to the nanosecond asked for. */
static void time_passes(void **state)
{
	struct hal_bk_event ev[4];
	uint64_t now = t->hot.now(bk);

	(void)state;
	REFUSED(t->hot.poll(bk, now + 7, ev, 0), "poll: called with space for 0 events");
	assert_int_equal(t->hot.poll(bk, UINT64_MAX, ev, 4), 0);
	assert_int_equal(t->hot.now(bk), now);
	assert_int_equal(t->hot.poll(bk, now - 1, ev, 4), 0);
	assert_int_equal(t->hot.now(bk), now);
	assert_int_equal(t->hot.poll(bk, now + 7, ev, 4), 0);
	assert_int_equal(t->hot.now(bk), now + 7);
}

/* After the loss the core asks for nothing but what gives things back. */
static void lost(void **state)
{
	struct hal_bk_partition_desc d = rectangle(0, 0, 0, 1, 2);
	struct hal_bk_cmd c;
	struct hal_bk_event ev[4];
	void *p, *m, *q;

	(void)state;
	OK(open_broken("event_many", &dev));
	t = dev->table;
	OK(t->cold.partition_create(dev->bk, &d, &p));
	OK(t->cold.mem_alloc(dev->bk, p, 64, &first, 0, &m));
	OK(t->cold.queue_create(dev->bk, p, 0, &q));
	assert_int_equal(t->hot.poll(dev->bk, 0, ev, 4), -EPROTO);
	c = fill_of(m, 0, 8);
	REFUSED(t->hot.submit(dev->bk, q, &c), "submit: the device is lost");
	REFUSED(t->hot.poll(dev->bk, 0, ev, 4), "poll: the device is lost");
	REFUSED(t->hot.suspend(dev->bk, q, HAL_SUSPEND_KILL, 1),
		"suspend: the device is");
	REFUSED(t->hot.resume(dev->bk, q), "resume: the device is lost");
	REFUSED(t->hot.resize(dev->bk, p, &d, 1), "resize: the device is lost");
	REFUSED(t->extra.limit(dev->bk, p, 0, 0), "limit: the device is lost");
	OK(t->cold.queue_destroy(dev->bk, q));
	OK(t->cold.mem_free(dev->bk, m));
	OK(t->cold.partition_destroy(dev->bk, p));
	assert_int_equal(hal_close(dev), -EPROTO);
}

static void info(void **state)
{
	struct hal_device_info i = {.size = 4};

	(void)state;
	REFUSED(t->cold.get_info(bk, &i), ".size is 4");
}

/* What is alive and under way when the core closes. */
static void leaks(void **state)
{
	struct hal_bk_partition_desc d = rectangle(0, 0, 0, 1, 2);
	void *p, *m;

	(void)state;
	OK(open_broken("none", &dev));
	t = dev->table;
	OK(t->cold.partition_create(dev->bk, &d, &p));
	OK(t->cold.mem_alloc(dev->bk, p, 8, &first, 0, &m));
	OK(t->hot.resize(dev->bk, p, &d, 9));
	assert_int_equal(hal_close(dev), -EPROTO);
	assert_non_null(
		strstr(hal_last_error(), "close: 2 object(s) still alive: partition 0"));
	assert_true(reported("alive: partition 0, made at test_validate+0x"));
	assert_true(reported("alive: buffer 0 of partition 0, made at"));
	assert_true(
		reported("close: 1 command(s), suspend(s) or move(s) have not ended"));
	free(m);
	free(p);
}

/* All are counted, of which 100 are listed. */
static void many_leaks(void **state)
{
	enum { BUFFERS = 120 };
	struct hal_bk_partition_desc d = rectangle(0, 0, 0, 1, 2);
	void *p, *m[BUFFERS];

	(void)state;
	OK(open_broken("none", &dev));
	t = dev->table;
	OK(t->cold.partition_create(dev->bk, &d, &p));
	for (int i = 0; i < BUFFERS; i++)
		OK(t->cold.mem_alloc(dev->bk, p, 8, &first, 0, &m[i]));
	assert_int_equal(hal_close(dev), -EPROTO);
	assert_non_null(strstr(hal_last_error(),
			       "close: 121 object(s) still alive: partition 0"));
	assert_true(reported("alive: buffer 98 of partition 0, made at"));
	assert_true(reported("alive: 21 more object(s)"));
	assert_false(reported("alive: buffer 99"));
	for (int i = 0; i < BUFFERS; i++)
		free(m[i]);
	free(p);
}

/* ---- options ---------------------------------------------------------------------- */

static struct hal_option_info lookup(const char *const *opts, const char *key)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);

	for (uint32_t i = 0;; i++) {
		OK(scan_option(i, opts, &o));
		if (strcmp(o.section, "layers") == 0 && strcmp(o.key, key) == 0)
			return o;
	}
}

/* Asked for by a target, an option, the environment; listed with where from. */
static void ways(void **state)
{
	const char *const opts[] = {"hal.plugins=" BROKEN_PLUGIN,
				    "layers.fault=submit:3:EIO", NULL};

	(void)state;
	assert_string_equal(lookup(opts, "fault").value, "submit:3:EIO");
	assert_string_equal(lookup(NULL, "validate").source, "default");
	OK(hal_open("broken?layers.validate=1&break=none", NULL, &dev));
	assert_non_null(dev->opened->layers);
	assert_string_equal(dev->opened->layers->at[0].type->name, "validate");
	OK(hal_close(dev));
	assert_int_equal(setenv("HAL_LAYERS_VALIDATE", "yes", 1), 0);
	OK(hal_open("broken", opts, &dev));
	assert_int_equal(dev->opened->layers->count, 2);
	assert_string_equal(dev->opened->layers->at[1].type->name, "fault");
	OK(hal_close(dev));
	assert_string_equal(lookup(NULL, "validate").source,
			    "environment HAL_LAYERS_VALIDATE");
	assert_int_equal(unsetenv("HAL_LAYERS_VALIDATE"), 0);
	assert_int_equal(hal_open("broken?layers.speed=1", NULL, &dev), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "[layers] has no option speed"));
	assert_int_equal(hal_open("broken?layers.validate=perhaps", NULL, &dev), -EINVAL);
	assert_int_equal(
		hal_open("broken?layers.validate=1&layers.report=/none/x", NULL, &dev),
		-ENOENT);
	assert_non_null(strstr(hal_last_error(), "[layers] report: cannot open /none/x"));
}

#define CORE_TEST(name) cmocka_unit_test_setup_teardown(name, core_begin, core_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backend_is_wrong),
		cmocka_unit_test(off),
		cmocka_unit_test(living),
		CORE_TEST(handles_foreign),
		CORE_TEST(handles_dead),
		CORE_TEST(partitions),
		CORE_TEST(memory),
		CORE_TEST(commands),
		CORE_TEST(unbound),
		CORE_TEST(in_flight),
		CORE_TEST(suspended),
		CORE_TEST(failed),
		CORE_TEST(moves),
		CORE_TEST(info),
		CORE_TEST(time_passes),
		cmocka_unit_test(lost),
		cmocka_unit_test(leaks),
		cmocka_unit_test(many_leaks),
		cmocka_unit_test(ways),
	};

	return cmocka_run_group_tests(tests, make_report, remove_report);
}
