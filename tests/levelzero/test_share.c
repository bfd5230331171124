/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of a Level Zero device that are exported and imported: by which kind of
 * descriptor, who closes it, and what is refused.  What both sides see of them is the
 * conformance suite's (share.*) and tests/share's.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

enum { BYTES = 5000, DMA = LZ_EXTERNAL_DMA_BUF, OPAQUE = LZ_EXTERNAL_OPAQUE_FD };

static const struct hal_backend *b;
static const struct hal_bk_config virtual_time = {.clock = 1};

struct rig {
	void *dev, *part;
	uint64_t caps;
	uint32_t live;
};

static uint32_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void open_rig(struct rig *r, uint32_t device, uint32_t units)
{
	const struct hal_bk_partition_desc desc = {
		.units = units, .rows = 1, .cols = (uint16_t)units};
	struct hal_device_info info = {.size = sizeof(info)};

	r->live = stand_in()->live();
	if (b->cold.open(&virtual_time, device, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.get_info(r->dev, &info), 0);
	r->caps = info.caps & (HAL_CAP_EXPORT | HAL_CAP_IMPORT);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
}

static void close_rig(struct rig *r)
{
	const char *text = "";

	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), r->live);
}

static void *exportable(struct rig *r, uint64_t bytes)
{
	void *mem;

	if (b->cold.mem_alloc(r->dev, r->part, bytes, NULL, HAL_BUFFER_EXPORTABLE, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static int export(struct rig *r, void *mem)
{
	int fd;

	if (b->cold.mem_export(r->dev, mem, &fd))
		fail_msg("%s", host_text);
	return fd;
}

static void *import(struct rig *r, int fd, uint64_t bytes)
{
	void *mem;

	if (b->cold.mem_import(r->dev, r->part, fd, bytes, 0, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void release(struct rig *r, void *mem)
{
	if (b->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

static void refused(struct rig *r, int fd, uint64_t bytes, uint32_t flags, int err,
		    const char *text)
{
	void *mem;

	assert_int_equal(b->cold.mem_import(r->dev, r->part, fd, bytes, flags, &mem),
			 err);
	if (!strstr(host_text, text))
		fail_msg("\"%s\" has no \"%s\"", host_text, text);
}

static void put(struct rig *r, void *mem, uint32_t value)
{
	assert_int_equal(b->cold.mem_write(r->dev, mem, 4096, &value, sizeof(value)), 0);
}

static uint32_t get(struct rig *r, void *mem)
{
	uint32_t value = 0;

	assert_int_equal(b->cold.mem_read(r->dev, mem, 4096, &value, sizeof(value)), 0);
	return value;
}

/* ---- kinds of descriptors ------------------------------------------------------------ */

static void exchange(struct rig *r)
{
	void *from = exportable(r, BYTES), *to;
	int fd = export(r, from);

	to = import(r, fd, BYTES);
	put(r, from, 11);
	assert_int_equal(get(r, to), 11);
	put(r, to, 12);
	assert_int_equal(get(r, from), 12);
	release(r, from);
	assert_int_equal(get(r, to), 12);
	release(r, to);
	/* Nobody has it but the descriptor. */
	to = import(r, fd, BYTES);
	assert_int_equal(get(r, to), 12);
	release(r, to);
	assert_int_equal(close(fd), 0);
}

/* As the driver says, and what is exported can be imported again. */
static void kinds(void **state)
{
	static const struct {
		uint32_t exports, imports;
		uint64_t caps;
	} all[] = {
		{0, 0, 0},
		{DMA, 0, 0},
		{0, DMA, HAL_CAP_IMPORT},
		{OPAQUE, DMA, HAL_CAP_IMPORT},
		{1u << 2, 1u << 2, 0}, /* other systems' */
		{DMA, DMA, HAL_CAP_EXPORT | HAL_CAP_IMPORT},
		{OPAQUE, OPAQUE, HAL_CAP_EXPORT | HAL_CAP_IMPORT},
		{OPAQUE, OPAQUE | DMA, HAL_CAP_EXPORT | HAL_CAP_IMPORT},
		{OPAQUE | DMA, OPAQUE | DMA, HAL_CAP_EXPORT | HAL_CAP_IMPORT},
	};
	struct rig r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		stand_in()->reset();
		stand_in()->external(all[i].exports, all[i].imports, 0);
		open_rig(&r, 3, 1);
		assert_int_equal(r.caps, all[i].caps);
		if (r.caps & HAL_CAP_EXPORT)
			exchange(&r);
		close_rig(&r);
	}
}

/* A driver that does not know the query at all. */
static void no_query(void **state)
{
	struct rig r;

	(void)state;
	stand_in()->reset();
	assert_int_equal(stand_in()->break_call("zeDeviceGetExternalMemoryProperties", 1,
						LZ_ERROR_UNSUPPORTED_FEATURE),
			 0);
	open_rig(&r, 0, 1);
	assert_int_equal(r.caps, 0);
	close_rig(&r);
}

/* ---- who closes ---------------------------------------------------------------------- */

/* Whether the driver closes what it has exported or not, nothing stays open, and nothing
 * of others is closed. */
static void nothing_stays_open(void **state)
{
	int fd[2], leaves;
	uint32_t before;
	struct rig r;
	void *mem;

	(void)state;
	for (leaves = 0; leaves < 2; leaves++) {
		stand_in()->reset();
		stand_in()->external(DMA, DMA, leaves);
		open_rig(&r, 3, 1);
		exchange(&r);
		before = open_fds();
		mem = exportable(&r, BYTES);
		fd[0] = export(&r, mem);
		fd[1] = export(&r, mem);
		assert_int_not_equal(fd[0], fd[1]);
		assert_int_equal(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
		release(&r, mem);
		assert_int_equal(open_fds(), before + 2);
		mem = import(&r, fd[0], BYTES);
		assert_int_equal(open_fds(), before + 2);
		release(&r, mem);
		assert_int_equal(close(fd[0]), 0);
		assert_int_equal(close(fd[1]), 0);
		exchange(&r);
		assert_int_equal(open_fds(), before);
		close_rig(&r);
	}
}

/* What the driver will not free yet keeps its number for so long. */
static void freed_late(void **state)
{
	uint32_t before;
	struct rig r;
	void *mem;
	int leaves;

	(void)state;
	for (leaves = 0; leaves < 2; leaves++) {
		stand_in()->reset();
		stand_in()->external(DMA, DMA, leaves);
		open_rig(&r, 3, 1);
		exchange(&r);
		before = open_fds();
		mem = exportable(&r, BYTES);
		assert_int_equal(close(export(&r, mem)), 0);
		stand_in()->break_call("zeMemFree", 1, LZ_ERROR_HANDLE_OBJECT_IN_USE);
		assert_int_equal(b->cold.mem_free(r.dev, mem), -EBUSY);
		assert_true(open_fds() > before);
		exchange(&r);
		assert_int_equal(open_fds(), before);
		close_rig(&r);
	}
}

/* ---- what is refused ----------------------------------------------------------------- */

static void wrong_descriptors(void **state)
{
	struct rig r, other;
	char path[] = "/tmp/hal_share_XXXXXX";
	int fd, pair[2];
	void *mem;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 3, 1);
	open_rig(&other, 2, 1);
	mem = exportable(&r, BYTES);
	fd = export(&r, mem);
	refused(&r, fd, 8193, 0, -EINVAL, "has 8192 bytes; 8193 are to be imported");
	refused(&r, fd, UINT64_MAX, 0, -EINVAL, "has 8192 bytes");
	refused(&r, fd, 64, HAL_BUFFER_MAPPABLE, -ENOTSUP, "the host cannot map");
	refused(&other, fd, BYTES, 0, -EINVAL, "is no memory that HAL stand-in");
	assert_int_equal(close(fd), 0);
	release(&r, mem);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	refused(&r, fd, 64, 0, -EINVAL, "has 0 bytes; 64 are");
	assert_int_equal(close(fd), 0);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	refused(&r, pair[1], 64, 0, -EINVAL, "is no memory that HAL stand-in");
	assert_int_equal(close(pair[0]) | close(pair[1]), 0);
	/* A file is looked at, and stays as it is. */
	fd = mkstemp(path);
	assert_int_equal(unlink(path) | ftruncate(fd, 100), 0);
	assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
	refused(&r, fd, 64, 0, -EINVAL, "is no memory that HAL stand-in");
	refused(&r, fd, 101, 0, -EINVAL, "has 100 bytes");
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
	assert_int_equal(close(fd), 0);
	close_rig(&other);
	close_rig(&r);
}

static void no_mapping(void **state)
{
	struct rig r;
	void *mem;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 3, 1);
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 64, NULL,
					   HAL_BUFFER_EXPORTABLE | HAL_BUFFER_MAPPABLE,
					   &mem),
			 -ENOTSUP);
	assert_non_null(strstr(host_text, "leave out HAL_BUFFER_MAPPABLE"));
	close_rig(&r);
}

/* A driver that answers a query without what was asked for. */
static void no_descriptor(void **state)
{
	struct rig r;
	void *mem;
	int fd = -2;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 3, 1);
	mem = exportable(&r, BYTES);
	stand_in()->break_call("zeMemGetAllocProperties", 1, LZ_SUCCESS);
	assert_int_equal(b->cold.mem_export(r.dev, mem, &fd), -EIO);
	assert_non_null(strstr(host_text, "without a descriptor"));
	assert_int_equal(fd, -2);
	assert_int_equal(close(export(&r, mem)), 0);
	release(&r, mem);
	close_rig(&r);
}

/* Without numbers for descriptors there is no copy, and freeing works all the same. */
static void no_numbers(void **state)
{
	struct rlimit all, none;
	struct rig r;
	void *mem;
	int fd;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 3, 1);
	mem = exportable(&r, BYTES);
	assert_int_equal(close(export(&r, mem)), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = all;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(b->cold.mem_export(r.dev, mem, &fd), -EMFILE);
	assert_non_null(strstr(host_text, "cannot be copied"));
	release(&r, mem);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	close_rig(&r);
}

static void no_room(void **state)
{
	struct rig r;
	void *mem;
	int fd;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 3, 1);
	mem = exportable(&r, BYTES);
	fd = export(&r, mem);
	stand_in()->memory_left(4096);
	refused(&r, fd, BYTES, 0, -ENOSPC, "OUT_OF_DEVICE_MEMORY");
	stand_in()->memory_left(UINT64_MAX);
	release(&r, import(&r, fd, BYTES));
	release(&r, mem);
	assert_int_equal(close(fd), 0);
	close_rig(&r);
}

/* Memory of several tiles would be several pieces: it is on the first one. */
static void one_piece(void **state)
{
	struct rig r;

	(void)state;
	stand_in()->reset();
	open_rig(&r, 0, 2);
	exchange(&r);
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(no_query),
		cmocka_unit_test(nothing_stays_open),
		cmocka_unit_test(freed_late),
		cmocka_unit_test(wrong_descriptors),
		cmocka_unit_test(no_mapping),
		cmocka_unit_test(no_descriptor),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(no_room),
		cmocka_unit_test(one_piece),
	};

	b = hal_backend_levelzero(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
