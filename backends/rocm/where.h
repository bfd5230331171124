/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - kernels of the backend's own, as HIP's compiler is given them:
 * HAL_WHERE(text) is made of their text.
 *
 * hal_where tells where its blocks are: each writes its place and 1, and stays a while,
 * so that the next one has to go elsewhere.  HAL_WHERE_REGISTER: what s_getreg is given
 * for HW_ID; HAL_WHERE_SHIFT, _BITS: which of its bits are the place; HAL_WHERE_XCC: the
 * same register again, or that of the XCC's number.
 *
 * hal_fill and hal_copy are what queues of HSA's have for fills and copies, in groups of
 * 256: words of a pattern of two; bytes, 16 at a time where both ends let it.
 */
/* All 32 bits of a hardware register. */
#define WHERE_REGISTER(number) (31 << 11 | (number))
enum {
	WHERE_HW_ID = WHERE_REGISTER(4),   /* gfx9: CU 8..11, array 12, engine 13..15 */
	WHERE_XCC_ID = WHERE_REGISTER(20), /* gfx94x, gfx95x: XCC 0..3 */
	WHERE_HW_ID1 = WHERE_REGISTER(23), /* gfx10, 11: WGP 10..13, array 16, engine
					      18..20 */
};

/* clang-format off */
HAL_WHERE(
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 1024)))
void hal_where(unsigned *out)
{
	const unsigned long long begin = __builtin_readcyclecounter();
	const unsigned id = __builtin_amdgcn_s_getreg(HAL_WHERE_REGISTER);
	const unsigned xcc = __builtin_amdgcn_s_getreg(HAL_WHERE_XCC);
	const unsigned place = (id >> HAL_WHERE_SHIFT) & ((1u << HAL_WHERE_BITS) - 1);

	if (__builtin_amdgcn_workitem_id_x() == 0)
		out[__builtin_amdgcn_workgroup_id_x()] = 1 + place +
			(HAL_WHERE_XCC == HAL_WHERE_REGISTER ? 0
							     : (xcc & 15) << HAL_WHERE_BITS);
	/* Of some the counter has 20 bits. */
	while (((__builtin_readcyclecounter() - begin) & 0xfffff) < 100000)
		;
}

extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256)))
void hal_fill(unsigned *d, unsigned long long words, unsigned long long pattern)
{
	const unsigned long long step = __builtin_amdgcn_grid_size_x();
	unsigned long long i = __builtin_amdgcn_workgroup_id_x() * 256ull +
			       __builtin_amdgcn_workitem_id_x();

	for (; i < words; i += step)
		d[i] = (unsigned)(pattern >> 32 * (i & 1));
}

typedef unsigned hal_four __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256)))
void hal_copy(char *d, const char *s, unsigned long long bytes)
{
	const unsigned long long step = __builtin_amdgcn_grid_size_x();
	const unsigned long long first = __builtin_amdgcn_workgroup_id_x() * 256ull +
					 __builtin_amdgcn_workitem_id_x();
	const unsigned long long fours =
		(((unsigned long long)d | (unsigned long long)s) & 15) ? 0 : bytes / 16;
	unsigned long long i;

	for (i = first; i < fours; i += step)
		((hal_four *)d)[i] = ((const hal_four *)s)[i];
	for (i = 16 * fours + first; i < bytes; i += step)
		d[i] = s[i];
}
)
/* clang-format on */
