/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.c - all that can happen between two senders and an engine, with the functions
 * of core/loop/wake.h and core/far/bell.h themselves.
 *
 *   sender 0, 1   write a record, tail, announce_first, inbox_put, wake; as often as the
 *                 scenario says; or post a plain message; or wait for what the engine
 *                 raises, as hal_wait does: a message without a wake-up, then a look
 *                 In some scenarios sender 0 is another process, and writes a bell
 *                 (far/bell.h) instead of a message
 *   bells         hald's thread that waits for bells, and sends messages for them
 *   engine        inbox_take, announce_again, look at tail; inbox_may_sleep, sleep,
 *                 inbox_awake; it may also wake by itself once (a timer), and look at a
 *                 tail without a message (an event of the device).  In some scenarios it
 *                 watches each queue whose message it has taken, until it is about to
 *                 sleep (watch.c)
 *
 * In scenarios with lends the senders are callers of hal_submit and at last of hal_wait,
 * who may be the engine while its thread sleeps (engine.c, command/lend.c, api/wait.c).
 * They send a plain message for a record, which is a command for the device: it has ended
 * when whoever is the engine next polls it, or polls it once more.
 *
 * A state is memory, each thread's store buffer, and what each thread has read since it
 * began its present round.  That decides what it does next: the round is run again from
 * its beginning with the values it read, up to the first operation that has not happened
 * yet.  From each state each thread's next operation and each buffered store that may go
 * to memory are tried; what has been seen before is not gone through again.
 *
 * Memory is one of two:
 *   tso   x86: stores go to memory in order, a load may overtake them.  What reads and
 *         writes in one, and a fence, wait for all of them.  W3 and W6 are compiled as
 *         on x86: not at all
 *   arm   stores go to memory in any order, but a release after those before it.  The
 *         store of what reads and writes in one is a release, and may be overtaken by
 *         later loads (nobody else writes the word meanwhile).  Loads stay in order: all
 *         that are shared acquire
 *
 * Wrong is: the engine sleeps for ever though a record or message has not been taken; one
 * is taken twice; a message is in the box twice; a record is read before it was written;
 * who waits is not told; two threads are the engine; a command has ended and nobody will
 * ever notice.
 *
 *   wakeup          all scenarios, then planted errors in the small ones
 *   wakeup figure   all scenarios
 *   wakeup quick    the small ones
 *
 * Errors are planted, one at a time, and have to be found; the table below says which of
 * them do no harm in which memory, and why.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t on_load(const void *p);
static uintptr_t on_get(const void *p);
static void on_store(const void *p, uintptr_t v, bool release);
static uintptr_t on_exchange(const void *p, uintptr_t v);
static bool on_cas(const void *p, void *expected, uintptr_t v);
static void on_fence(const char *where);
static bool on_change(const void *p, uintptr_t e, uintptr_t v);

#define WAKE_EXPLORED
#define WAKE_WORD            unsigned int
#define WAKE_POINTER(type)   type *
#define WAKE_LOAD(p)         ((__typeof__(*(p)))on_load(p))
#define WAKE_STORE(p, v)     on_store((p), (uintptr_t)(v), true)
#define WAKE_GET(p)          ((__typeof__(*(p)))on_get(p))
#define WAKE_SET(p, v)       on_store((p), (uintptr_t)(v), false)
#define WAKE_EXCHANGE(p, v)  ((__typeof__(*(p)))on_exchange((p), (uintptr_t)(v)))
#define WAKE_CAS(p, e, v)    on_cas((p), (e), (uintptr_t)(v))
#define WAKE_CHANGE(p, e, v) on_change((p), (uintptr_t)(e), (uintptr_t)(v))
#define WAKE_GLANCE(p)       ((__typeof__(*(p)))on_load(p))
#define WAKE_FENCE()         on_fence(__func__)
#define WAKE_FENCE_RMW()     on_fence(__func__)
#define WAKE_ADD(p)          adds(p)
#include "loop/wake.h"

static void adds(unsigned int *p)
{
	unsigned int was;

	do
		was = WAKE_LOAD(p);
	while (!WAKE_CHANGE(p, was, was + 1));
}

#include "far/bell.h"

/* ---- what is shared ---------------------------------------------------------------- */

enum { SENDERS = 2, ENGINE = SENDERS, BELLS, THREADS, RECORDS = 3 };

/* Only addresses: what the words hold is in the state. */
static struct shared {
	struct inbox box;
	unsigned int announced[SENDERS], tail[SENDERS];
	unsigned int record[SENDERS][RECORDS];
	unsigned int value; /* raised by the engine with the first record */
	/* Of sender 0, if it is another process. */
	unsigned int watched, again, taken;
	/* Of lent engines: commands of each sender that have ended; .lent of a device. */
	unsigned int done[SENDERS], count, naps;
	struct message message[2 * SENDERS]; /* of queues, then of waiters */
} shared;

enum {
	AT_LAST,
	AT_SLEEPING,
	AT_ANNOUNCED,
	AT_TAIL = AT_ANNOUNCED + SENDERS,
	AT_RECORD = AT_TAIL + SENDERS,
	AT_NEXT = AT_RECORD + SENDERS * RECORDS,
	AT_VALUE = AT_NEXT + 2 * SENDERS,
	AT_WATCHED,
	AT_AGAIN,
	AT_TAKEN,
	AT_DONE,
	AT_COUNT = AT_DONE + SENDERS,
	AT_NAPS,
	WORDS,
};

static const void *word(unsigned int at)
{
	if (at >= AT_VALUE)
		return (const unsigned int
				*[]){&shared.value, &shared.watched, &shared.again,
				     &shared.taken, &shared.done[0], &shared.done[1],
				     &shared.count, &shared.naps}[at - AT_VALUE];
	if (at >= AT_NEXT)
		return &shared.message[at - AT_NEXT].next;
	if (at >= AT_RECORD)
		return &shared.record[0][0] + (at - AT_RECORD);
	if (at >= AT_TAIL)
		return &shared.tail[at - AT_TAIL];
	if (at >= AT_ANNOUNCED)
		return &shared.announced[at - AT_ANNOUNCED];
	return at == AT_LAST ? (const void *)&shared.box.last : &shared.box.sleeping;
}

static uint8_t index_of(const void *p)
{
	for (uint8_t at = 0; at < WORDS; at++)
		if (word(at) == p)
			return at;
	abort();
}

static bool holds_messages(unsigned int at)
{
	return at == AT_LAST || (at >= AT_NEXT && at < AT_VALUE);
}

static uint8_t encode(unsigned int at, uintptr_t v)
{
	if (!holds_messages(at) || v == 0)
		return (uint8_t)v;
	return (uint8_t)(1 + ((struct message *)v -
			      shared.message)); /* NOLINT(*int-to-ptr) */
}

static uintptr_t decode(unsigned int at, uint8_t v)
{
	return !holds_messages(at) || v == 0 ? v : (uintptr_t)&shared.message[v - 1];
}

/* ---- a state ----------------------------------------------------------------------- */

enum { BUFFER = 12, HISTORY = 80 };

struct store {
	uint8_t at, value;
	bool release, locks; /* locks: of a read-modify-write */
};

struct thread {
	uint8_t round; /* a sender's: records so far */
	uint8_t phase; /* of lent engines: what it does in this round */
	uint8_t read[HISTORY];
	uint8_t reads;
	uint8_t made; /* stores of this round, buffered or in memory */
	uint8_t stores;
	struct store buffer[BUFFER];
	bool done;
};

struct state {
	uint8_t memory[WORDS];
	struct thread thread[THREADS];
	uint8_t locked[WORDS]; /* 1 + thread */
	/* Not for the threads' eyes. */
	uint8_t taken[SENDERS]; /* records, or plain messages */
	uint8_t began[SENDERS]; /* the same when the engine's round began */
	uint8_t in_box[2 * SENDERS];
	bool watched[SENDERS];  /* by the engine */
	bool watching[SENDERS]; /* the same when the engine's round began */
	bool token;             /* the eventfd is readable */
	bool bell;              /* it has been written, and not been told of */
	uint8_t rung;           /* the program's own */
	uint8_t timers;
	bool waiting, raised, told; /* the waiter, by the engine */
	/* Of a lent engine. */
	uint8_t engine;         /* 1 + the thread that is the engine; 0: none */
	uint8_t ended[SENDERS]; /* commands that the engine knows to have ended */
	bool waits[SENDERS], knows[SENDERS]; /* waiters registered, and told */
	uint8_t counted;                     /* .count, as the thread last saw it */
	bool naps;                           /* the thread's sleep has an end */
	bool parked;                         /* it sleeps on its futex */
	uint8_t slow;                        /* times that the device takes longer */
};

enum plant {
	NOTHING,
	NO_W3,           /* no fence before the announcement */
	NO_W3_LOOKS,     /* the same, and a look instead of an exchange when it is set */
	NO_W6,           /* no fence between message and look */
	NO_E2,           /* no fence between the sleep flag and the look */
	NO_E7,           /* no fence between announced = 0 and the look at tail */
	CLEARS_LATE,     /* announced = 0 after the look at tail */
	FLAG_LATE,       /* sleeping = 1 after the look into the box */
	NO_LOOK,         /* sleeps without one */
	NO_WAKE,         /* a sender does not wake */
	WAKE_BEFORE,     /* a sender looks at the flag before its message is in the box */
	TAIL_LATE,       /* the message first, then the tail */
	TAIL_PLAIN,      /* the tail is no release */
	NO_WAITER_FENCE, /* none between the waiter\'s message and its look */
	NO_WAITER_LOOK,  /* it sleeps without one */
	NO_V2,           /* a watch ends without a barrier in the senders */
	V2_FIRST,        /* the barrier comes before announced = 0 */
	NO_V3,           /* a watch ends without a last look */
	NO_V1,           /* the engine sleeps, and the queue stays announced as watched */
	NO_WATCH,        /* no look in the turns between */
	NO_R3,           /* no fence between tail and look in another process */
	NO_B2,           /* none between again and the look at the tail */
	NO_B2_AGAIN,     /* a bell that finds nothing does not raise again */
	NO_E3,           /* the engine does not raise it */
	AGAIN_FIRST,     /* it raises it before the message may be sent again */
	AGAIN_LATE,      /* it raises it after the look at the tail */
	/* Of lent engines. */
	NO_C4,     /* no fence after the engine is given back */
	NO_C5,     /* and no look into the box */
	NO_C6,     /* a command is owed to a thread that does not nap, and stays asleep */
	NO_RECALL, /* the engine is given back though its thread waits for it */
	NO_R1,     /* the thread ends its sleep though a caller is the engine */
	NO_LENT,   /* a sender takes the engine from a caller */
	NO_OWED,   /* a waiter does not look whether a command is owed */
	OWES_WAITED, /* a command is owed that is waited for */
	NO_HANDED,   /* the engine is handed over, and its thread not woken */
	LATE_HANDED, /* that thread is woken before it is the engine */
};

enum memory { TSO, ARM };

struct scenario {
	const char *name;
	uint8_t records[SENDERS]; /* that each publishes */
	bool plain;     /* sender 1 posts plain messages instead, one at a time */
	bool waits;     /* sender 1 waits */
	bool large;     /* not for planted errors: they are seen without */
	bool event;     /* the engine also looks at tail 0 by itself */
	bool watches;   /* the engine watches queues */
	bool far;       /* sender 0 is another process */
	bool lends;     /* senders may be the engine, and wait for their last record */
	bool leaves;    /* sender 0 does not wait */
	bool onlooker;  /* sender 1 sends nothing, and waits for the record of sender 0 */
	bool often;     /* who submits may hand the engine over whatever is left */
	uint8_t slow;   /* times that a poll finds nothing, though there is a command */
	uint8_t timers; /* times it wakes by itself */
};

/* ---- running a thread up to what has not happened yet ---------------------------- */

enum kind {
	LOAD,
	EXCHANGE,
	CAS,
	CHANGE,
	FENCE,
	FENCE_OF,
	WAKE,
	SLEEP,
	DRAIN,
	ANSWER,
	TOLD,
	RING,
	RUNG,
	PARK,
	GET,
	FETCH,
	CHOICE,
	NOTE
};
enum { BY_TOKEN = 1, BY_TIMER }; /* what SLEEP answers */

struct op {
	enum kind kind;
	uint8_t at, expected, value;
};

static enum plant plant;
static enum memory memory;
static const struct scenario *scenario;
static const char *wrong;

static jmp_buf stop;
static struct state *now; /* the state run in, and the thread that runs */
static struct thread *self;
static unsigned int replayed;
static unsigned int stores_seen; /* of this round */
static uint8_t seen[SENDERS];    /* records the engine has taken */
static struct op next;

/* The value of an operation that has happened; else it is what comes next. */
static uint8_t happened(enum kind kind, uint8_t at, uint8_t expected, uint8_t value)
{
	if (replayed < self->reads)
		return self->read[replayed++];
	next = (struct op){kind, at, expected, value};
	longjmp(stop, 1);
}

static uintptr_t on_load(const void *p)
{
	uint8_t at = index_of(p);

	return decode(at, happened(LOAD, at, 0, 0));
}

/* Where engines are lent there are many states.  Accesses to what one thread at a time
 * owns are then not steps of their own; the other scenarios have them. */
static uintptr_t on_get(const void *p)
{
	uint8_t at = index_of(p);

	return decode(at, happened(scenario->lends ? GET : LOAD, at, 0, 0));
}

static uintptr_t on_exchange(const void *p, uintptr_t v)
{
	uint8_t at = index_of(p);

	return decode(at, happened(EXCHANGE, at, 0, encode(at, v)));
}

static bool on_cas(const void *p, void *expected, uintptr_t v)
{
	uint8_t at = index_of(p), was, is;
	struct message **e = expected;

	was = encode(at, (uintptr_t)*e);
	is = happened(CAS, at, was, encode(at, v));
	*e = (struct message *)decode(at, is); /* NOLINT(*int-to-ptr) */
	return is == was;
}

static bool on_change(const void *p, uintptr_t e, uintptr_t v)
{
	uint8_t at = index_of(p);

	return happened(CHANGE, at, encode(at, e), encode(at, v)) == encode(at, e);
}

/* Into the buffer at once: nobody else sees that. */
static void on_store(const void *p, uintptr_t v, bool release)
{
	uint8_t at = index_of(p);

	if (stores_seen++ < self->made)
		return;
	self->made++;
	/* As on_get: what one thread at a time owns. */
	if (scenario->lends && !release) {
		now->memory[at] = encode(at, v);
		return;
	}
	if (self->stores == BUFFER)
		abort();
	if (plant == TAIL_PLAIN && at >= AT_TAIL && at < AT_RECORD)
		release = false;
	self->buffer[self->stores++] = (struct store){at, encode(at, v), release, false};
}

static bool left_out(const char *where)
{
	if (strcmp(where, "announce_first") == 0)
		return memory == TSO || plant == NO_W3 || plant == NO_W3_LOOKS;
	if (strcmp(where, "inbox_put") == 0)
		return memory == TSO || plant == NO_W6;
	if (strcmp(where, "inbox_may_sleep") == 0)
		return plant == NO_E2;
	if (strcmp(where, "announce_again") == 0)
		return plant == NO_E7;
	if (strcmp(where, "bell_is_watched") == 0)
		return plant == NO_R3;
	if (strcmp(where, "bell_answered") == 0)
		return plant == NO_B2;
	if (strcmp(where, "inbox_return") == 0)
		return plant == NO_C4;
	if (strcmp(where, "waits") == 0 || strcmp(where, "waits_quietly") == 0)
		return memory == TSO || plant == NO_WAITER_FENCE;
	abort(); /* a fence of which this test knows nothing */
}

static void on_fence(const char *where)
{
	if (!left_out(where))
		(void)happened(FENCE, 0, 0, 0);
}

/* ---- the threads ------------------------------------------------------------------- */

enum note {
	TAKES_RECORD,
	TAKES_LETTER,
	LETTER_OUT,
	ADDS_WAITER,
	RAISES,
	WATCHES,
	UNWATCHES,
	RINGS,
	ENTERS,
	LEAVES,
	ENDS,
	REGISTERS,
	COUNTS,
	NAPS,
};

static void note(enum note what, unsigned int sender, uint8_t value)
{
	(void)happened(NOTE, (uint8_t)what, (uint8_t)sender, value);
}

static bool announces(WAKE_WORD *announced)
{
	if (plant == NO_W3_LOOKS && WAKE_LOAD(announced) != 0)
		return false;
	return announce_first(announced);
}

static bool posts(struct message *l)
{
	bool sleeps;

	if (plant != WAKE_BEFORE)
		return inbox_put(&shared.box, l);
	sleeps = WAKE_LOAD(&shared.box.sleeping) != 0;
	(void)inbox_put(&shared.box, l);
	return sleeps;
}

/* As api/wait.c: engine_post_quietly, full barrier, look, sleep. */
static void waits(struct message *l)
{
	(void)inbox_add(&shared.box, l);
	WAKE_FENCE();
	if (plant == NO_WAITER_LOOK || WAKE_LOAD(&shared.value) == 0)
		(void)happened(TOLD, 0, 0, 0);
}

/* As publish in far/submit.c. */
static void other_process(unsigned int round)
{
	unsigned int rung = now->rung;

	WAKE_SET(&shared.record[0][round], 1);
	WAKE_STORE(&shared.tail[0], round + 1);
	if (bell_is_watched(&shared.watched) || !bell_must_ring(&shared.again, &rung))
		return;
	(void)happened(RING, 0, 0, 0);
	/* Last: when the round is run again, it has been. */
	note(RINGS, 0, (uint8_t)rung);
}

/* As inlet_rung in api/inlet.c. */
static void bells(void)
{
	(void)happened(RUNG, 0, 0, 0);
	if (WAKE_LOAD(&shared.tail[0]) == WAKE_LOAD(&shared.taken)) {
		if (plant != NO_B2_AGAIN)
			bell_answered(&shared.again);
		if (WAKE_LOAD(&shared.tail[0]) == WAKE_LOAD(&shared.taken))
			return;
	}
	if (announces(&shared.announced[0]) && posts(&shared.message[0]))
		(void)happened(WAKE, 0, 0, 0);
}

static void sender(unsigned int i, unsigned int round)
{
	struct message *l = &shared.message[i];
	bool plain = scenario->plain && i == 1;

	if (scenario->waits && i == 1) {
		waits(l);
		return;
	}
	if (scenario->far && i == 0) {
		other_process(round);
		return;
	}
	/* Its message is free again. */
	if (plain && round > 0)
		(void)happened(ANSWER, 0, (uint8_t)round, 0);
	if (!plain) {
		WAKE_SET(&shared.record[i][round], 1);
		if (plant != TAIL_LATE)
			WAKE_STORE(&shared.tail[i], round + 1);
	}
	if ((plain || announces(&shared.announced[i])) && posts(l) && plant != NO_WAKE)
		(void)happened(WAKE, 0, 0, 0);
	if (!plain && plant == TAIL_LATE)
		WAKE_STORE(&shared.tail[i], round + 1);
}

static void looks(unsigned int i)
{
	unsigned int tail = WAKE_LOAD(&shared.tail[i]);

	for (; seen[i] < tail; seen[i]++) {
		note(TAKES_RECORD, i, (uint8_t)WAKE_GET(&shared.record[i][seen[i]]));
		if (!scenario->waits)
			continue;
		WAKE_STORE(&shared.value, 1);
		note(RAISES, i, 0);
	}
	if (scenario->far && i == 0)
		WAKE_STORE(&shared.taken, tail);
}

/* As inlet_message in api/inlet.c. */
static void reads_inlet(void)
{
	if (scenario->watches && !now->watching[0]) {
		announce_watch(&shared.watched);
		note(WATCHES, 0, 0);
	}
	if (plant == AGAIN_FIRST)
		bell_answered(&shared.again);
	announce_again(&shared.announced[0]);
	if (plant != NO_E3 && plant != AGAIN_FIRST && plant != AGAIN_LATE)
		bell_answered(&shared.again);
	looks(0);
	if (plant == AGAIN_LATE)
		bell_answered(&shared.again);
}

static void reads_message(struct message *l)
{
	unsigned int i = (unsigned int)(l - shared.message);

	note(LETTER_OUT, i, 0);
	if (scenario->waits && i == 1) {
		note(ADDS_WAITER, i, 0);
		return;
	}
	if (scenario->plain && i == 1) {
		/* The answer (engine.c) is a read-modify-write. */
		(void)happened(FENCE, 0, 0, 0);
		note(TAKES_LETTER, i, 0);
		return;
	}
	if (scenario->far && i == 0) {
		reads_inlet();
		return;
	}
	if (scenario->watches) {
		announce_watch(&shared.announced[i]);
		note(WATCHES, i, 0);
		looks(i);
		return;
	}
	if (plant == CLEARS_LATE) {
		looks(i);
		announce_again(&shared.announced[i]);
		return;
	}
	announce_again(&shared.announced[i]);
	looks(i);
}

/* As watch_end: membarrier(2) makes each thread pass a full barrier, at any time between
 * its call and its return.  Return whether the engine found records. */
static bool ends_watches(void)
{
	bool found = false;

	for (unsigned int i = 0; i < SENDERS && plant == V2_FIRST; i++)
		(void)happened(FENCE_OF, 0, (uint8_t)i, 0);
	for (unsigned int i = 0; i < SENDERS; i++)
		if (now->watching[i] && plant != NO_V1)
			announce_unwatch(scenario->far && i == 0 ? &shared.watched
								 : &shared.announced[i]);
	(void)happened(FENCE, 0, 0, 0);
	/* Another process passes barriers of its own. */
	for (unsigned int i = 0; i < SENDERS && plant != NO_V2 && plant != V2_FIRST; i++)
		if (!scenario->far || i != 0)
			(void)happened(FENCE_OF, 0, (uint8_t)i, 0);
	for (unsigned int i = 0; i < SENDERS; i++) {
		unsigned int before = seen[i];

		if (!now->watching[i])
			continue;
		if (plant != NO_V3)
			looks(i);
		found |= seen[i] != before;
		note(UNWATCHES, i, 0);
	}
	return found;
}

static bool may_sleep(void)
{
	bool empty;

	if (plant != FLAG_LATE)
		return inbox_may_sleep(&shared.box) || plant == NO_LOOK;
	empty = inbox_empty(&shared.box);
	(void)inbox_may_sleep(&shared.box);
	return empty;
}

/* A turn (thread.c). */
static void engine(void)
{
	struct message *l;
	uint8_t woken = 0;

	if (scenario->event)
		looks(0);
	for (unsigned int i = 0; i < SENDERS && plant != NO_WATCH; i++)
		if (now->watching[i])
			looks(i);
	if (!inbox_empty(&shared.box)) {
		l = inbox_take(&shared.box);
		while (l != NULL) {
			struct message *behind = WAKE_GET(&l->next);

			reads_message(l);
			l = behind;
		}
		return;
	}
	if ((now->watching[0] || now->watching[1]) && ends_watches())
		return;
	if (may_sleep())
		woken = happened(SLEEP, 0, 0, 0);
	inbox_awake(&shared.box);
	if (woken == BY_TOKEN)
		(void)happened(DRAIN, 0, 0, 0);
}

/* ---- lent engines ------------------------------------------------------------------- */

/* What only the engine knows. */
enum fetch { TAKEN, ENDED, IN_FLIGHT, WAITED_FOR, COUNTED, NAPPING };

static uint8_t fetch(enum fetch what, unsigned int sender)
{
	return happened(FETCH, (uint8_t)what, (uint8_t)sender, 0);
}

static unsigned int in_flight(void)
{
	return fetch(IN_FLIGHT, 0);
}

static void reads_letter(const struct message *l)
{
	unsigned int i = (unsigned int)(l - shared.message);

	note(LETTER_OUT, i, 0);
	if (i >= SENDERS) {
		note(REGISTERS, i - SENDERS, 0);
		return;
	}
	if (scenario->plain && i == 1)
		(void)happened(FENCE, 0, 0, 0);
	note(TAKES_LETTER, i, 0);
}

/* A turn, of whoever is the engine.  Return whether it did anything. */
static bool turns(void)
{
	struct message *l;
	bool did = false;

	for (unsigned int i = 0; i < SENDERS; i++) {
		unsigned int taken;

		if (scenario->plain && i == 1)
			continue;
		taken = fetch(TAKEN, i);
		if (taken == fetch(ENDED, i) || happened(CHOICE, 0, 0, 0) != 0)
			continue;
		WAKE_STORE(&shared.done[i], taken);
		note(ENDS, i, 0);
		did = true;
	}
	for (l = inbox_take(&shared.box); l != NULL;) {
		struct message *behind = WAKE_GET(&l->next);

		reads_letter(l);
		l = behind;
		did = true;
	}
	return did;
}

/* As engine_borrow. */
static bool borrows(void)
{
	if (!inbox_borrow(&shared.box))
		return false;
	note(ENTERS, 0, 0);
	WAKE_SET(&shared.count, WAKE_GET(&shared.count) + 1);
	return true;
}

static unsigned int returns(unsigned int to)
{
	if (plant == NO_C5) {
		if (WAKE_CHANGE(&shared.box.sleeping, ENGINE_LENT, to))
			return RETURNED;
		inbox_hand_over(&shared.box);
		return RETURNED_WAKES;
	}
	if (plant == NO_RECALL) {
		WAKE_STORE(&shared.box.sleeping, to);
		return RETURNED;
	}
	return inbox_return(&shared.box, to);
}

/* As what_is_left in command/lend.c: more than one command, or one that is waited for. */
static bool leaves_work(void)
{
	if (in_flight() > 1)
		return true;
	return plant != OWES_WAITED && fetch(WAITED_FOR, 0) != 0;
}

/* As engine_hand_over. */
static void hands_over(void)
{
	if (plant == LATE_HANDED)
		(void)happened(WAKE, 0, 0, 0);
	inbox_hand_over(&shared.box);
	if (plant != NO_HANDED && plant != LATE_HANDED)
		(void)happened(WAKE, 0, 0, 0);
}

/* As lend_end, or lend_post if submits, engine_return and engine_hand_over.  Return false
 * if it is still the engine. */
static bool gives_back(bool submits)
{
	unsigned int owed = in_flight(), how;
	/* comes_often: it may be so at any time. */
	bool work = (submits && scenario->often && happened(CHOICE, 0, 0, 0) != 0) ||
		    leaves_work();

	note(LEAVES, 0, 0);
	if (work) {
		hands_over();
		return true;
	}
	how = returns(owed != 0 ? ENGINE_OWED : ENGINE_ASLEEP);
	if (how == RETURNED_NOT)
		note(ENTERS, 0, 0);
	else if (how == RETURNED_WAKES ||
		 (owed != 0 && plant != NO_C6 && WAKE_LOAD(&shared.naps) == 0))
		(void)happened(WAKE, 0, 0, 0);
	return how != RETURNED_NOT;
}

static bool rouses(struct message *l)
{
	if (plant != NO_LENT)
		return inbox_put(&shared.box, l);
	(void)inbox_add(&shared.box, l);
	(void)happened(FENCE, 0, 0, 0);
	return WAKE_LOAD(&shared.box.sleeping) != ENGINE_AWAKE &&
	       WAKE_EXCHANGE(&shared.box.sleeping, ENGINE_AWAKE) != ENGINE_AWAKE;
}

/* What a thread does next.  To be forgotten with each phase keeps states few. */
enum phase {
	TURN,  /* the engine's thread: a turn; a sender: submit or wait, from the start */
	HOLDS, /* a sender is the engine, and takes a turn */
	GIVES, /* and stops */
	QUIET, /* a waiter registers, and sleeps */
	FALLS_ASLEEP,
	SLEEPING,
	WAKES_UP,
	RECALLED,
};

/* Whose record sender i waits for. */
static unsigned int waits_for(unsigned int i)
{
	return scenario->onlooker ? 0 : i;
}

/* The end of wait_real in api/wait.c: engine_post_quietly, sleep_for_points. */
static void waits_quietly(unsigned int i, unsigned int of, unsigned int count)
{
	(void)inbox_add(&shared.box, &shared.message[SENDERS + i]);
	WAKE_FENCE();
	if (plant != NO_OWED && WAKE_LOAD(&shared.box.sleeping) == ENGINE_OWED &&
	    inbox_rouse(&shared.box))
		(void)happened(WAKE, 0, 0, 0);
	if (WAKE_LOAD(&shared.done[of]) != count)
		(void)happened(TOLD, (uint8_t)i, 0, 0);
}

/* As hal_submit. */
static enum phase submits(unsigned int i, unsigned int round)
{
	struct message *l = &shared.message[i];

	if (round > 0)
		(void)happened(ANSWER, 0, (uint8_t)round, 0);
	if (!(scenario->plain && i == 1) && borrows()) {
		(void)inbox_add(&shared.box, l);
		return HOLDS;
	}
	if (rouses(l))
		(void)happened(WAKE, 0, 0, 0);
	return TURN;
}

/* Submit records, then wait for the last, or for that of another sender.  Return the next
 * phase; TURN after a record or the wait. */
static enum phase caller(unsigned int i, unsigned int round, enum phase phase)
{
	const unsigned int of = waits_for(i), count = scenario->records[of];
	const bool waits = round == scenario->records[i];

	switch (phase) {
	case TURN:
		if (!waits)
			return submits(i, round);
		if (WAKE_LOAD(&shared.done[of]) == count)
			return TURN;
		return borrows() ? HOLDS : QUIET;
	case HOLDS:
		(void)turns();
		return GIVES;
	case GIVES:
		if (!gives_back(!waits))
			return HOLDS;
		return waits ? QUIET : TURN;
	default:
		waits_quietly(i, of, count);
		return TURN;
	}
}

/* The rounds of sender i: one for each record, and one for a wait. */
static unsigned int rounds_of(unsigned int i)
{
	const bool plain = scenario->plain && i == 1, leaves = scenario->leaves && i == 0;

	const bool none = scenario->records[i] == 0 && !(scenario->onlooker && i == 1);

	return scenario->records[i] +
	       (scenario->lends && !plain && !leaves && !none ? 1u : 0u);
}

/* As callers_came and nap_until in loop/thread.c. */
static void begins_nap(void)
{
	unsigned int count = WAKE_LOAD(&shared.count);

	if (count == fetch(COUNTED, 0))
		return;
	note(COUNTS, 0, (uint8_t)count);
	WAKE_STORE(&shared.naps, 1);
	note(NAPS, 0, 1);
}

static enum phase falls_asleep(void)
{
	WAKE_STORE(&shared.naps, 0);
	note(NAPS, 0, 0);
	begins_nap();
	note(LEAVES, 0, 0);
	return inbox_may_sleep(&shared.box) ? SLEEPING : WAKES_UP;
}

static enum phase sleeps_lent(void)
{
	unsigned int state = WAKE_LOAD(&shared.box.sleeping);

	if (state == ENGINE_AWAKE)
		return WAKES_UP;
	if (fetch(NAPPING, 0) == 0)
		begins_nap();
	if (happened(PARK, AT_SLEEPING, (uint8_t)state, 0) != 0 &&
	    happened(SLEEP, 0, 0, 0) == BY_TIMER)
		return WAKES_UP;
	return SLEEPING;
}

/* A turn of the engine's thread, or a step of its sleep (loop/thread.c).  Return the next
 * phase. */
static enum phase engine_lends(enum phase phase)
{
	switch (phase) {
	case TURN:
		return turns() || in_flight() != 0 ? TURN : FALLS_ASLEEP;
	case FALLS_ASLEEP:
		return falls_asleep();
	case SLEEPING:
		return sleeps_lent();
	case RECALLED:
		if (happened(PARK, AT_SLEEPING, ENGINE_RECALLED, 0) != 0)
			(void)happened(SLEEP, 0, 0, 1);
		return WAKES_UP;
	default:
		if (plant == NO_R1)
			WAKE_STORE(&shared.box.sleeping, ENGINE_AWAKE);
		if (!inbox_awake(&shared.box))
			return RECALLED;
		note(ENTERS, 0, 0);
		return TURN;
	}
}

/* ---- one step ---------------------------------------------------------------------- */

static void is_wrong(const char *what)
{
	if (wrong == NULL)
		wrong = what;
}

static void heard(struct thread *t, uint8_t value)
{
	if (t->reads == HISTORY)
		abort();
	t->read[t->reads++] = value;
}

/* Return whether the record that is waited for of sender i has ended. */
static bool is_reached(const struct state *s, unsigned int i)
{
	return s->ended[i] == scenario->records[i];
}

static void take_note(struct state *s, const struct op *op)
{
	unsigned int i = op->expected;

	switch (op->at) {
	case TAKES_RECORD:
		s->taken[i]++;
		if (op->value == 0)
			is_wrong("a record is read before it was written");
		break;
	case TAKES_LETTER:
		s->taken[i]++;
		break;
	/* The engine knows its own value. */
	case ADDS_WAITER:
		s->waiting = true;
		s->told = s->told || s->raised;
		break;
	case RAISES:
		s->raised = true;
		s->told = s->told || s->waiting;
		break;
	case RINGS:
		s->rung = op->value;
		break;
	case ENTERS:
		if (s->engine != 0)
			is_wrong("two threads are the engine");
		s->engine = (uint8_t)(1 + (self - s->thread));
		break;
	case LEAVES:
		s->engine = 0;
		break;
	case ENDS:
		s->ended[i] = s->taken[i];
		for (unsigned int w = 0; w < SENDERS; w++)
			s->knows[w] |= s->waits[w] && is_reached(s, waits_for(w));
		break;
	case REGISTERS:
		s->waits[i] = true;
		s->knows[i] |= is_reached(s, waits_for(i));
		break;
	case COUNTS:
		s->counted = op->value;
		break;
	case NAPS:
		s->naps = op->value != 0;
		break;

	case WATCHES:
	case UNWATCHES:
		s->watched[i] = op->at == WATCHES;
		break;
	default:
		if (s->in_box[i]-- == 0)
			is_wrong("a message is taken twice");
		break;
	}
}

/* True: its round is over. */
static bool run(struct state *s, unsigned int t)
{
	now = s;
	self = &s->thread[t];
	replayed = 0;
	stores_seen = 0;
	memcpy(seen, s->began, sizeof(seen));
	if (setjmp(stop) != 0)
		return false;
	if (scenario->lends)
		self->phase =
			(uint8_t)(t == ENGINE ? engine_lends(self->phase)
					      : caller(t, self->round, self->phase));
	else if (t == ENGINE)
		engine();
	else if (t == BELLS)
		bells();
	else
		sender(t, self->round);
	return true;
}

static void engine_round_ends(struct state *s)
{
	memcpy(s->began, s->taken, sizeof(s->began));
	memcpy(s->watching, s->watched, sizeof(s->watching));
}

static uint8_t fetched(const struct state *s, enum fetch what, unsigned int i)
{
	unsigned int n = 0;

	switch (what) {
	case TAKEN:
		return s->taken[i];
	case ENDED:
		return s->ended[i];
	case IN_FLIGHT:
		for (i = 0; i < SENDERS; i++)
			if (!(scenario->plain && i == 1))
				n += (unsigned int)(s->taken[i] - s->ended[i]);
		return (uint8_t)n;
	case WAITED_FOR:
		for (i = 0; i < SENDERS; i++)
			if (s->waits[i] && !is_reached(s, waits_for(i)) &&
			    s->taken[waits_for(i)] != s->ended[waits_for(i)])
				n++;
		return n != 0;
	case COUNTED:
		return s->counted;
	default:
		return s->naps;
	}
}

static uint8_t loaded(const struct state *s, const struct thread *t, uint8_t at)
{
	for (unsigned int i = t->stores; i-- > 0;)
		if (t->buffer[i].at == at)
			return t->buffer[i].value;
	return s->memory[at];
}

/* Up to where the others matter; false: the thread has ended. */
static bool pending(struct state *s, unsigned int i, struct op *op)
{
	struct thread *t = &s->thread[i];

	while (!t->done && wrong == NULL) {
		if (run(s, i)) {
			t->reads = 0;
			t->made = 0;
			memset(t->read, 0, sizeof(t->read));
			if (i == ENGINE && !scenario->lends)
				engine_round_ends(s);
			else if (i < SENDERS && t->phase == 0)
				t->done = ++t->round == rounds_of(i);
			continue;
		}
		*op = next;
		if (op->kind == FETCH) {
			heard(t, fetched(s, (enum fetch)op->at, op->expected));
			continue;
		}
		if (op->kind == GET) {
			heard(t, loaded(s, t, op->at));
			continue;
		}
		if (op->kind == NOTE)
			take_note(s, op);
		else if (op->kind == CHOICE && s->slow == 0)
			; /* there is none */
		else if (op->kind != FENCE || t->stores > 0)
			return true;
		heard(t, 0);
	}
	return false;
}

static bool buffered(const struct thread *t, uint8_t at, unsigned int before)
{
	for (unsigned int i = 0; i < before; i++)
		if (t->buffer[i].at == at)
			return true;
	return false;
}

static bool may(const struct state *s, unsigned int i, const struct op *op)
{
	const struct thread *t = &s->thread[i];

	switch (op->kind) {
	case EXCHANGE:
	case CAS:
	case CHANGE:
		if (memory == TSO)
			return t->stores == 0;
		return s->locked[op->at] == 0 && !buffered(t, op->at, t->stores);
	case FENCE:
		return false; /* until all it has is in memory */
	case FENCE_OF:
		return s->thread[op->expected].stores == 0;
	case SLEEP:
		return scenario->lends ? !s->parked : s->token;
	case ANSWER:
		return s->taken[i] == op->expected;
	case TOLD:
		return scenario->lends ? s->knows[op->at] : s->told;
	case PARK:
		return t->stores == 0; /* the kernel passes a barrier */
	case WAKE:
		return !scenario->lends || t->stores == 0; /* so it does */
	case RUNG:
		return s->bell;
	default:
		return true;
	}
}

static void step_rmw(struct state *s, unsigned int i, const struct op *op)
{
	struct thread *t = &s->thread[i];
	uint8_t was = s->memory[op->at];

	heard(t, was);
	if (op->kind != EXCHANGE && was != op->expected)
		return;
	if (op->kind == CAS && s->in_box[op->value - 1]++ != 0)
		is_wrong("a message is in the box twice");
	if (memory == TSO) {
		s->memory[op->at] = op->value;
		return;
	}
	if (t->stores == BUFFER)
		abort();
	t->buffer[t->stores++] = (struct store){op->at, op->value, true, true};
	s->locked[op->at] = (uint8_t)(1 + i);
}

static void step(struct state *s, unsigned int i, const struct op *op)
{
	struct thread *t = &s->thread[i];

	switch (op->kind) {
	case LOAD:
		heard(t, loaded(s, t, op->at));
		break;
	case EXCHANGE:
	case CAS:
	case CHANGE:
		step_rmw(s, i, op);
		break;
	case WAKE:
		s->token = true;
		s->parked = false;
		heard(t, 0);
		break;
	case PARK:
		s->parked = s->memory[op->at] == op->expected;
		heard(t, s->parked);
		break;

	case SLEEP:
		heard(t, BY_TOKEN);
		break;
	case RING:
		s->bell = true;
		heard(t, 0);
		break;
	case RUNG:
		s->bell = false;
		heard(t, 0);
		break;
	case DRAIN:
		s->token = false;
		heard(t, 0);
		break;
	default:
		heard(t, 0);
		break;
	}
}

static bool may_flush(const struct state *s, unsigned int i, unsigned int n)
{
	const struct thread *t = &s->thread[i];
	const struct store *b = &t->buffer[n];

	if (n > 0 && (memory == TSO || b->release || buffered(t, b->at, n)))
		return false;
	return b->locks || s->locked[b->at] == 0;
}

static void flush(struct state *s, unsigned int i, unsigned int n)
{
	struct thread *t = &s->thread[i];

	s->memory[t->buffer[n].at] = t->buffer[n].value;
	if (t->buffer[n].locks)
		s->locked[t->buffer[n].at] = 0;
	t->stores--;
	memmove(&t->buffer[n], &t->buffer[n + 1], (t->stores - n) * sizeof(t->buffer[0]));
	memset(&t->buffer[t->stores], 0, sizeof(t->buffer[0]));
}

/* ---- all states -------------------------------------------------------------------- */

static uint64_t *table; /* of what has been seen, by 64 bits of it; 0: free */
static size_t table_size, states, violations;
static const char *first_wrong;

static uint64_t digest(const struct state *s)
{
	const unsigned char *p = (const unsigned char *)s;
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < sizeof(*s); i += sizeof(uint64_t)) {
		size_t left = sizeof(*s) - i;
		uint64_t word = 0;

		memcpy(&word, p + i, left < sizeof(word) ? left : sizeof(word));
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 29;
	}
	return h | 1;
}

static void *must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static void table_grow(void)
{
	uint64_t *old = table;
	size_t size = table_size;

	table_size = size != 0 ? size * 4 : 1u << 16;
	table = must(calloc(table_size, sizeof(*table)));
	for (size_t i = 0; i < size; i++) {
		size_t at = old[i] >> 1 & (table_size - 1);

		if (old[i] == 0)
			continue;
		while (table[at] != 0)
			at = (at + 1) & (table_size - 1);
		table[at] = old[i];
	}
	free(old);
}

/* True: for the first time. */
static bool is_new(const struct state *s)
{
	uint64_t h = digest(s);
	size_t at;

	if (states * 2 >= table_size)
		table_grow();
	for (at = h >> 1 & (table_size - 1); table[at] != 0;
	     at = (at + 1) & (table_size - 1))
		if (table[at] == h)
			return false;
	table[at] = h;
	states++;
	return true;
}

/* Nobody goes on by himself. */
static void judge(const struct state *s, const bool *alive, const struct op *ops)
{
	if (!alive[ENGINE] || ops[ENGINE].kind != SLEEP) {
		is_wrong("nobody can go on, and the engine does not sleep");
		return;
	}
	for (unsigned int i = 0; i < SENDERS && scenario->lends; i++) {
		if (!s->thread[i].done)
			is_wrong("who waits is not told");
		if (!(scenario->plain && i == 1) && s->ended[i] != s->taken[i])
			is_wrong("nobody looks after a command");
	}
	for (unsigned int i = 0; i < SENDERS; i++) {
		if (scenario->waits && i == 1) {
			/* Its message may lie there when it has seen for itself. */
			if (!s->thread[i].done)
				is_wrong("who waits is not told");
			continue;
		}
		if (s->taken[i] != scenario->records[i])
			is_wrong("the engine sleeps though something has not been taken");
		if (s->taken[i] > scenario->records[i])
			is_wrong("something is taken twice");
		if (s->in_box[i] != 0)
			is_wrong("the engine sleeps though a message is in the box");
	}
}

static void explore(const struct state *from);

static void explore_steps(const struct state *from, const bool *alive,
			  const struct op *ops)
{
	const bool naps = alive[ENGINE] && ops[ENGINE].kind == SLEEP &&
			  ops[ENGINE].value == 0 && scenario->lends;
	bool stands = true;

	for (unsigned int i = 0; i < THREADS; i++) {
		if (alive[i] && ops[i].kind == CHOICE && from->slow > 0) {
			struct state s = *from;

			s.slow--;
			heard(&s.thread[i], 1);
			explore(&s);
		}
		if (alive[i] && may(from, i, &ops[i])) {
			struct state s = *from;

			stands = false;
			step(&s, i, &ops[i]);
			explore(&s);
		}
		for (unsigned int n = 0; n < from->thread[i].stores; n++) {
			struct state s;

			if (!may_flush(from, i, n))
				continue;
			s = *from;
			stands = false;
			flush(&s, i, n);
			explore(&s);
		}
	}
	/* A nap ends by itself. */
	if (stands && !(naps && from->naps))
		judge(from, alive, ops);
	if ((from->timers > 0 && alive[ENGINE] && ops[ENGINE].kind == SLEEP &&
	     ops[ENGINE].value == 0) ||
	    (naps && from->naps)) {
		struct state s = *from;

		if (!s.naps)
			s.timers--;
		s.parked = false;
		heard(&s.thread[ENGINE], BY_TIMER);
		explore(&s);
	}
}

static void explore(const struct state *from)
{
	bool alive[THREADS] = {false};
	struct op ops[THREADS] = {{LOAD, 0, 0, 0}};
	struct state s = *from;

	for (unsigned int i = 0; i < THREADS && wrong == NULL; i++)
		alive[i] = pending(&s, i, &ops[i]);
	if (wrong == NULL && is_new(&s))
		explore_steps(&s, alive, ops);
	if (wrong != NULL) {
		violations++;
		if (first_wrong == NULL)
			first_wrong = wrong;
		wrong = NULL;
	}
}

static void explore_all(const struct scenario *sc, enum memory m, enum plant p)
{
	struct state s;

	memset(&s, 0, sizeof(s));
	scenario = sc;
	memory = m;
	plant = p;
	s.timers = sc->timers;
	s.slow = sc->slow;
	s.engine = sc->lends ? 1 + ENGINE : 0;
	for (unsigned int i = 0; i < SENDERS; i++)
		s.thread[i].done = rounds_of(i) == 0;
	s.thread[BELLS].done = !sc->far;
	s.rung = UINT8_MAX;
	free(table);
	table = NULL;
	table_size = 0;
	states = 0;
	violations = 0;
	first_wrong = NULL;
	explore(&s);
}

/* ---- what is explored -------------------------------------------------------------- */

static const struct scenario scenarios[] = {
	{.name = "one sender, three records", .records = {3, 0}, .timers = 1},
	{.name = "two senders, one record each",
	 .records = {1, 1},
	 .event = true,
	 .timers = 1},
	{.name = "two senders, two records and one", .records = {2, 1}, .large = true},
	{.name = "records and plain messages", .records = {1, 2}, .plain = true},
	{.name = "a record that is waited for",
	 .records = {1, 1},
	 .waits = true,
	 .timers = 1},
	{.name = "records of which one is waited for",
	 .records = {2, 1},
	 .waits = true,
	 .large = true},
	{.name = "one watched sender, three records",
	 .records = {3, 0},
	 .watches = true,
	 .timers = 1},
	{.name = "two watched senders, two records and one",
	 .records = {2, 1},
	 .watches = true,
	 .large = true},
	{.name = "a watched sender and plain messages",
	 .records = {2, 1},
	 .plain = true,
	 .watches = true},
	{.name = "another process, two records",
	 .records = {2, 0},
	 .far = true,
	 .timers = 1},
	{.name = "another process, three records, and an event",
	 .records = {3, 0},
	 .far = true,
	 .event = true,
	 .large = true},
	{.name = "another process, watched",
	 .records = {3, 0},
	 .far = true,
	 .watches = true,
	 .timers = 1},
	{.name = "another process, an event",
	 .records = {2, 0},
	 .far = true,
	 .event = true,
	 .timers = 1},
	{.name = "another process, watched, and a sender beside",
	 .records = {2, 1},
	 .far = true,
	 .watches = true,
	 .large = true},
	{.name = "a caller, two records", .records = {2, 0}, .lends = true, .timers = 1},
	{.name = "a caller who leaves, one record",
	 .records = {1, 0},
	 .lends = true,
	 .leaves = true,
	 .slow = 1},
	{.name = "a caller who leaves, and who waits for him",
	 .records = {1, 0},
	 .lends = true,
	 .leaves = true,
	 .onlooker = true,
	 .large = true},
	{.name = "a caller who leaves, and a plain message",
	 .records = {1, 1},
	 .plain = true,
	 .lends = true,
	 .leaves = true},
	{.name = "a caller who comes often, two records",
	 .records = {2, 0},
	 .lends = true,
	 .often = true,
	 .slow = 1},
	{.name = "a caller who comes often and leaves, and a plain message",
	 .records = {1, 1},
	 .plain = true,
	 .lends = true,
	 .leaves = true,
	 .often = true,
	 .slow = 1},
};

static const char *const memories[] = {"tso", "arm"};

static const struct planted {
	enum plant plant;
	const char *name;
	bool harmless[2]; /* by memory */
	const char *why;
} planted[] = {
	{NO_W3,
	 "no fence in W3",
	 {true, false},
	 "a read-modify-write is the barrier on x86; it is not compiled there"},
	{NO_W3_LOOKS,
	 "a look instead of an exchange, whoever announced it",
	 {false, false},
	 NULL},
	{NO_W6,
	 "no fence in W6",
	 {true, false},
	 "a read-modify-write is the barrier on x86; it is not compiled there"},
	{NO_E2, "no fence in E2", {false, false}, NULL},
	{NO_E7, "no fence in E7", {false, false}, NULL},
	{CLEARS_LATE, "announced cleared after the look", {false, false}, NULL},
	{FLAG_LATE, "the sleep flag set after the look", {false, false}, NULL},
	{NO_LOOK, "no look before the sleep", {false, false}, NULL},
	{NO_WAKE, "a sender does not wake", {false, false}, NULL},
	{WAKE_BEFORE,
	 "the flag looked at before the message is in",
	 {false, false},
	 NULL},
	{TAIL_LATE, "the message before the tail", {false, false}, NULL},
	{TAIL_PLAIN,
	 "the tail is no release",
	 {true, false},
	 "x86 keeps stores in order"},
	{NO_WAITER_FENCE,
	 "no fence between a waiter's message and its look",
	 {true, false},
	 "a read-modify-write is the barrier on x86; it costs an instruction there"},
	{NO_WAITER_LOOK, "a waiter sleeps without a look", {false, false}, NULL},
	{NO_V1, "the end of a watch does not clear announced", {false, false}, NULL},
	{NO_V2, "no barrier in the senders at the end of a watch", {false, false}, NULL},
	{V2_FIRST, "that barrier before announced is cleared", {false, false}, NULL},
	{NO_V3, "no last look at the end of a watch", {false, false}, NULL},
	{NO_WATCH,
	 "no look at a watched tail in a turn",
	 {true, true},
	 "the look at the end of the watch takes what has come; it only comes later"},
	{NO_R3, "no fence in R3", {false, false}, NULL},
	{NO_B2,
	 "no fence in B2",
	 {true, false},
	 "a read-modify-write is the barrier on x86; it costs an instruction there"},
	{NO_B2_AGAIN,
	 "a bell that finds nothing does not raise again",
	 {false, false},
	 NULL},
	{NO_E3, "the engine does not raise again", {false, false}, NULL},
	{AGAIN_FIRST,
	 "again raised before the message may be sent",
	 {false, false},
	 NULL},
	{AGAIN_LATE, "again raised after the look", {false, false}, NULL},
	{NO_C4,
	 "no fence in C4",
	 {true, false},
	 "a read-modify-write is the barrier on x86"},
	{NO_C5, "no look after the engine is given back", {false, false}, NULL},
	{NO_C6, "a command is owed to a thread that sleeps on", {false, false}, NULL},
	{NO_RECALL, "the engine is given back though recalled", {false, false}, NULL},
	{NO_R1, "a sleep ends though the engine is lent", {false, false}, NULL},
	{NO_LENT, "a sender takes a lent engine", {false, false}, NULL},
	{NO_OWED, "a waiter does not look for what is owed", {false, false}, NULL},
	{OWES_WAITED,
	 "a command that is waited for is owed",
	 {true, true},
	 "the engine's thread finds it at the end of its nap; it only comes later"},
	{NO_HANDED,
	 "the engine is handed over, and its thread not woken",
	 {false, false},
	 NULL},
	{LATE_HANDED,
	 "that thread is woken before it is the engine",
	 {false, false},
	 NULL},
};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* The number of violations; all states are added to *sum. */
static size_t everywhere(enum memory m, enum plant p, size_t *sum, bool tell, bool large)
{
	size_t found = 0;

	for (size_t i = 0; i < LENGTH(scenarios); i++) {
		if ((!large && scenarios[i].large) ||
		    (p != NOTHING && (p >= NO_C4) != scenarios[i].lends))
			continue;
		explore_all(&scenarios[i], m, p);
		*sum += states;
		found += violations;
		if (tell)
			printf("%s, %s: %zu states, %zu violations%s%s\n", memories[m],
			       scenarios[i].name, states, violations,
			       first_wrong != NULL ? ": " : "",
			       first_wrong != NULL ? first_wrong : "");
		else if (found > 0)
			break;
	}
	return found;
}

static int explore_planted(void)
{
	int missed = 0;

	for (size_t i = 0; i < LENGTH(planted); i++)
		for (unsigned int m = TSO; m <= ARM; m++) {
			bool harmless = planted[i].harmless[m];
			size_t sum = 0;
			size_t found = everywhere((enum memory)m, planted[i].plant, &sum,
						  false, planted[i].plant >= NO_C4);

			printf("planted, %s: %s: %s\n", memories[m], planted[i].name,
			       found > 0  ? first_wrong
			       : harmless ? planted[i].why
					  : "NOT FOUND");
			if ((found > 0) == harmless)
				missed++;
		}
	return missed;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	size_t all = 0, found = 0;
	int missed = 0;

	for (unsigned int m = TSO; m <= ARM; m++)
		found += everywhere((enum memory)m, NOTHING, &all, true,
				    strcmp(mode, "quick") != 0);
	if (strcmp(mode, "") == 0)
		missed = explore_planted();
	printf("figure hal.wakeup.states %zu\nfigure hal.wakeup.violations %zu\n", all,
	       found);
	if (missed != 0)
		printf("%d planted errors were not found, or found where they do no "
		       "harm\n",
		       missed);
	return found != 0 || missed != 0;
}
