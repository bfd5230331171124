/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points of the stand-in: lock, time, failures on demand, then calls.c; and the
 * tables of them that the loader asks for.
 */
#include "internal.h"
#include "tables.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t call_counts[LZ_CALL_COUNT];
static uint64_t error_count;
static int armed = -1; /* enum lz_call */
static uint64_t armed_nth;
static uint32_t armed_result;

static const char *const call_names[LZ_CALL_COUNT] = {
#define NAME(table, slot, need, name, params, args) #name,
	LZ_CALLS(NAME)
#undef NAME
};

static int index_of(const char *call)
{
	int i;

	for (i = 0; i < LZ_CALL_COUNT; i++)
		if (strcmp(call_names[i], call) == 0)
			return i;
	return -1;
}

/* HAL_STAND_IN_ZE_FAIL=zeInit:1:0x78000001 */
static void arm_from_environment(void)
{
	const char *text = getenv("HAL_STAND_IN_ZE_FAIL");
	static bool done;
	char call[64];
	unsigned int nth, result;

	if (done)
		return;
	done = true;
	if (!text || sscanf(text, "%63[^:]:%u:%x", call, &nth, &result) != 3)
		return;
	armed = index_of(call);
	armed_nth = nth;
	armed_result = result;
}

static atomic_ullong module_ns;

static void compile(void)
{
	uint64_t ns = atomic_load(&module_ns);
	const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}

/* zeModuleCreate waits here while a test holds it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool on;
	uint32_t count; /* that wait */
} hold = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static void wait_for_hold(void)
{
	pthread_mutex_lock(&hold.lock);
	hold.count++;
	while (hold.on)
		pthread_cond_wait(&hold.end, &hold.lock);
	hold.count--;
	pthread_mutex_unlock(&hold.lock);
}

static uint32_t control_hold_modules(uint32_t on)
{
	uint32_t count;

	pthread_mutex_lock(&hold.lock);
	hold.on = on != 0;
	count = hold.count;
	if (!on)
		pthread_cond_broadcast(&hold.end);
	pthread_mutex_unlock(&hold.lock);
	return count;
}

/* Modules that are being made: the loader's tables do not bear that one goes meanwhile.
 */
static atomic_uint making;

/* Takes the lock; true when it is this call's turn to fail. */
static bool enter(int call, uint32_t *result)
{
	uint32_t d;

	if (call == LZ_CALL_zeModuleCreate) {
		atomic_fetch_add(&making, 1);
		if (atomic_load(&module_ns))
			compile();
		wait_for_hold();
	}
	pthread_mutex_lock(&lock);
	if ((call == LZ_CALL_zeModuleDestroy ||
	     call == LZ_CALL_zeModuleBuildLogDestroy) &&
	    atomic_load(&making))
		misuse("a module was destroyed while another was made");
	arm_from_environment();
	world_pace();
	call_counts[call]++;
	if (call != armed || !armed_nth || --armed_nth)
		return false;
	armed = -1;
	*result = armed_result;
	/* Who says so means it. */
	for (d = 0; armed_result == LZ_ERROR_DEVICE_LOST && d < DEVICES; d++)
		device_lose(&world.roots[d]);
	return true;
}

static uint32_t leave(int call, uint32_t result)
{
	if (call == LZ_CALL_zeModuleCreate)
		atomic_fetch_sub(&making, 1);
	if (result != LZ_SUCCESS && result != LZ_NOT_READY)
		error_count++;
	pthread_mutex_unlock(&lock);
	return result;
}

#define ENTRY(table, slot, need, name, params, args)                                     \
	static uint32_t entry_##name params                                              \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(LZ_CALL_##name, &r))                                          \
			r = do_##name args;                                              \
		return leave(LZ_CALL_##name, r);                                         \
	}
LZ_CALLS(ENTRY)

void breathe(void)
{
	const struct timespec t = {.tv_nsec = 20000};

	pthread_mutex_unlock(&lock);
	nanosleep(&t, NULL);
	pthread_mutex_lock(&lock);
	world_pace();
}

/* ---- the driver's own extension: who drives the clock ------------------------------ */

uint32_t clock_drive(uint32_t on)
{
	pthread_mutex_lock(&lock);
	world_pace();
	/* From a whole tick of every clock on, so that they fall the same each time. */
	if (on && !world.drivers++)
		world_run((world.now_ns + 1999) / 2000 * 2000, false);
	if (!on && world.drivers)
		world.drivers--;
	world.pace_mono = 0;
	pthread_mutex_unlock(&lock);
	return LZ_SUCCESS;
}

uint32_t clock_advance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	pthread_mutex_lock(&lock);
	if (world.drivers)
		world_run(until_ns, true);
	*now_ns = world.now_ns;
	*idle = world_idle();
	pthread_mutex_unlock(&lock);
	return LZ_SUCCESS;
}

uint32_t driver_import(void *driver, void *p, size_t bytes)
{
	uint32_t r;

	pthread_mutex_lock(&lock);
	world_pace();
	r = do_import(driver, p, bytes);
	pthread_mutex_unlock(&lock);
	return r;
}

uint32_t driver_release(void *driver, void *p)
{
	uint32_t r;

	pthread_mutex_lock(&lock);
	world_pace();
	r = do_release(driver, p);
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- tables ------------------------------------------------------------------------ */

static uint32_t entry_properties(void *driver, struct ze_driver_properties *p)
{
	uint32_t r;

	pthread_mutex_lock(&lock);
	r = driver_properties(driver, p);
	pthread_mutex_unlock(&lock);
	return r;
}

static const struct entry entries[] = {{"zeGetDriver", 2, (entry_fn)entry_properties},
#define ROW(table, slot, need, name, params, args) {#table, slot, (entry_fn)entry_##name},
				       LZ_CALLS(ROW)
#undef ROW
};

LZ_TABLES(EXPORT_TABLE)

/* ---- control ----------------------------------------------------------------------- */

static int control_fail(const char *call, uint64_t nth, uint32_t result)
{
	int i = index_of(call);

	if (i < 0)
		return -1;
	pthread_mutex_lock(&lock);
	armed = nth ? i : -1;
	armed_nth = nth;
	armed_result = result;
	pthread_mutex_unlock(&lock);
	return 0;
}

static uint64_t control_armed(void)
{
	return armed >= 0 ? armed_nth : 0;
}

static uint64_t control_calls(const char *call)
{
	uint64_t sum = 0;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < LZ_CALL_COUNT; i++)
		if (!call || strcmp(call_names[i], call) == 0)
			sum += call_counts[i];
	pthread_mutex_unlock(&lock);
	return sum;
}

static uint64_t control_errors(void)
{
	return error_count;
}

static uint32_t control_live(void)
{
	return world.live;
}

static uint32_t control_misuse(const char **text)
{
	if (text)
		*text = world.misuse ? world.misuse : "";
	return world.misused;
}

static void control_lose(uint32_t device)
{
	pthread_mutex_lock(&lock);
	if (device < DEVICES)
		device_lose(&world.roots[device]);
	pthread_mutex_unlock(&lock);
}

static void control_revive(void)
{
	uint32_t d;

	for (d = 0; d < DEVICES; d++)
		world.roots[d].lost = false;
}

static void control_permit(int yes)
{
	world.permit = yes != 0;
}

static void control_memory_left(uint64_t bytes)
{
	world.memory_left = bytes;
}

static void control_slow_modules(uint64_t ns)
{
	atomic_store(&module_ns, ns);
}

static void control_share_memory(int yes)
{
	pthread_mutex_lock(&lock);
	world.shares_nothing = !yes;
	pthread_mutex_unlock(&lock);
}

static void control_external(uint32_t exports, uint32_t imports, int leaves)
{
	pthread_mutex_lock(&lock);
	world.export_types = exports;
	world.import_types = imports;
	world.leaves_exports = leaves != 0;
	pthread_mutex_unlock(&lock);
}

static void control_slow_copies(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	world.copy_ns = ns;
	pthread_mutex_unlock(&lock);
}

static uint64_t control_now(void)
{
	return world.now_ns;
}

static void control_set_now(uint64_t ns)
{
	world.now_ns = ns;
	world.pace_mono = 0;
}

static uint32_t control_jobs(struct lz_stand_in_job *out, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (; n < max && world.kept_count; n++) {
		out[n] = world.kept[world.kept_first];
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
		world.kept_count--;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

static void control_reset(void)
{
	pthread_mutex_lock(&lock);
	memset(call_counts, 0, sizeof(call_counts));
	error_count = 0;
	armed = -1;
	atomic_store(&module_ns, 0);
	world.copy_ns = 0;
	world.shares_nothing = false;
	share_reset();
	world.misused = 0;
	world.misuse = NULL;
	world.kept_count = 0;
	world.permit = true;
	world.memory_left = UINT64_MAX;
	control_revive();
	pthread_mutex_unlock(&lock);
}

EXPORT extern const struct lz_stand_in hal_stand_in_ze;
const struct lz_stand_in hal_stand_in_ze = {
	.size = sizeof(struct lz_stand_in),
	.break_call = control_fail,
	.armed = control_armed,
	.calls = control_calls,
	.errors = control_errors,
	.live = control_live,
	.misuse = control_misuse,
	.lose = control_lose,
	.revive = control_revive,
	.permit = control_permit,
	.memory_left = control_memory_left,
	.slow_modules = control_slow_modules,
	.hold_modules = control_hold_modules,
	.slow_copies = control_slow_copies,
	.share_memory = control_share_memory,
	.external = control_external,
	.now = control_now,
	.set_now = control_set_now,
	.jobs = control_jobs,
	.reset = control_reset,
};

/* HAL_STAND_IN_ZE_STRICT=1: a process that misused the driver, or left something there,
 * does not end well. */
__attribute__((destructor)) static void judge(void)
{
	const char *strict = getenv("HAL_STAND_IN_ZE_STRICT");

	if (!strict || strcmp(strict, "1") != 0 || (!world.misused && !world.live))
		return;
	fflush(NULL);
	fprintf(stderr, "stand-in driver: %u objects left, misused %u times%s%s\n",
		world.live, world.misused, world.misuse ? ", last: " : "",
		world.misuse ? world.misuse : "");
	_exit(70);
}
