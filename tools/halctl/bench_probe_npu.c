/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_probe_npu - how much of the map of opaque NPUs halctl probe finds: hashes drawn
 * from seeds, on engine=fast.
 *
 *   bench_probe_npu [MAPS]   so many of each family, 20 where it is not said
 */
#include <stdio.h>
#include <stdlib.h>

#include "npu/hash.h"
#include "prober_npu.h"

/* Of its channels most of which the device has in one: the share of granules there. */
static double share(const struct color_map *map, const struct npu_hash *hash)
{
	static uint32_t count[16][COLOR_MAP_COLORS];
	uint32_t granules = (uint32_t)color_map_granules(map), right = 0;

	for (uint32_t c = 0; c < 16; c++)
		for (uint32_t k = 0; k < COLOR_MAP_COLORS; k++)
			count[c][k] = 0;
	for (uint32_t g = 0; g < granules; g++) {
		uint32_t found = color_map_channel(map, g);

		if (found < COLOR_MAP_COLORS)
			count[npu_hash_map(hash, g).channel][found]++;
	}
	for (uint32_t k = 0; k < map->channels; k++) {
		uint32_t most = 0;

		for (uint32_t c = 0; c < 16; c++)
			most = count[c][k] > most ? count[c][k] : most;
		right += most;
	}
	return (double)right / granules;
}

/* 0 where no map is found, or one of another number of channels; below 0 an error. */
static double probe(uint32_t channels, uint32_t seed)
{
	struct npu_hash hash = {.gran = 10};
	struct discover_result r = {0};
	struct probe_npu npu = {0};
	double right = 0;
	char target[160];
	int err;

	snprintf(target, sizeof(target),
		 "npu:0?engine=fast&hash=opaque&memory_size=16M&channels=%u&hash_seed=%u",
		 channels, seed);
	if (npu_hash_split(channels, &hash.q, &hash.k) == 0 ||
	    hal_open(target, NULL, &npu.dev) != 0 || probe_npu_open(&npu) != 0)
		return -tool_fail_hal();
	npu_hash_choose(&hash, seed);
	err = probe_npu_find(&npu, seed, &r);
	if (err == 0 && r.map->channels == channels)
		right = share(r.map, &hash);
	if (right < 0.999)
		printf("%u channels, seed %u: %d, %.6f\n", channels, seed, err, right);
	color_map_free(r.map);
	if (probe_npu_close(&npu) != 0 || hal_close(npu.dev) != 0)
		return -tool_fail_hal();
	return right;
}

static double least_of(const uint32_t *channels, uint32_t count, uint32_t maps)
{
	double least = 1;

	for (uint32_t i = 0; i < maps && least >= 0; i++) {
		double right = probe(channels[i % count], 1 + i * 7919);

		least = right < least ? right : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	static const uint32_t xor [] = {2, 4, 8, 16},
				  xormod[] = {3, 5, 6, 7, 9, 10, 12, 13};
	double of_xor, of_xormod;
	uint32_t maps = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20;

	if (maps == 0 || argc > 2) {
		fprintf(stderr, "usage: bench_probe_npu [MAPS]\n");
		return 2;
	}
	of_xor = least_of(xor, 4, maps);
	of_xormod = of_xor < 0 ? -1 : least_of(xormod, 8, maps);
	if (of_xormod < 0)
		return 1;
	printf("figure probe.npu.accuracy.xor %.6f\n", of_xor);
	printf("figure probe.npu.accuracy.xormod %.6f\n", of_xormod);
	return 0;
}
