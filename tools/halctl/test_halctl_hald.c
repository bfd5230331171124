/* SPDX-License-Identifier: Apache-2.0 */
/* test_halctl_hald - halctl on a device that hald serves. */
#define _GNU_SOURCE
#include <sched.h>

#include <yajl/yajl_tree.h>

#include "hald/hald_world.h"
#include "run.h"

static const char tenants[] = "[tenant \"video\"]\n"
			      "socket = yes\n"
			      "units = 8\n"
			      "[tenant \"rest\"]\n"
			      "admin = yes\n"
			      "latency = yes\n";

/* Run halctl with args, which begin with a command, by the socket in `folder` of h. */
static int halctl_of(const struct hald *h, const char *folder, const char *args)
{
	char line[512];

	snprintf(line, sizeof(line), "-o %s/%s %s", h->option, folder, args);
	return halctl(line);
}

/* Open the device as tenant video does. */
static void video_open(const struct hald *h, struct program *p, uint32_t units)
{
	struct hald video = *h;
	char option[128];

	snprintf(option, sizeof(option), "%s/video", h->option);
	assert_true(strlen(option) < sizeof(video.option));
	memcpy(video.option, option, strlen(option) + 1);
	OK(program_open(&video, p, units));
}

static uint32_t lines(void)
{
	uint32_t n = 0;

	for (const char *c = output; *c != '\0'; c++)
		n += *c == '\n';
	return n;
}

/* Return the line of the output that begins so; NULL: there is none. */
static const char *line_of(const char *begin)
{
	const char *at = output;

	while (at != NULL && strncmp(at, begin, strlen(begin)) != 0) {
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
	return at;
}

/* ---- ps ------------------------------------------------------------------------------- */

static void ps(void **state)
{
	char pid[16], tenant[32], class[32];
	double memory, used;
	uint32_t units, queues;
	struct program p;
	struct hald h;
	const char *line;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	assert_int_equal(halctl_of(&h, "", "ps hald:ref0"), 0);
	assert_int_equal(lines(), 1);
	video_open(&h, &p, 3);
	OK(program_works(&p, 1));
	assert_int_equal(halctl_of(&h, "", "ps hald:ref0"), 0);
	/* This program, and not halctl. */
	assert_int_equal(lines(), 2);
	expect("PID      TENANT           CLASS");
	snprintf(pid, sizeof(pid), "%d", getpid());
	line = line_of(pid);
	assert_non_null(line);
	assert_int_equal(sscanf(line, "%*d %31s %31s %u %lf MiB %u %lf", tenant, class,
				&units, &memory, &queues, &used),
			 6);
	assert_string_equal(tenant, "video");
	assert_string_equal(class, "normal");
	assert_int_equal(units, 3);
	assert_int_equal(queues, 1);
	assert_true(used >= 0 && used <= 100);
	program_close(&p);
	hald_with_tenants_stop(&h);
}

static void ps_json(void **state)
{
	const char *path[] = {"device", "served", NULL};
	char why[256];
	struct hald h;
	yajl_val tree;

	(void)state;
	hald_start(&h, "ref?clock=real");
	assert_int_equal(halctl_of(&h, "", "ps --json hald:ref0"), 0);
	tree = yajl_tree_parse(output, why, sizeof(why));
	assert_non_null(tree);
	assert_string_equal(YAJL_GET_STRING(yajl_tree_get(tree, path, yajl_t_string)),
			    "ref0");
	yajl_tree_free(tree);
	hald_stop(&h);
}

/* Who is no operator learns nothing; other targets are refused before they are opened. */
static void refused(void **state)
{
	static const char *const commands[] = {"ps", "metrics"};
	struct hald h;
	char args[64];

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		snprintf(args, sizeof(args), "%s hald:ref0", commands[i]);
		assert_int_equal(halctl_of(&h, "video", args), 1);
		expect("its operator's");
		assert_int_equal(lines(), 1);
		assert_null(strstr(output, "rest"));
		snprintf(args, sizeof(args), "%s ref", commands[i]);
		assert_int_equal(halctl_of(&h, "", args), 2);
		expect("hald does not serve ref");
		assert_int_equal(halctl_of(&h, "", commands[i]), 2);
		expect("no target");
	}
	hald_with_tenants_stop(&h);
}

/* ---- metrics -------------------------------------------------------------------------- */

/* Return the value of the sample with that name and labels. */
static double sample(const char *name)
{
	const char *line = line_of(name);

	if (line == NULL || line[strlen(name)] != ' ')
		fail_msg("no %s in:\n%s", name, output);
	return line != NULL ? strtod(line + strlen(name), NULL) : 0;
}

#define OF_VIDEO "{device=\"ref0\",tenant=\"video\"}"

/* Check the histogram of tenant video: its buckets ascend to its count. */
static void check_histogram(double count)
{
	static const char begin[] = "hald_submission_seconds_bucket{device=\"ref0\","
				    "tenant=\"video\",le=\"";
	double last = 0, bound = 0;
	uint32_t buckets = 0;

	for (const char *line = line_of(begin);
	     line != NULL && strncmp(line, begin, strlen(begin)) == 0;
	     line = strchr(line, '\n') + 1) {
		char *end;
		double le = strtod(line + strlen(begin), &end), n;

		assert_int_equal(strncmp(end, "\"} ", 3), 0);
		n = strtod(end + 3, NULL);
		assert_true(le > bound && n >= last);
		bound = le;
		last = n;
		buckets++;
	}
	assert_int_equal(buckets, 28);
	assert_true(bound > 1e300); /* +Inf */
	assert_true(last == count);
	assert_true(sample("hald_submission_seconds_count" OF_VIDEO) == count);
	assert_true(sample("hald_submission_seconds_sum" OF_VIDEO) > 0);
}

static void metrics(void **state)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct program p;
	struct hald h;
	double busy;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	video_open(&h, &p, 3);
	for (uint32_t i = 0; i < 7; i++)
		OK(program_works(&p, i));
	pd.units_floor = 6;
	assert_int_equal(hal_partition_create(p.dev, &pd, &part), -EDQUOT);
	assert_int_equal(halctl_of(&h, "", "metrics hald:ref0"), 0);
	busy = sample("hald_busy_seconds_total" OF_VIDEO);
	assert_true(busy > 0);
	assert_true(sample("hald_units" OF_VIDEO) == 3);
	assert_true(sample("hald_clients" OF_VIDEO) == 1);
	assert_true(sample("hald_clients{device=\"ref0\",tenant=\"rest\"}") == 0);
	assert_true(sample("hald_submissions_total" OF_VIDEO) == 7);
	assert_true(sample("hald_refused_total{device=\"ref0\",tenant=\"video\","
			   "errno=\"EDQUOT\"}") == 1);
	assert_true(sample("hald_start_time_seconds{device=\"ref0\"}") > 1e9);
	assert_true(sample("hald_ticks_late_total{device=\"ref0\"}") == 0);
	assert_true(sample("hald_lost{device=\"ref0\"}") == 0);
	check_histogram(7);
	/* Nothing that has been counted goes with the client. */
	program_close(&p);
	do
		assert_int_equal(halctl_of(&h, "", "metrics hald:ref0"), 0);
	while (sample("hald_clients" OF_VIDEO) > 0);
	assert_true(sample("hald_busy_seconds_total" OF_VIDEO) >= busy);
	assert_true(sample("hald_units" OF_VIDEO) == 0);
	assert_true(sample("hald_memory_bytes" OF_VIDEO) == 0);
	assert_true(sample("hald_submissions_total" OF_VIDEO) == 7);
	assert_true(sample("hald_ended_total{device=\"ref0\",tenant=\"video\","
			   "why=\"exit\"}") == 1);
	check_histogram(7);
	hald_with_tenants_stop(&h);
}

/* Start a hald whose name needs to be escaped in a label. */
static void hald_with_name(struct hald *h, const char *name)
{
	char line[256];
	int out[2];

	h->tenants[0] = '\0';
	snprintf(h->dir, sizeof(h->dir), "/tmp/test_hald.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->option, sizeof(h->option), "hal.broker_dir=%s", h->dir);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	h->pid = fork();
	if (h->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], STDOUT_FILENO);
		execl(HALD, HALD, "--dir", h->dir, "--name", name, "ref", (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	assert_true(read(out[0], line, sizeof(line)) > 0);
	h->out = out[0];
}

/* promtool reads the output, also where a label has to be escaped. */
static void promtool(void **state)
{
	char line[512], text[4096] = "";
	struct hald h;
	FILE *f;

	(void)state;
	if (system("command -v promtool >/dev/null") != 0) {
		print_message("skipped: there is no promtool (package prometheus)\n");
		skip();
	}
	hald_with_name(&h, "a\"b\\c");
	assert_int_equal(halctl_of(&h, "", "metrics 'hald:a\"b\\c'"), 0);
	expect("hald_lost{device=\"a\\\"b\\\\c\"} 0\n");
	snprintf(line, sizeof(line),
		 "%s -o %s metrics 'hald:a\"b\\c' | promtool check metrics 2>&1", HALCTL,
		 h.option);
	f = popen(line, "r");
	assert_non_null(f);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	if (pclose(f) != 0 || text[0] != '\0')
		fail_msg("promtool: %s\n%s", text, output);
	hald_stop(&h);
}

/* ---- check ---------------------------------------------------------------------------- */

static void check(void **state)
{
	static const struct {
		const char *text, *says; /* says: after the file's name; NULL: ok */
	} files[] = {
		{"", NULL},
		{"[hal]\ndevice = ref\n[partition \"x\"]\nunits = 3\n", NULL},
		{"[tenant \"a\"]\nunits = 3\n", NULL},
		{"[hal]\n\ndevic = ref\n", ":3: [hal] has no option devic"},
		{"[hal]\nqueue_depth = x\n", ":2: "},
		{"[policy]\nname = none\n", ":2: policy.name: there is no policy"},
		{"[partition \"x\"]\nunits = many\n", ":2: [partition \"x\"] units"},
		{"[backend.none]\n", ":1: [backend.none]"},
		{"[nothing]\n", ":1: no section [nothing]"},
		{"[hal\n", ":1: [section] has no closing ]"},
		{"[tenant \"a\"]\nunits = x\n", ":2: [tenant \"a\"] units"},
		{"[tenant \"a\"]\n[hal]\n", ":2: [hal] is not of the form"},
		{"[tenant a]\n", ":1: [tenant a] is not of the form"},
	};
	char file[] = "/tmp/test_halctl.XXXXXX", args[64], says[256];
	int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *text = files[i].text, *error = files[i].says;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
		snprintf(args, sizeof(args), "check %s", file);
		if (halctl(args) != (error != NULL))
			fail_msg("case %zu: %s", i, output);
		snprintf(says, sizeof(says), "%s%s", file,
			 error != NULL ? error : ": ok\n");
		if (strncmp(output, says, strlen(says)) != 0)
			fail_msg("case %zu: %s", i, output);
		assert_int_equal(lines(), 1);
	}
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(halctl(args), 1);
	expect("No such file");
	assert_int_equal(halctl("check"), 2);
	expect("no file given");
	assert_int_equal(halctl("check -o hal.device=ref x"), 2);
}

/* ---- cdi ------------------------------------------------------------------------------ */

/* Return the member that the n words name: a number is an index of a list. */
static yajl_val at(yajl_val v, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *path[] = {words[i], NULL};

		if (YAJL_IS_ARRAY(v))
			v = (size_t)atoi(words[i]) < YAJL_GET_ARRAY(v)->len
				    ? YAJL_GET_ARRAY(v)->values[atoi(words[i])]
				    : NULL;
		else
			v = yajl_tree_get(v, path, yajl_t_any);
		if (v == NULL)
			fail_msg("no %s in:\n%s", words[i], output);
	}
	return v;
}

#define AT(tree, ...)                                                                    \
	at(tree, (const char *const[]){__VA_ARGS__},                                     \
	   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
#define TEXT_AT(tree, ...) YAJL_GET_STRING(AT(tree, __VA_ARGS__))

/* The fields that CDI 0.5.0 requires; and with what it says, a program in the container
 * opens the device as that tenant. */
static void cdi(void **state)
{
	const char *const options[] = {NULL};
	struct hal_device *dev;
	char why[256], folder[256];
	struct hald h;
	yajl_val tree;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	assert_int_equal(halctl_of(&h, "", "cdi hald:ref0 video"), 0);
	tree = yajl_tree_parse(output, why, sizeof(why));
	assert_non_null(tree);
	assert_string_equal(TEXT_AT(tree, "cdiVersion"), "0.5.0");
	assert_string_equal(TEXT_AT(tree, "kind"), "accelhal.dev/hald");
	assert_int_equal(YAJL_GET_ARRAY(AT(tree, "devices"))->len, 1);
	assert_string_equal(TEXT_AT(tree, "devices", "0", "name"), "ref0-video");
	assert_string_equal(TEXT_AT(tree, "devices", "0", "containerEdits", "env", "0"),
			    "HAL_HAL_DEVICE=hald:ref0");
	assert_string_equal(TEXT_AT(tree, "devices", "0", "containerEdits", "env", "1"),
			    "HAL_HAL_BROKER_DIR=/run/hald");
	assert_string_equal(TEXT_AT(tree, "devices", "0", "containerEdits", "mounts", "0",
				    "containerPath"),
			    "/run/hald");
	snprintf(folder, sizeof(folder), "%s",
		 TEXT_AT(tree, "devices", "0", "containerEdits", "mounts", "0",
			 "hostPath"));
	assert_int_equal(setenv("HAL_HAL_BROKER_DIR", folder, 1), 0);
	assert_int_equal(setenv("HAL_HAL_DEVICE", "hald:ref0", 1), 0);
	OK(hal_open(NULL, options, &dev));
	assert_int_equal(halctl_of(&h, "", "ps hald:ref0"), 0);
	expect(" video ");
	OK(hal_close(dev));
	assert_int_equal(unsetenv("HAL_HAL_BROKER_DIR"), 0);
	assert_int_equal(unsetenv("HAL_HAL_DEVICE"), 0);
	yajl_tree_free(tree);
	assert_int_equal(halctl_of(&h, "", "cdi hald:ref0 rest"), 1);
	expect("has no socket");
	assert_int_equal(halctl_of(&h, "", "cdi hald:ref0 nobody"), 1);
	expect("no tenant \"nobody\"");
	assert_int_equal(halctl_of(&h, "video", "cdi hald:ref0 video"), 1);
	expect("its operator's");
	assert_int_equal(halctl_of(&h, "", "cdi hald:ref0"), 2);
	hald_with_tenants_stop(&h);
}

/* ---- top ------------------------------------------------------------------------------ */

static void top(void **state)
{
	struct program p, other;
	char pid[16];
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	video_open(&h, &p, 3);
	OK(program_works(&p, 1));
	OK(program_open(&h, &other, 2));
	assert_int_equal(halctl_of(&h, "", "top --once hald:ref0"), 0);
	expect(" video ");
	expect(" rest ");
	expect("hald:ref0  software device, 16 units, policy ");
	snprintf(pid, sizeof(pid), "%d ", getpid());
	assert_non_null(line_of("PID      TENANT"));
	assert_non_null(line_of(pid));
	assert_int_equal(halctl_of(&h, "", "top -j hald:ref0"), 0);
	expect("[{\"hald_status\":1,");
	assert_int_equal(halctl_of(&h, "video", "top --once hald:ref0"), 1);
	expect("its operator's");
	assert_int_equal(halctl_of(&h, "", "top --once ref"), 2);
	assert_int_equal(halctl_of(&h, "", "top --once --program 1 hald:ref0"), 2);
	program_close(&other);
	program_close(&p);
	hald_with_tenants_stop(&h);
}

/* ---- trace ---------------------------------------------------------------------------- */

/* Return the number of events in the file, which is removed. */
static size_t events_in(const char *path, long most)
{
	const char *const list[] = {"traceEvents", NULL};
	char *text = malloc((size_t)most + 1), why[256];
	FILE *f = fopen(path, "r");
	yajl_val tree;
	size_t n;

	assert_non_null(f);
	assert_non_null(text);
	n = fread(text, 1, (size_t)most + 1, f);
	assert_true(n <= (size_t)most);
	text[n] = '\0';
	(void)fclose(f);
	assert_int_equal(unlink(path), 0);
	tree = yajl_tree_parse(text, why, sizeof(why));
	if (tree == NULL)
		fail_msg("not JSON: %s\n%s", why, text);
	n = YAJL_GET_ARRAY(
		    yajl_tree_get(tree, (const char **)(uintptr_t)list, yajl_t_array))
		    ->len;
	yajl_tree_free(tree);
	free(text);
	return n;
}

/* What is said of a trace is in its file, also where the device's clock stands still. */
static void trace(void **state)
{
	static const char *const targets[] = {"ref", "ref?clock=real"};
	static const char *const who[] = {"", "video"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		unsigned long long events = 0, dropped = 1;
		char args[256], path[128];
		struct program p;
		struct hald h;

		hald_with_tenants(&h, targets[i], tenants);
		video_open(&h, &p, 3);
		OK(program_works(&p, 1));
		snprintf(path, sizeof(path), "%s/t.json", h.dir);
		snprintf(args, sizeof(args), "trace -t 1 -S 64K -w %s hald:ref0", path);
		assert_int_equal(halctl_of(&h, who[i], args), 0);
		assert_int_equal(
			sscanf(output, "%llu events, %llu dropped: ", &events, &dropped),
			2);
		assert_int_equal(lines(), 1);
		expect(path);
		assert_int_equal(dropped, 0);
		assert_true(events > 4);
		assert_int_equal(events_in(path, 65536), events);
		program_close(&p);
		hald_with_tenants_stop(&h);
	}
}

/* Until it is interrupted, it keeps the newest events. */
static void trace_interrupted(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM};
	char option[160], path[128];
	struct program p;
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	video_open(&h, &p, 3);
	snprintf(path, sizeof(path), "%s/t.json", h.dir);
	snprintf(option, sizeof(option), "%s", h.option);
	for (int i = 0; i < 2; i++) {
		const int64_t until = now_ns() + LONG_NS;
		uint32_t count = 0;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			(void)!freopen("/dev/null", "w", stdout);
			execl("/bin/sh", "sh", "-c", "exec " HALCTL " \"$@\"", "sh", "-o",
			      option, "trace", "--time", "0", "--size", "65536",
			      "--write", path, "hald:ref0", (char *)NULL);
			_exit(127);
		}
		/* It is ready for signals before it opens its file. */
		while (access(path, F_OK) != 0 && now_ns() < until)
			(void)sched_yield();
		for (; count < 1000; count++)
			OK(program_works(&p, count));
		assert_int_equal(kill(pid, signals[i]), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		/* It may have begun in the middle of the work. */
		assert_true(events_in(path, 65536) >= 4);
	}
	program_close(&p);
	hald_with_tenants_stop(&h);
}

static void trace_refused(void **state)
{
	static const char *const wrong[][2] = {
		{"trace", "no target given"},
		{"trace ref", "hald does not serve ref"},
		{"trace hald:ref0 x", "too many arguments: x"},
		{"trace -t x hald:ref0", "--time x: it must be a number from 0 to"},
		{"trace -t -1 hald:ref0", "--time -1: it must"},
		{"trace -t 9999999 hald:ref0", "--time 9999999: it must"},
		{"trace -S 65535 hald:ref0",
		 "--size 65535: it must be a number of bytes"},
		{"trace -S 63K hald:ref0", "--size 63K: it must"},
		{"trace -S 2G hald:ref0", "--size 2G: it must"},
		{"trace -S 99999999999G hald:ref0", "--size 99999999999G: it must"},
		{"trace -S 64Kx hald:ref0", "--size 64Kx: it must"},
		{"trace -S 64k hald:ref0", "--size 64k: it must"},
		{"trace -S '' hald:ref0", "--size : it must"},
		{"trace -S -1 hald:ref0", "--size -1: it must"},
		{"trace -s 3 hald:ref0", "options of probe, not of trace"},
		{"trace -P x hald:ref0", "options of probe, not of trace"},
		{"ps --time 3 hald:ref0", "--time and --size are options of trace"},
		{"ps -S 1M hald:ref0", "--time and --size are options of trace"},
	};
	static const char *const failing[][2] = {
		{"trace -t 1 -w /dev/null hald:ref0", "regular file"},
		{"trace -t 1 -w /nonexistent/t.json hald:ref0", "/nonexistent/t.json"},
		{"trace -t 1 -w '' hald:ref0", "path is empty"},
	};
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(halctl_of(&h, "", wrong[i][0]), 2);
		expect(wrong[i][1]);
	}
	for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		assert_int_equal(halctl_of(&h, "", failing[i][0]), 1);
		expect(failing[i][1]);
	}
	assert_int_equal(halctl_of(&h, "video", "trace -t 1 -S 17M hald:ref0"), 1);
	expect("tenant \"video\"");
	(void)unlink("hal-trace.json");
	hald_with_tenants_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ps),
		cmocka_unit_test(ps_json),
		cmocka_unit_test(refused),
		cmocka_unit_test(metrics),
		cmocka_unit_test(promtool),
		cmocka_unit_test(check),
		cmocka_unit_test(cdi),
		cmocka_unit_test(top),
		cmocka_unit_test(trace),
		cmocka_unit_test(trace_interrupted),
		cmocka_unit_test(trace_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
