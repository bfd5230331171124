/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - tenants on a software device that somebody looks at: the same each time. */
#ifndef TESTS_MONITOR_WORK_H
#define TESTS_MONITOR_WORK_H

#include <hal/ref.h>

enum { WORK_QUEUES = 4, WORK_ROUNDS = 25 };

/* "video" has 8 of the 16 units and two queues, one of a class each; "batch" may have 2
 * to 8 and two queues. */
struct work {
	struct hal_device *dev;
	struct hal_partition *part[2];
	struct hal_queue *queue[WORK_QUEUES];
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_point last[WORK_QUEUES];
};

static int work_step(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel work_kernels[] = {
	{.name = "step", .fn = work_step, .work = 80000}};

/* 0, or the first error. */
static inline int work_open(struct work *w, const char *target,
			    const char *const *options)
{
	static const struct hal_partition_desc parts[2] = {
		{.size = sizeof(parts[0]), .units_floor = 8, .name = "video"},
		{.size = sizeof(parts[0]),
		 .units_floor = 2,
		 .units_ceiling = 8,
		 .name = "batch"},
	};
	static const struct hal_queue_desc queues[WORK_QUEUES] = {
		{.size = sizeof(queues[0]),
		 .priority = 3,
		 .deadline_ns = 1000000,
		 .service_class = HAL_CLASS_LATENCY,
		 .name = "decode"},
		{.size = sizeof(queues[0]), .service_class = HAL_CLASS_BEST_EFFORT},
		{.size = sizeof(queues[0]), .deadline_ns = 1000},
		{.size = sizeof(queues[0])},
	};
	int err = hal_open(target, options, &w->dev);

	if (err == 0)
		err = hal_ref_load(w->dev, work_kernels, 1, &w->program);
	if (err == 0)
		err = hal_kernel_find(w->program, "step", &w->kernel);
	for (int i = 0; err == 0 && i < 2; i++)
		err = hal_partition_create(w->dev, &parts[i], &w->part[i]);
	for (int i = 0; err == 0 && i < WORK_QUEUES; i++)
		err = hal_queue_create(w->part[i / 2], &queues[i], &w->queue[i]);
	return err;
}

/* Each queue has work of its own length: 10 us on 8 units, a launch.  The
 * latency-critical one comes when the others are at it. */
static inline int work_round(struct work *w)
{
	struct hal_cmd cmds[4];
	int err = 0;

	for (int i = WORK_QUEUES - 1; err == 0 && i >= 0; i--) {
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

		for (int k = 0; k <= i; k++)
			cmds[k] = hal_cmd_launch(w->kernel, NULL, 0);
		d.cmds = cmds;
		d.cmd_count = (uint32_t)i + 1;
		if (i == 0)
			(void)hal_device_poll(w->dev, 15000);
		err = hal_submit(w->queue[i], &d, &w->last[i]);
	}
	return err != 0 ? err : hal_wait(w->last, WORK_QUEUES, 0, HAL_FOREVER);
}

static inline int work_close(struct work *w)
{
	int err = 0;

	for (int i = 0; i < WORK_QUEUES; i++)
		err |= hal_queue_destroy(w->queue[i]);
	for (int i = 0; i < 2; i++)
		err |= hal_partition_destroy(w->part[i]);
	err |= hal_program_unload(w->program);
	return err | hal_close(w->dev);
}

#endif
