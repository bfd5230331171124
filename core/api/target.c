/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - parse target strings and probe backends. */
#include "api/target.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

int target_parse(const char *text, struct target *t)
{
	size_t length = strcspn(text, ":?");
	const char *p = text + length;

	memset(t, 0, sizeof(*t));
	if (length == 0 || length >= sizeof(t->backend))
		return fail(EINVAL,
			    "target \"%s\" is not of the form "
			    "backend[:index][?key=value&...]",
			    text);
	memcpy(t->backend, text, length);
	if (*p == ':') {
		char *end;
		unsigned long n = strtoul(p + 1, &end, 10);

		if (!isdigit((unsigned char)p[1]) || n > 65535 ||
		    (*end != '\0' && *end != '?'))
			return fail(EINVAL,
				    "target \"%s\": \"%s\" is not a device number", text,
				    p + 1);
		t->index = (uint32_t)n;
		p = end;
	}
	t->query = *p == '?' ? p + 1 : NULL;
	return 0;
}

void list_backends(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < registry_count() && used < size; i++) {
		format_text(text + used, size - used, " %s", registry_at(i)->table.name);
		used += strlen(text + used);
	}
}

int backend_check(const struct backend *b)
{
	return b->err != 0 ? fail(-b->err, "%s", b->why) : 0;
}

int backend_probe(const struct config *cfg, const struct backend *b,
		  struct hal_device_info *out, uint32_t max)
{
	struct hal_bk_config *values;
	int n;
	int err = backend_check(b);

	if (err == 0)
		err = config_resolve(cfg, b->section, b->table.options,
				     b->table.option_count, &values);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < max; i++) {
		memset(&out[i], 0, sizeof(out[i]));
		out[i].size = sizeof(out[i]);
	}
	n = b->table.cold.probe(values, out, max);
	config_values_free(values);
	if (n == 0)
		return fail(ENODEV, "no device found");
	for (uint32_t i = 0; n > 0 && i < max && i < (uint32_t)n; i++)
		if (out[i].backend[0] == '\0')
			format_text(out[i].backend, sizeof(out[i].backend), "%s",
				    b->table.name);
	return n;
}

const char *backend_reason(const struct backend *b)
{
	const char *text = hal_last_error();
	size_t length = strlen(b->table.name);

	if (strncmp(text, b->table.name, length) == 0 &&
	    strncmp(text + length, ": ", 2) == 0)
		return text + length + 2;
	return text;
}

static void log_probe(const struct backend *b, int n)
{
	if (n > 0)
		LOG(HAL_LOG_DEBUG, "backend %s: has %d device%s", b->table.name, n,
		    n == 1 ? "" : "s");
	else
		LOG(HAL_LOG_DEBUG, "backend %s: %s", b->table.name, backend_reason(b));
}

int target_best(const struct config *cfg, struct target *t)
{
	const struct backend *best = NULL;
	char reasons[384] = "";
	size_t used = 0;

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < registry_count(); i++) {
		const struct backend *b = registry_at(i);
		struct hal_device_info info;
		int n;

		if (best != NULL && b->table.score <= best->table.score) {
			LOG(HAL_LOG_DEBUG, "backend %s: not tried, %s is better",
			    b->table.name, best->table.name);
			continue;
		}
		n = backend_probe(cfg, b, &info, 1);
		log_probe(b, n);
		if (n > 0) {
			best = b;
			continue;
		}
		/* Report a wrong option instead of taking the device for absent. */
		if (n == -EINVAL && b->err == 0)
			return n;
		if (used < sizeof(reasons)) {
			format_text(reasons + used, sizeof(reasons) - used, "; %s: %s",
				    b->table.name, backend_reason(b));
			used += strlen(reasons + used);
		}
	}
	if (best == NULL)
		return fail(ENODEV, "no device is present%s",
			    reasons[0] != '\0' ? reasons : ": no backend is built in");
	format_text(t->backend, sizeof(t->backend), "%s", best->table.name);
	return 0;
}
