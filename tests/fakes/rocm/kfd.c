/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and masks, from what Linux's amdkfd does with them: the walk is over places in the
 * arrays, then arrays, then engines, and a bit is used up where there is a CU. */
#include "kfd.h"

#include <stdio.h>
#include <string.h>

#define GIB(n) ((uint64_t)(n) << 30)

const struct kfd_gpu kfd_gpus[KFD_GPUS] = {
	{.name = "MI50",
	 .arch = "gfx906:sramecc+:xnack-",
	 .target = 90006,
	 .xccs = 1,
	 .engines = 4,
	 .arrays = 1,
	 .places = 16,
	 .dead = {1, 1, 1, 1},
	 .memory = GIB(16)},
	{.name = "MI210",
	 .arch = "gfx90a:sramecc+:xnack-",
	 .target = 90010,
	 .xccs = 1,
	 .engines = 8,
	 .arrays = 1,
	 .places = 16,
	 .dead = {3, 3, 2, 4, 3, 3, 3, 3},
	 .memory = GIB(64)},
	{.name = "MI300X",
	 .arch = "gfx942:sramecc+:xnack-",
	 .target = 90402,
	 .xccs = 8,
	 .engines = 4,
	 .arrays = 1,
	 .places = 10,
	 .dead = {0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0,
		  0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0},
	 .memory = GIB(192)},
	{.name = "RX 7900 XTX",
	 .arch = "gfx1100",
	 .target = 110000,
	 .xccs = 1,
	 .engines = 6,
	 .arrays = 2,
	 .places = 8,
	 .memory = GIB(24),
	 .pairs = true},
};

uint32_t kfd_machine(const struct kfd_gpu *g)
{
	static const uint8_t machines[KFD_GPUS] = {0x2f, 0x3f, 0x4c, 0x41};

	return machines[g - kfd_gpus];
}

static uint32_t array_number(const struct kfd_gpu *g, uint32_t xcc, uint32_t engine,
			     uint32_t array)
{
	return (xcc * g->engines + engine) * g->arrays + array;
}

static uint32_t alive(const struct kfd_gpu *g, uint32_t number)
{
	return g->places - g->dead[number];
}

uint32_t kfd_cus(const struct kfd_gpu *g)
{
	uint32_t i, n = 0;

	for (i = 0; i < g->xccs * g->engines * g->arrays; i++)
		n += alive(g, i);
	return n;
}

struct kfd_place kfd_place(const struct kfd_gpu *g, uint32_t cu)
{
	uint32_t number = 0;

	for (; cu >= alive(g, number); number++)
		cu -= alive(g, number);
	return (struct kfd_place){.xcc = number / g->arrays / g->engines,
				  .engine = number / g->arrays % g->engines,
				  .array = number % g->arrays,
				  .cu = cu};
}

/* gfx9: CU, array, engine, in 4, 1 and 3 bits, and the XCC.  RDNA: WGP, array, engine, in
 * bits 10 to 13, 16 and 18 to 20 of HW_ID1. */
uint32_t kfd_hw_id(const struct kfd_gpu *g, uint32_t cu)
{
	const struct kfd_place p = kfd_place(g, cu);

	return g->pairs ? p.cu / 2 | p.array << 6 | p.engine << 8
			: p.cu | p.array << 4 | p.engine << 5 | p.xcc << 8;
}

static uint32_t number_of(const struct kfd_gpu *g, uint32_t array, uint32_t place)
{
	uint32_t i, n = place;

	for (i = 0; i < array; i++)
		n += alive(g, i);
	return n;
}

/* Of one XCC, whose bits are every xccs-th. */
static bool apply_to(const struct kfd_gpu *g, uint32_t xcc, const uint32_t *mask,
		     uint32_t bits, bool *on)
{
	const uint32_t step = g->pairs ? 2 : 1;
	uint32_t bit = xcc, place, array, engine, i;
	bool any = false;

	for (place = 0; place < g->places; place += step)
		for (array = 0; array < g->arrays; array++)
			for (engine = 0; engine < g->engines; engine++) {
				const uint32_t a = array_number(g, xcc, engine, array);

				if (place >= alive(g, a))
					continue;
				for (i = 0; i < step && bit < bits &&
					    mask[bit / 32] >> bit % 32 & 1;
				     i++) {
					on[number_of(g, a, place + i)] = true;
					any = true;
				}
				bit += step * g->xccs;
			}
	for (i = 0; !any && i < kfd_cus(g); i++)
		if (g->xccs > 1 && kfd_place(g, i).xcc == xcc)
			on[i] = true;
	return any;
}

bool kfd_apply(const struct kfd_gpu *g, const uint32_t *mask, uint32_t bits,
	       bool on[KFD_CUS_MAX])
{
	bool any = false;
	uint32_t x;

	memset(on, 0, KFD_CUS_MAX * sizeof(*on));
	for (x = 0; x < g->xccs; x++)
		any |= apply_to(g, x, mask, bits, on);
	return any;
}

int kfd_properties(const struct kfd_gpu *g, uint32_t bus, char *text, uint32_t room)
{
	return snprintf(text, room,
			"cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\n"
			"max_waves_per_simd 10\narray_count %u\n"
			"simd_arrays_per_engine %u\ncu_per_simd_array %u\n"
			"simd_per_cu %u\ngfx_target_version %u\nvendor_id 4098\n"
			"location_id %u\ndomain 0\nnum_xcc %u\n",
			kfd_cus(g) * (g->pairs ? 2 : 4), g->engines * g->arrays * g->xccs,
			g->arrays, g->places, g->pairs ? 2 : 4, g->target, bus << 8,
			g->xccs);
}
