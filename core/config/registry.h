/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - the backends and policies there are: built in, or plugins. */
#ifndef HAL_CONFIG_REGISTRY_H
#define HAL_CONFIG_REGISTRY_H

#include <hal/backend.h>
#include <hal/policy.h>

struct backend {
	struct hal_backend table; /* gaps filled with stubs */
	char section[32];
	char *path; /* of the plugin; NULL: in the tree */
	int err;    /* built in and does not load: every call answers this */
	char *why;
};

extern const struct hal_host core_host;

/* Loads what is built in and the colon list of plugins: all that can be loaded, whatever
 * cannot; the first error of those plugins, which somebody has named. */
int registry_load(const char *plugins);
/* Number index of those plugins that cannot be loaded: the error and its file; 0: there
 * are no more. */
int registry_fault(const char *plugins, uint32_t index, char *file, size_t size);
uint32_t registry_count(void);
const struct backend *registry_at(uint32_t index);
const struct backend *registry_find(const char *name);

/* ---- policy.c ---------------------------------------------------------------------- */

/* Those in policies. */
int policies_load(void);
int policy_add(const struct hal_policy *p, const char *from);
uint32_t policy_count(void);
const struct hal_policy *policy_at(uint32_t index);
const struct hal_policy *policy_find(const char *name);
/* -EINVAL, after a list of those there are. */
int policy_unknown(const char *name);
/* Options of [policy] that are not one policy's own. */
extern const struct hal_option_def policy_options[];
extern const uint32_t policy_option_count;

#endif
