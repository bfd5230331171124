/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - host memory that the device's copy engines reach: allocate and register it.
 *
 * Such memory is a buffer whose .user is NULL and whose .host_user is its partition: only
 * copies accept it (write.c).  hal_buffer_destroy destroys it.
 */
#include <errno.h>

#include "api/handle.h"
#include "far/far.h"

/* Check what both functions need; name is the function's.  Return 0 or -errno. */
static int check(struct hal_partition *part, uint64_t cap, const char *name)
{
	int err = device_alive(part->dev);

	if (err == 0 && (part->dev->info.caps & cap) == 0)
		err = fail(ENOTSUP, "%s: %s cannot copy to and from %s host memory", name,
			   part->dev->name,
			   cap == HAL_CAP_HOST_COPY ? "allocated" : "registered");
	return err;
}

int hal_host_alloc(struct hal_partition *part, uint64_t bytes, struct hal_buffer **host,
		   void **address)
{
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_host_alloc(part, bytes, host, address));
	if (host == NULL || address == NULL)
		return fail(EINVAL, "hal_host_alloc: %s is NULL",
			    host == NULL ? "host" : "address");
	if (bytes == 0)
		return fail(EINVAL, "hal_host_alloc: bytes is 0");
	err = check(part, HAL_CAP_HOST_COPY, "hal_host_alloc");
	if (err == 0)
		err = buffer_make_host(part, NULL, bytes, host);
	if (err == 0)
		*address = (*host)->address;
	return err;
}

int hal_host_register(struct hal_partition *part, void *address, uint64_t bytes,
		      struct hal_buffer **host)
{
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION, far_host_register());
	if (host == NULL || address == NULL)
		return fail(EINVAL, "hal_host_register: %s is NULL",
			    host == NULL ? "host" : "address");
	if (bytes == 0)
		return fail(EINVAL, "hal_host_register: bytes is 0");
	if (bytes > UINTPTR_MAX - (uintptr_t)address)
		return fail(
			EINVAL,
			"hal_host_register: %llu bytes at %p exceed the address space",
			U64(bytes), address);
	err = check(part, HAL_CAP_HOST_REGISTER, "hal_host_register");
	return err != 0 ? err : buffer_make_host(part, address, bytes, host);
}
