/* SPDX-License-Identifier: Apache-2.0 */
/*
 * color_map.h - on which memory channel each granule of a device's memory lies.
 *
 *   device tells  --\
 *   file "halmap" ---+--> struct color_map --> channel of a granule; allocators; a file
 *   found by timing -/
 *
 * Of the library and of tools: nothing here needs another part of either.  Numbers of
 * channels are names: two maps are the same if they put the same granules together
 * (color_map_differ).  The file (read, written and checked here alone) is text, one item
 * a line, checksum last:
 *
 *   halmap 1
 *   device NAME SHAPE BYTES       as color_map_device names them
 *   granule BYTES                 a power of two, 64 .. 2097152
 *   channels N                    1 .. 64
 *   kind xor|xormod|table
 *   mask HEX                      xor, xormod: bit i of the channel is the parity of
 *                                 granule & mask i; a line for each i, the lowest first
 *   mod Q SHIFT C0 C1 ...         xormod: f = sum of Cj * digit j of granule >> SHIFT in
 *                                 base Q, modulo Q; channel = f << masks | parities
 *   table DIGITS                  table: granules in order, any number of lines; one
 *                                 hexadecimal digit each, two with more than 16 channels;
 *                                 - or --: not known, and never handed out
 *   verified TESTS BAD BOUND      left out: it was not
 *   noise P0 P1                   share of tests that said "same" of granules that were
 *                                 not, and that were; may be left out
 *   probe TESTS LOADS CYCLES SEED how it was found; may be left out
 *   sum HEX                       SHA-256 of all lines before
 *
 * Fractions are 0 to 1 with up to nine digits behind the point.
 */
#ifndef HAL_LIB_COLOR_MAP_H
#define HAL_LIB_COLOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/backend.h>

#define COLOR_MAP_WHY    512 /* bytes of an error text */
#define COLOR_MAP_MASKS  6u
#define COLOR_MAP_DIGITS 32u
#define COLOR_MAP_COLORS HAL_BK_COLORS_MAX
#define COLOR_NONE       0xffu /* the channel of a granule is not known */
/* A map is verified if not more granules than that can be wrong. */
#define COLOR_MAP_BOUND 0.001

enum color_map_kind { COLOR_MAP_XOR, COLOR_MAP_XORMOD, COLOR_MAP_TABLE };

enum color_map_source {
	COLOR_MAP_TOLD,  /* by the device */
	COLOR_MAP_FILE,  /* that does not say how it was found */
	COLOR_MAP_PROBE, /* found by timing */
};

struct color_map {
	char device[80], shape[24]; /* color_map_device; "": of no device */
	uint64_t memory;            /* bytes */
	uint32_t granule;           /* bytes */
	uint32_t channels;
	uint32_t kind;   /* enum color_map_kind */
	uint32_t source; /* enum color_map_source */
	uint32_t mask_count;
	uint64_t mask[COLOR_MAP_MASKS];
	uint32_t q, shift, digits;
	uint8_t weight[COLOR_MAP_DIGITS];
	uint8_t *table; /* of memory / granule; malloc */
	/* Granules tried afresh, those that were elsewhere, and the share that is wrong
	 * at most, with 95 %.  No tests: nobody tried. */
	uint64_t tests, bad;
	double bound;
	double p0, p1; /* of tests, by granules that differ and that do not */
	bool noise;
	uint64_t probe_tests, probe_loads, probe_cycles, probe_seed;
	bool probed;
};

/* "xor", "xormod", "table". */
const char *color_map_kind(const struct color_map *map);

/* What a file calls the device of info: its backend, and unless that is a model of one,
 * its name; its units; its memory. */
void color_map_device(struct color_map *map, const struct hal_device_info *info);

/* What a backend tells, as a map of no device; it lasts as long as told's table. */
void color_map_of(struct color_map *map, const struct hal_bk_color_map *told);
/* The other way; it lasts as long as map. */
void color_map_tell(const struct color_map *map, struct hal_bk_color_map *out);

/* -EINVAL with why (names the item) unless it is a map: every channel can occur. */
int color_map_check(const struct color_map *map, char why[COLOR_MAP_WHY]);

static inline uint64_t color_map_granules(const struct color_map *map)
{
	return map->memory / map->granule;
}

/* Channel of a granule; COLOR_NONE: not known. */
uint32_t color_map_channel(const struct color_map *map, uint64_t granule);

static inline bool color_map_verified(const struct color_map *map)
{
	return map->tests > 0 && map->bound <= COLOR_MAP_BOUND;
}

/* False: they are the same but for names of channels.  True: *granule is the first that
 * b has elsewhere; of maps that differ in granule, channels or memory it is 0.  What
 * either does not know does not count. */
bool color_map_differ(const struct color_map *a, const struct color_map *b,
		      uint64_t *granule);

/* A map of a file: 0 and *out, to be given to color_map_free; -EINVAL what it says,
 * -ENOMEM, else path's errno; why names file, line and item. */
int color_map_read(const char *path, struct color_map **out, char why[COLOR_MAP_WHY]);
/* The same of bytes; name is for error texts. */
int color_map_parse(const char *bytes, size_t size, const char *name,
		    struct color_map **out, char why[COLOR_MAP_WHY]);
/* Whether it is of this device: -EINVAL another device or memory of another length;
 * unless unverified, -EPERM nobody has verified it. */
int color_map_fits(const struct color_map *map, const struct hal_device_info *info,
		   bool unverified, const char *name, char why[COLOR_MAP_WHY]);

/* Whether pages of so many bytes, by which a device places memory, can be of one tenant's
 * channels (hal_color.h; SGDRC, A.2): a granule each or a part of one, or of so many as
 * the channels that stand together wherever one of them does.  0: the device does not
 * say.  -EINVAL they cannot: why names both and the channels. */
int color_map_pages(const struct color_map *map, uint32_t page, const char *name,
		    char why[COLOR_MAP_WHY]);

/* By pages that are a part of a granule each, as a device takes it: granules are pages
 * then.  Others are left as they are.  -ENOMEM. */
int color_map_split(struct color_map *map, uint32_t page);

/* As a file has it: malloc, *size bytes and a 0.  NULL: -ENOMEM, or no map. */
char *color_map_text(const struct color_map *map, size_t *size, char why[COLOR_MAP_WHY]);
/* A file that is there is replaced in one step; 0 or -errno. */
int color_map_write(const struct color_map *map, const char *path,
		    char why[COLOR_MAP_WHY]);

/* NULL is let pass. */
void color_map_free(struct color_map *map);

#endif
