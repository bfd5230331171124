/* SPDX-License-Identifier: Apache-2.0 */
/* Programs, queues, submissions and timelines called wrongly. */
#define _GNU_SOURCE
#include "negative.h"

#include <string.h>
#include <time.h>

#include <hal/pack.h>

/* ---- program ---------------------------------------------------------------------- */

static int fine(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

/* A good image with two kernels, in a block of its own. */
struct image {
	struct hal_ref_image head;
	char names[2][HAL_REF_NAME];
};

static struct image good_image(void)
{
	return (struct image){{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 2},
			      {"fine", "good"}};
}

static const struct hal_ref_kernel good_kernels[2] = {{.name = "fine", .fn = fine},
						      {.name = "good", .fn = fine}};

static int load(struct neg *w, const struct image *i, size_t size)
{
	if (!w->ref)
		return neg_skip("an image of ref");
	NEG_OK(w->ref->add_kernels(hal_device_get_native(w->dev), good_kernels, 2));
	return hal_program_load(w->dev, i, size, &w->prog2);
}

NEGATIVE(hal_program_load, EINVAL, dev_null, "device|dev")
{
	struct image i = good_image();

	return hal_program_load(NULL, &i, sizeof(i), &w->prog2);
}

/* A pack of one image, of zeros, which no device takes. */
struct packed {
	struct hal_pack head;
	struct hal_pack_entry entry;
	_Alignas(HAL_PACK_ALIGN) uint8_t image[64];
};

static struct packed pack_of_others(void)
{
	return (struct packed){
		.head = {HAL_PACK_MAGIC, HAL_PACK_VERSION, sizeof(struct packed), 1,
			 sizeof(struct hal_pack_entry)},
		.entry = {"other", offsetof(struct packed, image), 64},
	};
}

NEGATIVE(hal_program_load, ENOTSUP, pack_of_others, "other")
{
	const struct packed p = pack_of_others();

	return hal_program_load(w->dev, &p, sizeof(p), &w->prog2);
}

NEGATIVE(hal_program_load, EINVAL, pack_cut, "pack")
{
	const struct packed p = pack_of_others();

	return hal_program_load(w->dev, &p, sizeof(p) - 1, &w->prog2);
}

NEGATIVE(hal_program_load, EINVAL, image_null, "image")
{
	return hal_program_load(w->dev, NULL, 100, &w->prog2);
}

NEGATIVE(hal_program_load, EINVAL, size_zero, "image|size")
{
	struct image i = good_image();

	return load(w, &i, 0);
}

NEGATIVE(hal_program_load, EINVAL, prog_null, "prog")
{
	struct image i = good_image();

	return hal_program_load(w->dev, &i, sizeof(i), NULL);
}

NEGATIVE(hal_program_load, EINVAL, truncated_head, "15 bytes")
{
	struct image i = good_image();

	return load(w, &i, 15);
}

NEGATIVE(hal_program_load, EINVAL, truncated_names, "truncated: it has 79 bytes")
{
	struct image i = good_image();

	return load(w, &i, sizeof(i) - 1);
}

NEGATIVE(hal_program_load, EINVAL, magic, "magic")
{
	struct image i = good_image();

	i.head.magic++;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, version, "version 9")
{
	struct image i = good_image();

	i.head.version = 9;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, old_version, "version 1")
{
	struct image i = good_image();

	i.head.version = 1;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, name_bytes, "name_bytes 31")
{
	struct image i = good_image();

	i.head.name_bytes--;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, no_kernels, "kernel_count")
{
	struct image i = good_image();

	i.head.kernel_count = 0;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, too_many_kernels, "4294967295 kernels")
{
	struct image i = good_image();

	i.head.kernel_count = UINT32_MAX;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, too_long, "too long")
{
	struct image i = good_image();

	i.head.kernel_count = 1;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, name_empty, "kernel 1 of the image")
{
	struct image i = good_image();

	i.names[1][0] = 0;
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, name_unterminated, "kernel 1 of the image")
{
	struct image i = good_image();

	memset(i.names[1], 'x', sizeof(i.names[1]));
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, EINVAL, name_twice, "'fine' twice")
{
	struct image i = good_image();

	memcpy(i.names[1], i.names[0], sizeof(i.names[1]));
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, ENOENT, kernel_unknown, "'gone'")
{
	struct image i = good_image();

	memcpy(i.names[1], "gone", 5);
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_load, ENOMEM, of_the_device, "injected")
{
	struct image i = good_image();

	NEG_OK(neg_inject(w, HAL_REF_OP_PROGRAM_LOAD, 1, ENOMEM));
	return load(w, &i, sizeof(i));
}

NEGATIVE(hal_program_unload, EINVAL, unloaded, "program")
{
	struct hal_program *p;

	NEG_OK(hal_ref_load(w->dev, good_kernels, 2, &p));
	NEG_OK(hal_program_unload(p));
	return hal_program_unload(p);
}

NEGATIVE(hal_program_set_name, EINVAL, prog_null, "program|prog")
{
	(void)w;
	return hal_program_set_name(NULL, "name");
}

NEGATIVE(hal_program_set_name, EINVAL, name_null, "name")
{
	return hal_program_set_name(w->prog, NULL);
}

NEGATIVE(hal_program_set_name, EINVAL, too_long, "32 characters, at most 31")
{
	NEG_OK(hal_program_set_name(w->prog, "a name of one and thirty letters" + 1));
	return hal_program_set_name(w->prog, "a name of one and thirty letters");
}

NEGATIVE(hal_program_get_info, EINVAL, prog_null, "program|prog")
{
	struct hal_program_info i = HAL_INIT(hal_program_info);

	(void)w;
	return hal_program_get_info(NULL, &i);
}

NEGATIVE(hal_program_get_info, EINVAL, info_null, "info")
{
	return hal_program_get_info(w->prog, NULL);
}

NEGATIVE(hal_program_get_info, EINVAL, size_zero, "size")
{
	struct hal_program_info i = {.size = 0};

	return hal_program_get_info(w->prog, &i);
}

NEGATIVE(hal_kernel_get, ERANGE, past_the_last, "the program has no kernel")
{
	struct hal_program_info i = HAL_INIT(hal_program_info);
	struct hal_kernel *k;

	NEG_OK(hal_program_get_info(w->prog, &i));
	NEG_OK(hal_kernel_get(w->prog, i.kernel_count - 1, &k));
	return hal_kernel_get(w->prog, i.kernel_count, &k);
}

NEGATIVE(hal_kernel_get, ERANGE, largest, "no kernel 4294967295")
{
	return hal_kernel_get(w->prog, UINT32_MAX, &w->kernel);
}

NEGATIVE(hal_kernel_get, EINVAL, prog_null, "program|prog")
{
	return hal_kernel_get(NULL, 0, &w->kernel);
}

NEGATIVE(hal_kernel_get, EINVAL, kernel_null, "kernel")
{
	return hal_kernel_get(w->prog, 0, NULL);
}

NEGATIVE(hal_kernel_find, ENOENT, no_such_name, "thrice")
{
	return hal_kernel_find(w->prog, "thrice", &w->kernel);
}

NEGATIVE(hal_kernel_find, EINVAL, prog_null, "program|prog")
{
	return hal_kernel_find(NULL, "twice", &w->kernel);
}

NEGATIVE(hal_kernel_find, EINVAL, name_null, "name")
{
	return hal_kernel_find(w->prog, NULL, &w->kernel);
}

NEGATIVE(hal_kernel_find, EINVAL, kernel_null, "kernel")
{
	return hal_kernel_find(w->prog, "twice", NULL);
}

NEGATIVE(hal_kernel_get_info, EINVAL, kernel_null, "kernel")
{
	struct hal_kernel_info i = HAL_INIT(hal_kernel_info);

	(void)w;
	return hal_kernel_get_info(NULL, &i);
}

NEGATIVE(hal_kernel_get_info, EINVAL, info_null, "info")
{
	return hal_kernel_get_info(w->kernel, NULL);
}

NEGATIVE(hal_kernel_get_info, EINVAL, size_zero, "size")
{
	struct hal_kernel_info i = {.size = 0};

	return hal_kernel_get_info(w->kernel, &i);
}

NEGATIVE(hal_kernel_get_info, EINVAL, program_gone, "kernel")
{
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct image i = good_image();
	struct hal_kernel *k;

	NEG_OK(load(w, &i, sizeof(i)));
	NEG_OK(hal_kernel_find(w->prog2, "fine", &k));
	NEG_OK(hal_program_unload(w->prog2));
	w->prog2 = NULL;
	return hal_kernel_get_info(k, &info);
}

/* ---- queue ------------------------------------------------------------------------ */

NEGATIVE(hal_queue_create, EINVAL, name_endless, "hal_queue_desc.name does not end")
{
	memset(w->queue_desc.name, 'x', sizeof(w->queue_desc.name));
	return hal_queue_create(w->part, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, name_of_two_lines, "byte 1 is 0x0a")
{
	memcpy(w->queue_desc.name, "a\nb", 4);
	return hal_queue_create(w->part, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_get_fault, EINVAL, queue_null, "queue")
{
	struct hal_fault_info f = HAL_INIT(hal_fault_info);

	(void)w;
	return hal_queue_get_fault(NULL, &f);
}

NEGATIVE(hal_queue_get_fault, EINVAL, info_null, "hal_fault_info")
{
	return hal_queue_get_fault(w->queue, NULL);
}

NEGATIVE(hal_queue_get_fault, EINVAL, size_zero, "size")
{
	struct hal_fault_info f = {.size = 0};

	return hal_queue_get_fault(w->queue, &f);
}

static int queue(struct neg *w)
{
	return hal_queue_create(w->part, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, part_null, "partition|part")
{
	return hal_queue_create(NULL, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, desc_null, "desc")
{
	return hal_queue_create(w->part, NULL, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, queue_null, "queue")
{
	return hal_queue_create(w->part, &w->queue_desc, NULL);
}

NEGATIVE(hal_queue_create, EINVAL, size_zero, "size")
{
	w->queue_desc.size = 0;
	return queue(w);
}

NEGATIVE(hal_queue_create, E2BIG, longer_tail, "hal_queue_desc")
{
	struct {
		struct hal_queue_desc d;
		uint64_t more;
	} longer = {w->queue_desc, 1};

	longer.d.size = sizeof(longer);
	return hal_queue_create(w->part, &longer.d, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, unknown_flag, "flags")
{
	w->queue_desc.flags = 1;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, class_unknown, "service_class 3")
{
	w->queue_desc.service_class = HAL_CLASS_BEST_EFFORT + 1;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, budget, "budget_permille 1001")
{
	w->queue_desc.budget_permille = 1001;
	return queue(w);
}

NEGATIVE(hal_queue_create, ENOTSUP, budget_unkept,
	 "policy priority does not enforce budgets")
{
	w->queue_desc.budget_permille = 100;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, best_effort_in_time, "deadline: deadline_ns is 7")
{
	w->queue_desc.service_class = HAL_CLASS_BEST_EFFORT;
	w->queue_desc.deadline_ns = 7;
	return queue(w);
}

/* The one by the section, the other by the call. */
NEGATIVE(hal_queue_create, EINVAL, best_effort_of_section,
	 "\"a\" is best effort by the partition's section")
{
	NEG_OK(neg_open_config(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
				  "class = best-effort\n"));
	NEG_OK(hal_partition_create_named(w->dev2, "a", &w->part2));
	w->queue_desc.deadline_ns = 7;
	return hal_queue_create(w->part2, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, deadline_of_section,
	 "deadline_ns is 7000 by the partition's section")
{
	NEG_OK(neg_open_config(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
				  "deadline_us = 7\n"));
	NEG_OK(hal_partition_create_named(w->dev2, "a", &w->part2));
	w->queue_desc.service_class = HAL_CLASS_BEST_EFFORT;
	return hal_queue_create(w->part2, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, EINVAL, no_ring, "completions")
{
	w->queue_desc.completions = (struct hal_completions *)(void *)w->line;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, destroyed_ring, "completions")
{
	NEG_OK(hal_completions_create(w->dev, 8, &w->queue_desc.completions));
	NEG_OK(hal_completions_destroy(w->queue_desc.completions));
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, ring_of_other_device, "another device")
{
	NEG_OK(hal_open("ref", NULL, &w->dev2));
	NEG_OK(hal_completions_create(w->dev2, 8, &w->ring));
	w->queue_desc.completions = w->ring;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, preempt_unknown, "min_preempt")
{
	w->queue_desc.min_preempt = HAL_PREEMPT_INSIDE + 1;
	return queue(w);
}

NEGATIVE_ON("ref?preempt=between", hal_queue_create, ENOTSUP, preempt, "between")
{
	w->queue_desc.min_preempt = HAL_PREEMPT_INSIDE;
	return queue(w);
}

NEGATIVE(hal_queue_create, EINVAL, destroyed_partition, "partition")
{
	struct hal_partition *p;

	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &p));
	NEG_OK(hal_partition_destroy(p));
	return hal_queue_create(p, &w->queue_desc, &w->queue2);
}

NEGATIVE(hal_queue_create, ENOMEM, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_QUEUE_CREATE, 1, ENOMEM));
	return queue(w);
}

NEGATIVE(hal_queue_destroy, EBUSY, running, "queue")
{
	NEG_OK(neg_make_busy(w));
	return hal_queue_destroy(w->queue);
}

NEGATIVE(hal_queue_destroy, EBUSY, waiting, "queue")
{
	NEG_OK(neg_make_gated(w));
	return hal_queue_destroy(w->queue);
}

NEGATIVE(hal_queue_destroy, EINVAL, destroyed, "queue")
{
	struct hal_queue *q;

	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &q));
	NEG_OK(hal_queue_destroy(q));
	return hal_queue_destroy(q);
}

/* One of a device whose engine has a thread, so that a thread may wait beside it. */
static int real_queue(struct neg *w, struct hal_point *p)
{
	if (w->dev2 == NULL) {
		NEG_OK(hal_open("ref?clock=real", NULL, &w->dev2));
		NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	}
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	*p = (struct hal_point){hal_queue_get_timeline(w->queue2), 1};
	return 0;
}

static int destroy_queue(struct neg *w)
{
	int err = hal_queue_destroy(w->queue2);

	w->queue2 = err == 0 ? NULL : w->queue2;
	return err;
}

static int end_queue(struct neg *w)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	NEG_OK(hal_submit(w->queue2, &d, &done));
	return neg_wait(done);
}

NEGATIVE(hal_queue_destroy, EBUSY, awaited, "a thread waits")
{
	return neg_awaited(w, real_queue, destroy_queue, end_queue);
}

NEGATIVE(hal_queue_destroy, EBUSY, awaited_by_work, "submitted work waits")
{
	NEG_OK(queue(w));
	w->points[0] = (struct hal_point){hal_queue_get_timeline(w->queue), 1};
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	NEG_OK(hal_submit(w->queue2, &w->submit, &w->busy));
	w->points[1] = w->busy;
	{
		int err = hal_queue_destroy(w->queue);

		w->submit.wait_count = 0;
		NEG_OK(hal_submit(w->queue, &w->submit, NULL));
		return err;
	}
}

NEGATIVE(hal_queue_suspend, EINVAL, queue_null, "queue")
{
	(void)w;
	return hal_queue_suspend(NULL, HAL_SUSPEND_DRAIN, NULL);
}

NEGATIVE(hal_queue_suspend, EINVAL, mode_unknown, "mode")
{
	return hal_queue_suspend(w->queue, 4, NULL);
}

NEGATIVE(hal_queue_suspend, EINVAL, flag_unknown, "mode")
{
	return hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN | 1u << 9, NULL);
}

NEGATIVE(hal_queue_suspend, ENOTSUP, no_such_mode, "fold|mode")
{
	return hal_queue_suspend(w->queue, HAL_SUSPEND_FOLD, NULL);
}

NEGATIVE_ON("ref?units=8&layers.fault=suspend:1:ENOSPC", hal_queue_suspend, ENOSPC,
	    no_room_for_state, "suspend")
{
	NEG_OK(neg_make_busy(w));
	return hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN, NULL);
}

NEGATIVE_ON("ref?preempt=between", hal_queue_suspend, ENOTSUP, no_kill, "kill|mode")
{
	return hal_queue_suspend(w->queue, HAL_SUSPEND_KILL, NULL);
}

NEGATIVE(hal_queue_suspend, ENOTSUP, not_replayable, "replay")
{
	NEG_OK(neg_make_busy(w));
	return hal_queue_suspend(w->queue, HAL_SUSPEND_KILL, NULL);
}

NEGATIVE(hal_queue_suspend, EBUSY, twice, "suspend")
{
	int err;

	NEG_OK(hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN, NULL));
	err = hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN, NULL);
	return err;
}

NEGATIVE(hal_queue_suspend, EIO, of_the_device, "injected")
{
	NEG_OK(neg_make_busy(w));
	NEG_OK(neg_inject(w, HAL_REF_OP_SUSPEND, 1, EIO));
	return hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN, NULL);
}

NEGATIVE(hal_queue_resume, EINVAL, queue_null, "queue")
{
	(void)w;
	return hal_queue_resume(NULL);
}

NEGATIVE(hal_queue_resume, EINVAL, not_suspended, "suspend")
{
	return hal_queue_resume(w->queue);
}

NEGATIVE(hal_queue_resume, ECANCELED, for_good, "only be destroyed")
{
	NEG_OK(hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL, NULL));
	return hal_queue_resume(w->queue);
}

NEGATIVE(hal_queue_get_stats, EINVAL, queue_null, "queue")
{
	return hal_queue_get_stats(NULL, &w->stats);
}

NEGATIVE(hal_queue_get_stats, EINVAL, stats_null, "stats")
{
	return hal_queue_get_stats(w->queue, NULL);
}

NEGATIVE(hal_queue_get_stats, EINVAL, size_zero, "size")
{
	w->stats.size = 0;
	return hal_queue_get_stats(w->queue, &w->stats);
}

NEGATIVE(hal_queue_get_timeline, ENOENT, queue_null, "queue")
{
	(void)w;
	return NEG_NULL(hal_queue_get_timeline(NULL));
}

/* ---- submit: the description ------------------------------------------------------ */

static int submit(struct neg *w)
{
	return hal_submit(w->queue, &w->submit, NULL);
}

static int submit_cmd(struct neg *w, struct hal_cmd cmd)
{
	w->cmd[0] = cmd;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, queue_null, "queue")
{
	return hal_submit(NULL, &w->submit, NULL);
}

NEGATIVE(hal_submit, EINVAL, desc_null, "desc")
{
	return hal_submit(w->queue, NULL, NULL);
}

NEGATIVE(hal_submit, EINVAL, size_zero, "size")
{
	w->submit.size = 0;
	return submit(w);
}

NEGATIVE(hal_submit, E2BIG, longer_tail, "hal_submit_desc")
{
	struct {
		struct hal_submit_desc d;
		uint64_t more;
	} longer = {w->submit, 1};

	longer.d.size = sizeof(longer);
	return hal_submit(w->queue, &longer.d, NULL);
}

NEGATIVE(hal_submit, EINVAL, unknown_flag, "flags")
{
	w->submit.flags = 2;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, best_effort_in_time, "is best effort")
{
	w->queue_desc.service_class = HAL_CLASS_BEST_EFFORT;
	NEG_OK(queue(w));
	w->submit.deadline_ns = 7;
	return hal_submit(w->queue2, &w->submit, NULL);
}

NEGATIVE(hal_submit, EINVAL, held_past_its_deadline, "deadline is 1000 ns from now")
{
	w->submit.not_before_ns = hal_device_get_time(w->dev) + 1000;
	w->submit.deadline_ns = 1000;
	return hal_submit(w->queue, &w->submit, NULL);
}

NEGATIVE(hal_submit, EINVAL, held_past_the_queues, "deadline is 500 ns from now")
{
	w->queue_desc.deadline_ns = 500;
	NEG_OK(queue(w));
	w->submit.not_before_ns = hal_device_get_time(w->dev) + 1000;
	return hal_submit(w->queue2, &w->submit, NULL);
}

NEGATIVE(hal_submit, EINVAL, reserved, "reserved")
{
	w->submit.reserved = 1;
	return submit(w);
}

NEGATIVE(hal_submit, E2BIG, longer_commands, "cmds[0]")
{
	struct {
		struct hal_cmd c;
		uint64_t more;
	} longer = {w->cmd[0], 1};

	w->submit.cmds = &longer.c;
	w->submit.cmd_stride = sizeof(longer);
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, stride_unaligned, "cmd_stride")
{
	w->submit.cmd_stride = sizeof(struct hal_cmd) + 4;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, cmds_null, "cmds")
{
	w->submit.cmds = NULL;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, too_many_commands, "4097")
{
	uint32_t i;

	for (i = 1; i <= HAL_COMMANDS_MAX; i++)
		w->cmd[i] = w->cmd[0];
	w->submit.cmd_count = HAL_COMMANDS_MAX + 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, count_wraps, "commands|4294967295")
{
	w->points[0] = (struct hal_point){w->line, 1};
	w->submit.waits = w->points;
	w->submit.cmd_count = UINT32_MAX;
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, stride_short, "cmd_stride")
{
	w->submit.cmd_stride = 8;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, waits_null, "waits")
{
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, signals_null, "signals")
{
	w->submit.signal_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, wait_timeline_null, "waits[0]|timeline")
{
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, signal_timeline_null, "signals[0]|timeline")
{
	w->submit.signals = w->points;
	w->submit.signal_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, wait_timeline_destroyed, "timeline")
{
	NEG_OK(hal_timeline_create(w->dev, &w->points[0].timeline));
	NEG_OK(hal_timeline_destroy(w->points[0].timeline));
	w->points[0].value = 1;
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, ENOTSUP, wait_of_other_device, "waits[0]")
{
	static const char *const journal[] = {"hal.journal=/dev/null", NULL};

	NEG_OK(hal_open(w->target, journal, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &w->line2));
	w->points[0] = (struct hal_point){w->line2, 1};
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, signals_a_queues_own, "queue|own")
{
	w->points[0] = (struct hal_point){hal_queue_get_timeline(w->queue), 100};
	w->submit.signals = w->points;
	w->submit.signal_count = 1;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, destroyed_queue, "queue")
{
	struct hal_queue *q;

	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &q));
	NEG_OK(hal_queue_destroy(q));
	return hal_submit(q, &w->submit, NULL);
}

NEGATIVE(hal_submit, EAGAIN, full, "full|room")
{
	int err = 0, i;

	NEG_OK(neg_make_gated(w));
	for (i = 0; !err && i < 100000; i++)
		err = hal_submit(w->queue, &w->submit, &w->busy);
	return err;
}

NEGATIVE(hal_submit, EAGAIN, ring_of_completions_full, "completions")
{
	NEG_OK(hal_completions_create(w->dev, 2, &w->ring));
	w->queue_desc.completions = w->ring;
	NEG_OK(queue(w));
	/* One in flight and one unread are as good as two in flight. */
	for (int i = 0; i < 2; i++) {
		NEG_OK(hal_submit(w->queue2, &w->submit, &w->busy));
		if (i == 0)
			NEG_OK(neg_wait(w->busy));
	}
	return hal_submit(w->queue2, &w->submit, NULL);
}

/* ---- submit: commands ------------------------------------------------------------- */

NEGATIVE(hal_submit, EINVAL, op_unknown, "op")
{
	return submit_cmd(w, hal_cmd_of(HAL_OP_TIMESTAMP + 1, 0));
}

NEGATIVE(hal_submit, EINVAL, cmd_flag_unknown, "flags")
{
	w->cmd[0].flags |= 0x100;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, second_command, "cmds[1]|command 1")
{
	w->cmd[1] = hal_cmd_of(99, 0);
	w->submit.cmd_count = 2;
	return submit(w);
}

NEGATIVE(hal_submit, EINVAL, copy_dst_null, "destination")
{
	return submit_cmd(w, hal_cmd_copy(NULL, 0, w->buf, 0, 4));
}

NEGATIVE(hal_submit, EINVAL, copy_src_null, "source")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, 0, NULL, 0, 4));
}

NEGATIVE(hal_submit, EINVAL, copy_dst_range, "4096")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, 4095, w->buf, 0, 2));
}

NEGATIVE(hal_submit, EINVAL, copy_src_range, "4096")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, 0, w->buf, 4090, 7));
}

NEGATIVE(hal_submit, EINVAL, copy_wraps, "4096")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, UINT64_MAX, w->buf, 0, 2));
}

NEGATIVE(hal_submit, EINVAL, copy_no_bytes, "bytes")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, 64, w->buf, 0, 0));
}

NEGATIVE(hal_submit, EINVAL, copy_overlap, "overlap")
{
	return submit_cmd(w, hal_cmd_copy(w->buf, 4, w->buf, 0, 64));
}

NEGATIVE(hal_submit, EPERM, copy_of_other_partition, "partition 1")
{
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	return submit_cmd(w, hal_cmd_copy(w->buf2, 0, w->buf, 0, 64));
}

NEGATIVE(hal_submit, EINVAL, copy_destroyed, "buffer")
{
	struct hal_buffer *b;

	NEG_OK(hal_buffer_create(w->part, &w->buffer_desc, &b));
	NEG_OK(hal_buffer_destroy(b));
	return submit_cmd(w, hal_cmd_copy(w->buf, 0, b, 0, 4));
}

NEGATIVE(hal_submit, EINVAL, fill_null, "buffer")
{
	return submit_cmd(w, hal_cmd_fill(NULL, 0, 4, 0));
}

NEGATIVE(hal_submit, EINVAL, fill_offset, "4")
{
	return submit_cmd(w, hal_cmd_fill(w->buf, 2, 4, 0));
}

NEGATIVE(hal_submit, EINVAL, fill_bytes, "4")
{
	return submit_cmd(w, hal_cmd_fill(w->buf, 0, 6, 0));
}

NEGATIVE(hal_submit, EINVAL, fill_range, "4096")
{
	return submit_cmd(w, hal_cmd_fill(w->buf, 4096, 4, 0));
}

NEGATIVE(hal_submit, EINVAL, launch_kernel_null, "kernel")
{
	return submit_cmd(w, hal_cmd_launch(NULL, w->args, 2));
}

NEGATIVE(hal_submit, EINVAL, launch_args_null, "args")
{
	return submit_cmd(w, hal_cmd_launch(w->kernel, NULL, 2));
}

NEGATIVE(hal_submit, ENOTSUP, launch_group_size, "fixed size")
{
	struct hal_cmd cmd = hal_cmd_launch(w->kernel, w->args, 2);

	cmd.launch.group_size[0] = 2;
	return submit_cmd(w, cmd);
}

NEGATIVE(hal_submit, ENOTSUP, launch_shared, "shared_bytes is 4")
{
	struct hal_cmd cmd = hal_cmd_launch(w->kernel, w->args, 2);

	cmd.launch.shared_bytes = 4;
	return submit_cmd(w, cmd);
}

NEGATIVE(hal_submit, EINVAL, launch_too_few, "2")
{
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, 1));
}

NEGATIVE(hal_submit, EINVAL, launch_too_many, "3")
{
	w->args[2] = w->args[1];
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, 3));
}

NEGATIVE(hal_submit, EINVAL, launch_far_too_many, "17")
{
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, HAL_ARGS_MAX + 1));
}

NEGATIVE(hal_submit, EINVAL, launch_arg_short, "63")
{
	w->args[1].bytes = 63;
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, 2));
}

NEGATIVE(hal_submit, EINVAL, launch_arg_range, "4096")
{
	w->args[1].offset = 4090;
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, 2));
}

NEGATIVE(hal_submit, EINVAL, launch_arg_scalar, "argument 1|args[1]")
{
	w->args[1] = (struct hal_arg){.offset = 7};
	return submit_cmd(w, hal_cmd_launch(w->kernel, w->args, 2));
}

NEGATIVE(hal_submit, EINVAL, launch_of_other_device, "device")
{
	struct hal_kernel *k;

	NEG_OK(hal_open(w->target, NULL, &w->dev2));
	NEG_OK(hal_ref_load(w->dev2, good_kernels, 2, &w->prog2));
	NEG_OK(hal_kernel_find(w->prog2, "fine", &k));
	return submit_cmd(w, hal_cmd_launch(k, NULL, 0));
}

NEGATIVE(hal_submit, EINVAL, launch_program_gone, "kernel")
{
	struct image i = good_image();
	struct hal_kernel *k;

	NEG_OK(load(w, &i, sizeof(i)));
	NEG_OK(hal_kernel_find(w->prog2, "fine", &k));
	NEG_OK(hal_program_unload(w->prog2));
	w->prog2 = NULL;
	return submit_cmd(w, hal_cmd_launch(k, NULL, 0));
}

NEGATIVE(hal_submit, EINVAL, host_null, "fn")
{
	return submit_cmd(w, hal_cmd_host(NULL, NULL));
}

NEGATIVE(hal_submit, EINVAL, timestamp_null, "buffer")
{
	return submit_cmd(w, hal_cmd_timestamp(NULL, 0));
}

NEGATIVE(hal_submit, EINVAL, timestamp_offset, "8")
{
	return submit_cmd(w, hal_cmd_timestamp(w->buf, 4));
}

NEGATIVE(hal_submit, EINVAL, timestamp_range, "4096")
{
	return submit_cmd(w, hal_cmd_timestamp(w->buf, 4096));
}

/* ---- what fails later: the error sticks and has a text ---------------------------- */

/* The point of what was submitted, waited for. */
static int failed(struct neg *w, struct hal_cmd cmd)
{
	struct hal_point done;

	w->cmd[0] = cmd;
	NEG_OK(hal_submit(w->queue, &w->submit, &done));
	return neg_wait(done);
}

NEGATIVE(hal_wait, EIO, kernel_faults, "kernel bad")
{
	return failed(w, hal_cmd_launch(w->bad, w->args, 1));
}

NEGATIVE(hal_wait, EIO, injected_fault, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_EXECUTE, 1, EIO));
	return failed(w, w->cmd[0]);
}

NEGATIVE(hal_wait, EIO, refused_by_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_SUBMIT, 1, EIO));
	return failed(w, w->cmd[0]);
}

NEGATIVE(hal_submit, EIO, sticks, "kernel bad")
{
	struct hal_point later;
	int err;

	(void)failed(w, hal_cmd_launch(w->bad, w->args, 1));
	w->cmd[0] = hal_cmd_fill(w->buf, 0, 64, 2);
	err = hal_submit(w->queue, &w->submit, &later);
	return err ? err : neg_wait(later);
}

/* ---- timelines -------------------------------------------------------------------- */

NEGATIVE(hal_timeline_create, EINVAL, dev_null, "device|dev")
{
	return hal_timeline_create(NULL, &w->line2);
}

NEGATIVE(hal_timeline_create, EINVAL, timeline_null, "timeline")
{
	return hal_timeline_create(w->dev, NULL);
}

NEGATIVE(hal_timeline_destroy, EBUSY, waited_for, "wait|signal|work")
{
	NEG_OK(neg_make_gated(w));
	return hal_timeline_destroy(w->line);
}

NEGATIVE(hal_timeline_destroy, EBUSY, to_be_signalled, "wait|signal|work")
{
	NEG_OK(hal_timeline_create(w->dev, &w->line2));
	w->points[0] = (struct hal_point){w->line, 1};
	w->points[1] = (struct hal_point){w->line2, 1};
	w->submit.waits = &w->points[0];
	w->submit.wait_count = 1;
	w->submit.signals = &w->points[1];
	w->submit.signal_count = 1;
	NEG_OK(hal_submit(w->queue, &w->submit, &w->busy));
	return hal_timeline_destroy(w->line2);
}

static int real_timeline(struct neg *w, struct hal_point *p)
{
	if (w->dev2 == NULL)
		NEG_OK(hal_open("ref?clock=real", NULL, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &w->line2));
	*p = (struct hal_point){w->line2, 1};
	return 0;
}

static int destroy_timeline(struct neg *w)
{
	int err = hal_timeline_destroy(w->line2);

	w->line2 = err == 0 ? NULL : w->line2;
	return err;
}

static int end_timeline(struct neg *w)
{
	return hal_timeline_signal(w->line2, 1);
}

NEGATIVE(hal_timeline_destroy, EBUSY, awaited, "threads (1) wait")
{
	return neg_awaited(w, real_timeline, destroy_timeline, end_timeline);
}

NEGATIVE(hal_timeline_destroy, EINVAL, destroyed, "timeline")
{
	struct hal_timeline *t;

	NEG_OK(hal_timeline_create(w->dev, &t));
	NEG_OK(hal_timeline_destroy(t));
	return hal_timeline_destroy(t);
}

NEGATIVE(hal_timeline_destroy, EINVAL, a_queues_own, "queue")
{
	return hal_timeline_destroy(hal_queue_get_timeline(w->queue));
}

NEGATIVE(hal_timeline_signal, EINVAL, timeline_null, "timeline")
{
	(void)w;
	return hal_timeline_signal(NULL, 1);
}

NEGATIVE(hal_timeline_signal, EINVAL, downwards, "5")
{
	NEG_OK(hal_timeline_signal(w->line, 5));
	return hal_timeline_signal(w->line, 4);
}

NEGATIVE(hal_timeline_signal, EINVAL, the_same, "5")
{
	NEG_OK(hal_timeline_signal(w->line, 5));
	return hal_timeline_signal(w->line, 5);
}

NEGATIVE(hal_timeline_signal, EINVAL, a_queues_own, "queue")
{
	return hal_timeline_signal(hal_queue_get_timeline(w->queue), 5);
}

NEGATIVE(hal_wait, EINVAL, points_null, "points")
{
	(void)w;
	return hal_wait(NULL, 1, 0, 0);
}

NEGATIVE(hal_wait, EINVAL, unknown_flag, "flags")
{
	w->points[0] = (struct hal_point){w->line, 0};
	return hal_wait(w->points, 1, 4, 0);
}

NEGATIVE(hal_wait, EINVAL, timeline_null, "timeline|points[0]")
{
	return hal_wait(w->points, 1, 0, 0);
}

NEGATIVE(hal_wait, EINVAL, any_of_none, "no points")
{
	return hal_wait(w->points, 0, HAL_WAIT_ANY, 0);
}

NEGATIVE(hal_wait, ETIMEDOUT, polled, "timeline|reached")
{
	w->points[0] = (struct hal_point){w->line, 1};
	return hal_wait(w->points, 1, 0, 0);
}

NEGATIVE(hal_wait, ETIMEDOUT, until_passed, "time is up")
{
	NEG_OK(neg_make_busy(w));
	return hal_wait(&w->busy, 1, 0, 1);
}

NEGATIVE_ON("ref?clock=real", hal_wait, ETIMEDOUT, real_clock, "timeline|reached")
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	w->points[0] = (struct hal_point){w->line, 1};
	return hal_wait(w->points, 1, 0,
			(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + 1000000);
}

NEGATIVE(hal_wait, EINVAL, until_negative, "until_ns -")
{
	w->points[0] = (struct hal_point){w->line, 1};
	return hal_wait(w->points, 1, 0, -1);
}

NEGATIVE(hal_wait, EINVAL, destroyed, "timeline")
{
	struct hal_point p = {NULL, 1};

	NEG_OK(hal_timeline_create(w->dev, &p.timeline));
	NEG_OK(hal_timeline_destroy(p.timeline));
	return hal_wait(&p, 1, 0, HAL_FOREVER);
}

/* Nothing is left to do, but the time passes. */
NEGATIVE(hal_wait, ETIMEDOUT, device_time, "time is up")
{
	int64_t until = (int64_t)hal_device_get_time(w->dev) + 1000;

	w->points[0] = (struct hal_point){w->line, 1};
	return hal_wait(w->points, 1, HAL_WAIT_DEVICE_TIME, until);
}

NEGATIVE_ON("ref?clock=real", hal_wait, ETIMEDOUT, real_device_time, "time is up")
{
	int64_t until = (int64_t)hal_device_get_time(w->dev) + 1000000;

	w->points[0] = (struct hal_point){w->line, 1};
	return hal_wait(w->points, 1, HAL_WAIT_DEVICE_TIME, until);
}

NEGATIVE(hal_wait, EDEADLK, nothing_left, "timeline|reach")
{
	w->points[0] = (struct hal_point){w->line, 1};
	return neg_wait(w->points[0]);
}

NEGATIVE(hal_wait, EDEADLK, two_wait_for_each_other, "timeline|reach")
{
	struct hal_point mine = {w->line, 1}, theirs = {NULL, 1};
	int err;

	NEG_OK(hal_timeline_create(w->dev, &w->line2));
	NEG_OK(queue(w));
	theirs.timeline = w->line2;
	w->submit.wait_count = w->submit.signal_count = 1;
	w->submit.waits = &theirs;
	w->submit.signals = &mine;
	NEG_OK(hal_submit(w->queue, &w->submit, &w->busy));
	w->submit.waits = &mine;
	w->submit.signals = &theirs;
	NEG_OK(hal_submit(w->queue2, &w->submit, NULL));
	err = neg_wait(w->busy);
	/* The runner signals line, which ends queue2's; let that end queue's as well. */
	return err;
}

NEGATIVE(hal_point_open_fd, EINVAL, point_null, "point")
{
	(void)w;
	return hal_point_open_fd(NULL);
}

NEGATIVE(hal_point_open_fd, ENOTSUP, virtual_clock, "clock=real")
{
	struct hal_point p = {NULL, 1};
	int err;

	NEG_OK(hal_open("ref?clock=virtual", NULL, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &p.timeline));
	err = hal_point_open_fd(&p);
	(void)hal_timeline_destroy(p.timeline);
	return err;
}

NEGATIVE(hal_point_open_fd, EINVAL, timeline_null, "timeline")
{
	return hal_point_open_fd(&w->points[0]);
}

/* Handles of nothing: answered, not followed. */
NEGATIVE(hal_timeline_get_value, EINVAL, timeline_null, "timeline")
{
	int err = 0;

	(void)w;
	hal_timeline_get_value(NULL, &err);
	return err;
}

/* A host callback must not wait for the engine it runs on. */
static int *callback_err;
static struct neg *callback_world;

static void waits_inside(void *user)
{
	struct hal_point p = {callback_world->line, 1};

	(void)user;
	*callback_err = hal_wait(&p, 1, 0, HAL_FOREVER);
}

NEGATIVE(hal_wait, EDEADLK, in_a_callback, "callback")
{
	struct hal_point done;
	int err = 0;

	callback_err = &err;
	callback_world = w;
	w->cmd[0] = hal_cmd_host(waits_inside, NULL);
	NEG_OK(hal_submit(w->queue, &w->submit, &done));
	NEG_OK(neg_wait(done));
	return err;
}
