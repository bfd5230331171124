/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_slots LOAD...: loads of halbench on the stand-in for XRT, their tasks dealt out
 * over six bitstreams, under slots and fifo: reconfigurations in 1,000 requests, and
 * deadlines missed.  A request is one run, as long as its network takes on the units it
 * can use; a deadline is that and a load, times the number of tasks, as halbench has its
 * SLO.  Fails when slots has more than half of the reconfigurations, or misses more.
 *
 * It is halbench's runner with a service of its own: service_open is what run.c calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "run.h"
#include "service.h"
#include "tool.h"

enum { BITSTREAMS = 6, FILE_KIB = 2000 };

/* One kernel on four slots; bitstreams differ in their size. */
static void describe(char text[512], unsigned int which)
{
	snprintf(text, 512,
		 "platform hal_stand_in_1\nbitstream %uK\nbank DDR[0] ddr4 0x0 64M\n"
		 "kernel work 4\narg d memory 4 0\narg ns ulong\n",
		 FILE_KIB + which);
}

/* ---- a task's requests ---------------------------------------------------------------- */

static struct hal_buffer *buffers[LOAD_TASKS_MAX];
static uint32_t opened;

static uint64_t request_ns(const struct model *m)
{
	double us = 0;

	for (uint32_t i = 0; i < m->step_count; i++)
		us += m->steps[i].launches * m->steps[i].unit_us / m->steps[i].units;
	return (uint64_t)llround(us * 1e3);
}

/* Here each is a bitstream. */
bool service_runs(struct hal_device *dev, const struct model *m)
{
	(void)dev, (void)m;
	return true;
}

int service_open(struct service *s, struct hal_device *dev, struct hal_partition *part,
		 const struct hal_queue_desc *queue, const struct model *m)
{
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	static struct hal_arg args[LOAD_TASKS_MAX][2];
	struct hal_kernel *kernel;
	char text[512];
	size_t size;
	void *image;

	memset(s, 0, sizeof(*s));
	b.bytes = 4096;
	describe(text, opened % BITSTREAMS);
	image = make_image(text, &size);
	s->cmds = calloc(1, sizeof(*s->cmds));
	if (s->cmds == NULL || hal_queue_create(part, queue, &s->queue) != 0 ||
	    hal_program_load(dev, image, size, &s->program) != 0 ||
	    hal_kernel_find(s->program, "work", &kernel) != 0 ||
	    hal_buffer_create(part, &b, &buffers[opened]) != 0)
		return tool_fail_hal();
	free(image);
	s->work = request_ns(m);
	args[opened][0] = (struct hal_arg){.buffer = buffers[opened], .bytes = 4};
	args[opened][1] = (struct hal_arg){.offset = s->work};
	s->cmds[0] = hal_cmd_launch(kernel, args[opened], 2);
	s->cmd_count = 1;
	opened++;
	return 0;
}

int service_close(struct service *s)
{
	int err = 0;

	free(s->cmds);
	if (s->queue != NULL)
		err |= hal_queue_destroy(s->queue);
	if (s->program != NULL)
		err |= hal_program_unload(s->program);
	if (opened != 0)
		err |= hal_buffer_destroy(buffers[--opened]);
	memset(s, 0, sizeof(*s));
	return err;
}

/* ---- loads ------------------------------------------------------------------------------ */

struct sum {
	uint64_t requests, critical, loads, misses;
};

static int run_one(const struct setup *s, const char *policy, struct sum *sum)
{
	struct policy_spec spec = {.text = policy, .layout = LAYOUT_SHARED};
	struct sum before = *sum;
	uint64_t slo_ns[LOAD_TASKS_MAX];
	const char *misuse = "";
	struct run r;

	snprintf(spec.name, sizeof(spec.name), "%s", policy);
	stand_in()->reset();
	for (uint32_t i = 0; i < s->load->count; i++) {
		const struct model *m = models_find(s->models, s->load->tasks[i].model);

		if (m == NULL)
			return tool_fail("%s: no network %s", s->load->name,
					 s->load->tasks[i].model);
		/* A file takes 1 ms and a microsecond for each 400 bytes. */
		slo_ns[i] =
			(request_ns(m) + 1000000 + FILE_KIB * UINT64_C(1024000) / 400) *
			s->load->count;
	}
	if (run_load(s, &spec, RUN_ALL, NULL, slo_ns, NULL, &r) != 0)
		return TOOL_FAILED;
	for (uint32_t i = 0; i < s->load->count; i++) {
		sum->requests += r.tasks[i].count;
		for (uint32_t k = 0; s->load->tasks[i].critical && k < r.tasks[i].count;
		     k++) {
			const struct request *q = &r.tasks[i].requests[k];

			sum->critical++;
			sum->misses += q->end_ns - q->arrive_ns > slo_ns[i];
		}
	}
	/* The one that the card is opened with is none. */
	sum->loads += stand_in()->calls("xrtDeviceLoadXclbin") - 1;
	printf("%s, %s: %" PRIu64 " reconfigurations, %" PRIu64 " requests, %" PRIu64
	       " of %" PRIu64 " deadlines missed, %.1f s\n",
	       s->load->name, policy, sum->loads - before.loads,
	       sum->requests - before.requests, sum->misses - before.misses,
	       sum->critical - before.critical, (double)r.end_ns / 1e9);
	if (r.policy.stalls + r.policy.invalid + r.policy.starved + r.policy.fallback !=
	    0)
		return tool_fail("%s: the policy answered wrongly", s->load->name);
	run_free(s, &r);
	return stand_in()->misuse(&misuse) ? tool_fail("misused: %s", misuse) : 0;
}

static double share(const struct sum *s)
{
	return (double)s->loads * 1000 / (double)s->requests;
}

int main(int argc, char **argv)
{
	const char *const options[] = {NULL};
	struct sum slots = {0}, fifo = {0};
	struct models models = {0};
	char target[160], text[512], why[JSON_WHY];
	struct setup s = {.models = &models,
			  .target = target,
			  .options = options,
			  .clock = {.rate = 1, .scale = 1, .seed = 1}};
	int rc = 0;

	describe(text, 0);
	snprintf(target, sizeof(target), "fpga:0?clock=virtual&xclbin=%s",
		 make_file(text));
	if (models_own(&models, why) != 0)
		return tool_fail("%s", why);
	for (int i = 1; rc == 0 && i < argc; i++) {
		struct load load;

		if (load_read(argv[i], &load, why) != 0)
			return tool_fail("%s", why);
		s.load = &load;
		s.clock.window_s = fmin(load.seconds, 5);
		rc = run_one(&s, "fifo", &fifo);
		if (rc == 0)
			rc = run_one(&s, "slots", &slots);
		load_free(&load);
	}
	models_free(&models);
	if (rc != 0 || slots.requests == 0)
		return rc != 0 ? rc : tool_fail("no loads");
	printf("figure fpga.reconfig.share.slots %.1f\n", share(&slots));
	printf("figure fpga.reconfig.share.fcfs %.1f\n", share(&fifo));
	printf("figure fpga.reconfig.misses.slots %.4f\n",
	       (double)slots.misses / (double)slots.critical);
	printf("figure fpga.reconfig.misses.fcfs %.4f\n",
	       (double)fifo.misses / (double)fifo.critical);
	if (share(&slots) * 2 > share(&fifo) ||
	    slots.misses * fifo.critical > fifo.misses * slots.critical)
		return tool_fail("slots loads more than half as often, or misses more");
	return 0;
}
