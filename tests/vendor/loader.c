/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong before there is a device: see loader.h. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

enum { TEXT_MOST = 256 };

extern const struct hal_host host; /* of the vendor's host.c */
extern char host_text[512];

static const struct loader_vendor *const v = &loader_vendor;

int loader_child(int (*body)(const void *arg), const void *arg)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(body(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

bool loader_result(const char *what, int got, int want, const char *const texts[2])
{
	bool ok = got == want || (want == LOADER_FAILS && got < 0);
	int i;

	for (i = 0; i < 2 && ok && want < 0 && texts[i]; i++)
		ok = strstr(host_text, texts[i]) != NULL;
	if (!ok && what)
		fprintf(stderr, "%s: %d, not %d; \"%s\" must have \"%s\" \"%s\"\n", what,
			got, want, host_text, texts[0] ? texts[0] : "",
			texts[1] ? texts[1] : "");
	return ok;
}

/* ---- rows ---------------------------------------------------------------------------- */

/* A row, and the number in place of its #. */
struct
try {
	const struct loader_row *row;
	int nth;
};

/* Print the difference unless several numbers are tried. */
static const char *what(const struct try *t, const char *call)
{
	return t->row->nth ? NULL : call;
}

/* set is as in struct loader_row. */
static void set_variable(const char *set, int nth)
{
	const char *value = strchr(set, '='), *mark = strchr(set, '#');
	char name[TEXT_MOST], text[2 * TEXT_MOST];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(set, "="), set);
	if (!value) {
		unsetenv(name);
		return;
	}
	value++;
	if (nth && mark)
		snprintf(text, sizeof(text), "%.*s%d%s", (int)(mark - value), value, nth,
			 mark + 1);
	else
		snprintf(text, sizeof(text), "%s", value);
	setenv(name, text, 1);
}

static bool same_devices(const struct try *t, const struct hal_device_info *info)
{
	const struct loader_row *r = t->row;
	bool ok = (!r->device || strcmp(info[0].name, r->device) == 0) &&
		  (!r->bus_id || strcmp(info[0].bus_id, r->bus_id) == 0) &&
		  (!r->second || strstr(info[1].name, r->second));
	bool given = false;
	int i;

	for (i = 0; i < LOADER_DEVICES; i++)
		given |= r->units[i] != 0;
	for (i = 0; given && ok && i < r->probe; i++)
		ok = info[i].unit_cols == r->units[i];
	for (i = 0; !ok && what(t, "") && i < r->probe; i++)
		fprintf(stderr, "device %d: \"%s\", bus \"%s\", %u columns\n", i,
			info[i].name, info[i].bus_id, info[i].unit_cols);
	return ok;
}

static int try_row(const void *arg)
{
	const struct try *t = arg;
	const struct loader_row *r = t->row;
	const struct hal_backend *b = v->backend(&host);
	struct hal_device_info info[LOADER_DEVICES];
	const int open = r->open || r->probe >= 0 || r->once ? r->open : r->probe;
	void *dev = NULL;
	int i, err;

	for (i = 0; i < 3 && r->set[i]; i++)
		set_variable(r->set[i], r->nth ? t->nth : 0);
	memset(info, 0, sizeof(info));
	for (i = 0; i < LOADER_DEVICES; i++)
		info[i].size = sizeof(info[i]);
	err = b->cold.probe(r->cfg, info, LOADER_DEVICES);
	if (!loader_result(what(t, "probe"), err, r->probe, r->texts) ||
	    !same_devices(t, info))
		return 1;
	for (i = 0; i < 2; i++) {
		err = b->cold.open(r->cfg, 0, &dev);
		if (!loader_result(what(t, i ? "open again" : "open"), err, open,
				   r->texts))
			return 1;
		if (!err)
			b->cold.close(dev);
		if (open == LOADER_FAILS)
			break; /* what a second try gives depends on the library */
	}
	return 0;
}

void loader_check(const struct loader_row *row)
{
	struct try t = {.row = row};

	do {
		t.nth++;
		if (loader_child(try_row, &t) == 0)
			return;
	} while (t.nth < row->nth);
	fail_msg("%s: other results", row->name);
}

static void check_row(void **state)
{
	loader_check(*state);
}

/* ---- another library ----------------------------------------------------------------- */

static int try_another(const void *arg)
{
	const struct loader_another *a = arg;
	const char *const none[2] = {NULL, NULL}, *const busy[2] = {a->busy, NULL};
	const char *const beyond[2] = {a->beyond, NULL};
	const struct hal_backend *b = v->backend(&host);
	struct hal_device_info info[2];
	void *dev = NULL;
	int err;

	memset(info, 0, sizeof(info));
	info[0].size = info[1].size = sizeof(info[0]);
	err = b->cold.probe(a->other, info, 2);
	if (!loader_result("probe without a library", err, -ENODEV, none))
		return 1;
	err = b->cold.probe(a->found, info, 2);
	if (!loader_result("probe", err, a->devices, none))
		return 1;
	if (!(info[0].caps & HAL_CAP_STAND_IN) ||
	    strcmp(info[1].bus_id, a->bus_id) != 0) {
		fprintf(stderr, "device 0: caps 0x%llx; device 1: bus \"%s\"\n",
			(unsigned long long)info[0].caps, info[1].bus_id);
		return 1;
	}
	err = b->cold.probe(a->other, info, 2);
	if (!loader_result("probe of another", err, -EBUSY, busy))
		return 1;
	err = b->cold.open(a->other, 0, &dev);
	if (!loader_result("open of another", err, -EBUSY, busy))
		return 1;
	err = b->cold.open(a->found, (uint32_t)a->devices, &dev);
	return !loader_result("open beyond", err, -ENODEV, beyond);
}

/* A library that did not start is no obstacle to another; one that did is. */
static void another(void **state)
{
	(void)state;
	assert_int_equal(loader_child(try_another, &v->another), 0);
}

int main(void)
{
	struct cases c = {.count = 0};
	uint32_t i;

	for (i = 0; i < v->row_count; i++)
		cases_add(&c, v->rows[i].name, check_row, &v->rows[i]);
	cases_add(&c, "another", another, NULL);
	return cases_run(&c, v->cases, v->case_count, NULL);
}
