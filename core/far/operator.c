/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - the extension "hald" of far devices; see hal/hald.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hald.h>

#include "far/internal.h"
#include "util/error.h"

/* Return the far device dev; NULL with an error. */
static struct far_device *far_of(struct hal_device *dev)
{
	if (OBJECT_IS_FAR((const struct far *)(const void *)dev, OBJECT_DEVICE))
		return (struct far_device *)dev;
	(void)(OBJECT_OK(dev, OBJECT_DEVICE)
		       ? fail(EINVAL, "hald does not serve the device %s", dev->name)
		       : object_bad(dev, OBJECT_DEVICE));
	return NULL;
}

static int tenant_add(struct hal_device *device, const char *section, char *path,
		      uint32_t room)
{
	struct far_device *dev = far_of(device);
	char answer[256];
	struct far_call c = {.op = FAR_TENANT_ADD,
			     .out = section,
			     .in = answer,
			     .in_max = sizeof(answer)};
	int err;

	if (dev == NULL)
		return -EINVAL;
	if (section == NULL || path == NULL || room == 0)
		return fail(EINVAL, "tenant_add: %s",
			    section == NULL ? "section is NULL" : "there is no room");
	c.out_bytes = strlen(section) + 1;
	err = far_ask(dev, &c);
	if (err == 0)
		format_text(path, room, "%.*s", (int)sizeof(answer), answer);
	return err;
}

static int tenant_remove(struct hal_device *device, const char *name)
{
	struct far_device *dev = far_of(device);
	struct far_call c = {.op = FAR_TENANT_REMOVE, .out = name};

	if (dev == NULL)
		return -EINVAL;
	if (name == NULL)
		return fail(EINVAL, "tenant_remove: name is NULL");
	c.out_bytes = strlen(name) + 1;
	return far_ask(dev, &c);
}

/* Write the text that hald answers to op, a request without arguments, to text.  what
 * names the caller's function in messages. */
static int get_text(struct hal_device *device, uint32_t op, const char *what, char *text,
		    uint32_t room)
{
	struct far_device *dev = far_of(device);
	struct far_call c = {.op = op, .in_any = true};
	int err;

	if (dev == NULL)
		return -EINVAL;
	if (text == NULL || room == 0)
		return fail(EINVAL, "%s: there is no room", what);
	err = far_ask(dev, &c);
	if (err != 0)
		return err;
	if (strnlen(c.in, c.in_bytes) >= room)
		err = fail(ENOBUFS, "%s: the text has more than %u bytes", what,
			   room - 1);
	else
		format_text(text, room, "%.*s", (int)c.in_bytes, (const char *)c.in);
	free(c.in);
	return err;
}

static int tenant_list(struct hal_device *dev, char *text, uint32_t room)
{
	return get_text(dev, FAR_TENANT_LIST, "tenant_list", text, room);
}

static int status(struct hal_device *dev, char *text, uint32_t room)
{
	return get_text(dev, FAR_STATUS, "status", text, room);
}

static int trace_start(struct hal_device *device, const char *path, uint64_t bytes)
{
	if (far_of(device) == NULL)
		return -EINVAL;
	if (bytes == 0)
		return fail(EINVAL, "trace_start: bytes is 0");
	return far_trace_start(device, path, bytes);
}

static int trace_stop(struct hal_device *device, uint64_t *events, uint64_t *dropped)
{
	return far_of(device) != NULL ? far_trace_stop(device, events, dropped) : -EINVAL;
}

static const struct hal_hald_extension table = {
	.size = sizeof(table),
	.tenant_add = tenant_add,
	.tenant_remove = tenant_remove,
	.tenant_list = tenant_list,
	.status = status,
	.trace_start = trace_start,
	.trace_stop = trace_stop,
};

const void *far_device_extension(struct hal_device *dev, const char *name)
{
	(void)dev;
	return strcmp(name, "hald") == 0 ? &table : NULL;
}
