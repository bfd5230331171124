/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at addresses of one's own, by that of tests/fakes/gpu.  As releases differ:
 * before 6.1 none is exported, and before 7.1 an import is told where the descriptor is.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

#define JUNK ((void *)(uintptr_t)0x6a756e6b)

static struct device *device_at(int device)
{
	return device >= 0 && device < hip_device_count() ? &world.devices[device] : NULL;
}

bool hip_has_vmm(void)
{
	const char *text = setting("VMM");

	return !text || strcmp(text, "ignored") != 0;
}

static uint32_t check_prop(const struct hip_memory_prop *p)
{
	if (p->type != HIP_MEMORY_PINNED || p->location.type != HIP_LOCATION_DEVICE ||
	    (p->handle && p->handle != HIP_HANDLE_FD) || p->metadata || p->compression ||
	    p->rdma || p->usage)
		return HIPR_InvalidValue;
	return device_at(p->location.id) ? HIPR_Success : HIPR_InvalidValue;
}

uint32_t do_hipRuntimeGetVersion(int *version)
{
	*version = hip_version();
	return HIPR_Success;
}

uint32_t do_hipMemGetAllocationGranularity(size_t *bytes,
					   const struct hip_memory_prop *prop,
					   uint32_t option)
{
	*bytes = 0x6a756e6b;
	if (option > 1 || check_prop(prop))
		return HIPR_InvalidValue;
	*bytes = face.vmm_granule;
	return HIPR_Success;
}

uint32_t do_hipMemCreate(void **memory, size_t bytes, const struct hip_memory_prop *prop,
			 unsigned long long flags)
{
	uint64_t made;
	uint32_t r = check_prop(prop);

	*memory = JUNK;
	if (r)
		return r;
	if (!hip_has_vmm() || (prop->handle && hip_version() < 60100000))
		return HIPR_NotSupported;
	r = vmm_create(&made, bytes, device_at(prop->location.id), prop->handle != 0,
		       flags, "hipMemCreate");
	if (!r)
		*memory = (void *)(uintptr_t)made;
	return r;
}

uint32_t do_hipMemRelease(void *memory)
{
	return vmm_release((uintptr_t)memory);
}

/* A second one of the same memory fails, once the first has been closed. */
uint32_t do_hipMemExportToShareableHandle(void *fd, void *memory, uint32_t type,
					  unsigned long long flags)
{
	struct physical *p = get_any(memory, OBJECT_PHYSICAL);

	if (!p || type != HIP_HANDLE_FD || p->exported)
		return HIPR_InvalidValue;
	p->exported = true;
	return vmm_export(fd, (uintptr_t)memory, flags);
}

uint32_t do_hipMemImportFromShareableHandle(void **memory, void *fd, uint32_t type)
{
	const bool by_value = hip_version() >= 70100000;
	uint64_t made;
	uint32_t r;

	*memory = JUNK;
	if (type != HIP_HANDLE_FD || hip_version() < 60100000)
		return type == HIP_HANDLE_FD ? HIPR_NotSupported : HIPR_InvalidValue;
	if (((uintptr_t)fd <= INT32_MAX) != by_value) {
		misuse("hipMemImportFromShareableHandle: the descriptor %s",
		       by_value ? "is at an address" : "has no address");
		return HIPR_InvalidValue;
	}
	r = vmm_import(&made, by_value ? (int)(uintptr_t)fd : *(const int *)fd,
		       (uint32_t)hip_device_count());
	if (!r)
		*memory = (void *)(uintptr_t)made;
	return r;
}

uint32_t do_hipMemAddressReserve(void **address, size_t bytes, size_t alignment,
				 void *hint, unsigned long long flags)
{
	uint64_t at;
	const uint32_t r = vmm_reserve(&at, bytes, alignment, flags);

	(void)hint;
	*address = r ? JUNK : (void *)(uintptr_t)at;
	return r;
}

uint32_t do_hipMemAddressFree(void *address, size_t bytes)
{
	return vmm_free((uintptr_t)address, bytes, "hipMemAddressFree");
}

/* It goes through the NULL stream, behind all that there is. */
uint32_t do_hipMemMap(void *address, size_t bytes, size_t offset, void *memory,
		      unsigned long long flags)
{
	blocks("hipMemMap");
	return vmm_map((uintptr_t)address, bytes, offset, (uintptr_t)memory, flags,
		       "hipMemMap");
}

uint32_t do_hipMemUnmap(void *address, size_t bytes)
{
	return vmm_unmap((uintptr_t)address, bytes, "hipMemUnmap");
}

uint32_t do_hipMemSetAccess(void *address, size_t bytes, const struct hip_access *desc,
			    size_t count)
{
	if (count != 1 || desc->location.type != HIP_LOCATION_DEVICE)
		return HIPR_InvalidValue;
	if (desc->flags && desc->flags != HIP_ACCESS_READ_WRITE)
		return HIPR_NotSupported;
	return vmm_access((uintptr_t)address, bytes, device_at(desc->location.id),
			  desc->flags != 0, "hipMemSetAccess");
}
