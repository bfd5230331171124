/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels really run: HIP's own compiler makes one, when a device of masks is
 * opened, that reads where its blocks are (HW_ID), and it runs once in each unit: in a
 * stream of each, or in one queue of HSA's whose mask is changed in between.  A unit
 * that is on more than its mask has, or on what another one has, is refused; where there
 * is no compiler nothing is known, and that is said.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HAL_WHERE(...) static const char source[] = #__VA_ARGS__;
#include "where.h"

#define BLOCKS_A_CU 4u /* so that each has one, although the first ones have ended */
#define BLOCK       1024u
#define PLACES      4096u

struct trial {
	void *module, *function, *pinned, *address;
	struct rocm_aql *aql; /* one for all units, whose mask changes; NULL: streams */
	uint32_t room;
};

/* ---- the kernel -------------------------------------------------------------------- */

bool rocm_where_options(const char *arch, char text[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES])
{
	const bool gfx9 = strncmp(arch, "gfx9", 4) == 0 && strlen(arch) >= 6 &&
			  (arch[6] == 0 || arch[6] == ':');
	const bool rdna =
		strncmp(arch, "gfx10", 5) == 0 || strncmp(arch, "gfx11", 5) == 0;
	const bool xccs = gfx9 && (arch[4] == '4' || arch[4] == '5');
	const int reg = gfx9 ? WHERE_HW_ID : WHERE_HW_ID1;

	if (!gfx9 && !rdna)
		return false;
	snprintf(text[0], ROCM_WHERE_BYTES, "-DHAL_WHERE_REGISTER=%d", reg);
	snprintf(text[1], ROCM_WHERE_BYTES, "-DHAL_WHERE_XCC=%d",
		 xccs ? WHERE_XCC_ID : reg);
	snprintf(text[2], ROCM_WHERE_BYTES, "-DHAL_WHERE_SHIFT=%d", gfx9 ? 8 : 10);
	snprintf(text[3], ROCM_WHERE_BYTES, "-DHAL_WHERE_BITS=%d", gfx9 ? 8 : 11);
	return true;
}

static bool has_compiler(void)
{
	return hip.hiprtcCreateProgram && hip.hiprtcCompileProgram &&
	       hip.hiprtcGetCodeSize && hip.hiprtcGetCode && hip.hiprtcDestroyProgram;
}

char *rocm_where_compile(const char *arch, size_t *bytes, const char **call, uint32_t *r)
{
	char target[ROCM_ARCH_BYTES + 32], extra[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES];
	const char *options[1 + ROCM_WHERE_OPTIONS] = {target};
	void *program = NULL;
	char *code = NULL;
	uint32_t i;

	if (!rocm_where_options(arch, extra))
		return NULL;
	snprintf(target, sizeof(target), "--gpu-architecture=%s", arch);
	for (i = 0; i < ROCM_WHERE_OPTIONS; i++)
		options[1 + i] = extra[i];
	*call = "hiprtcCreateProgram";
	*r = hip.hiprtcCreateProgram(&program, source, "hal_where", 0, NULL, NULL);
	if (*r)
		return NULL;
	*call = "hiprtcCompileProgram";
	*r = hip.hiprtcCompileProgram(program, 1 + ROCM_WHERE_OPTIONS, options);
	if (!*r) {
		*call = "hiprtcGetCodeSize";
		*r = hip.hiprtcGetCodeSize(program, bytes);
	}
	if (!*r) {
		*call = "hiprtcGetCode";
		code = malloc(*bytes + 1);
		*r = code ? hip.hiprtcGetCode(program, code) : 1; /* out of memory */
	}
	if (hip.hiprtcDestroyProgram(&program))
		(void)hip.hiprtcDestroyProgram(&program);
	if (!*r)
		return code;
	free(code);
	return NULL;
}

static void end(struct rocm_device *dev, struct trial *t, int *err)
{
	rocm_aql_close(dev, t->aql, err);
	rocm_give_back(dev, ROCM_KIND_MODULE, t->module, err);
	rocm_give_back(dev, ROCM_KIND_HOST, t->pinned, err);
}

/* The kernels; NULL: there are none, and dev->tried says why. */
static char *compile(struct rocm_device *dev, size_t *bytes)
{
	const char *arch = dev->shape.arch, *call = NULL;
	char options[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES], *code = NULL;
	uint32_t r = 0;

	if (!has_compiler()) {
		snprintf(dev->tried, sizeof(dev->tried), "HIP has no compiler (hiprtc)");
	} else if (!rocm_where_options(arch, options)) {
		snprintf(dev->tried, sizeof(dev->tried), "the HW_ID of %s is unknown",
			 arch);
	} else {
		code = rocm_where_compile(arch, bytes, &call, &r);
		if (!code)
			snprintf(dev->tried, sizeof(dev->tried), "%s failed with %u",
				 call, r);
	}
	return code;
}

/* 1: it cannot be tried out, and dev->tried says why. */
static int begin(struct rocm_device *dev, struct trial *t)
{
	size_t bytes = 0;
	char *code = compile(dev, &bytes);
	int err;

	if (!code)
		return 1;
	err = HIP(dev, hipModuleLoadData, &t->module, code);
	free(code);
	if (err)
		t->module = NULL;
	else
		err = HIP(dev, hipModuleGetFunction, &t->function, t->module,
			  "hal_where");
	if (!err)
		err = rocm_pin(dev, t->room * sizeof(uint32_t), &t->pinned, &t->address);
	return err;
}

/* ---- a unit ------------------------------------------------------------------------ */

static int run(struct rocm_device *dev, struct trial *t, void *stream, uint32_t blocks)
{
	const uint32_t groups[3] = {blocks, 1, 1}, block[3] = {BLOCK, 1, 1};
	void *params[1] = {&t->address};
	int err;

	memset(t->pinned, 0, t->room * sizeof(uint32_t));
	if (t->aql) {
		char *to = rocm_aql_arguments(t->aql, 0);

		memset(to, 0, dev->hsa.where.argument_bytes);
		memcpy(to, &t->address, sizeof(t->address));
		err = rocm_aql_kernel(t->aql, 0, &dev->hsa.where, groups, block);
		return err ? err : rocm_aql_wait(dev, t->aql, 0);
	}
	err = HIP(dev, hipModuleLaunchKernel, t->function, blocks, 1, 1, BLOCK, 1, 1, 0,
		  stream, params, NULL);
	return err ? err : HIP(dev, hipStreamSynchronize, stream);
}

/* On no more places than its mask has bits, and on none of another unit's. */
static int judge(struct rocm_device *dev, const struct trial *t, uint32_t unit,
		 uint32_t bits, uint16_t *owner, uint32_t *own)
{
	const uint32_t *ids = t->pinned, blocks = BLOCKS_A_CU * bits;
	uint32_t i, strange = 0;

	*own = 0;
	for (i = 0; i < blocks; i++) {
		const uint32_t id = __atomic_load_n(&ids[i], __ATOMIC_ACQUIRE);

		if (!id || id > PLACES)
			return rocm_refuse(dev, EIO,
					   "partitions: in the trial, a block reported "
					   "the invalid place %d",
					   (int)id - 1);
		strange += owner[id - 1] && owner[id - 1] != unit + 1;
		if (!owner[id - 1]) {
			owner[id - 1] = (uint16_t)(unit + 1);
			++*own;
		}
	}
	if (*own <= bits && !strange)
		return 0;
	return rocm_refuse(
		dev, ENOTSUP,
		"partitions: in the trial, unit %u of %u bits ran on %u places of its "
		"own, and %u blocks ran on places of other units",
		unit, bits, *own, strange);
}

static uint32_t bits_of(const uint32_t *mask)
{
	uint32_t i, n = 0;

	for (i = 0; i < ROCM_MASK_WORDS; i++)
		n += (uint32_t)__builtin_popcount(mask[i]);
	return n;
}

static int try_unit(struct rocm_device *dev, struct trial *t, uint32_t unit,
		    uint16_t *owner, uint32_t *own)
{
	uint32_t mask[ROCM_MASK_WORDS], bits;
	void *stream = NULL;
	int again = 0, err;

	rocm_topology_mask(&dev->units, unit, 1, mask);
	bits = bits_of(mask);
	err = t->aql ? rocm_aql_mask(dev, t->aql, mask)
		     : rocm_masked_stream(dev, mask, 0, &stream);
	if (!err)
		err = run(dev, t, stream, BLOCKS_A_CU * bits);
	if (!err)
		err = judge(dev, t, unit, bits, owner, own);
	rocm_give_back(dev, ROCM_KIND_STREAM, stream, &again);
	return err ? err : again;
}

static int try_units(struct rocm_device *dev, struct trial *t)
{
	uint16_t *owner = calloc(PLACES, sizeof(*owner));
	uint32_t i, own = 0, least = PLACES, most = 0;
	int err = 0;

	if (!owner)
		return rocm_host->fail(ENOMEM, "rocm: no memory to try out units");
	for (i = 0; !err && i < dev->units.count; i++) {
		err = try_unit(dev, t, i, owner, &own);
		least = own < least ? own : least;
		most = own > most ? own : most;
	}
	free(owner);
	dev->verified = !err;
	snprintf(dev->tried, sizeof(dev->tried),
		 "a kernel ran in each unit, on %u to %u %s of its own", least, most,
		 dev->units.together > 1 ? "pairs" : "CUs");
	return err;
}

int rocm_try_out(struct rocm_device *dev)
{
	struct trial t = {.room = BLOCKS_A_CU * dev->units.bits};
	int again = 0, err = begin(dev, &t);

	if (!err)
		err = try_units(dev, &t);
	end(dev, &t, &again);
	rocm_catch_up(dev);
	return err < 0 ? err : again;
}

/* ---- a queue of HSA's -------------------------------------------------------------- */

static int load(struct rocm_device *dev)
{
	const struct {
		const char *name;
		struct rocm_entry *to;
		uint32_t bytes;
	} all[] = {{"hal_where", &dev->hsa.where, 8},
		   {"hal_fill", &dev->hsa.fill, 24},
		   {"hal_copy", &dev->hsa.copy, 24}};
	static const char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
	size_t bytes = 0, i;
	char *code = compile(dev, &bytes), *elf;
	int err;

	if (!code)
		return rocm_refuse(dev, ENOTSUP, "no kernels for fills and copies: %s",
				   dev->tried);
	/* Some releases of the compiler put it in a bundle, which HSA does not take. */
	elf = memmem(code, bytes, magic, sizeof(magic));
	if (elf)
		err = rocm_code_load(dev, elf, bytes - (size_t)(elf - code),
				     &dev->hsa.loaded);
	else
		err = rocm_refuse(dev, ENOTSUP,
				  "the output of hiprtc is not a code object");
	free(code);
	for (i = 0; !err && i < sizeof(all) / sizeof(all[0]); i++) {
		const struct rocm_entry *e = all[i].to;

		err = rocm_code_entry(dev, &dev->hsa.loaded, all[i].name, all[i].to);
		if (!err && (e->argument_bytes < all[i].bytes ||
			     e->argument_bytes > ROCM_ARGUMENT_BYTES))
			err = rocm_refuse(dev, EPROTO,
					  "%s: unexpected %u bytes of arguments",
					  all[i].name, e->argument_bytes);
	}
	return err;
}

/* On a queue that has run something before, all but the first. */
static int try_queue(struct rocm_device *dev)
{
	struct trial t = {.room = BLOCKS_A_CU * dev->units.bits};
	uint32_t mask[ROCM_MASK_WORDS];
	int again = 0, err;

	rocm_topology_mask(&dev->units, 0, dev->units.count, mask);
	err = rocm_pin(dev, t.room * sizeof(uint32_t), &t.pinned, &t.address);
	if (!err)
		err = rocm_aql_open(dev, 1, mask, 0, &t.aql);
	if (!err)
		err = try_units(dev, &t);
	end(dev, &t, &again);
	return err ? err : again;
}

int rocm_try_hsa(struct rocm_device *dev)
{
	int err;

	dev->hsa.trying = true;
	err = rocm_hsa_load(dev);
	if (!err)
		err = load(dev);
	if (!err)
		err = try_queue(dev);
	if (err)
		rocm_code_undo(dev, &dev->hsa.loaded);
	dev->hsa.on = !err;
	dev->hsa.trying = false;
	rocm_catch_up(dev);
	return err;
}
