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
	if (!(sp->ch_mask >> npu_hash_map(sp->hash, *pa >> sp->hash->gran).channel & 1u))
		return (int)NPU_FAULT_CHANNEL;
	return write && !(pte & NPU_PTE_WRITE) ? (int)NPU_FAULT_WRITE : 0;
}

/* Every page is checked before any byte moves. */
static int access_check(const struct npu_space *sp, uint32_t va, uint32_t bytes,
			int write, uint32_t *bad)
{
	uint32_t page = 1u << sp->hash->gran, pa;

	for (uint32_t done = 0; done < bytes;) {
		int kind = translate(sp, va + done, write, &pa);

		if (kind) {
			*bad = va + done;
			return kind;
		}
		done += page - ((va + done) & (page - 1));
	}
	return 0;
}

static void copy_bytes(const struct npu_space *sp, uint32_t va, uint8_t *data,
		       uint32_t bytes, int write)
{
	uint32_t page = 1u << sp->hash->gran;

	for (uint32_t done = 0, n; done < bytes; done += n) {
		uint32_t pa = 0;

		n = page - ((va + done) & (page - 1));
		n = n < bytes - done ? n : bytes - done;
		translate(sp, va + done, write, &pa);
		if ((uint64_t)pa + n > sp->bytes) { /* beyond the memory: reads 0 */
			if (!write)
				memset(data + done, 0, n);
		} else if (write) {
			memcpy(sp->memory + pa, data + done, n);
		} else {
			memcpy(data + done, sp->memory + pa, n);
		}
	}
}

int npu_space_read(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad)
{
	int kind = access_check(user, va, bytes, 0, bad);

	if (!kind)
		copy_bytes(user, va, data, bytes, 0);
	return kind;
}

/* The write copy reads from data only. */
int npu_space_write(void *user, uint32_t va, const void *data, uint32_t bytes,
		    uint32_t *bad)
{
	uint8_t piece[256];
	int kind = access_check(user, va, bytes, 1, bad);

	for (uint32_t done = 0, n; !kind && done < bytes; done += n) {
		n = bytes - done < sizeof(piece) ? bytes - done : (uint32_t)sizeof(piece);
		memcpy(piece, (const uint8_t *)data + done, n);
		copy_bytes(user, va + done, piece, n, 1);
	}
	return kind;
}
