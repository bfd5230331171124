/* SPDX-License-Identifier: Apache-2.0 */
/* hip_kit.h - the calls of the stand-in's libamdhip64.so.5, with device 0 meant in each
 * case; for tests of its rules, and of HSA's. */
#ifndef TESTS_ROCM_HIP_KIT_H
#define TESTS_ROCM_HIP_KIT_H

#include "host.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/rocm.h>

#include "backends/rocm/hip_calls.h"
#include "tests/fakes/rocm/kfd.h"
#include "tests/gpu/rules.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define SYMBOL(name, params, args) uint32_t(*name) params;
static struct {
	HIP_ALL_CALLS(SYMBOL)
} hip;
static void (*drive)(uint32_t on);
static const struct gpu_stand_in *s;

#define HIP_IS(want, call, ...) rules_expect(hip.call(__VA_ARGS__), want, #call)
#define RULE(f)                 cmocka_unit_test_setup_teardown(f, begin, end)

static int begin(void **state)
{
	(void)state;
	s->reset();
	drive(1);
	return (int)hip.hipSetDevice(0);
}

/* All that the test has left behind goes with the devices. */
static int end(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < KFD_GPUS; i++)
		s->lose(i, HIPR_Unknown);
	drive(0);
	s->reset();
	return 0;
}

/* The library; NULL: it is not there. */
static void *load_hip(void)
{
	void *library = dlopen("libamdhip64.so.5", RTLD_NOW);

	s = stand_in();
	if (!library || !s)
		return NULL;
#define LOOK_UP(name, params, args) *(void **)&hip.name = dlsym(library, #name);
	HIP_ALL_CALLS(LOOK_UP)
#undef LOOK_UP
	*(void **)&drive = dlsym(library, "halStandInHipDrive");
	*(void **)&rules_face.advance = dlsym(library, "halStandInHipAdvance");
	return library;
}

#endif
