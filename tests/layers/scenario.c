/* SPDX-License-Identifier: Apache-2.0 */
/* scenario.c - see scenario.h; the kernels are those of the conformance suite. */
#include "scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../conformance/conformance.h"

/* ---- programs --------------------------------------------------------------------- */

static struct {
	const char *backend;
	void *image;
	size_t size;
	const struct conf_pack *pack;
} programs[4];
static unsigned int program_count;

void conf_register(const struct conf_pack *pack)
{
	programs[program_count].backend = pack->backend;
	programs[program_count++].pack = pack;
}

int scenario_begin(void)
{
	for (unsigned int i = 0; i < program_count; i++)
		if (programs[i].pack->image(&programs[i].image, &programs[i].size) != 0)
			return -1;
	return 0;
}

void scenario_end(void)
{
	for (unsigned int i = 0; i < program_count; i++)
		programs[i].pack->free(programs[i].image);
}

/* ---- steps ------------------------------------------------------------------------ */

struct world {
	struct scenario *s;
	struct hal_device *dev;
	struct hal_partition *part[2];
	struct hal_queue *queue[3];
	struct hal_buffer *buf[4], *host[2];
	struct hal_program *prog;
	struct hal_timeline *line;
	struct hal_kernel *copy, *spin, *wild;
	int fd;
	int called;
};

static int note(struct world *w, const char *step, int err)
{
	if (err < 0 && w->s->err == 0) {
		w->s->err = err;
		w->s->step = step;
		snprintf(w->s->text, sizeof(w->s->text), "%s", hal_last_error());
	}
	return err < 0;
}

#define STEP_(call)                                                                      \
	do {                                                                             \
		if (note(w, #call, (call)))                                              \
			return -1;                                                       \
	} while (0)

static int make_partitions(struct world *w)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = 4;
	snprintf(d.name, sizeof(d.name), "first");
	STEP_(hal_partition_create(w->dev, &d, &w->part[0]));
	STEP_(hal_partition_create_named(w->dev, "second", &w->part[1]));
	return 0;
}

static int make_objects(struct world *w)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	char *bytes;
	void *address;

	bd.bytes = 8192;
	for (int i = 0; i < 4; i++)
		STEP_(hal_buffer_create(w->part[i / 3], &bd, &w->buf[i]));
	for (int i = 0; i < 3; i++)
		STEP_(hal_queue_create(w->part[i / 2], &qd, &w->queue[i]));
	STEP_(hal_timeline_create(w->dev, &w->line));
	bytes = calloc(1, 4096);
	if (bytes == NULL)
		return note(w, "calloc", -ENOMEM), -1;
	memset(bytes, 0x5a, 4096);
	if (note(w, "hal_buffer_write", hal_buffer_write(w->buf[0], 0, bytes, 4096)) ||
	    note(w, "hal_buffer_read", hal_buffer_read(w->buf[0], 0, bytes, 4096))) {
		free(bytes);
		return -1;
	}
	free(bytes);
	/* A buffer of pages apart is not mappable everywhere; that is an answer, too. */
	if (hal_buffer_map(w->buf[0], &address) == 0)
		STEP_(hal_buffer_unmap(w->buf[0]));
	return 0;
}

static int load(struct world *w)
{
	for (unsigned int i = 0; i < program_count; i++) {
		size_t n = strlen(programs[i].backend);

		if (strncmp(w->s->target, programs[i].backend, n) != 0 ||
		    (w->s->target[n] != '\0' && strchr(":?", w->s->target[n]) == NULL))
			continue;
		STEP_(hal_program_load(w->dev, programs[i].image, programs[i].size,
				       &w->prog));
	}
	STEP_(hal_kernel_find(w->prog, "copy", &w->copy));
	STEP_(hal_kernel_find(w->prog, "spin", &w->spin));
	STEP_(hal_kernel_find(w->prog, "wild", &w->wild));
	return 0;
}

static int submit(struct world *w, struct hal_queue *q, const struct hal_cmd *cmds,
		  uint32_t n, const struct hal_point *wait,
		  const struct hal_point *signal, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = n;
	d.waits = wait;
	d.wait_count = wait != NULL;
	d.signals = signal;
	d.signal_count = signal != NULL;
	STEP_(hal_submit(q, &d, done));
	return 0;
}

static void called(void *user)
{
	((struct world *)user)->called++;
}

/* Launches, host calls and waits across two partitions; one that fits no ring. */
static int work(struct world *w)
{
	struct hal_arg args[2] = {{.buffer = w->buf[1], .bytes = 4096},
				  {.buffer = w->buf[0], .bytes = 4096}};
	struct hal_arg two[2] = {{.buffer = w->buf[3], .bytes = 4096},
				 {.buffer = w->buf[3], .offset = 4096, .bytes = 4096}};
	struct hal_point gate = {w->line, 1}, point[3];
	struct hal_cmd cmds[12];

	cmds[0] = hal_cmd_launch(w->copy, args, 2);
	cmds[1] = hal_cmd_host(called, w);
	cmds[2] = hal_cmd_timestamp(w->buf[2], 0);
	if (submit(w, w->queue[0], cmds, 3, NULL, &gate, &point[0]) != 0)
		return -1;
	cmds[0] = hal_cmd_launch(w->copy, two, 2);
	if (submit(w, w->queue[2], cmds, 1, &gate, NULL, &point[1]) != 0)
		return -1;
	for (int i = 0; i < 12; i++)
		cmds[i] = i % 2 != 0 ? hal_cmd_barrier()
				     : hal_cmd_fill(w->buf[2], 64, 64, 7);
	if (submit(w, w->queue[1], cmds, 12, NULL, NULL, &point[2]) != 0)
		return -1;
	STEP_(hal_device_poll(w->dev, 0));
	STEP_(w->fd = hal_point_open_fd(&point[1]));
	STEP_(hal_wait(point, 3, HAL_WAIT_ANY, HAL_FOREVER));
	STEP_(hal_wait(point, 3, 0, HAL_FOREVER));
	return w->called == 1 ? 0 : (note(w, "host callback", -EIO), -1);
}

/* Host memory of both kinds, copied beside a queue that computes, and behind it. */
static int copy_host(struct world *w)
{
	static char memory[4096];
	struct hal_arg args[2] = {{.buffer = w->buf[1], .bytes = 4096},
				  {.buffer = w->buf[0], .bytes = 4096}};
	struct hal_cmd cmds[3];
	struct hal_point done;
	void *address;

	STEP_(hal_host_alloc(w->part[0], 8192, &w->host[0], &address));
	STEP_(hal_host_register(w->part[0], memory, sizeof(memory), &w->host[1]));
	memset(address, 7, 8192);
	memset(memory, 0, sizeof(memory));
	cmds[0] = hal_cmd_write(w->buf[0], 0, w->host[0], 0, 4096);
	cmds[1] = hal_cmd_launch(w->copy, args, 2);
	cmds[2] = hal_cmd_read(w->host[1], 0, w->buf[1], 0, 4096);
	if (submit(w, w->queue[1], cmds, 3, NULL, NULL, &done) != 0)
		return -1;
	STEP_(hal_wait(&done, 1, 0, HAL_FOREVER));
	STEP_(hal_buffer_destroy(w->host[1]));
	w->host[1] = NULL;
	return memcmp(memory, address, 4096) == 0 ? 0 : (note(w, "bytes", -EIO), -1);
}

/* Suspended in the middle, moved, destroyed while in use. */
static int disturb(struct world *w)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_arg arg = {.buffer = w->buf[2], .bytes = 64};
	struct hal_arg args[2] = {{.buffer = w->buf[1], .bytes = 4096},
				  {.buffer = w->buf[0], .bytes = 4096}};
	struct hal_cmd cmd = hal_cmd_launch(w->spin, &arg, 1);
	struct hal_point quiet, done, moved;

	cmd.flags |= HAL_CMD_REPLAYABLE;
	if (submit(w, w->queue[0], &cmd, 1, NULL, NULL, &done) != 0)
		return -1;
	STEP_(hal_device_poll(w->dev, 1000));
	STEP_(hal_queue_suspend(w->queue[0], HAL_SUSPEND_KILL, &quiet));
	STEP_(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	STEP_(hal_queue_resume(w->queue[0]));
	d.units_floor = 2;
	STEP_(hal_partition_resize(w->part[1], &d, &moved));
	STEP_(hal_wait(&moved, 1, 0, HAL_FOREVER));
	STEP_(hal_wait(&done, 1, 0, HAL_FOREVER));
	cmd = hal_cmd_launch(w->copy, args, 2);
	if (submit(w, w->queue[1], &cmd, 1, NULL, NULL, &done) != 0)
		return -1;
	STEP_(hal_buffer_destroy(w->buf[1]));
	w->buf[1] = NULL;
	STEP_(hal_wait(&done, 1, 0, HAL_FOREVER));
	return 0;
}

/* The program faults, which is its right; and so does one behind it. */
static int fault(struct world *w)
{
	struct hal_arg arg = {.buffer = w->buf[3], .bytes = 64};
	struct hal_cmd cmds[2];
	struct hal_point done;
	int err;

	cmds[0] = hal_cmd_launch(w->wild, &arg, 1);
	cmds[1] = hal_cmd_fill(w->buf[3], 0, 64, 1);
	if (submit(w, w->queue[2], cmds, 2, NULL, NULL, &done) != 0)
		return -1;
	STEP_(hal_program_unload(w->prog));
	w->prog = NULL;
	err = hal_wait(&done, 1, 0, HAL_FOREVER);
	if (err != -EIO)
		note(w, "hal_wait for what faults", err < 0 ? err : -EPROTO);
	return err == -EIO ? 0 : -1;
}

static int ask(struct world *w)
{
	struct hal_partition_info pi = HAL_INIT(hal_partition_info);
	struct hal_device_info di = HAL_INIT(hal_device_info);
	struct hal_stats st = HAL_INIT(hal_stats);

	STEP_(hal_device_get_info(w->dev, &di));
	STEP_(hal_device_get_stats(w->dev, &st));
	STEP_(hal_partition_get_info(w->part[0], &pi));
	STEP_(hal_queue_get_stats(w->queue[0], &st));
	return 0;
}

static int all(struct world *w)
{
	STEP_(hal_trace_start(w->dev, "/dev/null"));
	if (make_partitions(w) != 0 || make_objects(w) != 0 || load(w) != 0 ||
	    ask(w) != 0 || work(w) != 0 || copy_host(w) != 0 || disturb(w) != 0 ||
	    fault(w) != 0)
		return -1;
	STEP_(hal_trace_stop(w->dev));
	return 0;
}

/* ---- the end ---------------------------------------------------------------------- */

/* What failed once may be asked for again. */
#define PUT_AWAY(call)                                                                   \
	for (int try_ = 0; try_ < 3 && (call) < 0; try_++)                               \
	(void)hal_device_poll(w->dev, 1000000000)

static void put_away(struct world *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	/* Nobody else will signal it. */
	if (w->line != NULL && hal_timeline_get_value(w->line, NULL) == 0)
		(void)hal_timeline_signal(w->line, 1);
	for (int i = 0; i < 3; i++) {
		(void)hal_queue_resume(w->queue[i]);
		(void)hal_device_poll(w->dev, 1000000000);
		PUT_AWAY(hal_queue_destroy(w->queue[i]));
	}
	PUT_AWAY(hal_timeline_destroy(w->line));
	for (int i = 0; i < 4; i++)
		PUT_AWAY(hal_buffer_destroy(w->buf[i]));
	for (int i = 0; i < 2; i++)
		PUT_AWAY(hal_buffer_destroy(w->host[i]));
	PUT_AWAY(hal_program_unload(w->prog));
	for (int i = 0; i < 2; i++)
		PUT_AWAY(hal_partition_destroy(w->part[i]));
}

/* Devices that could not be closed, which is what somebody wanted to see: so that they
 * are not lost without a trace. */
static struct hal_device *stuck[64];
static unsigned int stuck_count;

void scenario_run(struct scenario *s)
{
	struct world w = {.s = s, .fd = -1};

	s->err = 0;
	s->step = NULL;
	s->text[0] = '\0';
	s->close_err = 0;
	s->close_text[0] = '\0';
	if (note(&w, "hal_open", hal_open(s->target, s->options, &w.dev)))
		return;
	(void)all(&w);
	put_away(&w);
	s->close_err = hal_close(w.dev);
	if (s->close_err == -EBUSY && stuck_count < 64)
		stuck[stuck_count++] = w.dev;
	snprintf(s->close_text, sizeof(s->close_text), "%s",
		 s->close_err != 0 ? hal_last_error() : "");
}
