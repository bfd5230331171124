/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - the name of a partition in error messages. */
#include "space/partition.h"

#include "util/error.h"

void partition_describe(const struct hal_partition *p, char *text, size_t size)
{
	format_text(text, size, "partition %u \"%s\"", p->desc.index, p->name);
}
