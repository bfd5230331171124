/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hald.h - what the operator of hald can do with a device that hald serves.
 *
 *   const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");
 *
 * Only the user that hald runs as, root, and tenants with admin = yes may call these
 * functions; hald.conf(5) has the keys of a tenant.
 */
#ifndef HAL_HALD_H
#define HAL_HALD_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors of all: handle; EPERM: the caller is no operator; ENODEV: hald has ended.
 * Threads: any. */
struct hal_hald_extension {
	uint32_t size;
	uint32_t reserved;
	/* Add the tenant whose section of hald.conf is `section`, a text of lines that
	 * begins with [tenant "name"].  It comes after the sections of the file.  If it
	 * has a socket, its path is written to path, which has room bytes; else "" is.
	 * Errors: EINVAL: the text is wrong; EEXIST: there is a tenant of that name.
	 * Others: of mkdir, bind. */
	int (*tenant_add)(struct hal_device *dev, const char *section, char *path,
			  uint32_t room);
	/* Remove a tenant, and end its clients, as if they had been killed.
	 * Errors: ENOENT: there is none of that name; EBUSY: it is the only one. */
	int (*tenant_remove)(struct hal_device *dev, const char *name);
	/* Write a line for each tenant to text, which has room bytes: its name, clients,
	 * units, bytes of memory, queues, and the path of its socket or "", with a tab
	 * between two.  What has a limit is written "HAS of LIMIT".
	 * Errors: ENOBUFS: room is too small. */
	int (*tenant_list)(struct hal_device *dev, char *text, uint32_t room);
};

#ifdef __cplusplus
}
#endif
#endif
