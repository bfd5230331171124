/* SPDX-License-Identifier: Apache-2.0 */
/* null_plugin.c - a plugin whose entry answers NULL, with NULL_WHY before that. */
#include <errno.h>

#include <hal/backend.h>
#include <hal/policy.h>

#ifdef NULL_POLICY
HAL_API const struct hal_policy *hal_policy_entry(const struct hal_host *host);
const struct hal_policy *hal_policy_entry(const struct hal_host *host)
#else
HAL_API const struct hal_backend *hal_backend_entry(const struct hal_host *host);
const struct hal_backend *hal_backend_entry(const struct hal_host *host)
#endif
{
#ifdef NULL_WHY
	(void)host->fail(ENODEV, NULL_WHY);
#else
	(void)host;
#endif
	return NULL;
}
