/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pack.c - any bytes as a pack: every byte of every image it names can be read, and
 * every label is a text; or it is refused and why. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/pack.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	const uint32_t count = index + 1;
	const size_t table =
		sizeof(struct hal_pack) + count * sizeof(struct hal_pack_entry);
	const size_t first =
		(table + HAL_PACK_ALIGN - 1) / HAL_PACK_ALIGN * HAL_PACK_ALIGN;
	const struct hal_pack head = {HAL_PACK_MAGIC, HAL_PACK_VERSION,
				      first + (size_t)count * HAL_PACK_ALIGN, count,
				      sizeof(struct hal_pack_entry)};

	if (index >= 3 || head.bytes > max)
		return 0;
	memset(data, 0x5a, head.bytes);
	memcpy(data, &head, sizeof(head));
	for (uint32_t i = 0; i < count; i++) {
		struct hal_pack_entry e = {"image", first + i * HAL_PACK_ALIGN,
					   HAL_PACK_ALIGN - i};

		memcpy(data + sizeof(head) + i * sizeof(e), &e, sizeof(e));
	}
	return head.bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile uint8_t sum = 0;
	char why[200] = "";

	if (!pack_is(data, size))
		return 0;
	if (!pack_check(data, size, why, sizeof(why))) {
		if (!why[0])
			abort();
		return 0;
	}
	for (uint32_t i = 0; i < pack_count(data); i++) {
		const struct hal_pack_entry e = pack_entry(data, i);

		if (!memchr(e.label, 0, sizeof(e.label)) || e.bytes == 0)
			abort();
		for (uint64_t at = 0; at < e.bytes; at++)
			sum ^= data[e.offset + at];
	}
	return 0;
}
