/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.c - hal-gpu-measure: memory in ranges (memory=vmm), and kernels that are kept to
 * them (bounds=yes): what they cost, and that they do what they say. */
#include <errno.h>

#include "measure.h"

#define KIB UINT64_C(1024)
#define MIB UINT64_C(1048576)

/* ---- memory=vmm -------------------------------------------------------------------- */

static void fill_floats(struct hal_buffer *m, float first, uint32_t n)
{
	float *to = malloc(n * sizeof(*to));
	uint32_t i;

	if (!to)
		gpu_failed("no memory");
	for (i = 0; i < n; i++)
		to[i] = first + (float)(i % 1000);
	TRY(hal_buffer_write(m, 0, to, n * sizeof(*to)));
	free(to);
}

/* Of n sums of two rows, those that are not first + 2 * their place. */
static uint32_t wrong_sums(struct hal_buffer *m, float first, uint32_t n)
{
	float *got = malloc(n * sizeof(*got));
	uint32_t i, wrong = 0;

	if (!got)
		gpu_failed("no memory");
	TRY(hal_buffer_read(m, 0, got, n * sizeof(*got)));
	for (i = 0; i < n; i++)
		wrong += got[i] != first + 2 * (float)(i % 1000);
	free(got);
	return wrong;
}

/* So many buffers, each with its own sum; the places that were wrong.  Every second one
 * is given back and made again, so that ranges have holes. */
static uint32_t sums_in_many(const struct tenant *t, uint64_t bytes)
{
	enum { BUFFERS = 24, NUMBERS = 4096 };
	struct hal_buffer *m[BUFFERS];
	uint32_t i, turn, wrong = 0;

	for (i = 0; i < BUFFERS; i++)
		m[i] = gpu_buffer(t->part, bytes);
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < BUFFERS; i++)
			fill_floats(m[i], (float)i, NUMBERS);
		for (i = 0; i < BUFFERS; i++) {
			struct hal_arg args[] = {{.buffer = m[i]},
						 {.buffer = m[i]},
						 {.buffer = m[i]},
						 {.offset = NUMBERS}};

			wait_for(gpu_launch(t->queue, t->gpu->program, "vector_add", args,
					    4, NUMBERS / GPU_BLOCK));
		}
		for (i = 0; i < BUFFERS; i++)
			wrong += wrong_sums(m[i], 2 * (float)i, NUMBERS);
		for (i = 0; !turn && i < BUFFERS; i += 2) {
			TRY(hal_buffer_destroy(m[i]));
			m[i] = gpu_buffer(t->part, bytes / 2);
		}
	}
	for (i = 0; i < BUFFERS; i++)
		TRY(hal_buffer_destroy(m[i]));
	return wrong;
}

static void time_buffers(const struct tenant *t, uint64_t bytes, const char *text)
{
	static uint64_t made[TIMES_MOST], gone[TIMES_MOST];
	const uint64_t until = now_ns() + BUDGET_NS / 4;
	char of[64], name[32];
	uint32_t n = 0;

	while (n < times && now_ns() < until) {
		struct hal_buffer *m;

		made[n] = now_ns();
		m = gpu_buffer(t->part, bytes);
		gone[n] = now_ns();
		made[n] = gone[n] - made[n];
		TRY(hal_buffer_destroy(m));
		gone[n] = now_ns() - gone[n];
		n++;
	}
	(void)snprintf(of, sizeof(of), "a buffer of %s, made", text);
	(void)snprintf(name, sizeof(name), "vmm.%s.made", text);
	(void)say(of, name, made, n);
	(void)snprintf(of, sizeof(of), "a buffer of %s, given back", text);
	(void)snprintf(name, sizeof(name), "vmm.%s.gone", text);
	(void)say(of, name, gone, n);
}

void measure_vmm(void)
{
	struct tenant t = tenant_on(&gpu, 0);
	uint32_t wrong;

	time_buffers(&t, 64 * KIB, "64k");
	time_buffers(&t, 2 * MIB, "2m");
	time_buffers(&t, 64 * MIB, "64m");
	wrong = sums_in_many(&t, 64 * KIB) + sums_in_many(&t, 3 * MIB);
	printf("sums in 48 buffers, half of them made anew, that were wrong | %u\n",
	       wrong);
	figure("vmm.wrong", "sums", wrong);
	end(&t);
	if (wrong)
		gpu_failed("vmm: what a kernel wrote is not there");
}

/* ---- bounds=yes -------------------------------------------------------------------- */

/* A sum whose second block lies behind all that its partition has: it has to fail, and
 * the neighbour's memory to be as it was. */
void measure_stray(void)
{
	enum { NUMBERS = 4096 };
	const uint64_t bytes =
		2 * MIB; /* a granule, as far as is known: none is behind */
	const bool parts = gpu.info.partitions_max > 1;
	static const char told[] = "outside its partition's range";
	struct tenant a = tenant_on(&gpu, parts ? gpu.info.unit_cols / 2 : 0), b;
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_buffer *last = gpu_buffer(a.part, bytes), *kept;
	struct hal_arg args[] = {
		{.buffer = last, .offset = bytes - UINT64_C(4) * GPU_BLOCK},
		{.buffer = last},
		{.buffer = last},
		{.offset = UINT64_C(2) * GPU_BLOCK}};
	struct hal_point done;
	uint32_t wrong;
	int err;

	b = parts ? tenant_on(&gpu, gpu.info.unit_cols - a.units) : second(&a, &plain);
	kept = gpu_buffer(b.part, NUMBERS * sizeof(float));
	fill_floats(kept, 5, NUMBERS);
	done = gpu_launch(a.queue, gpu.program, "vector_add", args, 4, 1);
	err = hal_wait(&done, 1, 0, HAL_FOREVER);
	if (err)
		gpu_failed("stray: a sum inside its range has failed");
	done = gpu_launch(a.queue, gpu.program, "vector_add", args, 4, 2);
	err = hal_wait(&done, 1, 0, HAL_FOREVER);
	printf("a sum that reaches behind its partition's range | %s\n",
	       err ? hal_last_error() : "it ends well");
	if (err != -EIO || !strstr(hal_last_error(), told))
		gpu_failed("stray: it is not told: bounds=yes?");
	/* Others go on, and nothing of theirs has changed. */
	args[0] = args[1] = args[2] = (struct hal_arg){.buffer = kept};
	args[3].offset = NUMBERS;
	wait_for(gpu_launch(b.queue, gpu.program, "vector_add", args, 4,
			    NUMBERS / GPU_BLOCK));
	wrong = wrong_sums(kept, 10, NUMBERS);
	printf("sums of a neighbour's after it that were wrong | %u\n", wrong);
	figure("stray.neighbour_wrong", "sums", wrong);
	figure("stray.told", "of_1", 1);
	TRY(hal_buffer_destroy(kept));
	TRY(hal_buffer_destroy(last));
	if (parts)
		end(&b);
	else
		end_second(&b);
	end(&a);
	if (wrong)
		gpu_failed("stray: a neighbour's memory has changed");
}

void measure_bounds(void)
{
	const struct gpu fenced = take_turns("bounds", "bounds=yes");

	gpu_close(&fenced);
}
