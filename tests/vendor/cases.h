/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - cases of a cmocka program that are made from rows of a table. */
#ifndef TESTS_VENDOR_CASES_H
#define TESTS_VENDOR_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct cases {
	struct CMUnitTest tests[64];
	size_t count;
};

/* Add a case that runs fn; *state is row. */
static void cases_add(struct cases *c, const char *name, CMUnitTestFunction fn,
		      const void *row)
{
	if (c->count == sizeof(c->tests) / sizeof(c->tests[0])) {
		fprintf(stderr, "%s: too many cases: raise the limit of cases.h\n", name);
		exit(1);
	}
	c->tests[c->count++] = (struct CMUnitTest){
		.name = name, .test_func = fn, .initial_state = (void *)row};
}

/* Run the cases and those of the vendor's own.  Return the number of failures. */
static int cases_run(struct cases *c, const struct CMUnitTest *own, size_t own_count,
		     CMFixtureFunction setup)
{
	size_t i;

	for (i = 0; i < own_count; i++)
		cases_add(c, own[i].name, own[i].test_func, NULL);
	/* cmocka leaves out entries without a name. */
	return cmocka_run_group_tests(c->tests, setup, NULL);
}

#endif
