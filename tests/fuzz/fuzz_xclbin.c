/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_xclbin.c - any bytes as a card's configuration: what is read can be walked, each
 * kernel and unit with a name, each bank within the table, and of one that can be
 * stopped what that takes; or it is refused and why.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "backends/fpga/xclbin.h"
#include "make.h"

static const char *const seeds[] = {
	"bank A ddr4 0 1M\nkernel k 1\narg d memory 8 0\n",
	"bank A ddr4 0 1M\nbank S streaming 0 1M\nbank B hbm 0x100000 1M\n"
	"kernel one 3\narg d memory 64 0,2\narg n uint\nreach 2 d 2\n"
	"kernel two 2\narg x float\narg hal_groups_x uint\n",
	"bank A ddr4 0 1M\nkernel stops 2\narg d memory 64 0\narg hal_groups_x uint\n"
	"arg hal_state memory 72 0\narg hal_resume uint\narg hal_stop uint\n",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	char why[160];
	size_t size;
	void *file;

	if (index >= sizeof(seeds) / sizeof(seeds[0]) ||
	    mkxclbin(seeds[index], &file, &size, why, sizeof(why)))
		return 0;
	if (size <= max)
		memcpy(data, file, size);
	free(file);
	return size <= max ? size : 0;
}

/* What of it is filled in when it runs, stops and goes on. */
static bool stops_well(const struct fp_kernel_desc *d)
{
	const struct fp_arg *a = &d->args[fp_state_arg(d)];

	return fp_all_args(d) <= FP_ARGS_MAX && a[0].memory && a[0].bytes &&
	       a[1].scalar_bytes == 4 && a[2].scalar_bytes == 4 && a[2].offset % 4 == 0;
}

static void walk(const struct fp_xclbin *x)
{
	uint32_t k, s, i;

	if (!x->kernel_count || x->kernel_count > FP_KERNELS_MAX || !x->slot_count ||
	    x->slot_count > FP_SLOTS_MAX || !x->bank_count ||
	    x->bank_count > FP_BANKS_MAX)
		abort();
	for (k = 0; k < x->kernel_count; k++) {
		const struct fp_kernel_desc *d = &x->kernels[k];

		if (!memchr(d->name, 0, sizeof(d->name)) || !d->name[0] ||
		    d->arg_count > HAL_ARGS_MAX || d->group_args > 3 ||
		    (d->stops && !stops_well(d)))
			abort();
		for (s = 0; s < x->slot_count; s++) {
			const struct fp_unit_desc *u = fp_xclbin_unit(x, k, s);

			if ((u->name[0] != 0) != (s < d->unit_count))
				abort();
			for (i = fp_all_args(d); i < FP_ARGS_MAX; i++)
				if (u->reach[i])
					abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fp_xclbin x;
	char why[160] = "";

	if (fp_xclbin_read(data, size, &x, why, sizeof(why)) == 0) {
		walk(&x);
		fp_xclbin_drop(&x);
	} else if (!why[0]) {
		abort();
	}
	return 0;
}
