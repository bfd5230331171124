/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi.c - halctl cdi: a specification of the Container Device Interface, by which a
 * container runtime gives a container the socket of a tenant.
 *
 * The folder is mounted, not the socket: a hald that starts again makes another socket.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "served.h"

/* Where the folder is in the container: the default of hal.broker_dir. */
#define FOLDER "/run/hald"

static const char *text_of(const struct json *object, const char *key)
{
	const struct json *v = json_member(object, key);

	return v != NULL && v->type == JSON_TEXT ? v->text : "";
}

/* Return whether CDI accepts name as that of a device. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (isalnum((unsigned char)name[i]) == 0 &&
		    (i == 0 || i + 1 == n || strchr("_-.:", name[i]) == NULL))
			return false;
	return n > 0;
}

static void put_variable(struct out *o, const char *name, const char *value)
{
	char text[512];

	snprintf(text, sizeof(text), "%s=%s", name, value);
	out_str(o, NULL, text);
}

static void put_mount(struct out *o, const char *folder)
{
	static const char *const options[] = {"bind", "ro", "nosuid", "nodev", "noexec"};

	out_list(o, "mounts");
	out_record(o, NULL);
	out_str(o, "hostPath", folder);
	out_str(o, "containerPath", FOLDER);
	/* A socket can be connected to through a mount that is read-only. */
	out_list(o, "options");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		out_str(o, NULL, options[i]);
	out_list_end(o);
	out_record_end(o);
	out_list_end(o);
}

static int print_spec(const char *name, const char *target, const char *folder)
{
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_record(o, NULL);
	out_str(o, "cdiVersion", "0.5.0");
	out_str(o, "kind", "accelhal.dev/hald");
	out_list(o, "devices");
	out_record(o, NULL);
	out_str(o, "name", name);
	out_record(o, "containerEdits");
	out_list(o, "env");
	put_variable(o, "HAL_HAL_DEVICE", target);
	put_variable(o, "HAL_HAL_BROKER_DIR", FOLDER);
	out_list_end(o);
	put_mount(o, folder);
	out_record_end(o);
	out_record_end(o);
	out_list_end(o);
	out_record_end(o);
	return out_finish(o);
}

/* Print the specification for tenant t of the device that is served by that name. */
static int print_tenant(const struct json *t, const char *served)
{
	char name[128], target[128], folder[256];
	char *slash;

	snprintf(name, sizeof(name), "%s-%s", served, text_of(t, "name"));
	snprintf(target, sizeof(target), "hald:%s", served);
	snprintf(folder, sizeof(folder), "%s", text_of(t, "socket"));
	slash = strrchr(folder, '/');
	if (slash == NULL)
		return tool_fail("cdi: tenant %s has no socket that could be given to a "
				 "container: its section needs socket = yes",
				 text_of(t, "name"));
	*slash = '\0';
	if (folder[0] != '/')
		return tool_fail("cdi: the folder %s is not absolute: start hald with "
				 "an absolute --dir",
				 folder);
	if (!is_name(name))
		return tool_fail("cdi: %s cannot be the name of a device: it needs "
				 "letters, digits and inside _ - . :",
				 name);
	return print_spec(name, target, folder);
}

static int print_named(const struct json *status, const char *name)
{
	const struct json *t = served_list(status, "tenants");

	while (t != NULL && (name[0] == '\0' || strcmp(text_of(t, "name"), name) != 0))
		t = t->next;
	return t != NULL
		       ? print_tenant(t, text_of(json_member(status, "device"), "served"))
		       : tool_fail("cdi: there is no tenant \"%s\"", name);
}

int halctl_cdi(const struct halctl *ctl)
{
	char why[JSON_WHY] = "";
	struct json *status;
	struct served s;
	int rc;

	if (ctl->word_count != 2)
		return tool_usage("cdi TARGET TENANT");
	rc = served_open(ctl, "cdi", &s);
	if (rc != 0)
		return rc;
	status = served_status(&s, NULL, why);
	rc = status != NULL ? print_named(status, ctl->words[1]) : tool_fail("%s", why);
	json_free(status);
	return served_close(&s, rc);
}
