/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel driver's topology in sysfs: a folder a node, one "key value" a line. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MOST 256u
#define RDNA       100000u

struct node {
	uint64_t simd_count, simd_per_cu, array_count, simd_arrays_per_engine;
	uint64_t num_xcc, gfx_target_version, location_id, domain;
};

static const struct {
	const char *key;
	size_t offset;
} fields[] = {
#define FIELD(name)                                                                      \
	{                                                                                \
#name, offsetof(struct node, name)                                       \
	}
	FIELD(simd_count),  FIELD(simd_per_cu),
	FIELD(array_count), FIELD(simd_arrays_per_engine),
	FIELD(num_xcc),     FIELD(gfx_target_version),
	FIELD(location_id), FIELD(domain),
#undef FIELD
};

static void read_line(const char *line, struct node *n)
{
	const size_t bytes = strcspn(line, " ");
	const uint64_t value = strtoull(line + bytes, NULL, 10);
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strlen(fields[i].key) == bytes &&
		    memcmp(line, fields[i].key, bytes) == 0)
			memcpy((char *)n + fields[i].offset, &value, sizeof(value));
}

/* False: there is no such node, or it cannot be read. */
static bool read_node(const char *dir, uint32_t number, struct node *n)
{
	char path[512], line[128];
	FILE *f;

	memset(n, 0, sizeof(*n));
	if (snprintf(path, sizeof(path), "%s/%u/properties", dir, number) >=
	    (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		read_line(line, n);
	(void)fclose(f);
	return true;
}

static int odd(const char *bus_id, const char *what, uint64_t value)
{
	return rocm_host->fail(ENOTSUP, "rocm: topology of %s: %s %" PRIu64, bus_id, what,
			       value);
}

static int understand(const char *bus_id, const struct node *n, struct rocm_topology *t)
{
	if (!n->simd_per_cu || n->simd_count % n->simd_per_cu || !n->simd_count)
		return odd(bus_id, "simd_per_cu is", n->simd_per_cu);
	if (n->simd_count / n->simd_per_cu > UINT64_C(32) * ROCM_MASK_WORDS)
		return odd(bus_id, "too many SIMDs:", n->simd_count);
	if (!n->simd_arrays_per_engine || !n->array_count ||
	    n->array_count % n->simd_arrays_per_engine || n->array_count > 512)
		return odd(bus_id, "array_count is", n->array_count);
	if (n->num_xcc > 64)
		return odd(bus_id, "num_xcc is", n->num_xcc);
	t->cus = (uint32_t)(n->simd_count / n->simd_per_cu);
	t->arrays = (uint32_t)n->simd_arrays_per_engine;
	t->engines = (uint32_t)(n->array_count / n->simd_arrays_per_engine);
	t->xccs = n->num_xcc ? (uint32_t)n->num_xcc : 1;
	t->target = (uint32_t)n->gfx_target_version;
	return 0;
}

bool rocm_topology_address(const char *bus_id, uint64_t *domain, uint64_t *location)
{
	static const char between[] = "::.";
	uint64_t part[4];
	uint32_t i;

	for (i = 0; i < 4; i++) {
		char *end;

		part[i] = strtoul(bus_id, &end, 16);
		if (end == bus_id || *end != between[i])
			return false;
		bus_id = end + 1;
	}
	*domain = part[0];
	*location = part[1] << 8 | part[2] << 3 | part[3];
	return true;
}

int rocm_topology_read(const char *dir, const char *bus_id, struct rocm_topology *t)
{
	struct node n, it = {0};
	uint64_t domain, location;
	uint32_t i, found = 0;

	if (!rocm_topology_address(bus_id, &domain, &location))
		return rocm_host->fail(ENOTSUP, "rocm: '%s' is not a PCI address",
				       bus_id);
	for (i = 0; i < NODES_MOST; i++) {
		if (!read_node(dir, i, &n) || !n.simd_count || n.domain != domain ||
		    n.location_id != location)
			continue;
		it = n;
		found++;
	}
	if (!found)
		return rocm_host->fail(
			ENODEV, "rocm: no topology node for device %s in folder %s",
			bus_id, dir);
	if (found > 1)
		return rocm_host->fail(ENOTSUP,
				       "rocm: %u topology nodes have the address %s: "
				       "cannot tell which is this device",
				       found, bus_id);
	return understand(bus_id, &it, t);
}

int rocm_topology_units(const struct rocm_topology *t, uint32_t multiprocessors,
			bool single, struct rocm_units *u)
{
	/* Whether a bit is a CU or a pair there differs from release to release: pairs of
	 * bits are apart both ways. */
	const uint32_t together = t->target >= RDNA ? 2 : 1;
	const uint32_t bits = multiprocessors < t->cus ? multiprocessors : t->cus;

	if (single && t->xccs > 1)
		return rocm_host->fail(
			ENOTSUP,
			"rocm: partitions=cu: not supported on a device with %u XCCs: an "
			"XCC without a mask bit would run on all its CUs",
			t->xccs);
	u->together = together;
	u->bits = bits / together * together;
	u->stride = together;
	if (!single)
		u->stride = t->xccs > 1 ? t->xccs : t->engines * together;
	if (u->stride > u->bits)
		u->stride = u->bits;
	if (!u->bits)
		return rocm_host->fail(
			ENOTSUP,
			"rocm: cannot form partition units from %u compute units", bits);
	u->count = u->bits / u->stride;
	return 0;
}

void rocm_topology_mask(const struct rocm_units *u, uint32_t first, uint32_t count,
			uint32_t mask[ROCM_MASK_WORDS])
{
	uint32_t bit = first * u->stride;
	const uint32_t end =
		first + count == u->count ? u->bits : (first + count) * u->stride;

	memset(mask, 0, ROCM_MASK_WORDS * sizeof(*mask));
	for (; bit < end; bit++)
		mask[bit / 32] |= 1u << bit % 32;
}
