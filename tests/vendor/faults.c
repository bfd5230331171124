/* SPDX-License-Identifier: Apache-2.0 */
/* Make every call of a vendor's library fail in turn: see faults.h. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

enum { DEVICES_MOST = 4 };

extern const struct hal_host host; /* of the vendor's host.c */
extern char host_text[512];

static const struct faults_vendor *const v = &faults_vendor;
static const struct hal_backend *b;
static struct faults_fake fake;
static uint32_t faults_made, faults_bad;

/* ---- steps --------------------------------------------------------------------------- */

bool faults_note(struct faults_world *w, int err, const char *text)
{
	if (err < 0 && !w->first.err) {
		w->first.err = err;
		snprintf(w->first.text, sizeof(w->first.text), "%s", text);
	}
	return err >= 0 && !w->first.err;
}

bool faults_step(struct faults_world *w, int err)
{
	return faults_note(w, err, host_text);
}

void faults_run_dry(struct faults_world *w)
{
	struct hal_bk_event ev[8];
	int n = 0, i, turns = 0;

	while (w->inflight && n >= 0 && turns++ < 10000) {
		n = w->b->hot.poll(w->dev, UINT64_MAX, ev, 8);
		for (i = 0; i < n; i++) {
			w->inflight--;
			faults_note(w, ev[i].status, ev[i].fault);
		}
	}
	w->lost |= n < 0;
	if (!w->lost)
		assert_int_equal(w->inflight, 0);
}

bool faults_submit(struct faults_world *w, const struct hal_bk_cmd *cmd)
{
	int err = w->b->hot.submit(w->dev, w->queue, cmd);

	if (err == -EAGAIN) {
		faults_run_dry(w);
		if (w->first.err)
			return false;
		err = w->b->hot.submit(w->dev, w->queue, cmd);
	}
	w->inflight += !err;
	return faults_step(w, err);
}

bool faults_launch(struct faults_world *w, void *kernel, const struct hal_bk_arg *args,
		   uint32_t count)
{
	const struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH,
				       .cookie = 1,
				       .launch = {.kernel = kernel,
						  .args = args,
						  .arg_count = count,
						  .groups = {1, 1, 1}}};

	return faults_submit(w, &cmd);
}

bool faults_load(struct faults_world *w, void *image, size_t size, void **prog,
		 void **kernel)
{
	const struct hal_bk_cold *cold = &w->b->cold;
	struct hal_bk_kernel_info info;
	uint64_t bytes;
	bool ok = faults_step(w, cold->program_load(w->dev, image, size, prog));

	/* A backend that binds programs reads the image once more. */
	if (ok && cold->program_bind)
		ok = faults_step(w, cold->program_bind(w->dev, *prog, w->part, &bytes));
	free(image);
	return ok && faults_step(w, cold->kernel_get(w->dev, *prog, 0, &info, kernel));
}

bool faults_refused(struct faults_world *w, void *image, size_t size,
		    const char *const *texts)
{
	void *prog = NULL;
	const int err = w->b->cold.program_load(w->dev, image, size, &prog);

	free(image);
	while (err == -EINVAL && *texts && strstr(host_text, *texts))
		texts++;
	return !*texts || faults_step(w, err ? err : -EPROTO);
}

bool faults_move(struct faults_world *w)
{
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 3, .rows = 1, .cols = 3};
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, 1000, 0}};

	if (!faults_launch(w, w->kernel, args, 2) ||
	    !faults_step(w, w->b->hot.resize(w->dev, w->part, &to, 9)))
		return false;
	w->inflight++; /* QUIET */
	if (!faults_launch(w, w->kernel, args, 2))
		return false;
	faults_run_dry(w);
	return !w->first.err;
}

/* Launch work three times, which adds 1 to mem[0]; fill, copy to mem[1], write the time
 * to mem[2], and check the results. */
static bool compute(struct faults_world *w)
{
	const struct hal_bk_arg args[2] = {{w->mem[0], 0, 64}, {NULL, v->work_ns, 0}};
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 2};
	struct hal_bk_cmd copy = {.op = HAL_OP_COPY, .cookie = 3};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 4};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 5};
	uint32_t zero = 0, got[2] = {0, 0};
	uint64_t time = 0;
	int i;

	fill.fill.dst = w->mem[0];
	fill.fill.offset = 4;
	fill.fill.bytes = 4;
	fill.fill.pattern = 77;
	copy.copy.dst = w->mem[1];
	copy.copy.src = w->mem[0];
	copy.copy.bytes = 8;
	stamp.timestamp.dst = w->mem[2];
	if (!faults_step(w, w->b->cold.mem_write(w->dev, w->mem[0], 0, &zero, 4)))
		return false;
	for (i = 0; i < 3; i++)
		if (!faults_launch(w, w->kernel, args, 2))
			return false;
	if (!faults_submit(w, &fill) || !faults_submit(w, &copy) ||
	    !faults_submit(w, &stamp) || !faults_submit(w, &nop))
		return false;
	faults_run_dry(w);
	if (w->first.err ||
	    !faults_step(w, w->b->cold.mem_read(w->dev, w->mem[1], 0, got, 8)) ||
	    !faults_step(w, w->b->cold.mem_read(w->dev, w->mem[2], 0, &time, 8)))
		return false;
	assert_int_equal(got[0], 3);
	assert_int_equal(got[1], 77);
	assert_true(time >= 3 * v->work_ns);
	return true;
}

/* Copy from allocated host memory to mem[0], and from there to registered memory. */
static bool copy_host(struct faults_world *w)
{
	static uint32_t own[2048] __attribute__((aligned(4096)));
	const struct hal_bk_colors colors = {.mask = v->part.color_mask};
	struct hal_bk_cmd cmd = {.op = HAL_OP_COPY, .cookie = 6};
	const struct hal_bk_cold *cold = &w->b->cold;
	void *p;

	if (!cold->mem_register)
		return true;
	own[1] = 0;
	if (!faults_step(w, cold->mem_alloc(w->dev, w->part, 64,
					    colors.mask ? &colors : NULL, HAL_BK_MEM_HOST,
					    &w->host[0])) ||
	    !faults_step(w, cold->mem_map(w->dev, w->host[0], &p)) ||
	    !faults_step(w, cold->mem_register(w->dev, w->part, own, sizeof(own),
					       &w->host[1])))
		return false;
	*(uint32_t *)p = 41;
	cmd.copy.dst = w->mem[0];
	cmd.copy.src = w->host[0];
	cmd.copy.bytes = 4;
	if (!faults_submit(w, &cmd))
		return false;
	cmd.copy.dst = w->host[1];
	cmd.copy.src = w->mem[0];
	cmd.copy.dst_offset = 4;
	if (!faults_submit(w, &cmd))
		return false;
	faults_run_dry(w);
	if (!w->first.err)
		assert_int_equal(own[1], 41);
	return !w->first.err;
}

/* Read through an import what was written to memory that was exported. */
static bool share(struct faults_world *w)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	const struct hal_bk_cold *cold = &w->b->cold;
	const uint64_t both = HAL_CAP_EXPORT | HAL_CAP_IMPORT;
	const struct hal_bk_colors first = {.mask = 1}, *colors;
	uint32_t put = 4711, got = 0;
	int fd = -1;
	bool ok;

	if (!faults_step(w, cold->get_info(w->dev, &info)))
		return false;
	if ((info.caps & both) != both)
		return true;
	colors = info.colors ? &first : NULL;
	if (!faults_step(w, cold->mem_alloc(w->dev, w->part, 64, colors,
					    HAL_BUFFER_EXPORTABLE, &w->shared[0])) ||
	    !faults_step(w, cold->mem_write(w->dev, w->shared[0], 8, &put, 4)) ||
	    !faults_step(w, cold->mem_export(w->dev, w->shared[0], &fd)))
		return false;
	ok = faults_step(w, cold->mem_import(w->dev, w->part, fd, 64, 0, &w->shared[1]));
	(void)close(fd);
	if (!ok || !faults_step(w, cold->mem_read(w->dev, w->shared[1], 8, &got, 4)))
		return false;
	assert_int_equal(got, put);
	return true;
}

void faults_put_away(struct faults_world *w)
{
	const struct hal_bk_cold *cold = &w->b->cold;
	int i;

	if (w->queue)
		faults_run_dry(w);
	if (w->other)
		faults_step(w, cold->program_unload(w->dev, w->other));
	if (w->queue)
		faults_step(w, cold->queue_destroy(w->dev, w->queue));
	for (i = 0; i < 3; i++)
		if (w->mem[i])
			faults_step(w, cold->mem_free(w->dev, w->mem[i]));
	for (i = 0; i < 2; i++)
		if (w->host[i])
			faults_step(w, cold->mem_free(w->dev, w->host[i]));
	for (i = 0; i < 2; i++)
		if (w->shared[i])
			faults_step(w, cold->mem_free(w->dev, w->shared[i]));
	if (w->prog)
		faults_step(w, cold->program_unload(w->dev, w->prog));
	if (w->part)
		faults_step(w, cold->partition_destroy(w->dev, w->part));
	if (w->dev)
		cold->close(w->dev);
}

/* ---- a run --------------------------------------------------------------------------- */

static bool probe(struct faults_world *w, const struct hal_bk_config *cfg)
{
	struct hal_device_info info[DEVICES_MOST];
	uint32_t i;
	bool ok;

	memset(info, 0, sizeof(info));
	assert_true(v->devices <= DEVICES_MOST);
	for (i = 0; i < v->devices; i++)
		info[i].size = sizeof(info[i]);
	ok = faults_step(w, b->cold.probe(cfg, info, v->devices));
	for (i = 0; ok && i < v->devices; i++)
		ok = faults_step(w, strncmp(info[i].name, "unusable", 8) == 0 ? -EIO : 0);
	return ok;
}

static bool open_device(struct faults_world *w, const struct hal_bk_config *cfg)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	return faults_step(w, b->cold.open(cfg, v->device, &w->dev)) &&
	       faults_step(w, b->cold.get_info(w->dev, &info)) &&
	       faults_step(w, b->cold.partition_create(w->dev, &v->part, &w->part));
}

static bool make_queue(struct faults_world *w)
{
	return faults_step(w, b->cold.queue_create(w->dev, w->part, 0, &w->queue));
}

static bool make_buffers(struct faults_world *w)
{
	const struct hal_bk_colors colors = {.mask = v->part.color_mask};
	bool ok = true;
	int i;

	for (i = 0; ok && i < 3; i++)
		ok = faults_step(w, b->cold.mem_alloc(w->dev, w->part, v->bytes,
						      colors.mask ? &colors : NULL,
						      i == 1 ? v->flags : 0, &w->mem[i]));
	return ok;
}

/* Do once what the backend can do, up to the first error. */
static struct faults_outcome run(const struct faults_way *way)
{
	struct faults_world w = {.b = b};
	const bool will_fail = fake.armed() != 0;
	bool ok = probe(&w, way->cfg) && open_device(&w, way->cfg);

	if (ok && v->strict_start && will_fail && !fake.armed())
		ok = faults_note(&w, -ENOTRECOVERABLE, "no error up to the partition");
	ok = ok && (!v->queue_first || make_queue(&w)) && make_buffers(&w) &&
	     (v->queue_first || make_queue(&w)) && v->load(&w) && compute(&w) &&
	     copy_host(&w) && share(&w) && (!way->more || way->more(&w));
	(void)ok;
	faults_put_away(&w);
	return w.first;
}

/* ---- failures ------------------------------------------------------------------------ */

static bool listed(const char *call, const char *const *names)
{
	while (names && *names && strcmp(call, *names) != 0)
		names++;
	return names && *names;
}

static void complain(const char *call, uint64_t nth, const struct faults_result *r,
		     const struct faults_outcome *o, const char *why)
{
	faults_bad++;
	print_error("%s number %u returns %s: %s: errno %d, text \"%s\"\n", call,
		    (unsigned)nth, r->name, why, -o->err, o->text);
}

static void fail_once(const struct faults_way *way, const char *call, uint64_t nth,
		      bool silent, const struct faults_result *r)
{
	const bool later = r->later == FAULTS_LATER ||
			   (r->later == FAULTS_LATER_IF_SILENT && silent);
	struct faults_outcome o;
	const char *misuse;
	uint32_t live;

	fake.reset();
	live = fake.live();
	assert_int_equal(fake.break_call(call, nth, r->result), 0);
	o = run(way);
	if (fake.armed())
		return; /* this run made fewer calls of that name */
	faults_made++;
	if (o.err) {
		if ((!strstr(o.text, call) && !later) || !strstr(o.text, r->name))
			complain(call, nth, r, &o, "the text does not name it");
		/* A command that fails is a fault of the device, whatever the call was.
		 */
		else if (-o.err != r->err && o.err != -EIO &&
			 (o.err != -EINVAL || !listed(call, v->strange)))
			complain(call, nth, r, &o, "another errno than it must have");
	} else if (!silent) {
		complain(call, nth, r, &o, "the backend does not report it");
	}
	if (fake.live() != live)
		complain(call, nth, r, &o, "objects are left at the library");
	if (fake.misuse(&misuse))
		complain(call, nth, r, &o, misuse);
}

/* Run without a failure; return how many calls there were. */
static uint64_t run_well(const struct faults_way *way, const char *when)
{
	struct faults_outcome o;
	const char *misuse = "";

	fake.reset();
	o = run(way);
	if (o.err)
		fail_msg("%s, %s: %d %s", way->name, when, o.err, o.text);
	if (fake.misuse(&misuse))
		fail_msg("%s, %s: %s", way->name, when, misuse);
	return fake.calls(NULL);
}

/* Count how often each call is made, and find the first time at which close makes it.  An
 * open and its close alone show how many times those are. */
static void count(const struct faults_way *way, uint64_t *times, uint64_t *closing)
{
	void *dev = NULL;
	uint32_t c;

	(void)run_well(way, "without a failure");
	for (c = 0; c < v->call_count; c++)
		times[c] = fake.calls(v->calls[c]);
	fake.reset();
	assert_int_equal(b->cold.open(way->cfg, 0, &dev), 0);
	for (c = 0; c < v->call_count; c++)
		closing[c] = times[c] + 1 + fake.calls(v->calls[c]);
	b->cold.close(dev);
	for (c = 0; c < v->call_count; c++)
		closing[c] -= fake.calls(v->calls[c]);
}

/* May the nth of that many calls fail unreported? */
static bool is_silent(const char *call, uint64_t nth, uint64_t times, uint64_t closing)
{
	return listed(call, v->silent) || (v->silent_here && v->silent_here(call)) ||
	       (nth == times && listed(call, v->silent_last)) ||
	       (nth == 1 && listed(call, v->silent_first)) ||
	       (nth >= closing && listed(call, v->silent_in_close));
}

/* Case of one way: each call fails, each time. */
static void each_call(void **state)
{
	const struct faults_way *way = *state;
	uint64_t *times = calloc(v->call_count, 2 * sizeof(*times)), n;
	uint64_t *closing = times + v->call_count;
	uint32_t c;

	assert_non_null(times);
	count(way, times, closing);
	for (c = 0; c < v->call_count; c++) {
		const char *call = v->calls[c];

		if (listed(call, v->once))
			continue;
		for (n = 1; n <= times[c] && (!v->most || n <= v->most); n++)
			fail_once(way, call, n, is_silent(call, n, times[c], closing[c]),
				  &v->results[(c + n) % v->result_count]);
	}
	free(times);
	(void)run_well(way, "after all failures");
	assert_int_equal(faults_bad, 0);
}

/* The runs make every call that the backend has, but for those of other tests. */
static void every_call(void **state)
{
	uint32_t c, i, missing = 0;

	(void)state;
	for (c = 0; c < v->call_count; c++) {
		const char *call = v->calls[c];
		uint64_t calls = 0;

		if (listed(call, v->once) || listed(call, v->elsewhere) ||
		    (v->elsewhere_here && v->elsewhere_here(call)))
			continue;
		for (i = 0; i < v->way_count && !calls; i++) {
			(void)run_well(&v->ways[i], "without a failure");
			calls = fake.calls(call);
		}
		missing += !calls;
		if (!calls)
			print_error("%s is never called\n", call);
	}
	assert_int_equal(missing, 0);
}

static int setup(void **state)
{
	(void)state;
	if (!v->prepare(&fake))
		return -1;
	b = v->backend(&host);
	return b ? 0 : -1;
}

int main(void)
{
	struct cases c = {.count = 0};
	uint32_t i;
	int rc;

	for (i = 0; i < v->way_count; i++)
		cases_add(&c, v->ways[i].name, each_call, &v->ways[i]);
	cases_add(&c, "every_call", every_call, NULL);
	rc = cases_run(&c, v->cases, v->case_count, setup);
	printf("figure %s.faults.calls %u\n", v->name, faults_made);
	printf("figure %s.faults.bad %u\n", v->name, faults_bad);
	return rc;
}
