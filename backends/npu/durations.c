/* SPDX-License-Identifier: Apache-2.0 */
/* durations.c - a table of durations by key, and its file. */
#include "durations.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fail.h"
#include "npu_regs.h"

#define HEADER "npu durations 1: key count fewest sum most"

struct entry {
	uint64_t key; /* 0: free */
	uint64_t count, fewest, sum, most;
};

struct npu_durations {
	FILE *file; /* to be written at close; NULL: only read */
	struct entry *slots;
	uint64_t size, used; /* size: a power of two, at most half of it used */
};

/* ---- keys ------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

/* Words that are addresses count by their place in a page; what a FILL fills with and
 * what fences store, and where, does not. */
static uint32_t counted(const uint32_t *desc, uint32_t word, uint32_t page)
{
	uint32_t op = NPU_GET(desc, OPCODE);

	if (op == NPU_OP_SIGNAL || op == NPU_OP_WAIT || op == NPU_OP_TIMESTAMP)
		return word ? 0 : desc[word];
	if (op == NPU_OP_VEC && NPU_GET(desc, VOP) == NPU_VOP_FILL && word == 7)
		return 0;
	return word >= 1 && word <= 4 ? desc[word] & (page - 1) : desc[word];
}

uint64_t npu_desc_hash(const struct npu_place *place, const uint32_t desc[16])
{
	uint64_t hash = mix(mix(1, place->rows), place->cols);

	hash = mix(mix(hash, place->channels),
		   place->gran * 2 + place->ideal + place->serial * 128u);
	hash = mix(mix(hash, place->all), place->seed);
	for (uint32_t i = 0; i < 16; i++)
		hash = mix(hash, counted(desc, i, 1u << place->gran));
	return hash > NPU_AFTER_EMPTY ? hash : NPU_AFTER_EMPTY + 1;
}

uint64_t npu_duration_key(uint64_t ahead, uint64_t self)
{
	uint64_t key = mix(mix(1, ahead), self);

	return key ? key : 1;
}

/* ---- the table -------------------------------------------------------------------- */

/* Where key is, or would be. */
static struct entry *find(struct entry *slots, uint64_t size, uint64_t key)
{
	uint64_t i = key & (size - 1);

	while (slots[i].key && slots[i].key != key)
		i = (i + 1) & (size - 1);
	return &slots[i];
}

static bool grow(struct npu_durations *d)
{
	uint64_t size = d->size ? d->size * 2 : 1024;
	struct entry *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return false;
	for (uint64_t i = 0; i < d->size; i++)
		if (d->slots[i].key)
			*find(slots, size, d->slots[i].key) = d->slots[i];
	free(d->slots);
	d->slots = slots;
	d->size = size;
	return true;
}

/* The entry of key, a new one if need be; NULL: no host memory. */
static struct entry *entry_of(struct npu_durations *d, uint64_t key)
{
	struct entry *e;

	if (2 * (d->used + 1) > d->size && !grow(d))
		return NULL;
	e = find(d->slots, d->size, key);
	if (!e->key) {
		*e = (struct entry){.key = key, .fewest = UINT64_MAX};
		d->used++;
	}
	return e;
}

bool npu_durations_add(struct npu_durations *d, uint64_t key, uint64_t cycles)
{
	struct entry *e = entry_of(d, key);

	if (!e)
		return false;
	e->count++;
	e->sum += cycles;
	if (cycles < e->fewest)
		e->fewest = cycles;
	if (cycles > e->most)
		e->most = cycles;
	return true;
}

bool npu_durations_get(const struct npu_durations *d, uint64_t key, uint64_t *cycles)
{
	const struct entry *e = find(d->slots, d->size, key);

	if (!e->key)
		return false;
	*cycles = (e->sum + e->count / 2) / e->count;
	return true;
}

/* ---- the file: nothing in it gets shorter, so that it is written over itself ---------- */

static int parse(struct npu_durations *d, const char *line)
{
	struct entry e, *to;
	uint64_t *const fields[] = {&e.key, &e.count, &e.fewest, &e.sum, &e.most};
	char *end = NULL;

	for (uint32_t i = 0; i < 5; i++, line = end) {
		*fields[i] = strtoull(line, &end, i ? 10 : 16);
		if (end == line)
			return -EINVAL;
	}
	if (strcmp(end, "\n") != 0 || !e.key || !e.count || e.fewest > e.most ||
	    e.sum / e.count < e.fewest || e.sum / e.count > e.most)
		return -EINVAL;
	to = entry_of(d, e.key);
	if (!to)
		return -ENOMEM;
	if (to->count)
		return -EINVAL;
	*to = e;
	return 0;
}

static int load(struct npu_durations *d, FILE *f, const char *path, bool record)
{
	char line[160];
	uint32_t number = 0;
	int rc = grow(d) ? 0 : -ENOMEM;

	while (!rc && fgets(line, sizeof(line), f)) {
		if (++number > 1)
			rc = parse(d, line);
		else if (strcmp(line, HEADER "\n") != 0)
			rc = -EINVAL;
	}
	if (rc == -EINVAL)
		return npu_fail(EINVAL, "npu: durations=%s:%u: not a line of \"%s\"",
				path, number, HEADER);
	if (rc)
		return npu_fail(ENOMEM, "npu: durations=%s: no host memory", path);
	if (ferror(f))
		return npu_fail(EIO, "npu: durations=%s: the file cannot be read", path);
	if (number == 0 && !record)
		return npu_fail(
			EINVAL,
			"npu: durations=%s: the file is empty; open a device with "
			"engine=rtl or fast and this file, and close it, to record times",
			path);
	return 0;
}

int npu_durations_open(const char *path, bool record, struct npu_durations **out)
{
	struct npu_durations *d = calloc(1, sizeof(*d));
	FILE *f;
	int rc, fd;

	if (!d)
		return npu_fail(ENOMEM, "npu: durations=%s: no host memory", path);
	/* It is not emptied: another one may have made it meanwhile, and record there. */
	fd = open(path, record ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
		  0666);
	f = fd >= 0 ? fdopen(fd, record ? "r+" : "r") : NULL;
	if (!f) {
		rc = npu_fail(errno, "npu: durations=%s: %s", path,
			      strerrordesc_np(errno));
		if (fd >= 0)
			(void)close(fd);
		free(d);
		return rc;
	}
	/* Who records writes all of it anew at the end. */
	if (record && flock(fileno(f), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		rc = npu_fail(EBUSY,
			      "npu: durations=%s: another device or program is recording "
			      "into this file; name another file, or open this device "
			      "after that one has closed",
			      path);
	else
		rc = load(d, f, path, record);
	if (record && !rc)
		d->file = f;
	else
		(void)fclose(f);
	if (rc)
		npu_durations_close(d);
	else
		*out = d;
	return rc;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const struct entry *)a)->key, y = ((const struct entry *)b)->key;

	return (x > y) - (x < y);
}

static bool save(struct npu_durations *d)
{
	uint64_t n = 0;
	bool good;

	for (uint64_t i = 0; i < d->size; i++)
		if (d->slots[i].key)
			d->slots[n++] = d->slots[i];
	qsort(d->slots, n, sizeof(*d->slots), by_key);
	rewind(d->file);
	good = fprintf(d->file, "%s\n", HEADER) > 0;
	for (uint64_t i = 0; good && i < n; i++) {
		const struct entry *e = &d->slots[i];

		good = fprintf(d->file,
			       "%016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			       " %" PRIu64 "\n",
			       e->key, e->count, e->fewest, e->sum, e->most) > 0;
	}
	return good;
}

bool npu_durations_close(struct npu_durations *d)
{
	bool good = true;

	if (!d)
		return true;
	if (d->file) {
		good = save(d) && fflush(d->file) == 0;
		/* A child of this process may have it open, too. */
		(void)flock(fileno(d->file), LOCK_UN);
		good = !fclose(d->file) && good;
	}
	free(d->slots);
	free(d);
	return good;
}
