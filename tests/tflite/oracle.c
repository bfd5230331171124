/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - reads data/tflite; the random numbers and checksums that go with it. */
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

void oracle_random(uint64_t seed, uint8_t *out, size_t count)
{
	uint64_t x = seed;

	for (size_t i = 0; i < count; i++) {
		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		out[i] = (uint8_t)((x * UINT64_C(2685821657736338717)) >> 56);
	}
}

uint32_t oracle_crc32(const void *data, size_t bytes)
{
	return (uint32_t)crc32(0, data, (uInt)bytes);
}

/* ---- files ------------------------------------------------------------------------ */

/* zlib reads a file that is not compressed as it is. */
uint8_t *oracle_read_file(const char *path, size_t *size)
{
	gzFile f = gzopen(path, "rb");
	uint8_t *bytes = NULL;
	size_t used = 0, room = 0;
	int n = 0;

	if (!f)
		return NULL;
	do {
		uint8_t *more;

		used += (size_t)n;
		if (room - used < 2) {
			room = room ? 2 * room : 65536;
			more = realloc(bytes, room);
			if (!more) {
				n = -1;
				errno = ENOMEM;
				break;
			}
			bytes = more;
		}
		n = gzread(f, bytes + used, (unsigned)(room - used - 1));
		if (n < 0)
			errno = EIO;
	} while (n > 0);
	gzclose(f);
	if (n < 0) {
		free(bytes);
		return NULL;
	}
	*size = used;
	return bytes;
}

/* ---- the pack --------------------------------------------------------------------- */

static uint64_t number(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static int take(struct oracle_pack *p, size_t bytes, const uint8_t **at)
{
	if (p->size - p->at < bytes)
		return -EINVAL;
	*at = p->bytes + p->at;
	p->at += bytes;
	return 0;
}

static int take_number(struct oracle_pack *p, uint32_t bytes, uint64_t *value)
{
	const uint8_t *at;

	if (take(p, bytes, &at))
		return -EINVAL;
	*value = number(at, bytes);
	return 0;
}

/* uint32 bytes, then as many. */
static int take_block(struct oracle_pack *p, uint32_t *bytes, const uint8_t **at)
{
	uint64_t n;

	if (take_number(p, 4, &n))
		return -EINVAL;
	*bytes = (uint32_t)n;
	return take(p, *bytes, at);
}

int oracle_pack_open(const char *path, struct oracle_pack *p)
{
	uint64_t seed, models;
	const uint8_t *magic;

	memset(p, 0, sizeof(*p));
	p->bytes = oracle_read_file(path, &p->size);
	if (!p->bytes)
		return errno ? -errno : -ENOMEM;
	if (take(p, 8, &magic) || memcmp(magic, "HALOPS1\n", 8) != 0 ||
	    take_number(p, 4, &seed) || take_number(p, 4, &models)) {
		oracle_pack_close(p);
		return -EINVAL;
	}
	p->seed = (uint32_t)seed;
	p->models = (uint32_t)models;
	return 0;
}

void oracle_pack_close(struct oracle_pack *p)
{
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

int oracle_pack_next(struct oracle_pack *p, struct oracle_model *m)
{
	uint64_t length, bytes;
	const uint8_t *text;

	memset(m, 0, sizeof(*m));
	if (take_number(p, 1, &length) || take(p, length, &text) ||
	    take_block(p, &m->model_bytes, &m->model) || take_number(p, 4, &bytes) ||
	    take_number(p, 8, &m->seed))
		return -EINVAL;
	memcpy(m->text, text, length);
	m->input_bytes = (uint32_t)bytes;
	if (!m->seed && take(p, m->input_bytes, &m->input))
		return -EINVAL;
	return take_block(p, &m->output_bytes, &m->output);
}

/* ---- what the current TensorFlow Lite has otherwise -------------------------------- */

#define CHANGES_MAGIC "HALNEW1\n"

struct change {
	const uint8_t *name, *output;
	uint32_t name_bytes, number, output_bytes;
};

/* Read the change at *at and move on to the next; false: there is none. */
static bool next_change(const struct oracle_changes *c, size_t *at, struct change *x)
{
	struct oracle_pack p = {.bytes = c->bytes, .size = c->size, .at = *at};
	uint64_t length, model;

	if (take_number(&p, 1, &length) || take(&p, length, &x->name) ||
	    take_number(&p, 4, &model) || take_block(&p, &x->output_bytes, &x->output))
		return false;
	x->name_bytes = (uint32_t)length;
	x->number = (uint32_t)model;
	*at = p.at;
	return true;
}

int oracle_changes_open(const char *path, struct oracle_changes *c)
{
	size_t at = strlen(CHANGES_MAGIC);
	struct change x;

	c->bytes = oracle_read_file(path, &c->size);
	if (!c->bytes)
		return errno ? -errno : -ENOMEM;
	if (c->size >= at && memcmp(c->bytes, CHANGES_MAGIC, at) == 0) {
		while (next_change(c, &at, &x))
			;
		if (at == c->size)
			return 0;
	}
	oracle_changes_close(c);
	return -EINVAL;
}

void oracle_changes_close(struct oracle_changes *c)
{
	free(c->bytes);
	memset(c, 0, sizeof(*c));
}

bool oracle_changes_apply(const struct oracle_changes *c, const char *name,
			  uint32_t number, struct oracle_model *m)
{
	size_t at = strlen(CHANGES_MAGIC);
	struct change x;

	while (c->bytes && next_change(c, &at, &x)) {
		if (x.number != number || x.name_bytes != strlen(name) ||
		    memcmp(x.name, name, x.name_bytes) != 0)
			continue;
		m->output = x.output;
		m->output_bytes = x.output_bytes;
		return true;
	}
	return false;
}
