/* SPDX-License-Identifier: Apache-2.0 */
/* do_policy.c - policies come and go while work runs, good ones and a hostile one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hostile.h"
#include "sim.h"

/* Nobody has to ask before what is there keeps to its limits: they are short. */
static const char *const limits[] = {
	"quota_window_us=20",    "quota_permille=300",   "quota_unknown_us=2",
	"token_rate=300000",     "token_burst=3",        "static_slots=12",
	"static_slot_us=10",     "tgs_period_us=10",     "laxity_unknown_us=3",
	"prema_unknown_us=3",    "preempt_unknown_us=3", "orion_unknown_us=3",
	"orion_memory_mbs=1000", "themis_lease_us=5",    "themis_unknown_us=3",
	"tidal_idle_us=3",       "krisp_wait_us=5",      "fission_period_us=5",
	"fission_unknown_us=3",  "weave_wait_us=3",      "weave_memory_mbs=1000",
	"v10_slice_us=3",        "v10_wait_us=5",        "slots_age_us=5",
	"slots_unknown_us=3",    "moca_window_us=3",     "fgpu_parts=2",
	"fgpu_colors=any",
};

enum { PAIR = 64 }; /* bytes of an option and its value */

static const char *const names[] = {
	"fifo",    "rr",    "priority", "wfq",  "edf",   "quota",  "token", "static",
	"laxity",  "tgs",   "prema",    "reef", "orion", "themis", "tidal", "krisp",
	"fission", "weave", "v10",      "moca", "fgpu",  "slots"};

/* All that were there are asked anew, and have waited for nothing yet. */
static void begin_anew(struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		s->queues[i].moved_on_ns = hal_device_get_time(s->dev);
}

/* Of the target's "&policy.KEY=VALUE", the pairs: a policy that is set leaves out what it
 * is not told. */
static uint32_t pairs_of(const char *target, char (*text)[PAIR], uint32_t max)
{
	static const char begin[] = "&policy.";
	uint32_t n = 0;

	while (n < max && (target = strstr(target, begin)) != NULL) {
		target += sizeof(begin) - 1;
		snprintf(text[n++], PAIR, "%.*s", (int)strcspn(target, "&"), target);
	}
	return n;
}

static bool have_budgets(const struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && s->queues[i].budget)
			return true;
	return false;
}

/* Where that is refused, as it has to be, all is as it was. */
static int set(struct sim *s, const char *name)
{
	enum { LIMITS = sizeof(limits) / sizeof(*limits), PAIRS = 4 };
	const char *options[LIMITS + PAIRS + 1] = {NULL};
	char pairs[PAIRS][PAIR];
	uint32_t n = pairs_of(s->script->target, pairs, PAIRS);
	bool budgets = strstr(name, "quota") != NULL;
	int err;

	for (uint32_t i = 0; i < n; i++)
		options[i] = pairs[i];
	memcpy(options + n, limits, sizeof(limits));
	err = hal_device_set_policy(s->dev, name, options);
	SIM_ANSWER(err == (have_budgets(s) && !budgets ? -ENOTSUP : 0));
	if (err)
		return 0;
	s->budgets = budgets;
	s->hostile = NULL;
	s->stops |= strstr(name, "reef") != NULL;
	s->moves |= strstr(name, "tidal") || strstr(name, "krisp") ||
		    strstr(name, "fission") || strstr(name, "v10") ||
		    strstr(name, "fgpu");
	s->picky = strstr(name, "fgpu") != NULL;
	begin_anew(s);
	return 0;
}

int sim_policy_begin(struct sim *s)
{
	if (s->script->shared)
		return 0;
	return set(s, s->script->policy[0] ? s->script->policy : "fifo");
}

/* Hostile answers are counted and named, and after 16 within a second it is not asked any
 * more; those of the library are right. */
int sim_policy_check(struct sim *s)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);
	uint64_t faults, wrong;

	if (s->script->shared)
		return 0;
	SIM_OK(hal_device_get_policy(s->dev, &i));
	faults = i.invalid + i.stalls + i.starved;
	if (!s->hostile) {
		if (i.invalid + i.stalls + i.fallback != 0)
			return sim_fail(s, __FILE__, __LINE__, "policy %s: %s", i.name,
					i.reason);
		return 0;
	}
	SIM_CHECK(strcmp(i.name, "hostile") == 0);
	/* The last answer is not looked at when it has asked once too often before. */
	wrong = s->hostile->strangers + s->hostile->requests;
	SIM_CHECK(i.invalid == wrong || (i.fallback && i.invalid + 1 == wrong));
	SIM_CHECK(i.stalls + i.fallback >= s->hostile->past);
	SIM_CHECK(s->hostile->overruns == 0 || i.fallback);
	SIM_CHECK((i.reason[0] != 0) == (faults != 0));
	SIM_CHECK(!i.fallback || faults >= 16);
	/* Of those who starved, the engine's own doing is not held against it. */
	SIM_CHECK(i.fallback || faults - i.starved < 16 || s->now > 1000000000);
	SIM_CHECK(!i.fallback || !s->fell_back || s->hostile->picks == s->hostile_picks);
	s->fell_back = i.fallback;
	s->hostile_picks = s->hostile->picks;
	return 0;
}

int do_policy(struct sim *s, const uint32_t *p)
{
	enum { WHICH };
	const char *name = names[p[WHICH] % (sizeof(names) / sizeof(*names))];

	if (sim_policy_check(s))
		return -1;
	if (s->script->shared)
		return 0;
	if (s->script->policy[0])
		name = s->script->policy;
	return set(s, name);
}

int do_hostile(struct sim *s, const uint32_t *p)
{
	enum { HOW, RANDOM };
	void *lib = dlopen(SIM_HOSTILE, RTLD_NOW | RTLD_NOLOAD);
	struct hostile_control *c;

	if (s->script->policy[0] || s->script->shared)
		return 0;
	if (sim_policy_check(s))
		return -1;
	SIM_CHECK(lib);
	c = dlsym(lib, "hostile_control");
	SIM_CHECK(c);
	memset(c, 0, sizeof(*c));
	c->how = p[HOW];
	c->random = p[RANDOM];
	if (set(s, "hostile"))
		return -1;
	if (s->budgets)
		return 0; /* refused */
	s->hostile = c;
	s->fell_back = false;
	s->stops |= (c->how & HOSTILE_STOPS) != 0;
	s->moves |= (c->how & HOSTILE_MOVES) != 0;
	return 0;
}
