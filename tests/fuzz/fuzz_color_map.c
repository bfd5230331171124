/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_color_map.c - any bytes as a map of memory channels, with the sum they ought to
 * have: what is read has a channel for each granule and is the same once written; or it
 * is refused with the file, a line and why. */
#include "fuzz.h"

#include <ctype.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/color_map.h"

#define DEVICE "halmap 1\ndevice ref 1x16 65536\ngranule 4096\n"

static const char *const seeds[] = {
	DEVICE "channels 4\nkind xor\nmask 5\nmask a\nverified 3000 0 0.000998\n",
	DEVICE "channels 6\nkind xormod\nmask 9\nmod 3 1 1 1\nnoise 0.14 0.9999\n",
	DEVICE "channels 3\nkind table\ntable 012012-1\ntable 20120120\n",
	DEVICE "channels 17\nkind table\ntable 000102030405060708090a0b0c0d0e0f\n"
	       "probe 17000 280000 1800000 7\n",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	size_t size;

	if (index >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	size = strlen(seeds[index]);
	if (size > max)
		return 0;
	memcpy(data, seeds[index], size);
	return size;
}

static void try_bytes(const char *bytes, size_t size)
{
	char why[COLOR_MAP_WHY] = "";
	struct color_map *map, *back;
	uint64_t granule;
	size_t n;
	char *text;

	if (color_map_parse(bytes, size, "file", &map, why) != 0) {
		if (strncmp(why, "file:", 5) != 0 || !isdigit((unsigned char)why[5]) ||
		    strstr(why, ": ") == NULL)
			abort();
		return;
	}
	for (uint64_t g = 0; g < color_map_granules(map) && g < 1000; g++) {
		uint32_t c = color_map_channel(map, g);

		if (c >= map->channels && (c != COLOR_NONE || map->table == NULL))
			abort();
	}
	if (color_map_granules(map) <= 1u << 16) {
		text = color_map_text(map, &n, why);
		if (text == NULL || color_map_parse(text, n, "file", &back, why) != 0 ||
		    color_map_differ(map, back, &granule))
			abort();
		color_map_free(back);
		free(text);
	}
	color_map_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char hex[SHA256_DIGEST_STRING_LENGTH], *with = malloc(size + 70);

	if (with == NULL)
		return 0;
	/* As it is, a byte too far being seen; then with its sum. */
	try_bytes((const char *)data, size);
	if (size > 0)
		memcpy(with, data, size);
	SHA256Data(data, size, hex);
	try_bytes(with, size + (size_t)snprintf(with + size, 70, "sum %s\n", hex));
	free(with);
	return 0;
}
