/* SPDX-License-Identifier: Apache-2.0 */
/*
 * color_map.h - a map from granules of device memory to memory channels.
 *
 * A granule is an aligned stretch of memory that lies on one channel.  A map comes from
 * the device (color_map_of), from a file (color_map_read), or from measured access times
 * (halctl probe).  The library and the tools share this module.
 *
 * The numbers of channels are only names: two maps are equal if they put the same
 * granules on a common channel (color_map_differ).
 *
 * A map file is text with one item per line and the checksum last.  Only this module
 * reads and writes it:
 *
 *   halmap 1                      version
 *   device NAME SHAPE BYTES       as color_map_device writes them
 *   granule BYTES                 a power of two, 64 .. 2097152
 *   channels N                    1 .. 64
 *   kind xor|xormod|table
 *   mask HEX                      xor, xormod: bit i of the channel number is the
 *                                 parity of granule & mask i; one line per i, the
 *                                 lowest first
 *   mod Q SHIFT C0 C1 ...         xormod: f = sum of Cj * digit j of granule >> SHIFT
 *                                 in base Q, modulo Q; channel = f << masks | parities
 *   table DIGITS                  table: the channels of the granules in order, on any
 *                                 number of lines; one hexadecimal digit each, or two
 *                                 with more than 16 channels.  - or --: unknown; such
 *                                 a granule is never allocated
 *   verified TESTS BAD BOUND      result of a verification; omitted if there was none
 *   noise P0 P1                   share of tests that answered "same channel" for
 *                                 granules that were on different channels, and for
 *                                 granules on one channel; optional
 *   probe TESTS LOADS CYCLES SEED how the map was found; optional
 *   sum HEX                       SHA-256 of all lines before
 *
 * Fractions are 0 to 1 with up to nine digits after the point.
 */
#ifndef HAL_LIB_COLOR_MAP_H
#define HAL_LIB_COLOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/backend.h>

#define COLOR_MAP_WHY    512 /* size of an error text in bytes */
#define COLOR_MAP_MASKS  6u
#define COLOR_MAP_DIGITS 32u
#define COLOR_MAP_COLORS HAL_BK_COLORS_MAX
#define COLOR_NONE       0xffu /* the channel of a granule is not known */
/* A map counts as verified if at most this share of its granules can be wrong. */
#define COLOR_MAP_BOUND 0.001

enum color_map_kind { COLOR_MAP_XOR, COLOR_MAP_XORMOD, COLOR_MAP_TABLE };

enum color_map_source {
	COLOR_MAP_TOLD,  /* reported by the device */
	COLOR_MAP_FILE,  /* from a file that does not say how it was found */
	COLOR_MAP_PROBE, /* from measured access times */
};

struct color_map {
	char device[80], shape[24]; /* see color_map_device; "": no device */
	uint64_t memory;            /* bytes */
	uint32_t granule;           /* bytes */
	uint32_t channels;
	uint32_t kind;   /* enum color_map_kind */
	uint32_t source; /* enum color_map_source */
	uint32_t mask_count;
	uint64_t mask[COLOR_MAP_MASKS];
	uint32_t q, shift, digits;
	uint8_t weight[COLOR_MAP_DIGITS];
	uint8_t *table; /* kind table: one channel per granule, from malloc */
	/* Verification: granules tested, granules on another channel than the map says,
	 * and the largest share of wrong granules at 95 % confidence.  tests is 0 if the
	 * map was not verified. */
	uint64_t tests, bad;
	double bound;
	double p0, p1; /* P0 and P1 of item noise, if .noise */
	bool noise;
	uint64_t probe_tests, probe_loads, probe_cycles, probe_seed;
	bool probed;
};

/* Return the name of the map's kind: "xor", "xormod" or "table". */
const char *color_map_kind(const struct color_map *map);

/* Set device, shape and memory of map from info, as a map file states them.  device is
 * the name of the backend, followed by the device's name unless the device is simulated.
 * shape is the rows and columns of units, such as 4x8. */
void color_map_device(struct color_map *map, const struct hal_device_info *info);

/* Fill map from what a backend reports; device and shape stay empty.  map refers to the
 * table of reported, so do not free map. */
void color_map_of(struct color_map *map, const struct hal_bk_color_map *reported);
/* Fill out from map, for a backend.  out refers to the table of map. */
void color_map_tell(const struct color_map *map, struct hal_bk_color_map *out);

/* Check that map is complete and consistent, and that each channel has granules.  Return
 * 0, or -EINVAL with the reason in why, which begins with the item at fault. */
int color_map_check(const struct color_map *map, char why[COLOR_MAP_WHY]);

static inline uint64_t color_map_granules(const struct color_map *map)
{
	return map->memory / map->granule;
}

/* Return the channel of a granule, or COLOR_NONE if it is not known. */
uint32_t color_map_channel(const struct color_map *map, uint64_t granule);

static inline bool color_map_verified(const struct color_map *map)
{
	return map->tests > 0 && map->bound <= COLOR_MAP_BOUND;
}

/* Return whether a and b differ, other than in the numbers of their channels.  Set
 * *granule to the first granule that is on another channel, or to 0 if granule size,
 * number of channels or memory differ.  Granules that either map does not know are
 * ignored. */
bool color_map_differ(const struct color_map *a, const struct color_map *b,
		      uint64_t *granule);

/* Read a map from a file into *out, to be freed with color_map_free.  Return 0, -EINVAL
 * if the text is not a valid map, -ENOMEM, or -errno if the file cannot be read.  The
 * text in why names file, line and item. */
int color_map_read(const char *path, struct color_map **out, char why[COLOR_MAP_WHY]);
/* Parse bytes[0..size) likewise; name stands for the file in error texts. */
int color_map_parse(const char *bytes, size_t size, const char *name,
		    struct color_map **out, char why[COLOR_MAP_WHY]);
/* Check that the map was made for this device.  Return 0, -EINVAL if device or memory
 * size differ, or -EPERM if the map is not verified and the flag unverified is false. */
int color_map_fits(const struct color_map *map, const struct hal_device_info *info,
		   bool unverified, const char *name, char why[COLOR_MAP_WHY]);

/* Check that pages of the size in which a device allocates memory can belong to the
 * channels of one tenant (hal_color.h; SGDRC, appendix A.2).  That is true for a page
 * within one granule, and for a page of several granules if the page's channels form a
 * group: any other page with one of them has exactly the same channels.  page 0: the
 * device does not report a page size, and every map fits.  Return 0, or -EINVAL with the
 * reason in why.
 */
int color_map_pages(const struct color_map *map, uint32_t page, const char *name,
		    char why[COLOR_MAP_WHY]);

/* Convert map to granules of page bytes, as a device expects it, if a page is smaller
 * than a granule.  Otherwise leave map as it is.  Return 0 or -ENOMEM. */
int color_map_split(struct color_map *map, uint32_t page);

/* Return the text of a map file, from malloc: *size bytes and a NUL.  Return NULL with
 * the reason in why if the map is not valid, names no device, or memory is short. */
char *color_map_text(const struct color_map *map, size_t *size, char why[COLOR_MAP_WHY]);
/* Write the map to a file.  Replace an existing file atomically.  Return 0 or -errno. */
int color_map_write(const struct color_map *map, const char *path,
		    char why[COLOR_MAP_WHY]);

/* Free a map from color_map_read or color_map_parse; map may be NULL. */
void color_map_free(struct color_map *map);

#endif
