/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of the NPU whose bytes are a memory file: where they lie, what is refused, that
 * nobody else's memory changes when they come and go, that computation on them takes the
 * same cycles.  What every backend does: tests/conformance/cases_share.c; two processes:
 * tests/share.  Linked with --wrap=mmap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "npu_test.h"

#define REFUSED(call, err, what)                                                         \
	do {                                                                             \
		int got_ = (call);                                                       \
		if (got_ != (err) || !strstr(hal_last_error(), what))                    \
			fail_msg("%s: %d, \"%s\"; not %s with \"%s\"", #call, got_,      \
				 hal_last_error(), #err, what);                          \
	} while (0)

/* In a static library the registry's weak reference alone does not bring it in. */
const struct hal_backend *hal_backend_ref(const struct hal_host *host);
__attribute__((used)) static const struct hal_backend *(*const keep_ref)(
	const struct hal_host *) = hal_backend_ref;

enum { BYTES = 20000, MOST = 64 << 10, GEMM = 64 };

/* ---- mmap that fails --------------------------------------------------------------- */

/* Bit i: the i-th mmap at a fixed address from now on fails.  As the kernel may, it
 * leaves nothing mapped there. */
static unsigned int failing;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	bool fails = flags & MAP_FIXED && failing & 1;

	if (flags & MAP_FIXED)
		failing >>= 1;
	if (!fails)
		return __real_mmap(at, bytes, prot, flags, fd, offset);
	(void)munmap(at, bytes);
	errno = ENOMEM;
	return MAP_FAILED;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- devices, buffers, files ------------------------------------------------------- */

struct side {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
};

static void side_open_on(struct side *s, const char *target, uint64_t colors)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	const struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	OK(hal_open(target, NULL, &s->dev));
	OK(hal_device_get_info(s->dev, &info));
	d.units_floor = info.unit_rows * info.unit_cols;
	d.color_mask = colors;
	OK(hal_partition_create(s->dev, &d, &s->part));
	OK(hal_queue_create(s->part, &qd, &s->q));
}

/* more: options of the NPU, on the fast engine. */
static void side_open(struct side *s, const char *more)
{
	char target[256];

	snprintf(target, sizeof(target), "npu:0?model=%s&%s", FAST, more);
	side_open_on(s, target, 0);
}

static void side_close(struct side *s)
{
	OK(hal_queue_destroy(s->q));
	OK(hal_partition_destroy(s->part));
	OK(hal_close(s->dev));
}

static int make(const struct side *s, uint64_t bytes, uint32_t flags,
		struct hal_buffer **out)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	d.flags = flags;
	return hal_buffer_create(s->part, &d, out);
}

static struct hal_buffer *made(const struct side *s, uint64_t bytes, uint32_t flags)
{
	struct hal_buffer *b;

	OK(make(s, bytes, flags, &b));
	return b;
}

static int import(const struct side *s, int fd, uint64_t bytes, struct hal_buffer **out)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	return hal_buffer_import(s->part, fd, &d, out);
}

static struct hal_buffer *imported(const struct side *s, int fd, uint64_t bytes)
{
	struct hal_buffer *b;

	OK(import(s, fd, bytes, &b));
	return b;
}

static int exported(struct hal_buffer *b)
{
	int fd;

	OK(hal_buffer_export(b, &fd));
	return fd;
}

static void run(const struct side *s, struct hal_cmd cmd)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(s->q, &d, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
}

static void fill(const struct side *s, struct hal_buffer *b, uint64_t offset,
		 uint64_t bytes, uint32_t pattern)
{
	run(s, hal_cmd_fill(b, offset, bytes, pattern));
}

static void expect(struct hal_buffer *b, uint64_t offset, uint64_t bytes,
		   uint32_t pattern)
{
	static uint32_t data[MOST / 4];

	assert_true(bytes <= MOST);
	OK(hal_buffer_read(b, offset, data, bytes));
	for (uint64_t i = 0; i < bytes / 4; i++)
		assert_int_equal(data[i], pattern);
}

/* Where in device memory a mappable buffer begins. */
static uint64_t place(const struct side *s, struct hal_buffer *b)
{
	const struct hal_npu_extension *ext = hal_device_get_extension(s->dev, "npu");
	uint64_t physical;
	void *at;

	OK(hal_buffer_map(b, &at));
	OK(ext->physical(hal_device_get_native(s->dev), at, &physical));
	OK(hal_buffer_unmap(b));
	return physical;
}

static uint64_t memory_free(const struct side *s)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	OK(hal_device_get_info(s->dev, &info));
	return info.memory_free;
}

static uint64_t page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* bytes in whole pages of the host. */
static uint64_t whole(uint64_t bytes)
{
	return (bytes + page() - 1) / page() * page();
}

static int file(unsigned int flags, uint64_t bytes, int seals)
{
	int fd = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Return the number of the next descriptor: it grows with each that is left open. */
static int next_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	assert_int_equal(close(fd), 0);
	return fd;
}

static uint32_t *mapped(int fd)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* ---- where they lie ---------------------------------------------------------------- */

/* They begin at a page and take whole pages, with each size of granule; their
 * neighbours' bytes stay. */
static void test_alignment(void **state)
{
	static const char *const granules[] = {
		"granule=256&memory_size=4M", "granule=1024&memory_size=4M",
		"granule=4096&memory_size=4M", "granule=1024&memory_size=4M&hash=opaque"};
	static const uint32_t sizes[] = {4, 256, 4096, 4100, BYTES};
	struct hal_buffer *small, *shared, *after;
	struct side s;

	(void)state;
	for (uint32_t i = 0; i < 4 * 5; i++) {
		uint32_t bytes = sizes[i % 5];
		uint64_t left;

		side_open(&s, granules[i / 5]);
		small = made(&s, 300, HAL_BUFFER_MAPPABLE);
		left = memory_free(&s);
		shared = made(&s, bytes, HAL_BUFFER_EXPORTABLE);
		/* And page tables. */
		assert_in_range(left - memory_free(&s), whole(bytes),
				whole(bytes) + page());
		assert_int_equal(place(&s, shared) % page(), 0);
		after = made(&s, MOST, 0);
		fill(&s, small, 0, 300, 0x51515151);
		fill(&s, after, 0, MOST, 0x52525252);
		expect(shared, 0, bytes, 0);
		fill(&s, shared, 0, bytes, 0x53535353);
		expect(small, 0, 300, 0x51515151);
		expect(after, 0, MOST, 0x52525252);
		OK(hal_buffer_destroy(shared));
		expect(small, 0, 300, 0x51515151);
		expect(after, 0, MOST, 0x52525252);
		OK(hal_buffer_destroy(after));
		assert_int_equal(memory_free(&s), left);
		OK(hal_buffer_destroy(small));
		side_close(&s);
	}
}

/* Memory is free, but no whole page of it. */
static void test_no_pages(void **state)
{
	struct hal_buffer *all[1024], *b;
	uint32_t count = 0;
	struct side s;
	uint64_t left;
	int fd;

	(void)state;
	side_open(&s, "memory_size=1M");
	while (count < 1024 && make(&s, 1024, 0, &all[count]) == 0)
		count++;
	assert_in_range(count, 900, 1023);
	for (uint32_t i = 0; i < count; i += 2)
		OK(hal_buffer_destroy(all[i]));
	left = memory_free(&s);
	fd = file(0, BYTES, F_SEAL_SHRINK);
	REFUSED(make(&s, 1024, HAL_BUFFER_EXPORTABLE, &b), -ENOSPC,
		"consecutive granules from a page of");
	REFUSED(import(&s, fd, 1024, &b), -ENOSPC, "the longest free run has 1");
	assert_int_equal(close(fd), 0);
	assert_int_equal(memory_free(&s), left);
	for (uint32_t i = 1; i < count; i += 2)
		OK(hal_buffer_destroy(all[i]));
	OK(hal_buffer_destroy(made(&s, 1024, HAL_BUFFER_EXPORTABLE)));
	side_close(&s);
}

/* The granules of a page are on channels that the partition does not have. */
static void test_channels(void **state)
{
	char target[256];
	struct hal_buffer *b;
	struct side s;
	uint64_t left;
	int fd = file(0, BYTES, F_SEAL_SHRINK);

	(void)state;
	snprintf(target, sizeof(target), "npu:0?model=%s&memory_size=2M", FAST);
	side_open_on(&s, target, 5);
	left = memory_free(&s);
	REFUSED(make(&s, BYTES, HAL_BUFFER_EXPORTABLE, &b), -ENOTSUP,
		"on channels 0x5, of 0xf, the longest free run has");
	REFUSED(import(&s, fd, BYTES, &b), -ENOTSUP, "give the partition all channels");
	assert_int_equal(memory_free(&s), left);
	assert_int_equal(close(fd), 0);
	side_close(&s);
}

/* ---- whose memory ------------------------------------------------------------------ */

/* What may shrink or cannot be written, of both devices that take files of others. */
static void test_strangers(void **state)
{
	static const char *const targets[] = {"npu:0?model=" FAST "&memory_size=4M",
					      "ref"};
	char path[64];
	struct hal_buffer *b;
	struct side s;
	int fd, again;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		side_open_on(&s, targets[i], 0);
		fd = file(0, BYTES, F_SEAL_GROW);
		REFUSED(import(&s, fd, BYTES, &b), -EINVAL, "with F_SEAL_SHRINK first");
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		REFUSED(import(&s, fd, BYTES + 1, &b), -EINVAL, "has 20000 bytes; 20001");
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(again >= 0);
		REFUSED(import(&s, again, BYTES, &b), -EINVAL, "cannot be written");
		assert_int_equal(close(again), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
		REFUSED(import(&s, fd, BYTES, &b), -EINVAL, "cannot be written");
		assert_int_equal(close(fd), 0);
		fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
		if (fd >= 0) { /* a kernel may have none */
			assert_int_equal(ftruncate(fd, 1 << 30), 0);
			assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
			REFUSED(import(&s, fd, BYTES, &b), -EINVAL, "has huge pages");
			assert_int_equal(close(fd), 0);
		}
		side_close(&s);
	}
}

/* A file that this device did not make, of a length that is no whole page. */
static void test_file(void **state)
{
	int fd = file(0, BYTES, F_SEAL_SHRINK);
	uint32_t *at = mapped(fd);
	struct hal_buffer *b, *host;
	struct side s;
	void *address;

	(void)state;
	at[7] = 0x01020304;
	side_open(&s, "memory_size=4M");
	b = imported(&s, fd, BYTES);
	assert_int_equal(close(fd), 0);
	expect(b, 28, 4, 0x01020304);
	fill(&s, b, BYTES - 8, 8, 0x44444444);
	assert_int_equal(at[BYTES / 4 - 1], 0x44444444);
	/* By a slot of the machine's that has the partition's address space. */
	OK(hal_host_alloc(s.part, 64, &host, &address));
	memset(address, 0x66, 64);
	run(&s, hal_cmd_write(b, 128, host, 0, 64));
	assert_int_equal(at[33], 0x66666666);
	at[40] = 0x67676767;
	run(&s, hal_cmd_read(host, 0, b, 160, 4));
	assert_memory_equal(address, &at[40], 4);
	OK(hal_buffer_destroy(host));
	OK(hal_buffer_destroy(b));
	side_close(&s);
	assert_int_equal(munmap(at, BYTES), 0);
}

/* Both ways between two backends, and between two devices; each goes first once. */
static void test_crossing(void **state)
{
	static const char *const npu = "npu:0?model=" FAST "&memory_size=4M";
	const char *const from[] = {"ref", npu, npu}, *const to[] = {npu, "ref", npu};
	struct hal_buffer *a, *b;
	struct side s, t;
	int fd;

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		side_open_on(&s, from[i % 3], 0);
		side_open_on(&t, to[i % 3], 0);
		a = made(&s, BYTES, HAL_BUFFER_EXPORTABLE);
		fd = exported(a);
		b = imported(&t, fd, BYTES);
		assert_int_equal(close(fd), 0);
		fill(&s, a, 0, 512, 0x11111111);
		fill(&t, b, 512, 512, 0x22222222);
		expect(a, 512, 512, 0x22222222);
		if (i < 3) {
			OK(hal_buffer_destroy(a));
			side_close(&s);
			expect(b, 0, 512, 0x11111111);
		}
		OK(hal_buffer_destroy(b));
		side_close(&t);
		if (i >= 3) {
			expect(a, 0, 512, 0x11111111);
			expect(a, 512, 512, 0x22222222);
			OK(hal_buffer_destroy(a));
			side_close(&s);
		}
	}
}

/* The memory that a buffer leaves is not the file's any more: neither side sees what the
 * other one writes. */
static void leaves(const struct side *s, struct hal_buffer *b, int fd)
{
	uint32_t *at = mapped(fd);
	struct hal_buffer *next;
	uint64_t was;

	fill(s, b, 0, BYTES, 0x77777777);
	was = place(s, b);
	OK(hal_buffer_destroy(b));
	next = made(s, BYTES, HAL_BUFFER_MAPPABLE);
	assert_int_equal(place(s, next), was);
	expect(next, 0, BYTES, 0);
	at[9] = 0x78787878;
	expect(next, 0, 64, 0);
	fill(s, next, 0, BYTES, 0x79797979);
	assert_true(at[8] == 0x77777777 && at[9] == 0x78787878);
	OK(hal_buffer_destroy(next));
	assert_int_equal(munmap(at, BYTES), 0);
	assert_int_equal(close(fd), 0);
}

static void test_freed(void **state)
{
	struct hal_buffer *pad, *b;
	struct side s;
	int fd;

	(void)state;
	side_open(&s, "granule=4096&memory_size=4M");
	pad = made(&s, 4096, 0);
	b = made(&s, BYTES, HAL_BUFFER_EXPORTABLE);
	leaves(&s, b, exported(b));
	fd = file(0, BYTES, F_SEAL_SHRINK);
	leaves(&s, imported(&s, fd, BYTES), fd);
	OK(hal_buffer_destroy(pad));
	side_close(&s);
}

/* ---- what fails -------------------------------------------------------------------- */

/* The device's own memory is there again, and clean. */
static void whole_again(const struct side *s, uint64_t left)
{
	struct hal_buffer *b;

	assert_int_equal(failing, 0);
	assert_int_equal(memory_free(s), left);
	b = made(s, BYTES, HAL_BUFFER_EXPORTABLE);
	OK(hal_buffer_destroy(b));
	b = made(s, 2 << 20, 0);
	expect(b, 0, BYTES, 0);
	fill(s, b, 0, MOST, 0x31313131);
	OK(hal_buffer_destroy(b));
}

static void test_mmap_fails(void **state)
{
	struct hal_buffer *b, *first;
	struct side s;
	uint64_t left;
	int fd = file(0, BYTES, F_SEAL_SHRINK), next;

	(void)state;
	side_open(&s, "memory_size=4M");
	next = next_descriptor();
	first = made(&s, 8 << 10, 0); /* keeps a page table */
	left = memory_free(&s);
	failing = 1;
	REFUSED(make(&s, BYTES, HAL_BUFFER_EXPORTABLE, &b), -ENOMEM,
		"npu: mmap of a memory file of 20000 bytes");
	whole_again(&s, left);
	failing = 1;
	REFUSED(import(&s, fd, BYTES, &b), -ENOMEM, "npu: mmap of a memory file");
	whole_again(&s, left);
	/* Where the device gets no memory of its own back, nobody gets any. */
	failing = 3;
	REFUSED(import(&s, fd, BYTES, &b), -ENOMEM, "npu: mmap of a memory file");
	left -= whole(BYTES);
	whole_again(&s, left);
	b = imported(&s, fd, BYTES);
	failing = 1;
	OK(hal_buffer_destroy(b));
	left -= whole(BYTES);
	whole_again(&s, left);
	OK(hal_buffer_destroy(first));
	assert_int_equal(next_descriptor(), next);
	side_close(&s);
	assert_int_equal(close(fd), 0);
}

/* No descriptor is left for a file. */
static void test_no_descriptor(void **state)
{
	struct hal_buffer *b, *more;
	struct rlimit old, none;
	struct side s;
	uint64_t left;
	int fd;

	(void)state;
	side_open(&s, "memory_size=4M");
	b = made(&s, BYTES, HAL_BUFFER_EXPORTABLE);
	left = memory_free(&s);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	REFUSED(hal_buffer_export(b, &fd), -EMFILE, "npu: the descriptor");
	REFUSED(make(&s, BYTES, HAL_BUFFER_EXPORTABLE, &more), -EMFILE,
		"npu: memfd_create");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(memory_free(&s), left);
	OK(hal_buffer_destroy(b));
	side_close(&s);
}

/* ---- time -------------------------------------------------------------------------- */

static const int32_t mult = 1431655765, shift = -7;

static struct hal_program *gemm(const struct side *s, struct hal_kernel **k)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_builder *b;
	struct hal_program *prog;
	void *image;
	size_t size;

	OK(hal_npu_builder_create(&b));
	OK(hal_npu_kernel(b, "gemm"));
	OK(hal_npu_arg(b, GEMM * GEMM, &op.a.id));
	OK(hal_npu_arg(b, GEMM * GEMM, &op.b.id));
	OK(hal_npu_arg(b, GEMM * GEMM, &op.d.id));
	op.m = op.n = op.k = GEMM;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	OK(hal_npu_gemm(b, &op));
	OK(hal_npu_build(b, &image, &size));
	hal_npu_builder_destroy(b);
	OK(hal_program_load(s->dev, image, size, &prog));
	hal_npu_image_free(image);
	OK(hal_kernel_find(prog, "gemm", k));
	return prog;
}

/* Cycles of a GEMM whose operands have these flags; out: what it computes; at: where the
 * operands lie. */
static uint64_t cycles(const char *target, uint32_t flags, uint8_t *out, uint64_t *at)
{
	struct hal_buffer *pad[8], *b[3];
	uint8_t data[GEMM * GEMM];
	struct hal_program *prog;
	struct hal_arg args[3];
	struct hal_kernel *k;
	uint32_t pads = 0;
	struct side s;
	uint64_t from;

	side_open_on(&s, target, 0);
	prog = gemm(&s, &k);
	/* Up to the end of a page, so that ordinary memory begins at one, too. */
	do
		pad[pads] = made(&s, 1024, HAL_BUFFER_MAPPABLE);
	while ((place(&s, pad[pads++]) + 1024) % page() != 0 && pads < 8);
	for (uint32_t i = 0; i < 3; i++) {
		b[i] = made(&s, GEMM * GEMM, flags);
		at[i] = place(&s, b[i]);
		args[i] = (struct hal_arg){.buffer = b[i]};
		for (uint32_t j = 0; j < GEMM * GEMM; j++)
			data[j] = (uint8_t)(j * 7 + i * 5 + j / 61);
		OK(hal_buffer_write(b[i], 0, data, GEMM * GEMM));
	}
	from = hal_device_get_time(s.dev);
	run(&s, hal_cmd_launch(k, args, 3));
	from = hal_device_get_time(s.dev) - from;
	OK(hal_buffer_read(b[2], 0, out, GEMM * GEMM));
	for (uint32_t i = 0; i < 3; i++)
		OK(hal_buffer_destroy(b[i]));
	while (pads > 0)
		OK(hal_buffer_destroy(pad[--pads]));
	OK(hal_program_unload(prog));
	side_close(&s);
	return from;
}

static uint64_t same_cycles(const char *target)
{
	uint8_t own[GEMM * GEMM], shared[GEMM * GEMM];
	uint64_t a[3], b[3], n;

	n = cycles(target, HAL_BUFFER_MAPPABLE, own, a);
	assert_true(n > GEMM);
	assert_int_equal(cycles(target, HAL_BUFFER_EXPORTABLE, shared, b), n);
	assert_memory_equal(own, shared, GEMM * GEMM);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(a[i], b[i]);
	return n;
}

/* Computation takes the cycles that it takes in mappable memory at that place; on the
 * fast engine and, where its model is built, on the RTL. */
static void test_cycles(void **state)
{
	struct hal_device *dev;
	uint64_t fast;

	(void)state;
	if (page() != GEMM * GEMM) /* else the operands lie elsewhere */
		skip();
	fast = same_cycles("npu:0?model=" FAST "&memory_size=8M");
	if (getenv("LD_PRELOAD") ||
	    hal_open("npu:0?memory_size=8M", NULL, &dev) == -ENODEV)
		return;
	OK(hal_close(dev));
	assert_int_equal(same_cycles("npu:0?memory_size=8M"), fast);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alignment),     cmocka_unit_test(test_no_pages),
		cmocka_unit_test(test_channels),      cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_file),          cmocka_unit_test(test_crossing),
		cmocka_unit_test(test_freed),         cmocka_unit_test(test_mmap_fails),
		cmocka_unit_test(test_no_descriptor), cmocka_unit_test(test_cycles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
