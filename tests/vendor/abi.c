/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against a vendor's headers: see abi.h. */
#include "abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"

static bool same(const struct abi_row *r)
{
	if (r->our_text)
		return strcmp(r->our_text, r->their_text) == 0;
	return r->ours == r->theirs;
}

static void check_group(void **state)
{
	const struct abi_group *g = *state;
	uint32_t bad = 0;
	size_t i;

	for (i = 0; i < g->count; i++) {
		const struct abi_row *r = &g->rows[i];

		if (same(r))
			continue;
		bad++;
		print_error("%s: ours 0x%llx %s, the header's 0x%llx %s\n", r->what,
			    (unsigned long long)r->ours, r->our_text ? r->our_text : "",
			    (unsigned long long)r->theirs,
			    r->their_text ? r->their_text : "");
	}
	assert_int_equal(bad, 0);
}

int main(void)
{
	struct cases c = {.count = 0};
	const struct abi_group *g;
	size_t rows = 0;

	for (g = abi_vendor.groups; g->name; g++) {
		cases_add(&c, g->name, check_group, g);
		rows += g->count;
	}
	printf("%zu rows\n", rows);
	return cases_run(&c, abi_vendor.cases, abi_vendor.case_count, NULL);
}
