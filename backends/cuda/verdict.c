/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found out about a device's ways to partitions, as text: a helper says it to
 * the process that started it, and a file keeps it, one a GPU, build of its driver, and
 * setup:
 *
 *     accelhal-cuda 2
 *     device GPU-...
 *     build libcuda.so.1 ...
 *     setup 132 multiprocessors, MPS 0, tools 0
 *     green 16 8
 *     mask 66 2, and a line "unit FIRST BIT" for each
 *     stream 66 2 1308, the place of the mask, and a line for each
 *     refused mask WHY
 *     end SUM
 *
 * The file is in $XDG_CACHE_HOME/accelhal, else ~/.cache/accelhal: of this user alone,
 * put there in one step.  One that is anybody else's, or damaged, is as if it were not
 * there.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE       "accelhal-cuda 2"
#define GREEN_UNITS_MOST 256u

/* ---- whose it is ------------------------------------------------------------------- */

/* Which driver: its library's file, which changes with every build, and its CUDA. */
static void tell_build(char *text, size_t bytes)
{
	char path[PATH_MAX];
	const char *name;
	int version = 0;
	struct stat st;
	Dl_info info;
	void *at;

	memcpy(&at, &cu.cuInit, sizeof(at));
	if (cu.cuDriverGetVersion(&version) || !dladdr(at, &info) ||
	    !realpath(info.dli_fname, path) || stat(path, &st))
		return;
	name = strrchr(path, '/') + 1;
	snprintf(text, bytes, "%.80s %lld %lld.%09ld %d", name, (long long)st.st_size,
		 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, version);
	if (strpbrk(text, "\n\r"))
		text[0] = 0;
}

/* Write what else a trial's result depends on.  Under MPS a client can be shown fewer
 * multiprocessors, and their numbers are virtual; a profiler (CUDA_INJECTION64_PATH) may
 * already have the callback that masks need.  Return false if the driver does not answer.
 */
static bool tell_setup(int device, char *text, size_t bytes)
{
	int sms = 0, mps = 0;

	if (cu.cuDeviceGetAttribute(&sms, CUA_MULTIPROCESSORS, device))
		return false;
	if (cu.cuDeviceGetAttribute(&mps, CUA_MPS, device))
		mps = 0; /* an older driver does not know the attribute */
	snprintf(text, bytes, "%d multiprocessors, MPS %d, tools %d", sms, mps != 0,
		 secure_getenv("CUDA_INJECTION64_PATH") != NULL);
	return true;
}

void cu_verdict_of(int device, struct cu_verdict *v)
{
	unsigned char id[16];
	char *to = v->device;
	uint32_t i;

	memset(v, 0, sizeof(*v));
	if (!cu.cuDeviceGetUuid_v2 || cu.cuDeviceGetUuid_v2(id, device) ||
	    !tell_setup(device, v->setup, sizeof(v->setup)))
		return;
	to += snprintf(to, 8, "GPU-");
	for (i = 0; i < sizeof(id); i++)
		to += snprintf(to, 4, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	tell_build(v->build, sizeof(v->build));
}

const struct cu_tried *cu_verdict_get(const struct cu_verdict *v, enum cu_way way)
{
	uint32_t i;

	for (i = 0; i < v->count; i++)
		if (v->tried[i].way == way)
			return &v->tried[i];
	return NULL;
}

/* ---- text -------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t sum(const char *text, size_t bytes)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < bytes; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return h;
}

__attribute__((format(printf, 2, 3))) static void put(char *text, const char *fmt, ...)
{
	const size_t at = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + at, CU_VERDICT_BYTES - at, fmt, ap);
	va_end(ap);
}

static void put_tried(char *text, const struct cu_tried *t)
{
	uint32_t i;

	if (t->err)
		put(text, "%s %s %s\n", t->err == -ENOTSUP ? "refused" : "failed",
		    cu_way_names[t->way], t->why);
	else if (t->way == CU_WAY_GREEN)
		put(text, "green %u %u\n", t->units, t->per);
	else if (t->way == CU_WAY_MASK)
		put(text, "mask %u %u\n", t->mask.count, t->mask.per);
	else
		put(text, "stream %u %u %u\n", t->mask.count, t->mask.per,
		    t->mask.stream_at);
	for (i = 0; !t->err && t->way != CU_WAY_GREEN && i < t->mask.count; i++)
		put(text, "unit %u %u\n", t->mask.first[i], t->mask.bit[i]);
}

void cu_verdict_write(const struct cu_verdict *v, char text[CU_VERDICT_BYTES])
{
	uint32_t i;

	text[0] = 0;
	put(text, FIRST_LINE "\ndevice %s\nbuild %s\nsetup %s\n", v->device, v->build,
	    v->setup);
	for (i = 0; i < v->count; i++)
		put_tried(text, &v->tried[i]);
	put(text, "end %016" PRIx64 "\n", sum(text, strlen(text)));
}

/* The line at *at without its end, which is moved behind it; NULL: none. */
static const char *next_line(const char **at, char line[320])
{
	const char *end = strchr(*at, '\n');

	if (!end || (size_t)(end - *at) >= 320)
		return NULL;
	memcpy(line, *at, (size_t)(end - *at));
	line[end - *at] = 0;
	*at = end + 1;
	return line;
}

/* word, then count numbers, one blank before each, and nothing else. */
static bool read_numbers(const char *line, const char *word, uint32_t *to, uint32_t count)
{
	const size_t n = strlen(word);
	uint64_t v;

	if (strncmp(line, word, n) != 0)
		return false;
	for (line += n; count--; to++) {
		if (line[0] != ' ' || line[1] < '0' || line[1] > '9')
			return false;
		for (line++, v = 0; *line >= '0' && *line <= '9' && v <= UINT32_MAX;
		     line++)
			v = 10 * v + (uint64_t)(*line - '0');
		if (v > UINT32_MAX)
			return false;
		*to = (uint32_t)v;
	}
	return !*line;
}

static bool read_units(const char **at, struct cu_mask *m)
{
	bool seen[128] = {false};
	uint32_t i, v[2]; /* multiprocessor, bit */
	char line[320];

	for (i = 0; i < m->count; i++) {
		if (!next_line(at, line) || !read_numbers(line, "unit", v, 2) ||
		    v[1] >= 128 || seen[v[1]] || v[0] >= CU_SM_MOST ||
		    (i && v[0] <= m->first[i - 1]))
			return false;
		seen[v[1]] = true;
		m->first[i] = v[0];
		m->bit[i] = (uint8_t)v[1];
	}
	return true;
}

static bool read_refused(const char *line, size_t word, int err, struct cu_tried *t)
{
	size_t n;

	for (t->way = CU_WAY_GREEN; t->way < CU_WAY_AUTO; t->way++) {
		n = strlen(cu_way_names[t->way]);
		if (strncmp(line + word, cu_way_names[t->way], n) != 0 ||
		    line[word + n] != ' ')
			continue;
		t->err = err;
		snprintf(t->why, sizeof(t->why), "%s", line + word + n + 1);
		return true;
	}
	return false;
}

static bool read_tried(const char *line, const char **at, struct cu_tried *t)
{
	uint32_t v[3] = {0};

	memset(t, 0, sizeof(*t));
	if (strncmp(line, "refused ", 8) == 0)
		return read_refused(line, 8, -ENOTSUP, t);
	if (strncmp(line, "failed ", 7) == 0)
		return read_refused(line, 7, -EIO, t);
	if (read_numbers(line, "green", v, 2)) {
		t->way = CU_WAY_GREEN;
		t->units = v[0];
		t->per = v[1];
		return v[0] && v[0] <= GREEN_UNITS_MOST && v[1] && v[1] <= CU_SM_MOST;
	}
	t->way = CU_WAY_MASK;
	if (!read_numbers(line, "mask", v, 2)) {
		t->way = CU_WAY_STREAM;
		if (!read_numbers(line, "stream", v, 3) || !v[2])
			return false;
	}
	if (!v[0] || v[0] > CU_UNITS_MOST || !v[1] || v[1] > 2)
		return false;
	t->mask.stream_at = v[2];
	t->mask.count = v[0];
	t->mask.per = v[1];
	return read_units(at, &t->mask);
}

static bool summed(const char *text)
{
	const char *end = strstr(text, "\nend ");
	char line[32];

	if (!end)
		return false;
	snprintf(line, sizeof(line), "end %016" PRIx64 "\n",
		 sum(text, (size_t)(end + 1 - text)));
	return strcmp(end + 1, line) == 0;
}

const char *cu_verdict_read(struct cu_verdict *v, const char *text)
{
	struct cu_tried t;
	char line[320];

	if (!summed(text))
		return "is damaged";
	if (!next_line(&text, line) || strcmp(line, FIRST_LINE) != 0)
		return "is of another format version";
	if (!next_line(&text, line) || strncmp(line, "device ", 7) != 0 ||
	    strcmp(line + 7, v->device) != 0)
		return "is for another device";
	if (!next_line(&text, line) || strncmp(line, "build ", 6) != 0 ||
	    strcmp(line + 6, v->build) != 0)
		return "is for another driver version";
	if (!next_line(&text, line) || strncmp(line, "setup ", 6) != 0 ||
	    strcmp(line + 6, v->setup) != 0)
		return "is for another setup of the device";
	while (next_line(&text, line) && strncmp(line, "end ", 4) != 0) {
		if (!read_tried(line, &text, &t) || cu_verdict_get(v, t.way)) {
			v->count = 0;
			return "has an invalid line";
		}
		v->tried[v->count++] = t;
	}
	return NULL;
}

/* ---- the file ---------------------------------------------------------------------- */

/* The folder, or -errno with why it is of no use. */
static int folder(char path[PATH_MAX], bool make, char why[HAL_CUDA_SAID])
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"),
		   *home = secure_getenv("HOME");
	char above[PATH_MAX - 64];
	struct stat st;

	if (cache && cache[0] == '/' && strlen(cache) < sizeof(above))
		snprintf(above, sizeof(above), "%s", cache);
	else if (home && home[0] == '/' && strlen(home) < sizeof(above) - 8)
		snprintf(above, sizeof(above), "%s/.cache", home);
	else
		return -ENOENT; /* nobody's home: nothing is kept */
	snprintf(path, PATH_MAX, "%s/accelhal", above);
	if (make && mkdir(above, 0700) && errno != EEXIST)
		return -errno;
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return 0;
	snprintf(why, HAL_CUDA_SAID,
		 "%.300s must be a folder that only this user can write", path);
	return -EACCES;
}

static int file_name(const struct cu_verdict *v, bool make, char path[PATH_MAX],
		     char why[HAL_CUDA_SAID])
{
	int err = v->device[0] && v->build[0] ? folder(path, make, why) : -ENOENT;
	const size_t n = err ? 0 : strlen(path);

	if (!err)
		snprintf(path + n, PATH_MAX - n, "/cuda-%s-%08x", v->device,
			 (unsigned int)(sum(v->build, strlen(v->build)) ^
					sum(v->setup, strlen(v->setup))));
	return err;
}

static bool read_all(int fd, char text[CU_VERDICT_BYTES])
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, text + n, CU_VERDICT_BYTES - 1 - n)) > 0 ||
	       (got < 0 && errno == EINTR))
		n += got > 0 ? (size_t)got : 0;
	text[n] = 0;
	return got == 0 && n < CU_VERDICT_BYTES - 1 && strlen(text) == n;
}

void cu_kept_read(struct cu_verdict *v, char why[HAL_CUDA_SAID])
{
	char path[PATH_MAX], text[CU_VERDICT_BYTES];
	const char *wrong = NULL;
	struct stat st;
	int fd;

	why[0] = 0;
	if (file_name(v, false, path, why))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || fstat(fd, &st))
		wrong = "cannot be read";
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		wrong = "is not a file that only this user can access";
	else if (!read_all(fd, text))
		wrong = "is damaged";
	else
		wrong = cu_verdict_read(v, text);
	if (fd >= 0)
		(void)close(fd);
	if (wrong)
		snprintf(why, HAL_CUDA_SAID, "%.300s %s, so it is not used", path, wrong);
}

static bool write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		left -= (size_t)n;
	}
	return true;
}

/* What only may be true now is not kept. */
static void settled(const struct cu_verdict *v, struct cu_verdict *out)
{
	uint32_t i;

	*out = *v;
	out->count = 0;
	for (i = 0; i < v->count; i++)
		if (!v->tried[i].err || v->tried[i].err == -ENOTSUP)
			out->tried[out->count++] = v->tried[i];
}

void cu_kept_write(const struct cu_verdict *v, char why[HAL_CUDA_SAID])
{
	char path[PATH_MAX], made[PATH_MAX + 8], text[CU_VERDICT_BYTES];
	struct cu_verdict *keep = malloc(sizeof(*keep));
	int fd, err;

	why[0] = 0;
	err = keep ? file_name(v, true, path, why) : -ENOMEM;
	if (err) {
		free(keep);
		if (!why[0] && v->device[0])
			snprintf(why, HAL_CUDA_SAID, "the results cannot be stored: %s",
				 strerrordesc_np(-err));
		return;
	}
	settled(v, keep);
	cu_verdict_write(keep, text);
	free(keep);
	snprintf(made, sizeof(made), "%s.XXXXXX", path);
	fd = mkostemp(made, O_CLOEXEC); /* 0600 */
	if (fd < 0) {
		snprintf(why, HAL_CUDA_SAID, "the results cannot be stored: %.300s: %s",
			 path, strerrordesc_np(errno));
		return;
	}
	if (!write_all(fd, text) || rename(made, path)) {
		snprintf(why, HAL_CUDA_SAID, "the results cannot be stored: %.300s: %s",
			 path, strerrordesc_np(errno));
		(void)unlink(made);
	}
	(void)close(fd);
}
