/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the stand-in: lock, time, failures on demand, then calls.c. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t counts[XRT_CALL_COUNT];
static int armed = -1; /* enum xrt_call */
static uint64_t armed_nth;
static uint32_t armed_error;
static _Thread_local bool is_hot;
static bool begun;

static const char *const call_names[XRT_CALL_COUNT] = {
#define NAME(name, ...) #name,
	XRT_CALLS(NAME) XRT_CALLS_OPEN(NAME) XRT_CALLS_SHARE(NAME)
#undef NAME
};

static int index_of(const char *call)
{
	int i;

	for (i = 0; i < XRT_CALL_COUNT; i++)
		if (strcmp(call_names[i], call) == 0)
			return i;
	return -1;
}

static uint32_t count_live(void)
{
	const struct object *o;
	uint32_t n = 0;

	for (o = world.objects; o; o = o->next)
		n += !o->gone;
	return n;
}

/* A strict process says what it did wrong. */
static void at_end(void)
{
	const char *strict = getenv("HAL_STAND_IN_XRT_STRICT");
	const uint32_t left = count_live();

	if (!strict || (!left && !world.misused))
		return;
	fflush(NULL);
	fprintf(stderr, "stand-in: %u left, %u times misused: %s\n", left, world.misused,
		world.misuse);
	_exit(70);
}

/* XRT looks for its driver at the first call, and ends the process where it is not. */
static void look_for_driver(void)
{
	const char *root = getenv("XILINX_XRT"), *mode = getenv("XCL_EMULATION_MODE");
	char path[4096];

	snprintf(path, sizeof(path), "%s/lib/libxrt_core.so.2", root ? root : "");
	if (!root || mode || !dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "terminate called: no XRT driver %s\n", path);
		abort();
	}
}

static void begin(void)
{
	if (begun)
		return;
	begun = true;
	look_for_driver();
	world.pace_mono = mono();
	atexit(at_end);
}

void spend(const char *call, uint64_t ns)
{
	const uint64_t until = world.now_ns + ns;
	struct timespec t;

	if (is_hot)
		misuse("%s waits, on a thread that may not", call);
	if (world.drivers) {
		(void)world_run(until, false);
		return;
	}
	while (world.now_ns < until) {
		ns = until - world.now_ns;
		t = (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000)};
		pthread_mutex_unlock(&lock);
		nanosleep(&t, NULL);
		pthread_mutex_lock(&lock);
		world_pace();
	}
}

/* ---- entry points -------------------------------------------------------------------- */

/* Takes the lock; true when calls.c has nothing to do with it. */
static bool enter(int call)
{
	pthread_mutex_lock(&lock);
	begin();
	world_pace();
	counts[call]++;
	if (call != armed || !armed_nth || --armed_nth)
		return false;
	armed = -1;
	/* Who says so means it. */
	if (armed_error == ENODEV)
		card_lose(&world.cards[0]);
	errno = (int)armed_error;
	return true;
}

static void leave(void)
{
	const int e = errno;

	pthread_mutex_unlock(&lock);
	errno = e;
}

/* What a call answers that fails. */
#define FAILED(result)                                                                   \
	_Generic((result)0,                                                              \
		 void * : NULL,                                                          \
		 int : -1,                                                               \
		 uint32_t : XRT_ABORT,                                                   \
		 default : UINT64_MAX)

#define ENTRY(name, result, params, args)                                                \
	EXPORT result name params;                                                       \
	EXPORT result name params                                                        \
	{                                                                                \
		result r = FAILED(result);                                               \
                                                                                         \
		if (!enter(XRT_CALL_##name))                                             \
			r = do_##name args;                                              \
		leave();                                                                 \
		return r;                                                                \
	}
XRT_CALLS(ENTRY)
XRT_CALLS_SHARE(ENTRY)

EXPORT int xrtRunSetArg(void *run, int index, ...);
EXPORT int xrtRunSetArg(void *run, int index, ...)
{
	va_list ap;
	int r = -1;

	va_start(ap, index);
	if (!enter(XRT_CALL_xrtRunSetArg))
		r = do_xrtRunSetArg(run, index, ap);
	va_end(ap);
	leave();
	return r;
}

/* ---- cards, and who drives the clock -------------------------------------------------- */

EXPORT uint32_t halStandInXrtCards(void);
EXPORT uint32_t halStandInXrtCards(void)
{
	return CARDS;
}

EXPORT void halStandInXrtDrive(uint32_t on);
EXPORT void halStandInXrtDrive(uint32_t on)
{
	pthread_mutex_lock(&lock);
	begin();
	world_pace();
	world.drivers += on ? 1 : UINT32_MAX;
	world.pace_ns = world.now_ns;
	world.pace_mono = mono();
	leave();
}

EXPORT void halStandInXrtAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
EXPORT void halStandInXrtAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	pthread_mutex_lock(&lock);
	*idle = !world_run(until_ns > world.now_ns ? until_ns : world.now_ns, true);
	*now_ns = world.now_ns;
	leave();
}

/* ---- control ------------------------------------------------------------------------- */

static int break_call(const char *call, uint64_t nth, uint32_t error)
{
	const int i = index_of(call);

	pthread_mutex_lock(&lock);
	armed = nth ? i : -1;
	armed_nth = nth;
	armed_error = error;
	leave();
	return i < 0 ? -1 : 0;
}

static uint64_t still_armed(void)
{
	return armed < 0 ? 0 : armed_nth;
}

static uint64_t calls(const char *call)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < XRT_CALL_COUNT; i++)
		if (!call || strcmp(call, call_names[i]) == 0)
			n += counts[i];
	return n;
}

static uint32_t live(void)
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	n = count_live();
	leave();
	return n;
}

static uint32_t misused(const char **text)
{
	if (text)
		*text = world.misuse;
	return world.misused;
}

static void lose(uint32_t card)
{
	pthread_mutex_lock(&lock);
	card_lose(&world.cards[card]);
	leave();
}

static void steal(uint32_t card)
{
	pthread_mutex_lock(&lock);
	world.cards[card].steals = true;
	leave();
}

/* NULL: none of what is loaded. */
static struct unit *unit_named(uint32_t card, const char *name)
{
	struct card *c = &world.cards[card];
	uint32_t i;

	for (i = 0; i < units_of(c); i++)
		if (strcmp(c->x.units[i].name, name) == 0)
			return &c->units[i];
	return NULL;
}

static int end_as(uint32_t card, const char *unit, uint32_t state)
{
	struct unit *u;

	pthread_mutex_lock(&lock);
	u = unit_named(card, unit);
	if (u)
		u->end_as = state;
	leave();
	return u ? 0 : -1;
}

static int hang(uint32_t card, const char *unit)
{
	struct unit *u;

	pthread_mutex_lock(&lock);
	u = unit_named(card, unit);
	if (u)
		u->hangs = true;
	leave();
	return u ? 0 : -1;
}

static void hot(int yes)
{
	is_hot = yes;
}

static uint64_t now(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	world_pace();
	ns = world.now_ns;
	leave();
	return ns;
}

static uint32_t jobs(struct fpga_stand_in_job *out, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	while (n < max && world.kept_count) {
		out[n++] = world.kept[world.kept_first];
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
		world.kept_count--;
	}
	leave();
	return n;
}

static void forget(struct object *o)
{
	struct bo *b = (struct bo *)o;

	if (o->kind == OBJECT_BO && !b->parent && !o->gone)
		bo_drop(b);
	free(o);
}

static void reset(void)
{
	struct object *o, *next;
	uint32_t i;

	pthread_mutex_lock(&lock);
	for (o = world.objects; o; o = next) {
		next = o->next;
		forget(o);
	}
	world.objects = NULL;
	for (i = 0; i < CARDS; i++) {
		card_empty(&world.cards[i]);
		world.cards[i].lost = world.cards[i].bad = false;
		world.cards[i].steals = world.cards[i].stolen = false;
		world.cards[i].bos = NULL;
	}
	memset(counts, 0, sizeof(counts));
	armed = -1;
	world.misused = world.kept_count = 0;
	world.misuse[0] = 0;
	leave();
}

EXPORT extern const struct fpga_stand_in hal_stand_in_xrt;
const struct fpga_stand_in hal_stand_in_xrt = {
	.size = sizeof(struct fpga_stand_in),
	.break_call = break_call,
	.armed = still_armed,
	.calls = calls,
	.live = live,
	.misuse = misused,
	.lose = lose,
	.steal = steal,
	.end_as = end_as,
	.hang = hang,
	.hot = hot,
	.now = now,
	.jobs = jobs,
	.reset = reset,
};
