/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - hal-gpu-measure: what a launch costs: beside the same by hand, with
 * preempt=block, recorded, with much local memory. */
#include <hal/gpu.h>

#include "measure.h"

/* The same launch by hand: as a program makes it that knows nothing of hal. */
struct by_hand {
	struct gpu_library library;
	void *module, *function, *stream;
	uint64_t memory;
	int n;
	void *params[4];
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z,
		      unsigned shared, void *stream, void **params, void **extra);
	int (*wait)(void *stream);
};

/* What a compiler made, without the table in front of it. */
static void load_by_hand(struct by_hand *h)
{
	typedef int (*cuda_load_fn)(void **, const void *, unsigned, void *, void **);
	typedef int (*hip_load_fn)(void **, const void *);
	typedef int (*function_fn)(void **, void *, const char *);
	const struct gpu_library *l = &h->library;
	size_t size, n;
	char *image = gpu_image(kernels, &size);

	n = l->hip ? ((struct hal_rocm_image *)(void *)image)->code_bytes
		   : ((struct hal_cuda_image *)(void *)image)->module_bytes;
	if (l->hip)
		GPU_CALL(l, hip_load_fn, "hipModuleLoadData", &h->module,
			 image + size - n);
	else
		GPU_CALL(l, cuda_load_fn, "cuModuleLoadDataEx", &h->module,
			 image + size - n, 0, NULL, NULL);
	free(image);
	GPU_CALL(l, function_fn, l->hip ? "hipModuleGetFunction" : "cuModuleGetFunction",
		 &h->function, h->module, "vector_add");
	if (!l->hip)
		GPU_CALL(l, gpu_with_fn, "cuFuncLoad", h->function);
}

static void begin_by_hand(struct by_hand *h)
{
	h->library = gpu_start(target);
	load_by_hand(h);
	h->memory = gpu_allocate(&h->library, ROOM);
	h->stream = gpu_stream(&h->library);
	h->n = 256;
	h->params[0] = h->params[1] = h->params[2] = &h->memory;
	h->params[3] = &h->n;
	GPU_FIND(&h->library, &h->launch,
		 h->library.hip ? "hipModuleLaunchKernel" : "cuLaunchKernel");
	GPU_FIND(&h->library, &h->wait,
		 h->library.hip ? "hipStreamSynchronize" : "cuStreamSynchronize");
}

static void end_by_hand(struct by_hand *h)
{
	gpu_give_back(&h->library, h->stream, h->memory);
	GPU_CALL(&h->library, gpu_with_fn,
		 h->library.hip ? "hipModuleUnload" : "cuModuleUnload", h->module);
	gpu_end(&h->library);
}

static void launch_by_hand(const struct by_hand *h)
{
	if (h->launch(h->function, 1, 1, 1, GPU_BLOCK, 1, 1, 0, h->stream,
		      (void **)h->params, NULL))
		gpu_failed("a launch by hand");
}

/* In a row: so many, then the last one is waited for. */
enum { BATCH = 64 };

static double rate(uint32_t count, uint64_t ns)
{
	return (double)count * 1e9 / (double)ns;
}

/* Launches a second, of as many batches as ten thousand launches are. */
static double in_a_row(const struct tenant *t)
{
	const uint32_t count = 10 * times / BATCH * BATCH + BATCH;
	const uint64_t begin = now_ns();
	uint32_t i, k;

	for (i = 0; i < count; i += BATCH) {
		struct hal_point last;

		for (k = 0; k < BATCH; k++)
			last = add(t);
		wait_for(last);
	}
	return rate(count, now_ns() - begin);
}

static double in_a_row_by_hand(const struct by_hand *h)
{
	const uint32_t count = 10 * times / BATCH * BATCH + BATCH;
	const uint64_t begin = now_ns();
	uint32_t i, k;

	for (i = 0; i < count; i += BATCH) {
		for (k = 0; k < BATCH; k++)
			launch_by_hand(h);
		if (h->wait(h->stream))
			gpu_failed("a wait by hand");
	}
	return rate(count, now_ns() - begin);
}

void measure_launch(void)
{
	static uint64_t submit[TIMES_MOST], all[TIMES_MOST];
	struct tenant t = tenant_on(&gpu, 0);
	double ours[3], bare[3];
	struct by_hand h;
	uint32_t i;

	for (i = 0; i < 10; i++)
		wait_for(add(&t));
	for (i = 0; i < times; i++) {
		const uint64_t begin = now_ns();
		const struct hal_point done = add(&t);

		submit[i] = now_ns() - begin;
		wait_for(done);
		all[i] = now_ns() - begin;
	}
	ours[0] = (double)say("hal_submit of a launch", "launch.submit", submit, times);
	ours[1] =
		(double)say("launch of one block, to the end", "launch.end", all, times);
	ours[2] = in_a_row(&t);
	end(&t);
	begin_by_hand(&h);
	for (i = 0; i < times + 10; i++) {
		const uint64_t begin = now_ns();
		const uint32_t at = i < 10 ? 0 : i - 10;

		launch_by_hand(&h);
		submit[at] = now_ns() - begin;
		if (h.wait(h.stream))
			gpu_failed("a wait by hand");
		all[at] = now_ns() - begin;
	}
	bare[0] = (double)say("launch by hand", "by_hand.submit", submit, times);
	bare[1] = (double)say("launch of one block by hand, to the end", "by_hand.end",
			      all, times);
	bare[2] = in_a_row_by_hand(&h);
	end_by_hand(&h);
	printf("hal_submit minus a launch by hand, p50 | %.2f us\n",
	       (ours[0] - bare[0]) / 1e3);
	printf("launch of one block minus that by hand, to the end, p50 | %.2f us\n",
	       (ours[1] - bare[1]) / 1e3);
	printf("launches a second, %d at a time | %.0f, by hand %.0f, ratio %.3f\n",
	       BATCH, ours[2], bare[2], ours[2] / bare[2]);
	figure("launch.end_more", "us", (ours[1] - bare[1]) / 1e3);
	figure("launch.rate", "per_s", ours[2]);
	figure("by_hand.rate", "per_s", bare[2]);
	figure("launch.rate_of_by_hand", "share", ours[2] / bare[2]);
}

/* ---- what preempt=block costs, and what bounds=yes does ---------------------------- */

static uint64_t busy_by(const struct tenant *t, const char *kernel,
			struct hal_buffer *const *m, uint32_t n, uint32_t blocks)
{
	struct hal_arg args[] = {
		{.buffer = m[0]}, {.buffer = m[1]}, {.buffer = m[2]}, {.offset = n}};
	const uint64_t before = busy_of(t);

	wait_for(gpu_launch(t->queue, t->gpu->program, kernel, args, 4, blocks));
	return busy_of(t) - before;
}

/* The two take turns, so that what changes meanwhile changes both. */
static void turns_of(const char *name_of, const char *option, struct tenant *two,
		     struct hal_buffer *(*m)[3], const char *kernel, uint32_t n,
		     uint32_t blocks, const char *text)
{
	static uint64_t took[2][TIMES_MOST];
	const uint64_t until = now_ns() + BUDGET_NS / 2;
	uint32_t i = 0, k;
	char name[32];
	double share;

	for (k = 0; k < 2; k++)
		(void)busy_by(&two[k], kernel, m[k], n, blocks);
	for (; i < times && (!i || now_ns() < until); i++)
		for (k = 0; k < 2; k++)
			took[k][i] = busy_by(&two[k], kernel, m[k], n, blocks);
	for (k = 0; k < 2; k++) {
		char of[128];

		(void)snprintf(name, sizeof(name), "%s.%s%s%s", name_of, kernel,
			       k ? "." : "", k ? strchr(option, '=') + 1 : "");
		(void)snprintf(of, sizeof(of), "%s, time of the device%s%s", text,
			       k ? ", " : "", k ? option : "");
		(void)say(of, name, took[k], i);
	}
	i /= 2;
	if (!took[0][i]) {
		printf("%s, %s takes more, p50 | not measured: the device gave no time\n",
		       text, option);
		return;
	}
	share = (double)took[1][i] / (double)took[0][i] - 1;
	printf("%s, %s takes more, p50 | %.2f %%\n", text, option, 100 * share);
	(void)snprintf(name, sizeof(name), "%s.%s_cost", name_of, kernel);
	figure(name, "share", share);
}

/* Both fill the device many times over: 4096 long blocks, and 65536 that are short. */
struct gpu take_turns(const char *name, const char *option)
{
	const bool few = times < TIMES_MOST;
	const uint32_t n = few ? 128 : 1024, blocks = few ? 4096 : LONG;
	const uint64_t bytes = UINT64_C(4) * GPU_BLOCK * blocks;
	struct hal_buffer *m[2][3];
	struct gpu with_it;
	struct tenant two[2];
	char with[256], text[64];
	uint32_t k, i;

	(void)snprintf(with, sizeof(with), "%s%c%s", target,
		       strchr(target, '?') ? '&' : '?', option);
	with_it = gpu_open(with);
	two[0] = tenant_on(&gpu, 0);
	two[1] = tenant_on(&with_it, 0);
	for (k = 0; k < 2; k++)
		for (i = 0; i < 3; i++)
			m[k][i] = gpu_buffer(two[k].part, bytes);
	(void)snprintf(text, sizeof(text), "product of %u x %u", n, n);
	turns_of(name, option, two, m, "product", n, n * n / GPU_BLOCK, text);
	(void)snprintf(text, sizeof(text), "sum of %u numbers", blocks * GPU_BLOCK);
	turns_of(name, option, two, m, "vector_add", blocks * GPU_BLOCK, blocks, text);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 3; i++)
			TRY(hal_buffer_destroy(m[k][i]));
		end(&two[k]);
	}
	return with_it;
}

void measure_entry(void)
{
	const struct gpu stops = take_turns("entry", "preempt=block");

	gpu_close(&stops);
}

/* ---- what slices cost --------------------------------------------------------------- */

static void say_slices(const char *kernel, const char *text)
{
	const struct hal_gpu_extension *ext = hal_device_get_extension(gpu.dev, "gpu");
	struct hal_gpu_slices s = {.size = sizeof(s)};

	if (!ext || ext->size < sizeof(*ext) || !ext->slices)
		gpu_failed("slices: the backend cuts no launches");
	TRY(ext->slices(hal_device_get_native(gpu.dev), kernel, &s));
	printf("%s, slices of a launch, calls of the driver for one, a block | %.1f, "
	       "%.2f, %.2f us\n",
	       text, s.launches ? (double)s.slices / (double)s.launches : 1,
	       s.slices ? (double)s.calls / (double)s.slices : 0,
	       (double)s.block_ns / 1e3);
}

/* The same launches of two queues, of which those of best effort are cut. */
void measure_slices(void)
{
	const struct hal_queue_desc effort = {.size = sizeof(effort),
					      .service_class = HAL_CLASS_BEST_EFFORT};
	const bool few = times < TIMES_MOST;
	const uint32_t n = few ? 128 : 1024, blocks = few ? 4096 : LONG;
	struct tenant two[2];
	struct hal_buffer *m[2][3];
	char text[64];
	uint32_t i;

	two[0] = tenant_on(&gpu, 0);
	two[1] = second(&two[0], &effort);
	for (i = 0; i < 3; i++)
		m[0][i] = m[1][i] =
			gpu_buffer(two[0].part, UINT64_C(4) * GPU_BLOCK * blocks);
	(void)snprintf(text, sizeof(text), "product of %u x %u", n, n);
	turns_of("slices", "slice_us=50", two, m, "product", n, n * n / GPU_BLOCK, text);
	say_slices("product", text);
	(void)snprintf(text, sizeof(text), "sum of %u numbers", blocks * GPU_BLOCK);
	turns_of("slices", "slice_us=50", two, m, "vector_add", blocks * GPU_BLOCK,
		 blocks, text);
	say_slices("vector_add", text);
	for (i = 0; i < 3; i++)
		TRY(hal_buffer_destroy(m[0][i]));
	end_second(&two[1]);
	end(&two[0]);
}

/* ---- recorded launches ------------------------------------------------------------- */

void measure_graphs(void)
{
	enum { EIGHT = 8 };
	static uint64_t took[TIMES_MOST], recorded[TIMES_MOST];
	struct tenant t = tenant_on(&gpu, 0);
	struct hal_arg args[] = {
		{.buffer = t.mem}, {.buffer = t.mem}, {.buffer = t.mem}, {.offset = 256}};
	struct hal_submit_desc work = {.size = sizeof(work), .cmd_count = EIGHT};
	struct hal_cmd cmds[EIGHT];
	struct hal_sequence *sequence;
	struct hal_kernel *kernel;
	uint32_t i, k;
	double single, graph;

	TRY(hal_kernel_find(gpu.program, "vector_add", &kernel));
	for (k = 0; k < EIGHT; k++)
		cmds[k] = hal_cmd_launch(kernel, args, 4);
	work.cmds = cmds;
	TRY(hal_sequence_create(t.part, &work, &sequence));
	for (i = 0; i < times + 10; i++) {
		const uint32_t at = i < 10 ? 0 : i - 10;
		struct hal_point done;
		uint64_t begin = now_ns();

		for (k = 0; k < EIGHT; k++)
			done = add(&t);
		wait_for(done);
		took[at] = now_ns() - begin;
		begin = now_ns();
		TRY(hal_sequence_submit(t.queue, sequence, NULL, &done));
		wait_for(done);
		recorded[at] = now_ns() - begin;
	}
	single =
		(double)say("eight launches, to the end", "graphs.single_8", took, times);
	graph = (double)say("eight recorded launches, to the end", "graphs.recorded_8",
			    recorded, times);
	printf("eight recorded launches, of eight single ones, p50 | %.3f\n",
	       graph / single);
	figure("graphs.recorded_of_single", "share", graph / single);
	single = in_a_row(&t);
	printf("launches a second, %d at a time, inflight=16 | %.0f\n", BATCH, single);
	figure("launch.inflight_16_rate", "per_s", single);
	TRY(hal_sequence_destroy(sequence));
	end(&t);
}

/* ---- local memory ------------------------------------------------------------------ */

/* A kernel whose threads have so many bytes of local memory, with the table in front. */
static struct hal_program *load_deep(struct hal_device *dev, uint32_t bytes)
{
	static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
				   ".visible .entry where(.param .u64 out)\n{\n"
				   "\t.local .align 8 .b8 stack[%u];\n"
				   "\t.reg .b64 %%d<4>;\n\t.reg .b32 %%r<2>;\n"
				   "\tld.param.u64 %%d0, [out];\n"
				   "\tmov.u64 %%d1, stack;\n"
				   "\tmov.u32 %%r0, %%clock;\n"
				   "\tand.b32 %%r0, %%r0, %u;\n"
				   "\tcvt.u64.u32 %%d2, %%r0;\n"
				   "\tadd.s64 %%d3, %%d1, %%d2;\n"
				   "\tst.local.u32 [%%d3], %%r0;\n"
				   "\tld.local.u32 %%r1, [%%d1+64];\n"
				   "\tst.global.u32 [%%d0], %%r1;\n"
				   "\tret;\n}\n";
	struct {
		struct hal_cuda_image head;
		struct hal_cuda_kernel kernel;
		char ptx[1024];
	} image = {.kernel = {.name = "where", .arg_count = 1}};
	struct hal_program *program;
	const int n = snprintf(image.ptx, sizeof(image.ptx), text, bytes, bytes - 4);

	image.head = (struct hal_cuda_image){.magic = HAL_CUDA_MAGIC,
					     .version = HAL_CUDA_VERSION,
					     .bytes = (uint32_t)(sizeof(image.head) +
								 sizeof(image.kernel) +
								 (size_t)n + 1),
					     .format = HAL_CUDA_PTX,
					     .kernel_count = 1,
					     .kernel_size = sizeof(image.kernel),
					     .module_bytes = (uint32_t)n + 1};
	TRY(hal_program_load(dev, &image, image.head.bytes, &program));
	return program;
}

/* A launch of 50 ms that has begun. */
static struct hal_point long_launch(const struct tenant *t, uint64_t rounds)
{
	const struct hal_point done = spin(t, rounds, 1);
	const uint64_t begin = now_ns();

	while (now_ns() - begin < 2000000)
		TRY(hal_device_poll(t->gpu->dev, 0));
	return done;
}

/* What room for local memory costs: the load that makes it, and the first launch that
 * needs it, each beside a launch of 50 ms.  A context keeps that room, so each step takes
 * more. */
void measure_local(void)
{
	static const uint32_t kib[] = {8, 16, 32};
	const struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant t = tenant_on(&gpu, 0), other = second(&t, &plain);
	const uint64_t rounds = rounds_of(&other, 50000000);
	struct hal_arg out[] = {{.buffer = t.mem}};
	uint32_t i;

	for (i = 0; i < sizeof(kib) / sizeof(kib[0]); i++) {
		struct hal_point busy = long_launch(&other, rounds);
		uint64_t loaded = now_ns(), launched;
		struct hal_program *deep = load_deep(gpu.dev, kib[i] * 1024);
		char name[48];

		loaded = now_ns() - loaded;
		wait_for(busy);
		busy = long_launch(&other, rounds);
		launched = now_ns();
		wait_for(gpu_launch(t.queue, deep, "where", out, 1, 1));
		launched = now_ns() - launched;
		wait_for(busy);
		TRY(hal_program_unload(deep));
		printf("%u KiB of local memory a thread, beside a launch of 50 ms | "
		       "loaded "
		       "in %.2f us, first launch to the end %.2f us\n",
		       kib[i], (double)loaded / 1e3, (double)launched / 1e3);
		(void)snprintf(name, sizeof(name), "local.%uk.load", kib[i]);
		figure(name, "us", (double)loaded / 1e3);
		(void)snprintf(name, sizeof(name), "local.%uk.first_launch", kib[i]);
		figure(name, "us", (double)launched / 1e3);
	}
	end_second(&other);
	end(&t);
}
