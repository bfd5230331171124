/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planted.c - `ref` with an error: what the simulation has to find, and to shrink.
 *
 * A plugin, whose option plant says which error it has.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hal/backend.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT const struct hal_backend *hal_backend_entry(const struct hal_host *host);
const struct hal_backend *hal_backend_ref(const struct hal_host *host);

enum plant {
	PLANT_NONE,
	PLANT_TWICE, /* every fifth launch runs twice */
	PLANT_LOSES, /* every fifth launch is said to have run, and has not */
	PLANT_STAYS, /* a partition that is moved stays where it is */
	PLANT_LATE,  /* KILL lets go when the command has ended, not at once */
	PLANT_BLANK, /* every fifth buffer that comes back from the host is empty */
	PLANT_KEEPS, /* an evicted buffer stays where it is */
	PLANT_SLOW,  /* FOLD lets go when the command has ended, not inside it */
	PLANT_TELLS, /* that FOLD is quicker than it is */
};

enum { EVERY = 5, PENDING = 64 };

static const struct hal_host *services;
static struct hal_backend planted, ref;
static struct hal_option_def *options;

/* Of the one device. */
static enum plant plant;
static uint64_t launches;
static struct hal_bk_cmd again[PENDING];
static struct hal_bk_event due[PENDING];
static uint32_t due_count;
static const void *came; /* back, and is written next */
static uint64_t comes;

static int dev_open(const struct hal_bk_config *cfg, uint32_t index, void **dev)
{
	plant = (enum plant)services->option_int(cfg, "plant");
	launches = 0;
	due_count = 0;
	came = NULL;
	comes = 0;
	return ref.cold.open(cfg, index, dev);
}

static int dev_get_info(void *dev, struct hal_device_info *info)
{
	int err = ref.cold.get_info(dev, info);

	if (err == 0 && plant == PLANT_TELLS)
		info->suspend_worst_ns[HAL_SUSPEND_FOLD] /= 2;
	return err;
}

static int dev_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	if ((plant == PLANT_LATE && mode == HAL_SUSPEND_KILL) ||
	    (plant == PLANT_SLOW && mode == HAL_SUSPEND_FOLD))
		mode = HAL_SUSPEND_DRAIN;
	return ref.hot.suspend(dev, queue, mode, cookie);
}

static int dev_mem_out(void *dev, void *mem)
{
	return plant == PLANT_KEEPS ? 0 : ref.extra.mem_out(dev, mem);
}

static int dev_mem_in(void *dev, void *mem, const struct hal_bk_colors *colors)
{
	came = ++comes % EVERY == 0 ? mem : NULL;
	return plant == PLANT_KEEPS ? 0 : ref.extra.mem_in(dev, mem, colors);
}

static int dev_mem_write(void *dev, void *mem, uint64_t offset, const void *data,
			 uint64_t bytes)
{
	if (plant == PLANT_BLANK && mem == came) {
		came = NULL;
		return 0;
	}
	return ref.cold.mem_write(dev, mem, offset, data, bytes);
}

static void later(void *dev, uint32_t kind, uint64_t cookie)
{
	due[due_count++] = (struct hal_bk_event){.kind = kind,
						 .cookie = cookie,
						 .start_ns = ref.hot.now(dev),
						 .end_ns = ref.hot.now(dev)};
}

static int dev_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	bool fifth = cmd->op == HAL_OP_LAUNCH && ++launches % EVERY == 0;
	struct hal_bk_cmd *copy = &again[launches % PENDING];
	int err;

	if (fifth && plant == PLANT_LOSES && due_count < PENDING) {
		later(dev, HAL_BK_DONE, cmd->cookie);
		return 0;
	}
	err = ref.hot.submit(dev, queue, cmd);
	if (err != 0 || !fifth || plant != PLANT_TWICE)
		return err;
	*copy = *cmd;
	copy->cookie = 0; /* nobody is told */
	(void)ref.hot.submit(dev, queue, copy);
	return 0;
}

/* Without those of which nobody is to know. */
static int told(struct hal_bk_event *ev, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (ev[i].cookie != 0)
			ev[kept++] = ev[i];
	return kept;
}

static int dev_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	int n, kept;

	if (due_count > 0) {
		n = due_count < max ? (int)due_count : (int)max;
		memcpy(ev, due, (size_t)n * sizeof(*ev));
		due_count -= (uint32_t)n;
		memmove(due, due + n, due_count * sizeof(*due));
		return n;
	}
	do {
		n = ref.hot.poll(dev, until_ns, ev, max);
		kept = told(ev, n);
	} while (n > 0 && kept == 0);
	return n > 0 ? kept : n;
}

static int dev_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		      uint64_t cookie)
{
	if (plant != PLANT_STAYS || due_count == PENDING)
		return ref.hot.resize(dev, part, desc, cookie);
	later(dev, HAL_BK_QUIET, cookie);
	return 0;
}

const struct hal_backend *hal_backend_entry(const struct hal_host *host)
{
	const struct hal_backend *b = hal_backend_ref(host);

	services = host;
	if (b == NULL)
		return NULL;
	options = calloc(b->option_count + 1, sizeof(*options));
	if (options == NULL)
		return NULL;
	memcpy(options, b->options, b->option_count * sizeof(*options));
	options[b->option_count] = (struct hal_option_def){
		.key = "plant",
		.type = HAL_OPTION_ENUM,
		.choices = "none|twice|loses|stays|late|blank|keeps|slow|tells",
		.def = "none",
		.help = "what it does wrong",
	};
	ref = *b;
	planted = ref;
	planted.name = "planted";
	planted.score = -100;
	planted.options = options;
	planted.option_count = ref.option_count + 1;
	planted.cold.open = dev_open;
	planted.cold.get_info = dev_get_info;
	planted.extra.mem_out = dev_mem_out;
	planted.extra.mem_in = dev_mem_in;
	planted.cold.mem_write = dev_mem_write;
	planted.hot.suspend = dev_suspend;
	planted.hot.submit = dev_submit;
	planted.hot.poll = dev_poll;
	planted.hot.resize = dev_resize;
	return &planted;
}
