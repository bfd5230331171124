/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA's runtime, which HIP stands on, beside it: opened at run time, once a process;
 * which of its agents the device is; code that it loads.  It is started once more and
 * never ended: HIP's own start keeps it as long as the process.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY         "libhsa-runtime64.so.1"
#define CALLSTACK_BYTES 16384u /* where a kernel does not say how much it takes */

struct hsa_symbols hsa;

static struct {
	pthread_mutex_t lock;
	atomic_bool started; /* hsa is filled in */
	struct rocm_code *kept;
} used = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Starting HSA takes its time, which no fork waits for.  Code that was kept is the
 * parent's. */
static void start_over(void)
{
	(void)pthread_mutex_init(&used.lock, NULL);
	used.kept = NULL;
}

__attribute__((constructor)) static void at_forks(void)
{
	(void)pthread_atfork(NULL, NULL, start_over);
}

/* ---- what goes wrong --------------------------------------------------------------- */

const char *rocm_status_name(uint32_t status)
{
	static const struct {
		uint32_t value;
		const char *name;
	} all[] = {
#define NAME(name, value) {value, "HSA_STATUS_ERROR_" #name},
		HSA_STATUSES(NAME)
#undef NAME
			{HSAR_ERROR, "HSA_STATUS_ERROR"},
		{HSAR_CU_MASK_REDUCED, "HSA_STATUS_CU_MASK_REDUCED"},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].value == status)
			return all[i].name;
	return "unknown status";
}

static int errno_of(uint32_t status)
{
	switch (status) {
	case HSAR_OUT_OF_RESOURCES:
	case HSAR_INVALID_ALLOCATION:
		return ENOSPC;
	case HSAR_INCOMPATIBLE_ARGUMENTS:
	case HSAR_INVALID_ISA:
	case HSAR_CU_MASK_REDUCED:
		return ENOTSUP;
	case HSAR_NOT_INITIALIZED:
		return ENODEV;
	case HSAR_ERROR:
	case HSAR_FATAL:
	case HSAR_EXCEPTION:
		return EIO;
	default:
		return EINVAL;
	}
}

int rocm_refuse(struct rocm_device *dev, int err, const char *fmt, ...)
{
	char text[sizeof(dev->hsa.why)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (dev->hsa.trying)
		memcpy(dev->hsa.why, text, sizeof(text));
	return rocm_host->fail(err, "rocm:%u: %s", dev->index, text);
}

int rocm_hsa_failed(struct rocm_device *dev, uint32_t status, const char *call)
{
	return rocm_refuse(dev, errno_of(status), "%s: %s (0x%x)", call,
			   rocm_status_name(status), status);
}

/* ---- the library ------------------------------------------------------------------- */

/* NULL, or the first that is not there. */
static const char *look_up(void *library, struct hsa_symbols *s)
{
	const struct {
		const char *name;
		size_t at;
	} all[] = {
#define SYMBOL(name, params, args)      {#name, offsetof(struct hsa_symbols, name)},
#define TYPED(type, name, params, args) {#name, offsetof(struct hsa_symbols, name)},
		HSA_CALLS(SYMBOL) HSA_VALUE_CALLS(TYPED) HSA_STORE_CALLS(TYPED)
#undef SYMBOL
#undef TYPED
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *found = dlsym(library, all[i].name);

		if (!found)
			return all[i].name;
		memcpy((char *)s + all[i].at, &found, sizeof(found));
	}
	return NULL;
}

static int start(struct rocm_device *dev)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct hsa_symbols s;
	const char *missing;
	int err;

	if (!library)
		return rocm_refuse(dev, ENODEV, "no HSA: %s", dlerror());
	missing = look_up(library, &s);
	if (missing)
		return rocm_refuse(dev, ENODEV, LIBRARY " has no %s", missing);
	err = rocm_hsa_check(dev, s.hsa_init(), "hsa_init");
	if (err)
		return err;
	hsa = s;
	used.started = true;
	return 0;
}

/* Its place on the bus, as HIP tells it: "0000:a3:00.0". */
struct search {
	uint64_t domain, bdf, agent;
	uint64_t cpu; /* the first; 0: none */
	uint32_t found;
	const char *call; /* that failed */
};

static uint32_t look_at(uint64_t agent, void *search)
{
	struct search *s = search;
	uint32_t kind = 0, domain = 0, bdf = 0, r;

	r = hsa.hsa_agent_get_info(agent, HSAN_AGENT_DEVICE, &kind);
	if (!r && kind == HSAN_DEVICE_CPU && !s->cpu)
		s->cpu = agent;
	if (!r && kind != HSAN_DEVICE_GPU)
		return HSAR_SUCCESS;
	if (!r)
		r = hsa.hsa_agent_get_info(agent, HSAN_AGENT_DOMAIN, &domain);
	if (!r)
		r = hsa.hsa_agent_get_info(agent, HSAN_AGENT_BDFID, &bdf);
	if (!r && domain == s->domain && bdf == s->bdf) {
		s->agent = agent;
		s->found++;
	}
	if (r)
		s->call = "hsa_agent_get_info";
	return r;
}

/* Parts of a device are agents at one place: which is HIP's cannot be told. */
static int find_agent(struct rocm_device *dev)
{
	const char *bus_id = dev->shape.bus_id;
	uint32_t r;
	struct search s = {.call = "hsa_iterate_agents"};
	int err;

	if (!rocm_topology_address(bus_id, &s.domain, &s.bdf))
		return rocm_refuse(dev, ENOTSUP, "'%s' is not a PCI address", bus_id);
	r = hsa.hsa_iterate_agents(look_at, &s);
	err = rocm_hsa_check(dev, r, s.call);
	if (err)
		return err;
	if (s.found != 1)
		return rocm_refuse(dev, ENOTSUP,
				   "HSA reports %u agents at %s instead of one", s.found,
				   bus_id);
	dev->hsa.agent = s.agent;
	dev->hsa.cpu = s.cpu;
	return HSA(dev, hsa_agent_get_info, s.agent, HSAN_AGENT_COMPUTE_UNITS,
		   &dev->hsa.cus);
}

int rocm_hsa_load(struct rocm_device *dev)
{
	uint64_t frequency = 0;
	int err;

	pthread_mutex_lock(&used.lock);
	err = used.started ? 0 : start(dev);
	pthread_mutex_unlock(&used.lock);
	if (!err)
		err = find_agent(dev);
	if (!err)
		err = HSA(dev, hsa_system_get_info, HSAN_SYSTEM_TIMESTAMP_FREQUENCY,
			  &frequency);
	if (err)
		return err;
	if (dev->hsa.cus < dev->units.bits || dev->hsa.cus > 32 * ROCM_MASK_WORDS)
		return rocm_refuse(dev, ENOTSUP, "HSA reports %u CUs, but HIP reports %u",
				   dev->hsa.cus, dev->units.bits);
	dev->hsa.tick_ns = frequency ? 1e9 / (double)frequency : 0;
	return 0;
}

/* ---- code -------------------------------------------------------------------------- */

int rocm_code_load(struct rocm_device *dev, const void *code, size_t bytes,
		   struct rocm_loaded *loaded)
{
	struct rocm_code *c = calloc(1, sizeof(*c) + bytes);
	int err;

	memset(loaded, 0, sizeof(*loaded));
	if (!c)
		return rocm_refuse(dev, ENOMEM, "no memory for a copy of code");
	loaded->code = c;
	memcpy(c->bytes, code, bytes);
	err = HSA(dev, hsa_code_object_reader_create_from_memory, c->bytes, bytes,
		  &c->reader);
	if (err) {
		c->reader = 0;
		return err;
	}
	err = HSA(dev, hsa_executable_create_alt, HSAN_PROFILE_FULL,
		  HSAN_ROUNDING_DEFAULT, NULL, &loaded->executable);
	if (err) {
		loaded->executable = 0;
		return err;
	}
	err = HSA(dev, hsa_executable_load_agent_code_object, loaded->executable,
		  dev->hsa.agent, c->reader, NULL, NULL);
	return err ? err : HSA(dev, hsa_executable_freeze, loaded->executable, NULL);
}

int rocm_code_entry(struct rocm_device *dev, const struct rocm_loaded *loaded,
		    const char *kernel, struct rocm_entry *entry)
{
	const struct {
		uint32_t what;
		void *to;
	} all[] = {
		{HSAN_SYMBOL_KERNEL_OBJECT, &entry->object},
		{HSAN_SYMBOL_KERNARG_BYTES, &entry->argument_bytes},
		{HSAN_SYMBOL_GROUP_BYTES, &entry->group_bytes},
		{HSAN_SYMBOL_PRIVATE_BYTES, &entry->private_bytes},
	};
	char name[48];
	uint64_t symbol = 0;
	bool unknown = false;
	uint32_t i;
	int err;

	snprintf(name, sizeof(name), "%s.kd", kernel);
	err = HSA(dev, hsa_executable_get_symbol_by_name, loaded->executable, name,
		  &dev->hsa.agent, &symbol);
	for (i = 0; !err && i < sizeof(all) / sizeof(all[0]); i++)
		err = HSA(dev, hsa_executable_symbol_get_info, symbol, all[i].what,
			  all[i].to);
	if (!err)
		err = HSA(dev, hsa_executable_symbol_get_info, symbol,
			  HSAN_SYMBOL_DYNAMIC_CALLSTACK, &unknown);
	if (!err && unknown && entry->private_bytes < CALLSTACK_BYTES)
		entry->private_bytes = CALLSTACK_BYTES;
	return err;
}

int rocm_code_free(struct rocm_device *dev, struct rocm_code *code)
{
	const int err =
		code->reader ? HSA(dev, hsa_code_object_reader_destroy, code->reader) : 0;

	if (!err)
		free(code);
	return err;
}

void rocm_code_keep(struct rocm_code *code)
{
	pthread_mutex_lock(&used.lock);
	code->older = used.kept;
	used.kept = code;
	pthread_mutex_unlock(&used.lock);
}

/* Each twice, as nobody tries again. */
void rocm_code_undo(struct rocm_device *dev, struct rocm_loaded *loaded)
{
	if (loaded->executable && hsa.hsa_executable_destroy(loaded->executable))
		(void)hsa.hsa_executable_destroy(loaded->executable);
	if (loaded->code && rocm_code_free(dev, loaded->code) &&
	    rocm_code_free(dev, loaded->code))
		rocm_code_keep(loaded->code);
	memset(loaded, 0, sizeof(*loaded));
}

void rocm_code_drop(struct rocm_device *dev, struct rocm_loaded *loaded, int *err)
{
	rocm_give_back(dev, ROCM_KIND_EXECUTABLE, rocm_handle(loaded->executable), err);
	if (loaded->code && atomic_load(&dev->base.lost))
		rocm_code_keep(loaded->code);
	rocm_give_back(dev, ROCM_KIND_CODE, loaded->code, err);
	memset(loaded, 0, sizeof(*loaded));
}

/* What the compiler lets a kernel read of its launch that is the same of all; all else
 * that is hidden is 0. */
static void set_rest(struct rocm_kernel *k)
{
	const uint16_t dimensions = 3;
	const uint16_t *at = k->hidden;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		const uint16_t items = (uint16_t)k->block[i];

		k->groups_at[i] = at[ROCM_HIDDEN_GROUPS + i];
		if (k->groups_at[i] == ROCM_NOWHERE)
			k->groups_at[i] = ROCM_ARGUMENT_BYTES;
		if (at[ROCM_HIDDEN_ITEMS + i] != ROCM_NOWHERE)
			memcpy(k->rest + at[ROCM_HIDDEN_ITEMS + i] - k->rest_at, &items,
			       sizeof(items));
	}
	if (at[ROCM_HIDDEN_DIMENSIONS] != ROCM_NOWHERE)
		memcpy(k->rest + at[ROCM_HIDDEN_DIMENSIONS] - k->rest_at, &dimensions,
		       sizeof(dimensions));
	if (at[ROCM_HIDDEN_SHARED] != ROCM_NOWHERE)
		memcpy(k->rest + at[ROCM_HIDDEN_SHARED] - k->rest_at, &k->shared_bytes,
		       sizeof(k->shared_bytes));
}

int rocm_code_fits(struct rocm_device *dev, struct rocm_kernel *k)
{
	static const uint8_t hidden_bytes[ROCM_HIDDEN_COUNT] = {4, 4, 4, 2, 2, 2, 2, 4};
	const uint32_t all = k->entry.argument_bytes;
	uint32_t i, end = 0;
	bool fits = all <= ROCM_ARGUMENT_BYTES;

	if (k->needs[0])
		return rocm_refuse(dev, ENOTSUP,
				   "kernel %s needs %s from HIP; use queues=stream",
				   k->info.name, k->needs);
	/* One behind the other, as they are written. */
	for (i = 0; i < k->info.arg_count + k->follows; i++) {
		uint32_t bytes = k->params.scalar_bytes[i % HAL_ARGS_MAX];

		if (i == k->info.arg_count)
			bytes = sizeof(struct hal_preempt_launch);
		else if (!bytes)
			bytes = 8;
		fits &= k->at[i] >= end;
		end = k->at[i] + bytes;
	}
	fits &= end <= all;
	for (i = 0; i < ROCM_HIDDEN_COUNT; i++)
		fits &= k->hidden[i] == ROCM_NOWHERE ||
			(k->hidden[i] >= end &&
			 (uint32_t)k->hidden[i] + hidden_bytes[i] <= all);
	if (!fits)
		return rocm_refuse(dev, EINVAL,
				   "kernel %s: its arguments have %u bytes, but the code "
				   "places some elsewhere or needs more than %u bytes",
				   k->info.name, all, ROCM_ARGUMENT_BYTES);
	rocm_aql_packet(&k->entry, k->block, k->shared_bytes, &k->packet);
	k->rest_at = (uint16_t)end;
	set_rest(k);
	return 0;
}
