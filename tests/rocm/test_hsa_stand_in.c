/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the stand-in of HSA's runtime, each broken once; as test_stand_in.c has those
 * of HIP's, and test_hsa_masks.c those of masks. */
#define _GNU_SOURCE
#include "hsa_kit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* All that stays with a device that is lost. */
static void drop_kit(struct kit *k)
{
	free(k->code);
}

/* ---- what is well ------------------------------------------------------------------ */

/* A kit, and a packet of its kernel with one block. */
static struct hsa_packet open_work(struct kit *k)
{
	open_kit(k, 0, WORK);
	return packet(k, 1);
}

/* The same, and it is in the queue. */
static struct hsa_packet give_work(struct kit *k)
{
	const struct hsa_packet p = open_work(k);

	give(k, &p);
	return p;
}

/* A packet runs at its turn and counts its signal down; nothing is left, nothing misused.
 */
static void plain(void **state)
{
	struct kit k;

	(void)state;
	(void)give_work(&k);
	assert_int_equal(value(&k), 1);
	rules_run_for(2000);
	assert_int_equal(value(&k), 1);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	assert_int_equal(slot(&k, 0)->header & HSA_PACKET_TYPE, HSA_PACKET_INVALID);
	assert_int_equal(k.failed, 0);
	close_well(&k);
	assert_int_equal(s->live(), 0);
}

/* It stands still at a packet that is not there yet, and goes on from it. */
static void stalls(void **state)
{
	struct hsa_packet p;
	uint64_t first, second;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.completion = 0;
	first = put(&k, &p);
	p.completion = k.signal;
	second = put(&k, &p);
	slot(&k, first)->header = HSA_PACKET_INVALID;
	ring(&k, second);
	rules_run_for(100000);
	assert_int_equal(value(&k), 1);
	slot(&k, first)->header = HSA_PACKET_DISPATCH | IN_TIME;
	p.completion = 0;
	give(&k, &p);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	close_well(&k);
}

/* The read index moves when the next one begins. */
static void reads_late(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = give_work(&k);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	assert_int_equal(hsa.hsa_queue_load_read_index_scacquire(k.queue), 0);
	p = (struct hsa_packet){.header = HSA_PACKET_BARRIER | IN_TIME};
	give(&k, &p);
	rules_run_for(1000);
	assert_int_equal(hsa.hsa_queue_load_read_index_scacquire(k.queue), 1);
	close_well(&k);
}

/* As long as they took, in ticks. */
static void times(void **state)
{
	struct hsa_times t;
	struct hsa_packet p;
	uint64_t frequency;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	IS(0, hsa_system_get_info, HSAN_SYSTEM_TIMESTAMP_FREQUENCY, &frequency);
	assert_int_equal(frequency, 1000000000 / TICK_NS);
	IS(0, hsa_amd_profiling_set_profiler_enabled, k.queue, 1);
	k.args[1] = 50000;
	p = packet(&k, 1);
	give(&k, &p);
	rules_run_for(100000);
	IS(0, hsa_amd_profiling_get_dispatch_time, k.agent, k.signal, &t);
	assert_in_range(t.end - t.start, 50000 / TICK_NS, 53000 / TICK_NS);
	all_is_well();
	IS(0, hsa_amd_profiling_set_profiler_enabled, k.queue, 0);
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	give(&k, &p);
	rules_run_for(100000);
	IS(0, hsa_amd_profiling_get_dispatch_time, k.agent, k.signal, &t);
	rules_misused("times of what was not measured");
	close_kit(&k);
}

/* A wait may come back for nothing. */
static void waits(void **state)
{
	struct hsa_packet p;
	struct kit k;
	int i;

	(void)state;
	p = give_work(&k);
	for (i = 0; i < 2; i++)
		if (hsa.hsa_signal_wait_scacquire(k.signal, HSAN_CONDITION_LT, 1,
						  UINT64_MAX, HSAN_WAIT_BLOCKED) < 1)
			break;
	assert_int_equal(value(&k), 0);
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	k.args[1] = UINT64_C(1) << 40;
	give(&k, &p);
	for (i = 0; i < 2; i++)
		assert_int_equal(hsa.hsa_signal_wait_scacquire(
					 k.signal, HSAN_CONDITION_LT, 1, 1000, 0),
				 1);
	IS(0, hsa_queue_inactivate, k.queue);
	s->hot(1);
	hsa.hsa_signal_wait_scacquire(k.signal, HSAN_CONDITION_LT, 1, 1, 0);
	all_is_well(); /* nothing runs */
	s->hot(0);
	close_well(&k);
}

/* Who waits burns 200 us before he sleeps, and all of it where nothing wakes him: of a
 * signal that is the device's alone, and behind 4,096 that are not. */
static uint64_t burnt(uint64_t signal)
{
	const uint64_t before = s->spun(), ticks = UINT64_C(5000000) / TICK_NS;
	uint32_t turn;

	for (turn = 0; turn < 2; turn++) /* one comes back at once */
		hsa.hsa_signal_wait_scacquire(signal, HSAN_CONDITION_LT, 1, ticks,
					      HSAN_WAIT_BLOCKED);
	return s->spun() - before;
}

static void spins(void **state)
{
	enum { WAKING = 4096 };
	uint64_t all[WAKING + 2];
	uint32_t i;

	(void)state;
	for (i = 0; i < WAKING + 2; i++)
		IS(0, hsa_amd_signal_create, 1, 0, NULL,
		   i == 1 ? HSAN_SIGNAL_GPU_ONLY : 0, &all[i]);
	assert_int_equal(burnt(all[0]), 200000);
	assert_int_equal(burnt(all[1]), 5000000);
	assert_int_equal(burnt(all[WAKING]), 200000);
	assert_int_equal(burnt(all[WAKING + 1]), 5000000);
	/* One has gone: there is room for another. */
	IS(0, hsa_signal_destroy, all[0]);
	IS(0, hsa_amd_signal_create, 1, 0, NULL, 0, &all[0]);
	assert_int_equal(burnt(all[0]), 200000);
	for (i = 0; i < WAKING + 2; i++)
		IS(0, hsa_signal_destroy, all[i]);
	all_is_well();
}

/* ---- start, agents, limits --------------------------------------------------------- */

static uint32_t count(uint64_t agent, void *user)
{
	uint32_t device = 9;

	IS(0, hsa_agent_get_info, agent, HSAN_AGENT_DEVICE, &device);
	*(uint32_t *)user += device == HSAN_DEVICE_GPU;
	return HSAR_SUCCESS;
}

static void not_started(void **state)
{
	uint32_t n = 0;

	(void)state;
	IS(HSAR_NOT_INITIALIZED, hsa_iterate_agents, count, &n);
	rules_misused("hsa_iterate_agents: before hsa_init");
	setenv("HAL_STAND_IN_HIP_DEVICES", "0", 1);
	assert_int_equal(hsa.hsa_init(), HSAR_OUT_OF_RESOURCES);
	unsetenv("HAL_STAND_IN_HIP_DEVICES");
	assert_int_equal(hsa.hsa_init(), 0);
	IS(0, hsa_iterate_agents, count, &n);
	assert_int_equal(n, KFD_GPUS);
}

static void after_fork(void **state)
{
	uint32_t n = 0;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(hsa.hsa_iterate_agents(count, &n) == HSAR_NOT_INITIALIZED ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static uint32_t create(uint64_t agent, uint32_t size, uint32_t private_bytes)
{
	struct hsa_queue *q;

	return hsa.hsa_queue_create(agent, size, 0, NULL, NULL, private_bytes, 0, &q);
}

static void queue_limits(void **state)
{
	const struct gpu_stand_in_limits one = {.streams = 1}, none = {0};

	(void)state;
	assert_int_equal(create(1, 64, 0), HSAR_INVALID_AGENT);
	assert_int_equal(create(GPU, 32, 0), HSAR_INVALID_ARGUMENT);
	assert_int_equal(create(GPU, 96, 0), HSAR_INVALID_ARGUMENT);
	assert_int_equal(create(GPU, 262144, 0), HSAR_OUT_OF_RESOURCES);
	assert_int_equal(create(GPU, 64, 262129), HSAR_OUT_OF_RESOURCES);
	s->limit(&one);
	assert_int_equal(create(GPU, 64, 262128), 0);
	assert_int_equal(create(GPU, 64, UINT32_MAX), HSAR_OUT_OF_RESOURCES);
	s->limit(&none);
}

/* Names have the versions that ROCm's have, and what 5.2.3 lacks is not there. */
static void versions(void **state)
{
	void *library = dlopen("libamdhip64.so.5", RTLD_NOW),
	     *runtime = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
	/* Its rules are not the stand-in's: whoever calls it finds nothing. */
	static const char *const absent[] = {"hipLaunchHostFunc",
					     "hipMemcpy",
					     "hipMemset",
					     "hipDeviceReset",
					     "hipModuleLaunchCooperativeKernel",
					     "hipIpcGetMemHandle",
					     "hipStreamBeginCapture",
					     "hsa_amd_memory_async_copy_rect",
					     "hsa_amd_register_system_event_handler",
					     "hsa_memory_allocate",
					     "world"};
	size_t i;

	(void)state;
#define VERSION_OF(name, params, args)                                                   \
	assert_non_null(dlvsym(library, #name, "hip_4.2"));                              \
	assert_null(dlvsym(library, #name, "ROCR_1"));
#define VERSION_OF_HSA(name, params, args)                                               \
	assert_non_null(dlvsym(runtime, #name, "ROCR_1"));                               \
	assert_null(dlvsym(runtime, #name, "hip_4.2"));
#define VERSION_OF_TYPED(type, name, params, args) VERSION_OF_HSA(name, params, args)
	HIP_ALL_CALLS(VERSION_OF)
	HSA_CALLS(VERSION_OF_HSA)
	HSA_VALUE_CALLS(VERSION_OF_TYPED)
	HSA_STORE_CALLS(VERSION_OF_TYPED)
	for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_null(dlsym(runtime, absent[i])); /* looks in both */
	dlclose(library);
	dlclose(runtime);
}

/* ---- packets ----------------------------------------------------------------------- */

static void bad_headers(void **state)
{
	static const struct {
		uint16_t without, with;
		const char *what;
	} all[] = {{HSA_PACKET_IN_ORDER, 0, "may overlap"},
		   {HSA_PACKET_ACQUIRE, 0, "is not the whole system's"},
		   {HSA_PACKET_RELEASE, 0, "is not the whole system's"},
		   {HSA_PACKET_RELEASE, 1u << 11, "is not the whole system's"},
		   {0, 1u << 13, "reserved fields"}};
	struct hsa_packet p;
	struct kit k;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		open_kit(&k, 0, WORK);
		p = packet(&k, 1);
		p.header = (uint16_t)((p.header & ~all[i].without) | all[i].with);
		give(&k, &p);
		rules_misused(all[i].what);
		rules_run_for(100000);
		close_kit(&k);
		s->reset();
	}
}

static void reserved(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.reserved2 = 1;
	give(&k, &p);
	rules_misused("reserved fields");
	drop_kit(&k);
}

static void changed(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.completion = 0;
	give(&k, &p);
	p.completion = k.signal;
	give(&k, &p);
	slot(&k, 1)->grid[0] = 400;
	rules_run_for(100000);
	rules_misused("packet 1 was changed behind its doorbell");
	drop_kit(&k);
}

/* What has been published is the device's: who reads it reads nothing. */
static void read_back(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	(void)put(&k, &p);
	assert_memory_equal(slot(&k, 0), &p, sizeof(p));
	ring(&k, 0);
	assert_int_equal(slot(&k, 0)->header, p.header);
	assert_true(slot(&k, 0)->kernel != p.kernel);
	assert_true(slot(&k, 0)->completion != p.completion);
	rules_run_for(100000);
	assert_int_equal(slot(&k, 0)->header, HSA_PACKET_INVALID);
	close_well(&k);
}

static void doorbells(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.completion = 0;
	give(&k, &p);
	give(&k, &p);
	all_is_well();
	ring(&k, 1);
	rules_misused("goes back");
	s->reset();
	ring(&k, 2);
	rules_misused("has not been written");
	s->reset();
	put(&k, &p);
	hsa.hsa_signal_store_relaxed(k.queue->doorbell, 2);
	rules_misused("lets nothing be seen");
	drop_kit(&k);
}

static void overrun(void **state)
{
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	hsa.hsa_queue_add_write_index_screlease(k.queue, RING);
	all_is_well();
	hsa.hsa_queue_add_write_index_screlease(k.queue, 1);
	rules_misused("than the ring has room for");
	close_kit(&k);
}

/* ---- what is wrong with a packet --------------------------------------------------- */

/* The queue tells, on a thread of its own, and stands still: neither the signal of that
 * packet nor that of the next one changes.  Another queue goes on. */
static void fails_with(const struct hsa_packet *how, uint32_t status)
{
	struct hsa_packet p = *how;
	struct kit k, other;

	open_kit(&k, 0, WORK);
	open_kit(&other, 0, WORK);
	if (p.kernel == 1)
		p.kernel = k.kernel;
	p.kernarg = (uintptr_t)k.args;
	p.completion = 0;
	give(&k, &p);
	assert_int_equal(k.failed, 0);
	p = packet(&k, 1);
	give(&k, &p);
	p = packet(&other, 1);
	give(&other, &p);
	rules_run_for(100000);
	assert_int_equal(k.failed, status);
	assert_false(pthread_equal(k.failed_by, pthread_self()));
	assert_int_equal(value(&k), 1);
	assert_int_equal(value(&other), 0);
	IS(0, hsa_queue_inactivate, k.queue);
	close_kit(&k);
	close_kit(&other);
	all_is_well();
}

static void bad_packets(void **state)
{
	const struct hsa_packet good = {.header = HSA_PACKET_DISPATCH | IN_TIME,
					.setup = 3,
					.block = {4, 1, 1},
					.grid = {4, 1, 1},
					.kernel = 1};
	struct hsa_packet p = good;

	(void)state;
	p.setup = 0;
	fails_with(&p, HSAR_INCOMPATIBLE_ARGUMENTS);
	p.setup = 4;
	fails_with(&p, HSAR_INCOMPATIBLE_ARGUMENTS);
	p = good;
	p.grid[1] = 0;
	fails_with(&p, HSAR_INCOMPATIBLE_ARGUMENTS);
	p = good;
	p.block[0] = 1025;
	fails_with(&p, HSAR_INVALID_ARGUMENT);
	p.block[0] = p.block[1] = 64;
	fails_with(&p, HSAR_INVALID_ARGUMENT);
	p = good;
	p.group_bytes = 65537;
	fails_with(&p, HSAR_INVALID_ALLOCATION);
	p = good;
	p.kernel = 64;
	fails_with(&p, HSAR_INVALID_CODE_OBJECT);
	p = good;
	p.header = 7 | IN_TIME;
	fails_with(&p, HSAR_INVALID_PACKET_FORMAT);
}

/* In a process of its own. */
static void dies_as(const char *what, int of)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		/* A process of its own starts it again. */
		execl("/proc/self/exe", "test_hsa_stand_in", what, (char *)NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), of);
}

/* With nobody to tell the process ends. */
static void nobody_to_tell(void **state)
{
	(void)state;
	dies_as("nobody", SIGABRT);
}

static int fail_for_nobody(void)
{
	struct hsa_packet p = {.header = 7 | IN_TIME};
	struct kit k = {0};

	signal(SIGABRT, SIG_DFL);
	(void)!freopen("/dev/null", "w", stderr);
	drive(1);
	if (hsa.hsa_init() ||
	    hsa.hsa_queue_create(GPU, RING, 0, NULL, NULL, 0, 0, &k.queue))
		return 1;
	give(&k, &p);
	rules_run_for(100000);
	return 0;
}

/* What reaches for what is not there ends the process: nobody registers to be told. */
static void page_fault(void **state)
{
	(void)state;
	dies_as("wild", SIGABRT);
}

static int reach_for_nothing(void)
{
	struct hsa_packet p;
	struct kit k;

	signal(SIGABRT, SIG_DFL);
	unsetenv("HAL_STAND_IN_HIP_FAULT");
	(void)!freopen("/dev/null", "w", stderr);
	drive(1);
	if (hsa.hsa_init())
		return 1;
	open_kit(&k, 0, WILD);
	p = packet(&k, 1);
	give(&k, &p);
	rules_run_for(100000);
	return 0;
}

/* ---- arguments --------------------------------------------------------------------- */

/* They are read when the kernel begins, not before. */
static void arguments_late(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.completion = 0;
	k.args[1] = 50000;
	give(&k, &p);
	p.completion = k.signal;
	give(&k, &p);
	rules_run_for(20000); /* the first has begun */
	k.args[1] = 5000000;
	rules_run_for(1000000);
	assert_int_equal(value(&k), 1);
	rules_run_for(5000000);
	assert_int_equal(value(&k), 0);
	/* Nobody says that they are seen, or that they are not. */
	rules_misused("arguments of packet 1 were changed behind its doorbell");
	close_kit(&k);
}

static void arguments_gone(void **state)
{
	struct kit k;

	(void)state;
	(void)give_work(&k);
	HIP_IS(0, hipHostFree, k.pinned);
	rules_misused("is in use");
	drop_kit(&k);
}

static void memory_gone(void **state)
{
	struct kit k;

	(void)state;
	(void)give_work(&k);
	HIP_IS(0, hipFree, k.mem);
	rules_misused("is in use");
	drop_kit(&k);
}

static void arguments_elsewhere(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = open_work(&k);
	p.kernarg = (uintptr_t)k.mem;
	give(&k, &p);
	rules_misused("not the host's, or not at a multiple of 16");
	s->reset();
	p.completion = 0;
	p.kernarg = (uintptr_t)k.args + 8;
	give(&k, &p);
	rules_misused("not the host's, or not at a multiple of 16");
	drop_kit(&k);
}

static void hidden(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	p = packet(&k, 2);
	give(&k, &p);
	rules_run_for(100000);
	rules_misused("work: what is hidden of its arguments is not of this launch");
	close_kit(&k);
}

/* ---- signals, queues and code in use ----------------------------------------------- */

static void signal_in_use(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	p = give_work(&k);
	all_is_well();
	give(&k, &p);
	rules_misused("a completion signal at 1, of 1 packets before");
	s->reset();
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	rules_misused("is written that a packet is to count down");
	s->reset();
	IS(0, hsa_signal_destroy, k.signal);
	rules_misused("a signal goes that a packet is to count down");
	s->reset();
	(void)value(&k);
	rules_misused("is no signal");
	drop_kit(&k);
}

static void signal_at_0(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	hsa.hsa_signal_store_relaxed(k.signal, 0);
	p = packet(&k, 1);
	give(&k, &p);
	rules_misused("a completion signal at 0");
	drop_kit(&k);
}

static void queue_in_use(void **state)
{
	struct kit k;

	(void)state;
	(void)give_work(&k);
	IS(0, hsa_queue_destroy, k.queue);
	rules_misused("a queue goes with packets in it");
	s->reset();
	IS(HSAR_INVALID_QUEUE, hsa_queue_inactivate, k.queue);
	rules_misused("is no queue, or no more");
	drop_kit(&k);
}

/* It ends what has no end, and takes no more. */
static void inactive(void **state)
{
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, NEVER);
	p = packet(&k, 1);
	give(&k, &p);
	rules_run_for(100000);
	IS(0, hsa_queue_inactivate, k.queue);
	all_is_well();
	p.completion = 0;
	give(&k, &p);
	assert_int_equal(s->misuse(NULL), 1);
	rules_run_for(100000);
	assert_int_equal(value(&k), 1);
	close_kit(&k);
	assert_int_equal(s->live(), 0);
}

/* HIP knows nothing of HSA's queues: what waits for the device does not wait for them. */
static void not_waited_for(void **state)
{
	void *mem;
	struct hsa_packet p;
	struct kit k;

	(void)state;
	open_kit(&k, 0, NEVER);
	HIP_IS(0, hipMalloc, &mem, 4096);
	p = packet(&k, 1);
	give(&k, &p);
	rules_run_for(100000);
	HIP_IS(0, hipFree, mem);
	all_is_well();
	HIP_IS(0, hipFree, k.mem);
	rules_misused("is in use");
	drop_kit(&k);
}

static void code(void **state)
{
	struct hsa_packet p;
	uint64_t symbol, more;
	size_t bytes;
	void *others;
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	IS(HSAR_FROZEN_EXECUTABLE, hsa_executable_load_agent_code_object, k.executable,
	   GPU, k.reader, NULL, NULL);
	IS(HSAR_FROZEN_EXECUTABLE, hsa_executable_freeze, k.executable, NULL);
	IS(HSAR_INVALID_SYMBOL_NAME, hsa_executable_get_symbol_by_name, k.executable,
	   "work", &k.agent, &symbol);
	IS(HSAR_INVALID_SYMBOL_NAME, hsa_executable_get_symbol_by_name, k.executable,
	   "copy.kd", &k.agent, &symbol);
	more = GPU + 1;
	IS(HSAR_INVALID_SYMBOL_NAME, hsa_executable_get_symbol_by_name, k.executable,
	   "work.kd", &more, &symbol);
	p = packet(&k, 1);
	give(&k, &p);
	all_is_well();
	IS(0, hsa_executable_destroy, k.executable);
	rules_misused("an executable goes while its kernel is in a queue");
	rules_run_for(100000);
	s->reset();
	IS(0, hsa_executable_create_alt, HSAN_PROFILE_FULL, 0, NULL, &more);
	IS(HSAR_INCOMPATIBLE_ARGUMENTS, hsa_executable_load_agent_code_object, more,
	   GPU + 1, k.reader, NULL, NULL);
	IS(0, hsa_executable_load_agent_code_object, more, GPU, k.reader, NULL, NULL);
	IS(0, hsa_executable_get_symbol_by_name, more, "work.kd", &k.agent, &symbol);
	rules_misused("that is not frozen");
	s->reset();
	memset(k.code, 0, 4);
	IS(0, hsa_code_object_reader_destroy, k.reader);
	rules_misused("code is gone before its reader");
	s->reset();
	others = make_code(0, &bytes);
	memset(others, 0, 4);
	IS(0, hsa_code_object_reader_create_from_memory, others, bytes, &k.reader);
	IS(0, hsa_executable_create_alt, HSAN_PROFILE_FULL, 0, NULL, &more);
	IS(HSAR_INVALID_CODE_OBJECT, hsa_executable_load_agent_code_object, more, GPU,
	   k.reader, NULL, NULL);
	free(others);
	drop_kit(&k);
}

/* ---- copies ------------------------------------------------------------------------ */

/* An engine copies, beside the queue; which memory is whose has to be said. */
static void copies(void **state)
{
	struct gpu_stand_in_job jobs[2];
	struct kit k;

	(void)state;
	open_kit(&k, 0, WORK);
	IS(HSAR_INVALID_AGENT, hsa_amd_memory_async_copy, k.mem, 1, k.pinned, 1, 64, 0,
	   NULL, k.signal);
	IS(HSAR_INVALID_SIGNAL, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 64, 0,
	   NULL, 0);
	s->reset();
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 0,
	   0, NULL, k.signal);
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 64,
	   1, &k.signal, k.signal);
	IS(0, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 64, 0, NULL, k.signal);
	assert_int_equal(value(&k), 1);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	IS(0, hsa_amd_memory_async_copy, k.pinned, 1, k.mem, GPU, 64, 0, NULL, k.signal);
	rules_run_for(100000);
	assert_int_equal(value(&k), 0);
	assert_int_equal(s->jobs(jobs, 2), 2);
	assert_int_equal(jobs[0].engine, 1);
	assert_int_equal(jobs[1].engine, 2);
	hsa.hsa_signal_store_relaxed(k.signal, 1);
	assert_int_equal(s->break_late("hsa_amd_memory_async_copy", 1, 1), 0);
	IS(0, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 64, 0, NULL, k.signal);
	rules_run_for(100000);
	assert_int_equal(value(&k), -1);
	all_is_well();
	IS(0, hsa_amd_memory_async_copy, k.mem, GPU, k.pinned, 1, 64, 0, NULL, k.signal);
	rules_run_for(100000);
	rules_misused("a copy's signal at -1");
	s->reset();
	IS(HSAR_INVALID_ARGUMENT, hsa_amd_memory_async_copy, k.mem, GPU, k.mem, 1, 64, 0,
	   NULL, k.signal);
	rules_misused("not memory of its agent");
	drop_kit(&k);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RULE(not_started), /* first */
		RULE(after_fork),     RULE(plain),          RULE(stalls),
		RULE(reads_late),     RULE(times),          RULE(waits),
		RULE(queue_limits),   RULE(bad_headers),    RULE(reserved),
		RULE(changed),        RULE(doorbells),      RULE(overrun),
		RULE(bad_packets),    RULE(nobody_to_tell), RULE(arguments_late),
		RULE(arguments_gone), RULE(memory_gone),    RULE(arguments_elsewhere),
		RULE(hidden),         RULE(signal_in_use),  RULE(signal_at_0),
		RULE(queue_in_use),   RULE(inactive),       RULE(not_waited_for),
		RULE(code),           RULE(read_back),      RULE(versions),
		RULE(spins),          RULE(page_fault),     RULE(copies),
	};

	if (load_libraries())
		return 1;
	if (argc > 1)
		return strcmp(argv[1], "wild") == 0 ? reach_for_nothing()
						    : fail_for_nobody();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
