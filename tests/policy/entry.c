/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - makes a plugin of POLICY, a file of policies, under the name out_NAME.
 */
#include <hal/policy.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define TEXT_(a)    #a
#define TEXT(a)     TEXT_(a)
#define POLICY_     JOIN(hal_policy_, POLICY)

extern const struct hal_policy POLICY_;
HAL_API const struct hal_policy *hal_policy_entry(const struct hal_host *host);

const struct hal_policy *hal_policy_entry(const struct hal_host *host)
{
	static struct hal_policy other;

	(void)host;
	other = POLICY_;
	other.name = "out_" TEXT(POLICY);
	return &other;
}
