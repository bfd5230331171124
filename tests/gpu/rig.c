/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is driven through its backend's table; see rig.h. */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void rig_begin(struct rig *r, enum rig_how how)
{
	rig_face.stand_in()->reset();
	rig_open(r, how);
}

void rig_open(struct rig *r, enum rig_how how)
{
	const struct hal_backend *b = rig_face.backend;
	const uint16_t units = rig_face.has[how] ? rig_face.has[how] : 1;
	const struct hal_bk_partition_desc desc = {
		.units = units, .rows = 1, .cols = units};
	size_t size;
	void *image = rig_face.image(rig_face.kernels, 2, 1, &size);

	memset(r, 0, sizeof(*r));
	if (b->cold.open(rig_face.how[how], rig_face.device, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	if (b->cold.program_load(r->dev, image, size, &r->prog))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, 0, &r->info, &r->work), 0);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, 1, &r->info, &r->iota), 0);
	assert_int_equal(
		b->cold.mem_alloc(r->dev, r->part, 8 * RIG_BLOCKS, NULL, 0, &r->mem), 0);
	assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, &r->queue), 0);
	free(image);
}

static void rig_clean(void)
{
	const char *text = "";

	if (rig_face.stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(rig_face.stand_in()->live(), 0);
}

void rig_put_away(struct rig *r)
{
	const struct hal_backend *b = rig_face.backend;

	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
}

void rig_end(struct rig *r)
{
	rig_put_away(r);
	rig_clean();
}

/* work: adds 1 to the first word, of each block; iota: writes base + i to word i. */
int rig_launch(struct rig *r, void *kernel, uint64_t scalar, uint32_t groups,
	       struct hal_bk_cmd *cmd)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg *a = r->args[r->launches++ % 4];

	a[0] = (struct hal_bk_arg){.mem = r->mem, .bytes = 8 * RIG_BLOCKS};
	a[1] = (struct hal_bk_arg){.value = scalar};
	*cmd = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
				   .flags = rig_face.flags,
				   .cookie = r->launches,
				   .launch = {.kernel = kernel,
					      .args = a,
					      .arg_count = 2,
					      .groups = {groups, 1, 1}}};
	return b->hot.submit(r->dev, r->queue, cmd);
}

void rig_zero(struct rig *r)
{
	const struct hal_backend *b = rig_face.backend;
	static const uint32_t none[2 * RIG_BLOCKS];

	assert_int_equal(b->cold.mem_write(r->dev, r->mem, 0, none, sizeof(none)), 0);
}

uint32_t rig_word(struct rig *r, uint32_t i)
{
	const struct hal_backend *b = rig_face.backend;
	uint32_t v;

	assert_int_equal(b->cold.mem_read(r->dev, r->mem, 4 * i, &v, 4), 0);
	return v;
}

/* Lets so much time pass; how many commands ended. */
uint32_t rig_run_for(struct rig *r, uint64_t ns)
{
	const struct hal_backend *b = rig_face.backend;
	const uint64_t until = b->hot.now(r->dev) + ns;
	struct hal_bk_event ev;
	uint32_t n = 0;

	while (b->hot.now(r->dev) < until) {
		const int got = b->hot.poll(r->dev, until, &ev, 1);

		assert_true(got >= 0);
		if (got)
			assert_int_equal(ev.kind, HAL_BK_DONE);
		n += (uint32_t)got;
	}
	return n;
}

/* Suspends by FOLD; how many ended before it was quiet. */
uint32_t rig_stop(struct rig *r, struct hal_bk_event *quiet)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	uint32_t n = 0;

	assert_int_equal(b->hot.suspend(r->dev, r->queue, HAL_SUSPEND_FOLD, 77), 0);
	for (;;) {
		assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
		if (ev.kind == HAL_BK_QUIET)
			break;
		assert_int_equal(ev.status, 0);
		n++;
	}
	assert_int_equal(ev.cookie, 77);
	if (quiet)
		*quiet = ev;
	return n;
}

uint32_t rig_finish(struct rig *r)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	uint32_t n = 0;

	while (b->hot.poll(r->dev, UINT64_MAX, &ev, 1) == 1) {
		assert_int_equal(ev.kind, HAL_BK_DONE);
		assert_int_equal(ev.status, 0);
		n++;
	}
	return n;
}
