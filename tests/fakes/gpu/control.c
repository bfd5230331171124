/* SPDX-License-Identifier: Apache-2.0 */
/* Around each entry point of a stand-in: lock, time, failures on demand; what a test
 * steers. */
#define _GNU_SOURCE
#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT    __attribute__((visibility("default")))
#define CALLS_MAX 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t engine; /* lets time go by while it is paced */
static bool engine_runs, engine_ends;
static pid_t process; /* that started it */
static uint64_t counts[CALLS_MAX];
static int armed = -1; /* a call */
static uint64_t armed_nth;
static uint32_t armed_result;
/* The call is well, what it gives the device is not; or the other way round. */
static bool armed_late, armed_half;
static bool is_watching;
static pthread_t watched_thread;
static uint64_t watched_counts[CALLS_MAX];
static uint32_t delays_ns[CALLS_MAX];
static _Thread_local bool is_hot;
static _Thread_local uint32_t
	hosting; /* functions of the program's that this thread is in */

const char *setting(const char *name)
{
	char all[64];

	snprintf(all, sizeof(all), "%s%s", face.environment, name);
	return getenv(all);
}

static int index_of(const char *call)
{
	int i;

	for (i = 0; i < (int)face.count; i++)
		if (strcmp(face.calls[i], call) == 0)
			return i;
	return -1;
}

static void arm_from_environment(void)
{
	const char *text = setting("FAIL");
	static bool done;
	char call[64];

	if (!done && text &&
	    sscanf(text, "%63[^:]:%lu:%u", call, &armed_nth, &armed_result) == 3)
		armed = index_of(call);
	done = true;
}

/* ---- delays ------------------------------------------------------------------------ */

static void set_delays(void)
{
	static const struct {
		const char *call;
		uint32_t ns;
	} slow[] = {
		{"cuMemAlloc_v2", 1000000},
		{"cuMemCreate", 1000000},
		{"cuMemHostAlloc", 1000000},
		{"cuMemHostRegister_v2", 1000000},
		{"cuStreamCreateWithPriority", 300000},
		{"cuGreenCtxStreamCreate", 300000},
		{"hipMalloc", 1000000},
		{"hipHostMalloc", 1000000},
		{"hipHostRegister", 1000000},
		{"hipStreamCreateWithPriority", 300000},
		{"hipExtStreamCreateWithCUMask", 300000},
	};
	const char *on = setting("DELAYS");
	size_t i;

	if (!on || strcmp(on, "1") != 0)
		return;
	for (i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		if (index_of(slow[i].call) >= 0)
			delays_ns[index_of(slow[i].call)] = slow[i].ns;
}

/* Take as long as a driver that waits for the device: without the lock, so that other
 * threads' launches go on, and without taking a processor from them. */
static void delay(uint32_t call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct timespec t = {0};
	bool driven;

	pthread_once(&once, set_delays);
	if (!delays_ns[call])
		return;
	pthread_mutex_lock(&lock);
	driven = world.drivers != 0;
	pthread_mutex_unlock(&lock);
	t.tv_nsec = delays_ns[call];
	if (!driven)
		nanosleep(&t, NULL);
}

/* ---- time -------------------------------------------------------------------------- */

static void *run_engine(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!engine_ends) {
		struct timespec t;
		uint64_t next, ns = 1000000000;

		world_pace();
		next = world_next();
		if (world.drivers)
			next = NEVER;
		if (next != NEVER)
			ns = next > world.now_ns ? next - world.now_ns : 0;
		clock_gettime(CLOCK_REALTIME, &t);
		ns = (uint64_t)t.tv_nsec + (ns < 1000000000 ? ns : 1000000000);
		t.tv_sec += (time_t)(ns / 1000000000);
		t.tv_nsec = (long)(ns % 1000000000);
		pthread_cond_timedwait(&wake, &lock, &t);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static uint32_t count_live(void)
{
	const struct allocation *a;
	const struct object *o;
	uint32_t n = 0, d;
	bool lost = false;

	for (d = 0; d < DEVICES_MAX; d++) {
		lost |= world.devices[d].lost != 0;
		n += world.devices[d].retained;
	}
	for (o = world.objects; o; o = o->next)
		n += !o->gone && o->kind != OBJECT_FUNCTION && !o->dev->lost;
	for (a = world.allocations; a; a = a->next)
		n += !a->freed && (a->dev ? !a->dev->lost : !lost);
	return n;
}

/* Ends the thread; a strict process says what it did wrong. */
static void at_end(void)
{
	const char *strict = setting("STRICT");
	uint32_t left;

	if (getpid() != process)
		return;
	pthread_mutex_lock(&lock);
	engine_ends = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	if (engine_runs)
		pthread_join(engine, NULL);
	left = count_live();
	if (!strict || (!left && !world.misused))
		return;
	fflush(NULL);
	fprintf(stderr, "stand-in: %u left, %u times misused: %s\n", left, world.misused,
		world.misuse);
	_exit(70);
}

static void begin(void)
{
	if (process)
		return;
	process = getpid();
	engine_runs = pthread_create(&engine, NULL, run_engine, NULL) == 0;
	atexit(at_end);
}

bool breathe(void)
{
	const struct timespec t = {.tv_nsec = 20000};

	if (world.drivers)
		return world_run(NEVER, true);
	pthread_mutex_unlock(&lock);
	nanosleep(&t, NULL);
	pthread_mutex_lock(&lock);
	world_pace();
	return world_next() != NEVER;
}

void blocks(const char *call)
{
	if (is_hot && current_device() && device_busy(current_device()))
		misuse("%s can block, on a thread that may not", call);
}

bool forked(void)
{
	return getpid() != process;
}

/* ---- entry points ------------------------------------------------------------------ */

/* The lock is this thread's and stays so: it comes here again from within. */
void call_host(const struct job *j, uint32_t result)
{
	hosting++;
	if (j->told)
		j->told(j->stream, result, j->user);
	else
		j->host(j->user);
	hosting--;
}

struct apart {
	void (*fn)(void *user);
	void *user;
};

static void *run_apart(void *apart)
{
	const struct apart *a = apart;

	hosting++;
	a->fn(a->user);
	hosting--;
	return NULL;
}

void call_apart(void (*fn)(void *user), void *user)
{
	struct apart a = {fn, user};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_apart, &a) || pthread_join(thread, NULL))
		abort();
}

void call_unlocked(void (*fn)(void *user), void *user)
{
	pthread_mutex_unlock(&lock);
	fn(user);
	pthread_mutex_lock(&lock);
}

bool enter(uint32_t call, bool starts, uint32_t *result)
{
	if (hosting) {
		misuse("%s: within a function of the program's", face.calls[call]);
		*result = GPU_NOT_PERMITTED;
		return true;
	}
	delay(call);
	pthread_mutex_lock(&lock);
	arm_from_environment();
	if (starts)
		begin();
	if (world.ready)
		world_pace();
	counts[call]++;
	if (is_watching && pthread_equal(watched_thread, pthread_self()))
		watched_counts[call]++;
	*result = face.state(call);
	if (!*result && face.disturbs(call))
		*result = capture_spoils();
	if ((int)call == armed && armed_nth && !--armed_nth) {
		armed = -1;
		if (armed_late)
			world.fail_next = armed_result;
		else if (armed_half)
			world.fail_half = armed_result;
		else
			*result = armed_result;
		/* Who says so means it. */
		if (!armed_late && !armed_half && face.sticky(armed_result) &&
		    world.ready)
			device_lose(current_device() ? current_device()
						     : &world.devices[0],
				    armed_result);
	}
	return *result != GPU_SUCCESS;
}

uint32_t leave(uint32_t result)
{
	if (hosting)
		return result;
	if (world.fail_half && !result)
		result = world.fail_half;
	world.fail_next = world.fail_half = 0;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- who drives the clock ---------------------------------------------------------- */

void drive(uint32_t on)
{
	pthread_mutex_lock(&lock);
	world_pace();
	if (on)
		world.drivers++;
	else
		world.drivers--;
	world.pace_ns = world.now_ns;
	world.pace_mono = mono();
	leave(0);
}

void advance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	pthread_mutex_lock(&lock);
	*idle = !world_run(until_ns > world.now_ns ? until_ns : world.now_ns, true);
	*now_ns = world.now_ns;
	leave(0);
}

uint32_t busy(uint32_t device)
{
	uint32_t yes;

	pthread_mutex_lock(&lock);
	yes = device_waited_for(&world.devices[device]);
	leave(0);
	return yes;
}

/* ---- control ----------------------------------------------------------------------- */

static int arm(const char *call, uint64_t nth, uint32_t result, bool late, bool half)
{
	int i = index_of(call);

	pthread_mutex_lock(&lock);
	armed_late = late;
	armed_half = half;
	armed = nth ? i : -1;
	armed_nth = nth;
	armed_result = result;
	leave(0);
	return i < 0 ? -1 : 0;
}

static int break_call(const char *call, uint64_t nth, uint32_t result)
{
	return arm(call, nth, result, false, false);
}

static int break_late(const char *call, uint64_t nth, uint32_t result)
{
	return arm(call, nth, result, true, false);
}

static int break_half(const char *call, uint64_t nth, uint32_t result)
{
	return arm(call, nth, result, false, true);
}

static uint64_t still_armed(void)
{
	return armed < 0 ? 0 : armed_nth;
}

static void watch(pthread_t thread)
{
	pthread_mutex_lock(&lock);
	is_watching = true;
	watched_thread = thread;
	memset(watched_counts, 0, sizeof(watched_counts));
	leave(0);
}

static uint64_t watched(const char *call)
{
	const int i = index_of(call);
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = i < 0 ? UINT64_MAX : watched_counts[i];
	leave(0);
	return n;
}

static uint64_t calls(const char *call)
{
	uint64_t n = 0;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < (int)face.count; i++)
		if (!call || strcmp(call, face.calls[i]) == 0)
			n += counts[i];
	leave(0);
	return n;
}

static uint32_t live(void)
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	n = count_live();
	leave(0);
	return n;
}

static uint32_t misused(const char **text)
{
	if (text)
		*text = world.misuse;
	return world.misused;
}

static void lose(uint32_t device, uint32_t result)
{
	pthread_mutex_lock(&lock);
	device_lose(&world.devices[device], result);
	leave(0);
}

static void set_memory_left(uint64_t bytes)
{
	world.memory_left = bytes;
}

static void limit(const struct gpu_stand_in_limits *limits)
{
	pthread_mutex_lock(&lock);
	world.limits = *limits;
	/* What is left of them reaches 1, as 0 says that there is none. */
	world.limits.pinned = (limits->pinned ? limits->pinned : PINNED_MOST) + 1;
	world.limits.streams += limits->streams != 0;
	leave(0);
}

static void frees_wait(int yes)
{
	world.frees_wait = yes;
}

static void green_leaks(int yes)
{
	world.leaky = world.mask_leaky = yes;
}

static void no_callback(int yes)
{
	world.silent = yes;
}

static void moves_run(int yes)
{
	world.moves_run = yes;
}

static uint64_t blocked(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = world.blocked;
	leave(0);
	return n;
}

/* NULL: there are fewer. */
static struct stream *newest_stream(uint32_t nth)
{
	struct object *o;

	for (o = world.objects; o; o = o->next)
		if (o->kind == OBJECT_STREAM && !o->gone && !nth--)
			return (struct stream *)o;
	return NULL;
}

static int answer_query(uint32_t nth, uint32_t result)
{
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = newest_stream(nth);
	if (s)
		s->answer = result;
	leave(0);
	return s ? 0 : -1;
}

static uint64_t queries(uint32_t nth)
{
	const struct stream *s;
	uint64_t n;

	pthread_mutex_lock(&lock);
	s = newest_stream(nth);
	n = s ? s->queries : 0;
	leave(0);
	return n;
}

static void hot(int yes)
{
	is_hot = yes;
}

static void capture(void *stream, int mode)
{
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = get_any(stream, OBJECT_STREAM);
	if (s) {
		s->capture = mode != 0;
		s->mode = (uint32_t)mode - 1;
		s->capturer = this_thread();
	}
	leave(0);
}

static uint64_t now(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = world.now_ns;
	leave(0);
	return ns;
}

static uint64_t spun(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = world.spun_ns;
	leave(0);
	return ns;
}

static uint32_t jobs(struct gpu_stand_in_job *out, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	while (n < max && world.kept_count) {
		out[n++] = world.kept[world.kept_first];
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
		world.kept_count--;
	}
	leave(0);
	return n;
}

static void forget(struct object *o)
{
	if (o->kind == OBJECT_PHYSICAL)
		vmm_forget((struct physical *)o);
	if (o->kind == OBJECT_MODULE && face.end_code)
		face.end_code((struct module *)o);
	free(o);
}

/* Handles that are gone, and all that a loss has taken along. */
static void forget_handles(void)
{
	struct object **at = &world.objects, *o;
	struct allocation *a, *next;
	bool lost = false;
	uint32_t d;

	for (d = 0; d < DEVICES_MAX; d++)
		lost |= world.devices[d].lost != 0;
	while ((o = *at)) {
		if (!o->gone && !o->dev->lost) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		forget(o);
	}
	while ((o = world.gone)) {
		world.gone = o->next;
		forget(o);
	}
	for (a = world.allocations; a; a = next) {
		next = a->next;
		if (!a->freed && a->dev && a->dev->lost)
			a->dev->used -= a->taken;
		if (a->freed || (a->dev ? a->dev->lost != 0 : lost))
			allocation_end(a);
	}
	world.frees = 0;
}

static void reset(void)
{
	uint32_t d;

	pthread_mutex_lock(&lock);
	forget_handles();
	for (d = 0; d < DEVICES_MAX; d++) {
		world.devices[d].lost = 0;
		world.devices[d].retained = 0;
	}
	memset(counts, 0, sizeof(counts));
	is_watching = false;
	armed = -1;
	world.misused = world.kept_count = 0;
	world.misuse[0] = 0;
	world.memory_left = UINT64_MAX;
	world.limits = (struct gpu_stand_in_limits){.pinned = PINNED_MOST + 1};
	world.hooked = world.leaky = world.mask_leaky = world.silent = false;
	world.moves_run = true;
	world.blocked = 0;
	world.streams = 0;
	world.frees_wait = face.frees_wait;
	leave(0);
}

EXPORT extern const struct gpu_stand_in hal_stand_in_gpu;
const struct gpu_stand_in hal_stand_in_gpu = {
	.size = sizeof(struct gpu_stand_in),
	.break_call = break_call,
	.break_late = break_late,
	.break_half = break_half,
	.armed = still_armed,
	.calls = calls,
	.watch = watch,
	.watched = watched,
	.live = live,
	.misuse = misused,
	.lose = lose,
	.memory_left = set_memory_left,
	.limit = limit,
	.frees_wait = frees_wait,
	.hot = hot,
	.capture = capture,
	.now = now,
	.spun = spun,
	.jobs = jobs,
	.reset = reset,
	.green_leaks = green_leaks,
	.no_callback = no_callback,
	.moves_run = moves_run,
	.blocked = blocked,
	.answer_query = answer_query,
	.queries = queries,
};
