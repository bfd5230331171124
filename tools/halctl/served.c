/* SPDX-License-Identifier: Apache-2.0 */
/* served.c - the status of a device that hald serves; see served.h. */
#include "served.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"

/* Bytes of a status: at first, and at most. */
enum { STATUS_BYTES = 1 << 16, STATUS_MAX = 1 << 26 };

bool served_is(const char *target)
{
	return target != NULL && strncmp(target, "hald:", strlen("hald:")) == 0;
}

int served_open(const struct halctl *ctl, const char *what, struct served *s)
{
	if (ctl->target == NULL)
		return tool_usage("%s: no target given, such as hald:npu0", what);
	if (!served_is(ctl->target))
		return tool_usage("%s: hald does not serve %s; name its target, such as "
				  "hald:npu0",
				  what, ctl->target);
	if (hal_open(ctl->target, ctl->options, &s->dev) != 0)
		return tool_fail_hal();
	s->hald = hal_device_get_extension(s->dev, "hald");
	if (s->hald != NULL &&
	    s->hald->size > offsetof(struct hal_hald_extension, status))
		return 0;
	(void)hal_close(s->dev);
	return tool_fail("%s: the library does not report the status of %s", what,
			 ctl->target);
}

int served_close(struct served *s, int rc)
{
	return hal_close(s->dev) != 0 && rc == 0 ? tool_fail_hal() : rc;
}

/* Return the text of the status, to be freed; NULL: why. */
static char *status_text(const struct served *s, char why[JSON_WHY])
{
	for (uint32_t room = STATUS_BYTES; room <= STATUS_MAX; room *= 2) {
		char *text = malloc(room);
		int err = text != NULL ? s->hald->status(s->dev, text, room) : -ENOMEM;

		if (err == 0)
			return text;
		free(text);
		snprintf(why, JSON_WHY, "%.500s",
			 text != NULL ? hal_last_error() : "out of memory");
		if (err != -ENOBUFS)
			break;
	}
	return NULL;
}

/* Return whether root has what the functions here and their callers rely on. */
static bool is_status(const struct json *root)
{
	const struct json *device = json_member(root, "device");

	if (live_number(root, "hald_status") != 1 || device == NULL ||
	    device->type != JSON_OBJECT)
		return false;
	for (const struct json *t = served_list(root, "tenants"); t != NULL;
	     t = t->next) {
		static const char *const objects[] = {"has", "refused", "ended"};

		for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
			const struct json *o = json_member(t, objects[i]);

			if (o == NULL || o->type != JSON_OBJECT)
				return false;
		}
	}
	return true;
}

struct json *served_status(const struct served *s, char **text, char why[JSON_WHY])
{
	char *answer = status_text(s, why);
	struct json *root;

	if (answer == NULL)
		return NULL;
	root = json_parse(answer, strlen(answer), "hald's status", why);
	if (root != NULL && !is_status(root)) {
		json_free(root);
		root = NULL;
		snprintf(why, JSON_WHY, "hald's status has another version");
	}
	if (root == NULL || text == NULL) {
		free(answer);
		return root;
	}
	*text = answer;
	return root;
}

const struct json *served_list(const struct json *object, const char *key)
{
	const struct json *v = object != NULL ? json_member(object, key) : NULL;

	if (v == NULL || v->type != JSON_LIST)
		return NULL;
	for (const struct json *e = v->first; e != NULL; e = e->next)
		if (e->type != JSON_OBJECT)
			return NULL;
	return v->first;
}

bool served_truth(const struct json *object, const char *key)
{
	const struct json *v = json_member(object, key);

	return v != NULL && v->type == JSON_BOOL && v->truth;
}
