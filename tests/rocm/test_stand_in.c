/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in's own rules, each broken once: what is undefined with HIP, or what the
 * backend must never do, is noticed; what HIP refuses is refused; what it does and says
 * nothing of, is done.
 */
#define _GNU_SOURCE
#include "hip_kit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);

#define IS HIP_IS

struct kit {
	void *stream, *event, *module, *function, *pinned, *mem;
};

static const char *const kernels[] = {"work:m8", "wild:m", "never:m", "hal_sm:m"};
enum { WORK, WILD, NEVER, WHERE };

static struct kit kit_on(int device, uint32_t kernel)
{
	size_t size;
	char *image = make_rocm_code(kernels, 4, 4, (uint32_t)device, &size),
	     name[16] = "";
	struct kit k;

	IS(0, hipSetDevice, device);
	memcpy(name, kernels[kernel], strcspn(kernels[kernel], ":"));
	IS(0, hipModuleLoadData, &k.module,
	   image + sizeof(struct hal_rocm_image) + 4 * sizeof(struct hal_rocm_kernel));
	free(image);
	IS(0, hipModuleGetFunction, &k.function, k.module, name);
	IS(0, hipStreamCreateWithPriority, &k.stream, HIP_STREAM_NON_BLOCKING, 0);
	IS(0, hipEventCreateWithFlags, &k.event, 0);
	IS(0, hipMalloc, &k.mem, 8192);
	IS(0, hipHostMalloc, &k.pinned, 8192,
	   HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT);
	return k;
}

static struct kit kit(uint32_t kernel)
{
	return kit_on(0, kernel);
}

static uint32_t launch(struct kit *k, uint32_t grid, uint64_t second)
{
	void *params[2] = {&k->mem, &second};

	return hip.hipModuleLaunchKernel(k->function, grid, 1, 1, 4, 1, 1, 0, k->stream,
					 params, NULL);
}

/* ---- devices ----------------------------------------------------------------------- */

static void no_device(void **state)
{
	struct hip_properties *p = calloc(1, sizeof(*p));
	int value;

	(void)state;
	assert_non_null(p);
	IS(HIPR_InvalidDevice, hipSetDevice, 4);
	IS(HIPR_InvalidDevice, hipGetDeviceProperties, p, -1);
	IS(HIPR_InvalidValue, hipDeviceGetAttribute, &value, 9999, 0);
	free(p);
}

static void after_fork(void **state)
{
	int status, count;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(hip.hipGetDeviceCount(&count) == HIPR_NotInitialized ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void other_device(void **state)
{
	struct kit k = kit(WORK);

	(void)state;
	IS(0, hipSetDevice, 1);
	IS(HIPR_InvalidHandle, hipEventRecord, k.event, k.stream);
}

/* ---- memory ------------------------------------------------------------------------ */

static void dereference(void **state)
{
	(void)state;
	rules_dies_of((uintptr_t)kit(WORK).mem);
}

/* It waits for the kernel: what was in use is noticed before. */
static void free_in_flight(void **state)
{
	const uint64_t before = s->now();
	struct kit k = kit(WORK);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipFree, k.mem);
	rules_misused("is in use");
	assert_true(s->now() - before >= 1000000);
}

static void free_waits(void **state)
{
	const uint64_t before = s->now();
	struct kit k = kit(WORK);
	void *other;

	(void)state;
	IS(0, hipMalloc, &other, 64);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipFree, other);
	assert_true(s->now() - before >= 1000000);
	assert_int_equal(s->misuse(NULL), 0);
}

static void not_coherent(void **state)
{
	void *p;

	(void)state;
	IS(0, hipHostMalloc, &p, 64, HIP_HOST_MAPPED);
	rules_misused("not coherent");
}

/* ---- streams and events ------------------------------------------------------------ */

static void blocking_stream(void **state)
{
	void *stream;

	(void)state;
	IS(HIPR_Success, hipStreamCreateWithPriority, &stream, 0, 0);
	rules_misused("waits for the NULL stream");
	IS(HIPR_Success, hipStreamDestroy, stream);
	IS(HIPR_InvalidValue, hipStreamCreateWithPriority, &stream, 2, 0);
}

static void destroy_waits(void **state)
{
	const uint64_t before = s->now();
	struct kit k = kit(WORK);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	s->hot(1);
	IS(0, hipStreamDestroy, k.stream);
	s->hot(0);
	rules_misused("hipStreamDestroy can block");
	assert_true(s->now() - before >= 1000000);
	IS(HIPR_InvalidHandle, hipStreamQuery, k.stream);
}

/* For what was recorded by then, and no longer. */
static void waits_for_event(void **state)
{
	struct kit k = kit(WORK);
	void *behind;

	(void)state;
	IS(0, hipStreamCreateWithPriority, &behind, HIP_STREAM_NON_BLOCKING, 0);
	IS(0, hipStreamWaitEvent, behind, k.event, 0); /* never recorded */
	rules_run_for(10000);
	IS(0, hipStreamQuery, behind);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipEventRecord, k.event, k.stream);
	IS(0, hipStreamWaitEvent, behind, k.event, 0);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipEventRecord, k.event, k.stream);
	rules_run_for(900000);
	IS(HIPR_NotReady, hipStreamQuery, behind);
	rules_run_for(200000);
	IS(0, hipStreamQuery, behind);
	IS(HIPR_NotReady, hipStreamQuery, k.stream);
}

static void event_states(void **state)
{
	struct kit k = kit(WORK);
	void *untimed;
	float ms;

	(void)state;
	IS(0, hipEventCreateWithFlags, &untimed, HIP_EVENT_DISABLE_TIMING);
	IS(HIPR_InvalidHandle, hipEventElapsedTime, &ms, k.event, k.event);
	IS(0, hipEventRecord, k.event, k.stream);
	IS(0, hipEventRecord, untimed, k.stream);
	IS(HIPR_NotReady, hipEventElapsedTime, &ms, k.event, k.event);
	rules_run_for(10000);
	IS(0, hipEventElapsedTime, &ms, k.event, k.event);
	IS(HIPR_InvalidHandle, hipEventElapsedTime, &ms, k.event, untimed);
}

static void wait_for_ever(void **state)
{
	struct kit k = kit(NEVER);

	(void)state;
	assert_int_equal(launch(&k, 1, 0), 0);
	IS(HIPR_Unknown, hipStreamSynchronize, k.stream);
	rules_misused("a wait for what never ends");
}

/* ---- masks ------------------------------------------------------------------------- */

/* How many CUs a kernel ran on in a stream of that mask. */
static uint32_t ran_on(int device, uint32_t words, const uint32_t *mask)
{
	struct kit k = kit_on(device, WHERE);
	const uint32_t *ids = k.pinned;
	bool on[KFD_CUS_MAX + 1] = {false};
	uint32_t i, n = 0;

	IS(0, hipExtStreamCreateWithCUMask, &k.stream, words, mask);
	assert_int_equal(launch(&k, 2048, 0), 0);
	IS(0, hipMemcpyAsync, k.pinned, k.mem, 8192, HIP_COPY_DEFAULT, k.stream);
	IS(0, hipStreamSynchronize, k.stream);
	for (i = 0; i < 2048; i++) {
		assert_in_range(ids[i], 1, kfd_cus(&kfd_gpus[device]));
		n += !on[ids[i]];
		on[ids[i]] = true;
	}
	return n;
}

/* Where HIP and the kernel's driver fall open, and say nothing. */
static void fail_open(void **state)
{
	static const uint32_t four[10] = {0xf}, nothing[10] = {0}, one[10] = {1};
	uint32_t got[10];
	void *stream;

	(void)state;
	assert_int_equal(ran_on(0, 2, four), 4);
	assert_int_equal(ran_on(0, 2, nothing), 60);
	/* Seven XCCs have no bit. */
	assert_int_equal(ran_on(2, 10, one), 304 - 38 + 1);
	/* A word less than there are CUs: what is behind it is not read. */
	assert_int_equal(ran_on(1, 1, four), 4);
	IS(0, hipExtStreamCreateWithCUMask, &stream, 1, four);
	memset(got, 0x6a, sizeof(got));
	IS(0, hipExtStreamGetCUMask, stream, 10, got);
	assert_int_equal(got[0], 0xf);
	assert_int_equal(got[1], 0x6a6a6a6a);
	IS(HIPR_InvalidValue, hipExtStreamGetCUMask, stream, 1, got);
	IS(HIPR_InvalidValue, hipExtStreamCreateWithCUMask, &stream, 0, four);
	IS(HIPR_InvalidValue, hipExtStreamCreateWithCUMask, &stream, 2, NULL);
}

/* The first of a pair stands for both before 6, and a bit for a pair from there on. */
static void pairs(void **state)
{
	static const uint32_t half[2] = {0x1}, whole[2] = {0x3};

	(void)state;
	assert_int_equal(ran_on(3, 2, half), 2);
	assert_int_equal(ran_on(3, 2, whole), 2);
	setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1);
	assert_int_equal(ran_on(3, 2, half), 2);
	assert_int_equal(ran_on(3, 2, whole), 4);
	unsetenv("HAL_STAND_IN_HIP_VERSION");
}

/* ---- kernels ----------------------------------------------------------------------- */

static void gone_module(void **state)
{
	struct kit k = kit(WORK);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000), 0);
	IS(0, hipModuleUnload, k.module);
	rules_misused("while its kernel is launched");
	assert_int_equal(launch(&k, 1, 1000), HIPR_InvalidHandle);
}

static void launch_limits(void **state)
{
	struct kit k = kit(WORK);
	uint64_t one = 1;
	void *params[2] = {&k.mem, &one};
	uint32_t zero;

	(void)state;
#define LAUNCH(want, x, y, bx, by, shared, extra)                                        \
	IS(want, hipModuleLaunchKernel, k.function, x, y, 1, bx, by, 1, shared,          \
	   k.stream, params, extra)
	LAUNCH(HIPR_InvalidConfiguration, 0, 1, 1, 1, 0, NULL);
	LAUNCH(HIPR_InvalidConfiguration, 1, 1, 1025, 1, 0, NULL);
	LAUNCH(HIPR_InvalidConfiguration, 1, 1, 64, 64, 0, NULL);
	LAUNCH(HIPR_InvalidConfiguration, 1u << 30, 1, 4, 1, 0, NULL);
	LAUNCH(HIPR_InvalidValue, 1, 1, 1, 1, 64 * 1024 + 1, NULL);
	LAUNCH(HIPR_InvalidValue, 1, 1, 1, 1, 0, params);
	LAUNCH(0, 1u << 20, 1, 4, 1, 0, NULL);
	for (zero = 0; zero < 6; zero++) {
		uint32_t n[6] = {1, 1, 1, 1, 1, 1};

		n[zero] = 0;
		IS(HIPR_InvalidConfiguration, hipModuleLaunchKernel, k.function, n[0],
		   n[1], n[2], n[3], n[4], n[5], 0, k.stream, params, NULL);
	}
}

/* One that is missing shows. */
static void parameters(void **state)
{
	struct kit k = kit(WORK);
	void *params[2] = {&k.mem, NULL};

	(void)state;
	IS(HIPR_InvalidValue, hipModuleLaunchKernel, k.function, 1, 1, 1, 1, 1, 1, 0,
	   k.stream, params, NULL);
	rules_misused("parameter 1 of 2 of work is not there");
}

static void code(void **state)
{
	size_t size;
	char *image = make_rocm_code(kernels, 4, 4, 1, &size), *at;
	void *module;

	(void)state;
	IS(HIPR_InvalidImage, hipModuleLoadData, &module,
	   "no code object, and long enough to be looked at as if it were one .......");
	IS(HIPR_NoBinaryForGpu, hipModuleLoadData, &module,
	   image + sizeof(struct hal_rocm_image) + 4 * sizeof(struct hal_rocm_kernel));
	free(image);
	/* A bundle, with a part for this device; and with none. */
	image = make_rocm_image(kernels, 4, 4, &size);
	at = image + sizeof(struct hal_rocm_image) + 4 * sizeof(struct hal_rocm_kernel);
	IS(0, hipModuleLoadData, &module, at);
	IS(0, hipModuleUnload, module);
	at = memmem(at, size / 2, "gfx906", 6);
	memcpy(at, "gfx907", 6);
	IS(HIPR_NoBinaryForGpu, hipModuleLoadData, &module,
	   image + sizeof(struct hal_rocm_image) + 4 * sizeof(struct hal_rocm_kernel));
	free(image);
}

/* What is compiled has to be for one of its devices, and have a kernel that it knows; it
 * is loaded as any. */
static void compiler(void **state)
{
	static const char *const mi50[] = {"--gpu-architecture=gfx906:sramecc+:xnack-"},
				 *const nobody[] = {"--gpu-architecture=gfx9999"};
	struct kit k = kit(WORK);
	void *program, *module;
	char code[4096];
	size_t bytes;

	(void)state;
	IS(3, hiprtcCreateProgram, &program, NULL, "x", 0, NULL, NULL);
	IS(0, hiprtcCreateProgram, &program, "void other() {}", "x", 0, NULL, NULL);
	IS(6, hiprtcCompileProgram, program, 1, mi50);
	IS(4, hiprtcGetCodeSize, program, &bytes);
	IS(0, hiprtcDestroyProgram, &program);
	IS(0, hiprtcCreateProgram, &program, "void hal_where(unsigned *out) {}", "x", 0,
	   NULL, NULL);
	IS(5, hiprtcCompileProgram, program, 1, nobody);
	IS(0, hiprtcCompileProgram, program, 1, mi50);
	IS(0, hiprtcGetCodeSize, program, &bytes);
	assert_true(bytes <= sizeof(code));
	IS(0, hiprtcGetCode, program, code);
	IS(0, hiprtcDestroyProgram, &program);
	IS(0, hipModuleLoadData, &module, code);
	IS(0, hipModuleGetFunction, &k.function, module, "hal_where");
	assert_int_equal(launch(&k, 1, 0), 0);
	rules_run_for(100000);
	IS(0, hipSetDevice, 1);
	IS(HIPR_NoBinaryForGpu, hipModuleLoadData, &module, code);
}

/* ---- what CUDA has, too: tests/gpu/rules.h ------------------------------------------ */

static uint32_t (*add_callback)(void *stream,
				void (*fn)(void *stream, uint32_t result, void *user),
				void *user, uint32_t flags);

static uint32_t
callback(void *stream, void (*fn)(void *stream, uint32_t result, void *user), void *user)
{
	return add_callback(stream, fn, user, 0);
}

static uint32_t allocate(uint64_t *at, uint64_t bytes)
{
	void *p = NULL;
	const uint32_t r = hip.hipMalloc(&p, bytes);

	*at = (uintptr_t)p;
	return r;
}

static uint32_t pinned_at(uint64_t *at, void *p)
{
	void *there = NULL;
	const uint32_t r = hip.hipHostGetDevicePointer(&there, p, 0);

	*at = (uintptr_t)there;
	return r;
}

static uint32_t enroll(void *p, uint64_t bytes)
{
	return hip.hipHostRegister(p, bytes, HIP_HOST_PORTABLE | HIP_HOST_MAPPED);
}

static uint32_t dismiss(void *p)
{
	return hip.hipHostUnregister(p);
}

static uint32_t pin(void **p, uint64_t bytes)
{
	return hip.hipHostMalloc(p, bytes,
				 HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT);
}

static uint32_t new_stream(void **stream)
{
	return hip.hipStreamCreateWithPriority(stream, HIP_STREAM_NON_BLOCKING, 0);
}

static uint32_t new_event(void **event)
{
	return hip.hipEventCreateWithFlags(event, 0);
}

#define AT(address)                                                                      \
	((void *)(uintptr_t)(address)) /* NOLINT(performance-no-int-to-ptr)              \
					*/
#define PASS(name, call, params, args)                                                   \
	static uint32_t name params                                                      \
	{                                                                                \
		return hip.call args;                                                    \
	}
PASS(release, hipFree, (uint64_t at), (AT(at)))
PASS(unpin, hipHostFree, (void *p), (p))
PASS(query, hipStreamQuery, (void *stream), (stream))
PASS(synchronize, hipStreamSynchronize, (void *stream), (stream))
PASS(capturing, hipStreamIsCapturing, (void *stream, uint32_t *status), (stream, status))
PASS(exchange, hipThreadExchangeStreamCaptureMode, (uint32_t * mode), (mode))
PASS(record, hipEventRecord, (void *event, void *stream), (event, stream))
PASS(event_wait, hipEventSynchronize, (void *event), (event))
PASS(elapsed, hipEventElapsedTime, (float *ms, void *begin, void *end), (ms, begin, end))
PASS(copy, hipMemcpyAsync, (uint64_t to, uint64_t from, uint64_t bytes, void *stream),
     (AT(to), AT(from), bytes, HIP_COPY_DEFAULT, stream))
PASS(fill, hipMemsetD32Async, (uint64_t at, uint32_t value, uint64_t words, void *stream),
     (AT(at), (int)value, words, stream))
PASS(write_word, hipStreamWriteValue32, (void *stream, uint64_t at, uint32_t value),
     (stream, AT(at), value, 0))

static uint32_t launch_work(void *stream, uint32_t blocks, uint64_t ns)
{
	struct kit k = kit(WORK);

	k.stream = stream;
	return launch(&k, blocks, ns);
}

struct rules_face rules_face = {
	.allocate = allocate,
	.release = release,
	.pin = pin,
	.unpin = unpin,
	.pinned_at = pinned_at,
	.enroll = enroll,
	.dismiss = dismiss,
	.stream = new_stream,
	.query = query,
	.synchronize = synchronize,
	.capturing = capturing,
	.exchange = exchange,
	.callback = callback,
	.event = new_event,
	.record = record,
	.event_wait = event_wait,
	.elapsed = elapsed,
	.copy = copy,
	.fill = fill,
	.write = write_word,
	.fill_call = "hipMemsetD32Async",
	.apart = "HAL_STAND_IN_HIP_HOST",
	.launch = launch_work,
	.units = 60,
	.entries = 16384,
};

/* ---- faults ------------------------------------------------------------------------ */

/* Asynchronous, and for good, where it does not end the process; the other devices go on.
 */
static void sticky(void **state)
{
	struct kit k = kit(WILD);
	uint32_t *word = k.pinned;
	float ms;

	(void)state;
	*word = 0;
	IS(0, hipStreamWriteValue32, k.stream, word, 1, 0);
	assert_int_equal(launch(&k, 1, 0), 0);
	IS(0, hipStreamWriteValue32, k.stream, word, 2, 0);
	IS(HIPR_NotReady, hipStreamQuery, k.stream);
	rules_run_for(1000000);
	assert_int_equal(*word, 1);
	IS(HIPR_IllegalAddress, hipStreamQuery, k.stream);
	IS(HIPR_IllegalAddress, hipEventElapsedTime, &ms, k.event, k.event);
	IS(HIPR_IllegalAddress, hipFree, k.mem);
	assert_int_equal(launch(&k, 1, 0), HIPR_IllegalAddress);
	IS(0, hipSetDevice, 1);
	IS(0, hipStreamCreateWithPriority, &k.stream, HIP_STREAM_NON_BLOCKING, 0);
}

/* ---- memory that is exported --------------------------------------------------------- */

static const struct hip_memory_prop shared_prop = {.type = HIP_MEMORY_PINNED,
						   .handle = HIP_HANDLE_FD,
						   .location = {HIP_LOCATION_DEVICE, 0}};
static const struct hip_access shared_access = {{HIP_LOCATION_DEVICE, 0},
						HIP_ACCESS_READ_WRITE};

static void release_of_hip(const char *version)
{
	if (version)
		assert_int_equal(setenv("HAL_STAND_IN_HIP_VERSION", version, 1), 0);
	else
		assert_int_equal(unsetenv("HAL_STAND_IN_HIP_VERSION"), 0);
}

static int exported(void **memory)
{
	int fd;

	IS(0, hipMemCreate, memory, 4096, &shared_prop, 0);
	IS(0, hipMemExportToShareableHandle, &fd, *memory, HIP_HANDLE_FD, 0);
	return fd;
}

/* The first releases have the calls and export nothing. */
static void export_before_6_1(void **state)
{
	int value, fd = 0;
	void *memory;

	(void)state;
	IS(HIPR_InvalidValue, hipDeviceGetAttribute, &value, HIPA_VMM, 0);
	IS(HIPR_NotSupported, hipMemCreate, &memory, 4096, &shared_prop, 0);
	release_of_hip("60000000");
	IS(0, hipDeviceGetAttribute, &value, HIPA_VMM, 0);
	assert_int_equal(value, 1);
	IS(HIPR_NotSupported, hipMemCreate, &memory, 4096, &shared_prop, 0);
	IS(HIPR_NotSupported, hipMemImportFromShareableHandle, &memory, &fd,
	   HIP_HANDLE_FD);
	release_of_hip(NULL);
}

static void export_twice(void **state)
{
	void *memory;
	int fd;

	(void)state;
	release_of_hip("60300000");
	close(exported(&memory));
	IS(HIPR_InvalidValue, hipMemExportToShareableHandle, &fd, memory, HIP_HANDLE_FD,
	   0);
	release_of_hip(NULL);
}

/* Memory of another process's is mapped as one's own; not without access, and not in
 * pieces of a granule. */
static void shared_memory(void **state)
{
	void *memory, *import, *at, *stream;
	int fd;

	(void)state;
	release_of_hip("60300000");
	fd = exported(&memory);
	IS(0, hipMemImportFromShareableHandle, &import, &fd, HIP_HANDLE_FD);
	close(fd);
	IS(0, hipMemRelease, memory);
	IS(HIPR_InvalidValue, hipMemAddressReserve, &at, 1000, 0, NULL, 0);
	IS(0, hipMemAddressReserve, &at, 8192, 0, NULL, 0);
	IS(HIPR_InvalidValue, hipMemMap, at, 8192, 0, import, 0);
	IS(0, hipMemMap, at, 4096, 0, import, 0);
	IS(0, hipMemRelease, import);
	IS(0, hipStreamCreateWithPriority, &stream, HIP_STREAM_NON_BLOCKING, 0);
	IS(HIPR_InvalidValue, hipMemsetD32Async, at, 1, 1, stream);
	IS(0, hipMemSetAccess, at, 4096, &shared_access, 1);
	IS(0, hipMemsetD32Async, at, 1, 1, stream);
	rules_run_for(1000000);
	IS(0, hipMemUnmap, at, 4096);
	IS(0, hipMemAddressFree, at, 8192);
	assert_int_equal(s->misuse(NULL), 0);
	IS(HIPR_InvalidValue, hipMemAddressFree, at, 8192);
	rules_misused("is no reservation of");
	release_of_hip(NULL);
}

static void import_at_address(void **state)
{
	void *memory, *import;
	int fd;

	(void)state;
	release_of_hip("70100000");
	fd = exported(&memory);
	IS(0, hipMemImportFromShareableHandle, &import, (void *)(intptr_t)fd,
	   HIP_HANDLE_FD);
	assert_int_equal(s->misuse(NULL), 0);
	IS(HIPR_InvalidValue, hipMemImportFromShareableHandle, &import, &fd,
	   HIP_HANDLE_FD);
	close(fd);
	rules_misused("the descriptor is at an address");
	release_of_hip(NULL);
}

static void import_by_value(void **state)
{
	void *memory, *import;
	int fd;

	(void)state;
	release_of_hip("60300000");
	fd = exported(&memory);
	IS(HIPR_InvalidValue, hipMemImportFromShareableHandle, &import,
	   (void *)(intptr_t)fd, HIP_HANDLE_FD);
	close(fd);
	rules_misused("the descriptor has no address");
	release_of_hip(NULL);
}

static int load(void)
{
	void *library = load_hip();

	if (!library)
		return -1;
	advance = rules_face.advance;
	*(void **)&add_callback = dlsym(library, "hipStreamAddCallback");
	return (int)hip.hipInit(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(no_device),
		RULE(after_fork),
		RULE(other_device),
		RULE(dereference),
		RULE(free_in_flight),
		RULE(free_waits),
		RULE(not_coherent),
		RULE(blocking_stream),
		RULE(destroy_waits),
		RULE(waits_for_event),
		RULE(event_states),
		RULE(wait_for_ever),
		RULE(fail_open),
		RULE(pairs),
		RULE(gone_module),
		RULE(launch_limits),
		RULE(code),
		RULE(sticky),
		RULE(parameters),
		RULE(compiler),
		RULE(export_before_6_1),
		RULE(export_twice),
		RULE(shared_memory),
		RULE(import_at_address),
		RULE(import_by_value),
		RULE_CASES(begin, end),
	};

	if (load())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
