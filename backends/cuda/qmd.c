/* SPDX-License-Identifier: Apache-2.0 */
/* Masks in QMDs of each version. */
#define _GNU_SOURCE
#include "qmd.h"

#include <stddef.h>
#include <string.h>

#define VERSION_AT   72u
#define VERSION_5_AT 58u /* there, byte 72 is of another field, and 0 */

struct layout {
	uint32_t least, most; /* versions */
	uint32_t words;
	uint32_t at;       /* byte of the first word */
	uint32_t valid_at; /* byte of the word whose bit 31 says that the mask counts */
	bool has_valid;
};

static const struct layout layouts[] = {
	/* SM_DISABLE_MASK_LOWER, _UPPER */
	{0x16, 0x17, 2, 84, 0, false},
	{0x20, 0x24, 2, 84, 0, false},
	{0x30, 0x30, 2, 84, 0, false},
	/* TPC_DISABLE_MASK(i), TPC_DISABLE_MASK_VALID */
	{0x40, 0x41, 4, 304, 0, true},
	{0x50, 0x51, 4, 280, 16, true},
};

/* V03_00 of compute capability 8.9 has 8 more: 64..69 are its bits 372..377, 70 and 71
 * its bits 379 and 380. */
#define ADA_BITS 72u

static uint32_t word(const void *qmd, uint32_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)qmd + at, sizeof(v));
	return v;
}

static void set_word(void *qmd, uint32_t at, uint32_t v)
{
	memcpy((char *)qmd + at, &v, sizeof(v));
}

uint32_t cu_qmd_version(const void *qmd, int major)
{
	const unsigned char *b = qmd;

	if (!b[VERSION_AT] && major >= 10)
		return b[VERSION_5_AT];
	return b[VERSION_AT];
}

static const struct layout *layout_of(uint32_t version)
{
	size_t i;

	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (version >= layouts[i].least && version <= layouts[i].most)
			return &layouts[i];
	return NULL;
}

static bool is_ada(uint32_t version, int major, int minor)
{
	return version == 0x30 && major == 8 && minor == 9;
}

uint32_t cu_qmd_bits(uint32_t version, int major, int minor)
{
	const struct layout *l = layout_of(version);

	if (is_ada(version, major, minor))
		return ADA_BITS;
	return l ? 32 * l->words : 0;
}

bool cu_qmd_disable(void *qmd, int major, int minor, const uint32_t mask[CU_QMD_WORDS])
{
	const uint32_t version = cu_qmd_version(qmd, major);
	const uint32_t bits = cu_qmd_bits(version, major, minor);
	const struct layout *l = layout_of(version);
	uint32_t i, old, any = 0;

	for (i = 0; i < 32 * CU_QMD_WORDS; i++)
		if (mask[i / 32] >> i % 32 & 1) {
			any = 1;
			if (i >= bits)
				return false;
		}
	if (!l)
		return false;
	if (!any)
		return true;
	for (i = 0; i < l->words; i++) {
		old = word(qmd, l->at + 4 * i);
		/* What the driver's mask says counts only if it is said to. */
		if (l->has_valid && !(word(qmd, l->valid_at) >> 31))
			old = 0;
		set_word(qmd, l->at + 4 * i, old | mask[i]);
	}
	if (l->has_valid)
		set_word(qmd, l->valid_at, word(qmd, l->valid_at) | UINT32_C(1) << 31);
	if (bits == ADA_BITS) /* bits 372.. are bits 20.. of the word at byte 44 */
		set_word(qmd, 44,
			 word(qmd, 44) | (mask[2] & 0x3f) << 20 |
				 (mask[2] >> 6 & 3) << 27);
	return true;
}
