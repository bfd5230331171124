/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_inlet.c - any bytes as records of a ring that another process writes: what is
 * taken is valid, nothing reaches the memory of another partition, nothing is left
 * behind.
 *
 * An input is a list of steps of STEP bytes.  Each writes a valid record, and changes it
 * where its second byte says so; some publish what has been written. */
#include "fuzz.h"

#include <stdio.h>

#include "../hald/inlet_world.h"

#include "util/compiler.h"

enum { STEP = 8, VICTIM = 0x5a };

static struct inlet_world w;
static uint64_t taken, refused; /* records */

static void finish(void)
{
	inlet_world_close(&w);
	printf("takes %llu refused %llu\n", U64(taken), U64(refused));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t bytes[BYTES];

	(void)argc;
	(void)argv;
	inlet_world_open(&w, "ref?clock=virtual");
	inlet_bind(&w);
	memset(bytes, VICTIM, sizeof(bytes));
	inlet_must(hal_buffer_write(w.victims, 0, bytes, sizeof(bytes)));
	return atexit(finish);
}

/* Write the record that kind names, with the marks, and return it. */
static struct far_slot *write_record(uint8_t kind, uint8_t marks)
{
	struct far_slot *s;

	switch (kind % 8) {
	case 0:
	case 1:
		return inlet_launch(&w, marks);
	case 2:
		return inlet_fill(&w, marks, kind);
	case 3:
		return inlet_point(&w, FAR_OP_WAIT, marks, 0);
	case 4:
		return inlet_point(&w, FAR_OP_SIGNAL, marks, kind);
	case 5:
		s = inlet_slot(&w, 0);
		s->op = FAR_OP_HEAD;
		s->head.tag = kind;
		return s;
	case 6:
		s = inlet_slot(&w, 0);
		s->op = HAL_OP_COPY;
		s->marks = marks;
		s->copy.dst = handle_of(&w, NAME_BUFFER);
		s->copy.src = handle_of(&w, NAME_OTHER);
		s->copy.bytes = 64;
		return s;
	default:
		s = inlet_slot(&w, 0);
		s->op = HAL_OP_BARRIER;
		s->marks = marks;
		return s;
	}
}

/* Change the record s as a step says. */
static void change(struct far_slot *s, const uint8_t *step)
{
	uint64_t *words = s->words;
	uint32_t at = step[3] % 16;
	uint64_t value = 0;

	switch (step[2] % 6) {
	case 0: /* a bit */
		words[at] ^= UINT64_C(1) << step[4] % 64;
		return;
	case 1: /* a handle */
		words[at] = handle_of(&w, (enum name_index)(step[4] % NAMES));
		return;
	case 2: /* a value beside an end of what there is */
		words[at] = (step[4] & 1) != 0 ? UINT64_MAX - step[5] : BYTES + step[5];
		return;
	case 3: /* the operation */
		s->op = step[4];
		return;
	case 4: /* the tail */
		memcpy(&value, step + 4, 4);
		w.tail += (unsigned int)value;
		return;
	default:
		memcpy(&value, step + 4, 4);
		words[at] = value * UINT64_C(0x9e3779b97f4a7c15);
		return;
	}
}

/* Have the engine take what has been written, and run it. */
static void publish(void)
{
	uint64_t before = atomic_load(&w.queue->tail);

	inlet_publish(&w);
	taken += (unsigned int)(atomic_load(&w.queue->tail) - before);
	if (atomic_load(&w.inlet.wrong) != NULL) {
		refused++;
		inlet_end(&w);
		inlet_begin(&w);
		return;
	}
	inlet_must(hal_device_poll(w.dev, 1000000) < 0 ? -1 : 0);
}

/* Return how many slots are free. */
static uint32_t room(void)
{
	return w.queue->slot_count - (w.tail - atomic_load(&w.told.head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[BYTES];

	for (; size >= STEP; data += STEP, size -= STEP) {
		uint8_t marks = (data[1] & 1) != 0 ? FAR_LAST : 0;
		struct far_slot *s;

		if (room() < FAR_RECORD_SLOTS)
			publish();
		if (room() < FAR_RECORD_SLOTS) {
			/* What is there waits for what never comes. */
			inlet_end(&w);
			inlet_begin(&w);
		}
		if ((data[1] & 2) != 0)
			marks |= FAR_WHOLE;
		s = write_record(data[0], marks);
		if ((data[1] & 0xe0) == 0)
			change(s, data);
		if ((data[1] & 4) != 0)
			publish();
	}
	publish();
	inlet_must(hal_buffer_read(w.victims, 0, bytes, sizeof(bytes)));
	for (uint32_t i = 0; i < BYTES; i++)
		if (bytes[i] != VICTIM)
			abort();
	/* A point that is submitted is pending until its record retires. */
	inlet_end(&w);
	if (atomic_load(&w.line->pending) != 0)
		abort();
	inlet_begin(&w);
	/* Signals of all inputs may have brought it to its last value. */
	inlet_must(hal_timeline_destroy(w.line));
	inlet_must(hal_timeline_create(w.dev, &w.line));
	name(&w, NAME_TIMELINE, KIND_TIMELINE, w.line);
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	/* Launches that go through, in bursts; then submissions of several records. */
	static const uint8_t steps[][3 * STEP] = {
		{0, 0xe3, 0, 0, 0, 0, 0, 0, 2, 0xe3, 0, 0, 0, 0, 0, 0, 0, 0xe7},
		{5, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 4, 0xe5},
		{3, 0xe0, 0, 0, 0, 0, 0, 0, 6, 0xe0, 0, 0, 0, 0, 0, 0, 1, 0xe5},
		{2, 0xe3, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 9, 3, 0, 0, 0, 7, 0xe7},
	};
	size_t size = 16 * sizeof(steps[0]);

	if (index >= ARRAY_LENGTH(steps) || size > max)
		return 0;
	for (size_t i = 0; i < 16; i++)
		memcpy(data + i * sizeof(steps[0]), steps[index], sizeof(steps[0]));
	return size;
}
