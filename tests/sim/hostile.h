/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.h - a policy that answers nonsense, late, or never, and asks for what it must
 * not; it counts what the engine has to notice. */
#ifndef TESTS_SIM_HOSTILE_H
#define TESTS_SIM_HOSTILE_H

#include <stdint.h>

/* hostile_control.how: bits. */
enum {
	HOSTILE_STRANGER = 1, /* names queues that are not there, idle, gone, elsewhere */
	HOSTILE_NOBODY = 2,   /* names nobody, and no time */
	HOSTILE_PAST = 4,     /* nobody, until a time that has passed */
	HOSTILE_LATE = 8,     /* nobody, for longer than the net holds */
	HOSTILE_LEASE = 16,   /* leases for ever */
	HOSTILE_STOPS = 32,   /* stops whoever it can, in any mode, and starts nobody */
	HOSTILE_MOVES = 64,   /* moves borders to where they cannot be */
	HOSTILE_ALARMS = 128, /* alarms at once and always, asks out of turn */
};

/* The symbol hostile_control of the shared object. */
struct hostile_control {
	uint32_t how; /* one of them each time, by chance */
	uint64_t random;
	/* What the engine has to have counted. */
	uint64_t strangers, past, requests;
	uint64_t picks, stops, overruns;
};

#endif
