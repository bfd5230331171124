/* SPDX-License-Identifier: Apache-2.0 */
/* color_map.c - maps from granules to memory channels, and their files; see color_map.h.
 */
#include "lib/color_map.h"

#include <errno.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/device/hal_color.h>

#include "lib/utf8.h"

#define HEAD          "halmap 1"
#define GRANULE_LEAST 64u
#define GRANULE_MOST  (1u << 21)
#define GRANULES_MOST (UINT64_C(1) << 30)
#define FILE_MOST     (UINT64_C(4) << 30)
#define ROW           64u /* granules per line of a table that is written */
#define BILLION       UINT64_C(1000000000)

static const char *const kinds[] = {"xor", "xormod", "table"};

const char *color_map_kind(const struct color_map *map)
{
	return kinds[map->kind];
}

__attribute__((format(printf, 2, 3))) static int refuse(char why[COLOR_MAP_WHY],
							const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start was called */
	(void)vsnprintf(why, COLOR_MAP_WHY, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- contents and checks ----------------------------------------------------------- */

/* Append text to a word of a line; replace blanks, control and non-ASCII bytes by _. */
static void add_word(char *to, size_t size, const char *text)
{
	size_t n = strlen(to);

	for (; *text != '\0' && n + 1 < size; text++)
		to[n++] = (char)(*text > ' ' && *text < 0x7f ? *text : '_');
	to[n] = '\0';
}

void color_map_device(struct color_map *map, const struct hal_device_info *info)
{
	map->device[0] = '\0';
	add_word(map->device, sizeof(map->device), info->backend);
	if ((info->caps & HAL_CAP_SIMULATED) == 0) {
		add_word(map->device, sizeof(map->device), ":");
		add_word(map->device, sizeof(map->device), info->name);
	}
	(void)snprintf(map->shape, sizeof(map->shape), "%ux%u", info->unit_rows,
		       info->unit_cols);
	map->memory = info->memory_bytes;
}

void color_map_of(struct color_map *map, const struct hal_bk_color_map *reported)
{
	*map = (struct color_map){
		.memory = reported->granules * reported->granule_bytes,
		.granule = reported->granule_bytes,
		.channels = reported->colors,
		.kind = reported->q != 0 ? COLOR_MAP_XORMOD : COLOR_MAP_XOR,
		.source = COLOR_MAP_TOLD,
		.mask_count = reported->mask_count,
		.q = reported->q,
		.shift = reported->shift,
		.digits = reported->digits,
	};
	memcpy(map->mask, reported->mask, sizeof(map->mask));
	memcpy(map->weight, reported->weight, sizeof(map->weight));
	if (reported->table == NULL)
		return;
	map->kind = COLOR_MAP_TABLE;
	/* memcpy drops the const: the map does not write to the table, nor free it. */
	memcpy(&map->table, &reported->table, sizeof(map->table));
}

void color_map_tell(const struct color_map *map, struct hal_bk_color_map *out)
{
	*out = (struct hal_bk_color_map){
		.granule_bytes = map->granule,
		.colors = map->channels,
		.granules = color_map_granules(map),
		.table = map->kind == COLOR_MAP_TABLE ? map->table : NULL,
		.mask_count = map->mask_count,
		.q = map->kind == COLOR_MAP_XORMOD ? map->q : 0,
		.shift = map->shift,
		.digits = map->digits,
	};
	memcpy(out->mask, map->mask, sizeof(out->mask));
	memcpy(out->weight, map->weight, sizeof(out->weight));
}

static uint32_t parity(uint64_t x)
{
	return (uint32_t)__builtin_parityll(x);
}

/* Check that the masks are linearly independent over GF(2), so that each combination of
 * parities occurs. */
static int check_masks(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	uint64_t left[COLOR_MAP_MASKS];

	if (map->mask_count > COLOR_MAP_MASKS)
		return refuse(why, "mask: there are %u masks; at most %u are allowed",
			      map->mask_count, COLOR_MAP_MASKS);
	memcpy(left, map->mask, sizeof(left));
	for (uint32_t i = 0; i < map->mask_count; i++) {
		uint64_t low;

		if (left[i] == 0)
			return refuse(why,
				      "mask %u (0x%llx) is 0 or the XOR of other masks",
				      i, (unsigned long long)map->mask[i]);
		low = left[i] & -left[i];
		for (uint32_t j = i + 1; j < map->mask_count; j++)
			if ((left[j] & low) != 0)
				left[j] ^= left[i];
	}
	return 0;
}

static int check_mod(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	if (map->q < 2 || map->q > COLOR_MAP_COLORS)
		return refuse(why, "mod: Q is %u; it must be 2 to %u", map->q,
			      COLOR_MAP_COLORS);
	if (map->shift > 40)
		return refuse(why, "mod: SHIFT is %u; it must be 0 to 40", map->shift);
	if (map->digits == 0 || map->digits > COLOR_MAP_DIGITS)
		return refuse(why, "mod: it has %u factors; 1 to %u are allowed",
			      map->digits, COLOR_MAP_DIGITS);
	for (uint32_t i = 0; i < map->digits; i++)
		if (map->weight[i] >= map->q)
			return refuse(
				why,
				"mod: C%u is %u; it must be less than Q, which is %u", i,
				map->weight[i], map->q);
	if (map->weight[0] == 0)
		return refuse(why, "mod: C0 is 0; it must not be");
	return 0;
}

static int check_table(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	uint64_t granules = color_map_granules(map), seen = 0;

	if (map->table == NULL)
		return refuse(why, "table: it is missing");
	for (uint64_t g = 0; g < granules; g++) {
		if (map->table[g] == COLOR_NONE)
			continue;
		if (map->table[g] >= map->channels)
			return refuse(why,
				      "table: granule %llu is on channel %u, but there "
				      "are only %u channels",
				      (unsigned long long)g, map->table[g],
				      map->channels);
		seen |= UINT64_C(1) << map->table[g];
	}
	for (uint32_t c = 0; c < map->channels; c++)
		if ((seen >> c & 1) == 0)
			return refuse(why,
				      "table: no granule is on channel %u; there are %u "
				      "channels",
				      c, map->channels);
	return 0;
}

/* Check granule, channels and memory.  The other checks rely on them. */
static int check_sizes(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	if (map->granule < GRANULE_LEAST || map->granule > GRANULE_MOST ||
	    (map->granule & (map->granule - 1)) != 0)
		return refuse(
			why, "granule: %u bytes; it must be a power of two from %u to %u",
			map->granule, GRANULE_LEAST, GRANULE_MOST);
	if (map->channels == 0 || map->channels > COLOR_MAP_COLORS)
		return refuse(why, "channels: %u; it must be 1 to %u", map->channels,
			      COLOR_MAP_COLORS);
	if (map->memory % map->granule != 0 || color_map_granules(map) < map->channels ||
	    color_map_granules(map) > GRANULES_MOST)
		return refuse(why,
			      "device: %llu bytes of memory are not a whole number of %u "
			      "to %llu granules of %u bytes",
			      (unsigned long long)map->memory, map->channels,
			      (unsigned long long)GRANULES_MOST, map->granule);
	return 0;
}

static int check_numbers(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	double seen = map->tests > 0 ? (double)map->bad / (double)map->tests : 0;

	if (map->bad > map->tests)
		return refuse(
			why, "verified: BAD is %llu, more than TESTS, which is %llu",
			(unsigned long long)map->bad, (unsigned long long)map->tests);
	if (map->tests > 0 && (!(map->bound >= seen) || map->bound > 1))
		return refuse(
			why,
			"verified: BOUND is %.9f; it must be %.9f (the share of bad "
			"tests) to 1",
			map->bound, seen);
	if (map->noise &&
	    (!(map->p0 >= 0) || !(map->p1 >= 0) || map->p0 > 1 || map->p1 > 1))
		return refuse(why, "noise: P0 and P1 must be 0 to 1");
	return 0;
}

int color_map_check(const struct color_map *map, char why[COLOR_MAP_WHY])
{
	uint32_t function = 1;
	int err = check_sizes(map, why);

	if (err == 0)
		err = check_numbers(map, why);
	if (err != 0)
		return err;
	switch (map->kind) {
	case COLOR_MAP_XORMOD:
		err = check_mod(map, why);
		function = map->q;
		/* fallthrough */
	case COLOR_MAP_XOR:
		if (err == 0)
			err = check_masks(map, why);
		if (err == 0 && function << map->mask_count != map->channels)
			err = refuse(why, "channels: %u, but the masks%s make %u",
				     map->channels,
				     map->kind == COLOR_MAP_XOR ? "" : " and Q",
				     function << map->mask_count);
		return err;
	case COLOR_MAP_TABLE:
		return check_table(map, why);
	default:
		return refuse(why, "kind: %u is unknown", map->kind);
	}
}

uint32_t color_map_channel(const struct color_map *map, uint64_t granule)
{
	uint32_t low = 0, f = 0;
	uint64_t rest;

	if (map->kind == COLOR_MAP_TABLE)
		return granule < color_map_granules(map) ? map->table[granule]
							 : COLOR_NONE;
	for (uint32_t i = 0; i < map->mask_count; i++)
		low |= parity(granule & map->mask[i]) << i;
	if (map->kind == COLOR_MAP_XOR)
		return low;
	rest = granule >> map->shift;
	for (uint32_t j = 0; j < map->digits && rest != 0; j++, rest /= map->q)
		f += map->weight[j] * (uint32_t)(rest % map->q);
	return f % map->q << map->mask_count | low;
}

bool color_map_differ(const struct color_map *a, const struct color_map *b,
		      uint64_t *granule)
{
	uint8_t to[COLOR_MAP_COLORS], from[COLOR_MAP_COLORS];

	*granule = 0;
	if (a->memory != b->memory || a->granule != b->granule ||
	    a->channels != b->channels)
		return true;
	memset(to, COLOR_NONE, sizeof(to));
	memset(from, COLOR_NONE, sizeof(from));
	for (uint64_t g = 0; g < color_map_granules(a); g++) {
		uint32_t x = color_map_channel(a, g), y = color_map_channel(b, g);

		if (x == COLOR_NONE || y == COLOR_NONE)
			continue;
		if (to[x] == COLOR_NONE && from[y] == COLOR_NONE) {
			to[x] = (uint8_t)y;
			from[y] = (uint8_t)x;
		}
		if (to[x] != y || from[y] != x) {
			*granule = g;
			return true;
		}
	}
	return false;
}

int color_map_fits(const struct color_map *map, const struct hal_device_info *info,
		   bool unverified, const char *name, char why[COLOR_MAP_WHY])
{
	struct color_map here;

	color_map_device(&here, info);
	if (strcmp(map->device, here.device) != 0 || strcmp(map->shape, here.shape) != 0)
		return refuse(why,
			      "%s: device: the map is for %s %s, but the device is %s %s",
			      name, map->device, map->shape, here.device, here.shape);
	if (map->memory != here.memory)
		return refuse(why,
			      "%s: device: the map is for %llu bytes of memory, but the "
			      "device has %llu",
			      name, (unsigned long long)map->memory,
			      (unsigned long long)here.memory);
	if (unverified || color_map_verified(map))
		return 0;
	if (map->tests == 0)
		(void)refuse(why, "%s: verified: this map has not been verified", name);
	else
		(void)refuse(
			why,
			"%s: verified: %llu of %llu tests were bad, so up to %.9f of "
			"the map may be wrong: it does not count as verified",
			name, (unsigned long long)map->bad,
			(unsigned long long)map->tests, map->bound);
	return -EPERM;
}

/* ---- pages of several granules ---------------------------------------------------- */

/* Return the channels of count granules from g on, one bit each; 0 if one is not known.
 */
static uint64_t channels_of(const struct color_map *map, uint64_t g, uint32_t count)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t c = color_map_channel(map, g + i);

		if (c == COLOR_NONE)
			return 0;
		seen |= UINT64_C(1) << c;
	}
	return seen;
}

/* Return whether the channels form groups of count: each aligned run of count granules
 * lies on count different channels, and runs that share a channel have the same channels.
 * Set group[c] to the group of channel c. */
static bool channels_form_groups(const struct color_map *map, uint32_t count,
				 uint64_t group[COLOR_MAP_COLORS])
{
	uint64_t granules = color_map_granules(map), seen;

	memset(group, 0, COLOR_MAP_COLORS * sizeof(group[0]));
	for (uint64_t g = 0; g + count <= granules; g += count) {
		seen = channels_of(map, g, count);
		if (seen != 0 && (uint32_t)__builtin_popcountll(seen) != count)
			return false;
		for (uint64_t rest = seen; rest != 0; rest &= rest - 1) {
			int c = __builtin_ctzll(rest);

			if (group[c] != 0 && group[c] != seen)
				return false;
			group[c] = seen;
		}
	}
	return true;
}

int color_map_pages(const struct color_map *map, uint32_t page, const char *name,
		    char why[COLOR_MAP_WHY])
{
	uint64_t group[COLOR_MAP_COLORS];
	uint32_t count = page / map->granule, most = COLOR_MAP_COLORS;

	/* A page within one granule lies only on the channel of that granule. */
	if (page == 0 || map->granule % page == 0)
		return 0;
	while (most > 1 && !channels_form_groups(map, most, group))
		most /= 2;
	if (hal_color_piece_ok(page, count, map->granule, most) != 0 &&
	    channels_form_groups(map, count, group))
		return 0;
	return refuse(
		why,
		"%s: granule: %u bytes on %u channels in groups of at most %u allow "
		"colours for pages of %u to %llu bytes; the device's pages have "
		"%u bytes",
		name, map->granule, map->channels, most, map->granule,
		(unsigned long long)hal_color_piece_max(most, map->granule, most), page);
}

/* Repeat each entry of the table 1 << bits times: granule g becomes the pages from g <<
 * bits on. */
static int split_table(struct color_map *map, uint32_t bits)
{
	uint64_t pages = color_map_granules(map) << bits;
	uint8_t *table = malloc(pages);

	if (table == NULL)
		return -ENOMEM;
	for (uint64_t p = 0; p < pages; p++)
		table[p] = map->table[p >> bits];
	free(map->table);
	map->table = table;
	return 0;
}

int color_map_split(struct color_map *map, uint32_t page)
{
	uint32_t bits;
	int err = 0;

	if (page == 0 || page >= map->granule)
		return 0;
	bits = (uint32_t)__builtin_ctz(map->granule / page);
	if (map->kind == COLOR_MAP_TABLE)
		err = split_table(map, bits);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < map->mask_count; i++)
		map->mask[i] <<= bits;
	map->shift += bits;
	map->granule = page;
	return 0;
}

void color_map_free(struct color_map *map)
{
	if (map == NULL)
		return;
	free(map->table);
	free(map);
}

/* ---- reading ---------------------------------------------------------------------- */

enum item_number {
	ITEM_DEVICE,
	ITEM_GRANULE,
	ITEM_CHANNELS,
	ITEM_KIND,
	ITEM_MASK,
	ITEM_MOD,
	ITEM_TABLE,
	ITEM_VERIFIED,
	ITEM_NOISE,
	ITEM_PROBE,
	ITEM_COUNT,
};

struct reader {
	const char *name;
	const char *at, *end;     /* the part that is not read yet */
	const char *line;         /* start of the current line */
	uint32_t number;          /* number of the current line, from 1 */
	const char *word, *stop;  /* the rest of the current line */
	const char *item;         /* first word of the line, from items[], or "" */
	uint32_t has[ITEM_COUNT]; /* last line with each item; 0: none */
	uint64_t labelled;        /* granules of the table so far */
	uint64_t room;            /* allocated bytes of map->table */
	struct color_map *map;
	char *why;
};

__attribute__((format(printf, 2, 3))) static int wrong(struct reader *r, const char *fmt,
						       ...)
{
	char text[COLOR_MAP_WHY / 2];
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start was called */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return refuse(r->why, "%.200s:%u: %s%s%s", r->name, r->number, r->item,
		      r->item[0] != '\0' ? ": " : "", text);
}

/* Get the next word of the line; single blanks separate words.  Return false at the end.
 */
static bool next_word(struct reader *r, const char **word, size_t *size)
{
	const char *blank;

	if (r->word >= r->stop)
		return false;
	blank = memchr(r->word, ' ', (size_t)(r->stop - r->word));
	*word = r->word;
	*size = (size_t)((blank != NULL ? blank : r->stop) - r->word);
	/* After a trailing blank one empty word is left, so that it is reported. */
	r->word = blank != NULL ? blank + 1 : r->stop + 1;
	return true;
}

static int read_number(struct reader *r, const char *field, uint32_t base, uint64_t most,
		       uint64_t *out)
{
	const char *word;
	size_t size;
	uint64_t v = 0;

	if (!next_word(r, &word, &size))
		return wrong(r, "%s is missing", field);
	for (size_t i = 0; i < size; i++) {
		uint32_t digit = word[i] >= '0' && word[i] <= '9'
					 ? (uint32_t)(word[i] - '0')
				 : word[i] >= 'a' && word[i] <= 'f'
					 ? (uint32_t)(word[i] - 'a') + 10
					 : 16;

		if (digit >= base || v > (UINT64_MAX - digit) / base ||
		    v * base + digit > most)
			return wrong(r,
				     "%s is \"%.*s\"; it must be a %snumber up to %llu",
				     field, (int)(size < 40 ? size : 40), word,
				     base == 16 ? "hexadecimal " : "",
				     (unsigned long long)most);
		v = v * base + digit;
	}
	if (size == 0)
		return wrong(r, "%s is empty", field);
	*out = v;
	return 0;
}

static int read_u32(struct reader *r, const char *field, uint32_t most, uint32_t *out)
{
	uint64_t v;
	int err = read_number(r, field, 10, most, &v);

	if (err == 0)
		*out = (uint32_t)v;
	return err;
}

/* Read a fraction such as 0.05 or 1: no sign and no exponent, independent of the locale.
 */
static int read_fraction(struct reader *r, const char *field, double *out)
{
	const char *word;
	size_t size, i = 1;
	uint64_t v, scale = BILLION;

	if (!next_word(r, &word, &size))
		return wrong(r, "%s is missing", field);
	v = size > 0 && word[0] == '1' ? BILLION : 0;
	if (size == 0 || (word[0] != '0' && word[0] != '1') || size > 11 || size == 2 ||
	    (size > 1 && word[1] != '.'))
		goto bad;
	for (i = 2; i < size; i++) {
		if (word[i] < '0' || word[i] > '9')
			goto bad;
		scale /= 10;
		v += scale * (uint64_t)(word[i] - '0');
	}
	if (v > BILLION)
		goto bad;
	*out = (double)v / (double)BILLION;
	return 0;
bad:
	return wrong(r, "%s is \"%.*s\"; it must be 0 to 1 with up to nine decimals",
		     field, (int)(size < 40 ? size : 40), word);
}

static int read_text(struct reader *r, const char *field, char *out, size_t room)
{
	const char *word;
	size_t size;

	if (!next_word(r, &word, &size) || size == 0)
		return wrong(r, "%s is missing", field);
	if (size >= room)
		return wrong(r, "%s has %zu characters; at most %zu are allowed", field,
			     size, room - 1);
	for (size_t i = 0; i < size; i++)
		if (word[i] <= ' ' || word[i] >= 0x7f)
			return wrong(r, "%s: character %zu is not allowed in a name",
				     field, i + 1);
	memcpy(out, word, size);
	out[size] = '\0';
	return 0;
}

static int item_device(struct reader *r)
{
	struct color_map *m = r->map;
	int err = read_text(r, "NAME", m->device, sizeof(m->device));

	if (err == 0)
		err = read_text(r, "SHAPE", m->shape, sizeof(m->shape));
	if (err == 0)
		err = read_number(r, "BYTES", 10, UINT64_MAX, &m->memory);
	return err;
}

static int item_granule(struct reader *r)
{
	return read_u32(r, "BYTES", GRANULE_MOST, &r->map->granule);
}

static int item_channels(struct reader *r)
{
	return read_u32(r, "N", COLOR_MAP_COLORS, &r->map->channels);
}

static int item_kind(struct reader *r)
{
	const char *word;
	size_t size;

	if (!next_word(r, &word, &size))
		return wrong(r, "it is missing");
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i]) == size && memcmp(kinds[i], word, size) == 0) {
			r->map->kind = i;
			return 0;
		}
	return wrong(r, "\"%.*s\" is neither xor, xormod nor table",
		     (int)(size < 40 ? size : 40), word);
}

static int item_mask(struct reader *r)
{
	struct color_map *m = r->map;

	if (m->mask_count == COLOR_MAP_MASKS)
		return wrong(r, "at most %u masks are allowed", COLOR_MAP_MASKS);
	return read_number(r, "HEX", 16, UINT64_MAX, &m->mask[m->mask_count++]);
}

static int item_mod(struct reader *r)
{
	struct color_map *m = r->map;
	int err = read_u32(r, "Q", COLOR_MAP_COLORS, &m->q);

	if (err == 0)
		err = read_u32(r, "SHIFT", 63, &m->shift);
	if (err == 0 && r->word >= r->stop)
		return wrong(r, "C0 is missing");
	while (err == 0 && r->word < r->stop) {
		uint32_t c = 0;

		if (m->digits == COLOR_MAP_DIGITS)
			return wrong(r, "at most %u factors are allowed",
				     COLOR_MAP_DIGITS);
		err = read_u32(r, "C", COLOR_MAP_COLORS, &c);
		m->weight[m->digits++] = (uint8_t)c;
	}
	return err;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Append a line of the table.  check_items compares the length with the device's memory
 * after all lines are read, so grow the table as needed. */
static int item_table(struct reader *r)
{
	struct color_map *m = r->map;
	uint32_t wide = m->channels > 16 ? 2 : 1;
	const char *word;
	size_t size;

	if (m->channels == 0)
		return wrong(r, "it comes before channels");
	if (!next_word(r, &word, &size) || size == 0)
		return wrong(r, "DIGITS is missing");
	if (size % wide != 0)
		return wrong(r,
			     "%zu digits do not divide into granules of %u digits each",
			     size, wide);
	if (r->labelled + size / wide > r->room) {
		uint64_t room = 2 * (r->labelled + size / wide);
		uint8_t *table = realloc(m->table, room);

		if (table == NULL) {
			(void)wrong(r, "out of memory");
			return -ENOMEM;
		}
		m->table = table;
		r->room = room;
	}
	for (size_t i = 0; i < size; i += wide) {
		int high = wide == 2 ? hex_digit(word[i]) : 0;
		int low = hex_digit(word[i + wide - 1]);

		if (word[i] == '-' && word[i + wide - 1] == '-')
			m->table[r->labelled++] = COLOR_NONE;
		else if (low < 0 || high < 0)
			return wrong(
				r, "granule %llu is \"%.*s\", which is not a channel",
				(unsigned long long)r->labelled, (int)wide, word + i);
		else if ((uint32_t)(high << 4 | low) >= m->channels)
			return wrong(r,
				     "granule %llu is on channel %u, but there are only "
				     "%u channels",
				     (unsigned long long)r->labelled,
				     (uint32_t)(high << 4 | low), m->channels);
		else
			m->table[r->labelled++] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int item_verified(struct reader *r)
{
	struct color_map *m = r->map;
	int err = read_number(r, "TESTS", 10, UINT64_MAX, &m->tests);

	if (err == 0 && m->tests == 0)
		return wrong(r, "TESTS is 0");
	if (err == 0)
		err = read_number(r, "BAD", 10, m->tests, &m->bad);
	if (err == 0)
		err = read_fraction(r, "BOUND", &m->bound);
	return err;
}

static int item_noise(struct reader *r)
{
	struct color_map *m = r->map;
	int err = read_fraction(r, "P0", &m->p0);

	m->noise = true;
	return err != 0 ? err : read_fraction(r, "P1", &m->p1);
}

static int item_probe(struct reader *r)
{
	struct color_map *m = r->map;
	int err = read_number(r, "TESTS", 10, UINT64_MAX, &m->probe_tests);

	m->probed = true;
	m->source = COLOR_MAP_PROBE;
	if (err == 0)
		err = read_number(r, "LOADS", 10, UINT64_MAX, &m->probe_loads);
	if (err == 0)
		err = read_number(r, "CYCLES", 10, UINT64_MAX, &m->probe_cycles);
	if (err == 0)
		err = read_number(r, "SEED", 10, UINT64_MAX, &m->probe_seed);
	return err;
}

/* Check that the checksum matches all lines before line sum, and that no line follows. */
static int item_sum(struct reader *r, const char *bytes)
{
	char hex[SHA256_DIGEST_STRING_LENGTH], said[SHA256_DIGEST_STRING_LENGTH];
	int err = read_text(r, "HEX", said, sizeof(said));

	if (err != 0)
		return err;
	SHA256Data((const uint8_t *)bytes, (size_t)(r->line - bytes), hex);
	if (strcmp(hex, said) != 0)
		return wrong(r, "it is %s, but the lines before it have %s", said, hex);
	if (r->at != r->end)
		return wrong(r, "%zu bytes follow it", (size_t)(r->end - r->at));
	return 0;
}

static const struct item {
	const char *word;
	int (*read)(struct reader *r);
	uint32_t kinds; /* kinds of map that allow the item, one bit each */
	bool repeats;   /* any number of lines is allowed */
	bool needed;    /* at least one line is required */
} items[ITEM_COUNT] = {
	[ITEM_DEVICE] = {"device", item_device, 7, false, true},
	[ITEM_GRANULE] = {"granule", item_granule, 7, false, true},
	[ITEM_CHANNELS] = {"channels", item_channels, 7, false, true},
	[ITEM_KIND] = {"kind", item_kind, 7, false, true},
	[ITEM_MASK] = {"mask", item_mask, 3, true, false},
	[ITEM_MOD] = {"mod", item_mod, 2, false, true},
	[ITEM_TABLE] = {"table", item_table, 4, true, true},
	[ITEM_VERIFIED] = {"verified", item_verified, 7, false, false},
	[ITEM_NOISE] = {"noise", item_noise, 7, false, false},
	[ITEM_PROBE] = {"probe", item_probe, 7, false, false},
};

/* Go to the next line.  Return false at the end, or if the line has no newline. */
static bool next_line(struct reader *r)
{
	const char *end =
		r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;

	r->number++;
	r->item = "";
	if (end == NULL)
		return false;
	r->line = r->word = r->at;
	r->stop = end;
	r->at = end + 1;
	return true;
}

static int read_item(struct reader *r, const char *word, size_t size)
{
	int err;

	for (uint32_t i = 0; i < ITEM_COUNT; i++) {
		if (strlen(items[i].word) != size ||
		    memcmp(items[i].word, word, size) != 0)
			continue;
		r->item = items[i].word;
		if (r->has[i] != 0 && !items[i].repeats)
			return wrong(r, "line %u has this item already", r->has[i]);
		r->has[i] = r->number;
		err = items[i].read(r);
		if (err == 0 && r->word <= r->stop && r->stop > r->line)
			err = wrong(
				r, "\"%.*s\" is unexpected at the end of the line",
				(int)(r->stop - r->word < 40 ? r->stop - r->word : 40),
				r->word);
		return err;
	}
	return wrong(r, "\"%.*s\" is an unknown item", (int)(size < 40 ? size : 40),
		     word);
}

/* Check, after all lines are read, that the map has all items that its kind needs and no
 * others. */
static int check_items(struct reader *r)
{
	struct color_map *m = r->map;

	for (uint32_t i = 0; i < ITEM_COUNT; i++) {
		bool of_kind = (items[i].kinds >> m->kind & 1) != 0;

		r->item = items[i].word;
		if (r->has[i] == 0 && of_kind && items[i].needed)
			return wrong(r, "it is missing");
		if (r->has[i] == 0 || of_kind)
			continue;
		r->number = r->has[i];
		return wrong(r, "it is not allowed in a map of kind %s", kinds[m->kind]);
	}
	if (m->kind != COLOR_MAP_TABLE || m->granule == 0 ||
	    r->labelled == color_map_granules(m))
		return 0;
	r->item = items[ITEM_TABLE].word;
	r->number = r->has[ITEM_TABLE];
	return wrong(r, "it has %llu granules, but the device has %llu",
		     (unsigned long long)r->labelled,
		     (unsigned long long)color_map_granules(m));
}

/* Check the map as a whole.  Error texts of color_map_check begin with the item at fault;
 * report the line of that item. */
static int check_map(struct reader *r)
{
	char text[COLOR_MAP_WHY];
	int err = color_map_check(r->map, text);

	if (err == 0)
		return 0;
	r->item = "";
	for (uint32_t i = 0; i < ITEM_COUNT; i++)
		if (strncmp(text, items[i].word, strlen(items[i].word)) == 0)
			r->number = r->has[i];
	return wrong(r, "%.*s", COLOR_MAP_WHY / 2 - 1, text);
}

static int read_lines(struct reader *r, const char *bytes)
{
	const char *word;
	size_t size;
	int err;

	if (!next_line(r) || (size_t)(r->stop - r->line) != strlen(HEAD) ||
	    memcmp(r->line, HEAD, strlen(HEAD)) != 0)
		return wrong(r, "the first line is not \"" HEAD "\"");
	for (;;) {
		if (!next_line(r))
			return wrong(r, "the file ends without a sum");
		if (!next_word(r, &word, &size))
			return wrong(r, "the line is empty");
		if (size == 3 && memcmp(word, "sum", 3) == 0)
			break;
		err = read_item(r, word, size);
		if (err != 0)
			return err;
	}
	r->item = "sum";
	err = item_sum(r, bytes);
	if (err == 0)
		err = check_items(r);
	return err != 0 ? err : check_map(r);
}

int color_map_parse(const char *bytes, size_t size, const char *name,
		    struct color_map **out, char why[COLOR_MAP_WHY])
{
	struct color_map *map = calloc(1, sizeof(*map));
	size_t bom = utf8_bom(bytes, size);
	struct reader r = {.name = name,
			   .at = bytes + bom,
			   .end = bytes + size,
			   .item = "",
			   .map = map,
			   .why = why};
	int err;

	if (map == NULL) {
		(void)refuse(why, "%.200s: out of memory", name);
		return -ENOMEM;
	}
	map->source = COLOR_MAP_FILE;
	err = read_lines(&r, bytes + bom);
	if (err != 0)
		color_map_free(map);
	else
		*out = map;
	return err;
}

static int read_file(FILE *f, char **out, size_t *size)
{
	char *bytes = NULL;
	size_t used = 0, room = 0;

	for (;;) {
		size_t n;

		if (used == room) {
			char *more = room < FILE_MOST ? realloc(bytes, 2 * room + 65536)
						      : NULL;

			if (more == NULL) {
				free(bytes);
				return -ENOMEM;
			}
			bytes = more;
			room = 2 * room + 65536;
		}
		n = fread(bytes + used, 1, room - used, f);
		used += n;
		if (n == 0)
			break;
	}
	if (ferror(f) != 0) {
		free(bytes);
		return errno > 0 ? -errno : -EIO;
	}
	*out = bytes;
	*size = used;
	return 0;
}

int color_map_read(const char *path, struct color_map **out, char why[COLOR_MAP_WHY])
{
	FILE *f = fopen(path, "re");
	char *bytes = NULL;
	size_t size = 0;
	int err = f != NULL ? read_file(f, &bytes, &size) : -errno;

	if (f != NULL)
		(void)fclose(f);
	if (err != 0) {
		(void)refuse(why, "%.200s: %s", path, strerrordesc_np(-err));
		return err;
	}
	err = color_map_parse(bytes, size, path, out, why);
	free(bytes);
	return err;
}

/* ---- writing ---------------------------------------------------------------------- */

static void put_fraction(FILE *f, double v)
{
	uint64_t n = (uint64_t)(v * (double)BILLION + 0.5);

	(void)fprintf(f, " %llu.%09llu", (unsigned long long)(n / BILLION),
		      (unsigned long long)(n % BILLION));
}

static void put_table(FILE *f, const struct color_map *m)
{
	uint64_t granules = color_map_granules(m);
	bool wide = m->channels > 16;

	for (uint64_t g = 0; g < granules; g++) {
		if (g % ROW == 0)
			(void)fputs(g > 0 ? "\ntable " : "table ", f);
		if (m->table[g] == COLOR_NONE)
			(void)fputs(wide ? "--" : "-", f);
		else
			(void)fprintf(f, wide ? "%02x" : "%x", m->table[g]);
	}
	(void)fputc('\n', f);
}

static void put_lines(FILE *f, const struct color_map *m)
{
	(void)fprintf(f, HEAD "\ndevice %s %s %llu\ngranule %u\nchannels %u\nkind %s\n",
		      m->device, m->shape, (unsigned long long)m->memory, m->granule,
		      m->channels, kinds[m->kind]);
	for (uint32_t i = 0; m->kind != COLOR_MAP_TABLE && i < m->mask_count; i++)
		(void)fprintf(f, "mask %llx\n", (unsigned long long)m->mask[i]);
	if (m->kind == COLOR_MAP_XORMOD) {
		(void)fprintf(f, "mod %u %u", m->q, m->shift);
		for (uint32_t i = 0; i < m->digits; i++)
			(void)fprintf(f, " %u", m->weight[i]);
		(void)fputc('\n', f);
	}
	if (m->kind == COLOR_MAP_TABLE)
		put_table(f, m);
	if (m->tests > 0) {
		(void)fprintf(f, "verified %llu %llu", (unsigned long long)m->tests,
			      (unsigned long long)m->bad);
		put_fraction(f, m->bound);
		(void)fputc('\n', f);
	}
	if (m->noise) {
		(void)fputs("noise", f);
		put_fraction(f, m->p0);
		put_fraction(f, m->p1);
		(void)fputc('\n', f);
	}
	if (m->probed)
		(void)fprintf(f, "probe %llu %llu %llu %llu\n",
			      (unsigned long long)m->probe_tests,
			      (unsigned long long)m->probe_loads,
			      (unsigned long long)m->probe_cycles,
			      (unsigned long long)m->probe_seed);
}

char *color_map_text(const struct color_map *map, size_t *size, char why[COLOR_MAP_WHY])
{
	char *text = NULL, hex[SHA256_DIGEST_STRING_LENGTH];
	size_t n = 0;
	FILE *f;

	if (color_map_check(map, why) != 0)
		return NULL;
	if (map->device[0] == '\0' || map->shape[0] == '\0') {
		(void)refuse(why, "device: the map names no device");
		return NULL;
	}
	f = open_memstream(&text, &n);
	if (f == NULL)
		goto no_memory;
	put_lines(f, map);
	if (fflush(f) != 0) {
		(void)fclose(f);
		goto no_memory;
	}
	SHA256Data((const uint8_t *)text, n, hex);
	(void)fprintf(f, "sum %s\n", hex);
	if (fclose(f) != 0)
		goto no_memory;
	*size = n;
	return text;
no_memory:
	free(text);
	(void)refuse(why, "out of memory for the text of a map");
	return NULL;
}

int color_map_write(const struct color_map *map, const char *path,
		    char why[COLOR_MAP_WHY])
{
	char temporary[4096];
	size_t size = 0;
	char *text;
	FILE *f;
	int err = 0;

	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >=
	    (int)sizeof(temporary))
		return refuse(why, "%.200s: the path is too long", path);
	text = color_map_text(map, &size, why);
	if (text == NULL)
		return -EINVAL;
	f = fopen(temporary, "we");
	if (f == NULL)
		err = -errno;
	else if (fwrite(text, 1, size, f) != size)
		err = errno > 0 ? -errno : -EIO;
	if (f != NULL && fclose(f) != 0 && err == 0)
		err = -errno;
	if (err == 0 && rename(temporary, path) != 0)
		err = -errno;
	if (err != 0) {
		(void)remove(temporary);
		(void)refuse(why, "%.200s: %s", path, strerrordesc_np(-err));
	}
	free(text);
	return err;
}
