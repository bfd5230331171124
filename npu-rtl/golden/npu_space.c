/* SPDX-License-Identifier: Apache-2.0 */
/* npu_space.c - translation and access, untimed. */
#include "npu_space.h"

#include <string.h>

#include "npu_regs.h"

static uint32_t table_entry(const struct npu_space *sp, uint64_t at)
{
	uint32_t entry = 0;

	if (at + 4 <= sp->bytes)
		memcpy(&entry, sp->memory + at, 4);
	return entry;
}

/* Physical address of va in a page, or a FAULT code. */
static int translate(const struct npu_space *sp, uint32_t va, int write, uint32_t *pa)
{
	uint32_t vpn = va >> sp->hash->gran, per = 1u << (sp->hash->gran - 2), pte;

	if (vpn >= sp->pt_count)
		return (int)NPU_FAULT_BOUNDS;
	pte = table_entry(sp, (uint64_t)sp->pt_base + (uint64_t)(vpn / per) * 4);
	if (pte & NPU_PTE_VALID)
		pte = table_entry(sp,
				  (uint64_t)(pte & ~255u) + (uint64_t)(vpn % per) * 4);
	if (!(pte & NPU_PTE_VALID))
		return (int)NPU_FAULT_UNMAPPED;
	*pa = (pte & ~255u) | (va & ((1u << sp->hash->gran) - 1u));
	if (sp->ch_mask != ~0u &&
	    !(sp->ch_mask >> npu_hash_map(sp->hash, *pa >> sp->hash->gran).channel & 1u))
		return (int)NPU_FAULT_CHANNEL;
	return write && !(pte & NPU_PTE_WRITE) ? (int)NPU_FAULT_WRITE : 0;
}

/* Every page is checked before any byte moves.  *pa: where va itself is. */
static int access_check(const struct npu_space *sp, uint32_t va, uint32_t bytes,
			int write, uint32_t *pa, uint32_t *bad)
{
	uint32_t page = 1u << sp->hash->gran, at;

	for (uint32_t done = 0; done < bytes;) {
		int kind = translate(sp, va + done, write, &at);

		if (kind) {
			*bad = va + done;
			return kind;
		}
		if (!done)
			*pa = at;
		done += page - ((va + done) & (page - 1));
	}
	return 0;
}

/* How many of the bytes from va on are in its page. */
static uint32_t in_page(const struct npu_space *sp, uint32_t va, uint32_t bytes)
{
	uint32_t page = 1u << sp->hash->gran, left = page - (va & (page - 1));

	return bytes < left ? bytes : left;
}

int npu_space_read(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad)
{
	const struct npu_space *sp = user;
	uint32_t pa = 0;
	int kind = access_check(sp, va, bytes, 0, &pa, bad);

	for (uint32_t done = 0, n; !kind && done < bytes; done += n) {
		n = in_page(sp, va + done, bytes - done);
		if (done)
			translate(sp, va + done, 0, &pa);
		if ((uint64_t)pa + n > sp->bytes) /* beyond the memory: reads 0 */
			memset((uint8_t *)data + done, 0, n);
		else
			memcpy((uint8_t *)data + done, sp->memory + pa, n);
	}
	return kind;
}

int npu_space_write(void *user, uint32_t va, const void *data, uint32_t bytes,
		    uint32_t *bad)
{
	const struct npu_space *sp = user;
	uint32_t pa = 0;
	int kind = access_check(sp, va, bytes, 1, &pa, bad);

	for (uint32_t done = 0, n; !kind && done < bytes; done += n) {
		n = in_page(sp, va + done, bytes - done);
		if (done)
			translate(sp, va + done, 1, &pa);
		if ((uint64_t)pa + n <= sp->bytes)
			memcpy(sp->memory + pa, (const uint8_t *)data + done, n);
	}
	return kind;
}
