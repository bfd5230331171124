/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the NPU: options, probe, open, what it says of itself, extension "npu". */
#include "internal.h"

#include "copier.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu_panel.h"

/* ---- options ---------------------------------------------------------------------- */

static const struct hal_option_def options[] = {
	{"rows", HAL_OPTION_INT, 1, 128, NULL, "16",
	 "PE rows; engine=rtl needs a model that was built for this shape"},
	{"cols", HAL_OPTION_INT, 1, 128, NULL, "16", "PE columns"},
	{"slots", HAL_OPTION_INT, 1, 8, NULL, "4",
	 "slot engines: number of partitions that can exist at a time"},
	{"channels", HAL_OPTION_INT, 1, 16, NULL, "4", "memory channels in use"},
	{"clock", HAL_OPTION_ENUM, 0, 0, "virtual|real", "virtual",
	 "virtual: hal_wait steps the machine; real: the machine runs in the engine's "
	 "thread"},
	{"memory", HAL_OPTION_ENUM, 0, 0, "dram|ideal", "dram",
	 "memory timing; ideal: every request is answered in the next cycle"},
	{"refresh", HAL_OPTION_INT, 0, 65535, NULL, "0",
	 "cycles from one refresh of a memory channel to the next (3900 for DDR4 at 1 "
	 "GHz); 0: no refresh"},
	{"refresh_cycles", HAL_OPTION_INT, 1, 65534, NULL, "280",
	 "cycles that one refresh takes, in which the channel accepts no request; less "
	 "than refresh"},
	{"cache", HAL_OPTION_INT, 0, NPU_MODEL_SETS, NULL, "0",
	 "number of sets in the cache of each memory channel, a power of two; 0: no "
	 "cache"},
	{"cache_ways", HAL_OPTION_INT, 1, NPU_MODEL_WAYS, NULL, "4",
	 "lines of 64 bytes in each set of the cache, a power of two"},
	{"cache_seed", HAL_OPTION_INT, 0, 65535, NULL, "1",
	 "seed of the random numbers by which the cache chooses lines to replace"},
	{"colors", HAL_OPTION_ENUM, 0, 0, "channels|sets", "channels",
	 "what a colour is; channels: one memory channel; sets: granules of one channel "
	 "that share cache sets"},
	{"turns", HAL_OPTION_INT, 0, 4095, NULL, "0",
	 "fixed time slice of each slot on every channel, in cycles, used or not; 0: "
	 "slots share channels fairly"},
	{"memory_size", HAL_OPTION_SIZE, 1 << 20, INT64_C(2) << 30, NULL, "64M",
	 "bytes of device memory"},
	{"granule", HAL_OPTION_INT, 256, 4096, NULL, "1024",
	 "bytes of a page, which lies on one channel; a power of two"},
	{"hash", HAL_OPTION_ENUM, 0, 0, "open|opaque", "open",
	 "opaque: hide the number of channels, the channel of each granule and the "
	 "channels' counters; halctl probe can find the channels"},
	{"hash_seed", HAL_OPTION_INT, -1, INT32_MAX, NULL, "0",
	 "seed of the channel hash's masks; 0: masks that spread strides; -1: no hash, "
	 "consecutive granules on consecutive channels"},
	{"engine", HAL_OPTION_ENUM, 0, 0, "rtl|fast|golden|replay", "rtl",
	 "rtl: cycle-accurate; fast: C, any shape up to 32 x 32, cycles within 1 %; "
	 "golden: C, any shape, estimated cycles; replay: recorded times, no results"},
	{"durations", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "file of recorded times, which engine=replay reads, and to which rtl and fast "
	 "add"},
	{"replay_shared", HAL_OPTION_ENUM, 0, 0, "refuse|accept", "refuse",
	 "engine=replay: whether partitions may share channels, an effect that the "
	 "recorded times do not have"},
	{"model", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "shared object of the model, for any engine; empty: search by engine and shape"},
};

static const struct npu_options defaults = {
	.rows = 16,
	.cols = 16,
	.slots = 4,
	.channels = 4,
	.gran = 10,
	.color_sets = 1,
	.memory = UINT64_C(64) << 20,
	.engine = "rtl",
	.durations = "",
	.model = "",
};

static const char *const engines[] = {"rtl", "fast", "golden", "replay"};

static uint32_t option(const struct hal_bk_config *cfg, const char *key)
{
	return (uint32_t)npu_host->option_int(cfg, key);
}

static bool is_power(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* What its memory does besides, and colours that are more than channels. */
static int read_memory(const struct hal_bk_config *cfg, struct npu_options *o)
{
	uint32_t lines = 1u << (o->gran - 6);
	struct npu_model_memory *x = &o->extra;

	x->refresh = option(cfg, "refresh");
	x->refreshing = option(cfg, "refresh_cycles");
	x->cache_sets = option(cfg, "cache");
	x->cache_ways = option(cfg, "cache_ways");
	x->cache_seed = option(cfg, "cache_seed");
	o->turns = option(cfg, "turns");
	if ((x->refresh || x->cache_sets || o->turns) && o->durations[0])
		return npu_fail(EINVAL,
				"npu: durations= cannot be used with refresh=, cache= or "
				"turns=: these make times depend on earlier accesses");
	if (x->refresh && o->turns && o->turns <= x->refreshing + NPU_TURN_LEAST)
		return npu_fail(EINVAL,
				"npu: turns=%u: with refresh_cycles=%u a turn must be "
				"longer than %u cycles, or a refresh may take all of it",
				o->turns, x->refreshing, x->refreshing + NPU_TURN_LEAST);
	if (x->refresh && x->refreshing >= x->refresh)
		return npu_fail(EINVAL,
				"npu: refresh_cycles=%u must be less than refresh=%u, or "
				"no cycle remains for requests",
				x->refreshing, x->refresh);
	if (!is_power(x->cache_sets))
		return npu_fail(EINVAL, "npu: cache=%u is not a power of two",
				x->cache_sets);
	if (!is_power(x->cache_ways))
		return npu_fail(EINVAL, "npu: cache_ways=%u is not a power of two",
				x->cache_ways);
	if (option(cfg, "colors") == 0)
		return 0;
	if (x->cache_sets <= lines)
		return npu_fail(EINVAL,
				"npu: colors=sets: a granule of %u lines covers all sets "
				"of cache=%u; use a larger cache or a smaller granule",
				lines, x->cache_sets);
	o->color_sets = x->cache_sets / lines;
	if (o->color_sets * o->channels > HAL_BK_COLORS_MAX)
		return npu_fail(
			EINVAL,
			"npu: colors=sets: %u groups of sets on %u channels make more "
			"than %u colours; use a smaller cache or fewer channels",
			o->color_sets, o->channels, HAL_BK_COLORS_MAX);
	return 0;
}

static int read_options(const struct hal_bk_config *cfg, struct npu_options *o)
{
	uint32_t granule;

	*o = defaults;
	if (!cfg)
		return 0;
	o->rows = option(cfg, "rows");
	o->cols = option(cfg, "cols");
	o->slots = option(cfg, "slots");
	o->channels = option(cfg, "channels");
	o->real = option(cfg, "clock") == 1;
	o->ideal = option(cfg, "memory") == 1;
	o->opaque = option(cfg, "hash") == 1;
	o->hash_seed = option(cfg, "hash_seed");
	o->memory = (uint64_t)npu_host->option_int(cfg, "memory_size");
	o->engine = engines[option(cfg, "engine")];
	o->replay = strcmp(o->engine, "replay") == 0;
	o->replay_shared = option(cfg, "replay_shared") == 1;
	o->durations = npu_host->option_str(cfg, "durations");
	o->model = npu_host->option_str(cfg, "model");
	granule = option(cfg, "granule");
	for (o->gran = 8; 1u << o->gran < granule;)
		o->gran++;
	if (1u << o->gran != granule)
		return npu_fail(EINVAL, "npu: granule=%u is not a power of two", granule);
	if (o->memory % 4096)
		return npu_fail(EINVAL, "npu: memory_size=%llu is not a multiple of 4096",
				(unsigned long long)o->memory);
	return read_memory(cfg, o);
}

/* ---- what it is ------------------------------------------------------------------- */

uint64_t npu_turn(const struct npu_options *o)
{
	if (!o->turns)
		return 0;
	return o->turns > NPU_TURN_LEAST ? o->turns : NPU_TURN_LEAST;
}

/* Of one channel at worst full FIFOs of every slot, of loads and of stores, and what has
 * been granted, all of them row conflicts; and by what the arbiter lets each other slot
 * be ahead: it stays for four changes of rows, and has saved up eight.  In turns: a
 * request in each of its own.  And what refresh takes of that time, with the turn that it
 * may fall in. */
uint64_t npu_request_worst(const struct npu_options *o)
{
	const uint64_t fifo = 16 + 32, granted = 32, change = 8 + 8 + 8,
		       request = change + 4;
	uint64_t round = npu_turn(o) * o->slots, worst, left;

	if (o->ideal)
		return 2;
	if (round)
		worst = granted * request + fifo * round;
	else
		worst = (fifo * o->slots + granted) * request +
			(4 + 8) * change * (o->slots - 1);
	if (!o->extra.refresh)
		return worst;
	left = o->extra.refresh - o->extra.refreshing;
	return worst + (worst / left + 1) * (o->extra.refreshing + round);
}

/* KILL frees the PEs in a few cycles.  HAL_BK_QUIET comes once the accepted memory
 * requests are done; and the register accesses of the interrupt. */
static uint64_t kill_worst(const struct npu_options *o)
{
	return 32 + 12 * (o->slots - 1) + (o->ideal ? 0 : npu_request_worst(o));
}

/* Loads of page tables while that many rows of outputs are stored, each of which begins
 * in one line of a table and ends in the next.  Rows come in the order of their
 * addresses, in eight tiles at most, so the line that names these tables is read once a
 * tile. */
static uint64_t save_walks(const struct npu_options *o, uint64_t rows)
{
	uint64_t named = UINT64_C(16) << o->gran >> 2 << o->gran; /* bytes, by a line */
	uint64_t names = 8 * (o->memory / named + 1);

	return 2 * rows + (names < 2 * rows ? names : 2 * rows);
}

/* How long the stores take that SAVE waits for, in ns: see docs/npu.md. */
static uint64_t save_stores(const struct npu_options *o)
{
	const uint64_t rows = 1024, change = 8 + 8 + 8, request = change + 4;
	uint64_t stores = rows * ((o->cols + 31) / 32 + 1) +
			  (uint64_t)NPU_DEPTH * ((4 * o->cols + 31) / 32);
	uint64_t walks = save_walks(o, rows) + (NPU_DEPTH * 128u >> o->gran >> 4) + 4;
	/* Stores follow each other without a pause.  A load that the next request waits
	 * for finds who was served last up to four changes of rows ahead. */
	uint64_t store = request * o->slots, load = 4 * change + 2 * request + 24;

	if (o->ideal)
		return stores + walks * 10;
	return stores * store + walks * ((load > store ? load : store) + 5);
}

/* SAVE waits for rows in the gather and the array, for stores, and the context; or for a
 * row of a softmax, whose stores are fewer than those.  0: with turns= and refresh= it
 * depends on when it is asked for, and with durations= descriptors run to their end. */
static uint64_t save_worst(const struct npu_options *o)
{
	uint64_t array = 4ull * o->rows * o->cols + o->rows + o->cols + 24;

	if (o->turns || o->extra.refresh || o->durations[0])
		return 0;
	return (array > NPU_SOFTMAX_COLS ? array : NPU_SOFTMAX_COLS) + save_stores(o) +
	       kill_worst(o);
}

/* A FOLD becomes a SAVE after a while; the register of that, too. */
static uint64_t fold_worst(const struct npu_options *o)
{
	uint64_t save = save_worst(o);

	return save ? save + NPU_FOLD_CYCLES + 4 : 0;
}

/* Of a device whose colours are known.  A replay lets a launch in by the channels that it
 * has then; a bimodal partition's may be others when it runs. */
static uint64_t color_caps(const struct npu_options *o)
{
	return HAL_CAP_COLORED_MEMORY | HAL_CAP_RECOLOR |
	       (o->replay ? 0 : HAL_CAP_BIMODAL);
}

static void describe(const struct npu_options *o, struct hal_device_info *info)
{
	char channels[16];

	info->kind = HAL_KIND_NPU;
	snprintf(info->backend, sizeof(info->backend), "npu");
	snprintf(channels, sizeof(channels), "%u channels", o->channels);
	snprintf(info->name, sizeof(info->name),
		 "systolic array %u x %u, %u slots, %s, engine %s", o->rows, o->cols,
		 o->slots, o->opaque ? "opaque" : channels, o->engine);
	info->memory_bytes = o->memory;
	info->memory_free = o->memory;
	info->caps = HAL_CAP_GRID | HAL_CAP_MAP | HAL_CAP_TIMESTAMP |
		     HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE | HAL_CAP_FAULT_CONTAINED |
		     HAL_CAP_SIMULATED | HAL_CAP_PRIVATE | HAL_CAP_EVICT |
		     HAL_CAP_HOST_COPY | HAL_CAP_HOST_REGISTER | HAL_CAP_EXPORT |
		     HAL_CAP_IMPORT;
	if (!o->real)
		info->caps |= HAL_CAP_VIRTUAL_CLOCK;
	info->unit_rows = o->rows;
	info->unit_cols = o->cols;
	info->partitions_max = o->slots;
	info->guests_max = NPU_GUESTS;
	info->page_bytes = 1u << o->gran;
	if (!o->opaque) {
		info->caps |= color_caps(o);
		info->colors = o->channels * o->color_sets;
		info->granule_bytes = 1u << o->gran;
	}
	info->preempt = HAL_PREEMPT_INSIDE;
	info->compute_isolation = HAL_ISOLATION_ENFORCED;
	info->memory_isolation = HAL_ISOLATION_ENFORCED;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN | 1u << HAL_SUSPEND_FOLD |
			      1u << HAL_SUSPEND_SAVE | 1u << HAL_SUSPEND_KILL;
	info->preempt_worst_ns = kill_worst(o);
	info->suspend_worst_ns[HAL_SUSPEND_FOLD] = fold_worst(o);
	info->suspend_worst_ns[HAL_SUSPEND_SAVE] = save_worst(o);
	info->suspend_worst_ns[HAL_SUSPEND_KILL] = info->preempt_worst_ns;
	info->clock_hz = UINT64_C(1000000000);
	if (o->ideal) /* as much as is asked for */
		return;
	if (!o->opaque)
		info->bandwidth = info->clock_hz * NPU_BEAT_BYTES * o->channels;
	info->turn_cycles = (uint32_t)npu_turn(o);
	info->caps |= HAL_CAP_LIMIT;
	info->limit_bytes = NPU_LIMIT_BYTES;
	info->limit_window_ns = NPU_LIMIT_WINDOW;
}

static int npu_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		     uint32_t max)
{
	const struct npu_model_api *api;
	struct npu_options o;
	char path[PATH_MAX];
	void *library = NULL;
	int rc = read_options(cfg, &o);

	if (!rc && o.model[0]) /* it alone knows its engine */
		rc = npu_model_load(&o, &library, &api);
	else if (!rc)
		rc = npu_model_find(&o, path, sizeof(path));
	if (rc)
		return rc;
	if (max)
		describe(&o, out);
	if (library)
		dlclose(library);
	return 1;
}

static int npu_get_info(void *device, struct hal_device_info *info)
{
	const struct npu_device *dev = device;

	describe(&dev->opt, info);
	info->memory_free = npu_memory_free(dev);
	info->verified = dev->verified;
	if (dev->told) {
		info->caps |= color_caps(&dev->opt);
		info->colors = dev->told;
		info->granule_bytes = 1u << dev->opt.gran;
		/* By where memory is placed; the machine's own check knows no channels.
		 */
		info->memory_isolation = HAL_ISOLATION_ADVISORY;
	}
	if (!dev->limits) {
		info->caps &= ~HAL_CAP_LIMIT;
		info->limit_bytes = info->limit_window_ns = 0;
	}
	return 0;
}

/* ---- folds: who used which PE ----------------------------------------------------- */

/* Corners of a rectangle whose inside gets macs more. */
static void mark_busy(struct npu_device *dev, uint32_t row, uint32_t col, uint32_t rows,
		      uint32_t cols, uint64_t macs)
{
	uint64_t pitch = dev->opt.cols + 1;

	dev->busy[row * pitch + col] += macs;
	dev->busy[row * pitch + col + cols] -= macs;
	dev->busy[(row + rows) * pitch + col] -= macs;
	dev->busy[(row + rows) * pitch + col + cols] += macs;
}

/* From inside npu_run: the lock is held. */
static void on_fold(void *user, const struct npu_fold *f)
{
	struct npu_device *dev = user;
	const struct npu_partition *part = dev->parts[f->slot];
	struct hal_npu_fold fold;

	if (!part || f->rows_used > part->desc.rows || f->cols_used > part->desc.cols)
		return;
	mark_busy(dev, part->desc.row, part->desc.col, f->rows_used, f->cols_used, f->t);
	if (!dev->on_fold)
		return;
	fold = (struct hal_npu_fold){.partition = part->slot,
				     .row = part->desc.row,
				     .col = part->desc.col,
				     .rows_used = f->rows_used,
				     .cols_used = f->cols_used,
				     .t = f->t,
				     .start = f->start + dev->skipped,
				     .end = f->end + dev->skipped};
	dev->on_fold(dev->on_fold_user, &fold);
}

/* ---- open ------------------------------------------------------------------------- */

static int check_machine(struct npu_device *dev)
{
	uint32_t id = npu_read(dev, NPU_GLB_ID_ADDR);
	uint32_t version = npu_read(dev, NPU_GLB_VERSION_ADDR);
	uint32_t shape = npu_read(dev, NPU_GLB_SHAPE_ADDR);

	if (id != NPU_GLB_ID_RESET || version != NPU_GLB_VERSION_RESET)
		return npu_fail(EPROTO,
				"npu: the model is machine 0x%08x version %u; this "
				"backend needs 0x%08x version %u; build the model, or "
				"the bitstream, from this version's sources",
				id, version, NPU_GLB_ID_RESET, NPU_GLB_VERSION_RESET);
	if (NPU_REG_GET(shape, SHAPE_ROWS) != dev->opt.rows ||
	    NPU_REG_GET(shape, SHAPE_COLS) != dev->opt.cols ||
	    NPU_REG_GET(shape, SHAPE_SLOTS) != dev->opt.slots)
		return npu_fail(EPROTO,
				"npu: the model reports %ux%u units and %u slots, which "
				"is not the shape requested",
				NPU_REG_GET(shape, SHAPE_ROWS),
				NPU_REG_GET(shape, SHAPE_COLS),
				NPU_REG_GET(shape, SHAPE_SLOTS));
	return 0;
}

static void make_hash(struct npu_device *dev)
{
	struct npu_hash *h = &dev->hash;

	npu_hash_split(dev->opt.channels, &h->q, &h->k);
	h->gran = dev->opt.gran;
	npu_hash_choose(h, dev->opt.hash_seed);
}

static int write_hash(struct npu_device *dev)
{
	uint32_t value = npu_hash_register(&dev->hash);

	for (uint32_t i = 0; i < 4; i++)
		npu_write(dev, NPU_GLB_AT(XMASK, i), dev->hash.xmask[i]);
	npu_write(dev, NPU_GLB_HASH_ADDR, value);
	if (npu_read(dev, NPU_GLB_HASH_ADDR) == value) {
		if (dev->opt.opaque) {
			npu_write(dev, NPU_GLB_HASH_ADDR,
				  value | NPU_REG_BITS(HASH_OPAQUE, 1) |
					  NPU_REG_BITS(HASH_LOCK, 1));
			dev->hash = (struct npu_hash){.gran = dev->opt.gran};
		}
		return 0;
	}
	return npu_fail(
		EIO,
		"npu: the model does not support %u channels with a granule of %u bytes",
		dev->opt.channels, 1u << dev->opt.gran);
}

/* A slot without memory runs into its first descriptor, and nobody else notices. */
static int fault_test(struct npu_device *dev)
{
	uint32_t kind, other;

	npu_write(dev, NPU_SLOT_ADDR(0, RING_BASE), 0);
	npu_write(dev, NPU_SLOT_ADDR(0, TAIL), 1);
	npu_run(dev, 1000);
	kind = npu_read(dev, NPU_SLOT_ADDR(0, FAULT_KIND));
	other = dev->opt.slots < 2 ? NPU_STATE_IDLE
				   : NPU_REG_GET(npu_read(dev, NPU_SLOT_ADDR(1, STATUS)),
						 STATUS_STATE);
	npu_write(dev, NPU_SLOT_ADDR(0, RING_BASE), 0);
	npu_write(dev, NPU_GLB_IRQ_PEND_ADDR, UINT32_MAX);
	return kind == NPU_FAULT_BOUNDS && other == NPU_STATE_IDLE;
}

/* Before the first cycle. */
static int set_memory(struct npu_device *dev)
{
	const struct npu_model_api *a = dev->api;
	const struct npu_model_memory *x = &dev->opt.extra;

	if (!x->refresh && !x->cache_sets)
		return 0;
	if (a->size < offsetof(struct npu_model_api, memory) + sizeof(a->memory))
		return npu_fail(ENOTSUP, "npu: this model is too old for refresh= and "
					 "cache=; build it again");
	a->memory(dev->model, x);
	return 0;
}

/* Each slot's turn on every channel, as long as the others'. */
static int set_turns(struct npu_device *dev)
{
	if (!dev->opt.turns)
		return 0;
	npu_write(dev, NPU_GLB_TURNS_ADDR,
		  NPU_REG_BITS(TURNS_CYCLES, dev->opt.turns) |
			  NPU_REG_BITS(TURNS_LAST, dev->opt.slots - 1));
	for (uint32_t i = 0; i < NPU_GLB_ARB_N; i++) {
		npu_write(dev, NPU_GLB_AT(ARB, i), NPU_REG_BITS(ARB_MODE, NPU_ARB_TURNS));
		if (NPU_REG_GET(npu_read(dev, NPU_GLB_AT(ARB, i)), ARB_MODE) !=
		    NPU_ARB_TURNS)
			return npu_fail(ENOTSUP,
					"npu: turns=%u: engine %s does not support turns",
					dev->opt.turns, dev->opt.engine);
	}
	return 0;
}

static int start_machine(struct npu_device *dev)
{
	const struct npu_model_shape shape = {dev->opt.rows, dev->opt.cols,
					      dev->opt.slots, dev->opt.channels};
	int rc;

	dev->model = dev->api->create(&shape, dev->memory, dev->opt.memory);
	if (!dev->model)
		return npu_fail(ENOMEM, "npu: no host memory for the model");
	dev->api->on_fold(dev->model, on_fold, dev);
	rc = set_memory(dev);
	if (!rc)
		rc = check_machine(dev);
	if (!rc)
		rc = write_hash(dev);
	if (!rc)
		rc = set_turns(dev);
	if (rc)
		return rc;
	npu_write(dev, NPU_GLB_CTRL_ADDR, NPU_REG_BITS(CTRL_IDEAL, dev->opt.ideal));
	npu_write(dev, NPU_GLB_IRQ_MASK_ADDR, UINT32_MAX);
	if (npu_map_test(dev))
		dev->verified |= HAL_CAP_GRID;
	if (fault_test(dev))
		dev->verified |= HAL_CAP_FAULT_CONTAINED;
	dev->limits = !dev->opt.ideal && npu_limit_test(dev);
	if (dev->limits)
		dev->verified |= HAL_CAP_LIMIT;
	npu_rests(dev);
	return npu_replay_open(dev);
}

static void npu_close(void *device)
{
	struct npu_device *dev = device;

	if (!dev)
		return;
	if (dev->model)
		dev->api->destroy(dev->model);
	npu_durations_close(dev->durations);
	npu_memory_close(dev);
	pthread_mutex_destroy(&dev->lock);
	free(dev->busy);
	if (dev->library)
		dlclose(dev->library);
	free(dev);
}

/* Recursive: folds are told from inside npu_run, and who is told may ask for counters. */
static int init_lock(struct npu_device *dev)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return npu_fail(err, "npu: cannot create a lock");
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	err = pthread_mutex_init(&dev->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return err ? npu_fail(err, "npu: cannot create a lock") : 0;
}

static int npu_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	struct npu_device *dev = calloc(1, sizeof(*dev));
	int rc;

	if (!dev)
		return npu_fail(ENOMEM, "npu: no host memory for the device");
	rc = init_lock(dev);
	if (rc) {
		free(dev);
		return rc;
	}
	rc = index ? npu_fail(ENODEV, "npu:%u: there is one device, npu:0", index)
		   : read_options(cfg, &dev->opt);
	if (!rc)
		rc = npu_model_load(&dev->opt, &dev->library, &dev->api);
	if (!rc) {
		make_hash(dev);
		dev->busy = calloc((size_t)(dev->opt.rows + 1) * (dev->opt.cols + 1),
				   sizeof(*dev->busy));
		rc = dev->busy ? npu_memory_open(dev)
			       : npu_fail(ENOMEM, "npu: no host memory for the device");
	}
	if (!rc)
		rc = start_machine(dev);
	if (rc) {
		npu_close(dev);
		return rc;
	}
	*out = dev;
	return 0;
}

/* ---- counters --------------------------------------------------------------------- */

static uint64_t read64(struct npu_device *dev, uint32_t address)
{
	uint64_t low = npu_read(dev, address);

	return low | (uint64_t)npu_read(dev, address + 4) << 32;
}

/* A multiply-accumulate is a PE's cycle.  Each register takes an access to the bus, so
 * the machine has gone on meanwhile; what it is asked for is from one instant. */
int npu_counters(void *device, struct hal_bk_counter *out, uint32_t max, uint64_t *at_ns)
{
	struct npu_device *dev = device;
	uint32_t n = 0;

	npu_lock(dev);
	npu_write(dev, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	*at_ns = npu_time(dev);
	for (uint32_t i = 0; i < dev->opt.slots && n < max; i++)
		if (dev->parts[i] && !npu_is_copier(dev->parts[i]))
			out[n++] = (struct hal_bk_counter){
				HAL_BK_UNIT_NS, i,
				read64(dev, NPU_SLOT_ADDR(i, CNT_MACS))};
	/* Ideal memory has no channels. */
	for (uint32_t i = 0;
	     !dev->opt.ideal && !dev->opt.opaque && i < dev->opt.channels && n < max;
	     i++) {
		uint32_t beats = npu_read(dev, NPU_CHAN_ADDR(i, CH_BEATS));

		dev->channel_beats[i] += beats - (uint32_t)dev->channel_beats[i];
		out[n++] = (struct hal_bk_counter){
			HAL_BK_CHANNEL_BYTES, i, dev->channel_beats[i] * NPU_BEAT_BYTES};
	}
	npu_unlock(dev);
	return (int)n;
}

/* ---- extension -------------------------------------------------------------------- */

static int check_partition(struct npu_device *dev, uint32_t partition)
{
	if (partition < dev->opt.slots && dev->parts[partition] &&
	    !npu_is_copier(dev->parts[partition]))
		return 0;
	return npu_fail(EINVAL, "npu: there is no partition %u", partition);
}

#define COUNTER(dev, slot, name) read64(dev, NPU_SLOT_ADDR(slot, name))

static int ext_counters(void *native, uint32_t partition, struct hal_npu_counters *out)
{
	struct npu_device *dev = native;
	int rc;

	if (!out || out->size < sizeof(*out))
		return npu_fail(EINVAL,
				"npu: counters: .size is %u; at least %zu is needed (use "
				"HAL_INIT)",
				out ? out->size : 0, sizeof(*out));
	npu_lock(dev);
	rc = check_partition(dev, partition);
	if (!rc) {
		npu_write(dev, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
		out->reserved = 0;
		out->cycles = COUNTER(dev, partition, CNT_CYCLES);
		out->active = COUNTER(dev, partition, CNT_ACTIVE);
		out->stall_a = COUNTER(dev, partition, CNT_STALL_A) +
			       COUNTER(dev, partition, CNT_STALL_BANK);
		out->stall_w = COUNTER(dev, partition, CNT_STALL_W);
		out->stall_out = COUNTER(dev, partition, CNT_STALL_OUT);
		out->stall_seq = COUNTER(dev, partition, CNT_STALL_SEQ);
		out->idle = COUNTER(dev, partition, CNT_IDLE);
		out->macs = COUNTER(dev, partition, CNT_MACS);
		out->folds = COUNTER(dev, partition, CNT_FOLDS);
		out->rows = COUNTER(dev, partition, CNT_ROWS);
		out->descs = COUNTER(dev, partition, CNT_DESCS);
		out->read_beats = COUNTER(dev, partition, CNT_READ_BEATS);
		out->write_beats = COUNTER(dev, partition, CNT_WRITE_BEATS);
		out->tlb_misses = COUNTER(dev, partition, CNT_TLB_MISSES);
		out->preempt_cycles = dev->parts[partition]->preempt_cycles;
	}
	npu_unlock(dev);
	return rc;
}

static int ext_pe_busy(void *native, uint64_t *macs, uint32_t count)
{
	struct npu_device *dev = native;
	uint32_t rows = dev->opt.rows, cols = dev->opt.cols;

	if (!macs || count < rows * cols)
		return npu_fail(
			EINVAL,
			"npu: pe_busy: room for %u counts, but the array has %u elements",
			count, rows * cols);
	npu_lock(dev);
	for (uint32_t r = 0; r < rows; r++) {
		uint64_t line = 0;

		for (uint32_t c = 0; c < cols; c++) {
			line += dev->busy[(size_t)r * (cols + 1) + c];
			macs[r * cols + c] = line + (r ? macs[(r - 1) * cols + c] : 0);
		}
	}
	npu_unlock(dev);
	return 0;
}

static int ext_serial(void *native, uint32_t partition, int on)
{
	struct npu_device *dev = native;
	int rc;

	npu_lock(dev);
	rc = check_partition(dev, partition);
	if (!rc && dev->parts[partition]->count)
		rc = npu_fail(
			EBUSY,
			"npu: partition %u still has %u commands; wait for them first",
			partition, dev->parts[partition]->count);
	if (!rc) {
		dev->parts[partition]->serial = on != 0;
		npu_write(dev, NPU_GLB_AT(SLOT_CTRL, partition),
			  NPU_REG_BITS(SLOT_CTRL_SERIAL, on ? 1 : 0));
	}
	npu_unlock(dev);
	return rc;
}

static int ext_on_fold(void *native, void (*fn)(void *user, const struct hal_npu_fold *f),
		       void *user)
{
	struct npu_device *dev = native;

	npu_lock(dev);
	dev->on_fold = fn;
	dev->on_fold_user = user;
	npu_unlock(dev);
	return 0;
}

static uint32_t ext_reg_read(void *native, uint32_t address)
{
	const struct npu_device *dev = native;

	if (dev->opt.opaque && address >= NPU_CHAN_BASE &&
	    address < NPU_CHAN_BASE + NPU_CHAN_STRIDE * NPU_CHAN_COUNT)
		return 0;
	return npu_read(native, address);
}

static int ext_physical(void *native, const void *mapped, uint64_t *address)
{
	const struct npu_device *dev = native;
	uintptr_t at = (uintptr_t)mapped, first = (uintptr_t)dev->memory;

	if (at < first || at - first >= dev->opt.memory)
		return npu_fail(EINVAL,
				"npu: physical: address %p is not in device memory",
				mapped);
	*address = at - first;
	return 0;
}

static const struct hal_npu_extension extension = {
	.size = sizeof(extension),
	.counters = ext_counters,
	.pe_busy = ext_pe_busy,
	.serial = ext_serial,
	.on_fold = ext_on_fold,
	.reg_read = ext_reg_read,
	.physical = ext_physical,
};

static const void *npu_extension(void *device, const char *name)
{
	(void)device;
	return strcmp(name, "npu") == 0 ? &extension : NULL;
}

/* ---- registration ----------------------------------------------------------------- */

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "npu",
	.summary = "systolic array shared PE by PE: the RTL of npu-rtl/ in Verilator",
	.score = 10,
	.beside = HAL_BK_BESIDE_PROGRAM,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.flags = HAL_BK_IMAGES_FOREIGN,
	.cold =
		{
			.probe = npu_probe,
			.open = npu_open,
			.close = npu_close,
			.get_info = npu_get_info,
			.partition_create = npu_partition_create,
			.partition_destroy = npu_partition_destroy,
			.queue_create = npu_queue_create,
			.queue_destroy = npu_queue_destroy,
			.mem_alloc = npu_mem_alloc,
			.mem_free = npu_mem_free,
			.mem_write = npu_mem_write,
			.mem_read = npu_mem_read,
			.mem_map = npu_mem_map,
			.mem_unmap = npu_mem_unmap,
			.colors_set = npu_colors_set,
			.program_load = npu_program_load,
			.program_unload = npu_program_unload,
			.kernel_get = npu_kernel_get,
			.program_bind = npu_program_bind,
			.program_unbind = npu_program_unbind,
			.extension = npu_extension,
			.mem_register = npu_mem_register,
			.mem_export = npu_mem_export,
			.mem_import = npu_mem_import,
		},
	.hot =
		{
			.submit = npu_submit,
			.poll = npu_poll,
			.now = npu_now,
			.suspend = npu_suspend,
			.resume = npu_resume,
			.resize = npu_resize,
			.next = npu_next,
		},
	.extra =
		{
			.mem_swap = npu_mem_swap,
			.mem_out = npu_mem_out,
			.mem_in = npu_mem_in,
			.partition_widen = npu_partition_widen,
			.counters = npu_counters,
			.limit = npu_limit,
		},
};

const struct hal_backend *hal_backend_npu(const struct hal_host *host)
{
	if (host->abi != HAL_BACKEND_ABI) {
		host->fail(EPROTO,
			   "npu: this backend was built for backend ABI %u, but the "
			   "library has %u",
			   HAL_BACKEND_ABI, host->abi);
		return NULL;
	}
	npu_host = host;
	return &backend;
}
