/* SPDX-License-Identifier: Apache-2.0 */
/* What is CUDA's own of the stand-in. */
#ifndef TESTS_FAKES_CUDA_INTERNAL_H
#define TESTS_FAKES_CUDA_INTERNAL_H

#include <stdbool.h>

#include "backends/cuda/cu_calls.h"
#include "stand_in.h"
#include "tests/fakes/gpu/world.h"
#include "tpc.h"

enum { DEVICES = 2 };
#define SHARED_MOST (227 * 1024) /* of a block */
#define SHARED_GATE (48 * 1024)  /* without asking */
#define STACK_FIRST 1024         /* local memory of a thread, as a context is made */
#define STACK_MOST  (512 * 1024)

/* Local memory of a thread that launches on that device have room for. */
size_t stack_limit(const struct device *d);

/* A green context: which units its streams may use. */
struct green {
	struct object object;
	bool unit[UNITS_MAX];
};

/* qmd.c: the export table; and a launch's descriptor, shown to whoever subscribed. */
const void *export_table(void);
void qmd_show(const struct device *dev, bool off[UNITS_MAX]);
/* What a driver of that version finds in the stream. */
void stream_show(const struct stream *s, int version, bool off[UNITS_MAX]);

/* calls.c: what the driver claims to be. */
int version(void);
/* NULL: there is none of that number. */
struct device *device_at(int device);
/* As it was drawn. */
const struct tpc_gpu *gpu_of(const struct device *d);

/* code.c: whether its kernels do what it says. */
bool code_runs(const char *ptx);
/* False: it is no PTX that is understood; log says why. */
bool code_read(struct module *m, const char *ptx, char *log, size_t bytes);
void code_end(struct module *m);
/* NULL: there is none of that name. */
struct function *code_function(struct module *m, const char *name);

/* What the environment wants of the driver there: "ignored", or "crash" and "hang", which
 * it does. */
bool ignores(const char *variable);

/* A launch as it would be pushed; what cuLaunchKernel and a node's parameters are held
 * to.
 */
uint32_t launch_job(struct job *j, void *function, const uint32_t grid[3],
		    const uint32_t block[3], uint32_t shared, void **params,
		    void **extra);

/* What programs call, and the backend does not. */
/* clang-format off */
#define CU_PROGRAM_CALLS(X) \
X(cuLaunchHostFunc, (void *stream, void (*fn)(void *user), void *user), \
	(stream, fn, user)) \
X(cuStreamAddCallback, (void *stream, \
	void (*fn)(void *stream, uint32_t result, void *user), void *user, \
	uint32_t flags), (stream, fn, user, flags))
#define CU_STAND_IN_CALLS(X) CU_ALL_CALLS(X) CU_PROGRAM_CALLS(X)

enum cu_stand_in_call {
	CU_STAND_IN_CALL_LAST = CU_ALL_CALL_COUNT - 1,
#define STAND_IN_NUMBER(name, params, args) CU_CALL_##name,
	CU_PROGRAM_CALLS(STAND_IN_NUMBER)
#undef STAND_IN_NUMBER
	CU_STAND_IN_CALL_COUNT
};
/* clang-format on */

/* calls.c, modules.c, graph.c, vmm.c: what each entry point does */
#define STAND_IN_DECLARE(name, params, args) uint32_t do_##name params;
CU_STAND_IN_CALLS(STAND_IN_DECLARE)
uint32_t set_up(void);

#endif
