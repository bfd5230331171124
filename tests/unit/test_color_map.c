/* SPDX-License-Identifier: Apache-2.0 */
/* Colour maps: channels, what is a map and what is not, files there and back. */
#include <errno.h>
#include <setjmp.h>
#include <sha2.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/color_map.h"
#include "npu/hash.h"

#define DEVICE "halmap 1\ndevice mock 4x4 65536\n"
#define XOR                                                                              \
	DEVICE "granule 1024\nchannels 4\nkind xor\nmask 15\nmask 2a\n"                  \
	       "verified 3000 0 0.000998\n"
#define XORMOD                                                                           \
	DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 29\nmod 3 1 1 1\n"           \
	       "verified 3000 0 0.000998\nnoise 0.14 0.9999\n"                           \
	       "probe 17400 281000 1800000 7\n"
#define ROW   "0123012301230123"
#define ROW1  "101010101010101" /* 15 */
#define TABLE DEVICE "granule 1024\nchannels 4\nkind table\ntable " ROW ROW ROW ROW "\n"

/* The text with its sum, as a file ends. */
static char *summed(const char *text)
{
	static char file[1 << 17];
	char hex[SHA256_DIGEST_STRING_LENGTH];

	SHA256Data((const uint8_t *)text, strlen(text), hex);
	snprintf(file, sizeof(file), "%ssum %s\n", text, hex);
	return file;
}

static struct color_map *parse(const char *text)
{
	char why[COLOR_MAP_WHY] = "", *file = summed(text);
	struct color_map *map = NULL;

	if (color_map_parse(file, strlen(file), "m", &map, why) != 0)
		fail_msg("%s", why);
	return map;
}

static void refused(const char *file, int err, const char *begin, const char *what)
{
	char why[COLOR_MAP_WHY] = "";
	struct color_map *map = NULL;
	int got = color_map_parse(file, strlen(file), "m", &map, why);

	if (got != err || map != NULL || strncmp(why, begin, strlen(begin)) != 0 ||
	    strstr(why, what) == NULL)
		fail_msg("%d \"%s\", not %d \"%s ... %s\" of\n%s", got, why, err, begin,
			 what, file);
}

/* What sha256sum(1) says of the lines before. */
static void sums(void **state)
{
	static const char file[] =
		"halmap 1\ndevice ref 1x16 65536\ngranule 4096\nchannels 2\nkind xor\n"
		"mask 1\n"
		"sum 1753225224cee321d89ba7c1420ef4affb4e187e8f12e1b60ea447039303da0f\n";
	char why[COLOR_MAP_WHY] = "", marked[sizeof(file) + 3], *text;
	struct color_map *map = NULL;
	size_t size;

	(void)state;
	if (color_map_parse(file, sizeof(file) - 1, "literal", &map, why) != 0)
		fail_msg("%s", why);
	text = color_map_text(map, &size, why);
	assert_non_null(text);
	assert_string_equal(text, file);
	free(text);
	color_map_free(map);
	/* A byte order mark is not part of it. */
	(void)snprintf(marked, sizeof(marked), "\xef\xbb\xbf%s", file);
	if (color_map_parse(marked, strlen(marked), "marked", &map, why) != 0)
		fail_msg("%s", why);
	color_map_free(map);
}

/* The NPU's own hash as a map: the same channel for each granule, whatever the masks. */
static void as_the_npu_hashes(void **state)
{
	char why[COLOR_MAP_WHY];

	(void)state;
	for (uint32_t n = 1; n <= 16; n++) {
		struct npu_hash h = {.gran = 10,
				     .xmask = {0x123450, 0xABCDE0, 0x0F0F00, 0x555550}};
		struct color_map m = {.memory = UINT64_C(64) << 20,
				      .granule = 1024,
				      .channels = n,
				      .kind = COLOR_MAP_XORMOD,
				      .digits = 2,
				      .weight = {1, 1}};

		assert_true(npu_hash_split(n, &h.q, &h.k));
		m.mask_count = m.shift = h.k;
		m.q = h.q;
		if (h.q == 1)
			m.kind = COLOR_MAP_XOR;
		for (uint32_t b = 0; b < h.k; b++)
			m.mask[b] = (h.xmask[b] & ~((2u << b) - 1u)) | 1u << b;
		if (color_map_check(&m, why) != 0)
			fail_msg("%u channels: %s", n, why);
		for (uint32_t g = 0; g < color_map_granules(&m); g++)
			assert_int_equal(color_map_channel(&m, g),
					 npu_hash_map(&h, g).channel);
	}
}

static void reads_what_it_writes(void **state)
{
	static const char *const texts[] = {XOR, XORMOD, TABLE};
	char why[COLOR_MAP_WHY] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct color_map *a = parse(texts[i]), *b = NULL;
		uint64_t granule = 99;
		size_t size = 0;
		char *text = color_map_text(a, &size, why);

		assert_non_null(text);
		assert_int_equal(size, strlen(text));
		assert_int_equal(color_map_parse(text, size, "m", &b, why), 0);
		assert_string_equal(b->device, "mock");
		assert_string_equal(b->shape, "4x4");
		assert_int_equal(b->memory, 65536);
		assert_int_equal(b->kind, i);
		assert_false(color_map_differ(a, b, &granule));
		assert_int_equal(b->tests, a->tests);
		assert_true(b->bound == a->bound && b->p0 == a->p0 && b->p1 == a->p1);
		assert_int_equal(b->noise, i == COLOR_MAP_XORMOD);
		assert_int_equal(b->probe_loads, a->probe_loads);
		assert_int_equal(b->probe_seed, a->probe_seed);
		assert_int_equal(b->source, a->probed ? COLOR_MAP_PROBE : COLOR_MAP_FILE);
		assert_int_equal(color_map_verified(b), i != COLOR_MAP_TABLE);
		free(text);
		color_map_free(b);
		color_map_free(a);
	}
}

/* More than 16 channels take two digits; what nobody knows is no channel. */
static void tables(void **state)
{
	static uint8_t wide[64];
	struct color_map m = {.device = "d",
			      .shape = "1x1",
			      .memory = 64 * 64,
			      .granule = 64,
			      .channels = 17,
			      .kind = COLOR_MAP_TABLE,
			      .table = wide};
	char why[COLOR_MAP_WHY] = "", *text;
	struct color_map *back = NULL;
	size_t size = 0;

	(void)state;
	for (uint32_t g = 0; g < 64; g++)
		wide[g] = (uint8_t)(g < 60 ? g % 17 : COLOR_NONE);
	text = color_map_text(&m, &size, why);
	assert_non_null(text);
	assert_non_null(strstr(text, "0f1000"));
	assert_non_null(strstr(text, "08--------\n"));
	assert_int_equal(color_map_parse(text, size, "m", &back, why), 0);
	assert_memory_equal(back->table, wide, 64);
	assert_int_equal(color_map_channel(back, 63), COLOR_NONE);
	assert_int_equal(color_map_channel(back, 64), COLOR_NONE);
	color_map_free(back);
	free(text);
	back = parse(DEVICE "granule 1024\nchannels 2\nkind table\ntable 01-\n"
			    "table 0" ROW1 ROW1 ROW1 ROW1 "\n");
	assert_int_equal(color_map_channel(back, 2), COLOR_NONE);
	assert_int_equal(color_map_channel(back, 63), 1);
	color_map_free(back);
}

/* Names of channels are nobody's business, and what is not known does not count. */
static void same_but_for_names(void **state)
{
	struct color_map *a = parse(TABLE), *b = parse(TABLE);
	uint64_t granule = 0;

	(void)state;
	for (uint32_t g = 0; g < 64; g++)
		b->table[g] = (uint8_t)(3 - a->table[g]);
	b->table[5] = COLOR_NONE;
	assert_false(color_map_differ(a, b, &granule));
	/* Two of a's channels are one of b's, and the other way. */
	b->table[9] = b->table[8];
	assert_true(color_map_differ(a, b, &granule));
	assert_int_equal(granule, 9);
	assert_true(color_map_differ(b, a, &granule));
	assert_int_equal(granule, 9);
	b->channels = 5;
	assert_true(color_map_differ(a, b, &granule));
	assert_int_equal(granule, 0);
	color_map_free(a);
	color_map_free(b);
}

#define REST "granule 1024\nchannels 4\nkind xor\nmask 15\nmask 2a\n"

static void wrong_files(void **state)
{
	static const struct {
		const char *text, *begin, *what;
	} cases[] = {
		{"halmap 2\n", "m:1:", "halmap 1"},
		{DEVICE REST "mask\n", "m:8: mask: ", "HEX is missing"},
		{"halmap 1\ndevice\n" REST, "m:2: device: ", "NAME is missing"},
		{"halmap 1\ndevice mock\n" REST, "m:2: device: ", "SHAPE is missing"},
		{"halmap 1\ndevice mock 4x4\n" REST, "m:2: device: ", "BYTES is missing"},
		{"halmap 1\ndevice mock 4x4 64K\n" REST, "m:2: device: ", "\"64K\""},
		{"halmap 1\ndevice mock 4x4 65536 1\n" REST,
		 "m:2: device: ", "\"1\" is unexpected"},
		{"halmap 1\ndevice m\xc3\xbc 4x4 65536\n" REST,
		 "m:2: device: ", "character 2"},
		{"halmap 1\ndevice mock 4x4 65535\n" REST, "m:2: device: ", "65535"},
		{"halmap 1\ndevice mock 4x4 1024\n" REST, "m:2: device: ", "1024 bytes"},
		{"halmap 1\n" REST, "m:7: device: ", "missing"},
		{DEVICE "granule 1000\nchannels 4\nkind xor\nmask 1\nmask 2\n",
		 "m:3: granule: ", "1000"},
		{DEVICE "granule 32\nchannels 4\nkind xor\nmask 1\nmask 2\n",
		 "m:3: granule: ", "32"},
		{DEVICE "channels 4\nkind xor\nmask 1\nmask 2\n",
		 "m:7: granule: ", "missing"},
		{DEVICE "granule 1024\nkind xor\nmask 1\nmask 2\n",
		 "m:7: channels: ", "missing"},
		{DEVICE "granule 1024\nchannels 65\n", "m:4: channels: ", "up to 64"},
		{DEVICE "granule 1024\nchannels 3\nkind xor\nmask 1\nmask 2\n",
		 "m:4: channels: ", "make 4"},
		{DEVICE "granule 1024\nchannels 4\nmask 1\nmask 2\n",
		 "m:7: kind: ", "missing"},
		{DEVICE "granule 1024\nchannels 4\nkind sum\n", "m:5: kind: ", "\"sum\""},
		{DEVICE REST "kind xor\n", "m:8: kind: ", "line 5"},
		{DEVICE REST "colour 4\n", "m:8: ", "\"colour\""},
		{DEVICE REST "\n", "m:8: ", "empty"},
		{DEVICE "granule 1024\nchannels 4\nkind xor\nmask 3\nmask 3\n",
		 "m:7: mask 1 (0x3)", "XOR of other masks"},
		{DEVICE "granule 1024\nchannels 2\nkind xor\nmask 0\n", "m:6: mask 0",
		 "is 0"},
		{DEVICE "granule 1024\nchannels 4\nkind xor\nmask 1G\n",
		 "m:6: mask: ", "\"1G\""},
		{DEVICE "granule 1024\nchannels 4\nkind xor\nmask 11111111111111111\n",
		 "m:6: mask: ", "hexadecimal"},
		{DEVICE REST "mod 3 1 1 1\n",
		 "m:8: mod: ", "not allowed in a map of kind xor"},
		{DEVICE REST "table 01\n",
		 "m:8: table: ", "not allowed in a map of kind xor"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\n",
		 "m:7: mod: ", "missing"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\nmod 1 1 1\n",
		 "m:7: mod: ", "Q is 1"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\nmod 3 1\n",
		 "m:7: mod: ", "C0 is missing"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\nmod 3 1 0 1\n",
		 "m:7: mod: ", "C0 is 0"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\nmod 3 1 1 3\n",
		 "m:7: mod: ", "C1 is 3"},
		{DEVICE "granule 1024\nchannels 6\nkind xormod\nmask 1\nmod 5 1 1\n",
		 "m:4: channels: ", "make 10"},
		{DEVICE "granule 1024\nchannels 4\nkind table\n",
		 "m:6: table: ", "missing"},
		{DEVICE "granule 1024\nchannels 4\nkind table\ntable 0123\n",
		 "m:6: table: ", "4 granules, but the device has 64"},
		{DEVICE "granule 1024\nchannels 4\nkind table\ntable 01x3\n",
		 "m:6: table: ", "granule 2 is \"x\""},
		{DEVICE "granule 1024\nchannels 4\nkind table\ntable 0124\n",
		 "m:6: table: ", "channel 4, but there are only 4 channels"},
		{DEVICE "granule 1024\nkind table\ntable 0123\n",
		 "m:5: table: ", "before channels"},
		{DEVICE "granule 1024\nchannels 17\nkind table\ntable 0001-\n",
		 "m:6: table: ", "5 digits"},
		{DEVICE "granule 1024\nchannels 17\nkind table\ntable 000--1\n",
		 "m:6: table: ", "\"0-\""},
		{DEVICE "granule 1024\nchannels 5\nkind table\ntable " ROW ROW ROW ROW
			"\n",
		 "m:6: table: ", "no granule is on channel 4; there are 5 channels"},
		{DEVICE REST "verified 0 0 0\n", "m:8: verified: ", "TESTS is 0"},
		{DEVICE REST "verified 10 11 1\n", "m:8: verified: ", "BAD"},
		{DEVICE REST "verified 10 1 0.01\n", "m:8: verified: ", "0.1"},
		{DEVICE REST "verified 10 1 1.5\n", "m:8: verified: ", "\"1.5\""},
		{DEVICE REST "verified 10 1 1e-3\n", "m:8: verified: ", "\"1e-3\""},
		{DEVICE REST "verified 10 1 0.\n", "m:8: verified: ", "\"0.\""},
		{DEVICE REST "verified 10 1\n", "m:8: verified: ", "BOUND is missing"},
		{DEVICE REST "noise 0.1\n", "m:8: noise: ", "P1 is missing"},
		{DEVICE REST "probe 1 2 3\n", "m:8: probe: ", "SEED is missing"},
		{DEVICE REST "probe 1 2  3\n", "m:8: probe: ", "CYCLES is empty"},
		{DEVICE REST "probe 1 2 3 4 \n", "m:8: probe: ", "\"\" is unexpected"},
		{DEVICE REST "probe 1 2 3 18446744073709551616\n",
		 "m:8: probe: ", "SEED is"},
	};

	(void)state;
	refused("", -EINVAL, "m:1: ", "halmap 1");
	refused("halmap 1", -EINVAL, "m:1: ", "halmap 1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(summed(cases[i].text), -EINVAL, cases[i].begin, cases[i].what);
}

static void wrong_sums(void **state)
{
	char file[1024];

	(void)state;
	refused(XOR, -EINVAL, "m:9: ", "without a sum");
	refused(XOR "sum 00", -EINVAL, "m:9: ", "without a sum");
	refused(XOR "sum 00\n", -EINVAL, "m:9: sum: it is 00, but ", "have");
	refused(XOR "sum\n", -EINVAL, "m:9: sum: ", "missing");
	/* One digit of a mask, and nothing else. */
	strcpy(file, summed(XOR));
	strstr(file, "mask 15")[6] = '4';
	refused(file, -EINVAL, "m:9: sum: ", "the lines before it have");
	strcpy(file, summed(XOR));
	strcat(file, "mask 1\n");
	refused(file, -EINVAL, "m:9: sum: ", "7 bytes follow");
}

static void of_this_device(void **state)
{
	struct hal_device_info info = {.backend = "mock",
				       .name = "a name",
				       .caps = HAL_CAP_SIMULATED,
				       .unit_rows = 4,
				       .unit_cols = 4,
				       .memory_bytes = 65536};
	struct color_map *map = parse(XOR), *open = parse(TABLE), named;
	char why[COLOR_MAP_WHY] = "";

	(void)state;
	assert_int_equal(color_map_fits(map, &info, false, "m", why), 0);
	assert_int_equal(color_map_fits(open, &info, true, "m", why), 0);
	assert_int_equal(color_map_fits(open, &info, false, "m", why), -EPERM);
	assert_string_equal(why, "m: verified: this map has not been verified");
	map->bad = 1;
	map->bound = 0.001;
	assert_int_equal(color_map_fits(map, &info, false, "m", why), 0);
	map->bound = 0.001000001;
	assert_int_equal(color_map_fits(map, &info, false, "m", why), -EPERM);
	map->bad = 3;
	map->bound = 0.0031;
	assert_int_equal(color_map_fits(map, &info, false, "m", why), -EPERM);
	assert_non_null(strstr(why, "3 of 3000 tests were bad, so up to 0.0031"));
	info.memory_bytes = 131072;
	assert_int_equal(color_map_fits(map, &info, true, "m", why), -EINVAL);
	assert_string_equal(why, "m: device: the map is for 65536 bytes of memory, but "
				 "the device has 131072");
	info.memory_bytes = 65536;
	info.unit_cols = 8;
	assert_int_equal(color_map_fits(map, &info, true, "m", why), -EINVAL);
	assert_string_equal(
		why, "m: device: the map is for mock 4x4, but the device is mock 4x8");
	info.caps = 0;
	color_map_device(&named, &info);
	assert_string_equal(named.device, "mock:a_name");
	color_map_free(map);
	color_map_free(open);
}

static void not_by_pages(const struct color_map *map, uint32_t page, const char *what)
{
	char why[COLOR_MAP_WHY] = "";

	assert_int_equal(color_map_pages(map, page, "m", why), -EINVAL);
	assert_string_equal(why, what);
}

#define NOT_BY(granule, channels, most, last, page)                                      \
	"m: granule: " granule " bytes on " channels                                     \
	" channels in groups of at most " most " allow colours for pages of " granule    \
	" to " last " bytes; the device's pages have " page " bytes"

/* Of the NPU's hash the power of two in the number of channels stands together. */
static void by_pages(void **state)
{
	static const struct color_map map = {.memory = UINT64_C(1) << 20,
					     .granule = 1024,
					     .kind = COLOR_MAP_XORMOD,
					     .digits = 2,
					     .weight = {1, 1}};

	(void)state;
	for (uint32_t n = 1; n <= 16; n++) {
		struct npu_hash h = {.gran = 10,
				     .xmask = {0x9E3779, 0x85EBCA, 0xC2B2AE, 0x27D4EB}};
		struct color_map m = map;
		char why[COLOR_MAP_WHY] = "", text[COLOR_MAP_WHY];

		assert_true(npu_hash_split(n, &h.q, &h.k));
		m.channels = n;
		m.mask_count = m.shift = h.k;
		m.q = h.q;
		if (h.q == 1)
			m.kind = COLOR_MAP_XOR;
		for (uint32_t b = 0; b < h.k; b++)
			m.mask[b] = npu_hash_mask(&h, b);
		for (uint32_t count = 1; count <= 128; count *= 2) {
			if (count <= 1u << h.k) {
				assert_int_equal(
					color_map_pages(&m, count * 1024, "m", why), 0);
				continue;
			}
			snprintf(text, sizeof(text),
				 NOT_BY("1024", "%u", "%u", "%u", "%u"), n, 1u << h.k,
				 1024u << h.k, count * 1024);
			not_by_pages(&m, count * 1024, text);
		}
	}
}

/* What nobody knows says nothing; one pair that stands otherwise is enough, though all
 * four of them stand together still. */
static void tables_by_pages(void **state)
{
	char why[COLOR_MAP_WHY] = "";
	struct color_map *map;

	(void)state;
	map = parse(DEVICE "granule 1024\nchannels 4\nkind table\ntable " ROW
			   "0123012301-30123" ROW "1032321001231032\n");
	assert_int_equal(color_map_pages(map, 2048, "m", why), 0);
	color_map_free(map);
	map = parse(DEVICE "granule 1024\nchannels 4\nkind table\ntable " ROW ROW ROW
			   "0123012301230213\n");
	assert_int_equal(color_map_pages(map, 0, "m", why), 0);
	assert_int_equal(color_map_pages(map, 1024, "m", why), 0);
	assert_int_equal(color_map_pages(map, 4096, "m", why), 0);
	not_by_pages(map, 2048, NOT_BY("1024", "4", "4", "4096", "2048"));
	not_by_pages(map, 8192, NOT_BY("1024", "4", "4", "4096", "8192"));
	not_by_pages(map, 768, NOT_BY("1024", "4", "4", "4096", "768"));
	/* Within a granule there is one channel. */
	assert_int_equal(color_map_pages(map, 512, "m", why), 0);
	assert_int_equal(color_map_pages(map, 64, "m", why), 0);
	color_map_free(map);
}

/* Pages that are parts of granules lie where these do. */
static void split(void **state)
{
	static const char *const texts[] = {
		XORMOD,
		DEVICE "granule 1024\nchannels 4\nkind xor\nmask 5\nmask a\n",
		DEVICE "granule 1024\nchannels 4\nkind table\ntable " ROW
		       "0123012301-30123" ROW "1032321001231032\n",
	};
	char why[COLOR_MAP_WHY] = "";

	(void)state;
	for (uint32_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (uint32_t parts = 1; parts <= 16; parts *= 4) {
			struct color_map *map = parse(texts[i]);
			struct color_map *fine = parse(texts[i]);
			uint32_t page = map->granule / parts;

			assert_int_equal(color_map_split(fine, page), 0);
			assert_int_equal(fine->granule, page);
			assert_int_equal(color_map_check(fine, why), 0);
			for (uint64_t p = 0; p < color_map_granules(fine); p++)
				assert_int_equal(color_map_channel(fine, p),
						 color_map_channel(map, p / parts));
			/* Pages of several granules are another matter. */
			assert_int_equal(color_map_split(map, 2 * map->granule), 0);
			assert_int_equal(map->granule, parts * page);
			color_map_free(fine);
			color_map_free(map);
		}
	}
}

static void files(void **state)
{
	struct color_map *map = parse(XORMOD), *back = NULL;
	char why[COLOR_MAP_WHY] = "", path[] = "/tmp/hal_map_XXXXXX", beside[64];
	int fd = mkstemp(path);
	uint64_t granule;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(beside, sizeof(beside), "%s.new", path);
	assert_int_equal(color_map_write(map, path, why), 0);
	assert_int_equal(access(beside, F_OK), -1);
	assert_int_equal(color_map_read(path, &back, why), 0);
	assert_false(color_map_differ(map, back, &granule));
	color_map_free(back);
	unlink(path);
	assert_int_equal(color_map_read(path, &back, why), -ENOENT);
	assert_non_null(strstr(why, path));
	assert_int_equal(color_map_read("/tmp", &back, why), -EISDIR);
	assert_int_equal(color_map_write(map, "/nowhere/map", why), -ENOENT);
	assert_non_null(strstr(why, "/nowhere/map"));
	/* What is no map is not written, and neither is a map of nothing. */
	map->weight[0] = 0;
	assert_int_equal(color_map_write(map, path, why), -EINVAL);
	assert_non_null(strstr(why, "C0"));
	map->weight[0] = 1;
	map->device[0] = '\0';
	assert_int_equal(color_map_write(map, path, why), -EINVAL);
	assert_int_equal(access(path, F_OK), -1);
	color_map_free(map);
	color_map_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(as_the_npu_hashes),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(tables),
		cmocka_unit_test(same_but_for_names),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(wrong_sums),
		cmocka_unit_test(of_this_device),
		cmocka_unit_test(by_pages),
		cmocka_unit_test(tables_by_pages),
		cmocka_unit_test(split),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
