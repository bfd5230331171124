/* SPDX-License-Identifier: Apache-2.0 */
/* A small server, built step by step in docs/tutorial.md.  Two tenants share the units of
 * one device: "interactive" answers the requests on standard input, "batch" runs a fixed
 * number of jobs in the time that is left.  One thread sleeps in poll().
 *
 * Each line of standard input is one of
 *   NUMBER   a request, -128..127; the answer is 32 * NUMBER
 *   units N  resize the partition to N units while it runs
 * The server ends after the last line, when all work has completed. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/npu.h>
#include <hal/ref.h>

/* For start-up and shutdown, where an error ends the program. */
#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "tutorial: %s\n", hal_last_error()), exit(1))     \
		    : (void)0)

enum { M = 16, K = 32, N = 16 }; /* a layer: d[M][N] = a[M][K] * weights[K][N] */
enum { SLOTS = 4, JOBS = 24, JOBS_IN_FLIGHT = 2, LAUNCHES = 8, TAG_BATCH = SLOTS };

struct tenant {
	const char *name;
	struct hal_partition *part;
	struct hal_queue *queue;
};

/* One request in flight, with buffers of its own. */
struct slot {
	int busy, number;
	struct hal_buffer *in, *out;
};

static struct tenant interactive = {.name = "interactive"}, batch = {.name = "batch"};
static struct hal_device *dev;
static struct hal_program *program;
static struct hal_kernel *layer;
static struct hal_completions *ring;
static struct slot slots[SLOTS];
static struct hal_buffer *batch_in, *batch_out;
static int input_open = 1, jobs_left = JOBS, jobs_in_flight;
static int moved_fd = -1; /* of the resize in progress; -1: none */
static struct hal_point moved;

/* ---- the kernel ------------------------------------------------------------------- */

static int8_t weights[K][N];

static void load_npu(void)
{
	struct hal_npu_gemm gemm = {.size = sizeof(gemm), .m = M, .n = N, .k = K};
	struct hal_npu_builder *builder;
	void *image;
	size_t size;

	TRY(hal_npu_builder_create(&builder));
	TRY(hal_npu_kernel(builder, "layer"));
	TRY(hal_npu_arg(builder, M * N * sizeof(int32_t), &gemm.d.id));
	TRY(hal_npu_arg(builder, M * K, &gemm.a.id));
	TRY(hal_npu_const(builder, weights, sizeof(weights), &gemm.b.id));
	TRY(hal_npu_gemm(builder, &gemm));
	TRY(hal_npu_build(builder, &image, &size));
	TRY(hal_program_load(dev, image, size, &program));
	TRY(hal_npu_builder_destroy(builder));
	hal_npu_image_free(image); /* the device has its own copy */
}

/* The same kernel as a C function, for the software device. */
static int layer_on_ref(const struct hal_ref_call *call)
{
	int32_t *d = call->at(call, 0, 0, M * N * sizeof(*d));
	const int8_t *a = call->at(call, 1, 0, M * K);

	if (!d || !a)
		return -EIO;
	for (int i = 0; i < M * N; i++) {
		d[i] = 0;
		for (int k = 0; k < K; k++)
			d[i] += a[i / N * K + k] * weights[k][i % N];
	}
	return 0;
}

static void load_ref(void)
{
	static const struct hal_ref_kernel kernels[] = {
		{.name = "layer",
		 .fn = layer_on_ref,
		 .work = M * K * N, /* one ns of one unit for each multiplication */
		 .arg_count = 2,
		 .arg_bytes = {M * N * sizeof(int32_t), M * K}}};

	TRY(hal_ref_load(dev, kernels, 1, &program));
}

static void load_kernel(void)
{
	struct hal_device_info info = {.size = sizeof(info)};

	memset(weights, 1, sizeof(weights));
	TRY(hal_device_get_info(dev, &info));
	if (info.kind == HAL_KIND_NPU)
		load_npu();
	else if (!strcmp(info.backend, "ref"))
		load_ref();
	else {
		fprintf(stderr, "tutorial: no kernel for backend %s\n", info.backend);
		exit(1);
	}
	TRY(hal_kernel_find(program, "layer", &layer));
}

/* ---- start ------------------------------------------------------------------------ */

static void make_tenant(struct tenant *t)
{
	struct hal_queue_desc desc = {.size = sizeof(desc), .completions = ring};

	TRY(hal_partition_create_named(dev, t->name, &t->part));
	TRY(hal_queue_create(t->part, &desc, &t->queue));
}

static struct hal_buffer *make_buffer(struct tenant *t, uint64_t bytes)
{
	struct hal_buffer_desc desc = {.size = sizeof(desc), .bytes = bytes};
	struct hal_buffer *buf;

	TRY(hal_buffer_create(t->part, &desc, &buf));
	return buf;
}

static void start(const char *config)
{
	char file[512];
	const char *const options[] = {file, NULL};

	snprintf(file, sizeof(file), "hal.config=%s", config);
	TRY(hal_open(NULL, options, &dev));
	TRY(hal_completions_create(dev, 64, &ring));
	make_tenant(&interactive);
	make_tenant(&batch);
	load_kernel();
	for (int i = 0; i < SLOTS; i++) {
		slots[i].in = make_buffer(&interactive, M * K);
		slots[i].out = make_buffer(&interactive, M * N * sizeof(int32_t));
	}
	batch_in = make_buffer(&batch, M * K);
	batch_out = make_buffer(&batch, M * N * sizeof(int32_t));
}

/* ---- work ------------------------------------------------------------------------- */

/* Submit a request; a slot is free.  Returns 0 or -errno. */
static int submit_request(int number)
{
	struct hal_submit_desc work = {.size = sizeof(work), .cmd_count = 1};
	struct slot *s = slots;
	int8_t in[M * K];
	int rc;

	while (s->busy)
		s++;
	memset(in, number, sizeof(in));
	rc = hal_buffer_write(s->in, 0, in, sizeof(in));
	if (rc < 0)
		return rc;

	struct hal_arg args[] = {{.buffer = s->out}, {.buffer = s->in}};
	struct hal_cmd launch = hal_cmd_launch(layer, args, 2);

	work.cmds = &launch;
	work.tag = (uint64_t)(s - slots);
	rc = hal_submit(interactive.queue, &work, NULL);
	if (rc == 0) {
		s->busy = 1;
		s->number = number;
	}
	return rc;
}

/* Keep JOBS_IN_FLIGHT jobs in the batch queue until none is left. */
static void submit_jobs(void)
{
	struct hal_arg args[] = {{.buffer = batch_out}, {.buffer = batch_in}};
	struct hal_cmd launches[LAUNCHES];
	struct hal_submit_desc work = {.size = sizeof(work),
				       .cmds = launches,
				       .cmd_count = LAUNCHES,
				       .tag = TAG_BATCH};

	for (int i = 0; i < LAUNCHES; i++)
		launches[i] = hal_cmd_launch(layer, args, 2);
	while (jobs_left > 0 && jobs_in_flight < JOBS_IN_FLIGHT) {
		int rc = hal_submit(batch.queue, &work, NULL);

		if (rc == -EAGAIN)
			return; /* full: on_completions() tries again */
		if (rc < 0) {
			fprintf(stderr, "tutorial: batch ends with %d jobs left: %s\n",
				jobs_left, hal_last_error());
			jobs_left = 0;
			return;
		}
		jobs_left--;
		jobs_in_flight++;
	}
}

/* ---- events ----------------------------------------------------------------------- */

static void on_completions(void)
{
	struct hal_completion ends[16];
	int count = hal_completions_read(ring, ends, 16, 0);

	TRY(count);
	for (int i = 0; i < count; i++) {
		struct slot *s = &slots[ends[i].tag];
		int32_t answer;
		int rc = ends[i].status;

		if (ends[i].tag == TAG_BATCH) {
			jobs_in_flight--;
			if (rc < 0)
				fprintf(stderr, "tutorial: a job: %s\n",
					hal_strerror(rc));
			continue;
		}
		if (rc == 0)
			rc = hal_buffer_read(s->out, 0, &answer, sizeof(answer));
		if (rc == 0)
			printf("%d -> %d\n", s->number, answer);
		else
			printf("%d -> error: %s\n", s->number, hal_strerror(rc));
		s->busy = 0;
	}
	submit_jobs();
}

static void resize(uint32_t units)
{
	struct hal_partition_desc desc = {.size = sizeof(desc), .units_floor = units};

	if (hal_partition_resize(interactive.part, &desc, &moved) < 0) {
		fprintf(stderr, "tutorial: units %u: %s\n", units, hal_last_error());
		return;
	}
	moved_fd = hal_point_open_fd(&moved);
	TRY(moved_fd);
}

static void on_moved(void)
{
	struct hal_partition_info info = {.size = sizeof(info)};

	if (hal_wait(&moved, 1, 0, 0) < 0)
		fprintf(stderr, "tutorial: resize: %s\n", hal_last_error());
	close(moved_fd);
	moved_fd = -1;
	TRY(hal_partition_get_info(interactive.part, &info));
	fprintf(stderr, "tutorial: %s has %u units\n", info.name, info.units);
}

/* Parse all of text as a number from min to max.  Returns whether it is one. */
static int parse(const char *text, long min, long max, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(text, &end, 10);
	return end != text && *end == 0 && errno == 0 && *number >= min && *number <= max;
}

static void on_input(void)
{
	char line[64];
	long number;
	int rc;

	if (!fgets(line, sizeof(line), stdin)) {
		input_open = 0;
		return;
	}
	line[strcspn(line, "\n")] = 0;
	if (strncmp(line, "units ", 6) == 0 && parse(line + 6, 1, INT32_MAX, &number)) {
		resize((uint32_t)number);
	} else if (parse(line, INT8_MIN, INT8_MAX, &number)) {
		rc = submit_request((int)number);
		if (rc < 0)
			printf("%ld -> error: %s\n", number, hal_strerror(rc));
	} else {
		fprintf(stderr, "tutorial: \"%s\": neither -128..127 nor units N\n",
			line);
	}
}

static int requests_in_flight(void)
{
	int count = 0;

	for (int i = 0; i < SLOTS; i++)
		count += slots[i].busy;
	return count;
}

static void serve(void)
{
	struct pollfd fds[] = {
		{.events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};

	fds[0].fd = hal_completions_get_fd(ring);
	TRY(fds[0].fd);
	submit_jobs();
	while (input_open || requests_in_flight() || jobs_left || jobs_in_flight ||
	       moved_fd >= 0) {
		int can_read = input_open && requests_in_flight() < SLOTS && moved_fd < 0;

		fds[1].fd = moved_fd; /* poll() ignores -1 */
		fds[2].fd = can_read ? STDIN_FILENO : -1;
		if (poll(fds, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			perror("tutorial: poll");
			exit(1);
		}
		if (fds[0].revents)
			on_completions();
		if (fds[1].revents)
			on_moved();
		if (fds[2].revents)
			on_input();
	}
}

/* ---- statistics and end ----------------------------------------------------------- */

/* Counts go to standard output, times to standard error: they differ between runs. */
static void report(struct tenant *t)
{
	struct hal_stats s = {.size = sizeof(s)};

	TRY(hal_queue_get_stats(t->queue, &s));
	printf("%-12s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", t->name, s.requests,
	       s.completed, s.failed);
	fprintf(stderr,
		"%-12s p50 %.1f us, p99 %.1f us, deadlines missed: %" PRIu64
		", stopped: %" PRIu64 "\n",
		t->name, (double)s.request_p50_ns / 1e3, (double)s.request_p99_ns / 1e3,
		s.deadline_misses, s.suspends);
}

static void stop(void)
{
	for (int i = 0; i < SLOTS; i++) {
		TRY(hal_buffer_destroy(slots[i].in));
		TRY(hal_buffer_destroy(slots[i].out));
	}
	TRY(hal_buffer_destroy(batch_in));
	TRY(hal_buffer_destroy(batch_out));
	TRY(hal_queue_destroy(interactive.queue));
	TRY(hal_queue_destroy(batch.queue));
	TRY(hal_completions_destroy(ring));
	TRY(hal_partition_destroy(batch.part)); /* the guest before its host */
	TRY(hal_partition_destroy(interactive.part));
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: tutorial CONFIGURATION <REQUESTS\n");
		return 2;
	}
	/* Input: poll() cannot see lines in a buffer.  Output: each answer leaves at
	 * once. */
	if (setvbuf(stdin, NULL, _IONBF, 0) || setvbuf(stdout, NULL, _IOLBF, 0))
		return 1;
	start(argv[1]);
	serve();
	printf("%-12s %8s %8s %8s\n", "tenant", "requests", "commands", "failed");
	report(&interactive);
	report(&batch);
	stop();
	return 0;
}
