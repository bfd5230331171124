/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration, targets and plugins: what is in force, and what is said when it is
 * wrong. */
#include "mock_world.h"

#include <unistd.h>

#include <hal/ext/options.h>

#include "config/find.h"
#include "tests/scan.h"

static char path[] = "/tmp/hal-config-XXXXXX";
static char option[64];
static const char *const with_file[] = {PLUGINS, option, NULL};

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(option, sizeof(option), "hal.config=%s", path);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* The value and its source of section.key, as the next hal_open would see them. */
static struct hal_option_info lookup(const char *const *options, const char *section,
				     const char *key)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);

	for (uint32_t i = 0;; i++) {
		OK(scan_option(i, options, &o));
		if (strcmp(o.section, section) == 0 && strcmp(o.key, key) == 0)
			return o;
	}
}

static void order(void **state)
{
	const char *const all[] = {PLUGINS, option, "backend.mock.units=32", NULL};
	struct hal_option_info o;

	(void)state;
	write_file(
		"[hal]\n  device = mock:0\n\n; a comment\n[backend.mock]\n  units = 24\n"
		"  memory = 2M ; behind\n");
	o = lookup((const char *const[]){PLUGINS, NULL}, "backend.mock", "units");
	assert_string_equal(o.value, "16");
	assert_string_equal(o.source, "default");
	assert_string_equal(o.range, "1..4096");
	assert_string_equal(o.type, "int");
	o = lookup(with_file, "backend.mock", "units");
	assert_string_equal(o.value, "24");
	assert_non_null(strstr(o.source, ":6"));
	assert_string_equal(lookup(with_file, "backend.mock", "memory").value, "2M");
	setenv("HAL_BACKEND_MOCK_UNITS", "28", 1);
	o = lookup(with_file, "backend.mock", "units");
	assert_string_equal(o.value, "28");
	assert_string_equal(o.source, "environment HAL_BACKEND_MOCK_UNITS");
	o = lookup(all, "backend.mock", "units");
	assert_string_equal(o.value, "32");
	assert_string_equal(o.source, "option");
	setenv("HAL_BACKEND_MOCK_UNITS", "many", 1);
	/* Wrong, although something above it says otherwise. */
	FAILS(hal_open("mock", all, &(struct hal_device *){NULL}), -EINVAL,
	      "HAL_BACKEND_MOCK_UNITS", "many", "1..4096");
	unsetenv("HAL_BACKEND_MOCK_UNITS");
}

static void units_of(const char *target, const char *const *options, uint32_t want)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_device *dev;

	OK(hal_open(target, options, &dev));
	OK(hal_device_get_info(dev, &i));
	assert_int_equal(i.unit_cols, want);
	OK(hal_close(dev));
}

static void device_and_target(void **state)
{
	const char *const all[] = {PLUGINS, option, "backend.mock.units=32", NULL};
	const char *const named[] = {PLUGINS, option, "hal.device=mock?units=7", NULL};
	struct hal_device *dev;

	(void)state;
	write_file("[hal]\ndevice = mock:0?units=20\n[backend.mock]\nunits = 24\n");
	units_of("mock", with_file, 24);
	units_of("mock?units=9", all, 9);
	units_of("mock:0?units=9&memory=1K", all, 9);
	units_of("mock:0", all, 32);
	units_of(NULL, with_file, 20); /* what the file says opens */
	units_of(NULL, named, 7);
	setenv("HAL_HAL_DEVICE", "mock?units=5", 1);
	units_of(NULL, with_file, 5);
	unsetenv("HAL_HAL_DEVICE");
	setenv("HAL_CONFIG", path, 1);
	units_of("mock", (const char *const[]){PLUGINS, NULL}, 24);
	unsetenv("HAL_CONFIG");
	FAILS(hal_open("mock:0?unitz=9", NULL, &dev), -EINVAL, "unitz", "units",
	      "target mock:0?unitz=9");
	FAILS(hal_open("mock?units", NULL, &dev), -EINVAL, "units", "key=value");
	FAILS(hal_open("mock?units=0", NULL, &dev), -EINVAL, "units", "1..4096");
	FAILS(hal_open("mock?units=8&memory=1K&units=9", NULL, &dev), -EINVAL,
	      "key units is repeated");
	FAILS(hal_open("mock?units=8&backend.mock.units=8", NULL, &dev), -EINVAL,
	      "backend");
	FAILS(hal_open("mock:x", NULL, &dev), -EINVAL, "x", "number");
	FAILS(hal_open("mock:1", NULL, &dev), -ENODEV, "1");
	FAILS(hal_open("", NULL, &dev), -EINVAL, "target");
	FAILS(hal_open(":0", NULL, &dev), -EINVAL, "target");
	FAILS(hal_open("gpu9:0", NULL, &dev), -ENODEV, "gpu9", "mock");
	FAILS(hal_open("mock", (const char *const[]){"units=3", NULL}, &dev), -EINVAL,
	      "units=3", "section.key=value");
	FAILS(hal_open("mock", (const char *const[]){"hal.queue_depth=9", NULL}, &dev),
	      -EINVAL, "queue_depth", "9");
	FAILS(hal_open("mock", (const char *const[]){"hal.config=/no/such", NULL}, &dev),
	      -ENOENT, "/no/such");
}

static void wrong_files(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} cases[] = {
		{"[hal]\ndevice = mock\ndevise = x\n", ":3", "devise"},
		{"[hal]\n\n[nothing]\n", ":3", "[nothing]"},
		{"[nothing]\na = 1\n", ":1", "[nothing]"},
		{"[backend.mock]\nunits = lots\n", ":2", "lots"},
		{"[backend.mock\nunits = 8\n", ":1", "has no closing ]"},
		{"[backend.mock]\nunits = 0x\n", ":2", "0x"},
		{"[backend.mock]\nunits = 99999\n", ":2", "1..4096"},
		{"[backend.mock]\nmemory = 1Q\n", ":2", "1Q"},
		{"[backend.mock]\nmemory = 99999999T\n", ":2", "memory"},
		{"[backend.mock]\nclock = virtua\n", ":2", "real|virtual"},
		{"[backend.mock]\neventfd = maybe\n", ":2", "yes|no"},
		{"[backend.tpu]\nunits = 1\n", ":1", "tpu"},
		{"[hal]\na\n", ":2", "key = value"},
		{"[hal\n", ":1", "[section]"},
		{"device = mock\n", ":1", "section"},
		{"[hal]\ndevice = mock\n[policy]\n[hal]\n", ":4",
		 "duplicate section [hal]; the first is at "},
		{"[hal]\ndevice = mock\ndevice = ref\n", ":3", ":2"},
		{"[hal]\n= 3\n", ":2", "key"},
		{"[policy]\nname = anarchy\n", ":2", "anarchy"},
		{"[partition \"a\"]\nrows = 3\ncolour = 1\n", ":3", "colour"},
		{"[partition \"a\"]\nrows = 3\n[partition  \"a\"]\ncols = 3\n", ":3",
		 "duplicate section [partition \"a\"]; the first is at "},
		{"[backend.ref]\nunits = lots\n", ":2", "lots"},
		{"[policy]\ntidal_idle_us = lots\n", ":2", "lots"},
		{"[hal] device = mock\n", ":1", "\"device = mock\" after [hal]"},
		{"[policy]\n[hal]queue_depth = 64\r\n", ":2",
		 "\"queue_depth = 64\" after"},
		{"[hal]]\n", ":1", "\"]\" after [hal]"},
		{"[hal]\nconfig = other.conf\n", ":2", "cannot name another"},
		{"\xef\xbb\xbf[hal]\nqueue_dept = 64\n", ":2", "queue_dept"},
		{"[hal]\n\xef\xbb\xbf[policy]\n", ":2", "key = value"},
		{"[hal]\ndevice = mock\rqueue_depth = 64\n", ":2", "byte 0x0d"},
		{"[hal]\ndevice = mock\f\n", ":2", "byte 0x0c"},
		{"[partition \"\"]\nrows = 3\n", ":1", "partition"},
		{"[partition a]\nrows = 3\n", ":1", "partition"},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char where[96];

		write_file(cases[i].text);
		snprintf(where, sizeof(where), "%s%s:", path, cases[i].where);
		FAILS(hal_open("mock", with_file, &dev), -EINVAL, where, cases[i].what);
	}
}

static void odd_files(void **state)
{
	char line[1200];
	struct hal_device *dev;
	FILE *f;

	(void)state;
	write_file(""); /* nothing to say */
	units_of("mock", with_file, 16);
	write_file("[backend.mock]\r\nunits = 8\r\n"); /* of another system */
	units_of("mock", with_file, 8);
	write_file("[backend.mock]\nunits = 8"); /* no newline at the end */
	units_of("mock", with_file, 8);
	write_file("[backend.mock]\r\nunits = 8\r"); /* half of one */
	units_of("mock", with_file, 8);
	write_file(
		"\xef\xbb\xbf[backend.mock]\nunits = 8\n"); /* of an editor that marks */
	units_of("mock", with_file, 8);
	write_file("\xef\xbb\xbf  ; nothing\n[backend.mock] ; a comment\nunits = 8\n");
	units_of("mock", with_file, 8);
	write_file("[backend.mock]\nunits = 010\n"); /* ten */
	units_of("mock", with_file, 10);
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	f = fopen(path, "w");
	fprintf(f, "[hal]\ntrace = %s\n", line);
	fclose(f);
	FAILS(hal_open("mock", with_file, &dev), -EINVAL, ":2:", "characters");
	f = fopen(path, "w");
	fprintf(f, "[hal]\n");
	fputc('\0', f);
	fprintf(f, "device = mock\n");
	fclose(f);
	FAILS(hal_open("mock", with_file, &dev), -EINVAL, ":2:", "byte 0x00");
	f = fopen(path, "w"); /* nothing after it */
	fprintf(f, "[hal]\nqueue_depth = 64%cqueue_depth = 128", '\0');
	fclose(f);
	FAILS(hal_open("mock", with_file, &dev), -EINVAL, ":2:", "byte 0x00");
	f = fopen(path, "w");
	fprintf(f, "[%.60s]\n", line);
	fclose(f);
	FAILS(hal_open("mock", with_file, &dev), -EINVAL, ":1:", "section name");
	FAILS(hal_open("mock", (const char *const[]){"hal.config=/", NULL}, &dev),
	      -EISDIR, "/", "is a folder");
}

static void partitions_of_the_file(void **state)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *p, *other;
	struct hal_device *dev;

	(void)state;
	write_file("[partition \"camera\"]\nrow = 1\ncol = 2\nrows = 2\ncols = 3\n"
		   "memory = 64K\ncolors = 0,2-3\nisolation = advisory\n"
		   "[partition \"mask\"]\nunits = 1\ncolors = 0x2\n"
		   "[partition \"over\"]\nrow = 2\ncol = 4\nrows = 2\ncols = 2\n"
		   "[partition \"bad\"]\nunits = 1\ncolors = 3-1\n"
		   "[partition \"strict\"]\nunits = 1\nisolation = enforced\n"
		   "[partition \"empty\"]\nunits = 1\ncolors =\n"
		   "[partition \"nothing\"]\nunits = 1\ncolors = 0x0\n");
	OK(hal_open("mock?units=64&rows=8&colors=4", with_file, &dev));
	OK(hal_partition_create_named(dev, "camera", &p));
	OK(hal_partition_get_info(p, &i));
	assert_int_equal(i.row, 1);
	assert_int_equal(i.col, 2);
	assert_int_equal(i.rows, 2);
	assert_int_equal(i.cols, 3);
	assert_int_equal(i.memory_bytes, 65536);
	assert_int_equal(i.color_mask, 0xd);
	assert_string_equal(i.name, "camera");
	OK(hal_partition_create_named(dev, "mask", &other));
	OK(hal_partition_get_info(other, &i));
	assert_int_equal(i.color_mask, 2);
	FAILS(hal_partition_create_named(dev, "over", &(struct hal_partition *){NULL}),
	      -ENOSPC, "over", ":12", "camera");
	FAILS(hal_partition_create_named(dev, "bad", &(struct hal_partition *){NULL}),
	      -EINVAL, ":19", "3-1");
	FAILS(hal_partition_create_named(dev, "empty", &(struct hal_partition *){NULL}),
	      -EINVAL, ":25: colors = \"\" names no channel");
	FAILS(hal_partition_create_named(dev, "nothing", &(struct hal_partition *){NULL}),
	      -EINVAL, ":28: colors = \"0x0\" names no channel");
	FAILS(hal_partition_create_named(dev, "strict", &(struct hal_partition *){NULL}),
	      -ENOTSUP, "enforced", "advisory");
	FAILS(hal_partition_create_named(dev, "radar", &(struct hal_partition *){NULL}),
	      -ENOENT, "radar", path);
	OK(hal_partition_destroy(p));
	OK(hal_partition_destroy(other));
	OK(hal_close(dev));
}

/* Whose guest a partition is, the configuration says by name. */
static void guests_of_the_file(void **state)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *house, *guest, *twin;
	struct hal_device *dev;

	(void)state;
	write_file("[partition \"guest\"]\nhost = house\nmemory = 64K\n"
		   "[partition \"house\"]\nunits = 4\n"
		   "[partition \"of_guest\"]\nhost = guest\n"
		   "[partition \"both\"]\nhost = house\nunits = 1\n");
	OK(hal_open("ref", with_file, &dev));
	FAILS(hal_partition_create_named(dev, "guest", &guest), -EINVAL,
	      ":1: [partition \"guest\"]", "no partition", "\"house\"");
	OK(hal_partition_create_named(dev, "house", &house));
	OK(hal_partition_create_named(dev, "guest", &guest));
	OK(hal_partition_get_info(guest, &i));
	assert_int_equal(i.units, 4);
	assert_int_equal(i.memory_bytes, 65536);
	FAILS(hal_partition_destroy(house), -EBUSY, "1 guest");
	FAILS(hal_partition_create_named(dev, "of_guest", &twin), -EINVAL,
	      ":6:", "no partition with units of its own is named \"guest\"");
	FAILS(hal_partition_create_named(dev, "both", &twin), -EINVAL,
	      ":8:", "a guest cannot request units");
	/* A name says nothing any more when two have it. */
	d.units_floor = 1;
	memcpy(d.name, "house", 6);
	OK(hal_partition_create(dev, &d, &twin));
	OK(hal_partition_destroy(guest));
	FAILS(hal_partition_create_named(dev, "guest", &guest), -EINVAL,
	      ":1:", "more than one partition");
	OK(hal_partition_destroy(twin));
	OK(hal_partition_create_named(dev, "guest", &guest));
	OK(hal_partition_destroy(guest));
	OK(hal_partition_destroy(house));
	OK(hal_close(dev));
	OK(hal_open("mock", with_file, &dev));
	OK(hal_partition_create_named(dev, "house", &house));
	FAILS(hal_partition_create_named(dev, "guest", &guest), -ENOTSUP,
	      ":1:", "does not support guest partitions");
	OK(hal_partition_destroy(house));
	OK(hal_close(dev));
}

/* What queues have of their partition's section. */
static void queues_of_a_section(void **state)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *silent, *says;
	struct hal_partition *p;
	struct hal_device *dev;
	struct hal_point done;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);

	(void)state;
	write_file("[partition \"a\"]\nunits = 1\nclass = best-effort\n"
		   "[partition \"b\"]\nunits = 1\ndeadline_us = 3\npriority = 4\n"
		   "weight = 5\nbudget_permille = 6\nclass = latency\n");
	OK(hal_open("ref", with_file, &dev));
	OK(hal_partition_create_named(dev, "a", &p));
	d.deadline_ns = 1;
	FAILS(hal_queue_create(p, &d, &says), -EINVAL, "\"a\"", "best effort by");
	/* It says what it is itself. */
	d.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(p, &d, &says));
	OK(hal_queue_destroy(says));
	OK(hal_partition_destroy(p));
	OK(hal_partition_create_named(dev, "b", &p));
	d = (struct hal_queue_desc)HAL_INIT(hal_queue_desc);
	FAILS(hal_queue_create(p, &d, &silent), -ENOTSUP, "\"b\"",
	      "a budget of 6 thousandths (from the partition's section), but "
	      "policy priority");
	OK(hal_device_set_policy(dev, "quota", NULL));
	OK(hal_queue_create(p, &d, &silent));
	d.deadline_ns = 10000;
	OK(hal_queue_create(p, &d, &says));
	/* Held too long for the section's deadline, but not for its own. */
	s.not_before_ns = hal_device_get_time(dev) + 5000;
	FAILS(hal_submit(silent, &s, &done), -EINVAL, "deadline is 3000 ns");
	OK(hal_submit(says, &s, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(silent));
	OK(hal_queue_destroy(says));
	OK(hal_partition_destroy(p));
	OK(hal_close(dev));
}

/* Once, with the reason, if it says one. */
static void refused_by_plugin(const char *file, const char *why)
{
	struct hal_device *dev;
	char set[256], text[512];

	snprintf(set, sizeof(set), "hal.plugins=%s", file);
	snprintf(text, sizeof(text), "plugin %s refused to load: %s", file, why);
	/* What was said before is not the reason. */
	for (int i = 0; i < 2; i++) {
		FAILS(hal_open("mock", (const char *const[]){set, NULL}, &dev), -EPROTO,
		      text);
		assert_string_equal(hal_last_error(), text);
	}
}

static void plugins(void **state)
{
	struct hal_device *dev;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	(void)state;
	FAILS(hal_open("mockabi",
		       (const char *const[]){"hal.plugins=" MOCK_ABI_PLUGIN, NULL}, &dev),
	      -EPROTO, "77", "ABI 5", MOCK_ABI_PLUGIN);
	refused_by_plugin(NULL_BACKEND_PLUGIN, "no reason given");
	refused_by_plugin(NULL_POLICY_PLUGIN, "no reason given");
	refused_by_plugin(NULL_WHY_PLUGIN, "out of paper");
	FAILS(hal_open("mock", (const char *const[]){"hal.plugins=/no/such.so", NULL},
		       &dev),
	      -ENOENT, "/no/such.so");
	/* Loaded twice is loaded once; a second one of that name is refused. */
	OK(hal_open("mock", (const char *const[]){PLUGINS ":" MOCK_PLUGIN ":", NULL},
		    &dev));
	OK(hal_close(dev));
	FAILS(hal_open("mock", (const char *const[]){PLUGINS ":" MOCK_TWIN_PLUGIN, NULL},
		       &dev),
	      -EINVAL, "mock", MOCK_TWIN_PLUGIN);
	/* An older table: what it does not have answers ENOTSUP, what it has works. */
	OK(hal_open("mockshort",
		    (const char *const[]){"hal.plugins=" MOCK_SHORT_PLUGIN, NULL}, &dev));
	assert_int_equal(hal_device_get_time(dev), 0);
	assert_null(hal_device_get_extension(dev, "mock"));
	d.units_floor = 1;
	FAILS(hal_partition_create(dev, &d, &p), -ENOTSUP, "partition");
	OK(hal_close(dev));
}

static void backends_and_devices(void **state)
{
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info d = HAL_INIT(hal_device_info);
	uint32_t backends = 0, found = 0, devices = 0;

	(void)state;
	setenv("HAL_HAL_PLUGINS", MOCK_PLUGIN, 1);
	setenv("HAL_BACKEND_MOCK_DEVICES", "3", 1);
	while (scan_backend(backends, NULL, &b) == 0) {
		if (strcmp(b.name, "mock") == 0) {
			found++;
			assert_int_equal(b.status, 0);
			assert_int_equal(b.device_count, 3);
		}
		backends++;
	}
	assert_int_equal(found, 1);
	FAILS(scan_backend(backends, NULL, &b), -ERANGE, "past the last");
	for (found = 0; scan_device(devices, NULL, &d) == 0; devices++)
		found += strcmp(d.backend, "mock") == 0;
	assert_int_equal(found, 3);
	FAILS(scan_device(devices, NULL, &d), -ERANGE, "past the last");
	/* Absent is not an error, and says why. */
	setenv("HAL_BACKEND_MOCK_DEVICES", "0", 1);
	for (uint32_t i = 0; scan_backend(i, NULL, &b) == 0; i++) {
		if (strcmp(b.name, "mock") != 0)
			continue;
		assert_int_equal(b.status, -ENODEV);
		assert_non_null(strstr(b.reason, "devices is 0"));
	}
	unsetenv("HAL_BACKEND_MOCK_DEVICES");
	unsetenv("HAL_HAL_PLUGINS");
}

/* What loads and works is there; what does not says why, and is no absent device. */
static void bad_plugins_hide_nothing(void **state)
{
	static const char *const plugins[] = {
		"hal.plugins=/no/such.so:" MOCK_ABI_PLUGIN ":" MOCK_PLUGIN, NULL};
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info d = HAL_INIT(hal_device_info);
	struct hal_device *dev;
	uint32_t i, found = 0, bad = 0;

	(void)state;
	for (i = 0; scan_backend(i, plugins, &b) == 0; i++) {
		found += strcmp(b.name, "mock") == 0 && b.status == 0;
		if (strcmp(b.name, "such") == 0) {
			assert_int_equal(b.status, -ENOENT);
			assert_non_null(strstr(b.reason, "plugin /no/such.so: "));
			assert_null(strstr(b.reason + 9, "/no/such.so"));
			bad++;
		} else if (strcmp(b.name, "mock_abi") == 0) {
			assert_int_equal(b.status, -EPROTO);
			assert_non_null(strstr(b.reason, "ABI 77"));
			assert_int_equal(b.device_count, 0);
			bad++;
		}
	}
	FAILS(scan_backend(i, plugins, &b), -ERANGE, "past the last");
	assert_int_equal(found, 1);
	assert_int_equal(bad, 2);
	for (found = i = 0; scan_device(i, plugins, &d) == 0; i++)
		found += strcmp(d.backend, "mock") == 0;
	assert_int_equal(found, 1);
	/* Who opens a device has named them, too. */
	FAILS(hal_open("mock", plugins, &dev), -ENOENT, "/no/such.so");
}

/* A value is listed as it is, or refused with all that reads it. */
static void long_values(void **state)
{
	enum { LONGEST = 4095 };
	static const int lengths[] = {255, 256, LONGEST - 1, LONGEST, LONGEST + 1};
	static char text[LONGEST + 2], pair[LONGEST + 32];
	const char *const options[] = {pair, NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct hal_option_info o = HAL_INIT(hal_option_info);
		struct hal_device *dev;

		memset(text, 'x', (size_t)lengths[i] - 1);
		text[lengths[i] - 1] = 'y';
		text[lengths[i]] = '\0';
		snprintf(pair, sizeof(pair), "layers.report=%s", text);
		if (lengths[i] <= LONGEST) {
			o = lookup(options, "layers", "report");
			assert_string_equal(o.value, text);
			assert_string_equal(o.source, "option");
			setenv("HAL_LAYERS_REPORT", text, 1);
			o = lookup(NULL, "layers", "report");
			assert_string_equal(o.value, text);
			unsetenv("HAL_LAYERS_REPORT");
			continue;
		}
		FAILS(hal_open("ref", options, &dev), -EINVAL,
		      "[layers] report: value has 4096 characters; the limit is 4095");
		setenv("HAL_LAYERS_REPORT", text, 1);
		FAILS(hal_open("ref", NULL, &dev), -EINVAL,
		      "environment HAL_LAYERS_REPORT: ", "4096 characters");
		unsetenv("HAL_LAYERS_REPORT");
	}
}

/* The configuration is wrong, the list is not at its end. */
static void wrong_configuration_ends_no_list(void **state)
{
	static const char *const wrong[] = {"hal.config=/no/such", NULL};
	static const char *const section[] = {"hall.device=ref", NULL};
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info d = HAL_INIT(hal_device_info);
	struct hal_option_info o = HAL_INIT(hal_option_info);

	(void)state;
	FAILS(scan_backend(0, wrong, &b), -ENOENT, "/no/such");
	FAILS(scan_device(0, wrong, &d), -ENOENT, "/no/such");
	FAILS(scan_option(0, wrong, &o), -ENOENT, "/no/such");
	FAILS(scan_backend(0, section, &b), -EINVAL, "[hall]");
	FAILS(scan_device(0, section, &d), -EINVAL, "[hall]");
	FAILS(scan_option(0, section, &o), -EINVAL, "[hall]");
}

/* What the policy itself has is named, too, wherever policy and option are from. */
static void wrong_policy_options(void **state)
{
	static const char own[] =
		" kills, and for policy tidal tidal_priority tidal_idle_us";
	static const char *const name[] = {"policy.name=tidal", "policy.bogus=1", NULL};
	static const char *const key[] = {"policy.bogus=1", NULL};
	static const char *const none[] = {"bogus=1", NULL};
	const char *both[] = {option, "policy.bogus=1", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("mock", name, &dev), -EINVAL, own);
	assert_int_equal(setenv("HAL_POLICY_NAME", "tidal", 1), 0);
	FAILS(hal_open("mock", key, &dev), -EINVAL, own);
	assert_int_equal(unsetenv("HAL_POLICY_NAME"), 0);
	write_file("[policy]\nname = tidal\ntidal_idle = 3\n");
	FAILS(hal_open("mock", with_file, &dev), -EINVAL, "no option tidal_idle;", own);
	write_file("[policy]\nname = tidal\n");
	FAILS(hal_open("mock", both, &dev), -EINVAL, own);
	/* fifo has none. */
	write_file("[policy]\nname = fifo\n");
	FAILS(hal_open("mock", both, &dev), -EINVAL, "it has name timeout_ms");
	assert_null(strstr(hal_last_error(), "for policy"));
	assert_int_equal(hal_open("mock", &with_file[2], &dev), 0);
	FAILS(hal_device_set_policy(dev, "tidal", none), -EINVAL, own);
	assert_int_equal(hal_close(dev), 0);
}

/* A variable whose name begins as those of the library is one. */
static void wrong_variables(void **state)
{
	static const struct {
		const char *name, *says;
	} cases[] = {
		{"HAL_HAL_DEVISE", "[hal] has no option DEVISE; it has device"},
		{"HAL_POLICY_NAMES", "[policy] has no option NAMES"},
		{"HAL_LAYERS_VALIDATES", "[layers] has no option"},
		{"HAL_BACKEND_MOCK_UNITZ", "[backend.mock] has no option UNITZ"},
		{"HAL_BACKEND_MOCK_", "[backend.mock] has no option"},
		{"HAL_BACKEND_TPU_UNITS", "no backend or partition"},
		{"HAL_PARTITION__A__ROWZ", "[partition \"a\"] has no option ROWZ"},
		{"HAL_PARTITION__B__ROWS", "no backend or partition"},
		{"HAL_POLCY_NAME", "no section POLCY; did you mean HAL_POLICY_?"},
		{"HAL_LAYER_VALIDATE", "did you mean HAL_LAYERS_?"},
		{"HAL_BAKCEND_MOCK_UNITS", "did you mean HAL_BACKEND_?"},
		{"HAL_PARTITIONS__A__ROWS", "did you mean HAL_PARTITION_?"},
		{"HAL_BACKENT_MOCK_UNITS", "did you mean HAL_BACKEND_?"},
		{"HAL_PLUGINS", "no section; did you mean HAL_HAL_PLUGINS?"},
		{"HAL_QUEUE_DEPTH", "no section; did you mean HAL_HAL_QUEUE_DEPTH?"},
	};
	static const char *const right[] = {
		"HAL_PARTITION__A__ROWS", "HAL_POLICY_RR_COMMANDS",
		"HAL_BACKEND_MOCK_UNITS", "HAL_ANYTHING_ELSE",
		"HAL_BACKENDS",           "HAL_HA_DEVICE",
		"HAL_HALL_DEVICE",        "HAL_POLLY_NAME",
		"HAL_LAYOUT_X",           "HAL__X",
		"HAL_PLUGINSX",           "HAL_QUEUE",
	};
	struct hal_device *dev;

	(void)state;
	write_file("[partition \"a\"]\nrow = 1\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv(cases[i].name, "1", 1);
		FAILS(hal_open("mock", with_file, &dev), -EINVAL, "environment HAL_",
		      cases[i].name, cases[i].says);
		unsetenv(cases[i].name);
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		setenv(right[i], "1", 1);
		OK(hal_open("mock", with_file, &dev));
		OK(hal_close(dev));
		unsetenv(right[i]);
	}
}

/* Longer than any reason was once. */
static void long_reasons_stay_whole(void **state)
{
	static const char end[] = "/at/the/end.so";
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	char plugins[400] = "hal.plugins=";
	const char *const options[] = {plugins, NULL};
	uint32_t i;

	(void)state;
	memset(plugins + strlen(plugins), '/', 300);
	strcat(plugins, end);
	for (i = 0; scan_backend(i, options, &b) == 0; i++)
		if (strcmp(b.name, "end") == 0)
			assert_non_null(strstr(b.reason, "end.so: cannot open"));
	FAILS(scan_backend(i, options, &b), -ERANGE, "past the last");
}

/* What a backend says of its device is looked at before anything is made of it. */
static void not_devices(void **state)
{
	static const struct {
		const char *target;
		int err;
		const char *what;
	} cases[] = {
		{"mock?says_cols=0", -EPROTO, " 1 x 0 units"},
		{"mock?says_cols=65536", -EPROTO, " 1 x 65536 units"},
		{"mock?says_rows=65536", -EPROTO, " 65536 x 16 units"},
		{"mock?rows=4&says_rows=65535&says_cols=257", -EPROTO, "at most"},
		{"mock?rows=4&says_rows=256&says_cols=65535", 0, ""},
		{"mock?rows=4&says_rows=65535&says_cols=256", 0, ""},
		{"mock?rows=4&says_rows=4096&says_cols=4096", 0, ""},
		{"mock?says_rows=0", 0, ""},
		{"mock?says_rows=2", -EPROTO, " 2 x 16 units"},
		{"mock?rows=2", 0, ""},
		{"mock?rows=2&lacks=1", -EPROTO, " 2 x 8 units"},
		{"mock?partitions=0", -EPROTO, " 0 partitions"},
		{"mock?partitions=1", 0, ""},
		{"mock?colors=64", 0, ""},
		{"mock?colors=65", -EPROTO, " 65 colours"},
		{"mock?lacks=2", -ENOTSUP, "virtual clock"},
		{"mock?clock=real&lacks=2", 0, ""},
	};
	const char *const options[] = {PLUGINS, NULL};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = hal_open(cases[i].target, options, &dev);

		if (err != cases[i].err ||
		    (err != 0 && strstr(hal_last_error(), cases[i].what) == NULL))
			fail_msg("%s is %d: %s", cases[i].target, err, hal_last_error());
		if (err == 0)
			OK(hal_close(dev));
	}
}

/* What a call has tried in vain before it succeeded is no error of it. */
static void success_leaves_no_text(void **state)
{
	static const char *const plugins[] = {PLUGINS, NULL};
	static const char *const some[] = {"hal.plugins=/no/such.so:" MOCK_PLUGIN, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_partition *p;
	struct hal_program *prog;
	struct hal_device *dev;

	(void)state;
	/* NULL: the other backends have no device. */
	OK(hal_open(NULL, NULL, &dev));
	assert_string_equal(hal_last_error(), "");
	OK(hal_close(dev));
	FAILS(hal_open("nothing", NULL, &dev), -ENODEV, "nothing");
	OK(hal_open("mock", plugins, &dev));
	assert_string_equal(hal_last_error(), "");
	for (uint32_t n = 0; scan_backend(n, some, &b) == 0; n++)
		assert_string_equal(hal_last_error(), "");
	OK(scan_device(0, some, &i));
	assert_string_equal(hal_last_error(), "");
	FAILS(scan_option(100000, plugins, &o), -ERANGE, "past the last");
	OK(scan_option(0, plugins, &o));
	assert_string_equal(hal_last_error(), "");
	OK(hal_program_load(dev, "k0", 2, &prog));
	assert_string_equal(hal_last_error(), "");
	/* Others leave what an earlier call said. */
	FAILS(hal_partition_create(dev, NULL, &p), -EINVAL, "NULL");
	d.units_floor = 1;
	OK(hal_partition_create(dev, &d, &p));
	assert_non_null(strstr(hal_last_error(), "NULL"));
	OK(hal_partition_destroy(p));
	OK(hal_program_unload(prog));
	OK(hal_close(dev));
}

/* The first test: no plugin is loaded yet. */
static void asked_by_the_file(void **state)
{
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	struct hal_device_info d = HAL_INIT(hal_device_info);
	uint32_t found = 0;

	(void)state;
	setenv("HAL_CONFIG", path, 1);
	write_file("[hal]\ndevise = x\n");
	FAILS(scan_backend(0, NULL, &b), -EINVAL, "devise");
	FAILS(scan_device(0, NULL, &d), -EINVAL, "devise");
	write_file("[hal]\nplugins = " MOCK_PLUGIN "\n[backend.mock]\ndevices = 2\n");
	for (uint32_t i = 0; scan_device(i, NULL, &d) == 0; i++)
		found += strcmp(d.backend, "mock") == 0;
	assert_int_equal(found, 2);
	setenv("HAL_CONFIG", "/no/such", 1);
	FAILS(scan_backend(0, NULL, &b), -ENOENT, "/no/such");
	FAILS(scan_device(0, NULL, &d), -ENOENT, "/no/such");
	unsetenv("HAL_CONFIG");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_by_the_file),
		cmocka_unit_test(bad_plugins_hide_nothing),
		cmocka_unit_test(wrong_configuration_ends_no_list),
		cmocka_unit_test(long_values),
		cmocka_unit_test(wrong_policy_options),
		cmocka_unit_test(wrong_variables),
		cmocka_unit_test(long_reasons_stay_whole),
		cmocka_unit_test(order),
		cmocka_unit_test(device_and_target),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(odd_files),
		cmocka_unit_test(partitions_of_the_file),
		cmocka_unit_test(guests_of_the_file),
		cmocka_unit_test(queues_of_a_section),
		cmocka_unit_test(plugins),
		cmocka_unit_test(backends_and_devices),
		cmocka_unit_test(not_devices),
		cmocka_unit_test(success_leaves_no_text),
	};

	/* The files of this machine and user are not read, whatever HAL_CONFIG is. */
	find_system_folder = "/nonexistent";
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	unsetenv("HAL_CONFIG");
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
