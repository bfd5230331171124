/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room_random.c - tenants that come, go and grow by chance, some of whom are moved to
 * make room for others, with work in all of them.
 *
 *   room_random TARGET SEEDS STEPS MOST JOURNAL
 *
 * After each step: partitions do not overlap and have the units they were given; who
 * asked for his place is there; at most MOST others have moved, and only for somebody
 * who came or grew.  All work ends well, once, with the bytes that it has anywhere; the
 * accounts add up; and the journal of each seed is replayed, decision by decision.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/replay.h>
#include <hal/hal.h>

#include "../conformance/conformance.h"
#undef OK
#undef CHECK

enum { TENANTS = 12, PACKS = 4, UNITS = 4096 };

struct tenant {
	struct hal_partition *part; /* NULL: nobody */
	struct hal_queue *queue;
	struct hal_buffer *buf[3];
	struct hal_partition_info at;
	struct hal_point last;
	uint64_t submitted;
	bool pinned;
};

struct world {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *prog;
	struct hal_kernel *gemm;
	struct tenant tenants[TENANTS];
	uint64_t random, seed, submitted;
	uint32_t step, most;
	/* Of all seeds. */
	uint64_t made, refused, moved, moved_at_work, verified, together;
};

static const struct conf_pack *packs[PACKS];

void conf_register(const struct conf_pack *p)
{
	for (int i = 0; i < PACKS; i++)
		if (packs[i] == NULL) {
			packs[i] = p;
			return;
		}
}

static void check(const struct world *w, bool good, const char *what)
{
	if (good)
		return;
	printf("seed %llu, step %u: not so: %s (%s)\n", (unsigned long long)w->seed,
	       w->step, what, hal_last_error());
	exit(1);
}
#define CHECK(w, cond) check((w), (cond), #cond)
#define OK(w, call)    check((w), (call) == 0, #call)

static uint32_t pick(struct world *w, uint32_t from, uint32_t to)
{
	w->random =
		w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return from + (uint32_t)((w->random >> 33) % (to - from + 1));
}

/* ---- work -------------------------------------------------------------------------- */

static void load(struct world *w)
{
	const struct conf_pack *pack = NULL;
	void *image;
	size_t size;

	for (int i = 0; i < PACKS && packs[i] != NULL; i++)
		if (strcmp(packs[i]->backend, w->info.backend) == 0)
			pack = packs[i];
	CHECK(w, pack != NULL);
	OK(w, pack->image(&image, &size));
	OK(w, hal_program_load(w->dev, image, size, &w->prog));
	pack->free(image);
	OK(w, hal_kernel_find(w->prog, "gemm", &w->gemm));
}

static void work(struct world *w, struct tenant *t)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_arg arg[3];
	struct hal_cmd cmd;
	int err;

	for (int i = 0; i < 3; i++)
		arg[i] = (struct hal_arg){.buffer = t->buf[i], .bytes = CONF_GEMM_BYTES};
	cmd = hal_cmd_launch(w->gemm, arg, 3);
	d.cmds = &cmd;
	d.cmd_count = 1;
	err = hal_submit(t->queue, &d, &t->last);
	if (err == -EAGAIN)
		return;
	OK(w, err);
	t->submitted++;
	w->submitted++;
}

static void equip(struct world *w, struct tenant *t)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	uint8_t bytes[CONF_GEMM_BYTES];

	OK(w, hal_queue_create(t->part, &q, &t->queue));
	b.bytes = CONF_GEMM_BYTES;
	for (int i = 0; i < 3; i++) {
		OK(w, hal_buffer_create(t->part, &b, &t->buf[i]));
		for (uint32_t n = 0; n < sizeof(bytes); n++)
			bytes[n] = (uint8_t)pick(w, 0, 255);
		OK(w, hal_buffer_write(t->buf[i], 0, bytes, sizeof(bytes)));
	}
	t->submitted = 0;
}

/* All of its work has ended, well, and D is what anybody would have computed. */
static void verify(struct world *w, struct tenant *t)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	int8_t a[CONF_GEMM_BYTES], b[CONF_GEMM_BYTES], d[CONF_GEMM_BYTES],
		want[CONF_GEMM_BYTES];

	if (t->submitted == 0)
		return;
	OK(w, hal_wait(&t->last, 1, 0, HAL_FOREVER));
	OK(w, hal_buffer_read(t->buf[0], 0, d, sizeof(d)));
	OK(w, hal_buffer_read(t->buf[1], 0, a, sizeof(a)));
	OK(w, hal_buffer_read(t->buf[2], 0, b, sizeof(b)));
	conf_oracle_gemm(want, a, b);
	CHECK(w, memcmp(want, d, sizeof(d)) == 0);
	OK(w, hal_queue_get_stats(t->queue, &s));
	CHECK(w, s.submitted == t->submitted);
	CHECK(w, s.completed == t->submitted);
	CHECK(w, s.failed == 0 && s.dropped == 0);
	w->verified++;
}

static void leave(struct world *w, struct tenant *t)
{
	if (t->part == NULL)
		return;
	verify(w, t);
	OK(w, hal_queue_destroy(t->queue));
	for (int i = 0; i < 3; i++)
		OK(w, hal_buffer_destroy(t->buf[i]));
	OK(w, hal_partition_destroy(t->part));
	memset(t, 0, sizeof(*t));
}

/* ---- what holds -------------------------------------------------------------------- */

static bool same_place(const struct hal_partition_info *a,
		       const struct hal_partition_info *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

static bool at_work(struct world *w, struct tenant *t)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(w, hal_queue_get_stats(t->queue, &s));
	return s.completed < t->submitted;
}

/* asked: who asked for units in this step, and may have others moved. */
static void look(struct world *w, const struct tenant *asked)
{
	static uint8_t held[UNITS];
	uint32_t moved = 0;

	memset(held, 0, sizeof(held));
	for (struct tenant *t = w->tenants; t < w->tenants + TENANTS; t++) {
		struct hal_partition_info i = HAL_INIT(hal_partition_info);

		if (t->part == NULL)
			continue;
		OK(w, hal_partition_get_info(t->part, &i));
		CHECK(w, i.units == t->at.units);
		CHECK(w, (uint32_t)i.rows * i.cols == i.units);
		CHECK(w, i.row + i.rows <= w->info.unit_rows);
		CHECK(w, i.col + i.cols <= w->info.unit_cols);
		for (uint32_t row = i.row; row < (uint32_t)i.row + i.rows; row++)
			for (uint32_t col = i.col; col < (uint32_t)i.col + i.cols; col++)
				CHECK(w, held[row * w->info.unit_cols + col]++ == 0);
		if (same_place(&i, &t->at) || t == asked)
			continue;
		CHECK(w, asked != NULL && !t->pinned);
		t->at = i;
		moved++;
		w->moved_at_work += at_work(w, t);
	}
	CHECK(w, moved <= w->most);
	w->moved += moved;
}

/* ---- what they do ------------------------------------------------------------------ */

/* A count of units, or now and then a place. */
static bool describe(struct world *w, struct hal_partition_desc *d)
{
	uint32_t rows = w->info.unit_rows, cols = w->info.unit_cols;
	uint32_t high = pick(w, 1, rows > 1 ? rows / 2 : 1), wide = pick(w, 1, cols / 3);

	*d = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	if (pick(w, 0, 5) != 0) {
		d->units_floor = high * wide;
		return false;
	}
	d->rows = (uint16_t)high;
	d->cols = (uint16_t)wide;
	d->row = (uint16_t)pick(w, 0, rows - high);
	d->col = (uint16_t)pick(w, 0, cols - wide);
	return true;
}

static void come(struct world *w, struct tenant *t)
{
	struct hal_partition_desc d;
	bool pinned = describe(w, &d);
	int err;

	d.memory_bytes = 1 << 20;
	err = hal_partition_create(w->dev, &d, &t->part);
	w->made += err == 0;
	w->refused += err != 0;
	if (err != 0) {
		CHECK(w, err == -ENOSPC);
		t->part = NULL;
	} else {
		t->pinned = pinned;
		t->at = (struct hal_partition_info)HAL_INIT(hal_partition_info);
		OK(w, hal_partition_get_info(t->part, &t->at));
		CHECK(w, t->at.units ==
				 (pinned ? (uint32_t)d.rows * d.cols : d.units_floor));
		CHECK(w, !pinned || (t->at.row == d.row && t->at.col == d.col));
		equip(w, t);
	}
	look(w, t);
}

static void grow(struct world *w, struct tenant *t)
{
	struct hal_partition_desc d;
	bool pinned = describe(w, &d);
	struct hal_point done;
	int err = hal_partition_resize(t->part, &d, &done);

	w->made += err == 0;
	w->refused += err != 0;
	if (err == 0) {
		OK(w, hal_wait(&done, 1, 0, HAL_FOREVER));
		t->pinned = pinned;
		OK(w, hal_partition_get_info(t->part, &t->at));
		CHECK(w, t->at.units ==
				 (pinned ? (uint32_t)d.rows * d.cols : d.units_floor));
	} else {
		/* Busy: of a device that only moves what is quiet. */
		CHECK(w, err == -ENOSPC || (err == -EBUSY &&
					    (w->info.caps & HAL_CAP_RESIZE_LIVE) == 0));
	}
	look(w, t);
}

/* Exchange the places of some tenants, or give one a count of units on the way. */
static void exchange(struct world *w)
{
	struct tenant *who[TENANTS];
	struct hal_partition *parts[TENANTS];
	struct hal_partition_desc d[TENANTS];
	struct hal_point done;
	uint32_t n = 0;
	int err;

	for (uint32_t i = 0; i < TENANTS; i++)
		if (w->tenants[i].part != NULL && pick(w, 0, 1) != 0)
			who[n++] = &w->tenants[i];
	if (n < 2)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct hal_partition_info *to = &who[(i + 1) % n]->at;

		parts[i] = who[i]->part;
		d[i] = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
		if (pick(w, 0, 3) == 0) {
			d[i].units_floor = to->units;
			d[i].units_ceiling = to->units;
			continue;
		}
		d[i].row = to->row;
		d[i].col = to->col;
		d[i].rows = to->rows;
		d[i].cols = to->cols;
	}
	err = hal_partitions_move(parts, d, n, &done);
	if (err == 0) {
		OK(w, hal_wait(&done, 1, 0, HAL_FOREVER));
		w->together++;
	} else {
		CHECK(w, err == -ENOSPC || (err == -EBUSY &&
					    (w->info.caps & HAL_CAP_RESIZE_LIVE) == 0));
	}
	for (uint32_t i = 0; i < n && err == 0; i++) {
		who[i]->pinned = d[i].rows != 0;
		OK(w, hal_partition_get_info(who[i]->part, &who[i]->at));
		CHECK(w, !who[i]->pinned || (who[i]->at.row == d[i].row &&
					     who[i]->at.col == d[i].col &&
					     who[i]->at.rows == d[i].rows));
		CHECK(w, who[i]->pinned || who[i]->at.units == d[i].units_floor);
	}
	look(w, NULL);
}

static void step(struct world *w)
{
	struct tenant *t = &w->tenants[pick(w, 0, TENANTS - 1)];
	uint32_t what = pick(w, 0, 9);

	if (pick(w, 0, 15) == 0)
		exchange(w);

	if (t->part == NULL) {
		come(w, t);
	} else if (what == 0) {
		leave(w, t);
		look(w, NULL);
	} else if (what == 1) {
		grow(w, t);
	} else {
		work(w, t);
		look(w, NULL);
	}
	if (pick(w, 0, 1) != 0)
		CHECK(w, hal_device_poll(w->dev, pick(w, 1, 2000)) >= 0);
}

static void replayed(struct world *w, const char *journal)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	OK(w, hal_replay(journal, &i));
	if (i.mismatches != 0)
		printf("%s\n", i.mismatch);
	CHECK(w, i.mismatches == 0);
	CHECK(w, i.decisions >= w->submitted);
}

static void run(struct world *w, const char *target, uint32_t steps, const char *journal)
{
	char most[32], path[512];
	const char *options[] = {most, path, NULL};
	struct hal_stats s = HAL_INIT(hal_stats);

	snprintf(most, sizeof(most), "hal.compact=%u", w->most);
	snprintf(path, sizeof(path), "hal.journal=%s", journal);
	memset(w->tenants, 0, sizeof(w->tenants));
	w->random = w->seed;
	w->submitted = 0;
	w->step = 0;
	OK(w, hal_open(target, options, &w->dev));
	w->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	OK(w, hal_device_get_info(w->dev, &w->info));
	CHECK(w, w->info.unit_rows * w->info.unit_cols <= UNITS);
	load(w);
	for (w->step = 1; w->step <= steps; w->step++)
		step(w);
	for (uint32_t i = 0; i < TENANTS; i++)
		leave(w, &w->tenants[i]);
	OK(w, hal_device_get_stats(w->dev, &s));
	CHECK(w, s.submitted == w->submitted && s.completed == w->submitted);
	OK(w, hal_program_unload(w->prog));
	OK(w, hal_close(w->dev));
	replayed(w, journal);
}

int main(int argc, char **argv)
{
	struct world w = {0};
	uint64_t seeds;

	if (argc != 6) {
		fprintf(stderr, "usage: room_random TARGET SEEDS STEPS MOST JOURNAL\n");
		return 2;
	}
	seeds = strtoull(argv[2], NULL, 10);
	w.most = (uint32_t)strtoul(argv[4], NULL, 10);
	for (w.seed = 1; w.seed <= seeds; w.seed++)
		run(&w, argv[1], (uint32_t)strtoul(argv[3], NULL, 10), argv[5]);
	printf("%llu made or resized, %llu refused, %llu moved for others, %llu of them "
	       "at "
	       "work, %llu results, %llu exchanges\n",
	       (unsigned long long)w.made, (unsigned long long)w.refused,
	       (unsigned long long)w.moved, (unsigned long long)w.moved_at_work,
	       (unsigned long long)w.verified, (unsigned long long)w.together);
	/* Else this has tried nothing. */
	return w.moved > seeds && w.verified > seeds && w.together > seeds ? 0 : 1;
}
