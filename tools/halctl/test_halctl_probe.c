/* SPDX-License-Identifier: Apache-2.0 */
/* test_halctl_probe.c - halctl probe on an NPU that hides its hash: the map it writes
 * against the hash that the seed says. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hal/npu.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npu/hash.h"
#include "npu_regs.h"
#include "run.h"

#define NARROW "'npu:0?rows=4&cols=2&engine=fast&memory_size=4M'"
#include "lib/color_map.h"

static char map_file[] = "/tmp/halctl-map-XXXXXX",
	    picture_file[] = "/tmp/halctl-picture-XXXXXX";

/* Every granule, names of channels apart. */
static void compare(const struct color_map *map, uint32_t channels, uint32_t seed)
{
	struct npu_hash h = {.gran = 10};
	uint32_t to[16], seen = 0;

	assert_true(npu_hash_split(channels, &h.q, &h.k));
	npu_hash_choose(&h, seed);
	for (uint32_t c = 0; c < 16; c++)
		to[c] = COLOR_NONE;
	assert_int_equal(map->channels, channels);
	assert_int_equal(map->granule, 1024);
	for (uint32_t g = 0; g < color_map_granules(map); g++) {
		uint32_t c = npu_hash_map(&h, g).channel, found;

		found = color_map_channel(map, g);
		if (to[c] == COLOR_NONE) {
			assert_false(seen >> found & 1u);
			seen |= 1u << found;
			to[c] = found;
		}
		assert_int_equal(found, to[c]);
	}
}

/* target: what is not said of the device by the others. */
static void probe_target(const char *target, uint32_t memory_mib, uint32_t channels,
			 uint32_t seed, const char *more)
{
	char args[512], why[COLOR_MAP_WHY];
	struct color_map *map = NULL;

	snprintf(args, sizeof(args),
		 "probe %s -w %s "
		 "'%s&memory_size=%uM&channels=%u&hash=opaque&hash_seed=%u'",
		 more, map_file, target, memory_mib, channels, seed);
	if (halctl(args) != 0)
		fail_msg("%.2000s", output);
	if (color_map_read(map_file, &map, why) != 0)
		fail_msg("%s", why);
	assert_true(color_map_verified(map));
	assert_int_equal(map->source, COLOR_MAP_PROBE);
	assert_int_equal(map->memory, (uint64_t)memory_mib << 20);
	compare(map, channels, seed);
	color_map_free(map);
}

/* device: more options of it. */
static void probe_on(const char *device, uint32_t channels, uint32_t seed,
		     const char *more)
{
	char target[256];

	snprintf(target, sizeof(target), "%s%s", NPU_TARGET, device);
	probe_target(target, 16, channels, seed, more);
}

static void probe(uint32_t channels, uint32_t seed, const char *more)
{
	probe_on("", channels, seed, more);
}

/* What takes long and is for check-long alone: "all" runs it, too. */
static bool all;

static void if_all(void)
{
	if (!all)
		skip();
}

static void finds_parities(void **state)
{
	struct stat st;
	char args[64];

	(void)state;
	snprintf(args, sizeof(args), "-P %s", picture_file);
	probe(4, 5, args);
	expect("verified       yes: 0 of 3000");
	expect("kind           xor\n");
	expect("opaque");
	assert_int_equal(stat(picture_file, &st), 0);
	/* 128 rows of 64 squares, a gap, and 64 rows more */
	assert_int_equal(st.st_size,
			 (off_t)(strlen("P6\n384 1164\n255\n") + 384 * 1164 * 3));
}

static void finds_modulo(void **state)
{
	(void)state;
	probe(6, 1234567, "-j -s 9");
	expect("\"kind\": \"xormod\"");
	expect("\"verified\": \"yes\"");
	expect("\"wrong\": 0");
}

/* Numbers of channels whose odd part is more than a digit of an octal number. */
static void finds_any_number(void **state)
{
	static const uint32_t channels[] = {9, 13};

	(void)state;
	if_all();
	for (uint32_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
		probe(channels[i], 1000 + i, "-j");
		expect("\"kind\": \"xormod\"");
	}
}

/* Where loads are disturbed by refresh. */
static void finds_beside_refresh(void **state)
{
	(void)state;
	if_all();
	probe_on("&refresh=3900", 4, 31, "-j");
	expect("\"kind\": \"xor\"");
}

/* A cache takes the load off the channels, unless each line is asked for once. */
static void finds_behind_a_cache(void **state)
{
	(void)state;
	probe_on("&cache=64", 4, 11, "-j");
	expect("\"loads_by\": \"add\"");
	if_all();
	probe_on("&cache=64", 2, 12, "");
	expect("granule        1024 bytes");
	probe_on("&cache=64", 6, 13, "");
	probe_on("&cache=64&refresh=3900", 4, 14, "");
}

/* A cache so large that it keeps what is asked about: what is not seen is not called one
 * channel.  One that is one is found. */
static void sees_little_behind_a_large_cache(void **state)
{
	char args[256];

	(void)state;
	snprintf(args, sizeof(args),
		 "probe '%s&memory_size=16M&hash=opaque&cache=64&channels=1'",
		 NPU_TARGET);
	assert_int_equal(halctl(args), 0);
	expect("channels       1\n");
	expect("verified       yes: 0 of 3000");
	if_all();
	snprintf(args, sizeof(args),
		 "probe '%s&memory_size=16M&hash=opaque&cache=256&cache_ways=8'",
		 NPU_TARGET);
	assert_int_equal(halctl(args), 1);
	expect("could be verified");
	expect("verified       no: ");
}

static double number(const char *name)
{
	const char *at = strstr(output, name);

	if (at == NULL)
		fail_msg("no %s in:\n%.2000s", name, output);
	return strtod(at + strlen(name), NULL);
}

/* Beside a hog on other channels a tenant is hardly slower, beside one on its own it is:
 * by a map that is right.  By one of another hash the two are alike, which is an error.
 */
static void verifies(void **state)
{
	char args[512];
	double apart, together;

	(void)state;
	probe(4, 77, "");
	snprintf(args, sizeof(args),
		 "probe -j --verify %s '%s&memory_size=16M&channels=4&hash=opaque&"
		 "hash_seed=77'",
		 map_file, NPU_TARGET);
	assert_int_equal(halctl(args), 0);
	apart = number("\"slowdown\": ");
	together = number("\"slowdown_shared\": ");
	assert_true(apart >= 1 && together > 1.2);
	assert_true(together - apart > 0.6 * (together - 1));
	snprintf(args, sizeof(args),
		 "probe -j --verify %s '%s&memory_size=16M&channels=4&hash=opaque&"
		 "hash_seed=78'",
		 map_file, NPU_TARGET);
	assert_int_equal(halctl(args), 1);
	apart = number("\"slowdown\": ");
	together = number("\"slowdown_shared\": ");
	assert_true(apart > 1.1);
	assert_true(together - apart < 0.25 * (together - 1));
	expect("its channels do not keep tenants apart here");
	snprintf(args, sizeof(args), "probe --verify %s '%s&memory_size=8M&hash=opaque'",
		 map_file, NPU_TARGET);
	assert_int_equal(halctl(args), 1);
	expect("16777216");
	/* Maps of devices with too few columns for two, and with one channel. */
	snprintf(args, sizeof(args), "probe -w %s " NARROW, map_file);
	assert_int_equal(halctl(args), 0);
	snprintf(args, sizeof(args), "probe --verify %s " NARROW, map_file);
	assert_int_equal(halctl(args), 1);
	expect("two tenants of two columns each");
	snprintf(args, sizeof(args), "probe -w %s '%s&channels=1&memory_size=4M'",
		 map_file, NPU_TARGET);
	assert_int_equal(halctl(args), 0);
	snprintf(args, sizeof(args), "probe --verify %s '%s&channels=1&memory_size=4M'",
		 map_file, NPU_TARGET);
	assert_int_equal(halctl(args), 1);
	expect("one channel, which tenants cannot divide");
	snprintf(args, sizeof(args), "probe --verify %s ref", map_file);
	assert_int_equal(halctl(args), 1);
	expect(map_file);
}

/* What an opaque device does not tell. */
static void hides(void **state)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	const struct hal_npu_extension *npu;
	struct hal_device *dev;
	uint64_t at;

	(void)state;
	if (hal_open(NPU_TARGET "&channels=6&hash=opaque&hash_seed=3", NULL, &dev) != 0)
		fail_msg("%s", hal_last_error());
	assert_int_equal(hal_device_get_info(dev, &i), 0);
	assert_int_equal(i.colors, 0);
	assert_int_equal(i.granule_bytes, 0);
	assert_int_equal(i.page_bytes, 1024);
	assert_int_equal(i.bandwidth, 0);
	assert_false(i.caps & HAL_CAP_COLORED_MEMORY);
	assert_null(strstr(i.name, "6"));
	npu = hal_device_get_extension(dev, "npu");
	assert_non_null(npu);
	assert_int_equal(npu->reg_read(hal_device_get_native(dev), NPU_GLB_HASH_ADDR), 0);
	for (uint32_t k = 0; k < 4; k++)
		assert_int_equal(
			npu->reg_read(hal_device_get_native(dev), NPU_GLB_AT(XMASK, k)),
			0);
	for (uint32_t c = 0; c < 16; c++)
		assert_int_equal(npu->reg_read(hal_device_get_native(dev),
					       NPU_CHAN_ADDR(c, CH_READS)),
				 0);
	assert_int_equal(npu->physical(hal_device_get_native(dev), &i, &at), -EINVAL);
	assert_int_equal(hal_close(dev), 0);
}

static void refuses(void **state)
{
	(void)state;
	assert_int_equal(halctl("probe ref"), 1);
	expect("does not report where in its memory a buffer lies");
	assert_int_equal(halctl("probe 'npu:0?engine=fast&rows=4&cols=1'"), 1);
	expect("one column of units, but two are needed");
	assert_int_equal(halctl("probe 'npu:0?hash=half'"), 1);
	expect("hash");
	assert_int_equal(halctl("list -w map"), 2);
	expect("--write, --picture, --verify, --seed and --wait are options of probe, "
	       "not of "
	       "list");
	assert_int_equal(halctl("list -k map"), 2);
	expect("--write, --picture, --verify, --seed and --wait are options of probe, "
	       "not of "
	       "list");
	assert_int_equal(halctl("probe -k map -w map"), 2);
	expect("--verify cannot be used with --write or --picture");
	assert_int_equal(halctl("probe -k /nowhere/map"), 1);
	expect("/nowhere/map");
	assert_int_equal(halctl("probe -s 0"), 2);
	expect("--seed 0: it must be a number from 1 to 4294967295");
	/* Before the device is opened. */
	assert_int_equal(halctl("probe -w /nowhere/map nothing"), 1);
	expect("/nowhere/map: No such file or directory");
	assert_int_equal(halctl("probe -P / nothing"), 1);
	expect("/: Is a directory");
	assert_int_equal(halctl("probe -P map -w map nothing"), 2);
	expect("--write and --picture name the same file, map");
}

/* What it says first: a line, without waiting for its end. */
static void next_line(FILE *f, const char *text)
{
	assert_non_null(fgets(output, sizeof(output), f));
	expect(text);
}

static void configure(const char *text)
{
	FILE *f = fopen(picture_file, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Others have the device, by a fault of its opening: it waits, says so, and goes on when
 * they let go; or gives up. */
static void waits_for_others(void **state)
{
	static const char busy[] = "[layers]\nfault = open:1:EBUSY\n";
	const char *target = NPU_TARGET "&channels=4&memory_size=4M";
	char line[1024];
	FILE *f;
	int rc;

	(void)state;
	configure(busy);
	snprintf(line, sizeof(line), "probe -c %s -W 0 '%s'", picture_file, target);
	assert_int_equal(halctl(line), 1);
	expect("other programs still use the device after 0 s: injected");
	assert_null(strstr(output, "waiting"));
	snprintf(line, sizeof(line), "probe -c %s --wait 1 -k %s '%s'", picture_file,
		 map_file, target);
	assert_int_equal(halctl(line), 1);
	expect("other programs use the device (injected");
	expect("waiting up to 1 s\n");
	expect("other programs still use the device after 1 s: injected");
	snprintf(line, sizeof(line), "2>&1 %s probe -c %s -W 600 '%s'", HALCTL,
		 picture_file, target);
	f = popen(line, "r");
	assert_non_null(f);
	next_line(f, "waiting up to 600 s\n");
	configure("");
	next_line(f, "device         ");
	while (fgets(line, sizeof(line), f) != NULL)
		;
	rc = pclose(f);
	assert_true(WIFEXITED(rc));
	assert_int_equal(WEXITSTATUS(rc), 0);
	assert_int_equal(halctl("probe -W 3601 ref"), 2);
	expect("--wait 3601: it must be a number from 0 to 3600");
	assert_int_equal(halctl("list --wait 1"), 2);
	expect("--wait are options of probe, not of list");
}

/* ---- on the RTL: minutes ------------------------------------------------------------ */

static void read_map(char text[4096])
{
	FILE *f = fopen(map_file, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, 4095, f);
	text[n] = '\0';
	assert_int_equal(fclose(f), 0);
}

/* The right map, and the same as of engine=fast, to the last cycle of all tests. */
static void finds_on_rtl(void **state)
{
	static const uint32_t channels[] = {4, 6};
	char of_rtl[4096], of_fast[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
		uint32_t seed = channels[i] * 7919;

		probe_target("npu:0?rows=8&cols=8&engine=rtl", 4, channels[i], seed, "");
		printf("%s", output);
		read_map(of_rtl);
		probe_target("npu:0?rows=8&cols=8&engine=fast", 4, channels[i], seed, "");
		read_map(of_fast);
		assert_string_equal(of_rtl, of_fast);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_parities),
		cmocka_unit_test(finds_modulo),
		cmocka_unit_test(finds_any_number),
		cmocka_unit_test(finds_beside_refresh),
		cmocka_unit_test(finds_behind_a_cache),
		cmocka_unit_test(sees_little_behind_a_large_cache),
		cmocka_unit_test(verifies),
		cmocka_unit_test(hides),
		cmocka_unit_test(refuses),
		cmocka_unit_test(waits_for_others),
	};
	const struct CMUnitTest quick[] = {
		cmocka_unit_test(finds_parities),
		cmocka_unit_test(hides),
		cmocka_unit_test(refuses),
	};
	const struct CMUnitTest rtl[] = {cmocka_unit_test(finds_on_rtl)};
	int fd = mkstemp(map_file), rc;

	if (fd < 0 || close(fd) != 0)
		return 1;
	fd = mkstemp(picture_file);
	if (fd < 0 || close(fd) != 0)
		return 1;
	all = argc == 2 && strcmp(argv[1], "all") == 0;
	if (argc == 2 && strcmp(argv[1], "rtl") == 0)
		rc = cmocka_run_group_tests(rtl, NULL, NULL);
	else if (argc == 2 && strcmp(argv[1], "quick") == 0)
		rc = cmocka_run_group_tests(quick, NULL, NULL);
	else
		rc = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(map_file);
	(void)unlink(picture_file);
	return rc;
}
