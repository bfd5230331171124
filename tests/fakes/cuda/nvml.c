/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 without a GPU: what the backend asks of MIG instances (mig.h).
 * Every second number of an instance is that of one that has been destroyed. */
#include "mig.h"

#define EXPORT        __attribute__((visibility("default")))
#define UNINITIALIZED 1
#define INVALID       2
#define NOT_FOUND     6
#define SMALL         7

struct attributes {
	uint32_t multiprocessors, engines[5], gpu_slices, compute_slices;
	unsigned long long memory_mib;
};

static int users;
static char handles[2 * MIG_MOST + 2]; /* two GPUs, then instances */

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(uint32_t *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **device);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index,
					       void **instance);
EXPORT int nvmlDeviceGetUUID(void *device, char *text, uint32_t bytes);
EXPORT int nvmlDeviceGetName(void *device, char *text, uint32_t bytes);
EXPORT int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *id);
EXPORT int nvmlDeviceGetAttributes_v2(void *device, struct attributes *a);

EXPORT int nvmlInit_v2(void)
{
	users++;
	return getenv("HAL_STAND_IN_NVML_FAILS") ? 9 : 0;
}

EXPORT int nvmlShutdown(void)
{
	return users-- > 0 ? 0 : UNINITIALIZED;
}

EXPORT int nvmlDeviceGetCount_v2(uint32_t *count)
{
	*count = 2;
	return users ? 0 : UNINITIALIZED;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **device)
{
	*device = &handles[index];
	return users && index < 2 ? 0 : INVALID;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *count)
{
	struct mig_instance all[MIG_MOST];

	*count = device == &handles[0] && mig_read(all) ? 2 * MIG_MOST : 0;
	return users ? 0 : UNINITIALIZED;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index,
					       void **instance)
{
	struct mig_instance all[MIG_MOST];

	if (device != &handles[0] || index % 2 || index / 2 >= mig_read(all))
		return NOT_FOUND;
	*instance = &handles[2 + index / 2];
	return 0;
}

/* -1: it is no instance. */
static int instance_of(const void *device, struct mig_instance *m)
{
	struct mig_instance all[MIG_MOST];
	const int i = (int)((const char *)device - handles) - 2;

	if (i < 0 || (uint32_t)i >= mig_read(all))
		return -1;
	*m = all[i];
	return i;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, uint32_t bytes)
{
	struct mig_instance m;
	const int i = instance_of(device, &m);

	if (bytes < 48)
		return SMALL;
	if (i < 0)
		(void)snprintf(text, bytes, "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0");
	else
		mig_uuid_text((uint32_t)i, text);
	return 0;
}

EXPORT int nvmlDeviceGetName(void *device, char *text, uint32_t bytes)
{
	struct mig_instance m = {0};

	if (instance_of(device, &m) < 0)
		return INVALID;
	(void)snprintf(text, bytes, "HAL stand-in GPU MIG %s", m.profile);
	return 0;
}

EXPORT int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *id)
{
	struct mig_instance m = {0};

	if (instance_of(device, &m) < 0)
		return INVALID;
	*id = m.gpu_instance;
	return 0;
}

EXPORT int nvmlDeviceGetAttributes_v2(void *device, struct attributes *a)
{
	struct mig_instance m = {0};

	if (instance_of(device, &m) < 0)
		return INVALID;
	*a = (struct attributes){.multiprocessors = m.multiprocessors,
				 .memory_mib = m.mib};
	return 0;
}
