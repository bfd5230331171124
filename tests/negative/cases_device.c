/* SPDX-License-Identifier: Apache-2.0 */
/* Library, device, configuration and trace called wrongly. */
#define _GNU_SOURCE
#include "negative.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hal/ext/options.h>
#include <hal/ext/replay.h>

/* ---- library ---------------------------------------------------------------------- */

/* A scan of everything that this process could open, until the test ends. */
static struct hal_scan *scan(void)
{
	static struct hal_scan *s;

	if (s == NULL && hal_scan_create(NULL, HAL_SCAN_DEVICES | HAL_SCAN_OPTIONS, &s))
		return NULL;
	return s;
}

static struct hal_scan *destroyed(void)
{
	struct hal_scan *s = NULL;

	(void)hal_scan_create(NULL, HAL_SCAN_OPTIONS, &s);
	(void)hal_scan_destroy(s);
	return s;
}

static int create_with(const char *const *options)
{
	struct hal_scan *s;

	return hal_scan_create(options, HAL_SCAN_DEVICES | HAL_SCAN_OPTIONS, &s);
}

NEGATIVE(hal_scan_create, EINVAL, null, "scan is NULL")
{
	(void)w;
	return hal_scan_create(NULL, HAL_SCAN_DEVICES, NULL);
}

NEGATIVE(hal_scan_create, EINVAL, of_nothing, "what is 0x0")
{
	struct hal_scan *s;

	(void)w;
	return hal_scan_create(NULL, 0, &s);
}

NEGATIVE(hal_scan_create, EINVAL, of_unknown, "what is 0x9")
{
	struct hal_scan *s;

	(void)w;
	return hal_scan_create(NULL, 9, &s);
}

NEGATIVE(hal_scan_create, ENOENT, file_missing, "/nonexistent/hal.conf")
{
	const char *options[] = {"hal.config=/nonexistent/hal.conf", NULL};

	(void)w;
	return create_with(options);
}

NEGATIVE(hal_scan_destroy, EINVAL, twice, "has been destroyed")
{
	(void)w;
	return hal_scan_destroy(destroyed());
}

NEGATIVE(hal_scan_get_backend, EINVAL, destroyed, "has been destroyed")
{
	struct hal_backend_info i = HAL_INIT(hal_backend_info);

	(void)w;
	return hal_scan_get_backend(destroyed(), 0, &i);
}

NEGATIVE(hal_scan_get_backend, EINVAL, not_scanned, "HAL_SCAN_DEVICES")
{
	struct hal_backend_info i = HAL_INIT(hal_backend_info);
	struct hal_scan *s;
	int err;

	(void)w;
	NEG_OK(hal_scan_create(NULL, HAL_SCAN_OPTIONS, &s));
	err = hal_scan_get_backend(s, 0, &i);
	NEG_OK(hal_scan_destroy(s));
	return err;
}

NEGATIVE(hal_scan_get_backend, ERANGE, past_the_last, "1000")
{
	struct hal_backend_info i = HAL_INIT(hal_backend_info);

	(void)w;
	return hal_scan_get_backend(scan(), 1000, &i);
}

NEGATIVE(hal_scan_get_backend, EINVAL, null, "info")
{
	(void)w;
	return hal_scan_get_backend(scan(), 0, NULL);
}

NEGATIVE(hal_scan_get_backend, EINVAL, size_zero, "size")
{
	struct hal_backend_info i = {.size = 0};

	(void)w;
	return hal_scan_get_backend(scan(), 0, &i);
}

NEGATIVE(hal_scan_get_device, EINVAL, no_scan, "the scan is NULL")
{
	return hal_scan_get_device(NULL, 0, &w->info);
}

NEGATIVE(hal_scan_get_device, ERANGE, past_the_last, "1000")
{
	return hal_scan_get_device(scan(), 1000, &w->info);
}

NEGATIVE(hal_scan_get_device, EINVAL, null, "info")
{
	(void)w;
	return hal_scan_get_device(scan(), 0, NULL);
}

NEGATIVE(hal_scan_get_device, EINVAL, size_zero, "size")
{
	w->info.size = 0;
	return hal_scan_get_device(scan(), 0, &w->info);
}

NEGATIVE(hal_scan_get_option, EINVAL, not_scanned, "HAL_SCAN_OPTIONS")
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_scan *s;
	int err;

	(void)w;
	NEG_OK(hal_scan_create(NULL, HAL_SCAN_DEVICES, &s));
	err = hal_scan_get_option(s, 0, &o);
	NEG_OK(hal_scan_destroy(s));
	return err;
}

NEGATIVE(hal_scan_get_option, ERANGE, past_the_last, "1000")
{
	struct hal_option_info o = HAL_INIT(hal_option_info);

	(void)w;
	return hal_scan_get_option(scan(), 1000, &o);
}

NEGATIVE(hal_scan_get_option, EINVAL, null, "info")
{
	(void)w;
	return hal_scan_get_option(scan(), 0, NULL);
}

NEGATIVE(hal_scan_get_option, EINVAL, size_zero, "size")
{
	struct hal_option_info o = {.size = 0};

	(void)w;
	return hal_scan_get_option(scan(), 0, &o);
}

/* Call something while the user's configuration is a file that everybody can write. */
static int with_open_file(struct neg *w, int (*call)(struct neg *w))
{
	char home[] = "/tmp/hal-negative-XXXXXX", folder[64], file[80];
	FILE *f;
	int err;

	NEG_OK(mkdtemp(home) == NULL);
	snprintf(folder, sizeof(folder), "%s/accelhal", home);
	snprintf(file, sizeof(file), "%s/hal.conf", folder);
	NEG_OK(mkdir(folder, 0755));
	f = fopen(file, "w");
	NEG_OK(f == NULL);
	NEG_OK(fclose(f));
	NEG_OK(chmod(file, 0666));
	setenv("XDG_CONFIG_HOME", home, 1);
	unsetenv("HAL_CONFIG");
	err = call(w);
	setenv("HAL_CONFIG", "/dev/null", 1);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	unlink(file);
	rmdir(folder);
	rmdir(home);
	return err;
}

static int call_scan(struct neg *w)
{
	(void)w;
	return create_with(NULL);
}

NEGATIVE(hal_scan_create, EACCES, file_others_write, "other users can write /")
{
	return with_open_file(w, call_scan);
}

static int call_open(struct neg *w)
{
	return hal_open("ref", NULL, &w->dev2);
}

NEGATIVE(hal_log_set, EINVAL, level_past_the_last, "level 5")
{
	(void)w;
	return hal_log_set(NULL, NULL, HAL_LOG_DEBUG + 1);
}

NEGATIVE(hal_log_set, EINVAL, level_negative, "level -1")
{
	(void)w;
	return hal_log_set(NULL, NULL, -1);
}

NEGATIVE(hal_open, EACCES, file_others_write, "other users can write /")
{
	return with_open_file(w, call_open);
}

static int option_of_file(struct neg *w, const char *text)
{
	const char *options[] = {NULL, NULL};
	char option[300] = "hal.config=";

	options[0] = option;
	NEG_OK(neg_config(w, text));
	strncat(option, w->path, sizeof(option) - 16);
	return create_with(options);
}

NEGATIVE(hal_scan_create, EINVAL, file_and_line, ":3:")
{
	return option_of_file(w, "[hal]\ndevice = ref\nrubbish\n");
}

/* ---- open: targets ---------------------------------------------------------------- */

NEGATIVE(hal_open, EINVAL, dev_null, "dev")
{
	(void)w;
	return hal_open("ref", NULL, NULL);
}

NEGATIVE(hal_open, EINVAL, target_empty, "target")
{
	return hal_open("", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_index, "ref:x")
{
	return hal_open("ref:x", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_index_huge, "99999999999999999999")
{
	return hal_open("ref:99999999999999999999", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_no_value, "units")
{
	return hal_open("ref?units", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_unknown_option, "unitss")
{
	return hal_open("ref?unitss=4", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_bad_value, "four")
{
	return hal_open("ref?units=four", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_value_range, "1..16384")
{
	return hal_open("ref?units=16385", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_value_zero, "units")
{
	return hal_open("ref?units=0", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_enum, "virtual|real")
{
	return hal_open("ref?clock=sundial", NULL, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, target_not_a_grid, "rows")
{
	return hal_open("ref?units=16&rows=5", NULL, &w->dev2);
}

NEGATIVE(hal_open, ENODEV, index_past_last, "ref:1")
{
	return hal_open("ref:1", NULL, &w->dev2);
}

NEGATIVE(hal_open, ENODEV, absent, "ref")
{
	return hal_open("ref?devices=0", NULL, &w->dev2);
}

NEGATIVE(hal_open, ENODEV, unknown_backend, "abacus")
{
	return hal_open("abacus:0", NULL, &w->dev2);
}

/* ---- open: options, files, the environment ---------------------------------------- */

NEGATIVE(hal_open, EINVAL, option_shape, "rubbish")
{
	const char *options[] = {"rubbish", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, option_section, "nosuch")
{
	const char *options[] = {"nosuch.key=1", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, option_key, "unitss")
{
	const char *options[] = {"backend.ref.unitss=1", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, option_value, "-3")
{
	const char *options[] = {"backend.ref.units=-3", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, option_size, "1Q")
{
	const char *options[] = {"backend.ref.memory=1Q", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, option_overflow, "99999999999G")
{
	const char *options[] = {"backend.ref.memory=99999999999G", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, ENOENT, file_missing, "/nonexistent/hal.conf")
{
	const char *options[] = {"hal.config=/nonexistent/hal.conf", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, ENOENT, file_of_environment, "/nonexistent/env.conf")
{
	int err;

	setenv("HAL_CONFIG", "/nonexistent/env.conf", 1);
	err = hal_open("ref", NULL, &w->dev2);
	setenv("HAL_CONFIG", "/dev/null", 1);
	return err;
}

NEGATIVE(hal_open, EINVAL, environment_value, "HAL_BACKEND_REF_UNITS")
{
	int err;

	setenv("HAL_BACKEND_REF_UNITS", "many", 1);
	err = hal_open("ref", NULL, &w->dev2);
	unsetenv("HAL_BACKEND_REF_UNITS");
	return err;
}

NEGATIVE(hal_open, EINVAL, file_no_section, ":1:")
{
	return neg_open_config(w, "device = ref\n");
}

NEGATIVE(hal_open, EINVAL, file_unknown_section, ":1")
{
	return neg_open_config(w, "[hall]\ndevice = ref\n");
}

NEGATIVE(hal_open, EINVAL, file_unknown_key, ":3")
{
	return neg_open_config(w, "[hal]\ndevice = ref\ncolour = red\n");
}

NEGATIVE(hal_open, EINVAL, file_unknown_backend, ":3")
{
	return neg_open_config(w, "[hal]\ndevice = ref\n[backend.abacus]\nbeads = 10\n");
}

NEGATIVE(hal_open, EINVAL, file_bad_value, ":4")
{
	return neg_open_config(w, "[hal]\ndevice = ref\n[backend.ref]\nunits = x\n");
}

/* A better value elsewhere does not make a wrong line right. */
NEGATIVE(hal_open, EINVAL, file_value_overridden, ":2")
{
	int err;

	setenv("HAL_BACKEND_REF_UNITS", "4", 1);
	err = neg_open_config(w, "[backend.ref]\nunits = x\n[hal]\ndevice = ref\n");
	unsetenv("HAL_BACKEND_REF_UNITS");
	return err;
}

NEGATIVE(hal_open, EINVAL, file_syntax, ":2:")
{
	return neg_open_config(w, "[hal]\n[unfinished\ndevice = ref\n");
}

NEGATIVE(hal_open, EINVAL, file_twice, ":3:")
{
	return neg_open_config(w, "[hal]\ndevice = ref\ndevice = ref\n");
}

NEGATIVE(hal_open, EINVAL, file_section_twice, ":4:")
{
	return neg_open_config(w, "[hal]\ndevice = ref\n[backend.ref]\n[hal]\n");
}

NEGATIVE(hal_open, EINVAL, file_bad_target, "ref:x")
{
	return neg_open_config(w, "[hal]\ndevice = ref:x\n");
}

NEGATIVE(hal_open, EINVAL, file_partition_key, ":4")
{
	return neg_open_config(w, "[hal]\ndevice = ref\n[partition \"a\"]\nwidth = 3\n");
}

NEGATIVE(hal_open, ENODEV, file_absent_device, "ref:7")
{
	return neg_open_config(w, "[hal]\ndevice = ref:7\n");
}

/* ---- device ----------------------------------------------------------------------- */

NEGATIVE(hal_close, EBUSY, partition, "partition")
{
	NEG_OK(hal_program_unload(w->prog));
	w->prog = NULL;
	return hal_close(w->dev);
}

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

NEGATIVE(hal_close, EBUSY, program, "program")
{
	const struct hal_ref_kernel k = {.name = "nothing", .fn = nothing};

	if (!w->ref)
		return neg_skip("an image of ref");
	NEG_OK(hal_open(w->target, NULL, &w->dev2));
	NEG_OK(hal_ref_load(w->dev2, &k, 1, &w->prog2));
	return hal_close(w->dev2);
}

NEGATIVE(hal_close, EBUSY, timeline, "timeline")
{
	NEG_OK(hal_open(w->target, NULL, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &w->line2));
	return hal_close(w->dev2);
}

NEGATIVE(hal_close, EBUSY, ring_of_completions, "1 completion ring")
{
	NEG_OK(hal_open(w->target, NULL, &w->dev2));
	NEG_OK(hal_completions_create(w->dev2, 8, &w->ring));
	return hal_close(w->dev2);
}

/* Freeing memory fails, which layer validate finds out. */
NEGATIVE(hal_close, EPROTO, leak, "alive")
{
	const char *options[] = {"layers.validate=1", "layers.fault=mem_free:1:EIO",
				 NULL};
	struct hal_device *dev;

	NEG_OK(hal_open(w->target, options, &dev));
	NEG_OK(hal_partition_create(dev, &w->part_desc, &w->part2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	NEG_OK(hal_buffer_destroy(w->buf2));
	NEG_OK(hal_partition_destroy(w->part2));
	w->buf2 = NULL;
	w->part2 = NULL;
	return hal_close(dev);
}

NEGATIVE(hal_open, EBUSY, trace_of_another,
	 "another device or program is writing this file")
{
	char path[] = "/tmp/hal-negative-XXXXXX", option[64];
	const char *options[] = {option, NULL};
	struct hal_device *first, *second;
	int fd = mkstemp(path), err;

	(void)w;
	NEG_OK(fd < 0 ? -EIO : 0);
	(void)close(fd);
	(void)snprintf(option, sizeof(option), "hal.trace=%s", path);
	NEG_OK(hal_open("ref", options, &first));
	err = hal_open("ref", options, &second);
	NEG_OK(hal_close(first));
	(void)unlink(path);
	return err;
}

NEGATIVE(hal_close, EIO, layer_trace, "/dev/full")
{
	const char *options[] = {"layers.trace=/dev/full", NULL};
	struct hal_device *dev;

	NEG_OK(hal_open(w->target, options, &dev));
	return hal_close(dev);
}

NEGATIVE(hal_close, EIO, trace, "/dev/full")
{
	const char *options[] = {"hal.trace=/dev/full", NULL};
	struct hal_device *dev;

	NEG_OK(hal_open(w->target, options, &dev));
	return hal_close(dev);
}

NEGATIVE(hal_close, EINVAL, destroyed, "device")
{
	struct hal_device *dev;

	NEG_OK(hal_open(w->target, NULL, &dev));
	NEG_OK(hal_close(dev));
	return hal_close(dev);
}

NEGATIVE(hal_close, EINVAL, not_a_device, "device")
{
	return hal_close((struct hal_device *)(void *)w->queue);
}

NEGATIVE(hal_device_get_info, EINVAL, dev_null, "device|dev")
{
	return hal_device_get_info(NULL, &w->info);
}

NEGATIVE(hal_device_get_info, EINVAL, info_null, "info")
{
	return hal_device_get_info(w->dev, NULL);
}

NEGATIVE(hal_device_get_info, EINVAL, size_zero, "size")
{
	w->info.size = 0;
	return hal_device_get_info(w->dev, &w->info);
}

NEGATIVE(hal_device_get_info, EINVAL, destroyed, "device")
{
	struct hal_device *dev;

	NEG_OK(hal_open(w->target, NULL, &dev));
	NEG_OK(hal_close(dev));
	return hal_device_get_info(dev, &w->info);
}

NEGATIVE(hal_device_get_stats, EINVAL, dev_null, "device|dev")
{
	return hal_device_get_stats(NULL, &w->stats);
}

NEGATIVE(hal_device_get_stats, EINVAL, stats_null, "stats")
{
	return hal_device_get_stats(w->dev, NULL);
}

NEGATIVE(hal_device_get_stats, EINVAL, size_tiny, "size")
{
	w->stats.size = 4;
	return hal_device_get_stats(w->dev, &w->stats);
}

NEGATIVE(hal_device_poll, EINVAL, dev_null, "device|dev")
{
	(void)w;
	return hal_device_poll(NULL, 0);
}

NEGATIVE(hal_device_get_extension, ENOENT, unknown, "abacus")
{
	return NEG_NULL(hal_device_get_extension(w->dev, "abacus"));
}

NEGATIVE(hal_device_get_extension, ENOENT, other_backends, "npu")
{
	return NEG_NULL(hal_device_get_extension(w->dev, "npu"));
}

NEGATIVE(hal_device_get_extension, ENOENT, name_null, "name")
{
	return NEG_NULL(hal_device_get_extension(w->dev, NULL));
}

NEGATIVE(hal_device_get_native, ENOENT, dev_null, "device|dev")
{
	(void)w;
	return NEG_NULL(hal_device_get_native(NULL));
}

/* ---- policy ----------------------------------------------------------------------- */

NEGATIVE(hal_device_set_policy, EINVAL, dev_null, "device|dev")
{
	(void)w;
	return hal_device_set_policy(NULL, "fifo", NULL);
}

NEGATIVE(hal_device_set_policy, EINVAL, name_null, "name")
{
	return hal_device_set_policy(w->dev, NULL, NULL);
}

NEGATIVE(hal_device_set_policy, EINVAL, unknown, "there are")
{
	return hal_device_set_policy(w->dev, "lottery", NULL);
}

NEGATIVE(hal_device_set_policy, ENOTSUP, budget_unkept,
	 "policy wfq does not enforce budgets")
{
	NEG_OK(hal_device_set_policy(w->dev, "quota", NULL));
	w->queue_desc.budget_permille = 100;
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue2));
	return hal_device_set_policy(w->dev, "wfq", NULL);
}

NEGATIVE(hal_device_set_policy, EINVAL, option_shape, "rubbish")
{
	const char *options[] = {"rubbish", NULL};

	return hal_device_set_policy(w->dev, "rr", options);
}

NEGATIVE(hal_device_set_policy, EINVAL, option_unknown, "rr_command")
{
	const char *options[] = {"rr_command=2", NULL};

	return hal_device_set_policy(w->dev, "rr", options);
}

NEGATIVE(hal_device_set_policy, EINVAL, option_value, "1..1000000")
{
	const char *options[] = {"rr_commands=0", NULL};

	return hal_device_set_policy(w->dev, "rr", options);
}

NEGATIVE(hal_device_get_policy, EINVAL, dev_null, "device|dev")
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);

	(void)w;
	return hal_device_get_policy(NULL, &i);
}

NEGATIVE(hal_device_get_policy, EINVAL, info_null, "info")
{
	return hal_device_get_policy(w->dev, NULL);
}

NEGATIVE(hal_device_get_policy, EINVAL, size_zero, "size")
{
	struct hal_policy_info i = {.size = 0};

	return hal_device_get_policy(w->dev, &i);
}

NEGATIVE(hal_open, EINVAL, policy_unknown, "lottery")
{
	const char *options[] = {"policy.name=lottery", NULL};

	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EINVAL, policy_option, "rr_commands")
{
	const char *options[] = {"policy.name=rr", "policy.rr_commands=none", NULL};

	return hal_open("ref", options, &w->dev2);
}

/* ---- trace ------------------------------------------------------------------------ */

NEGATIVE(hal_trace_start, EINVAL, dev_null, "device|dev")
{
	(void)w;
	return hal_trace_start(NULL, "/dev/null");
}

NEGATIVE(hal_trace_start, EINVAL, path_null, "path")
{
	return hal_trace_start(w->dev, NULL);
}

NEGATIVE(hal_trace_start, ENOENT, folder_missing, "/nonexistent/t.json")
{
	return hal_trace_start(w->dev, "/nonexistent/t.json");
}

NEGATIVE(hal_trace_start, EISDIR, folder, "/tmp")
{
	return hal_trace_start(w->dev, "/tmp");
}

NEGATIVE(hal_trace_start, EBUSY, twice, "trace")
{
	NEG_OK(hal_trace_start(w->dev, "/dev/null"));
	return hal_trace_start(w->dev, "/dev/null");
}

/* ---- journals --------------------------------------------------------------------- */

/* A journal of a device with a queue, and what follows. */
static int replay_lines(const char *lines)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	char path[] = "/tmp/hal-negative-XXXXXX";
	int fd = mkstemp(path), err;

	NEG_OK(fd < 0 ? -EIO : 0);
	(void)dprintf(fd,
		      "J hal-journal 1 ref:0\n"
		      "D 1 1 16 16 446 9 2 3 2 2 32 10000000000 0\n%s",
		      lines);
	(void)close(fd);
	err = hal_replay(path, &i);
	(void)unlink(path);
	return err;
}

NEGATIVE(hal_replay, EINVAL, path_null, "path")
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)w;
	return hal_replay(NULL, &i);
}

NEGATIVE(hal_replay, EINVAL, out_null, "out")
{
	(void)w;
	return hal_replay("/dev/null", NULL);
}

NEGATIVE(hal_replay, EINVAL, empty, "/dev/null:1: the file is empty")
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)w;
	return hal_replay("/dev/null", &i);
}

NEGATIVE(hal_replay, EINVAL, no_such_queue, ":4: there is no such queue")
{
	(void)w;
	return replay_lines("Y fifo\nl 0 0\n");
}

NEGATIVE(hal_replay, EINVAL, no_such_policy, "nosuch")
{
	(void)w;
	return replay_lines("Y nosuch\n");
}

NEGATIVE(hal_replay, ENOTSUP, callbacks_overlap, ":6: callbacks")
{
	(void)w;
	return replay_lines("Y fifo\nP 0 0 0 1 4\nQ 0 0 0 0 1\nR 0\n");
}

NEGATIVE(hal_replay, ENOENT, file_missing, "/nonexistent/journal")
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)w;
	return hal_replay("/nonexistent/journal", &i);
}

NEGATIVE(hal_replay, EISDIR, folder, "/tmp")
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)w;
	return hal_replay("/tmp", &i);
}

/* A full disk is told of at the latest when the file is closed. */
static int full_disk(struct neg *w)
{
	int i, err = hal_trace_start(w->dev, "/dev/full");

	for (i = 0; !err && i < 100; i++) {
		struct hal_point done;

		NEG_OK(hal_submit(w->queue, &w->submit, &done));
		NEG_OK(neg_wait(done));
	}
	return err ? err : hal_trace_stop(w->dev);
}

NEGATIVE(hal_trace_stop, EIO, full_disk, "/dev/full")
{
	int err = full_disk(w);

	return err == -ENOSPC ? -EIO : err; /* the file's errno is as good */
}

NEGATIVE(hal_trace_stop, EINVAL, not_started, "trace")
{
	return hal_trace_stop(w->dev);
}

NEGATIVE(hal_trace_stop, EINVAL, dev_null, "device|dev")
{
	(void)w;
	return hal_trace_stop(NULL);
}
