/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch descriptors: whoever has subscribed sees one before each launch, and what its
 * mask says then counts.  Bits are places of a device as it was drawn (tpc.h), before
 * what is broken was left out: bit i is in cluster i % clusters; multiprocessors are
 * counted cluster by cluster, those of a place together.  Of an H100: as one was seen.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define QMD_BYTES   384u
#define TABLE_SLOTS 11u
#define DOMAIN      0xb

typedef void (*callback_fn)(void *user, int domain, int id, const void *params);

static struct {
	callback_fn fn;
	void *user;
	bool on;
} subscriber;

static uint32_t subscribe(uint32_t *handle, callback_fn fn, void *user)
{
	subscriber.fn = fn;
	world.hooked = true;
	subscriber.user = user;
	*handle = 7;
	return CUR_SUCCESS;
}

static uint32_t enable(uint32_t on, uint32_t handle, int domain, int id)
{
	if (handle != 7 || domain != DOMAIN || id != 1)
		return CUR_INVALID_VALUE;
	subscriber.on = on;
	world.hooked |= on;
	return CUR_SUCCESS;
}

const void *export_table(void)
{
	static const void *table[TABLE_SLOTS];
	uint32_t (*s)(uint32_t *, callback_fn, void *) = subscribe;
	uint32_t (*e)(uint32_t, uint32_t, int, int) = enable;
	const char *slots = getenv("HAL_STAND_IN_CUDA_SLOTS");
	/* No more than are called. */
	const uint64_t bytes = (slots ? strtoul(slots, NULL, 0) : 7) * sizeof(table[0]);

	memcpy(&table[0], &bytes, sizeof(bytes));
	memcpy(&table[3], &s, sizeof(s));
	memcpy(&table[6], &e, sizeof(e));
	return table;
}

static uint32_t version_of(const struct device *dev)
{
	const char *text = getenv("HAL_STAND_IN_CUDA_QMD");

	if (text)
		return (uint32_t)strtoul(text, NULL, 0);
	return gpu_of(dev)->qmd;
}

/* Bit number i of the mask; the table of cl*qmd.h once more, by bits. */
static bool masked(const uint8_t *q, uint32_t version, uint32_t i)
{
	uint32_t at = 84 * 8 + i;

	if (version >= 0x40) {
		const uint32_t valid = version >= 0x50 ? 159 : 31;

		if (!(q[valid / 8] >> valid % 8 & 1))
			return false;
		at = (version >= 0x50 ? 280u : 304u) * 8 + i;
	} else if (i >= 64) {
		return false;
	}
	return version >= 0x16 && (q[at / 8] >> at % 8 & 1);
}

static uint32_t put_place(const struct tpc_gpu *g, bool is, uint32_t unit,
			  bool off[UNITS_MAX])
{
	uint32_t i;

	for (i = 0; i < g->sms; i++)
		off[unit++] = is;
	return unit;
}

static void take_off(const struct device *dev, const uint8_t *q, uint32_t version,
		     bool off[UNITS_MAX])
{
	const struct tpc_gpu *g = gpu_of(dev);
	const uint32_t all = g->clusters * g->places;
	uint32_t i, unit = 0;

	for (i = 0; i < all; i++) {
		const uint32_t c = g->by_cluster ? i % g->clusters : i / g->places,
			       p = g->by_cluster ? i / g->clusters : i % g->places,
			       bit = g->by_cluster ? c * g->places + p
						   : p * g->clusters + c;

		if (!(g->broken[c] >> p & 1))
			unit = put_place(g, masked(q, version, bit), unit, off);
	}
	for (i = 0; g->by_cluster && i < sizeof(g->single); i++)
		unit = put_place(g, masked(q, version, g->single[i]), unit, off);
}

/* Groups as the driver counts them, without those that do not work. */
void stream_show(const struct stream *s, int version, bool off[UNITS_MAX])
{
	const uint32_t sms = gpu_of(s->object.dev)->sms;
	uint32_t at = 0x5fc, field[5] = {0}, i;
	bool any = false;

	if (version == CU_VERSION(13, 0))
		at = 0x51c;
	else if (version >= CU_VERSION(12, 7) && version <= CU_VERSION(12, 8))
		at = 0x4fc;
	else if (version >= CU_VERSION(12, 5) && version <= CU_VERSION(12, 6))
		at = 0x4ec;
	else if (version == CU_VERSION(12, 4))
		at = 0x4ac;
	if (at + sizeof(field) <= sizeof(s->own))
		memcpy(field, s->own + at, sizeof(field));
	for (i = 0; field[0] && i < s->object.dev->units && i / sms < 128; i++)
		any |= off[i] = field[1 + i / sms / 32] >> i / sms % 32 & 1;
	if (any && ignores("HAL_STAND_IN_CUDA_STREAM"))
		memset(off, 0, UNITS_MAX * sizeof(*off));
}

void qmd_show(const struct device *dev, bool off[UNITS_MAX])
{
	const uint32_t version = version_of(dev);
	uint8_t qmd[QMD_BYTES] = {0};
	const void *params[TABLE_SLOTS] = {0};
	const uint64_t bytes = sizeof(params);
	bool by_mask[UNITS_MAX] = {false}, any = false;
	uint32_t i;

	qmd[version >= 0x50 ? 58 : 72] = (uint8_t)version;
	memcpy(&params[0], &bytes, sizeof(bytes));
	params[4] = qmd;
	if (subscriber.on && subscriber.fn && !world.silent)
		subscriber.fn(subscriber.user, DOMAIN, 1, params);
	take_off(dev, qmd, version, by_mask);
	for (i = 0; i < dev->units; i++)
		any |= by_mask[i];
	if (any && ignores("HAL_STAND_IN_CUDA_MASK"))
		return;
	for (i = 0; i < dev->units; i++)
		off[i] |= by_mask[i];
}
