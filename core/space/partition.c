/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - small operations on a partition. */
#include "space/partition.h"

#include "replay/journal.h"
#include "util/error.h"

void partition_describe(const struct hal_partition *p, char *text, size_t size)
{
	format_text(text, size, "partition %u \"%s\"", p->desc.index, p->name);
}

void partition_copies_host(const struct hal_partition *part)
{
	struct hal_partition *host = part->host;

	if (host->command.copies_host)
		return;
	JOURNAL(part->dev, JOURNAL_COPIES_HOST, host->desc.index);
	host->command.copies_host = true;
	if (host->command.inflight_max == 0) /* it must not issue until it has moved */
		return;
	host->command.inflight_max = partition_inflight_max(host);
	partition_runnable(host);
}

const char *buffer_describe(const struct hal_buffer *buf, const char *none,
			    char text[BUFFER_DESCRIPTION])
{
	if (buf->name[0] == '\0')
		return none;
	format_text(text, BUFFER_DESCRIPTION, "buffer \"%s\"", buf->name);
	return text;
}
