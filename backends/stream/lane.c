/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - copy between host memory and a device on a stream of its own. */
#include "lane.h"

#include <errno.h>
#include <string.h>

#define NO_STAGE   STREAM_LANE_STAGES
#define FILL_EVENT STREAM_LANE_STAGES
/* A fill of so many bytes is waited for before the next one: other threads' copies come
 * between. */
#define FILL_BYTES (UINT64_C(1) << 28)

void stream_lane_init(struct stream_lane *l, const struct stream_lane_ops *ops,
		      void *device)
{
	l->ops = ops;
	l->device = device;
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_cond_init(&l->freed, NULL);
}

void stream_lane_stages(struct stream_lane *l, void *memory)
{
	uint32_t i;

	for (i = 0; i < STREAM_LANE_STAGES; i++)
		l->stages[i].memory = (char *)memory + i * STREAM_LANE_PIECE;
}

void stream_lane_fini(struct stream_lane *l)
{
	pthread_cond_destroy(&l->freed);
	pthread_mutex_destroy(&l->lock);
}

/* ---- stages ------------------------------------------------------------------------ */

/* Return a stage that no thread holds, or NO_STAGE. */
static uint32_t free_stage(const struct stream_lane *l)
{
	uint32_t i, at;

	for (i = 0; i < STREAM_LANE_STAGES; i++) {
		at = (l->next + i) % STREAM_LANE_STAGES;
		if (!l->stages[at].held)
			return at;
	}
	return NO_STAGE;
}

/* Hold a stage and return it.  Without may_wait return NO_STAGE if none is free or
 * another thread waits for one: a thread that holds a stage must not wait for another. */
static uint32_t take(struct stream_lane *l, bool may_wait)
{
	uint32_t stage = NO_STAGE;
	uint64_t ticket;

	pthread_mutex_lock(&l->lock);
	if (may_wait) {
		ticket = l->asked++;
		while (l->served != ticket || (stage = free_stage(l)) == NO_STAGE)
			(void)pthread_cond_wait(&l->freed, &l->lock);
		l->served++;
		pthread_cond_broadcast(&l->freed);
	} else if (l->served == l->asked) {
		stage = free_stage(l);
	}
	if (stage != NO_STAGE) {
		l->stages[stage].held = true;
		l->next = (stage + 1) % STREAM_LANE_STAGES;
	}
	pthread_mutex_unlock(&l->lock);
	return stage;
}

static void release(struct stream_lane *l, uint32_t stage)
{
	pthread_mutex_lock(&l->lock);
	l->stages[stage].held = false;
	pthread_cond_broadcast(&l->freed);
	pthread_mutex_unlock(&l->lock);
}

/* Wait until the device has copied what the stage was last used for. */
static int finish(struct stream_lane *l, uint32_t stage)
{
	struct stream_lane_stage *s = &l->stages[stage];
	int err = s->copying ? l->ops->wait(l->device, stage) : 0;

	s->copying = false;
	return err;
}

/* Submit a copy of what is in, or is to be in, the stage. */
static int begin(struct stream_lane *l, uint32_t stage, uint64_t to, uint64_t from,
		 uint64_t bytes)
{
	int err = l->ops->copy(l->device, to, from, bytes);

	if (err)
		return err;
	l->stages[stage].copying = true;
	return l->ops->record(l->device, stage);
}

/* Return err, after the stream is empty if err is not 0. */
static int settle(const struct stream_lane *l, int err)
{
	if (err)
		l->ops->drain(l->device);
	return err;
}

static uint64_t piece_at(uint64_t at, uint64_t bytes)
{
	return bytes - at < STREAM_LANE_PIECE ? bytes - at : STREAM_LANE_PIECE;
}

static uint64_t address_of(const struct stream_lane *l, uint32_t stage)
{
	return (uintptr_t)l->stages[stage].memory;
}

/* ---- copies ------------------------------------------------------------------------ */

/* from NULL: zeros. */
static int write_piece(struct stream_lane *l, uint32_t stage, uint64_t address,
		       const char *from, uint64_t bytes)
{
	int err = finish(l, stage);

	if (err)
		return err;
	if (from)
		memcpy(l->stages[stage].memory, from, bytes);
	else
		memset(l->stages[stage].memory, 0, bytes);
	return begin(l, stage, address, address_of(l, stage), bytes);
}

/* data NULL: zeros. */
static int write_all(struct stream_lane *l, uint64_t address, const char *data,
		     uint64_t bytes)
{
	uint32_t stage = NO_STAGE;
	uint64_t at, n;
	int err = 0;

	for (at = 0; !err && at < bytes; at += n) {
		n = piece_at(at, bytes);
		stage = take(l, true);
		err = write_piece(l, stage, address + at, data ? data + at : NULL, n);
		if (err)
			l->ops->drain(l->device); /* before another thread has it */
		release(l, stage);
	}
	/* The last piece is the last in the stream.  Its event may have been recorded
	 * again for another thread's piece, which comes after it. */
	if (!err && stage != NO_STAGE)
		err = settle(l, l->ops->wait(l->device, stage));
	return err;
}

int stream_lane_write(struct stream_lane *l, uint64_t address, const void *data,
		      uint64_t bytes)
{
	return write_all(l, address, data, bytes);
}

/* Submit the piece at offset at, into the stage. */
static int read_begin(struct stream_lane *l, uint32_t stage, uint64_t address,
		      uint64_t bytes)
{
	int err = finish(l, stage);

	return err ? err : begin(l, stage, address_of(l, stage), address, bytes);
}

static int read_end(struct stream_lane *l, uint32_t stage, char *to, uint64_t bytes)
{
	int err = finish(l, stage);

	if (!err)
		memcpy(to, l->stages[stage].memory, bytes);
	return err;
}

int stream_lane_read(struct stream_lane *l, uint64_t address, void *data, uint64_t bytes)
{
	uint32_t stage = NO_STAGE, next;
	uint64_t at, n;
	int err = 0;

	for (at = 0; !err && at < bytes; at += n) {
		const uint64_t after = at + piece_at(at, bytes);

		n = piece_at(at, bytes);
		if (stage == NO_STAGE) {
			stage = take(l, true);
			err = read_begin(l, stage, address + at, n);
		}
		next = !err && after < bytes ? take(l, false) : NO_STAGE;
		if (next != NO_STAGE)
			err = read_begin(l, next, address + after,
					 piece_at(after, bytes));
		if (!err)
			err = read_end(l, stage, (char *)data + at, n);
		if (err)
			l->ops->drain(l->device); /* before another thread has them */
		release(l, stage);
		if (err && next != NO_STAGE)
			release(l, next);
		stage = next;
	}
	return err;
}

/* Have the device fill. */
static int fill(struct stream_lane *l, uint64_t address, uint64_t bytes)
{
	uint64_t at, n;
	int err = 0;

	for (at = 0; !err && at < bytes; at += n) {
		n = bytes - at < FILL_BYTES ? bytes - at : FILL_BYTES;
		err = l->ops->clear(l->device, address + at, n);
		if (!err)
			err = l->ops->record(l->device, FILL_EVENT);
		if (!err)
			err = l->ops->wait(l->device, FILL_EVENT);
	}
	return settle(l, err);
}

int stream_lane_clear(struct stream_lane *l, uint64_t address, uint64_t bytes)
{
	const uint64_t words = bytes > STREAM_LANE_PIECE ? bytes / 4 * 4 : 0;
	int err = fill(l, address, words);

	if (err == -EAGAIN)
		return write_all(l, address, NULL, bytes);
	return err ? err : write_all(l, address + words, NULL, bytes - words);
}
