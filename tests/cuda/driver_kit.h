/* SPDX-License-Identifier: Apache-2.0 */
/* driver_kit.h - the calls of the stand-in's libcuda.so.1, with the context of device 0
 * current in each case; for tests of its rules. */
#ifndef TESTS_CUDA_DRIVER_KIT_H
#define TESTS_CUDA_DRIVER_KIT_H

#include "host.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/cu_calls.h"
#include "tests/gpu/rules.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define SYMBOL(name, params, args) uint32_t(*name) params;
static struct {
	CU_CALLS(SYMBOL)
	CU_VMM_CALLS(SYMBOL)
	CU_SHARE_CALLS(SYMBOL)
	CU_REGISTER_CALLS(SYMBOL)
} cu;
static void (*drive)(uint32_t on);
static const struct gpu_stand_in *s;
static void *context;

#define IS(want, call, ...) rules_expect(cu.call(__VA_ARGS__), want, #call)
#define RULE(f)             cmocka_unit_test_setup_teardown(f, begin, end)

static int begin(void **state)
{
	(void)state;
	s->reset();
	drive(1);
	IS(0, cuDevicePrimaryCtxRetain, &context, 0);
	IS(0, cuCtxPushCurrent_v2, context);
	return 0;
}

static int end(void **state)
{
	void *popped;

	(void)state;
	while (cu.cuCtxPopCurrent_v2(&popped) == 0)
		;
	s->lose(0, CUR_UNKNOWN); /* all that the test has left behind */
	(void)cu.cuDevicePrimaryCtxRelease_v2(0);
	drive(0);
	s->reset();
	return 0;
}

/* The library; NULL: it is not there. */
static void *load_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	if (!handle)
		return NULL;
#define FIND(name, params, args) *(void **)&cu.name = dlsym(handle, #name);
	CU_CALLS(FIND)
	CU_VMM_CALLS(FIND)
	CU_SHARE_CALLS(FIND)
	CU_REGISTER_CALLS(FIND)
#undef FIND
	*(void **)&drive = dlsym(handle, "halStandInCudaDrive");
	*(void **)&rules_face.advance = dlsym(handle, "halStandInCudaAdvance");
	s = stand_in();
	return handle;
}

#endif
