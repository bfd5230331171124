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

static bool walk_bad(const struct npu_model *m, const struct slot *s, uint32_t *kind)
{
	const struct mmu *u = &s->mmu;
	uint32_t granule = (u->pte & ~255u) >> m->hash.gran;

	if (u->walk != WALK_CHECK || u->more)
		return false;
	*kind = u->pte & NPU_PTE_VALID ? NPU_FAULT_CHANNEL : NPU_FAULT_UNMAPPED;
	return !(u->pte & NPU_PTE_VALID) ||
	       (u->leaf && !(s->ch_mask >> npu_hash_map(&m->hash, granule).channel & 1u));
}

static void check(struct npu_model *m, struct slot *s, enum way way)
{
	struct translate *t = &s->mmu.way[way];
	uint32_t vpn = t->ask.va >> m->hash.gran, kind = NPU_FAULT_NONE;
	bool hit = false;

	t->free = (!t->req.v || s->acc[way]) && !s->mmu.hold;
	if (t->ask_v) {
		hit = t->have && t->entry.vpn == vpn && t->entry.context == s->context;
		if (vpn >= s->pt_count)
			kind = NPU_FAULT_BOUNDS;
		else if (hit && !(s->ch_mask >> t->entry.channel & 1u))
			kind = NPU_FAULT_CHANNEL;
		else if (hit && way == STORES && !t->entry.w)
			kind = NPU_FAULT_WRITE;
	}
	t->ok = hit && kind == NPU_FAULT_NONE;
	t->miss = t->ask_v && !hit && kind == NPU_FAULT_NONE;
	/* A walk's request goes by the loads' way, and first. */
	if (way == LOADS && s->mmu.walk == WALK_ASK)
		t->free = false;
	t->next = !t->ask_v || (t->ok && t->free);
	t->kind = kind;
	t->fault = kind != NPU_FAULT_NONE;
	if (s->mmu.walk == WALK_CHECK && s->mmu.whose == way && t->miss &&
	    vpn == s->mmu.vpn && walk_bad(m, s, &kind)) {
		t->kind = kind;
		t->fault = true;
	}
}

bool mmu_held(const struct slot *s)
{
	return s->mmu.hold &&
	       (s->pending || s->mmu.way[LOADS].req.v || s->mmu.way[STORES].req.v);
}

/* What the requests that were chosen in an earlier cycle come to. */
void mmu_check(struct npu_model *m, struct slot *s)
{
	s->mmu.hold = mmu_held(s);
	check(m, s, LOADS);
	check(m, s, STORES);
}

/* CLIENTS: nobody. */
int mmu_choose(struct mmu *u, uint32_t asks, uint32_t urgent)
{
	uint32_t sel = u->rr;

	if (!asks || !u->way[LOADS].next)
		return CLIENTS;
	if (asks & urgent) {
		sel = (uint32_t)__builtin_ctz(asks & urgent);
	} else {
		while (!(asks >> sel & 1u))
			sel = sel + 1 == CLIENTS ? 0 : sel + 1;
	}
	if (sel == u->rr) {
		u->rr = u->burst == 7 ? sel + 1 == CLIENTS ? 0 : sel + 1 : sel;
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

/* true: *fill is what the entry says. */
static bool translation(const struct npu_model *m, const struct slot *s, uint32_t vpn,
			struct tlb *fill)
{
	const struct mmu *u = &s->mmu;
	struct npu_hash_place p =
		npu_hash_map(&m->hash, (u->pte & ~255u) >> m->hash.gran);

	*fill = (struct tlb){.v = true,
			     .w = (u->pte & NPU_PTE_WRITE) != 0,
			     .channel = (uint8_t)p.channel,
			     .context = (uint8_t)s->context,
			     .vpn = vpn,
			     .pa = u->pte & ~255u,
			     .local = p.local};
	return (u->pte & NPU_PTE_VALID) && s->ch_mask >> p.channel & 1u;
}

/* The rest of a line. */
static bool more_check(struct npu_model *m, struct slot *s, struct tlb *fill)
{
	struct mmu *u = &s->mmu;
	uint32_t vpn = u->vpn++;
	bool miss = u->way[LOADS].miss || u->way[STORES].miss;

	u->more = !miss && u->vpn & 15u && u->vpn < s->pt_count;
	u->walk = u->more ? WALK_LINE : WALK_IDLE;
	u->leaf = u->more;
	return translation(m, s, vpn, fill);
}

/* true: *fill has been read and is right. */
static bool walk_check(struct npu_model *m, struct slot *s, uint32_t vpn,
		       struct tlb *fill)
{
	struct mmu *u = &s->mmu;
	uint32_t root = vpn >> (m->hash.gran - 2), i = (root ^ root >> 4) & 15u, kind;

	if (u->more)
		return more_check(m, s, fill);
	s->count[CNT_TLB] += u->leaf;
	if (walk_bad(m, s, &kind)) {
		for (uint32_t n = 0; n < 8; n++)
			u->line[n].v = false;
		u->walk = WALK_IDLE;
		u->leaf = false;
		return false;
	}
	if (!u->leaf) {
		u->table[i].v = true;
		u->table[i].context = (uint8_t)s->context;
		u->table[i].index = root;
		u->table[i].pa = u->pte & ~255u;
		u->leaf = true;
		u->walk = WALK_TABLE;
		return false;
	}
	u->vpn = vpn + 1;
	u->more = u->vpn & 15u && u->vpn < s->pt_count;
	u->leaf = u->more;
	u->walk = u->more ? WALK_TABLE : WALK_IDLE;
	return translation(m, s, vpn, fill);
}

/* true: a translation has come. */
static bool walk_step(struct npu_model *m, struct slot *s, struct tlb *fill)
{
	struct mmu *u = &s->mmu;
	uint32_t vpn = u->vpn;
	struct translate *loads = &u->way[LOADS];
	struct npu_hash_place p;
	uint32_t pa, l;

	switch (u->walk) {
	case WALK_IDLE:
		if (loads->miss || u->way[STORES].miss) {
			u->whose = u->way[STORES].miss ? STORES : LOADS;
			u->vpn = u->way[u->whose].ask.va >> m->hash.gran;
			u->walk = WALK_TABLE;
		}
		break;
	case WALK_TABLE:
		if (u->more)
			u->walk = WALK_LINE;
		else
			walk_table(m, s, vpn);
		break;
	case WALK_LINE:
		pa = pte_address(m, s, vpn);
		u->pte = u->line[line_index(pa >> 6)].entry[pa >> 2 & 15u];
		u->walk = u->more || u->pte & NPU_PTE_VALID ? WALK_CHECK : WALK_ASK;
		break;
	case WALK_ASK:
		if (loads->req.v || u->hold)
			break;
		pa = pte_address(m, s, vpn);
		p = npu_hash_line(&m->hash, pa);
		loads->req = (struct request){.v = true,
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
		if (!u->leaf || u->stale)
			break;
		l = line_index(pa >> 6);
		u->line[l].v = true;
		u->line[l].address = pa >> 6;
		memcpy(u->line[l].entry, u->walk_line, sizeof(u->walk_line));
		break;
	case WALK_CHECK:
		return walk_check(m, s, vpn, fill);
	}
	return false;
}

static struct request request_of(const struct npu_model *m, const struct slot *s,
				 enum way way)
{
	const struct translate *t = &s->mmu.way[way];
	uint32_t off = t->ask.va & ((1u << m->hash.gran) - 1u);

	return (struct request){
		.v = true,
		.we = way == STORES,
		.fence = t->ask.fence,
		.channel = t->entry.channel,
		.beats = (uint8_t)(((t->ask.va & 15u) + t->ask.len + 15u) >> 4 & 7u),
		.len = t->ask.len,
		.slot = (uint8_t)s->id,
		.tag = t->ask.tag,
		.lline = ((t->entry.local << (m->hash.gran - 6)) | off >> 6) & 0x3FFFFFFu,
		.pa = t->entry.pa | off};
}

static void flush(struct mmu *u)
{
	for (uint32_t i = 0; i < 1024; i++)
		u->tlb[i].v = false;
	for (uint32_t i = 0; i < 16; i++)
		u->table[i].v = false;
	for (uint32_t i = 0; i < 8; i++)
		u->line[i].v = false;
	for (int w = 0; w < WAYS; w++)
		u->way[w].have = false;
	u->hold = true;
}

static void translate_step(struct npu_model *m, struct slot *s, enum way way,
			   const struct ask *ask, const struct tlb *fill)
{
	struct translate *t = &s->mmu.way[way];

	if (t->ok && t->free)
		t->req = request_of(m, s, way);
	if (ask) {
		t->ask = *ask;
		t->ask_v = true;
		t->entry = s->mmu.tlb[tlb_index(ask->va >> m->hash.gran, s->context)];
		t->have = t->entry.v;
		return;
	}
	if (t->next)
		t->ask_v = false;
	if (fill && t->ask.va >> m->hash.gran == fill->vpn) {
		t->entry = *fill;
		t->have = true;
	}
}

void mmu_step(struct npu_model *m, struct slot *s, const struct ask *load,
	      const struct ask *store, bool kill)
{
	struct mmu *u = &s->mmu;
	struct tlb fill;
	bool filled = false;

	for (int w = 0; w < WAYS; w++)
		if (s->acc[w])
			u->way[w].req.v = false;
	if (u->way[LOADS].ask_v || u->way[STORES].ask_v || u->more)
		filled = walk_step(m, s, &fill);
	translate_step(m, s, LOADS, load, filled ? &fill : NULL);
	translate_step(m, s, STORES, store, filled ? &fill : NULL);
	if (filled)
		u->tlb[tlb_index(fill.vpn, s->context)] = fill;
	if (s->flush)
		flush(u);
	if (kill)
		for (int w = 0; w < WAYS; w++)
			u->way[w].req.v = u->way[w].ask_v = false;
	/* What was read before a flush is read again; what has been asked for is waited
	 * for first. */
	u->stale |= s->flush;
	if (kill || (u->stale && u->walk != WALK_WAIT) || (u->more && s->rests)) {
		u->walk = WALK_IDLE;
		u->leaf = u->more = false;
	}
	u->stale &= u->walk == WALK_WAIT;
}
