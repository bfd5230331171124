/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - how long launches run on a device; see measure.h. */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define RUNS_MAX     64u
#define COPY_BYTES   (UINT64_C(64) << 10)
#define COPIES       16u            /* a submission */
#define AHEAD        8u             /* submissions of the company that wait */
#define SLICE_NS     UINT64_C(5000) /* in which they do not run out */
#define STOP_MOMENTS 4u

/* ---- who runs where ----------------------------------------------------------------- */

static int partition(const struct bench *b, const struct place *place,
		     struct hal_partition **part)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	if ((b->info.caps & HAL_CAP_GRID) != 0) {
		d.rows = (uint16_t)place->rows;
		d.cols = (uint16_t)place->cols;
		d.col = (uint16_t)place->col;
	} else {
		d.units_floor = place->cols;
	}
	return hal_partition_create(b->dev, &d, part) != 0 ? tool_fail_hal() : 0;
}

int seat_open(struct seat *s, const struct bench *b, const struct model *model,
	      const struct place *place)
{
	const struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);

	memset(s, 0, sizeof(*s));
	if (partition(b, place, &s->part) != 0)
		return TOOL_FAILED;
	return service_open(&s->service, b->dev, s->part, &queue, model);
}

int seat_close(struct seat *s)
{
	int err = service_close(&s->service);

	if (err == 0)
		err = hal_partition_destroy(s->part);
	return err != 0 ? tool_fail_hal() : 0;
}

/* Half of a buffer to its other half. */
static int copies_open(struct company *c)
{
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = 2 * COPY_BYTES;
	c->copies = calloc(COPIES, sizeof(*c->copies));
	if (c->copies == NULL)
		return tool_fail("out of memory");
	if (hal_queue_create(c->seat.part, &queue, &c->seat.service.queue) != 0 ||
	    hal_buffer_create(c->seat.part, &d, &c->buffer) != 0)
		return tool_fail_hal();
	for (uint32_t i = 0; i < COPIES; i++)
		c->copies[i] =
			hal_cmd_copy(c->buffer, COPY_BYTES, c->buffer, 0, COPY_BYTES);
	c->desc.cmds = c->copies;
	c->desc.cmd_count = COPIES;
	return 0;
}

int company_open(struct company *c, const struct bench *b, const struct model *model,
		 const struct place *place)
{
	memset(c, 0, sizeof(*c));
	c->desc.size = (uint32_t)sizeof(c->desc);
	if (model == NULL)
		return partition(b, place, &c->seat.part) != 0 ? TOOL_FAILED
							       : copies_open(c);
	if (seat_open(&c->seat, b, model, place) != 0)
		return TOOL_FAILED;
	c->desc.cmds = c->seat.service.cmds;
	c->desc.cmd_count = c->seat.service.cmd_count;
	return 0;
}

/* Behind what it still has to do. */
int company_close(struct company *c)
{
	int rc = 0;

	if (c->last.value != 0 && hal_wait(&c->last, 1, 0, HAL_FOREVER) != 0)
		rc = tool_fail_hal();
	if (hal_buffer_destroy(c->buffer) != 0)
		rc = tool_fail_hal();
	free(c->copies);
	return seat_close(&c->seat) != 0 ? TOOL_FAILED : rc;
}

static int company_feed(struct company *c)
{
	int err = 0;

	while (err == 0 &&
	       (c->last.value == 0 ||
		c->last.value - hal_timeline_get_value(c->last.timeline, NULL) < AHEAD))
		err = hal_submit(c->seat.service.queue, &c->desc, &c->last);
	/* Full: it has enough to do. */
	return err != 0 && (err != -EAGAIN || c->last.value == 0) ? tool_fail_hal() : 0;
}

/* ---- one after the other ------------------------------------------------------------ */

static int submit(const struct seat *s, const struct hal_cmd *cmds, uint32_t count,
		  struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = count;
	return hal_submit(s->service.queue, &d, done) != 0 ? tool_fail_hal() : 0;
}

/* Fed in between, the company never rests. */
static int wait_for(const struct bench *b, struct hal_point done, struct company *c)
{
	int err = 0;

	while (c != NULL && err == 0 &&
	       hal_timeline_get_value(done.timeline, &err) < done.value) {
		if (company_feed(c) != 0)
			return TOOL_FAILED;
		if (hal_device_poll(b->dev, SLICE_NS) < 0)
			return tool_fail_hal();
	}
	return hal_wait(&done, 1, 0, HAL_FOREVER) != 0 ? tool_fail_hal() : 0;
}

static int stats(const struct seat *s, struct hal_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->size = (uint32_t)sizeof(*out);
	return hal_queue_get_stats(s->service.queue, out) != 0 ? tool_fail_hal() : 0;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int measure(const struct bench *b, const struct seat *s, const struct hal_cmd *cmds,
	    uint32_t count, struct company *company, struct timing *out)
{
	uint64_t ns[RUNS_MAX] = {0};
	struct hal_stats before, after;
	struct hal_point done;

	for (uint32_t i = 0; i <= b->runs; i++) {
		if (company != NULL && company_feed(company) != 0)
			return TOOL_FAILED;
		if (stats(s, &before) != 0 || submit(s, cmds, count, &done) != 0 ||
		    wait_for(b, done, company) != 0 || stats(s, &after) != 0)
			return TOOL_FAILED;
		if (i > 0)
			ns[i - 1] = after.busy_ns - before.busy_ns;
		out->bytes = after.bytes_read + after.bytes_written - before.bytes_read -
			     before.bytes_written;
	}
	qsort(ns, b->runs, sizeof(ns[0]), ascending);
	out->ns = ns[b->runs / 2];
	out->spread_ns = ns[b->runs - 1] - ns[0];
	return 0;
}

/* ---- stops -------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int pass_until(const struct bench *b, uint64_t at_ns)
{
	uint64_t now;

	while ((now = hal_device_get_time(b->dev)) < at_ns)
		if (hal_device_poll(b->dev, at_ns - now) < 0)
			return tool_fail_hal();
	return 0;
}

/* Begun, stopped after_ns later, resumed when it is quiet, to its end.  1: the device
 * does not stop it so. */
static int stop_once(const struct bench *b, const struct seat *s,
		     const struct hal_cmd *cmd, uint32_t mode, uint64_t after_ns,
		     uint64_t *took_ns)
{
	uint64_t begin = hal_device_get_time(b->dev);
	struct hal_point done, quiet;
	int err;

	if (submit(s, cmd, 1, &done) != 0 || pass_until(b, begin + after_ns) != 0)
		return TOOL_FAILED;
	err = hal_queue_suspend(s->service.queue, mode, &quiet);
	if (err == 0) {
		err = hal_wait(&quiet, 1, 0, HAL_FOREVER);
		if (err == 0)
			err = hal_queue_resume(s->service.queue);
		if (err != 0)
			return tool_fail_hal();
	} else if (err != -ENOTSUP) {
		return tool_fail_hal();
	}
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return tool_fail_hal();
	*took_ns = hal_device_get_time(b->dev) - begin;
	return err == -ENOTSUP;
}

int measure_stop(const struct bench *b, const struct seat *s, const struct hal_cmd *cmd,
		 uint32_t mode, uint64_t alone_ns, struct stop_cost *out)
{
	struct hal_stats before, after;
	uint64_t took_ns = 0;

	memset(out, 0, sizeof(*out));
	if ((b->info.suspend_modes >> mode & 1) == 0)
		return 0;
	for (uint32_t i = 0; i < STOP_MOMENTS; i++) {
		uint64_t at = alone_ns * (2 * i + 1) / (UINT64_C(2) * STOP_MOMENTS);
		int rc;

		if (stats(s, &before) != 0)
			return TOOL_FAILED;
		rc = stop_once(b, s, cmd, mode, at, &took_ns);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		if (stats(s, &after) != 0)
			return TOOL_FAILED;
		out->quiet_ns =
			larger(out->quiet_ns, after.suspend_ns - before.suspend_ns);
		out->cost_ns =
			larger(out->cost_ns, took_ns > alone_ns ? took_ns - alone_ns : 0);
		out->saved_bytes =
			larger(out->saved_bytes, after.saved_bytes - before.saved_bytes);
	}
	out->possible = true;
	return 0;
}
