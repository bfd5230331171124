/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's rules of memory at addresses of one's own, each broken once. */
#define _GNU_SOURCE
#include "driver_kit.h"

#include <sys/mman.h>
#include <unistd.h>

#define MIB UINT64_C(1048576)
#define G   (2 * MIB)

static void *stream;

struct rules_face rules_face;

static const struct cu_memory_prop prop = {.type = CU_MEMORY_PINNED,
					   .location = {CU_LOCATION_DEVICE, 0}};
static const struct cu_access both = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};

static int begin_with_stream(void **state)
{
	(void)begin(state);
	IS(0, cuStreamCreateWithPriority, &stream, 1, 0);
	return 0;
}

/* Addresses of four granules; the first two are mapped, one by one. */
static uint64_t four(bool access)
{
	uint64_t at, memory;
	uint32_t i;

	IS(0, cuMemAddressReserve, &at, 4 * G, 0, 0, 0);
	for (i = 0; i < 2; i++) {
		IS(0, cuMemCreate, &memory, G, &prop, 0);
		IS(0, cuMemMap, at + i * G, G, 0, memory, 0);
		IS(0, cuMemRelease, memory);
	}
	if (access)
		IS(0, cuMemSetAccess, at, 2 * G, &both, 1);
	return at;
}

/* work(at, ns) */
static void launch(uint64_t at, uint64_t ns)
{
	static const char *const kernels[] = {"work:m8"};
	void *module, *function, *params[2] = {&at, &ns};
	size_t size;
	char *image = make_cuda_image(kernels, 1, 4, &size);

	IS(0, cuModuleLoadDataEx, &module,
	   image + sizeof(struct hal_cuda_image) + sizeof(struct hal_cuda_kernel), 0,
	   NULL, NULL);
	free(image);
	IS(0, cuModuleGetFunction, &function, module, "work");
	IS(0, cuFuncLoad, function);
	IS(0, cuLaunchKernel, function, 1, 1, 1, 4, 1, 1, 0, stream, params, NULL);
}

static void run(uint64_t ns)
{
	rules_run_for(ns);
}

static void multiples(void **state)
{
	struct cu_memory_prop wrong = prop;
	uint64_t at, memory;
	size_t bytes;

	(void)state;
	IS(0, cuMemGetAllocationGranularity, &bytes, &prop, CU_GRANULARITY_MINIMUM);
	assert_int_equal(bytes, G);
	wrong.location.id = 7;
	IS(CUR_INVALID_VALUE, cuMemGetAllocationGranularity, &bytes, &wrong, 0);
	IS(CUR_INVALID_DEVICE, cuMemCreate, &memory, G, &wrong, 0);
	wrong = prop;
	wrong.type = 0;
	IS(CUR_INVALID_VALUE, cuMemCreate, &memory, G, &wrong, 0);
	IS(CUR_INVALID_VALUE, cuMemCreate, &memory, MIB, &prop, 0);
	IS(CUR_INVALID_VALUE, cuMemCreate, &memory, 0, &prop, 0);
	IS(CUR_INVALID_VALUE, cuMemCreate, &memory, G, &prop, 1);
	IS(CUR_INVALID_VALUE, cuMemAddressReserve, &at, MIB, 0, 0, 0);
	IS(CUR_INVALID_VALUE, cuMemAddressReserve, &at, 0, 0, 0, 0);
	IS(CUR_INVALID_VALUE, cuMemAddressReserve, &at, G, 3, 0, 0);
	IS(CUR_INVALID_VALUE, cuMemAddressReserve, &at, G, 0, 0, 1);
	IS(0, cuMemAddressReserve, &at, 2 * G, 0, 0, 0);
	assert_int_equal(at % G, 0);
	IS(0, cuMemCreate, &memory, G, &prop, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at + MIB, G, 0, memory, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at, MIB, 0, memory, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at, G, MIB, memory, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at, G, 0, memory, 1);
	IS(CUR_INVALID_VALUE, cuMemMap, at, 2 * G, 0, memory, 0); /* it has one */
	IS(CUR_INVALID_VALUE, cuMemMap, at + 2 * G, G, 0, memory, 0);
	IS(0, cuMemMap, at, G, 0, memory, 0);
	assert_int_equal(s->misuse(NULL), 0);
}

static void no_access(void **state)
{
	const uint64_t at = four(false);

	(void)state;
	IS(CUR_INVALID_VALUE, cuMemsetD32Async, at, 7, 1, stream);
	launch(at, 1000);
	run(1000000);
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, stream);
}

static void access_of_all(void **state)
{
	const struct cu_access none = {{CU_LOCATION_DEVICE, 0}, 0};
	const uint64_t at = four(false);

	(void)state;
	IS(CUR_INVALID_VALUE, cuMemSetAccess, at, MIB, &both, 1);
	IS(CUR_INVALID_VALUE, cuMemSetAccess, at, 3 * G, &both, 1);
	IS(CUR_INVALID_VALUE, cuMemSetAccess, at + 2 * G, G, &both, 1);
	IS(CUR_INVALID_VALUE, cuMemSetAccess, at, 5 * G, &both, 1);
	IS(0, cuMemSetAccess, at, 2 * G, &both, 1);
	/* Over both of them. */
	IS(0, cuMemsetD32Async, at + G - 4, 7, 2, stream);
	IS(CUR_INVALID_VALUE, cuMemsetD32Async, at + 2 * G - 4, 7, 2, stream);
	run(1000000);
	IS(0, cuMemSetAccess, at, G, &none, 1);
	IS(CUR_INVALID_VALUE, cuMemsetD32Async, at, 7, 1, stream);
	assert_int_equal(s->misuse(NULL), 0);
}

static void mapped_once(void **state)
{
	const uint64_t at = four(true);
	uint64_t memory;

	(void)state;
	IS(0, cuMemCreate, &memory, 2 * G, &prop, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at, G, 0, memory, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at + G, 2 * G, 0, memory, 0);
	IS(0, cuMemMap, at + 2 * G, 2 * G, 0, memory, 0);
	assert_int_equal(s->misuse(NULL), 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at + 2 * G, 2 * G, 0, memory, 0);
}

static void unmapped_exactly(void **state)
{
	const uint64_t at = four(true);

	(void)state;
	IS(0, cuMemUnmap, at, 2 * G); /* both */
	assert_int_equal(s->misuse(NULL), 0);
	IS(CUR_INVALID_VALUE, cuMemUnmap, at, G);
	rules_misused("are not what was mapped");
}

static void unmapped_in_part(void **state)
{
	const uint64_t at = four(true);
	uint64_t memory;

	(void)state;
	IS(0, cuMemCreate, &memory, 2 * G, &prop, 0);
	IS(0, cuMemMap, at + 2 * G, 2 * G, 0, memory, 0);
	IS(0, cuMemUnmap, at + G, G);
	/* As many bytes as are mapped, but not these. */
	IS(CUR_INVALID_VALUE, cuMemUnmap, at + G, 2 * G);
	rules_misused("are not what was mapped");
}

/* It lives until neither is left, and is fresh for the next one. */
static void released_first(void **state)
{
	const uint64_t at = four(true);
	size_t left, all, then;
	uint64_t memory;
	uint32_t *pinned;

	(void)state;
	IS(0, cuMemHostAlloc, (void **)&pinned, 64, 3);
	IS(0, cuMemGetInfo_v2, &left, &all);
	assert_int_equal(all - left, 2 * G);
	IS(0, cuMemsetD32Async, at, 7, 2, stream);
	IS(0, cuMemcpyAsync, (uintptr_t)pinned, at, 16, stream);
	run(1000000);
	assert_int_equal(pinned[1], 7);
	assert_int_equal(pinned[2], 0xa5a5a5a5);
	IS(0, cuMemUnmap, at, G);
	IS(0, cuMemGetInfo_v2, &then, &all);
	assert_int_equal(then - left, G);
	IS(0, cuMemCreate, &memory, G, &prop, 0);
	IS(0, cuMemMap, at, G, 0, memory, 0);
	IS(0, cuMemSetAccess, at, G, &both, 1);
	IS(0, cuMemcpyAsync, (uintptr_t)pinned, at, 16, stream);
	run(1000000);
	assert_int_equal(pinned[1], 0xa5a5a5a5);
	IS(0, cuMemUnmap, at, G);
	IS(0, cuMemGetInfo_v2, &then, &all);
	assert_int_equal(then, left);
	IS(0, cuMemRelease, memory);
	IS(0, cuMemGetInfo_v2, &then, &all);
	assert_int_equal(then - left, G);
	assert_int_equal(s->misuse(NULL), 0);
	IS(CUR_INVALID_VALUE, cuMemRelease, memory);
	rules_misused("used after its end");
}

static void unmapped_in_flight(void **state)
{
	const uint64_t at = four(true);

	(void)state;
	launch(at, 1000000);
	IS(0, cuMemUnmap, at, 2 * G);
	rules_misused("is in use");
	run(2000000);
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, stream);
}

static void unmap_that_waits(void **state)
{
	const uint64_t at = four(true), before = s->now();

	(void)state;
	launch(at, 1000000);
	s->frees_wait(1);
	IS(0, cuMemUnmap, at + G, G);
	assert_true(s->now() - before >= 1000000);
	assert_int_equal(s->misuse(NULL), 0);
}

static void unmap_when_hot(void **state)
{
	const uint64_t at = four(true);

	(void)state;
	launch(at, 1000000);
	s->hot(1);
	IS(0, cuMemUnmap, at + G, G);
	s->hot(0);
	rules_misused("cuMemUnmap can block");
}

static void used_after_unmap(void **state)
{
	const uint64_t at = four(true);

	(void)state;
	IS(0, cuMemUnmap, at, 2 * G);
	launch(at, 1000);
	run(1000000);
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, stream);
}

static void addresses_in_use(void **state)
{
	const uint64_t at = four(true);

	(void)state;
	IS(CUR_INVALID_VALUE, cuMemAddressFree, at, 4 * G);
	rules_misused("memory is mapped");
}

static void addresses_in_part(void **state)
{
	uint64_t at;

	(void)state;
	IS(0, cuMemAddressReserve, &at, 4 * G, 0, 0, 0);
	IS(CUR_INVALID_VALUE, cuMemAddressFree, at, G);
	rules_misused("is no reservation of");
}

/* They are no memory of the other kind. */
static void freed_otherwise(void **state)
{
	(void)state;
	IS(CUR_INVALID_VALUE, cuMemFree_v2, four(true));
	rules_misused("is not allocated");
}

static void left_over(void **state)
{
	const uint32_t before = s->live();
	uint64_t at, memory;

	(void)state;
	IS(0, cuMemAddressReserve, &at, G, 0, 0, 0);
	assert_int_equal(s->live() - before, 1);
	IS(0, cuMemCreate, &memory, G, &prop, 0);
	assert_int_equal(s->live() - before, 2);
	IS(0, cuMemRelease, memory);
	IS(0, cuMemAddressFree, at, G);
	assert_int_equal(s->live(), before);
}

static void no_room(void **state)
{
	uint64_t memory, more;

	(void)state;
	s->memory_left(3 * G - 1);
	IS(0, cuMemCreate, &memory, 2 * G, &prop, 0);
	IS(CUR_OUT_OF_MEMORY, cuMemCreate, &more, G, &prop, 0);
	IS(0, cuMemRelease, memory);
	IS(0, cuMemCreate, &more, G, &prop, 0);
}

/* ---- memory that is exported --------------------------------------------------------- */

static const struct cu_memory_prop shared_prop = {.type = CU_MEMORY_PINNED,
						  .handles = CU_HANDLE_FD,
						  .location = {CU_LOCATION_DEVICE, 0}};

static void *of_fd(int fd)
{
	return (void *)(uintptr_t)fd;
}

/* A granule of the memory at addresses of its own. */
static uint64_t mapped(uint64_t memory, bool access)
{
	uint64_t at;

	IS(0, cuMemAddressReserve, &at, G, 0, 0, 0);
	IS(0, cuMemMap, at, G, 0, memory, 0);
	if (access)
		IS(0, cuMemSetAccess, at, G, &both, 1);
	return at;
}

static uint32_t read_word(uint64_t at, uint32_t *pinned)
{
	IS(0, cuMemcpyAsync, (uintptr_t)pinned, at, 4, stream);
	run(1000000);
	return *pinned;
}

/* The same bytes at two addresses, as long as any of them or a descriptor is there; it
 * counts once. */
static void shared_bytes(void **state)
{
	uint64_t memory, import, at, there;
	size_t before, left, all;
	uint32_t *pinned;
	int fd;

	(void)state;
	IS(0, cuMemHostAlloc, (void **)&pinned, 64, 3);
	IS(0, cuMemGetInfo_v2, &before, &all);
	IS(0, cuMemCreate, &memory, G, &shared_prop, 0);
	at = mapped(memory, true);
	assert_int_equal(read_word(at, pinned), 0xa5a5a5a5);
	IS(0, cuMemExportToShareableHandle, &fd, memory, CU_HANDLE_FD, 0);
	IS(0, cuMemRelease, memory);
	IS(0, cuMemImportFromShareableHandle, &import, of_fd(fd), CU_HANDLE_FD);
	there = mapped(import, true);
	IS(0, cuMemRelease, import);
	IS(0, cuMemsetD32Async, at, 7, 1, stream);
	run(1000000);
	assert_int_equal(read_word(there, pinned), 7);
	IS(0, cuMemGetInfo_v2, &left, &all);
	assert_int_equal(before - left, G);
	IS(0, cuMemUnmap, at, G);
	IS(0, cuMemGetInfo_v2, &left, &all);
	assert_int_equal(before - left, G);
	IS(0, cuMemUnmap, there, G);
	IS(0, cuMemGetInfo_v2, &left, &all);
	assert_int_equal(left, before);
	IS(0, cuMemImportFromShareableHandle, &import, of_fd(fd), CU_HANDLE_FD);
	close(fd);
	assert_int_equal(read_word(mapped(import, true), pinned), 7);
	assert_int_equal(s->misuse(NULL), 0);
}

static void shared_no_access(void **state)
{
	uint64_t memory, at;

	(void)state;
	IS(0, cuMemCreate, &memory, G, &shared_prop, 0);
	at = mapped(memory, false);
	IS(CUR_INVALID_VALUE, cuMemsetD32Async, at, 7, 1, stream);
	launch(at, 1000);
	run(1000000);
	IS(CUR_ILLEGAL_ADDRESS, cuStreamQuery, stream);
}

static void export_refused(void **state)
{
	struct cu_memory_prop wrong = shared_prop;
	uint64_t memory, plain, import;
	int fd, other;

	(void)state;
	wrong.handles = 2; /* of another system */
	IS(CUR_INVALID_VALUE, cuMemCreate, &memory, G, &wrong, 0);
	IS(0, cuMemCreate, &plain, G, &prop, 0);
	IS(CUR_INVALID_VALUE, cuMemExportToShareableHandle, &fd, plain, CU_HANDLE_FD, 0);
	IS(0, cuMemCreate, &memory, G, &shared_prop, 0);
	IS(CUR_INVALID_VALUE, cuMemExportToShareableHandle, &fd, memory, CU_HANDLE_FD, 1);
	IS(CUR_INVALID_VALUE, cuMemExportToShareableHandle, &fd, memory, 2, 0);
	IS(0, cuMemExportToShareableHandle, &fd, memory, CU_HANDLE_FD, 0);
	IS(CUR_INVALID_VALUE, cuMemImportFromShareableHandle, &import, of_fd(fd), 2);
	IS(CUR_INVALID_VALUE, cuMemImportFromShareableHandle, &import, &fd, CU_HANDLE_FD);
	IS(0, cuMemImportFromShareableHandle, &import, of_fd(fd), CU_HANDLE_FD);
	/* What is imported is not exported again. */
	IS(CUR_INVALID_VALUE, cuMemExportToShareableHandle, &other, import, CU_HANDLE_FD,
	   0);
	close(fd);
	fd = memfd_create("of another", MFD_CLOEXEC);
	IS(CUR_INVALID_VALUE, cuMemImportFromShareableHandle, &import, of_fd(fd),
	   CU_HANDLE_FD);
	close(fd);
	IS(CUR_INVALID_VALUE, cuMemImportFromShareableHandle, &import, of_fd(fd),
	   CU_HANDLE_FD);
	assert_int_equal(s->misuse(NULL), 0);
}

static void export_after_release(void **state)
{
	uint64_t memory;
	int fd;

	(void)state;
	IS(0, cuMemCreate, &memory, G, &shared_prop, 0);
	IS(0, cuMemRelease, memory);
	IS(CUR_INVALID_VALUE, cuMemExportToShareableHandle, &fd, memory, CU_HANDLE_FD, 0);
	rules_misused("used after its end");
}

/* A handle that is retained is released once more. */
static void retained(void **state)
{
	const uint64_t at = four(true);
	const uint32_t before = s->live();
	uint64_t memory, again;

	(void)state;
	IS(CUR_INVALID_VALUE, cuMemRetainAllocationHandle, &memory,
	   (void *)(uintptr_t)(at + 2 * G));
	IS(0, cuMemRetainAllocationHandle, &memory, (void *)(uintptr_t)(at + 4096));
	IS(0, cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)at);
	assert_int_equal(again, memory);
	assert_int_equal(s->live() - before, 1);
	IS(0, cuMemRelease, memory);
	IS(0, cuMemRelease, memory);
	assert_int_equal(s->live(), before);
	assert_int_equal(s->misuse(NULL), 0);
	IS(CUR_INVALID_VALUE, cuMemRelease, memory);
	rules_misused("used after its end");
}

static void shared_larger(void **state)
{
	uint64_t memory, import, at;
	int fd;

	(void)state;
	IS(0, cuMemCreate, &memory, G, &shared_prop, 0);
	IS(0, cuMemExportToShareableHandle, &fd, memory, CU_HANDLE_FD, 0);
	IS(0, cuMemImportFromShareableHandle, &import, of_fd(fd), CU_HANDLE_FD);
	close(fd);
	IS(0, cuMemAddressReserve, &at, 2 * G, 0, 0, 0);
	IS(CUR_INVALID_VALUE, cuMemMap, at, 2 * G, 0, import, 0);
	IS(0, cuMemMap, at, G, 0, import, 0);
	assert_int_equal(s->misuse(NULL), 0);
}

static void address_is_the_device_s(void **state)
{
	(void)state;
	rules_dies_of(four(true));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_with_stream, end)
	const struct CMUnitTest tests[] = {
		CASE(multiples),
		CASE(no_access),
		CASE(access_of_all),
		CASE(mapped_once),
		CASE(unmapped_exactly),
		CASE(unmapped_in_part),
		CASE(released_first),
		CASE(unmapped_in_flight),
		CASE(unmap_that_waits),
		CASE(unmap_when_hot),
		CASE(used_after_unmap),
		CASE(addresses_in_use),
		CASE(addresses_in_part),
		CASE(freed_otherwise),
		CASE(left_over),
		CASE(no_room),
		CASE(shared_bytes),
		CASE(shared_no_access),
		CASE(export_refused),
		CASE(export_after_release),
		CASE(retained),
		CASE(shared_larger),
		CASE(address_is_the_device_s),
	};

	if (!load_driver())
		return 1;
	cu.cuInit(0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
