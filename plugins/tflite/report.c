/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the summary line that is always written, and the log that the user asks for.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plug.h"

void report_line(const char *severity, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* One call, so that lines of several threads do not mix. */
	fprintf(stderr, "%s: accelhal: %s\n", severity, text);
}

/* Do two nodes of the same operator stay on the CPU for the same reason? */
static bool alike(const struct node *a, const struct node *b)
{
	char x[NPUC_OPERATOR_NAME], y[NPUC_OPERATOR_NAME];

	if (a->item.code != b->item.code || strcmp(a->reason, b->reason) != 0)
		return false;
	item_name(&a->item, x, sizeof(x));
	item_name(&b->item, y, sizeof(y));
	return strcmp(x, y) == 0;
}

#define GROUPS_SHOWN 6

struct group {
	const struct node *first;
	uint32_t count;
};

/* Count nodes that are alike.  Returns the number of groups; *more counts the nodes of
 * groups beyond GROUPS_SHOWN. */
static uint32_t group_nodes(const struct claims *c, struct group groups[GROUPS_SHOWN],
			    uint32_t *more)
{
	uint32_t count = 0;

	*more = 0;
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->nodes[i];
		uint32_t g = 0;

		if (!n->reason[0] || node_taken(n))
			continue;
		while (g < count && !alike(groups[g].first, n))
			g++;
		if (g == GROUPS_SHOWN) {
			++*more;
			continue;
		}
		if (g == count)
			groups[count++] = (struct group){.first = n};
		groups[g].count++;
	}
	return count;
}

void report_left(const struct claims *c, char *text, size_t size)
{
	struct group groups[GROUPS_SHOWN];
	uint32_t more, count = group_nodes(c, groups, &more);
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		const struct node *n = groups[i].first;
		char name[NPUC_OPERATOR_NAME];

		item_name(&n->item, name, sizeof(name));
		snprintf(text + at, size - at, "%s%u %s", at ? ", " : "", groups[i].count,
			 name);
		at += strlen(text + at);
		/* Give a reason once, behind the operators that it is of. */
		if (i + 1 < count && strcmp(n->reason, groups[i + 1].first->reason) == 0)
			continue;
		snprintf(text + at, size - at, " (%s)", n->reason);
		at += strlen(text + at);
	}
	if (more)
		snprintf(text + at, size - at, ", and %u more nodes (log=2 lists them)",
			 more);
}

static void report_parts(const struct claims *c)
{
	for (uint32_t i = 0; i < c->part_count; i++) {
		const struct part *p = &c->parts[i];

		report_line("INFO",
			    "partition %u of %u: %u node%s from node %d, %u in, %u out, "
			    "%" PRIu64 " MACs, %" PRIu64
			    " cycles estimated, %.0f cycles saved",
			    i + 1, c->part_count, p->nodes, p->nodes == 1 ? "" : "s",
			    p->first, p->inputs, p->outputs, p->macs, p->cycles,
			    p->saved);
	}
}

static void report_nodes(const struct claims *c)
{
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->nodes[i];
		char name[NPUC_OPERATOR_NAME];

		if (!n->reason[0] || node_taken(n))
			continue;
		item_name(&n->item, name, sizeof(name));
		report_line("INFO", "node %d (%s) stays on the CPU: %s", n->item.index,
			    name, n->reason);
	}
}

void report_claims(const struct claims *c)
{
	uint64_t macs = 0, all = 0, cycles = 0;
	uint32_t nodes = 0, count = 0, parts = c->part_count;
	char left[1024];

	for (uint32_t i = 0; i < c->node_count; i++) {
		bool taken = !c->nodes[i].reason[0];

		count += !node_taken(&c->nodes[i]);
		all += c->nodes[i].macs;
		macs += taken ? c->nodes[i].macs : 0;
		nodes += taken;
	}
	for (uint32_t i = 0; i < parts; i++)
		cycles += c->parts[i].cycles;
	report_left(c, left, sizeof(left));
	report_line(nodes || !count ? "INFO" : "WARNING",
		    "%u of %u nodes, %" PRIu64 " of %" PRIu64
		    " MACs in %u partition%s on %s with %u units, %" PRIu64
		    " cycles estimated%s%s",
		    nodes, count, macs, all, parts, parts == 1 ? "" : "s", c->p->device,
		    c->p->info.units, cycles,
		    left[0] ? "; the CPU keeps " : "; nothing stays on the CPU", left);
	if (c->p->o.log >= 1)
		report_parts(c);
	if (c->p->o.log >= 2)
		report_nodes(c);
}
