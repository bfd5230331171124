/* SPDX-License-Identifier: Apache-2.0 */
/* partition_section.c - read [partition "name"] into a partition's description. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/options.h"
#include "util/error.h"

/* Parse a set of channels, a list like "0,2-3" or a mask like "0xd", into *mask. */
static int parse_colors(const char *text, uint64_t *mask)
{
	const char *p = text;

	*mask = 0;
	if (strncasecmp(p, "0x", 2) == 0) {
		char *end;

		errno = 0;
		*mask = strtoull(p, &end, 16);
		return *end == '\0' && errno == 0 && end > p + 2 ? 0 : -EINVAL;
	}
	while (*p != '\0') {
		char *end;
		unsigned long first, last;

		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		first = strtoul(p, &end, 10);
		last = first;
		if (*end == '-') {
			p = end + 1;
			if (!isdigit((unsigned char)*p))
				return -EINVAL;
			last = strtoul(p, &end, 10);
		}
		if (first > last || last > 63)
			return -EINVAL;
		for (unsigned long c = first; c <= last; c++)
			*mask |= UINT64_C(1) << c;
		if (*end != '\0' && *end != ',')
			return -EINVAL;
		p = *end == ',' ? end + 1 : end;
		if (*end == ',' && *p == '\0')
			return -EINVAL;
	}
	return 0;
}

/* Return the section name of partition `name` as it is in the entries, and set *source to
 * the place of its header.  Return NULL if there is no such section. */
static const char *section_of(const struct config *cfg, const char *name,
			      const char **source)
{
	const struct config_entry *found = NULL;
	char other[32];

	/* Entries are newest first, so the last one found is the section's header. */
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (config_partition_section(e->section, other, sizeof(other)) &&
		    strcmp(other, name) == 0)
			found = e;
	if (found == NULL)
		return NULL;
	*source = found->source;
	return found->section;
}

static int config_queues(const struct hal_bk_config *v, const char *name,
			 struct hal_queue_desc *out)
{
	out->service_class = (uint16_t)option_int(v, "class");
	out->priority = (int32_t)option_int(v, "priority");
	out->weight = (uint32_t)option_int(v, "weight");
	out->budget_permille = (uint16_t)option_int(v, "budget_permille");
	out->deadline_ns = (uint64_t)option_int(v, "deadline_us") * 1000;
	if (out->service_class != HAL_CLASS_BEST_EFFORT || out->deadline_ns == 0)
		return 0;
	return fail(
		EINVAL,
		"%s: deadline_us = %s in [partition \"%s\"], whose class is best-effort "
		"(%s); best effort has no deadlines",
		option_source(v, "deadline_us"), option_str(v, "deadline_us"), name,
		option_source(v, "class"));
}

static int config_host(const struct hal_bk_config *v, struct config_partition *out)
{
	const struct option_value *host = option_find(v, "host");

	if (host == NULL)
		return 0;
	if (strlen(host->text) >= sizeof(out->host))
		return fail(EINVAL, "%s: host = \"%s\" has more than %zu characters",
			    host->source, host->text, sizeof(out->host) - 1);
	format_text(out->host, sizeof(out->host), "%s", host->text);
	return 0;
}

/* Read option colors.  An empty set is refused if it was written explicitly, because mask
 * 0 means the default: all channels that no partition owns. */
static int config_colors(const struct hal_bk_config *v, struct config_partition *out)
{
	const struct option_value *colors = option_find(v, "colors");

	if (colors == NULL)
		return 0;
	if (parse_colors(colors->text, &out->desc.color_mask) != 0)
		return fail(EINVAL,
			    "%s: colors = \"%s\" is neither a list like 0,2-3 nor a "
			    "mask like 0xd",
			    colors->source, colors->text);
	if (out->desc.color_mask == 0 && strcmp(colors->source, "default") != 0)
		return fail(EINVAL,
			    "%s: colors = \"%s\" names no channel; remove the line to "
			    "use all channels that no partition owns",
			    colors->source, colors->text);
	return 0;
}

int config_partition(const struct config *cfg, const char *name,
		     struct config_partition *out)
{
	struct hal_bk_config *v;
	const char *section, *source = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	section = section_of(cfg, name, &source);
	if (section == NULL)
		return fail(ENOENT, "no [partition \"%s\"] in %s", name,
			    cfg->files != NULL ? cfg->files
					       : "the configuration: no file was read");
	err = config_resolve(cfg, section, partition_options, partition_option_count, &v);
	if (err != 0)
		return err;
	out->desc.size = sizeof(out->desc);
	out->desc.row = (uint16_t)option_int(v, "row");
	out->desc.col = (uint16_t)option_int(v, "col");
	out->desc.rows = (uint16_t)option_int(v, "rows");
	out->desc.cols = (uint16_t)option_int(v, "cols");
	out->desc.units_floor = (uint32_t)option_int(v, "units");
	out->desc.units_ceiling = (uint32_t)option_int(v, "ceiling");
	out->desc.shape = (uint32_t)option_int(v, "shape");
	out->desc.memory_bytes = (uint64_t)option_int(v, "memory");
	out->limits.size = sizeof(out->limits);
	out->limits.memory_limit = (uint64_t)option_int(v, "memory_limit");
	out->limits.bandwidth = (uint64_t)option_int(v, "bandwidth");
	out->desc.flags = option_int(v, "bimodal") != 0 ? HAL_PARTITION_BIMODAL : 0;
	out->desc.min_isolation = (uint32_t)option_int(v, "isolation");
	format_text(out->desc.name, sizeof(out->desc.name), "%s", name);
	format_text(out->source, sizeof(out->source), "%s", source);
	err = config_queues(v, name, &out->queues);
	if (err == 0)
		err = config_host(v, out);
	if (err == 0)
		err = config_colors(v, out);
	config_values_free(v);
	return err;
}
