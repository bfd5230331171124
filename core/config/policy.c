/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - the list of policies: the built-in ones of folder policies, and those of
 * plug-ins. */
#include "config/registry.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

#define HAL_POLICY_(name) extern const struct hal_policy hal_policy_##name;
#include "hal_policies.h"
#undef HAL_POLICY_

static const struct hal_policy *const builtin[] = {
#define HAL_POLICY_(name) &hal_policy_##name,
#include "hal_policies.h"
#undef HAL_POLICY_
};

#define POLICIES_MAX 128

/* Entries are only added, under the registry's lock.  Reading needs no lock. */
static const struct hal_policy *policies[POLICIES_MAX];
static _Atomic uint32_t count;

const struct hal_option_def policy_options[] = {
	{"name", HAL_OPTION_STRING, 0, 0, NULL, "priority",
	 "policy that chooses which queue of a partition runs next"},
	{"timeout_ms", HAL_OPTION_INT, 0, INT64_C(1000000), NULL, "10000",
	 "longest wait of a runnable queue, in ms of device time, before the policy "
	 "is overruled; 0: no limit"},
	{"preempt", HAL_OPTION_ENUM, 0, 0, "best|drain|fold|save|kill|never", "best",
	 "suspend mode by which best-effort work is preempted for latency-critical "
	 "work; best: the cheapest mode each time"},
	{"preempt_for", HAL_OPTION_ENUM, 0, 0, "class|deadline|priority", "class",
	 "class: latency-critical work preempts best effort; deadline: work with a "
	 "deadline also preempts less urgent work; priority: also higher preempts lower"},
	{"preempt_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "preemption: assumed run time of a command, in us, until its queue has "
	 "completed one"},
	{"inherit", HAL_OPTION_BOOL, 0, 0, NULL, "yes",
	 "a queue inherits the class, priority and deadline of queues that wait for "
	 "its points"},
	{"kills", HAL_OPTION_INT, 1, 1000000, NULL, "10",
	 "how many times one command may be killed; then it runs to its end; kills "
	 "before its start count from the second on"},
};
const uint32_t policy_option_count = ARRAY_LENGTH(policy_options);

/* Return whether name can be written in hal.conf, in options and in journals. */
static bool is_name(const char *name)
{
	size_t length = name != NULL ? strlen(name) : 0;

	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~' ||
		    strchr(".=:,;#\"[]", name[i]) != NULL)
			return false;
	return length >= 1 && length <= 31;
}

/* Check the table of a policy; from names its origin in messages. */
static int table_check(const struct hal_policy *p, const char *from)
{
	if (p->abi != HAL_POLICY_ABI)
		return fail(EPROTO, "%s has policy ABI %u; this library needs ABI %u",
			    from, p->abi, HAL_POLICY_ABI);
	if (p->size != sizeof(*p))
		return fail(EPROTO,
			    "%s: struct hal_policy has %u bytes; %zu were expected", from,
			    p->size, sizeof(*p));
	if (!is_name(p->name))
		return fail(EPROTO,
			    "%s: a policy's name has 1 to 31 characters, no spaces and "
			    "none of .=:,;#\"[]",
			    from);
	if (p->key == NULL && p->pick == NULL)
		return fail(EPROTO, "%s: policy %s has neither key nor pick", from,
			    p->name);
	if (p->key != NULL &&
	    (p->pick != NULL || p->enqueue != NULL || p->dequeue != NULL))
		return fail(
			EPROTO,
			"%s: policy %s has key together with enqueue, dequeue or pick",
			from, p->name);
	if (p->option_count > 0 && p->options == NULL)
		return fail(EPROTO, "%s: %u options but no option table", from,
			    p->option_count);
	return 0;
}

int policy_add(const struct hal_policy *p, const char *from)
{
	uint32_t n = atomic_load(&count);
	int err = table_check(p, from);

	if (err != 0)
		return err;
	if (policy_find(p->name) != NULL)
		return fail(EINVAL, "%s: a policy %s is already loaded", from, p->name);
	if (n == POLICIES_MAX)
		return fail(ENOSPC, "%s: cannot load more than %d policies", from,
			    POLICIES_MAX);
	policies[n] = p;
	atomic_store(&count, n + 1);
	return 0;
}

int policies_load(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(builtin); i++) {
		int err = policy_add(builtin[i], builtin[i]->name);

		if (err != 0)
			return err;
	}
	return 0;
}

uint32_t policy_count(void)
{
	return atomic_load(&count);
}

const struct hal_policy *policy_at(uint32_t index)
{
	return policies[index];
}

const struct hal_policy *policy_find(const char *name)
{
	for (uint32_t i = 0; i < policy_count(); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

int policy_unknown(const char *name)
{
	char known[256] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < policy_count() && used < sizeof(known); i++) {
		format_text(known + used, sizeof(known) - used, " %s", policies[i]->name);
		used += strlen(known + used);
	}
	return fail(EINVAL, "there is no policy \"%s\"; there are%s", name, known);
}
