/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of a card that are exported and imported: by another partition, by another
 * opening of the card, and what is refused.  What both sides see of them is also the
 * conformance suite's (share.*), and tests/share has two processes.
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
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define BANKS                                                                            \
	"bank DDR[0] ddr4 0x0 16M\n"                                                     \
	"bank DDR[1] ddr4 0x100000000 1M\n"
#define KERNEL "kernel work 4\narg d memory 4 0-1\narg ns ulong\n"

enum { BYTES = 5000, LOW = 1, HIGH = 2, BOTH = 3 /* banks */ };

static const struct hal_backend *b;
static struct hal_bk_config near = {.clock = 1}, far = {.clock = 1};

/* An opening of a card, with a partition on a slot of it. */
struct side {
	void *dev, *part;
	uint64_t caps;
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

static void sure(int err)
{
	if (err)
		fail_msg("%d: %s", err, host_text);
}

static void side_open(struct side *s, uint32_t card, uint16_t slot, uint64_t banks)
{
	const struct hal_bk_partition_desc d = {
		.units = 1, .col = slot, .rows = 1, .cols = 1, .color_mask = banks};
	struct hal_device_info info = {.size = sizeof(info)};

	sure(b->cold.open(card ? &far : &near, card, &s->dev));
	sure(b->cold.get_info(s->dev, &info));
	s->caps = info.caps;
	sure(b->cold.partition_create(s->dev, &d, &s->part));
}

static void side_close(struct side *s)
{
	sure(b->cold.partition_destroy(s->dev, s->part));
	b->cold.close(s->dev);
}

static void begin(struct side *s)
{
	stand_in()->reset();
	side_open(s, 0, 0, BOTH);
}

static void end(struct side *s)
{
	const char *text = "";

	side_close(s);
	if (stand_in()->misuse(&text))
		fail_msg("misused: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static void *exportable(struct side *s, uint64_t bytes, uint64_t banks)
{
	const struct hal_bk_colors colors = {.mask = banks};
	void *mem;

	sure(b->cold.mem_alloc(s->dev, s->part, bytes, &colors, HAL_BUFFER_EXPORTABLE,
			       &mem));
	return mem;
}

static int export(struct side *s, void *mem)
{
	int fd;

	sure(b->cold.mem_export(s->dev, mem, &fd));
	return fd;
}

static void *import(struct side *s, int fd, uint64_t bytes)
{
	void *mem;

	sure(b->cold.mem_import(s->dev, s->part, fd, bytes, 0, &mem));
	return mem;
}

static void refused(struct side *s, int fd, uint64_t bytes, uint32_t flags, int err,
		    const char *text)
{
	void *mem;

	assert_int_equal(b->cold.mem_import(s->dev, s->part, fd, bytes, flags, &mem),
			 err);
	if (!strstr(host_text, text))
		fail_msg("\"%s\" has no \"%s\"", host_text, text);
}

static void put(struct side *s, void *mem, uint32_t value)
{
	sure(b->cold.mem_write(s->dev, mem, 4096, &value, sizeof(value)));
}

static uint32_t get(struct side *s, void *mem)
{
	uint32_t value = 0;

	sure(b->cold.mem_read(s->dev, mem, 4096, &value, sizeof(value)));
	return value;
}

static void exchange(struct side *s, struct side *other)
{
	void *from = exportable(s, BYTES, BOTH), *to;
	const int fd = export(s, from);

	to = import(other, fd, BYTES);
	put(s, from, 11);
	assert_int_equal(get(other, to), 11);
	put(other, to, 12);
	assert_int_equal(get(s, from), 12);
	sure(b->cold.mem_free(s->dev, from));
	assert_int_equal(get(other, to), 12);
	sure(b->cold.mem_free(other->dev, to));
	/* Nobody has it but the descriptor. */
	to = import(s, fd, BYTES);
	assert_int_equal(get(s, to), 12);
	sure(b->cold.mem_free(s->dev, to));
	assert_int_equal(close(fd), 0);
}

/* The card is opened twice; a slot is one opening's. */
static void two_openings(void **state)
{
	struct side s, other;

	(void)state;
	begin(&s);
	assert_true(s.caps & HAL_CAP_EXPORT);
	assert_true(s.caps & HAL_CAP_IMPORT);
	side_open(&other, 0, 1, BOTH);
	exchange(&s, &s);
	exchange(&s, &other);
	side_close(&other);
	end(&s);
}

/* XRT's descriptor is closed with the buffer, and the caller's are not. */
static void descriptors(void **state)
{
	uint32_t before;
	struct side s;
	void *mem;
	int fd[2];

	(void)state;
	begin(&s);
	exchange(&s, &s);
	before = open_fds();
	mem = exportable(&s, BYTES, BOTH);
	fd[0] = export(&s, mem);
	fd[1] = export(&s, mem);
	assert_int_not_equal(fd[0], fd[1]);
	assert_int_equal(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
	sure(b->cold.mem_free(s.dev, mem));
	assert_int_equal(open_fds(), before + 2);
	sure(b->cold.mem_free(s.dev, import(&s, fd[1], BYTES)));
	assert_int_equal(open_fds(), before + 2);
	assert_int_equal(close(fd[0]) | close(fd[1]), 0);
	end(&s);
}

static void wrong_descriptors(void **state)
{
	struct side s, other;
	void *mem;
	int fd;

	(void)state;
	begin(&s);
	side_open(&other, 1, 0, BOTH);
	mem = exportable(&s, BYTES, BOTH);
	fd = export(&s, mem);
	refused(&s, fd, 8193, 0, -EINVAL, "has 8192 bytes; 8193 are to be imported");
	refused(&s, fd, UINT64_MAX, 0, -EINVAL, "has 8192 bytes");
	refused(&s, fd, 64, HAL_BUFFER_MAPPABLE, -ENOTSUP, "buffers cannot be mapped");
	refused(&other, fd, 64, 0, -EINVAL, "in no bank of card 1: export it by");
	assert_int_equal(close(fd), 0);
	sure(b->cold.mem_free(s.dev, mem));
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	refused(&s, fd, 64, 0, -EINVAL, "xrtBOImport: no reason given: descriptor");
	assert_int_equal(close(fd), 0);
	side_close(&other);
	end(&s);
}

/* A partition has only memory of its own banks. */
static void banks(void **state)
{
	struct side s, other;
	void *mem;
	int fd;

	(void)state;
	begin(&s);
	side_open(&other, 0, 1, LOW);
	mem = exportable(&s, BYTES, HIGH);
	fd = export(&s, mem);
	refused(&other, fd, BYTES, 0, -EINVAL,
		"in bank DDR[1], which is none of the partition's (colours 0x1)");
	assert_int_equal(close(fd), 0);
	sure(b->cold.mem_free(s.dev, mem));
	mem = exportable(&s, BYTES, LOW);
	fd = export(&s, mem);
	sure(b->cold.mem_free(other.dev, import(&other, fd, BYTES)));
	assert_int_equal(close(fd), 0);
	sure(b->cold.mem_free(s.dev, mem));
	side_close(&other);
	end(&s);
}

/* An import counts like an allocation. */
static void no_room(void **state)
{
	struct hal_device_info before = {.size = sizeof(before)}, info = before;
	void *mem, *more[2], *to;
	struct side s;
	int fd;

	(void)state;
	begin(&s);
	mem = exportable(&s, BYTES, HIGH);
	fd = export(&s, mem);
	more[0] = exportable(&s, (1 << 20) - 6 * 4096, HIGH);
	sure(b->cold.get_info(s.dev, &before));
	to = import(&s, fd, BYTES);
	sure(b->cold.get_info(s.dev, &info));
	assert_int_equal(before.memory_free - info.memory_free, 8192);
	sure(b->cold.mem_free(s.dev, import(&s, fd, BYTES)));
	stand_in()->break_call("xrtBOImport", 1, ENOMEM);
	refused(&s, fd, BYTES, 0, -ENOSPC, "xrtBOImport: ENOMEM: descriptor");
	more[1] = exportable(&s, 8192, HIGH);
	refused(&s, fd, BYTES, 0, -ENOSPC, "no bank has 8192 bytes free");
	sure(b->cold.mem_free(s.dev, more[1]));
	sure(b->cold.mem_free(s.dev, to));
	sure(b->cold.get_info(s.dev, &info));
	assert_int_equal(before.memory_free, info.memory_free);
	sure(b->cold.mem_free(s.dev, more[0]));
	sure(b->cold.mem_free(s.dev, mem));
	assert_int_equal(close(fd), 0);
	end(&s);
}

/* XRT has no host memory of it: nothing stays counted. */
static void no_host_memory(void **state)
{
	struct hal_device_info before = {.size = sizeof(before)}, info = before;
	struct side s;
	void *mem;
	int fd;

	(void)state;
	begin(&s);
	mem = exportable(&s, BYTES, BOTH);
	fd = export(&s, mem);
	sure(b->cold.get_info(s.dev, &before));
	stand_in()->break_call("xrtBOMap", 1, EFAULT);
	refused(&s, fd, BYTES, 0, -EFAULT, "xrtBOMap: EFAULT: host memory of descriptor");
	sure(b->cold.get_info(s.dev, &info));
	assert_int_equal(before.memory_free, info.memory_free);
	sure(b->cold.mem_free(s.dev, mem));
	assert_int_equal(close(fd), 0);
	end(&s);
}

static void no_numbers(void **state)
{
	struct rlimit all, none;
	struct side s;
	void *mem;
	int fd;

	(void)state;
	begin(&s);
	mem = exportable(&s, BYTES, BOTH);
	assert_int_equal(close(export(&s, mem)), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = all;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(b->cold.mem_export(s.dev, mem, &fd), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_non_null(strstr(host_text, "cannot be copied"));
	sure(b->cold.mem_free(s.dev, mem));
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_openings),      cmocka_unit_test(descriptors),
		cmocka_unit_test(wrong_descriptors), cmocka_unit_test(banks),
		cmocka_unit_test(no_room),           cmocka_unit_test(no_host_memory),
		cmocka_unit_test(no_numbers),
	};

	b = hal_backend_fpga(&host);
	near.xclbin = make_file(BANKS KERNEL);
	far.xclbin = make_file("platform hal_stand_in_2\n" BANKS KERNEL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
