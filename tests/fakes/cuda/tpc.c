/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs by NVIDIA's numbers of clusters, places and multiprocessors; which places do not
 * work differs from part to part, and is made up. */
#include "tpc.h"

#define GIB(n) ((uint64_t)(n) << 30)

const struct tpc_gpu tpc_gpus[TPC_GPUS] = {
	{.name = "",
	 .major = 9,
	 .qmd = 0x40,
	 .clusters = 8,
	 .places = 9,
	 .sms = 2,
	 .broken = {0x80, 0, 0x2, 0x10, 0x80, 0, 0x2, 0x10},
	 .memory = GIB(8)},
	{.name = "",
	 .major = 7,
	 .minor = 5,
	 .qmd = 0x22,
	 .clusters = 6,
	 .places = 4,
	 .sms = 2,
	 .broken = {0, 0x8},
	 .memory = GIB(4)},
	{.name = "GTX 1080",
	 .major = 6,
	 .minor = 1,
	 .qmd = 0x21,
	 .clusters = 4,
	 .places = 5,
	 .sms = 1,
	 .memory = GIB(8)},
	{.name = "V100",
	 .major = 7,
	 .qmd = 0x22,
	 .clusters = 6,
	 .places = 7,
	 .sms = 2,
	 .broken = {0, 0x40, 0, 0, 0x4, 0},
	 .memory = GIB(16)},
	{.name = "A100",
	 .major = 8,
	 .qmd = 0x24,
	 .clusters = 8,
	 .places = 8,
	 .sms = 2,
	 .broken = {0x80, 0x1, 0x10, 0x82, 0x20, 0x1, 0x44, 0x8},
	 .memory = GIB(40)},
	{.name = "H100",
	 .major = 9,
	 .qmd = 0x40,
	 .clusters = 8,
	 .places = 9,
	 .sms = 2,
	 .broken = {0x1f0, 0x100, 0x100, 0x100, 0x100, 0x100, 0x100, 0x100},
	 .memory = GIB(80),
	 .by_cluster = true,
	 .single = {62, 71, 75, 78, 81, 83}},
	{.name = "H200",
	 .major = 9,
	 .qmd = 0x40,
	 .clusters = 8,
	 .places = 9,
	 .sms = 2,
	 .broken = {0x101, 0, 0, 0x20, 0, 0x41, 0, 0x10},
	 .memory = GIB(141)},
	{.name = "B200",
	 .major = 10,
	 .qmd = 0x50,
	 .clusters = 8,
	 .places = 10,
	 .sms = 2,
	 .broken = {0x1, 0, 0x200, 0x10, 0, 0x8, 0x40, 0x2},
	 .memory = GIB(180)},
};

uint32_t tpc_sms(const struct tpc_gpu *g)
{
	uint32_t c, n = 0;

	for (c = 0; c < g->clusters; c++)
		n += g->sms * (g->places - (uint32_t)__builtin_popcount(g->broken[c]));
	return g->by_cluster ? n + g->sms * (uint32_t)sizeof(g->single) : n;
}
