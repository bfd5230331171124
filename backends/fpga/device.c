/* SPDX-License-Identifier: Apache-2.0 */
/* The card: options, probe, open, its clock, what it says of itself. */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DRIVER_FOLDER "/sys/bus/pci/drivers/xocl"
#define FILE_MAX      (INT64_C(1) << 30)

const struct hal_host *fp_host;

static const struct hal_option_def options[] = {
	{"library", HAL_OPTION_STRING, 0, 0, NULL, "libxrt_coreutil.so.2",
	 "file of the XRT library; a process can use only one"},
	{"xclbin", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "xclbin file that is on the card at open; it defines the slots and banks"},
	{"cards", HAL_OPTION_STRING, 0, 0, NULL, DRIVER_FOLDER,
	 "folder in which the kernel driver lists its cards"},
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "real",
	 "real: time is the host's clock; virtual: time is stepped, which only a fake "
	 "XRT supports"},
	{"inflight", HAL_OPTION_INT, 1, FP_INFLIGHT_MAX, NULL, "2",
	 "commands of one queue that the device may have at a time; hal.inflight and "
	 "hal.partition_inflight may lower it"},
	{"hang_ms", HAL_OPTION_INT, 0, 3600000, NULL, "0",
	 "time after which a run that has not ended is given up and its slot reopened; "
	 "0: never"},
};

static struct fp_options read_options(const struct hal_bk_config *cfg)
{
	struct fp_options o = {.library = "libxrt_coreutil.so.2",
			       .xclbin = "",
			       .cards = DRIVER_FOLDER,
			       .inflight = 2};

	if (cfg) {
		o.library = fp_host->option_str(cfg, "library");
		o.xclbin = fp_host->option_str(cfg, "xclbin");
		o.cards = fp_host->option_str(cfg, "cards");
		o.virtual_clock = fp_host->option_int(cfg, "clock") == 1;
		o.inflight = (uint32_t)fp_host->option_int(cfg, "inflight");
		o.hang_ns = (uint64_t)fp_host->option_int(cfg, "hang_ms") * 1000000;
	}
	return o;
}

/* ---- what there is ----------------------------------------------------------------- */

/* 0000:3b:00.1 */
static int is_card(const struct dirent *e)
{
	return fnmatch("*:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-9a-f]", e->d_name, 0) == 0;
}

/* XRT's C interface counts no cards, and opening one that is not there prints: they are
 * those of the kernel's driver, in XRT's order.  Their addresses go to ids. */
static int count_cards(const struct fp_options *o, bool *emulated, char ids[][32])
{
	struct dirent **found = NULL;
	int count, i, err;

	err = fp_load(o->library);
	if (!err)
		err = fp_check_environment(emulated);
	if (err)
		return err;
	if (xrt.cards)
		count = (int)xrt.cards();
	else if (*emulated)
		count = 1;
	else
		count = scandir(o->cards, &found, is_card, versionsort);
	if (count < 0)
		return fp_host->fail(ENODEV, "fpga: no driver: %s: %s", o->cards,
				     strerrorname_np(errno));
	for (i = 0; i < count; i++) {
		if (i < FP_CARDS_MAX && found)
			snprintf(ids[i], sizeof(ids[i]), "%.31s", found[i]->d_name);
		else if (i < FP_CARDS_MAX)
			snprintf(ids[i], sizeof(ids[i]), "%s",
				 *emulated ? "" : "stand-in");
		if (found)
			free(found[i]);
	}
	free(found);
	if (!count)
		return fp_host->fail(ENODEV, "fpga: the driver reports no card");
	return count < FP_CARDS_MAX ? count : FP_CARDS_MAX;
}

/* ---- what it says of itself -------------------------------------------------------- */

static void say_name(char to[64], bool stand_in, bool emulated, const char *platform)
{
	snprintf(to, 64, "%s%.36s",
		 stand_in   ? "HAL stand-in, "
		 : emulated ? "XRT's own no-op device, "
			    : "",
		 platform);
}

/*
 * A slot is hardware of its own.  A kernel reaches all of the banks that it is connected
 * to, whoever's buffers are in them.
 */
static void describe(const struct fp_options *o, const struct fp_xclbin *x, bool emulated,
		     struct hal_device_info *info)
{
	uint32_t i;

	info->kind = HAL_KIND_FPGA;
	snprintf(info->backend, sizeof(info->backend), "fpga");
	info->unit_rows = 1;
	info->unit_cols = info->partitions_max = x ? x->slot_count : 1;
	info->colors = x ? x->bank_count : 0;
	info->granule_bytes = info->colors ? FP_PAGE : 0;
	info->page_bytes = FP_PAGE;
	info->memory_bytes = 0;
	for (i = 0; x && i < x->bank_count; i++)
		info->memory_bytes += x->banks[i].bytes;
	info->memory_free = info->memory_bytes;
	info->compute_isolation = HAL_ISOLATION_ENFORCED;
	info->memory_isolation = HAL_ISOLATION_ADVISORY;
	info->preempt = HAL_PREEMPT_BETWEEN;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN;
	info->clock_hz = 1000000000;
	info->caps = HAL_CAP_TIMESTAMP | HAL_CAP_FAULT_CONTAINED | HAL_CAP_HOST_COPY |
		     HAL_CAP_HOST_REGISTER;
	info->caps |= info->colors ? HAL_CAP_COLORED_MEMORY | HAL_CAP_RECOLOR : 0;
	info->caps |= fp_can_share(emulated) ? HAL_CAP_EXPORT | HAL_CAP_IMPORT : 0;
	info->caps |= xrt.drive ? HAL_CAP_STAND_IN : 0;
	info->caps |= o->virtual_clock ? HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_SIMULATED : 0;
}

static int fp_get_info(void *device, struct hal_device_info *info)
{
	const struct fp_device *dev = device;
	uint32_t i;

	describe(&dev->opt, &dev->base->x, dev->emulated, info);
	snprintf(info->name, sizeof(info->name), "%.63s", dev->name);
	snprintf(info->bus_id, sizeof(info->bus_id), "%.31s", dev->bus_id);
	for (i = 0; i < dev->base->x.bank_count; i++)
		info->memory_free -= atomic_load(&dev->bank_used[i]);
	if (dev->folds) {
		info->preempt = HAL_PREEMPT_INSIDE;
		info->suspend_modes |= 1u << HAL_SUSPEND_FOLD;
	}
	info->loads = dev->loads;
	info->load_ns = dev->loads ? dev->loading_ns / dev->loads : 0;
	return 0;
}

static int fp_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		    uint32_t max)
{
	const struct fp_options o = read_options(cfg);
	char ids[FP_CARDS_MAX][32];
	bool emulated;
	int i, count = count_cards(&o, &emulated, ids);

	for (i = 0; i < count && (uint32_t)i < max; i++) {
		describe(&o, NULL, emulated, &out[i]);
		say_name(out[i].name, xrt.drive != NULL, emulated,
			 "slots and banks are the xclbin's");
		memcpy(out[i].bus_id, ids[i], sizeof(ids[i]));
	}
	return count;
}

/* ---- clock ------------------------------------------------------------------------- */

uint64_t fp_now(void *device)
{
	const struct fp_device *dev = device;
	struct timespec ts;

	if (dev->opt.virtual_clock)
		return atomic_load(&dev->last_ns);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_nsec + (uint64_t)ts.tv_sec * 1000000000u - dev->zero_ns;
}

/* Several threads may have asked: it never goes back. */
void fp_raise(struct fp_device *dev, uint64_t now)
{
	unsigned long long last = atomic_load(&dev->last_ns);

	while (last < now - dev->zero_ns &&
	       !atomic_compare_exchange_weak(&dev->last_ns, &last, now - dev->zero_ns))
		;
}

/* Virtual time: a call that waited has let it go by. */
void fp_catch_up(struct fp_device *dev)
{
	uint64_t now;
	uint32_t idle;

	if (!dev->opt.virtual_clock)
		return;
	xrt.advance(0, &now, &idle);
	fp_raise(dev, now);
}

static int set_clock(struct fp_device *dev)
{
	uint64_t now = 0;
	uint32_t idle;

	if (dev->opt.virtual_clock && !xrt.drive)
		return fp_host->fail(ENOTSUP,
				     "fpga:%u: clock=virtual needs a fake XRT, whose "
				     "time can be stepped",
				     dev->index);
	if (dev->opt.virtual_clock) {
		xrt.drive(1);
		xrt.advance(0, &now, &idle);
	} else {
		now = fp_now(dev);
	}
	dev->zero_ns = now;
	return 0;
}

/* The text of a card that is lost; -EIO. */
int fp_gone(struct fp_device *dev)
{
	return fp_host->fail(EIO, "fpga:%u: the card is lost: XRT answers ENODEV",
			     dev->index);
}

/* ---- open and close ---------------------------------------------------------------- */

static int read_file(const char *path, void **to, size_t *size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {0};
	ssize_t n = -1;
	int err = 0;

	*to = NULL;
	if (fd < 0)
		return fp_host->fail(errno, "fpga: xclbin=%s: %s", path,
				     strerrorname_np(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		err = fp_host->fail(
			EINVAL, "fpga: xclbin=%s: not a regular file of at most 1 GiB",
			path);
	*size = (size_t)st.st_size;
	if (!err)
		*to = malloc(*size + 1);
	if (*to)
		n = read(fd, *to, *size);
	close(fd);
	if (!err && !*to)
		err = fp_host->fail(ENOMEM, "fpga: xclbin=%s: no memory to read the file",
				    path);
	else if (!err && (size_t)n != *size)
		err = fp_host->fail(EIO, "fpga: xclbin=%s: the file cannot be read",
				    path);
	if (err) {
		free(*to);
		*to = NULL;
	}
	return err;
}

static int load_base(struct fp_device *dev)
{
	void *file;
	size_t size = 0;
	uint32_t i;
	int err;

	if (!dev->opt.xclbin[0])
		return fp_host->fail(EINVAL,
				     "fpga:%u: no xclbin given; name the file that is to "
				     "be on the card: fpga:%u?xclbin=FILE",
				     dev->index, dev->index);
	err = read_file(dev->opt.xclbin, &file, &size);
	if (err)
		return err;
	err = fp_design_take(dev, file, size, &dev->base);
	free(file);
	if (err)
		return err;
	dev->handle = XRT(xrtDeviceOpen, dev->index);
	if (!dev->handle)
		return fp_failed(NULL, "xrtDeviceOpen", "cannot open the card");
	fp_catch_up(dev);
	dev->load_began_ns = fp_now(dev);
	err = fp_design_load(dev, dev->base, dev->loading.text,
			     sizeof(dev->loading.text));
	if (err)
		return fp_host->fail(-err, "fpga: %s: xclbin=%s, for platform %s",
				     dev->loading.text, dev->opt.xclbin,
				     dev->base->x.platform);
	fp_catch_up(dev);
	fp_design_is_there(dev, dev->base);
	/* The driver that does nothing stops nothing either. */
	for (i = 0; i < dev->base->x.kernel_count && !dev->emulated; i++)
		dev->folds |= dev->base->x.kernels[i].stops;
	return 0;
}

static void fp_close(void *device)
{
	struct fp_device *dev = device;
	uint32_t i;

	fp_mover_stop(dev);
	/* Those of slots that were left while a load was under way. */
	for (i = 0; i < FP_SLOTS_MAX; i++) {
		if (!dev->slots[i].taken)
			continue;
		fp_slot_close(dev->wanted, i);
		fp_slot_close(dev->loaded, i);
		fp_slot_give(dev, i);
	}
	fp_design_give(dev, dev->wanted);
	fp_design_give(dev, dev->loaded);
	fp_design_give(dev, dev->base);
	/* Tried again: what is left open is in the way of the next one. */
	if (dev->handle && xrt.xrtDeviceClose(dev->handle))
		(void)xrt.xrtDeviceClose(dev->handle);
	if (dev->opt.virtual_clock && xrt.drive)
		xrt.drive(0);
	pthread_cond_destroy(&dev->mover_done);
	pthread_cond_destroy(&dev->mover_wake);
	pthread_mutex_destroy(&dev->mover_lock);
	pthread_mutex_destroy(&dev->export_lock);
	free(dev);
}

static int fp_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	const struct fp_options o = read_options(cfg);
	char ids[FP_CARDS_MAX][32] = {{0}};
	struct fp_device *dev;
	bool emulated = false;
	int err, count = count_cards(&o, &emulated, ids);

	if (count < 0)
		return count;
	if (index >= (uint32_t)count)
		return fp_host->fail(ENODEV, "fpga:%u: no such card; there are %d", index,
				     count);
	err = fp_load_driver(emulated);
	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return fp_host->fail(ENOMEM, "fpga:%u: no memory for the device", index);
	dev->opt = o;
	dev->index = index;
	dev->stand_in = xrt.drive != NULL;
	dev->emulated = emulated;
	memcpy(dev->bus_id, ids[index], sizeof(dev->bus_id));
	(void)pthread_mutex_init(&dev->export_lock, NULL);
	(void)pthread_mutex_init(&dev->mover_lock, NULL);
	(void)pthread_cond_init(&dev->mover_wake, NULL);
	(void)pthread_cond_init(&dev->mover_done, NULL);
	err = set_clock(dev);
	if (err) {
		dev->opt.virtual_clock = false;
		fp_close(dev);
		return err;
	}
	err = load_base(dev);
	if (!err)
		err = fp_mover_start(dev);
	if (err) {
		fp_close(dev);
		return err;
	}
	say_name(dev->name, dev->stand_in, emulated, dev->base->x.platform);
	fp_catch_up(dev);
	*out = dev;
	return 0;
}

/* ---- registration ------------------------------------------------------------------ */

static const struct hal_backend table = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "fpga",
	.summary = "AMD FPGA cards through XRT",
	.score = 40,
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.beside = HAL_BK_BESIDE_COPY | HAL_BK_BESIDE_MEMORY,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.flags = HAL_BK_IMAGES_FOREIGN,
	.cold = {.probe = fp_probe,
		 .open = fp_open,
		 .close = fp_close,
		 .get_info = fp_get_info,
		 .partition_create = fp_partition_create,
		 .partition_destroy = fp_partition_destroy,
		 .queue_create = fp_queue_create,
		 .queue_destroy = fp_queue_destroy,
		 .mem_alloc = fp_mem_alloc,
		 .mem_free = fp_mem_free,
		 .mem_write = fp_mem_write,
		 .mem_read = fp_mem_read,
		 .mem_clear = fp_mem_clear,
		 .mem_map = fp_mem_map,
		 .mem_unmap = fp_mem_unmap,
		 .mem_register = fp_mem_register,
		 .mem_export = fp_mem_export,
		 .mem_import = fp_mem_import,
		 .program_load = fp_program_load,
		 .program_unload = fp_program_unload,
		 .kernel_get = fp_kernel_get},
	.hot = {.submit = fp_submit,
		.poll = fp_poll,
		.now = fp_now,
		.suspend = fp_suspend,
		.resume = fp_resume,
		.next = fp_next,
		.doorbell = fp_doorbell},
	.extra =
		{
			.mem_swap = fp_mem_swap,
		},
};

const struct hal_backend *hal_backend_fpga(const struct hal_host *host)
{
	fp_host = host;
	if (host->abi != HAL_BACKEND_ABI) {
		host->fail(EPROTO,
			   "fpga: this backend was built for backend ABI %u, but the "
			   "library has %u",
			   HAL_BACKEND_ABI, host->abi);
		return NULL;
	}
	return &table;
}
