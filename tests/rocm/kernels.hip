/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose code says what they take in as many ways as a compiler has; see
 * test_clang.c.  No headers of HIP. */
#define KERNEL(most) \
	extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, most)))

KERNEL(256) void iota(unsigned *d, unsigned base)
{
	const unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 +
			   __builtin_amdgcn_workitem_id_x();

	d[i] = base + i;
}

KERNEL(1024) void mixed(const char *a, long b, short c, char d, int *e, float f)
{
	*e = (int)b + c + d + *a + (int)f;
}

KERNEL(64) void none()
{
}

struct pair {
	int a, b, c;
};
KERNEL(64) void by_struct(int *d, struct pair p)
{
	*d = p.a + p.b + p.c;
}
