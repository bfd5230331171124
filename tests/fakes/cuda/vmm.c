/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at addresses of one's own, by that of tests/fakes/gpu. */
#define _GNU_SOURCE
#include "internal.h"

static uint32_t check_prop(const struct cu_memory_prop *p)
{
	if (p->type != CU_MEMORY_PINNED || p->location.type != CU_LOCATION_DEVICE ||
	    (p->handles && p->handles != CU_HANDLE_FD) || p->metadata || p->compression ||
	    p->rdma || p->usage)
		return CUR_INVALID_VALUE;
	if (!device_at(p->location.id))
		return CUR_INVALID_DEVICE;
	return p->handles && ignores("HAL_STAND_IN_CUDA_EXPORT") ? CUR_NOT_SUPPORTED
								 : CUR_SUCCESS;
}

uint32_t do_cuMemGetAllocationGranularity(size_t *bytes,
					  const struct cu_memory_prop *prop,
					  uint32_t option)
{
	*bytes = 0x6a756e6b;
	if (option > 1 || check_prop(prop))
		return CUR_INVALID_VALUE;
	*bytes = face.vmm_granule;
	return CUR_SUCCESS;
}

uint32_t do_cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment,
				uint64_t hint, unsigned long long flags)
{
	(void)hint;
	return vmm_reserve(address, bytes, alignment, flags);
}

uint32_t do_cuMemAddressFree(uint64_t address, size_t bytes)
{
	return vmm_free(address, bytes, "cuMemAddressFree");
}

uint32_t do_cuMemCreate(uint64_t *memory, size_t bytes, const struct cu_memory_prop *prop,
			unsigned long long flags)
{
	const uint32_t r = check_prop(prop);

	*memory = 0x6a756e6b;
	return r ? r
		 : vmm_create(memory, bytes, device_at(prop->location.id),
			      prop->handles != 0, flags, "cuMemCreate");
}

uint32_t do_cuMemRelease(uint64_t memory)
{
	return vmm_release(memory);
}

uint32_t do_cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t memory,
		     unsigned long long flags)
{
	return vmm_map(address, bytes, offset, memory, flags, "cuMemMap");
}

uint32_t do_cuMemSetAccess(uint64_t address, size_t bytes, const struct cu_access *desc,
			   size_t count)
{
	if (count != 1 || desc->location.type != CU_LOCATION_DEVICE)
		return CUR_INVALID_VALUE;
	if (desc->flags && desc->flags != CU_ACCESS_READ_WRITE)
		return CUR_NOT_SUPPORTED;
	return vmm_access(address, bytes, device_at(desc->location.id), desc->flags != 0,
			  "cuMemSetAccess");
}

uint32_t do_cuMemUnmap(uint64_t address, size_t bytes)
{
	return vmm_unmap(address, bytes, "cuMemUnmap");
}

uint32_t do_cuMemRetainAllocationHandle(uint64_t *memory, void *address)
{
	return vmm_retain(memory, (uintptr_t)address);
}

/* The descriptor is written to where the first argument says. */
uint32_t do_cuMemExportToShareableHandle(void *fd, uint64_t memory, uint32_t type,
					 unsigned long long flags)
{
	return type == CU_HANDLE_FD ? vmm_export(fd, memory, flags) : CUR_INVALID_VALUE;
}

/* The second argument is the descriptor itself. */
uint32_t do_cuMemImportFromShareableHandle(uint64_t *memory, void *fd, uint32_t type)
{
	int devices = 0;

	*memory = 0x6a756e6b;
	while (device_at(devices))
		devices++;
	if (type != CU_HANDLE_FD || (uintptr_t)fd > INT32_MAX)
		return CUR_INVALID_VALUE;
	return vmm_import(memory, (int)(uintptr_t)fd, (uint32_t)devices);
}
