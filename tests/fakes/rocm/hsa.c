/* SPDX-License-Identifier: Apache-2.0 */
/* HSA's runtime on the world of HIP's stand-in: agents, signals, code.  Queues are
 * hsa_queue.c's. */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define HOST_AGENT UINT64_C(1) /* then the devices */
#define TICK_NS    10u
#define WAKING     4096u /* signals of a process that wake who waits; the others do not */
#define SPIN_NS    200000u /* before it sleeps */

bool hsa_started;

struct reader {
	struct object object;
	const void *code;
	size_t bytes;
};

struct executable {
	struct object object;
	struct module *module; /* NULL: nothing is loaded */
	bool frozen;
};

static void *object_of(uint64_t handle, enum object_kind kind)
{
	return get_any((void *)(uintptr_t)handle, kind);
}

/* ---- agents ------------------------------------------------------------------------ */

uint32_t do_hsa_init(void)
{
	if (!hip_device_count())
		return HSAR_OUT_OF_RESOURCES;
	if (!world.ready)
		(void)set_up();
	hsa_started = true;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_system_get_info(uint32_t what, void *value)
{
	const uint64_t frequency = 1000000000 / TICK_NS;

	if (what != HSAN_SYSTEM_TIMESTAMP_FREQUENCY)
		return HSAR_INVALID_ARGUMENT;
	memcpy(value, &frequency, sizeof(frequency));
	return HSAR_SUCCESS;
}

struct each {
	uint32_t (*fn)(uint64_t agent, void *user);
	void *user;
	uint32_t answer;
};

static void call_each(void *each)
{
	struct each *e = each;
	const uint64_t last = HOST_AGENT + (uint64_t)hip_device_count();
	uint64_t agent;

	for (agent = HOST_AGENT; agent <= last && !e->answer; agent++)
		e->answer = e->fn(agent, e->user);
}

uint32_t do_hsa_iterate_agents(uint32_t (*each)(uint64_t agent, void *user), void *user)
{
	struct each e = {each, user, HSAR_SUCCESS};

	if (!each)
		return HSAR_INVALID_ARGUMENT;
	call_unlocked(call_each, &e);
	return e.answer;
}

struct device *device_of(uint64_t agent)
{
	return agent > HOST_AGENT && agent <= HOST_AGENT + (uint64_t)hip_device_count()
		       ? &world.devices[agent - HOST_AGENT - 1]
		       : NULL;
}

uint32_t do_hsa_agent_get_info(uint64_t agent, uint32_t what, void *value)
{
	const struct device *d = device_of(agent);
	uint32_t v;

	if (!d && agent != HOST_AGENT)
		return HSAR_INVALID_AGENT;
	if (what == HSAN_AGENT_DEVICE)
		v = d ? HSAN_DEVICE_GPU : 0;
	else if (what == HSAN_AGENT_COMPUTE_UNITS)
		v = d ? d->units : 8;
	else if (what == HSAN_AGENT_BDFID)
		v = d ? (ROCM_STAND_IN_BUS + d->index) << 8 : 0;
	else if (what == HSAN_AGENT_DOMAIN)
		v = 0;
	else
		return HSAR_INVALID_ARGUMENT;
	memcpy(value, &v, sizeof(v));
	return HSAR_SUCCESS;
}

/* ---- signals ----------------------------------------------------------------------- */

struct signal *signal_of(uint64_t handle)
{
	return object_of(handle, OBJECT_SIGNAL);
}

struct signal *make_signal(int64_t value)
{
	struct signal *s = make(OBJECT_SIGNAL, sizeof(*s));

	if (s)
		s->value = value;
	return s;
}

static uint32_t waking(void)
{
	const struct object *o;
	uint32_t n = 0;

	for (o = world.objects; o; o = o->next)
		n += o->kind == OBJECT_SIGNAL && !o->gone &&
		     ((const struct signal *)(const void *)o)->wakes;
	return n;
}

uint32_t do_hsa_amd_signal_create(int64_t value, uint32_t consumer_count,
				  const uint64_t *consumers, uint64_t attributes,
				  uint64_t *signal)
{
	struct signal *s;

	*signal = HSA_JUNK;
	if ((consumer_count && !consumers) || attributes & ~UINT64_C(3))
		return HSAR_INVALID_ARGUMENT;
	s = make_signal(value);
	if (!s)
		return HSAR_OUT_OF_RESOURCES;
	s->wakes = !(attributes & HSAN_SIGNAL_GPU_ONLY) && waking() < WAKING;
	*signal = (uintptr_t)s;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_signal_destroy(uint64_t signal)
{
	struct signal *s = signal_of(signal);

	if (!s)
		return HSAR_INVALID_SIGNAL;
	if (s->users)
		misuse("a signal goes that a packet is to count down");
	s->object.gone = true;
	return HSAR_SUCCESS;
}

int64_t do_hsa_signal_load_scacquire(uint64_t signal)
{
	const struct signal *s = signal_of(signal);

	return s ? s->value : 0;
}

static void store(uint64_t signal, int64_t value)
{
	struct signal *s = signal_of(signal);

	if (!s)
		return;
	if (s->users)
		misuse("a signal is written that a packet is to count down");
	s->timed = false;
	s->value = value;
	if (s->rings)
		ring(s->rings, value);
}

/* The host's writes before it need not be seen by then. */
void do_hsa_signal_store_relaxed(uint64_t signal, int64_t value)
{
	const struct signal *s = signal_of(signal);

	if (s && s->rings)
		misuse("a doorbell that lets nothing be seen of what was written");
	store(signal, value);
}

void do_hsa_signal_store_screlease(uint64_t signal, int64_t value)
{
	store(signal, value);
}

/* Every other time it comes back at once, whatever the value. */
int64_t do_hsa_signal_wait_scacquire(uint64_t signal, uint32_t condition, int64_t than,
				     uint64_t timeout, uint32_t state)
{
	struct signal *s = signal_of(signal);
	const uint64_t until = timeout < NEVER / TICK_NS - world.now_ns
				       ? world.now_ns + timeout * TICK_NS
				       : NEVER;
	const uint64_t began = world.now_ns;
	static bool early;
	uint64_t waited;

	if (!s || condition != HSAN_CONDITION_LT)
		return 0;
	blocks("hsa_signal_wait_scacquire");
	early = !early;
	while (!early && s->value >= than && world.now_ns < until)
		if (world.drivers ? !world_run(until, true) : !breathe())
			break;
	waited = world.now_ns - began;
	if (s->wakes && state == HSAN_WAIT_BLOCKED && waited > SPIN_NS)
		waited = SPIN_NS;
	world.spun_ns += waited;
	return s->value;
}

/* ---- code -------------------------------------------------------------------------- */

uint32_t do_hsa_code_object_reader_create_from_memory(const void *code, size_t bytes,
						      uint64_t *reader)
{
	struct reader *r;

	*reader = HSA_JUNK;
	if (!code || !bytes)
		return HSAR_INVALID_ARGUMENT;
	r = make(OBJECT_READER, sizeof(*r));
	if (!r)
		return HSAR_OUT_OF_RESOURCES;
	r->code = code;
	r->bytes = bytes;
	*reader = (uintptr_t)r;
	return HSAR_SUCCESS;
}

/* The memory has to be there still. */
uint32_t do_hsa_code_object_reader_destroy(uint64_t reader)
{
	struct reader *r = object_of(reader, OBJECT_READER);

	if (!r)
		return HSAR_INVALID_CODE_OBJECT_READER;
	if (r->bytes >= SELFMAG && memcmp(r->code, ELFMAG, SELFMAG) != 0)
		misuse("code is gone before its reader");
	r->object.gone = true;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_executable_create_alt(uint32_t profile, uint32_t rounding,
				      const char *options, uint64_t *executable)
{
	struct executable *e;

	(void)options;
	*executable = HSA_JUNK;
	if (profile > HSAN_PROFILE_FULL || rounding > 2)
		return HSAR_INVALID_ARGUMENT;
	e = make(OBJECT_EXECUTABLE, sizeof(*e));
	if (!e)
		return HSAR_OUT_OF_RESOURCES;
	*executable = (uintptr_t)e;
	return HSAR_SUCCESS;
}

static uint32_t load_on(struct device *d, struct executable *e, const void *code)
{
	void *module = NULL;
	int was = 0;
	uint32_t r;

	(void)do_hipGetDevice(&was);
	(void)do_hipSetDevice((int)d->index);
	r = do_hipModuleLoadData(&module, code);
	(void)do_hipSetDevice(was);
	if (r == HIPR_NoBinaryForGpu)
		return HSAR_INCOMPATIBLE_ARGUMENTS;
	if (r)
		return HSAR_INVALID_CODE_OBJECT;
	e->module = module;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_executable_load_agent_code_object(uint64_t executable, uint64_t agent,
						  uint64_t reader, const char *options,
						  uint64_t *loaded)
{
	struct executable *e = object_of(executable, OBJECT_EXECUTABLE);
	const struct reader *r = object_of(reader, OBJECT_READER);
	struct device *d = device_of(agent);

	(void)options;
	if (loaded)
		*loaded = HSA_JUNK;
	if (!e)
		return HSAR_INVALID_EXECUTABLE;
	if (!r)
		return HSAR_INVALID_CODE_OBJECT_READER;
	if (!d)
		return HSAR_INVALID_AGENT;
	if (e->frozen)
		return HSAR_FROZEN_EXECUTABLE;
	if (r->bytes < SELFMAG || memcmp(r->code, ELFMAG, SELFMAG) != 0)
		return HSAR_INVALID_CODE_OBJECT;
	return load_on(d, e, r->code);
}

uint32_t do_hsa_executable_freeze(uint64_t executable, const char *options)
{
	struct executable *e = object_of(executable, OBJECT_EXECUTABLE);

	(void)options;
	if (!e)
		return HSAR_INVALID_EXECUTABLE;
	if (e->frozen)
		return HSAR_FROZEN_EXECUTABLE;
	e->frozen = true;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_executable_destroy(uint64_t executable)
{
	struct executable *e = object_of(executable, OBJECT_EXECUTABLE);

	if (!e)
		return HSAR_INVALID_EXECUTABLE;
	if (e->module && module_busy(e->module))
		misuse("an executable goes while its kernel is in a queue");
	if (e->module)
		end_module(e->module);
	e->object.gone = true;
	return HSAR_SUCCESS;
}

uint32_t do_hsa_executable_get_symbol_by_name(uint64_t executable, const char *name,
					      const uint64_t *agent, uint64_t *symbol)
{
	const struct executable *e = object_of(executable, OBJECT_EXECUTABLE);
	const size_t n = strlen(name);
	struct function *f;
	char kernel[64];

	*symbol = HSA_JUNK;
	if (!e)
		return HSAR_INVALID_EXECUTABLE;
	if (!agent || !e->module || device_of(*agent) != e->module->object.dev || n < 4 ||
	    n >= sizeof(kernel) || strcmp(name + n - 3, ".kd") != 0)
		return HSAR_INVALID_SYMBOL_NAME;
	memcpy(kernel, name, n - 3);
	kernel[n - 3] = 0;
	f = function_of(e->module, kernel);
	if (!f)
		return HSAR_INVALID_SYMBOL_NAME;
	if (!e->frozen)
		misuse("a symbol of an executable that is not frozen");
	*symbol = (uintptr_t)f;
	return HSAR_SUCCESS;
}

uint32_t argument_at(const struct function *f, uint32_t index)
{
	uint32_t i, at = 0;

	for (i = 0; i < f->shape.arg_count; i++) {
		const uint32_t bytes = f->shape.arg_bytes[i];
		const uint32_t alignment = bytes < 8 ? bytes : 8;

		at = (at + alignment - 1) / alignment * alignment;
		if (i == index)
			return at;
		at += bytes;
	}
	return (at + 7) / 8 * 8;
}

uint32_t do_hsa_executable_symbol_get_info(uint64_t symbol, uint32_t what, void *value)
{
	struct function *f = object_of(symbol, OBJECT_FUNCTION);
	uint32_t v = 0;

	if (!f)
		return HSAR_INVALID_EXECUTABLE_SYMBOL;
	switch (what) {
	case HSAN_SYMBOL_KERNEL_OBJECT:
		memcpy(value, &symbol, sizeof(symbol));
		return HSAR_SUCCESS;
	case HSAN_SYMBOL_DYNAMIC_CALLSTACK:
		*(bool *)value = false;
		return HSAR_SUCCESS;
	case HSAN_SYMBOL_KERNARG_BYTES:
		v = argument_at(f, PARAMS_MAX) + 16u * f->hidden;
		break;
	case HSAN_SYMBOL_GROUP_BYTES:
	case HSAN_SYMBOL_PRIVATE_BYTES:
		break;
	default:
		return HSAR_INVALID_ARGUMENT;
	}
	memcpy(value, &v, sizeof(v));
	return HSAR_SUCCESS;
}
