/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - the kernel that tells where its blocks are: HAL_WHERE(text) is made of its
 * text, as it is given to a compiler.  A block writes its place and 1, and stays a while,
 * so that the next one has to go elsewhere.  HAL_WHERE_REGISTER: what s_getreg is given
 * for HW_ID; HAL_WHERE_SHIFT, _BITS: which of its bits are the place; HAL_WHERE_XCC: the
 * same register again, or that of the XCC's number.
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
)
/* clang-format on */
