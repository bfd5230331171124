/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_kit.h - a queue of the stand-in of HSA's runtime, a kernel and what it takes, for
 * tests of the stand-in's rules.
 */
#ifndef TESTS_ROCM_HSA_KIT_H
#define TESTS_ROCM_HSA_KIT_H

#include "hip_kit.h"

#include <pthread.h>

#include "backends/rocm/hsa_calls.h"

#define RING    64u
#define GPU     UINT64_C(2) /* the agent of device 0; 1 is the host */
#define IN_TIME (HSA_PACKET_IN_ORDER | HSA_PACKET_ACQUIRE | HSA_PACKET_RELEASE)
#define TICK_NS UINT64_C(10)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define TYPED(type, name, params, args) type(*name) params;
static struct {
	HSA_CALLS(SYMBOL) HSA_VALUE_CALLS(TYPED) HSA_STORE_CALLS(TYPED)
} hsa;
struct rules_face rules_face; /* its clock alone */

#define IS(want, call, ...) rules_expect(hsa.call(__VA_ARGS__), want, #call)

/* ---- a queue, a kernel and what it takes ------------------------------------------- */

static const char *const kernels[] = {"work:m8", "never:m", "hal_sm:m", "wild:m"};
enum { KERNELS = 4, WORK = 0, NEVER, WHERE, WILD };

struct kit {
	struct hsa_queue *queue;
	uint64_t reader, executable, kernel, signal, agent;
	void *code, *mem, *pinned;
	uint64_t *args; /* the host's: D, then 8 bytes, then what is hidden */
	uint32_t failed;
	pthread_t failed_by;
};

static void note_failed(uint32_t status, struct hsa_queue *queue, void *kit)
{
	struct kit *k = kit;

	assert_ptr_equal(queue, k->queue);
	k->failed = status;
	k->failed_by = pthread_self();
}

/* The code object that is in an image of one. */
static void *make_code(uint32_t device, size_t *bytes)
{
	const size_t head =
		sizeof(struct hal_rocm_image) + KERNELS * sizeof(struct hal_rocm_kernel);
	char *image = make_rocm_code(kernels, KERNELS, 4, device, bytes);
	void *code;

	*bytes -= head;
	code = malloc(*bytes);
	assert_non_null(code);
	memcpy(code, image + head, *bytes);
	free(image);
	return code;
}

static void load_code(struct kit *k, uint32_t device)
{
	size_t bytes;

	k->code = make_code(device, &bytes);
	IS(0, hsa_code_object_reader_create_from_memory, k->code, bytes, &k->reader);
	IS(0, hsa_executable_create_alt, HSAN_PROFILE_FULL, 0, NULL, &k->executable);
	IS(0, hsa_executable_load_agent_code_object, k->executable, k->agent, k->reader,
	   NULL, NULL);
	IS(0, hsa_executable_freeze, k->executable, NULL);
}

static void use_kernel(struct kit *k, uint32_t kernel)
{
	char name[32];
	uint64_t symbol;

	snprintf(name, sizeof(name), "%.*s.kd", (int)strcspn(kernels[kernel], ":"),
		 kernels[kernel]);
	IS(0, hsa_executable_get_symbol_by_name, k->executable, name, &k->agent, &symbol);
	IS(0, hsa_executable_symbol_get_info, symbol, HSAN_SYMBOL_KERNEL_OBJECT,
	   &k->kernel);
}

/* What is hidden, of so many groups of 4, behind so many arguments. */
static void hide(const struct kit *k, uint32_t arguments, uint32_t groups)
{
	k->args[arguments] = groups | UINT64_C(4) << 32 | UINT64_C(3) << 48;
	k->args[arguments + 1] = 0;
}

static void open_kit(struct kit *k, uint32_t device, uint32_t kernel)
{
	memset(k, 0, sizeof(*k));
	k->agent = GPU + device;
	HIP_IS(0, hipSetDevice, (int)device);
	HIP_IS(0, hipMalloc, &k->mem, 8192);
	HIP_IS(0, hipHostMalloc, &k->pinned, 4096,
	       HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT);
	k->args = k->pinned;
	k->args[0] = (uintptr_t)k->mem;
	k->args[1] = 1000;
	hide(k, kernel == WORK ? 2 : 1, 1);
	load_code(k, device);
	use_kernel(k, kernel);
	IS(0, hsa_amd_signal_create, 1, 0, NULL, 0, &k->signal);
	IS(0, hsa_queue_create, k->agent, RING, HSAN_QUEUE_SINGLE, note_failed, k,
	   UINT32_MAX, UINT32_MAX, &k->queue);
}

static void close_kit(struct kit *k)
{
	IS(0, hsa_queue_destroy, k->queue);
	IS(0, hsa_executable_destroy, k->executable);
	IS(0, hsa_code_object_reader_destroy, k->reader);
	free(k->code);
	IS(0, hsa_signal_destroy, k->signal);
	HIP_IS(0, hipHostFree, k->pinned);
	HIP_IS(0, hipFree, k->mem);
}

static struct hsa_packet packet(const struct kit *k, uint32_t groups)
{
	return (struct hsa_packet){.header = HSA_PACKET_DISPATCH | IN_TIME,
				   .setup = 3,
				   .block = {4, 1, 1},
				   .grid = {4 * groups, 1, 1},
				   .kernel = k->kernel,
				   .kernarg = (uintptr_t)k->args,
				   .completion = k->signal};
}

static struct hsa_packet *slot(const struct kit *k, uint64_t number)
{
	return (struct hsa_packet *)k->queue->base + number % RING;
}

/* Its number; the doorbell has not rung. */
static uint64_t put(struct kit *k, const struct hsa_packet *p)
{
	const uint64_t number = hsa.hsa_queue_add_write_index_screlease(k->queue, 1);

	*slot(k, number) = *p;
	return number;
}

static void ring(struct kit *k, uint64_t number)
{
	hsa.hsa_signal_store_screlease(k->queue->doorbell, (int64_t)number);
}

static void give(struct kit *k, const struct hsa_packet *p)
{
	ring(k, put(k, p));
}

static int64_t value(const struct kit *k)
{
	return hsa.hsa_signal_load_scacquire(k->signal);
}

static void all_is_well(void)
{
	const char *text = "";

	if (s->misuse(&text))
		fail_msg("misuse: %s", text);
}

static void close_well(struct kit *k)
{
	close_kit(k);
	all_is_well();
}

/* ---- the libraries ----------------------------------------------------------------- */

static int load_libraries(void)
{
	void *library = load_hip(), *runtime = dlopen("libhsa-runtime64.so.1", RTLD_NOW);

	if (!library || !runtime)
		return -1;
#define LOOK_UP_HSA(name, params, args) *(void **)&hsa.name = dlsym(runtime, #name);
#define LOOK_UP_TYPED(type, name, params, args)                                          \
	*(void **)&hsa.name = dlsym(runtime, #name);
	HSA_CALLS(LOOK_UP_HSA)
	HSA_VALUE_CALLS(LOOK_UP_TYPED)
	HSA_STORE_CALLS(LOOK_UP_TYPED)
	return (int)hip.hipInit(0);
}

#endif
