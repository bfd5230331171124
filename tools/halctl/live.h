/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - programs that can be looked at (hal.monitor in hal.conf(5)): finding them,
 * asking them.
 *
 * Each of their devices has a socket DIR/PID.N.  One that refuses is what a program has
 * left that ended without closing its device.  What is answered may be anything.
 */
#ifndef HALCTL_LIVE_H
#define HALCTL_LIVE_H

#include <stddef.h>
#include <sys/types.h>

#include "halctl.h"
#include "lib/json.h"

#define LIVE_MAX    64u
#define LIVE_PATH   108u
#define LIVE_VALUES 1024u /* a device shows no more of anything */

struct live {
	uint32_t count;
	struct live_device {
		char id[32]; /* PID.N */
		uid_t user;
		char path[LIVE_PATH];
	} device[LIVE_MAX];
};

/* Those of this user - for root: of any user - that answer to ctl->program (NULL: all),
 * by id; what is left of this user's ended programs is removed.  TOOL_FAILED, and it is
 * said, when there is none. */
int live_find(const struct halctl *ctl, struct live *l);
/* The same when it must be one. */
int live_find_one(const struct halctl *ctl, struct live *l);

/* words: NULL-ended.  The answer, checked to be of a device when the first is "look",
 * with its text when text is not NULL (to be freed).  NULL: why. */
struct json *live_ask(const struct live_device *d, const char *const *words, char **text,
		      char why[JSON_WHY]);

/* Of what may be anything: a member as a number from 0 up to 1e18, or as text of
 * printable characters, cut to size; 0 and "" where there is none. */
double live_number(const struct json *object, const char *key);
const char *live_text(const struct json *object, const char *key, char *text,
		      size_t size);
/* Its first value; NULL: it is no list of up to LIVE_VALUES objects, or empty. */
const struct json *live_list(const struct json *object, const char *key);

#endif
