/* SPDX-License-Identifier: Apache-2.0 */
/* granules.c - allocate granules of device memory by colour; see granules.h. */
#include "memory/granules.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

#define LEVELS 6u /* 64^6 is more than any number of granules */
#define WORD   64u
#define MANY   16 /* from this count on, take_word is faster than take_some */
#define SLACK  2u /* granules allowed beyond an even share; see even_quotas */
#define BIT(i) (UINT64_C(1) << (i))

struct hal_bk_granules {
	uint32_t colors, levels;
	uint64_t granules;
	uint8_t *color;                  /* colour of each granule */
	uint64_t *bits;                  /* bitmap trees, one colour after the other */
	size_t pitch;                    /* words per colour in .bits */
	size_t level[LEVELS];            /* first word of each level within a colour */
	uint64_t left[COLOR_MAP_COLORS]; /* free granules per colour */
};

/* Iterate c over the bits set in mask, lowest first. */
/* NOLINTBEGIN(bugprone-macro-parentheses): c is the name of a variable to declare */
#define for_each_color(c, mask)                                                          \
	for (uint64_t rest_##c = (mask), c = 0;                                          \
	     rest_##c != 0 && (c = (uint64_t)__builtin_ctzll(rest_##c), true);           \
	     rest_##c &= rest_##c - 1)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Return a word of one level of a colour's tree. */
static ALWAYS_INLINE uint64_t *word_of(const struct hal_bk_granules *g, uint64_t color,
				       uint32_t level, uint64_t word)
{
	return &g->bits[color * g->pitch + g->level[level] + word];
}

/* Mark a granule free.  A higher level is updated only if the word below it was 0
 * before. */
static ALWAYS_INLINE void set_free(struct hal_bk_granules *g, uint64_t color,
				   uint64_t granule)
{
	uint64_t at = granule;

	for (uint32_t l = 0; l < g->levels; l++, at /= WORD) {
		uint64_t *w = word_of(g, color, l, at / WORD), before = *w;

		*w = before | BIT(at % WORD);
		if (before != 0)
			break;
	}
	g->left[color]++;
}

/* Clear bit `at` of a level, and the bits above it whose words become 0. */
static ALWAYS_INLINE void clear_bit(struct hal_bk_granules *g, uint64_t color,
				    uint32_t level, uint64_t at)
{
	for (uint32_t l = level; l < g->levels; l++, at /= WORD) {
		uint64_t *w = word_of(g, color, l, at / WORD);

		*w &= ~BIT(at % WORD);
		if (*w != 0)
			break;
	}
}

/* Mark a granule allocated. */
static ALWAYS_INLINE void set_taken(struct hal_bk_granules *g, uint64_t color,
				    uint64_t granule)
{
	clear_bit(g, color, 0, granule);
	g->left[color]--;
}

/* Return the OR of one word over all colours of mask. */
static ALWAYS_INLINE uint64_t any_of(const struct hal_bk_granules *g, uint64_t mask,
				     uint32_t level, uint64_t word)
{
	const uint64_t *w = g->bits + g->level[level] + word;
	uint64_t any = 0;

	for_each_color (c, mask)
		any |= w[c * g->pitch];
	return any;
}

/* Return the first word of level 0, at or after `word`, with a free granule of mask.  The
 * caller ensures that there is one. */
static uint64_t next_free_word(const struct hal_bk_granules *g, uint64_t mask,
			       uint64_t word)
{
	uint64_t at = word, any;
	uint32_t l = 1;

	if (any_of(g, mask, 0, word) != 0)
		return word;
	/* Go up until a bit right of the path is set, then down along the lowest bits. */
	for (;; l++) {
		any = any_of(g, mask, l, at / WORD) &
		      ~(BIT(at % WORD) | (BIT(at % WORD) - 1));
		if (any != 0)
			break;
		at /= WORD;
	}
	for (;; l--) {
		at = at / WORD * WORD + (uint64_t)__builtin_ctzll(any);
		if (l == 1)
			return at;
		at *= WORD;
		any = any_of(g, mask, l - 1, at / WORD);
	}
}

/* ---- create and free -------------------------------------------------------------- */

int granules_make(const struct color_map *map, struct hal_bk_granules **out)
{
	struct hal_bk_granules *g = calloc(1, sizeof(*g));
	uint64_t words;

	if (g == NULL)
		return fail(ENOMEM, "no memory for an allocator of granules");
	g->colors = map->channels;
	g->granules = words = color_map_granules(map);
	do {
		words = (words + WORD - 1) / WORD;
		g->level[g->levels++] = g->pitch;
		g->pitch += words;
	} while (words > 1);
	g->color = malloc(g->granules);
	g->bits = calloc(g->colors * g->pitch, sizeof(*g->bits));
	if (g->color == NULL || g->bits == NULL) {
		granules_free(g);
		return fail(ENOMEM, "no memory for an allocator of %llu granules",
			    U64(color_map_granules(map)));
	}
	for (uint64_t i = 0; i < g->granules; i++) {
		g->color[i] = (uint8_t)color_map_channel(map, i);
		if (g->color[i] != COLOR_NONE)
			set_free(g, g->color[i], i);
	}
	*out = g;
	return 0;
}

void granules_free(struct hal_bk_granules *g)
{
	if (g == NULL)
		return;
	free(g->color);
	free(g->bits);
	free(g);
}

uint64_t granules_left(const struct hal_bk_granules *g, uint64_t mask)
{
	uint64_t sum = 0;

	if (g->colors < COLOR_MAP_COLORS)
		mask &= BIT(g->colors) - 1;
	for_each_color (c, mask)
		sum += g->left[c];
	return sum;
}

uint32_t granules_color(const struct hal_bk_granules *g, uint32_t granule)
{
	return granule < g->granules ? g->color[granule] : COLOR_NONE;
}

/* ---- shares of the colours --------------------------------------------------------- */

/* Fail with the text "colour 1 has 3 of 40 granules needed; free per colour: 0: 12, 1: 3,
 * 2: 12".  The list is cut after as many colours as fit. */
static COLD int no_space(const struct hal_bk_granules *g, uint64_t short_of,
			 uint64_t needed)
{
	char text[320];
	size_t n = 0;

	for (uint32_t c = 0; c < g->colors && n < sizeof(text) - 40; c++) {
		format_text(text + n, sizeof(text) - n, "%s%u: %llu", c > 0 ? ", " : "",
			    c, U64(g->left[c]));
		n += strlen(text + n);
	}
	if ((short_of & (short_of - 1)) == 0)
		return fail(
			ENOSPC,
			"colour %u has %llu of %llu granules needed; free per colour: %s",
			(uint32_t)__builtin_ctzll(short_of),
			U64(granules_left(g, short_of)), U64(needed), text);
	return fail(
		ENOSPC,
		"colours 0x%llx have %llu of %llu granules needed; free per colour: %s",
		U64(short_of), U64(granules_left(g, short_of)), U64(needed), text);
}

/* Set quota[] to even shares plus SLACK.  If a colour has fewer free granules than its
 * share, the other colours get the rest.  While no memory is used, the lowest granules
 * are spread almost evenly over the colours.  SLACK is large enough to allocate exactly
 * these lowest granules. */
static int even_quotas(const struct hal_bk_granules *g, uint64_t mask, uint64_t count,
		       uint64_t *quota)
{
	uint64_t open = mask, rest = count, share;
	bool again = true;

	if (granules_left(g, mask) < count)
		return no_space(g, mask, count);
	while (again && open != 0) {
		share = rest / (uint64_t)__builtin_popcountll(open);
		again = false;
		for_each_color (c, open) {
			quota[c] = share + SLACK;
			if (g->left[c] > share)
				continue;
			quota[c] = g->left[c];
			rest -= g->left[c];
			open &= ~BIT(c);
			again = true;
		}
	}
	return 0;
}

/* Set quota[] to shares by weight, rounded down.  The granules left over by rounding go
 * to the colours with the largest remainders. */
static int weighed_quotas(const struct hal_bk_granules *g,
			  const struct hal_bk_colors *colors, uint64_t count,
			  uint64_t *quota)
{
	uint64_t sum = 0, over = count, best;

	for_each_color (c, colors->mask)
		sum += colors->weights[c];
	if (sum == 0)
		return fail(EINVAL, "all weights of colours 0x%llx are 0",
			    U64(colors->mask));
	for_each_color (c, colors->mask) {
		quota[c] = count * colors->weights[c] / sum;
		over -= quota[c];
	}
	for (uint64_t left = colors->mask; over > 0; over--) {
		best = (uint64_t)__builtin_ctzll(left);
		for_each_color (c, left)
			if (count * colors->weights[c] % sum >
			    count * colors->weights[best] % sum)
				best = c;
		quota[best]++;
		left &= ~BIT(best);
	}
	for_each_color (c, colors->mask)
		if (g->left[c] < quota[c])
			return no_space(g, BIT(c), quota[c]);
	return 0;
}

/* ---- allocate and free granules ---------------------------------------------------- */

/* Return whether take_word may be used: all free granules of the word are needed, and no
 * colour's quota ends within it. */
static bool whole_word_fits(const struct hal_bk_granules *g, uint64_t mask, uint64_t word,
			    uint64_t count, const uint64_t *quota)
{
	if (count < WORD || __builtin_popcountll(any_of(g, mask, 0, word)) < MANY)
		return false; /* few granules: take_some is faster */
	for_each_color (c, mask)
		if (quota[c] <= WORD &&
		    quota[c] <= (uint64_t)__builtin_popcountll(*word_of(g, c, 0, word)))
			return false;
	return true;
}

/* Allocate all free granules of a word.  Update the trees colour by colour, then write
 * the granules to out in order.  Return the end of out. */
static uint32_t *take_word(struct hal_bk_granules *g, uint64_t mask, uint64_t word,
			   uint64_t *count, uint64_t *quota, uint32_t *out)
{
	uint64_t taken = 0, n;

	for_each_color (c, mask) {
		uint64_t here = *word_of(g, c, 0, word);

		if (here == 0)
			continue;
		taken |= here;
		n = (uint64_t)__builtin_popcountll(here);
		quota[c] -= n;
		g->left[c] -= n;
		*word_of(g, c, 0, word) = 0;
		clear_bit(g, c, 1, word);
	}
	for (; taken != 0; taken &= taken - 1, --*count)
		*out++ = (uint32_t)(word * WORD + (uint64_t)__builtin_ctzll(taken));
	return out;
}

/* Allocate free granules of a word one by one, up to *count.  Remove a colour from *mask
 * when its quota is used up.  Return the end of out. */
static uint32_t *take_some(struct hal_bk_granules *g, uint64_t *mask, uint64_t word,
			   uint64_t *count, uint64_t *quota, uint32_t *out)
{
	uint64_t here = any_of(g, *mask, 0, word);

	for (; here != 0 && *count > 0; --*count) {
		uint64_t granule = word * WORD + (uint64_t)__builtin_ctzll(here);
		uint64_t c = g->color[granule];

		*out++ = (uint32_t)granule;
		set_taken(g, c, granule);
		here &= here - 1;
		if (--quota[c] == 0) {
			*mask &= ~BIT(c);
			here &= ~*word_of(g, c, 0, word);
		}
	}
	return out;
}

int granules_take(struct hal_bk_granules *g, const struct hal_bk_colors *colors,
		  uint64_t count, uint32_t *out)
{
	uint64_t quota[COLOR_MAP_COLORS], mask = colors->mask, word = 0;
	int err = colors->weights != NULL ? weighed_quotas(g, colors, count, quota)
					  : even_quotas(g, mask, count, quota);

	if (err != 0)
		return err;
	for_each_color (c, colors->mask)
		if (quota[c] == 0)
			mask &= ~BIT(c);
	while (count > 0) {
		word = next_free_word(g, mask, word);
		out = whole_word_fits(g, mask, word, count, quota)
			      ? take_word(g, mask, word, &count, quota, out)
			      : take_some(g, &mask, word, &count, quota, out);
	}
	return 0;
}

/* Fail because no run of count granules is free. */
static COLD int no_run(uint64_t mask, uint64_t count, uint32_t align, uint64_t longest)
{
	char aligned[48] = "";

	if (align > 1)
		format_text(aligned, sizeof(aligned), " from a multiple of %u on", align);
	return fail(ENOSPC,
		    "no %llu contiguous granules%s are free on colours 0x%llx; the "
		    "longest free run has %llu",
		    U64(count), aligned, U64(mask), U64(longest));
}

int granules_take_run(struct hal_bk_granules *g, uint64_t mask, uint64_t count,
		      uint32_t align, uint32_t *first)
{
	uint64_t run = 0, longest = 0;

	for (uint64_t i = 0; i < g->granules && run < count; i++) {
		uint64_t here = any_of(g, mask, 0, i / WORD);

		if (here == 0) { /* skip the whole word */
			run = 0;
			i |= WORD - 1;
			continue;
		}
		for (; i < g->granules && run < count; i++) {
			if ((here >> i % WORD & 1) == 0)
				run = 0;
			else if (run > 0 || i % align == 0)
				run++;
			longest = run > longest ? run : longest;
			if (run == count)
				*first = (uint32_t)(i + 1 - count);
			if (i % WORD == WORD - 1)
				break;
		}
	}
	if (run < count) {
		*first = (uint32_t)longest;
		return no_run(mask, count, align, longest);
	}
	for (uint64_t i = *first; i < *first + count; i++)
		set_taken(g, g->color[i], i);
	return 0;
}

void granules_give(struct hal_bk_granules *g, const uint32_t *granules, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		set_free(g, g->color[granules[i]], granules[i]);
}
