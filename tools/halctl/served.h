/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served.h - a device that hald serves, and the status that hald reports of it
 * (hal/hald.h).
 *
 * The caller is an operator of that hald, or is told that it is none.
 */
#ifndef HALCTL_SERVED_H
#define HALCTL_SERVED_H

#include <stdbool.h>

#include <hal/hald.h>

#include "halctl.h"
#include "lib/json.h"
#include "sheet.h"

struct served {
	struct hal_device *dev;
	const struct hal_hald_extension *hald;
};

/* Return whether target is one of hald. */
bool served_is(const char *target);
/* Open the target of ctl, which must be one of hald, for the command `what`.  Return 0,
 * TOOL_FAILED or TOOL_USAGE. */
int served_open(const struct halctl *ctl, const char *what, struct served *s);
/* Close it; return rc, or TOOL_FAILED if that fails. */
int served_close(struct served *s, int rc);

/* Ask for the status.  Return its tree, and its text unless text is NULL, both to be
 * freed; NULL: why. */
struct json *served_status(const struct served *s, char **text, char why[JSON_WHY]);

/* Return the first member of the list `key` of object; NULL: it is no list of objects, or
 * empty. */
const struct json *served_list(const struct json *object, const char *key);
/* Return the member `key` of object if it is true. */
bool served_truth(const struct json *object, const char *key);

#define PS_LINE 256

/* Draw the clients in the status `now` from row on, without this program itself; return
 * the row after them.  Use is that since `before`; NULL: since each client came. */
uint32_t ps_draw(struct sheet *s, uint32_t row, const struct json *now,
		 const struct json *before);

#endif
