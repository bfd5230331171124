/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU that is exported and imported by file descriptor. */
#define _GNU_SOURCE
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define BOTH  (HAL_CAP_EXPORT | HAL_CAP_IMPORT)
#define BYTES UINT64_C(5000)

static uint64_t calls(const char *name)
{
	return rig_face.stand_in()->calls(name);
}

static void info_of(const struct rig *r, struct hal_device_info *info)
{
	*info = (struct hal_device_info)HAL_INIT(hal_device_info);
	assert_int_equal(rig_face.backend->cold.get_info(r->dev, info), 0);
}

static uint64_t free_bytes(const struct rig *r)
{
	struct hal_device_info info;

	info_of(r, &info);
	return info.memory_free;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + rig_face.granule - 1) / rig_face.granule * rig_face.granule;
}

static int make(const struct rig *r, uint64_t bytes, uint32_t flags, void **mem)
{
	return rig_face.backend->cold.mem_alloc(r->dev, r->part, bytes, NULL,
						HAL_BUFFER_EXPORTABLE | flags, mem);
}

static void *exported(const struct rig *r, uint64_t bytes, int *fd)
{
	void *mem;

	if (make(r, bytes, 0, &mem) || rig_face.backend->cold.mem_export(r->dev, mem, fd))
		fail_msg("%s", host_text);
	return mem;
}

static int import(const struct rig *r, int fd, uint64_t bytes, uint32_t flags, void **mem)
{
	return rig_face.backend->cold.mem_import(r->dev, r->part, fd, bytes, flags, mem);
}

static void *imported(const struct rig *r, int fd, uint64_t bytes)
{
	void *mem;

	if (import(r, fd, bytes, 0, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void release(const struct rig *r, void *mem)
{
	if (rig_face.backend->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

static void says(const char *what)
{
	if (!strstr(host_text, what))
		fail_msg("\"%s\" does not have \"%s\"", host_text, what);
}

static uint32_t word(const struct rig *r, void *mem, uint64_t at)
{
	uint32_t v;

	assert_int_equal(rig_face.backend->cold.mem_read(r->dev, mem, at, &v, 4), 0);
	return v;
}

static uint32_t descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(all);
	while (readdir(all))
		n++;
	(void)closedir(all);
	return n;
}

/* Kernels, copies and the host reach the same bytes by both, and by an import of what has
 * been exported again; the last of them keeps them. */
void share_reaches(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t put = 41;
	void *from, *to, *again;
	struct rig r;
	int fd, other;
	uint32_t before;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	before = descriptors();
	from = exported(&r, BYTES, &fd);
	to = imported(&r, fd, BYTES);
	(void)close(fd);
	assert_int_equal(b->cold.mem_write(r.dev, from, 0, &put, 4), 0);
	assert_int_equal(rig_launch(&r, r.work, 1000, 1, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	r.args[r.launches % 4][0].mem = NULL;
	cmd.launch.args = (struct hal_bk_arg[]){{to, 0, 64}, {NULL, 1000, 0}};
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(word(&r, from, 0), 42);
	assert_int_equal(b->cold.mem_export(r.dev, from, &other), 0);
	release(&r, from);
	again = imported(&r, other, 64);
	release(&r, to);
	assert_int_equal(word(&r, again, 0), 42);
	release(&r, again);
	/* Only a descriptor has it. */
	again = imported(&r, other, BYTES);
	(void)close(other);
	assert_int_equal(word(&r, again, 0), 42);
	release(&r, again);
	assert_int_equal(descriptors(), before);
	rig_end(&r);
}

/* Both count as used memory, in whole granules. */
void share_counts(void **state)
{
	uint64_t before;
	void *from, *to;
	struct rig r;
	int fd;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	before = free_bytes(&r);
	from = exported(&r, rig_face.granule + 1, &fd);
	assert_int_equal(before - free_bytes(&r), 2 * rig_face.granule);
	to = imported(&r, fd, 1);
	(void)close(fd);
	assert_int_equal(before - free_bytes(&r), 3 * rig_face.granule);
	release(&r, from);
	assert_int_equal(before - free_bytes(&r), rig_face.granule);
	release(&r, to);
	assert_int_equal(before - free_bytes(&r), 0);
	rig_end(&r);
}

static void import_refused_of(const struct rig *r, int fd)
{
	void *mem;

	assert_true(fd >= 0);
	assert_int_equal(import(r, fd, 64, 0, &mem), -EINVAL);
	says(rig_face.import);
	says("is not memory that this device can import");
	(void)close(fd);
}

/* Descriptors of something else, more bytes than there are, and mappable memory. */
void share_refused(void **state)
{
	void *from, *mem;
	int fd, other[2];
	uint64_t before;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	before = free_bytes(&r);
	import_refused_of(&r, open("/dev/null", O_RDWR | O_CLOEXEC));
	import_refused_of(&r, memfd_create("memory", MFD_CLOEXEC));
	assert_int_equal(pipe2(other, O_CLOEXEC), 0);
	import_refused_of(&r, other[0]);
	(void)close(other[1]);
	from = exported(&r, BYTES, &fd);
	assert_int_equal(import(&r, fd, rounded(BYTES) + 1, 0, &mem), -EINVAL);
	assert_int_equal(import(&r, fd, UINT64_MAX, 0, &mem), -ENOSPC);
	says("18446744073709551615 bytes requested, ");
	assert_int_equal(import(&r, fd, BYTES, HAL_BUFFER_MAPPABLE, &mem), -ENOTSUP);
	says("without HAL_BUFFER_MAPPABLE");
	assert_int_equal(make(&r, BYTES, HAL_BUFFER_MAPPABLE, &mem), -ENOTSUP);
	says("without HAL_BUFFER_MAPPABLE");
	assert_int_equal(make(&r, UINT64_MAX, 0, &mem), -ENOSPC);
	release(&r, from);
	(void)close(fd);
	assert_int_equal(free_bytes(&r), before);
	rig_end(&r);
}

/* What the library says of a descriptor is -EINVAL, unless memory or the device is
 * gone. */
void share_strange(void **state)
{
	static const struct {
		uint32_t result;
		int err;
	} all[] = {{1, EINVAL},   {304, EINVAL}, {400, EINVAL},
		   {801, EINVAL}, {2, ENOSPC},   {700, EIO}};
	const struct gpu_stand_in *s = rig_face.stand_in();
	void *from, *mem;
	struct rig r;
	uint32_t i;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		rig_begin(&r, RIG_BETWEEN);
		from = exported(&r, BYTES, &fd);
		assert_int_equal(s->break_call(rig_face.import, 1, all[i].result), 0);
		assert_int_equal(import(&r, fd, BYTES, 0, &mem), -all[i].err);
		says(rig_face.import);
		if (all[i].err != EIO)
			release(&r, imported(&r, fd, BYTES));
		(void)close(fd);
		if (all[i].err == EIO)
			s->lose(rig_face.device, all[i].result);
		release(&r, from);
		rig_put_away(&r);
	}
	s->reset();
}

/* With buffers in the host's memory nothing is shared. */
void share_of_host(void **state)
{
	struct hal_device_info info;
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_HOST);
	info_of(&r, &info);
	assert_int_equal(info.caps & BOTH, 0);
	assert_int_equal(make(&r, BYTES, 0, &mem), -ENOTSUP);
	says("memory=host");
	assert_int_equal(import(&r, 0, BYTES, 0, &mem), -ENOTSUP);
	says("memory=host");
	rig_end(&r);
	rig_begin(&r, RIG_BETWEEN);
	info_of(&r, &info);
	assert_int_equal(info.caps & BOTH, BOTH);
	rig_end(&r);
}

/* An allocation that finds no memory waits for what has been freed. */
void share_no_room(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	struct hal_bk_cmd cmd;
	void *mem, *more;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	s->memory_left(3 * rig_face.granule);
	assert_int_equal(make(&r, 2 * rig_face.granule, 0, &mem), 0);
	assert_int_equal(make(&r, 2 * rig_face.granule, 0, &more), -ENOSPC);
	assert_int_equal(rig_launch(&r, r.work, 1000000, 1, &cmd), 0);
	release(&r, mem);
	s->frees_wait(1);
	assert_int_equal(make(&r, 2 * rig_face.granule, 0, &more), 0);
	assert_int_equal(rig_finish(&r), 1);
	release(&r, more);
	rig_end(&r);
}

/* While something runs nothing is unmapped: the engine would wait for it. */
void share_while_it_runs(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	struct hal_bk_cmd cmd;
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(make(&r, BYTES, 0, &mem), 0);
	assert_int_equal(rig_launch(&r, r.work, 1000000, 1, &cmd), 0);
	s->hot(1);
	release(&r, mem);
	assert_int_equal(rig_run_for(&r, 500000), 0);
	s->hot(0);
	assert_int_equal(calls(rig_face.unmap), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_run_for(&r, 1000), 0);
	assert_int_equal(calls(rig_face.unmap), 1);
	rig_end(&r);
}

/* The thread that frees makes no call that may wait. */
void share_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	void *from, *to;
	struct rig r;
	int fd;

	(void)state;
	rig_begin(&r, RIG_REAL);
	s->watch(pthread_self());
	from = exported(&r, BYTES, &fd);
	to = imported(&r, fd, BYTES);
	(void)close(fd);
	release(&r, from);
	assert_int_equal(word(&r, to, 0), word(&r, to, 0));
	release(&r, to);
	assert_int_equal(s->watched(rig_face.unmap), 0);
	rig_end(&r);
	assert_int_equal(calls(rig_face.unmap), 2);
}

/* Memory of another device is refused, here by the call that gives access. */
void share_other_device(void **state)
{
	const uint32_t here = rig_face.device;
	struct rig r, other;
	void *from, *mem;
	uint64_t before;
	int fd;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	rig_face.device = !here;
	rig_open(&other, RIG_BETWEEN);
	rig_face.device = here;
	from = exported(&other, BYTES, &fd);
	before = free_bytes(&r);
	assert_int_equal(import(&r, fd, BYTES, 0, &mem), -ENOTSUP);
	says("Access");
	assert_int_equal(free_bytes(&r), before);
	(void)close(fd);
	release(&other, from);
	rig_put_away(&other);
	rig_end(&r);
}

/* Objects of a lost device can be released. */
void share_lost(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	void *from, *to, *mem;
	struct rig r;
	int fd, other = -1;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	from = exported(&r, BYTES, &fd);
	to = imported(&r, fd, BYTES);
	s->lose(rig_face.device, 700);
	assert_int_equal(import(&r, fd, BYTES, 0, &mem), -EIO);
	assert_int_equal(make(&r, BYTES, 0, &mem), -EIO);
	if (rig_face.backend->cold.mem_export(r.dev, from, &other) == 0)
		(void)close(other);
	release(&r, from);
	release(&r, to);
	(void)close(fd);
	rig_put_away(&r);
	s->reset();
}
