/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's library: opened at run time, once a process; what its results mean. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on a kernel's parameters can be asked for and its code loaded beforehand. */
#define VERSION_NEEDED CU_VERSION(12, 4)

struct cu_symbols cu;
_Thread_local struct cu_refused cu_refused;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static char file[256];
static _Atomic(const char *) in_use; /* NULL: none yet; set once all else is there */

/* A driver may take long to start, so a fork does not wait for it.  What another thread
 * was starting is not started here. */
static void in_child(void)
{
	(void)pthread_mutex_init(&load_lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

static const struct {
	const char *name;
	size_t offset;
} table[] = {
#define CU_ROW(name, params, args) {#name, offsetof(struct cu_symbols, name)},
	CU_CALLS(CU_ROW)
#undef CU_ROW
};

#define CHANNELS_DEFAULT 8u
static uint32_t channels = CHANNELS_DEFAULT; /* written before in_use */

uint32_t cu_channels(void)
{
	return channels;
}

/* Read what the driver reads as it starts.  The library does not set the variable itself:
 * setenv() is not safe while other threads of the application read the environment, and
 * all processes that the application starts would have the variable, too. */
static uint32_t read_channels(void)
{
	const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	const unsigned long n = text ? strtoul(text, NULL, 10) : 0;

	if (!n)
		return CHANNELS_DEFAULT;
	return n < CU_CHANNELS_MOST ? (uint32_t)n : CU_CHANNELS_MOST;
}

static void find(void *handle, const char *name, void *to)
{
	void *p = dlsym(handle, name);

	memcpy(to, &p, sizeof(p));
}

/* NULL, or the first that is not there. */
static const char *find_all(void *handle, struct cu_symbols *s)
{
	const char *missing = NULL;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *p = dlsym(handle, table[i].name);

		if (!p && !missing)
			missing = table[i].name;
		memcpy((char *)s + table[i].offset, &p, sizeof(p));
	}
#define CU_FIND(name, params, args) find(handle, #name, &s->name);
	CU_MORE_CALLS(CU_FIND)
	CU_GRAPH_CALLS(CU_FIND)
	CU_VMM_CALLS(CU_FIND)
	CU_SHARE_CALLS(CU_FIND)
	CU_REGISTER_CALLS(CU_FIND)
#undef CU_FIND
	find(handle, "halStandInCudaDrive", &s->drive);
	find(handle, "halStandInCudaAdvance", &s->advance);
	find(handle, "halStandInCudaBusy", &s->busy);
	return missing;
}

static int absent(uint32_t r, const char *call, const char *library)
{
	const char *why = " cannot start";

	if (r == CUR_STUB_LIBRARY)
		why = " is the stub library for linking, not a driver";
	else if (r == CUR_NO_DEVICE)
		why = " finds no GPU";
	else if (r == CUR_SYSTEM_DRIVER_MISMATCH)
		why = " has another version than the kernel driver";
	else if (r >= CUR_MPS_CONNECTION_FAILED && r <= CUR_MPS_MAX_CONNECTIONS_REACHED)
		why = " reaches no MPS server: look into its log, and check "
		      "CUDA_MPS_PIPE_DIRECTORY";
	return cu_host->fail(ENODEV, "cuda: %s: %s (%u): %s%s", call, cu_result_name(r),
			     r, library, why);
}

/* The version comes before what a library of that version may lack. */
static int start(const struct cu_symbols *s, const char *library, const char *missing)
{
	int version = 0;
	uint32_t r;

	if (!s->cuInit || !s->cuDriverGetVersion)
		return cu_host->fail(
			ENODEV, "cuda: %s is not a CUDA driver: it has no %s", library,
			s->cuInit ? "cuDriverGetVersion" : "cuInit");
	r = s->cuInit(0);
	if (r)
		return absent(r, "cuInit", library);
	r = s->cuDriverGetVersion(&version);
	if (r)
		return absent(r, "cuDriverGetVersion", library);
	if (version < VERSION_NEEDED)
		return cu_host->fail(ENODEV,
				     "cuda: the driver supports CUDA %d.%d; CUDA %d.%d "
				     "or later is needed",
				     version / 1000, version % 1000 / 10,
				     VERSION_NEEDED / 1000, VERSION_NEEDED % 1000 / 10);
	if (missing)
		return cu_host->fail(ENODEV, "cuda: %s has no %s", library, missing);
	return 0;
}

/* A driver does not survive being unloaded: what has been started stays. */
static int load(const char *library)
{
	const char *missing, *used = in_use;
	struct cu_symbols s;
	void *handle;
	int err;

	if (used)
		return strcmp(used, library) == 0
			       ? 0
			       : cu_host->fail(EBUSY,
					       "cuda: library=%s cannot be loaded: this "
					       "process already uses %s",
					       library, used);
	if (strlen(library) >= sizeof(file))
		return cu_host->fail(EINVAL, "cuda: library: the file name is too long");
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return cu_host->fail(ENODEV, "cuda: no driver: %s", dlerror());
	missing = find_all(handle, &s);
	channels = read_channels();
	err = start(&s, library, missing);
	if (err)
		return err;
	cu = s;
	snprintf(file, sizeof(file), "%s", library);
	in_use = file;
	return 0;
}

int cu_load(const char *library)
{
	int err;

	pthread_mutex_lock(&load_lock);
	err = load(library);
	pthread_mutex_unlock(&load_lock);
	return err;
}

const char *cu_result_name(uint32_t result)
{
	switch (result) {
	case CUR_SUCCESS:
		return "CUDA_SUCCESS";
#define NAME(name, value)                                                                \
	case CUR_##name:                                                                 \
		return "CUDA_ERROR_" #name;
		CUR_RESULTS(NAME)
#undef NAME
	default:
		return "unknown result";
	}
}

/* The context is gone for good, and for the whole process. */
bool cu_sticky(uint32_t result)
{
	switch (result) {
	case CUR_ECC_UNCORRECTABLE:
	case CUR_NVLINK_UNCORRECTABLE:
	case CUR_CONTAINED:
	case CUR_ILLEGAL_ADDRESS:
	case CUR_LAUNCH_TIMEOUT:
	case CUR_CONTEXT_IS_DESTROYED:
	case CUR_ASSERT:
	case CUR_HARDWARE_STACK_ERROR:
	case CUR_ILLEGAL_INSTRUCTION:
	case CUR_MISALIGNED_ADDRESS:
	case CUR_INVALID_ADDRESS_SPACE:
	case CUR_INVALID_PC:
	case CUR_LAUNCH_FAILED:
	case CUR_TENSOR_MEMORY_LEAK:
	case CUR_MPS_CLIENT_TERMINATED:
	case CUR_EXTERNAL_DEVICE:
	case CUR_UNKNOWN:
		return true;
	default:
		return false;
	}
}

int cu_errno(uint32_t result)
{
	switch (result) {
	case CUR_NOT_READY:
		return EAGAIN;
	case CUR_OUT_OF_MEMORY:
		return ENOSPC;
	case CUR_DEVICE_UNAVAILABLE:
	case CUR_HOST_MEMORY_ALREADY_REGISTERED:
	case CUR_MPS_SERVER_NOT_READY:
	case CUR_MPS_MAX_CLIENTS_REACHED:
	case CUR_MPS_MAX_CONNECTIONS_REACHED:
		return EBUSY;
	case CUR_NOT_PERMITTED:
		return EPERM;
	case CUR_NO_BINARY_FOR_GPU:
	case CUR_UNSUPPORTED_PTX_VERSION:
	case CUR_JIT_COMPILER_NOT_FOUND:
	case CUR_JIT_COMPILATION_DISABLED:
	case CUR_NOT_SUPPORTED:
	case CUR_UNSUPPORTED_LIMIT:
	case CUR_CDP_NOT_SUPPORTED:
		return ENOTSUP;
	case CUR_NOT_INITIALIZED:
	case CUR_DEINITIALIZED:
	case CUR_STUB_LIBRARY:
	case CUR_NO_DEVICE:
	case CUR_SYSTEM_NOT_READY:
	case CUR_SYSTEM_DRIVER_MISMATCH:
	case CUR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
	case CUR_MPS_CONNECTION_FAILED:
		return ENODEV;
	case CUR_INVALID_CONTEXT: /* no argument of the application's is a context */
	case CUR_OPERATING_SYSTEM:
	case CUR_MPS_RPC_FAILURE:
		return EIO;
	default:
		return cu_sticky(result) ? EIO : EINVAL;
	}
}

int cu_failed(struct cu_device *dev, uint32_t result, const char *call)
{
	unsigned int none = 0;

	cu_refused = (struct cu_refused){call, result};
	if (dev && cu_sticky(result))
		(void)atomic_compare_exchange_strong(&dev->base.lost, &none, result);
	return cu_host->fail(cu_errno(result), "cuda: %s: %s (%u)", call,
			     cu_result_name(result), result);
}
