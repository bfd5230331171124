/* SPDX-License-Identifier: Apache-2.0 */
/* partitions=auto: the best way that holds is taken; one that does not do what it says,
 * crashes or hangs is found out in another process, and the next one is taken; what came
 * of it is kept, and nothing is believed that somebody else may have put there. */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

static const struct hal_backend *b;
static const struct hal_bk_config automatic = {
	.clock = 1, .partitions = CU_WAY_AUTO, .helper = HELPER};
static char home[PATH_MAX], folder[PATH_MAX + 16];

/* Helpers that the kernel does not let go, as far as this process can see: the number of
 * waits, from the next one on, that report no end.  Linked with --wrap=waitpid. */
static uint32_t unkillable;
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	if (!unkillable)
		return __real_waitpid(pid, status, options);
	if (!(options & WNOHANG))
		fail_msg("a wait without limit for a helper that cannot be killed");
	unkillable--;
	return 0;
}

/* ---- the cache --------------------------------------------------------------------- */

/* Of the one file in it; its name, or "". */
static const char *kept_file(void)
{
	static char path[2 * PATH_MAX];
	DIR *d = opendir(folder);
	struct dirent *e;

	path[0] = 0;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			assert_string_equal(path, "");
			snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		}
	if (d)
		closedir(d);
	return path;
}

static void forget(void)
{
	const char *path = kept_file();

	if (path[0])
		assert_int_equal(unlink(path), 0);
}

static int begin(void **state)
{
	(void)state;
	stand_in()->reset();
	unkillable = 0;
	unsetenv("HAL_STAND_IN_CUDA_MASK");
	unsetenv("HAL_STAND_IN_CUDA_GREEN");
	unsetenv("HAL_STAND_IN_CUDA_QMD");
	unsetenv("HAL_STAND_IN_CUDA_VERSION");
	unsetenv("HAL_STAND_IN_CUDA_MPS");
	unsetenv("HAL_STAND_IN_CUDA_SMS");
	unsetenv("CUDA_INJECTION64_PATH");
	/* But for those of streams: green contexts are next. */
	setenv("HAL_STAND_IN_CUDA_STREAM", "ignored", 1);
	setenv("XDG_CACHE_HOME", home, 1);
	forget();
	return 0;
}

/* ---- opens ------------------------------------------------------------------------- */

static void clean(void)
{
	const char *text = "";

	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

static uint32_t files_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Opens, closes; what it became, and how it says that it did. */
static struct hal_cuda_info opened(const struct hal_bk_config *cfg, uint32_t index)
{
	struct hal_cuda_info info = {.size = sizeof(info)}, bad = {.size = 8};
	const struct hal_cuda_extension *ext;
	const uint32_t files = files_open();
	void *dev;

	if (b->cold.open(cfg, index, &dev))
		fail_msg("%s", host_text);
	assert_null(b->cold.extension(dev, "rocm"));
	ext = b->cold.extension(dev, "cuda");
	assert_int_equal(ext->info(dev, &bad), -EINVAL);
	assert_int_equal(ext->info(dev, &info), 0);
	b->cold.close(dev);
	assert_int_equal(files_open(), files);
	clean();
	return info;
}

static void is(const struct hal_bk_config *cfg, uint32_t way, const char *const *texts)
{
	const struct hal_cuda_info info = opened(cfg, 0);
	uint32_t i;

	for (i = 0; texts[i]; i++)
		if (!strstr(info.said, texts[i]))
			fail_msg("'%s' does not say '%s'", info.said, texts[i]);
	if (info.way != way)
		fail_msg("way %u, not %u: %s", info.way, way, info.said);
}
#define IS(cfg, way, ...) is(cfg, way, (const char *const[]){__VA_ARGS__, NULL})

/* ---- what is chosen ---------------------------------------------------------------- */

static void masks_first(void **state)
{
	const struct hal_bk_config nobody = {
		.clock = 1, .partitions = CU_WAY_AUTO, .helper = "/nonexistent/helper"};
	struct hal_bk_config some = nobody, all = nobody;
	struct hal_device_info probed[2];
	struct hal_cuda_info info;
	struct stat st;
	void *dev;

	(void)state;
	some.remainder = 4;
	all.remainder = 66;
	memset(probed, 0, sizeof(probed));
	assert_int_equal(b->cold.probe(&automatic, probed, 2), 2);
	assert_int_equal(probed[0].unit_cols, 1); /* nothing is known yet */
	info = opened(&automatic, 0);
	assert_int_equal(info.way, HAL_CUDA_MASK);
	assert_int_equal(info.unit_multiprocessors, 2);
	assert_int_equal(info.resize_live, 1);
	assert_int_equal(info.clusters_safe, 0);
	assert_string_equal(info.said, "mask: tried out at open");
	assert_int_equal(stat(kept_file(), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	/* Now it is known, and no helper is asked. */
	IS(&nobody, HAL_CUDA_MASK, "mask: tried out at an earlier open");
	assert_int_equal(b->cold.probe(&nobody, probed, 2), 2);
	assert_int_equal(probed[0].unit_cols, 66);
	assert_true(probed[0].caps & HAL_CAP_RESIZE_LIVE);
	assert_int_equal(probed[1].unit_cols, 1);
	/* Some of these are kept for what is in no partition, but not all. */
	assert_int_equal(b->cold.probe(&some, probed, 2), 2);
	assert_int_equal(probed[0].unit_cols, 62);
	assert_int_equal(probed[1].unit_cols, 1);
	assert_int_equal(b->cold.open(&all, 0, &dev), -EINVAL);
	assert_non_null(strstr(host_text, "remainder=66: the device has 66 units"));
	clean();
}

/* Masks in streams are next. */
static void streams_second(void **state)
{
	const struct hal_bk_config nobody = {
		.clock = 1, .partitions = CU_WAY_AUTO, .helper = "/nonexistent/helper"};
	struct hal_device_info probed[1];
	struct hal_cuda_info info;

	(void)state;
	unsetenv("HAL_STAND_IN_CUDA_STREAM");
	setenv("HAL_STAND_IN_CUDA_MASK", "crash", 1);
	info = opened(&automatic, 0);
	assert_int_equal(info.way, HAL_CUDA_STREAM);
	assert_int_equal(info.unit_multiprocessors, 2);
	assert_int_equal(info.resize_live, 1);
	assert_int_equal(info.clusters_safe, 0);
	assert_non_null(strstr(info.said, "stream: tried out at open"));
	unsetenv("HAL_STAND_IN_CUDA_MASK");
	/* A crash is not kept; with no helper to ask again, what is kept is next. */
	IS(&nobody, HAL_CUDA_STREAM, "stream: tried out at an earlier open");
	memset(probed, 0, sizeof(probed));
	assert_int_equal(b->cold.probe(&nobody, probed, 1), 2);
	assert_int_equal(probed[0].unit_cols, 66);
	assert_true(probed[0].caps & HAL_CAP_RESIZE_LIVE);
	/* Another driver's place is not this one's. */
	setenv("HAL_STAND_IN_CUDA_STREAM", "hang", 1);
	setenv("HAL_STAND_IN_CUDA_MASK", "ignored", 1);
	IS(&automatic, HAL_CUDA_STREAM, "could not be masked",
	   "stream: tried out at an earlier open");
}

/* What the helper has found is what is found here. */
static void same_table(void **state)
{
	const struct hal_bk_config here = {.clock = 1, .partitions = CU_WAY_MASK};
	struct cu_mask m;
	void *dev;

	(void)state;
	assert_int_equal(b->cold.open(&here, 1, &dev), 0);
	m = *((struct cu_device *)dev)->mask;
	b->cold.close(dev);
	assert_int_equal(b->cold.open(&automatic, 1, &dev), 0);
	assert_memory_equal(((struct cu_device *)dev)->mask, &m, sizeof(m));
	b->cold.close(dev);
	clean();
}

static void a_lie(void **state)
{
	struct hal_cuda_info info;

	(void)state;
	setenv("HAL_STAND_IN_CUDA_MASK", "ignored", 1);
	info = opened(&automatic, 0);
	assert_int_equal(info.way, HAL_CUDA_GREEN);
	assert_int_equal(info.unit_multiprocessors, 8);
	assert_int_equal(info.resize_live, 0);
	assert_int_equal(info.clusters_safe, 1);
	assert_non_null(strstr(info.said, "132 multiprocessors could not be masked"));
	assert_non_null(strstr(info.said, "green: tried out at open"));
	/* A refusal is kept. */
	unsetenv("HAL_STAND_IN_CUDA_MASK");
	IS(&automatic, HAL_CUDA_GREEN, "could not be masked",
	   "green: tried out at an earlier");
}

static void all_lie(void **state)
{
	struct hal_cuda_info info;

	(void)state;
	setenv("HAL_STAND_IN_CUDA_MASK", "ignored", 1);
	setenv("HAL_STAND_IN_CUDA_GREEN", "ignored", 1);
	info = opened(&automatic, 0);
	assert_int_equal(info.way, HAL_CUDA_WHOLE);
	assert_int_equal(info.unit_multiprocessors, 132);
	assert_non_null(strstr(info.said, "mask: "));
	assert_non_null(strstr(info.said, "green: "));
	assert_non_null(strstr(info.said, "none: the device is one unit"));
}

/* The driver of the helper dies, not this one's; another time it may do. */
static void a_crash(void **state)
{
	(void)state;
	setenv("HAL_STAND_IN_CUDA_MASK", "crash", 1);
	IS(&automatic, HAL_CUDA_GREEN, "mask: hal-cuda-trial was killed by SIGKILL",
	   "green: tried out at open");
	unsetenv("HAL_STAND_IN_CUDA_MASK");
	IS(&automatic, HAL_CUDA_MASK, "mask: tried out at open");
}

static void a_hang(void **state)
{
	struct hal_bk_config cfg = automatic;

	(void)state;
	assert_int_equal(opened(&automatic, 0).way, HAL_CUDA_MASK);
	forget();
	setenv("HAL_STAND_IN_CUDA_MASK", "hang", 1);
	setenv("HAL_STAND_IN_CUDA_GREEN", "hang", 1);
	cfg.trial_ms = 50;
	IS(&cfg, HAL_CUDA_WHOLE, "mask: hal-cuda-trial did not end in 50 ms",
	   "green: hal-cuda-trial did not end in 50 ms");
}

/* A driver that has no masks or green contexts at all. */
static void not_there(void **state)
{
	(void)state;
	setenv("HAL_STAND_IN_CUDA_QMD", "0x06", 1);
	IS(&automatic, HAL_CUDA_GREEN, "its launch descriptors are unknown");
	unsetenv("HAL_STAND_IN_CUDA_QMD");
	forget();
	setenv("HAL_STAND_IN_CUDA_SLOTS", "6", 1);
	IS(&automatic, HAL_CUDA_GREEN, "the driver's callback table has only 48 bytes");
	unsetenv("HAL_STAND_IN_CUDA_SLOTS");
}

/* What held in the helper does not in this process. */
static void not_here(void **state)
{
	void *kept;

	(void)state;
	assert_int_equal(opened(&automatic, 1).way, HAL_CUDA_MASK);
	forget();
	/* Others have hooked the driver already: a driver without green contexts here. */
	setenv("HAL_STAND_IN_CUDA_MASK", "ignored", 1);
	memcpy(&kept, &cu.cuGreenCtxCreate, sizeof(kept));
	cu.cuGreenCtxCreate = NULL;
	IS(&automatic, HAL_CUDA_WHOLE, "green: works elsewhere but cannot be opened here",
	   "none: the device");
	memcpy(&cu.cuGreenCtxCreate, &kept, sizeof(kept));
}

static bool has_children(void)
{
	siginfo_t one;

	return waitid(P_ALL, 0, &one, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A helper in an uninterruptible wait (state D) does not end when it is killed: hal_open
 * returns all the same, and the helper is reaped once it has ended. */
static void a_hang_for_good(void **state)
{
	struct hal_bk_config cfg = automatic;

	(void)state;
	setenv("HAL_STAND_IN_CUDA_MASK", "hang", 1);
	setenv("HAL_STAND_IN_CUDA_GREEN", "hang", 1);
	cfg.trial_ms = 50;
	unkillable = UINT32_MAX;
	IS(&cfg, HAL_CUDA_WHOLE,
	   "mask: hal-cuda-trial did not end in 50 ms and cannot be killed; process ",
	   " is left behind", "green: hal-cuda-trial did not end in 50 ms and cannot");
	assert_true(has_children());
	unkillable = 0;
	unsetenv("HAL_STAND_IN_CUDA_MASK");
	IS(&automatic, HAL_CUDA_MASK, "mask: tried out at open");
	assert_false(has_children());
}

static void helpers(void **state)
{
	static const struct {
		const char *path, *says;
	} all[] = {
		{"/nonexistent/helper",
		 "mask: the program /nonexistent/helper does not exist"},
		{"/bin/true",
		 "mask: hal-cuda-trial exited with status 0 and printed no result"},
		{"/bin/false",
		 "mask: hal-cuda-trial exited with status 1 and printed no result"},
		{"/bin/echo", "mask: the result of hal-cuda-trial is damaged"},
		{"/usr/bin/yes", "mask: hal-cuda-trial did not end in"},
		{"/", "mask: the program / does not exist"},
	};
	struct hal_bk_config cfg = automatic;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		cfg.helper = all[i].path;
		IS(&cfg, HAL_CUDA_WHOLE, all[i].says);
	}
	/* Nobody is to be told of a child's end. */
	signal(SIGCHLD, SIG_IGN);
	IS(&automatic, HAL_CUDA_MASK, "mask: tried out at open");
	signal(SIGCHLD, SIG_DFL);
}

/* ---- what is kept ------------------------------------------------------------------ */

static void not_believed(const char *why)
{
	IS(&automatic, HAL_CUDA_MASK, why, "is not used; mask: tried out at open");
	IS(&automatic, HAL_CUDA_MASK, "mask: tried out at an earlier open");
}

static void foreign(void **state)
{
	char other[2 * PATH_MAX + 8];
	FILE *f;

	(void)state;
	assert_int_equal(opened(&automatic, 0).way, HAL_CUDA_MASK);
	assert_int_equal(chmod(kept_file(), 0644), 0);
	not_believed("is not a file that only this user can access");
	if (geteuid() == 0) {
		assert_int_equal(chown(kept_file(), 12345, 12345), 0);
		not_believed("is not a file that only this user can access");
	}
	snprintf(other, sizeof(other), "%s/.other", folder);
	assert_int_equal(rename(kept_file(), other), 0);
	IS(&automatic, HAL_CUDA_MASK, "tried out at open");
	snprintf(host_text, sizeof(host_text), "%.500s", kept_file());
	assert_int_equal(unlink(host_text), 0);
	assert_int_equal(symlink(other, host_text), 0);
	not_believed("cannot be read");
	assert_int_equal(unlink(other), 0);
	f = fopen(kept_file(), "r+");
	assert_int_equal(fputc('A', f), 'A');
	fclose(f);
	not_believed("is damaged");
	assert_int_equal(truncate(kept_file(), 100), 0);
	not_believed("is damaged");
	assert_int_equal(truncate(kept_file(), 0), 0);
	not_believed("is damaged");
	/* A folder that others write. */
	assert_int_equal(chmod(folder, 0770), 0);
	IS(&automatic, HAL_CUDA_MASK, "must be a folder that only this user can write",
	   "tried out at open");
	assert_int_equal(chmod(folder, 0700), 0);
}

/* Nowhere to keep it: it is tried out each time, and said. */
static void nowhere(void **state)
{
	(void)state;
	setenv("XDG_CACHE_HOME", "/proc", 1);
	IS(&automatic, HAL_CUDA_MASK,
	   "tried out at open; the results cannot be stored: ");
	IS(&automatic, HAL_CUDA_MASK,
	   "tried out at open; the results cannot be stored: ");
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "nobody", 1);
	IS(&automatic, HAL_CUDA_MASK, "tried out at open");
	setenv("HOME", home, 1);
	IS(&automatic, HAL_CUDA_MASK, "tried out at open");
	IS(&automatic, HAL_CUDA_MASK, "tried out at an earlier open");
	snprintf(host_text, sizeof(host_text), "rm -r '%.400s/.cache'", home);
	assert_int_equal(system(host_text), 0);
}

/* Unlink all files in the folder; how many there were. */
static uint32_t forget_all(void)
{
	DIR *d = opendir(folder);
	char path[2 * PATH_MAX];
	struct dirent *e;
	uint32_t n = 0;

	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		assert_int_equal(unlink(path), 0);
		n++;
	}
	closedir(d);
	return n;
}

/* A refusal holds for what it was found under: under MPS, with fewer multiprocessors, or
 * under a profiler.  Without that the way is tried out anew, and both results are kept.
 */
static void other_setup(void **state)
{
	static const char *const variables[][2] = {
		{"HAL_STAND_IN_CUDA_MPS", "1"},
		{"HAL_STAND_IN_CUDA_SMS", "64"},
		{"CUDA_INJECTION64_PATH", "/usr/lib/profiler.so"}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		setenv(variables[i][0], variables[i][1], 1);
		setenv("HAL_STAND_IN_CUDA_MASK", "ignored", 1);
		stand_in()->reset();
		IS(&automatic, HAL_CUDA_GREEN, "could not be masked",
		   "green: tried out at open");
		unsetenv("HAL_STAND_IN_CUDA_MASK");
		IS(&automatic, HAL_CUDA_GREEN, "could not be masked",
		   "green: tried out at an earlier open");
		unsetenv(variables[i][0]);
		IS(&automatic, HAL_CUDA_MASK, "mask: tried out at open");
		IS(&automatic, HAL_CUDA_MASK, "mask: tried out at an earlier open");
		setenv(variables[i][0], variables[i][1], 1);
		IS(&automatic, HAL_CUDA_GREEN, "could not be masked",
		   "green: tried out at an earlier open");
		unsetenv(variables[i][0]);
		assert_int_equal(forget_all(), 2);
	}
}

/* Another build of the driver is another matter. */
static void other_driver(void **state)
{
	char first[2 * PATH_MAX];

	(void)state;
	assert_int_equal(opened(&automatic, 0).way, HAL_CUDA_MASK);
	snprintf(first, sizeof(first), "%s", kept_file());
	setenv("HAL_STAND_IN_CUDA_VERSION", "12080", 1);
	IS(&automatic, HAL_CUDA_MASK, "mask: tried out at open");
	assert_int_equal(unlink(first), 0);
	assert_string_not_equal(kept_file(), first);
	unsetenv("HAL_STAND_IN_CUDA_VERSION");
}

/* No byte of it can be another, none is too few. */
static void text(void **state)
{
	static char good[CU_VERDICT_BYTES], bad[CU_VERDICT_BYTES];
	static struct cu_verdict v, w;
	uint32_t i;
	size_t n, at;

	(void)state;
	assert_int_equal(opened(&automatic, 0).way, HAL_CUDA_MASK);
	cu_verdict_of(0, &v);
	assert_string_equal(v.device, "GPU-48414c20-7374-616e-642d-696e20202000");
	v.count = 2;
	v.tried[0] =
		(struct cu_tried){.way = CU_WAY_MASK, .mask = {.count = 66, .per = 2}};
	for (i = 0; i < 66; i++) {
		v.tried[0].mask.first[i] = 2 * i;
		v.tried[0].mask.bit[i] = (uint8_t)(65 - i);
	}
	v.tried[1] = (struct cu_tried){
		.way = CU_WAY_GREEN, .err = -ENOTSUP, .why = "no reason at all"};
	cu_verdict_write(&v, good);
	w = v;
	w.count = 0;
	assert_null(cu_verdict_read(&w, good));
	assert_int_equal(w.count, 2);
	assert_memory_equal(&w.tried[0].mask, &v.tried[0].mask, sizeof(v.tried[0].mask));
	assert_string_equal(w.tried[1].why, "no reason at all");
	n = strlen(good);
	for (at = 0; at < n; at++) {
		memcpy(bad, good, n + 1);
		bad[at] ^= 1;
		w.count = 0;
		if (!cu_verdict_read(&w, bad))
			fail_msg("byte %zu", at);
		memcpy(bad, good, n + 1);
		bad[at] = 0;
		w.count = 0;
		assert_non_null(cu_verdict_read(&w, bad));
	}
	/* With a sum that is right: what is in it is looked at as well. */
	v.tried[0].mask.bit[3] = v.tried[0].mask.bit[4];
	cu_verdict_write(&v, good);
	w.count = 0;
	assert_string_equal(cu_verdict_read(&w, good), "has an invalid line");
	v.tried[0].mask.bit[3] = 200;
	cu_verdict_write(&v, good);
	assert_string_equal(cu_verdict_read(&w, good), "has an invalid line");
	v.tried[0] = v.tried[1];
	cu_verdict_write(&v, good);
	assert_string_equal(cu_verdict_read(&w, good), "has an invalid line");
	w.setup[0] ^= 1;
	assert_string_equal(cu_verdict_read(&w, good),
			    "is for another setup of the device");
	w.build[0] ^= 1;
	assert_string_equal(cu_verdict_read(&w, good), "is for another driver version");
	snprintf(w.device, sizeof(w.device), "GPU-0");
	assert_string_equal(cu_verdict_read(&w, good), "is for another device");
	assert_int_equal(w.count, 0);
}

/* ---- clusters ---------------------------------------------------------------------- */

static void clusters(void **state)
{
	static const char *const names[] = {"hal_sm:m"};
	struct hal_bk_config cfg = {.clock = 1};
	size_t size, more;
	char *image = make_cuda_image(names, 1, 1, &size), *body;
	static const char with[] = ".reqnctapercluster 2, 1, 1\n{\n\tret;\n}\n";
	struct hal_cuda_image *head;
	void *dev, *prog;

	(void)state;
	image = realloc(image, size + sizeof(with));
	head = (struct hal_cuda_image *)image;
	body = strchr(image + size - head->module_bytes, '{');
	memcpy(body, with, sizeof(with));
	more = (size_t)(body - image) + sizeof(with) - size;
	head->bytes += (uint32_t)more;
	head->module_bytes += (uint32_t)more;
	for (cfg.partitions = 0; cfg.partitions < 3; cfg.partitions++) {
		assert_int_equal(b->cold.open(&cfg, 0, &dev), 0);
		if (cfg.partitions == CU_WAY_MASK) {
			assert_int_equal(
				b->cold.program_load(dev, image, size + more, &prog),
				-ENOTSUP);
			assert_non_null(
				strstr(host_text, "launches of clusters can hang"));
			/* Nor where the driver does not say whether it has one. */
			for (uint64_t nth = 1; nth <= 2; nth++) {
				stand_in()->break_call("cuFuncGetAttribute", nth,
						       CUR_OUT_OF_MEMORY);
				assert_int_equal(b->cold.program_load(dev, image,
								      size + more, &prog),
						 -ENOSPC);
			}
			stand_in()->break_call("cuFuncGetAttribute", 0, 0);
		} else {
			assert_int_equal(
				b->cold.program_load(dev, image, size + more, &prog), 0);
			assert_int_equal(b->cold.program_unload(dev, prog), 0);
		}
		b->cold.close(dev);
		clean();
	}
	free(image);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		CASE(masks_first), CASE(streams_second), CASE(same_table),
		CASE(a_lie),       CASE(all_lie),        CASE(a_crash),
		CASE(a_hang),      CASE(helpers),        CASE(a_hang_for_good),
		CASE(not_there),   CASE(not_here),       CASE(foreign),
		CASE(nowhere),     CASE(other_driver),   CASE(text),
		CASE(clusters),    CASE(other_setup),
	};
	int rc;

	snprintf(home, sizeof(home), "/tmp/hal-cuda-ladder.XXXXXX");
	if (!mkdtemp(home))
		return 1;
	snprintf(folder, sizeof(folder), "%s/accelhal", home);
	b = hal_backend_cuda(&host);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	forget();
	(void)rmdir(folder);
	(void)rmdir(home);
	return rc;
}
