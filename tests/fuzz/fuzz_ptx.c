/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ptx.c - any bytes as PTX: refused with a text, or read; what is made of a kernel
 * that can be rewritten is read again, and the same pass does not take it twice. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "color.h"

static const char *const seeds[] = {
	".version 7.8\n.target sm_80\n.address_size 64\n.const .b32 c[2] = {1, 2};\n"
	".visible .entry k(.param .u64 k_0, .param .u32 k_1)\n{\n.reg .pred %p<2>;\n"
	".reg .b32 %r<4>;\n.reg .b64 %d<3>;\n.shared .align 4 .b8 s[64];\n"
	"ld.param.u64 %d1, [k_0];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %nctaid.y;\n"
	"$L1:\nsetp.eq.s32 %p1, %r1, %r2;\n@%p1 bra $L2;\nld.global.v2.u32 {%r1, %r2}, "
	"[%d1+8];\n@!%p1 st.u32 [%d1], %r1;\nbar.sync 0;\natom.global.add.u32 %r3, "
	"[%d1], 1;\n"
	"{ .reg .b32 t; mov.u32 t, %tid.x; }\nbra.uni $L1;\n$L2:\nret;\n}\n",
	".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b32 r) "
	"vprintf"
	"(.param .b64 a, .param .b64 b);\n.entry k .maxntid 64, 1, 1 {\n.loc 1 2 3\n"
	".reg .b64 %d; .reg .b32 a, b;\ncp.async.ca.shared.global [a], [%d], 16, b;\n"
	"cp.async.wait_all;\nshfl.sync.down.b32 a|%p, b, 1, 31, -1;\n@p exit;\n"
	"call (r), vprintf, (a, b);\n}\n.section .debug_str { .b8 1,2 }\n",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	size_t n;

	if (index >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	n = strlen(seeds[index]);
	if (n > max)
		return 0;
	memcpy(data, seeds[index], n);
	return n;
}

static int rewrite(const struct ptx *m, enum ptx_pass pass, const bool *which,
		   char **text, size_t *bytes, char why[PTX_WHY])
{
	const struct ptx_color_map map = {.granule = 1024,
					  .mask_count = 1,
					  .mask = {0x29},
					  .q = 3,
					  .shift = 1,
					  .digits = 2,
					  .weight = {1, 2}};
	struct ptx_color color;
	struct ptx_colors colors;

	if (pass != PTX_COLOR)
		return ptx_rewrite(m, pass, which, text, bytes, why);
	if (ptx_color_make(&map, 0, 2, &color, &colors, why))
		abort();
	return ptx_rewrite_color(m, &color, which, text, bytes, why);
}

static void try_pass(const struct ptx *m, uint32_t kernel, enum ptx_pass pass)
{
	char why[PTX_WHY] = "", *text = NULL;
	bool *which = calloc(ptx_kernels(m), sizeof(*which));
	struct ptx *again = NULL;
	size_t bytes = 0;

	if (!which)
		return;
	which[kernel] = true;
	if (ptx_check(m, kernel, pass, why)) {
		if (!why[0])
			abort(); /* refused without a reason */
	} else {
		if (rewrite(m, pass, which, &text, &bytes, why) ||
		    ptx_parse(text, bytes, &again, why) ||
		    ptx_kernels(again) != ptx_kernels(m) ||
		    !ptx_check(again, kernel, pass, why))
			abort();
		ptx_free(again);
		free(text);
	}
	free(which);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = malloc(size ? size : 1); /* a byte too far is seen */
	char why[PTX_WHY] = "";
	struct ptx *m;
	uint32_t i, p;

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	if (ptx_parse(exact, size, &m, why)) {
		if (!why[0])
			abort();
		free(exact);
		return 0;
	}
	for (i = 0; i < ptx_kernels(m); i++)
		for (p = 0; p < PTX_PASSES; p++)
			try_pass(m, i, (enum ptx_pass)p);
	ptx_free(m);
	free(exact);
	return 0;
}
