/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - read a struct hal_pack at any address, aligned or not. */
#include "lib/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct hal_pack head_of(const void *image)
{
	struct hal_pack head;

	memcpy(&head, image, sizeof(head));
	return head;
}

bool pack_is(const void *image, size_t size)
{
	uint32_t magic;

	if (size < sizeof(magic))
		return false;
	memcpy(&magic, image, sizeof(magic));
	return magic == HAL_PACK_MAGIC;
}

uint32_t pack_count(const void *image)
{
	return head_of(image).count;
}

struct hal_pack_entry pack_entry(const void *image, uint32_t index)
{
	struct hal_pack_entry entry;

	memcpy(&entry,
	       (const uint8_t *)image + sizeof(struct hal_pack) + index * sizeof(entry),
	       sizeof(entry));
	return entry;
}

/* Return whether entry index is valid; if so, set *end to the end of its image.  The
 * images are in the order of the entries and do not overlap. */
static bool entry_check(const void *image, uint32_t index, uint64_t *end, char *why,
			size_t why_size)
{
	const struct hal_pack head = head_of(image);
	const struct hal_pack_entry e = pack_entry(image, index);

	if (memchr(e.label, '\0', sizeof(e.label)) == NULL) {
		snprintf(why, why_size,
			 "the label of image %" PRIu32 " has no terminating NUL", index);
		return false;
	}
	if (e.offset % HAL_PACK_ALIGN != 0 || e.offset < *end || e.offset > head.bytes ||
	    e.bytes > head.bytes - e.offset) {
		snprintf(why, why_size,
			 "image %" PRIu32 " claims %" PRIu64 " bytes at offset %" PRIu64
			 ", which is not %u-aligned or not within bytes %" PRIu64
			 " to %" PRIu64,
			 index, e.bytes, e.offset, HAL_PACK_ALIGN, *end, head.bytes);
		return false;
	}
	if (e.bytes == 0) {
		snprintf(why, why_size, "image %" PRIu32 " is empty", index);
		return false;
	}
	if (pack_is((const uint8_t *)image + e.offset, e.bytes)) {
		snprintf(why, why_size,
			 "image %" PRIu32 " is itself a pack; packs cannot contain packs",
			 index);
		return false;
	}
	*end = e.offset + e.bytes;
	return true;
}

bool pack_check(const void *image, size_t size, char *why, size_t why_size)
{
	struct hal_pack head;
	uint64_t end;

	if (size < sizeof(head)) {
		snprintf(why, why_size, "truncated in its header: %zu bytes", size);
		return false;
	}
	head = head_of(image);
	if (head.version != HAL_PACK_VERSION ||
	    head.entry_size != sizeof(struct hal_pack_entry)) {
		snprintf(why, why_size,
			 "version %" PRIu32 " with entries of %" PRIu32
			 " bytes is not supported; supported: %u with %zu",
			 head.version, head.entry_size, HAL_PACK_VERSION,
			 sizeof(struct hal_pack_entry));
		return false;
	}
	if (head.bytes != size) {
		snprintf(why, why_size,
			 "the header states %" PRIu64 " bytes, but there are %zu",
			 head.bytes, size);
		return false;
	}
	if (head.count == 0 || head.count > HAL_PACK_IMAGES_MAX) {
		snprintf(why, why_size, "it has %" PRIu32 " images; 1 to %u are allowed",
			 head.count, HAL_PACK_IMAGES_MAX);
		return false;
	}
	end = sizeof(head) + (uint64_t)head.count * head.entry_size;
	if (end > size) {
		snprintf(why, why_size,
			 "truncated in its table: %zu bytes for %" PRIu32 " images", size,
			 head.count);
		return false;
	}
	for (uint32_t i = 0; i < head.count; i++)
		if (!entry_check(image, i, &end, why, why_size))
			return false;
	return true;
}
