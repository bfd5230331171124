/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in's own rules, each broken once: what is undefined with HIP, or what the
 * backend must never do, is noticed; what HIP refuses is refused; what it does and says
 * nothing of, is done.
 */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/rocm.h>

#include "backends/rocm/hip_calls.h"
#include "tests/fakes/rocm/kfd.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define SYMBOL(name, params, args) uint32_t(*name) params;
static struct {
	HIP_CALLS(SYMBOL)
} hip;
static void (*drive)(uint32_t on);
static void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
static const struct gpu_stand_in *s;

static void expect(uint32_t got, uint32_t want, const char *call)
{
	if (got != want)
		fail_msg("%s is %u, not %u", call, got, want);
}
#define IS(want, call, ...) expect(hip.call(__VA_ARGS__), want, #call)

static void misused(const char *what)
{
	const char *text = "";

	assert_true(s->misuse(&text) > 0);
	if (!strstr(text, what))
		fail_msg("misuse is '%s', not '%s'", text, what);
}

static void run_for(uint64_t ns)
{
	const uint64_t until = s->now() + ns;
	uint64_t now = 0;
	uint32_t idle;

	while (now < until)
		advance(until, &now, &idle);
}

static int begin(void **state)
{
	(void)state;
	s->reset();
	drive(1);
	return (int)hip.hipSetDevice(0);
}

/* All that the test has left behind goes with the devices. */
static int end(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < KFD_GPUS; i++)
		s->lose(i, HIPR_Unknown);
	drive(0);
	s->reset();
	return 0;
}

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
	struct kit k = kit(WORK);
	int status;
	pid_t child;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)k.mem);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0xa5);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status));
}

static void double_free(void **state)
{
	struct kit k = kit(WORK);

	(void)state;
	IS(0, hipFree, k.mem);
	IS(HIPR_InvalidValue, hipFree, k.mem);
	misused("is not allocated");
}

/* It waits for the kernel: what was in use is noticed before. */
static void free_in_flight(void **state)
{
	const uint64_t before = s->now();
	struct kit k = kit(WORK);

	(void)state;
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipFree, k.mem);
	misused("is in use");
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
	misused("not coherent");
}

static void pageable(void **state)
{
	struct kit k = kit(WORK);
	char here[64];

	(void)state;
	IS(HIPR_InvalidValue, hipMemcpyAsync, k.mem, here, 64, HIP_COPY_DEFAULT,
	   k.stream);
	misused("pageable");
}

/* ---- streams and events ------------------------------------------------------------ */

/* Where the device finds pinned memory elsewhere, each address is for one of the two. */
static void host_apart(void **state)
{
	struct kit k = kit(WORK);
	void *p, *at;

	(void)state;
	setenv("HAL_STAND_IN_HIP_HOST", "apart", 1);
	IS(0, hipHostMalloc, &p, 64, HIP_HOST_MAPPED | HIP_HOST_COHERENT);
	unsetenv("HAL_STAND_IN_HIP_HOST");
	IS(0, hipHostGetDevicePointer, &at, p, 0);
	assert_true(at != p);
	IS(HIPR_InvalidValue, hipMemsetD32Async, p, 7, 1, k.stream);
	IS(HIPR_InvalidValue, hipStreamWriteValue32, k.stream, p, 7, 0);
	IS(0, hipMemsetD32Async, at, 7, 1, k.stream);
	/* A copy takes either. */
	IS(0, hipMemcpyAsync, (char *)p + 4, at, 4, HIP_COPY_DEFAULT, k.stream);
	run_for(100000);
	assert_int_equal(((uint32_t *)p)[0], 7);
	assert_int_equal(((uint32_t *)p)[1], 7);
	IS(0, hipHostFree, p);
}

/* What a stream is given while it is captured does not run; who asks for it spoils that.
 */
static void captured(void **state)
{
	struct kit k = kit(WORK);
	uint32_t status = 9;

	(void)state;
	IS(0, hipStreamIsCapturing, k.stream, &status);
	assert_int_equal(status, 0);
	s->capture(k.stream, 1);
	IS(0, hipStreamIsCapturing, k.stream, &status);
	assert_int_equal(status, 1);
	IS(0, hipMemsetD32Async, k.mem, 0, 1, k.stream);
	IS(900, hipStreamQuery, k.stream);
	IS(901, hipMemsetD32Async, k.mem, 0, 1, k.stream);
	IS(900, hipStreamSynchronize, k.stream);
	IS(0, hipStreamIsCapturing, k.stream, &status);
	assert_int_equal(status, 2);
	s->capture(k.stream, 0);
	IS(0, hipStreamQuery, k.stream);
}

static void null_stream(void **state)
{
	struct kit k = kit(WORK);

	(void)state;
	IS(HIPR_InvalidHandle, hipMemsetD32Async, k.mem, 0, 1, NULL);
	misused("the NULL stream");
}

static void blocking_stream(void **state)
{
	void *stream;

	(void)state;
	IS(HIPR_Success, hipStreamCreateWithPriority, &stream, 0, 0);
	misused("waits for the NULL stream");
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
	misused("hipStreamDestroy can block");
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
	run_for(10000);
	IS(0, hipStreamQuery, behind);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipEventRecord, k.event, k.stream);
	IS(0, hipStreamWaitEvent, behind, k.event, 0);
	assert_int_equal(launch(&k, 1, 1000000), 0);
	IS(0, hipEventRecord, k.event, k.stream);
	run_for(900000);
	IS(HIPR_NotReady, hipStreamQuery, behind);
	run_for(200000);
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
	run_for(10000);
	IS(0, hipEventElapsedTime, &ms, k.event, k.event);
	IS(HIPR_InvalidHandle, hipEventElapsedTime, &ms, k.event, untimed);
}

static void wait_for_ever(void **state)
{
	struct kit k = kit(NEVER);

	(void)state;
	assert_int_equal(launch(&k, 1, 0), 0);
	IS(HIPR_Unknown, hipStreamSynchronize, k.stream);
	misused("a wait for what never ends");
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
	misused("while its kernel is launched");
	assert_int_equal(launch(&k, 1, 1000), HIPR_InvalidHandle);
}

static void launch_limits(void **state)
{
	struct kit k = kit(WORK);
	uint64_t one = 1;
	void *params[2] = {&k.mem, &one};

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
}

/* One that is missing shows. */
static void parameters(void **state)
{
	struct kit k = kit(WORK);
	void *params[2] = {&k.mem, NULL};

	(void)state;
	IS(HIPR_InvalidValue, hipModuleLaunchKernel, k.function, 1, 1, 1, 1, 1, 1, 0,
	   k.stream, params, NULL);
	misused("parameter 1 of 2 of work is not there");
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
	run_for(1000000);
	assert_int_equal(*word, 1);
	IS(HIPR_IllegalAddress, hipStreamQuery, k.stream);
	IS(HIPR_IllegalAddress, hipEventElapsedTime, &ms, k.event, k.event);
	IS(HIPR_IllegalAddress, hipFree, k.mem);
	assert_int_equal(launch(&k, 1, 0), HIPR_IllegalAddress);
	IS(0, hipSetDevice, 1);
	IS(0, hipStreamCreateWithPriority, &k.stream, HIP_STREAM_NON_BLOCKING, 0);
}

static int load(void)
{
	void *library = dlopen("libamdhip64.so.5", RTLD_NOW);

	s = stand_in();
	if (!library || !s)
		return -1;
#define LOOK_UP(name, params, args) *(void **)&hip.name = dlsym(library, #name);
	HIP_CALLS(LOOK_UP)
	*(void **)&drive = dlsym(library, "halStandInHipDrive");
	*(void **)&advance = dlsym(library, "halStandInHipAdvance");
	return (int)hip.hipInit(0);
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		RULE(no_device),       RULE(after_fork),
		RULE(other_device),    RULE(dereference),
		RULE(double_free),     RULE(free_in_flight),
		RULE(free_waits),      RULE(not_coherent),
		RULE(pageable),        RULE(null_stream),
		RULE(captured),        RULE(host_apart),
		RULE(blocking_stream), RULE(destroy_waits),
		RULE(waits_for_event), RULE(event_states),
		RULE(wait_for_ever),   RULE(fail_open),
		RULE(pairs),           RULE(gone_module),
		RULE(launch_limits),   RULE(code),
		RULE(sticky),          RULE(parameters),
	};

	if (load())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
