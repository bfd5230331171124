/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - rules of a GPU's stand-in that CUDA and HIP have alike, each broken once; of
 * a test that has the library's calls in a face, and a device current in each case.
 */
#ifndef TESTS_GPU_RULES_H
#define TESTS_GPU_RULES_H

#include <stdint.h>

#include "host.h"

struct rules_face {
	/* As the library answers. */
	uint32_t (*allocate)(uint64_t *address, uint64_t bytes);
	uint32_t (*release)(uint64_t address);
	uint32_t (*pin)(void **p, uint64_t bytes);
	uint32_t (*unpin)(void *p);
	uint32_t (*pinned_at)(uint64_t *address, void *p);
	uint32_t (*enroll)(void *p, uint64_t bytes); /* memory of the program's */
	uint32_t (*dismiss)(void *p);
	uint32_t (*stream)(void **stream); /* that waits for no other */
	uint32_t (*query)(void *stream);
	uint32_t (*synchronize)(void *stream);
	uint32_t (*capturing)(void *stream, uint32_t *status);
	uint32_t (*exchange)(uint32_t *mode);
	/* A function of the program's, which is told how it went. */
	uint32_t (*callback)(void *stream,
			     void (*fn)(void *stream, uint32_t result, void *user),
			     void *user);
	uint32_t (*event)(void **event);
	uint32_t (*record)(void *event, void *stream);
	uint32_t (*event_wait)(void *event);
	uint32_t (*elapsed)(float *ms, void *begin, void *end);
	uint32_t (*copy)(uint64_t to, uint64_t from, uint64_t bytes, void *stream);
	uint32_t (*fill)(uint64_t address, uint32_t value, uint64_t words, void *stream);
	uint32_t (*write)(void *stream, uint64_t address, uint32_t value);
	void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
	const char *fill_call, *apart; /* the call's name; the variable of HOST */
	/* Give the stream a launch of that many blocks of ns each, of a kernel that is
	 * loaded for it. */
	uint32_t (*launch)(void *stream, uint32_t blocks, uint64_t ns);
	uint32_t units, entries; /* of device 0; of a channel */
};
extern struct rules_face rules_face;

/* The first misuse has that in its text. */
void rules_misused(const char *what);
void rules_run_for(uint64_t ns);
void rules_expect(uint32_t got, uint32_t want, const char *call);
/* The host dies of an address of the device's. */
void rules_dies_of(uint64_t address);

void rule_double_free(void **state);
void rule_pageable(void **state);
void rule_registered(void **state);
void rule_registered_twice(void **state);
void rule_registered_in_use(void **state);
void rule_null_stream(void **state);
void rule_host_apart(void **state);
void rule_captured(void **state);
void rule_disturbed(void **state);
void rule_captured_event(void **state);
void rule_host_function(void **state);
void rule_host_functions_apart(void **state);
void rule_limits(void **state);
void rule_half_done(void **state);
void rule_channel(void **state);
void rule_moves_run(void **state);
/* setup, teardown: of each case */
#define RULE_CASES(setup, teardown)                                                      \
	cmocka_unit_test_setup_teardown(rule_double_free, setup, teardown),              \
		cmocka_unit_test_setup_teardown(rule_pageable, setup, teardown),         \
		cmocka_unit_test_setup_teardown(rule_registered, setup, teardown),       \
		cmocka_unit_test_setup_teardown(rule_registered_twice, setup, teardown), \
		cmocka_unit_test_setup_teardown(rule_registered_in_use, setup,           \
						teardown),                               \
		cmocka_unit_test_setup_teardown(rule_null_stream, setup, teardown),      \
		cmocka_unit_test_setup_teardown(rule_host_apart, setup, teardown),       \
		cmocka_unit_test_setup_teardown(rule_captured, setup, teardown),         \
		cmocka_unit_test_setup_teardown(rule_disturbed, setup, teardown),        \
		cmocka_unit_test_setup_teardown(rule_captured_event, setup, teardown),   \
		cmocka_unit_test_setup_teardown(rule_host_function, setup, teardown),    \
		cmocka_unit_test_setup_teardown(rule_host_functions_apart, setup,        \
						teardown),                               \
		cmocka_unit_test_setup_teardown(rule_limits, setup, teardown),           \
		cmocka_unit_test_setup_teardown(rule_half_done, setup, teardown),        \
		cmocka_unit_test_setup_teardown(rule_channel, setup, teardown),          \
		cmocka_unit_test_setup_teardown(rule_moves_run, setup, teardown)

#endif
