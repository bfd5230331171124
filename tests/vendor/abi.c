/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against a vendor's headers: see abi.h. */
#include "abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CASES_MOST = 16 };

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
	struct CMUnitTest tests[CASES_MOST] = {{0}};
	const struct abi_group *g;
	size_t n = 0, i, rows = 0;

	for (g = abi_vendor.groups; g->name && n < CASES_MOST; g++) {
		tests[n++] = (struct CMUnitTest){.name = g->name,
						 .test_func = check_group,
						 .initial_state = (void *)g};
		rows += g->count;
	}
	for (i = 0; i < abi_vendor.case_count && n < CASES_MOST; i++)
		tests[n++] = abi_vendor.cases[i];
	if (g->name || i < abi_vendor.case_count) {
		fprintf(stderr, "raise the limit of abi.c\n");
		return 1;
	}
	printf("%zu rows\n", rows);
	/* cmocka leaves out empty entries. */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
