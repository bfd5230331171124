/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG instances: parts of a GPU that the device keeps apart, made by an administrator
 * before.  CUDA shows a process some of them as devices: since driver 570 one compute
 * instance of each GPU instance, before that a single one, of those that
 * CUDA_VISIBLE_DEVICES names as CUDA starts.  NVML (libnvidia-ml.so.1, which may be
 * absent) knows all of them.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NVML_UUID_BYTES 96u

struct nvml_attributes {
	uint32_t multiprocessors;
	uint32_t engines[5]; /* that are shared: copies, decoders, encoders, JPEG, OFA */
	uint32_t gpu_slices, compute_slices;
	unsigned long long memory_mib;
};

struct nvml {
	int (*start)(void);
	int (*end)(void);
	int (*count)(uint32_t *count);
	int (*device)(uint32_t index, void **device);
	int (*most)(void *device, uint32_t *count);
	int (*instance)(void *device, uint32_t index, void **instance);
	int (*uuid)(void *device, char *text, uint32_t bytes);
	int (*name)(void *device, char *text, uint32_t bytes);
	int (*gpu_instance)(void *device, uint32_t *id);
	int (*attributes)(void *device, struct nvml_attributes *a);
};

static bool load(struct nvml *n)
{
	static const struct {
		const char *name;
		size_t at;
	} all[] = {
		{"nvmlInit_v2", offsetof(struct nvml, start)},
		{"nvmlShutdown", offsetof(struct nvml, end)},
		{"nvmlDeviceGetCount_v2", offsetof(struct nvml, count)},
		{"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, device)},
		{"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml, most)},
		{"nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml, instance)},
		{"nvmlDeviceGetUUID", offsetof(struct nvml, uuid)},
		{"nvmlDeviceGetName", offsetof(struct nvml, name)},
		{"nvmlDeviceGetGpuInstanceId", offsetof(struct nvml, gpu_instance)},
		{"nvmlDeviceGetAttributes_v2", offsetof(struct nvml, attributes)},
	};
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	size_t i;

	for (i = 0; library && i < sizeof(all) / sizeof(all[0]); i++) {
		void *found = dlsym(library, all[i].name);

		if (!found) {
			(void)dlclose(library);
			return false;
		}
		memcpy((char *)n + all[i].at, &found, sizeof(found));
	}
	return library != NULL; /* it stays loaded */
}

/* "NVIDIA H100 80GB HBM3 MIG 1g.10gb": what is behind "MIG ". */
static const char *profile_of(const char *name)
{
	const char *at = strstr(name, " MIG ");

	return at ? at + strlen(" MIG ") : NULL;
}

static bool read_instance(const struct nvml *n, void *device, uint32_t gpu,
			  struct cu_mig *m)
{
	char uuid[NVML_UUID_BYTES] = "", name[NVML_UUID_BYTES] = "";
	struct nvml_attributes a = {0};
	const char *profile;

	memset(m, 0, sizeof(*m));
	m->gpu = gpu;
	if (n->uuid(device, uuid, sizeof(uuid)) || strncmp(uuid, "MIG-", 4) != 0 ||
	    strlen(uuid) >= sizeof(m->uuid) || n->gpu_instance(device, &m->instance) ||
	    n->attributes(device, &a))
		return false;
	memcpy(m->uuid, uuid, strlen(uuid) + 1);
	m->multiprocessors = a.multiprocessors;
	m->memory_bytes = (uint64_t)a.memory_mib << 20;
	if (!n->name(device, name, sizeof(name)) && (profile = profile_of(name)))
		snprintf(m->profile, sizeof(m->profile), "%.15s", profile);
	return true;
}

static uint32_t list_all(const struct nvml *n, struct cu_mig *out, uint32_t max)
{
	uint32_t gpus = 0, g, i, most, count = 0;
	void *gpu, *instance;

	if (n->count(&gpus))
		return 0;
	for (g = 0; g < gpus; g++) {
		if (n->device(g, &gpu) || n->most(gpu, &most))
			continue;
		/* Numbers have gaps where instances have been destroyed. */
		for (i = 0; i < most && count < max; i++)
			if (!n->instance(gpu, i, &instance))
				count += read_instance(n, instance, g, &out[count]);
	}
	return count;
}

uint32_t cu_mig_list(struct cu_mig *out, uint32_t max)
{
	struct nvml n;
	uint32_t count;

	if (!load(&n) || n.start())
		return 0;
	count = list_all(&n, out, max);
	(void)n.end();
	return count;
}

void cu_mig_of(int device, const char *name, char uuid[CU_MIG_UUID])
{
	unsigned char u[16];
	uint32_t i;
	int at;

	uuid[0] = 0;
	if (!profile_of(name) || !cu.cuDeviceGetUuid_v2 ||
	    cu.cuDeviceGetUuid_v2(u, device))
		return;
	at = snprintf(uuid, CU_MIG_UUID, "MIG-");
	for (i = 0; i < sizeof(u); i++)
		at += snprintf(uuid + at, CU_MIG_UUID - (size_t)at, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

bool cu_mig_alone(const char *uuid)
{
	static struct cu_mig all[CU_MIG_MOST];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t i, k, n, others = 0;
	bool found = false;

	pthread_mutex_lock(&lock);
	n = cu_mig_list(all, CU_MIG_MOST);
	for (i = 0; i < n && !found; i++)
		found = strcmp(all[i].uuid, uuid) == 0;
	for (k = 0; found && k < n; k++)
		others += k != i - 1 && all[k].gpu == all[i - 1].gpu &&
			  all[k].instance == all[i - 1].instance;
	pthread_mutex_unlock(&lock);
	return found && !others;
}
