/* SPDX-License-Identifier: Apache-2.0 */
/* fast_mmu.c - npu_mmu: one slot's port: who of its clients goes next, translation by TLB
 * or walk, the request. */
#include "fast.h"

#include <string.h>

static uint32_t tlb_index(uint32_t vpn, uint32_t context)
{
	uint32_t turned = (context & 1u) << 9 | (context >> 1 & 1u) << 8 |
			  (context >> 2 & 1u) << 7 | (context >> 3 & 1u) << 6 |
			  (context >> 4 & 15u);

	return (vpn ^ vpn >> 10 ^ turned) & 1023u;
}

static uint32_t line_index(uint32_t line)
{
	return (line ^ line >> 3 ^ line >> 6 ^ line >> 9) & 7u;
}

/* What the request that was chosen in an earlier cycle comes to. */
void mmu_check(struct npu_model *m, struct slot *s)
{
	struct mmu *u = &s->mmu;
	uint32_t vpn = u->ask.va >> m->hash.gran;
	bool hit = u->have && u->entry.vpn == vpn && u->entry.context == s->context;

	u->free = !u->req.v || s->acc;
	u->kind = NPU_FAULT_NONE;
	u->fault = false;
	u->ok = false;
	u->miss = false;
	if (u->ask_v) {
		if (vpn >= s->pt_count)
			u->kind = NPU_FAULT_BOUNDS;
		else if (hit && !(s->ch_mask >> u->entry.channel & 1u))
			u->kind = NPU_FAULT_CHANNEL;
		else if (hit && u->ask.we && !u->entry.w)
			u->kind = NPU_FAULT_WRITE;
		u->fault = u->kind != NPU_FAULT_NONE;
		u->ok = hit && !u->fault;
		u->miss = !hit && !u->fault;
	}
	if (u->walk == WALK_CHECK) {
		if (!(u->pte & NPU_PTE_VALID)) {
			u->fault = true;
			u->kind = NPU_FAULT_UNMAPPED;
		} else if (u->leaf &&
			   !(s->ch_mask >> npu_hash_map(&m->hash,
							(u->pte & ~255u) >> m->hash.gran)
						   .channel &
			     1u)) {
			u->fault = true;
			u->kind = NPU_FAULT_CHANNEL;
		}
	}
	u->next = !u->ask_v || (u->ok && u->free);
}

/* CLIENTS: nobody. */
int mmu_choose(struct mmu *u, uint32_t asks, uint32_t urgent)
{
	uint32_t sel = u->rr;

	if (!asks || !u->next)
		return CLIENTS;
	if (asks & urgent) {
		sel = (uint32_t)__builtin_ctz(asks & urgent);
	} else {
		while (!(asks >> sel & 1u))
			sel = (sel + 1) & 3u;
	}
	if (sel == u->rr) {
		u->rr = u->burst == 7 ? (sel + 1) & 3u : sel;
		u->burst = (u->burst + 1) & 7u;
	} else {
		u->rr = sel;
		u->burst = 1;
	}
	return (int)sel;
}

static uint32_t pte_address(const struct npu_model *m, const struct slot *s, uint32_t vpn)
{
	uint32_t root = vpn >> (m->hash.gran - 2), i = (root ^ root >> 4) & 15u;

	if (!s->mmu.leaf)
		return s->pt_base + (root << 2);
	return s->mmu.table[i].pa + (vpn << 2 & ((1u << m->hash.gran) - 1u));
}

static void walk_table(struct npu_model *m, struct slot *s, uint32_t vpn)
{
	struct mmu *u = &s->mmu;
	uint32_t root = vpn >> (m->hash.gran - 2), i = (root ^ root >> 4) & 15u;
	uint32_t pa = pte_address(m, s, vpn), l = line_index(pa >> 6);

	if (!u->leaf && u->table[i].v && u->table[i].index == root &&
	    u->table[i].context == s->context)
		u->leaf = true;
	else
		u->walk = u->leaf && u->line[l].v && u->line[l].address == pa >> 6
				  ? WALK_LINE
				  : WALK_ASK;
}

static void walk_check(struct npu_model *m, struct slot *s, uint32_t vpn)
{
	struct mmu *u = &s->mmu;
	uint32_t root = vpn >> (m->hash.gran - 2), i = (root ^ root >> 4) & 15u;
	struct npu_hash_place p;

	if (!u->leaf) {
		u->table[i].v = true;
		u->table[i].context = (uint8_t)s->context;
		u->table[i].index = root;
		u->table[i].pa = u->pte & ~255u;
		u->leaf = true;
		u->walk = WALK_TABLE;
		return;
	}
	p = npu_hash_map(&m->hash, (u->pte & ~255u) >> m->hash.gran);
	u->entry = (struct tlb){.v = true,
				.w = (u->pte & NPU_PTE_WRITE) != 0,
				.channel = (uint8_t)p.channel,
				.context = (uint8_t)s->context,
				.vpn = vpn,
				.pa = u->pte & ~255u,
				.local = p.local};
	u->tlb[tlb_index(vpn, s->context)] = u->entry;
	u->have = true;
	u->leaf = false;
	u->walk = WALK_IDLE;
}

static void walk_step(struct npu_model *m, struct slot *s)
{
	struct mmu *u = &s->mmu;
	uint32_t vpn = u->ask.va >> m->hash.gran, pa, l;
	struct npu_hash_place p;

	switch (u->walk) {
	case WALK_IDLE:
		if (u->miss)
			u->walk = WALK_TABLE;
		break;
	case WALK_TABLE:
		walk_table(m, s, vpn);
		break;
	case WALK_LINE:
		pa = pte_address(m, s, vpn);
		u->pte = u->line[line_index(pa >> 6)].entry[pa >> 2 & 15u];
		u->walk = u->pte & NPU_PTE_VALID ? WALK_CHECK : WALK_ASK;
		break;
	case WALK_ASK:
		if (!u->free)
			break;
		pa = pte_address(m, s, vpn);
		p = npu_hash_line(&m->hash, pa);
		u->req = (struct request){.v = true,
					  .walk = true,
					  .channel = (uint8_t)p.channel,
					  .beats = 4,
					  .len = 4,
					  .slot = (uint8_t)s->id,
					  .tag = TAG_WALK,
					  .lline = p.local,
					  .pa = pa};
		u->walk = WALK_WAIT;
		break;
	case WALK_WAIT:
		if (!s->rsp.v || s->rsp.tag != TAG_WALK)
			break;
		pa = pte_address(m, s, vpn);
		u->pte = u->walk_line[pa >> 2 & 15u];
		u->walk = WALK_CHECK;
		if (!u->leaf)
			break;
		l = line_index(pa >> 6);
		u->line[l].v = true;
		u->line[l].address = pa >> 6;
		memcpy(u->line[l].entry, u->walk_line, sizeof(u->walk_line));
		break;
	case WALK_CHECK:
		s->count[CNT_TLB] += u->leaf;
		if (u->fault) {
			for (uint32_t i = 0; i < 8; i++)
				u->line[i].v = false;
			u->walk = WALK_IDLE;
			u->leaf = false;
		} else {
			walk_check(m, s, vpn);
		}
		break;
	}
}

static struct request request_of(const struct npu_model *m, const struct slot *s)
{
	const struct mmu *u = &s->mmu;
	uint32_t off = u->ask.va & ((1u << m->hash.gran) - 1u);

	return (struct request){
		.v = true,
		.we = u->ask.we,
		.fence = u->ask.fence,
		.channel = u->entry.channel,
		.beats = (uint8_t)(((u->ask.va & 15u) + u->ask.len + 15u) >> 4 & 7u),
		.len = u->ask.len,
		.slot = (uint8_t)s->id,
		.tag = u->ask.tag,
		.lline = ((u->entry.local << (m->hash.gran - 6)) | off >> 6) & 0x3FFFFFFu,
		.pa = u->entry.pa | off};
}

static void flush(struct mmu *u)
{
	for (uint32_t i = 0; i < 1024; i++)
		u->tlb[i].v = false;
	for (uint32_t i = 0; i < 16; i++)
		u->table[i].v = false;
	for (uint32_t i = 0; i < 8; i++)
		u->line[i].v = false;
}

void mmu_step(struct npu_model *m, struct slot *s, const struct ask *ask, bool kill)
{
	struct mmu *u = &s->mmu;

	if (s->acc)
		u->req.v = false;
	if (u->ask_v)
		walk_step(m, s);
	if (u->ok && u->free)
		u->req = request_of(m, s);
	if (ask) {
		u->ask = *ask;
		u->ask_v = true;
		u->entry = u->tlb[tlb_index(ask->va >> m->hash.gran, s->context)];
		u->have = u->entry.v;
	} else if (u->next) {
		u->ask_v = false;
	}
	if (s->flush)
		flush(u);
	if (kill) {
		u->req.v = false;
		u->ask_v = false;
		u->walk = WALK_IDLE;
		u->leaf = false;
	}
}
