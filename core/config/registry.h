/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - the lists of backends and policies, built in or from plug-ins. */
#ifndef HAL_CONFIG_REGISTRY_H
#define HAL_CONFIG_REGISTRY_H

#include <hal/backend.h>
#include <hal/policy.h>

struct backend {
	struct hal_backend table; /* missing operations replaced by stubs */
	char section[32];         /* section of its options: "backend.NAME" */
	char *path;               /* file of its plug-in; NULL: built in */
	int err; /* error with which a built-in backend did not load; opening the backend
		    returns it */
	char *why; /* message that explains .err */
};

/* The services that backends and policies may call. */
extern const struct hal_host core_host;

/* Load the built-in backends and policies, and plug-ins, a list separated by colons.  A
 * plug-in that fails does not keep the others from loading.  Return the error of the
 * first one that failed, or 0. */
int registry_load(const char *plugins);
/* Count the plug-ins of the list that cannot be loaded, from 0.  Return the error of
 * number index and store its name in file.  Return 0 if there is no such number. */
int registry_fault(const char *plugins, uint32_t index, char *file, size_t size);
/* The list of backends; any thread may read it. */
uint32_t registry_count(void);
const struct backend *registry_at(uint32_t index);
const struct backend *registry_find(const char *name);

/* ---- policy.c ---------------------------------------------------------------------- */

/* Add the built-in policies.  The caller holds the registry's lock. */
int policies_load(void);
/* Check and add policy p; from names its origin in messages.  The caller holds the
 * registry's lock.  -EPROTO, -EINVAL: p is refused. */
int policy_add(const struct hal_policy *p, const char *from);
uint32_t policy_count(void);
const struct hal_policy *policy_at(uint32_t index);
const struct hal_policy *policy_find(const char *name);
/* Return -EINVAL with a message that lists the known policies. */
int policy_unknown(const char *name);
/* Options of [policy] that all policies have. */
extern const struct hal_option_def policy_options[];
extern const uint32_t policy_option_count;

#endif
