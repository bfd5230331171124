/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub - what a tenant finds of the one before it, in all the memory there is.
 *
 *   scrub [TARGET]   words of a tenant that is gone, found by the next: in buffers, in
 * what a guest of the same units has, in memory from which a buffer has moved away, in
 * both placements of a bimodal one, where a buffer was that has gone to the host,
 * behind a queue that was stopped inside a command (FOLD), whose context is kept, and one
 * that was killed; and, as a control, found by the tenant itself.  Of what is new to a
 * tenant every byte must be 0
 *
 * The words are a secret mixed with numbers, so that nothing else looks like them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>
#include <hal/hal.h>
#include <hal/npu.h>

#include "../conformance/conformance.h"

#define SECRET UINT32_C(0x5ec2e7a1)

enum { BYTES = 128 << 10, CHUNK = 32 << 10, CHUNKS = 4096, TILES_NS = 10000 };

/* How the first tenant ends. */
enum way { DESTROYED, MOVED, FOLDED, KILLED, GUEST, BIMODAL, EVICTED, SAVED, WAYS };

static const char *const names[WAYS] = {"destroyed", "moved",   "folded",  "killed",
					"guest",     "bimodal", "evicted", "saved"};
static const struct conf_pack *packs[4];
static unsigned int pack_count;

void conf_register(const struct conf_pack *pack)
{
	packs[pack_count++] = pack;
}

#define MUST(call)                                                                       \
	do {                                                                             \
		if ((call) < 0)                                                          \
			die(#call);                                                      \
	} while (0)

static void die(const char *what)
{
	fprintf(stderr, "scrub: %s: %s\n", what, hal_last_error());
	exit(1);
}

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *chunk[CHUNKS];
	uint32_t count, flags; /* of buffers */
};

struct world {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *prog, *tiles_prog;
	struct hal_kernel *spin;  /* NULL: no pack for this backend */
	struct hal_kernel *tiles; /* FOLD stops inside; NULL: none for this backend */
};

static void make(struct world *w, struct tenant *t, struct hal_partition *host,
		 enum way way)
{
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	memset(t, 0, sizeof(*t));
	pd.host = host;
	if (way == BIMODAL) {
		pd.color_mask = 1;
		pd.flags = HAL_PARTITION_BIMODAL;
		t->flags = HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH;
	} else if (way == EVICTED) {
		pd.memory_bytes = 2 * BYTES + CHUNK;
		limits.memory_limit = 4 * BYTES;
		pd.limits = &limits;
	}
	if (host == NULL)
		pd.units_floor = w->info.unit_rows * w->info.unit_cols;
	if (way == SAVED)
		pd.units_floor /= 2;
	MUST(hal_partition_create(w->dev, &pd, &t->part));
	MUST(hal_queue_create(t->part, &qd, &t->queue));
}

static struct hal_buffer *add(struct tenant *t, uint64_t bytes, uint64_t colors)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	d.color_mask = colors;
	d.flags = t->flags;
	if (t->count == CHUNKS || hal_buffer_create(t->part, &d, &t->chunk[t->count]) < 0)
		return NULL;
	return t->chunk[t->count++];
}

static void away(struct tenant *t)
{
	MUST(hal_queue_destroy(t->queue));
	for (uint32_t i = 0; i < t->count; i++)
		MUST(hal_buffer_destroy(t->chunk[i]));
	MUST(hal_partition_destroy(t->part));
}

static void wait_for(struct hal_point p)
{
	MUST(hal_wait(&p, 1, 0, HAL_FOREVER));
}

static struct hal_point submit(struct tenant *t, struct hal_cmd cmd)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	cmd.flags |= HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	MUST(hal_submit(t->queue, &d, &done));
	return done;
}

/* By the host, by a fill and by a copy. */
static void leave_secrets(struct tenant *t)
{
	struct hal_buffer *a = add(t, BYTES, 0), *b = add(t, BYTES, 0);
	uint32_t *words = malloc(BYTES);

	if (a == NULL || b == NULL || words == NULL)
		die("a tenant's memory");
	for (uint32_t i = 0; i < BYTES / 4; i++)
		words[i] = SECRET ^ i;
	MUST(hal_buffer_write(a, 0, words, BYTES));
	free(words);
	wait_for(submit(t, hal_cmd_copy(b, 0, a, 0, BYTES / 2)));
	wait_for(submit(t, hal_cmd_fill(b, BYTES / 2, BYTES / 2, SECRET)));
}

/* fresh: of nobody's, so no word but zero is left of anything. */
static uint64_t found_in(struct hal_buffer *buf, uint64_t bytes, bool fresh)
{
	uint32_t *words = malloc(bytes);
	uint64_t n = 0;

	if (words == NULL)
		die("memory");
	MUST(hal_buffer_read(buf, 0, words, bytes));
	for (uint64_t i = 0; i < bytes / 4; i++)
		n += fresh ? words[i] != 0 : (words[i] ^ SECRET) < BYTES / 4;
	free(words);
	return n;
}

/* In all that t can get, and in what it has. */
static uint64_t search(struct tenant *t)
{
	uint64_t n = 0, bytes = CHUNK;

	while (bytes >= 64) {
		struct hal_buffer *b = add(t, bytes, 0);

		if (b != NULL)
			n += found_in(b, bytes, true);
		else
			bytes /= 2;
	}
	return n;
}

/* False: the device does not do that. */
static bool end(struct world *w, struct tenant *t, enum way way)
{
	struct hal_arg arg = {.buffer = t->chunk[0], .bytes = CONF_SPIN_BYTES};
	struct hal_arg tiles[2] = {{.buffer = t->chunk[0], .bytes = BYTES},
				   {.buffer = t->chunk[1], .bytes = BYTES}};
	struct hal_stats stats = HAL_INIT(hal_stats);
	bool saves = way == SAVED && (w->info.suspend_modes >> HAL_SUSPEND_SAVE & 1);
	uint32_t mode = saves                           ? HAL_SUSPEND_SAVE
			: way == FOLDED || way == SAVED ? HAL_SUSPEND_FOLD
							: HAL_SUSPEND_KILL;
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct hal_point p;

	if (way == EVICTED) {
		/* Both go, and one comes back. */
		if (add(t, BYTES, 0) == NULL || add(t, BYTES, 0) == NULL)
			die("a tenant's memory");
		wait_for(submit(t, hal_cmd_copy(t->chunk[0], 0, t->chunk[2], 0, 64)));
		MUST(hal_partition_get_memory_info(t->part, &i));
		if (i.evictions < 3 || i.fetches < 1)
			die("nothing was evicted");
	} else if (way == MOVED) {
		if ((w->info.caps & HAL_CAP_RECOLOR) == 0)
			return false;
		/* The old place is free while the tenant is still there. */
		MUST(hal_buffer_recolor(t->chunk[0], t->queue, 1, NULL, &p));
		wait_for(p);
	} else if (way == SAVED && w->tiles != NULL) {
		(void)submit(t, hal_cmd_launch(w->tiles, tiles, 2));
		MUST(hal_device_poll(w->dev, TILES_NS));
		MUST(hal_queue_suspend(t->queue, mode, &p));
		wait_for(p);
		MUST(hal_queue_get_stats(t->queue, &stats));
		if (stats.saved_bytes == 0)
			die("nothing was saved");
	} else if (way == FOLDED || way == KILLED || way == SAVED) {
		if (w->spin == NULL || (w->info.suspend_modes >> mode & 1) == 0)
			return false;
		(void)submit(t, hal_cmd_launch(w->spin, &arg, 1));
		MUST(hal_device_poll(w->dev, CONF_SPIN_NS / 3));
		MUST(hal_queue_suspend(t->queue, mode, &p));
		wait_for(p);
	}
	return true;
}

/* Words found; UINT64_MAX: that cannot be done here. */
static uint64_t trial(struct world *w, enum way way)
{
	static struct tenant first, next, host;
	bool guest = way == GUEST, there = way == SAVED;
	uint64_t n;

	if ((way == GUEST && w->info.guests_max == 0) ||
	    (way == BIMODAL && (w->info.caps & HAL_CAP_BIMODAL) == 0) ||
	    (way == EVICTED && (w->info.caps & HAL_CAP_EVICT) == 0))
		return UINT64_MAX;
	if (guest)
		make(w, &host, NULL, way);
	make(w, &first, guest ? host.part : NULL, way);
	if (there) /* its ring and tables come to lie elsewhere */
		make(w, &next, NULL, way);
	leave_secrets(&first);
	if (!end(w, &first, way)) {
		away(&first);
		if (there)
			away(&next);
		return UINT64_MAX;
	}
	away(&first);
	if (!there)
		make(w, &next, guest ? host.part : NULL, DESTROYED);
	n = search(&next);
	away(&next);
	if (guest)
		away(&host);
	return n;
}

static uint64_t control(struct world *w)
{
	static struct tenant t;
	uint64_t n = 0;

	make(w, &t, NULL, DESTROYED);
	leave_secrets(&t);
	for (uint32_t i = 0; i < t.count; i++)
		n += found_in(t.chunk[i], BYTES, false);
	away(&t);
	return n;
}

/* One multiplication of many tiles, chunk 1 = chunk 0 x chunk 0. */
static void load_tiles(struct world *w)
{
	static const int32_t mult = 1073741824, shift = -6;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_builder *b;
	void *image;
	size_t size;

	if (strcmp(w->info.backend, "npu") != 0)
		return;
	op.m = BYTES / 64;
	op.n = op.k = 64;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	MUST(hal_npu_builder_create(&b));
	MUST(hal_npu_kernel(b, "tiles"));
	MUST(hal_npu_arg(b, BYTES, &op.a.id));
	MUST(hal_npu_arg(b, BYTES, &op.d.id));
	op.b = op.a;
	MUST(hal_npu_gemm(b, &op));
	MUST(hal_npu_build(b, &image, &size));
	hal_npu_builder_destroy(b);
	MUST(hal_program_load(w->dev, image, size, &w->tiles_prog));
	hal_npu_image_free(image);
	MUST(hal_kernel_find(w->tiles_prog, "tiles", &w->tiles));
}

static void load(struct world *w)
{
	for (unsigned int i = 0; i < pack_count; i++) {
		void *image;
		size_t size;

		if (strcmp(packs[i]->backend, w->info.backend) != 0)
			continue;
		if (packs[i]->image(&image, &size) != 0)
			die("a program");
		MUST(hal_program_load(w->dev, image, size, &w->prog));
		packs[i]->free(image);
		MUST(hal_kernel_find(w->prog, "spin", &w->spin));
	}
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "npu:0?memory_size=4M";
	struct world w = {.info = HAL_INIT(hal_device_info)};
	uint64_t sum = 0, own;
	const char *const options[] = {"hal.oversubscribe=yes", NULL};
	int err = hal_open(target, options, &w.dev);

	if (err == -ENODEV) {
		printf("%s\n", hal_last_error());
		return 77;
	}
	MUST(err);
	MUST(hal_device_get_info(w.dev, &w.info));
	load(&w);
	load_tiles(&w);
	own = control(&w);
	for (int i = 0; i < WAYS; i++) {
		uint64_t n = trial(&w, (enum way)i);

		if (n == UINT64_MAX) {
			printf("%s: not on this device\n", names[i]);
			continue;
		}
		printf("%s: %llu words found\n", names[i], (unsigned long long)n);
		sum += n;
	}
	if (w.prog != NULL)
		MUST(hal_program_unload(w.prog));
	if (w.tiles_prog != NULL)
		MUST(hal_program_unload(w.tiles_prog));
	MUST(hal_close(w.dev));
	printf("figure scrub.found %llu\n", (unsigned long long)sum);
	printf("figure scrub.own_found %llu\n", (unsigned long long)own);
	return sum != 0 || own != 2 * BYTES / 4;
}
