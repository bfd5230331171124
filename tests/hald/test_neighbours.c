/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_neighbours - four programs on one NPU in lockstep, of which one is killed before
 * or after each of its system calls in turn: what the launches of the others take, to the
 * cycle, and what they compute.
 *
 *   test_neighbours [EVERY]   kill at every EVERY-th point (1)
 *
 * Each has units and a memory channel of its own.  The control has all channels for all:
 * there the others' cycles do change.  Ends with lines "figure NAME NUMBER".
 */
#define _GNU_SOURCE
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "conformance.h"
/* Both have one. */
#undef OK
#include "hald_world.h"

enum { TENANTS = 4, NEIGHBOURS = 3, LAUNCHES = 10, UNITS = 64 };

/* Kill nobody. */
#define NEVER UINT32_MAX

#define MUST(call)                                                                       \
	do {                                                                             \
		if ((call) != 0)                                                         \
			_exit(__LINE__ % 250 + 1);                                       \
	} while (0)

/* What a neighbour tells: device time of each launch, and whether all bytes were right.
 */
struct told {
	uint64_t ns[LAUNCHES];
	uint32_t wrong;
};

static const struct conf_pack *npu_pack;

void conf_register(const struct conf_pack *pack)
{
	if (strcmp(pack->backend, "npu") == 0)
		npu_pack = pack;
}

/* ---- a program ------------------------------------------------------------------------- */

struct worker {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *a, *b, *d, *stamps;
	struct hal_program *prog;
	struct hal_kernel *gemm;
	int8_t in[2][CONF_GEMM_BYTES];
};

/* Return a buffer of that many bytes. */
static struct hal_buffer *buffer(const struct worker *w, uint64_t bytes)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	d.bytes = bytes;
	MUST(hal_buffer_create(w->part, &d, &buf));
	return buf;
}

static void worker_open(const struct hald *h, uint32_t tenant, struct worker *w)
{
	char option[128];
	const char *const options[] = {option, NULL};

	snprintf(option, sizeof(option), "%s/t%u", h->option, tenant);
	MUST(hal_open("hald:ref0", options, &w->dev));
}

static void worker_prepare(struct worker *w, uint32_t tenant, bool shared)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	void *image;
	size_t size;

	pd.units_floor = UNITS;
	pd.color_mask = shared ? 0 : UINT64_C(1) << tenant;
	MUST(hal_partition_create(w->dev, &pd, &w->part));
	MUST(hal_queue_create(w->part, &qd, &w->q));
	w->a = buffer(w, CONF_GEMM_BYTES);
	w->b = buffer(w, CONF_GEMM_BYTES);
	w->d = buffer(w, CONF_GEMM_BYTES);
	w->stamps = buffer(w, 4096);
	for (uint32_t i = 0; i < CONF_GEMM_BYTES; i++) {
		w->in[0][i] = (int8_t)(i * (tenant + 3));
		w->in[1][i] = (int8_t)(i / 3 + tenant);
	}
	MUST(hal_buffer_write(w->a, 0, w->in[0], CONF_GEMM_BYTES));
	MUST(hal_buffer_write(w->b, 0, w->in[1], CONF_GEMM_BYTES));
	MUST(npu_pack->image(&image, &size));
	MUST(hal_program_load(w->dev, image, size, &w->prog));
	npu_pack->free(image);
	MUST(hal_kernel_find(w->prog, "gemm", &w->gemm));
}

/* Launch once, with a time stamp before and after. */
static void worker_launch(const struct worker *w, uint64_t *ns)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_arg args[3] = {{w->d, 0, CONF_GEMM_BYTES},
					{w->a, 0, CONF_GEMM_BYTES},
					{w->b, 0, CONF_GEMM_BYTES}};
	const struct hal_cmd cmds[3] = {hal_cmd_timestamp(w->stamps, 0),
					hal_cmd_launch(w->gemm, args, 3),
					hal_cmd_timestamp(w->stamps, 8)};
	struct hal_point done;
	uint64_t stamps[2];

	d.cmds = cmds;
	d.cmd_count = 3;
	MUST(hal_submit(w->q, &d, &done));
	MUST(hal_wait(&done, 1, 0, HAL_FOREVER));
	MUST(hal_buffer_read(w->stamps, 0, stamps, sizeof(stamps)));
	*ns = stamps[1] - stamps[0];
}

static void worker_close(const struct worker *w)
{
	MUST(hal_queue_destroy(w->q));
	MUST(hal_buffer_destroy(w->a));
	MUST(hal_buffer_destroy(w->b));
	MUST(hal_buffer_destroy(w->d));
	MUST(hal_buffer_destroy(w->stamps));
	MUST(hal_program_unload(w->prog));
	MUST(hal_partition_destroy(w->part));
	MUST(hal_close(w->dev));
}

static _Noreturn void neighbour_main(const struct hald *h, uint32_t tenant, bool shared,
				     int fd)
{
	int8_t got[CONF_GEMM_BYTES], right[CONF_GEMM_BYTES];
	struct told told = {.wrong = 0};
	struct worker w;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	worker_open(h, tenant, &w);
	worker_prepare(&w, tenant, shared);
	conf_oracle_gemm(right, w.in[0], w.in[1]);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		worker_launch(&w, &told.ns[i]);
		MUST(hal_buffer_read(w.d, 0, got, sizeof(got)));
		told.wrong += memcmp(got, right, sizeof(got)) != 0;
	}
	worker_close(&w);
	_exit(write(fd, &told, sizeof(told)) != sizeof(told));
}

/* The one that is killed. */
static _Noreturn void killed_main(const struct hald *h, bool shared)
{
	struct worker w;
	uint64_t ns;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The others wait for a fourth: it has to come. */
	worker_open(h, NEIGHBOURS, &w);
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	worker_prepare(&w, NEIGHBOURS, shared);
	for (uint32_t i = 0; i < LAUNCHES; i++)
		worker_launch(&w, &ns);
	worker_close(&w);
	_exit(0);
}

/* ---- a run ------------------------------------------------------------------------------ */

/* Run the fourth to its point `last` and kill it there.  Return how many it has passed.
 */
static uint32_t run_to(const struct hald *h, bool shared, uint32_t last)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	uint32_t passed = 0;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		killed_main(h, shared);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status)) {
		print_message("a child cannot be traced here\n");
		skip();
	}
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, options), 0);
	while (passed < last) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status)) {
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			return passed;
		}
		passed++;
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return passed;
}

/* Run all four, of which the fourth ends at its point `last`.  Return how many it has
 * passed. */
static uint32_t run(bool shared, uint32_t last, struct told told[NEIGHBOURS])
{
	static const char tenants[] = "[tenant \"t0\"]\nsocket = yes\n"
				      "[tenant \"t1\"]\nsocket = yes\n"
				      "[tenant \"t2\"]\nsocket = yes\n"
				      "[tenant \"t3\"]\nsocket = yes\n";
	pid_t pids[NEIGHBOURS];
	int fds[NEIGHBOURS];
	uint32_t passed;
	struct hald h;
	int status;

	hald_with(&h, "npu:0?engine=fast", tenants, "4", NULL);
	for (uint32_t i = 0; i < NEIGHBOURS; i++) {
		int fd[2];

		assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
		pids[i] = fork();
		if (pids[i] == 0)
			neighbour_main(&h, i, shared, fd[1]);
		(void)close(fd[1]);
		fds[i] = fd[0];
	}
	passed = run_to(&h, shared, last);
	for (uint32_t i = 0; i < NEIGHBOURS; i++) {
		assert_int_equal(read(fds[i], &told[i], sizeof(told[i])),
				 sizeof(told[i]));
		(void)close(fds[i]);
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	hald_with_tenants_stop(&h);
	return passed;
}

/* ---- the test --------------------------------------------------------------------------- */

static uint32_t every = 1;

/* Kill at every point, and count the runs in which a neighbour's cycles are not those
 * beside one that lives; add wrong answers to *wrong. */
static uint32_t changes(bool shared, uint32_t step, uint32_t *killed, uint32_t *wrong)
{
	struct told alive[NEIGHBOURS], now[NEIGHBOURS];
	uint32_t points = run(shared, NEVER, alive), changed = 0;

	assert_true(points > 100);
	for (uint32_t i = 1; i <= points; i += step, ++*killed) {
		bool differs = false;

		(void)run(shared, i, now);
		for (uint32_t n = 0; n < NEIGHBOURS; n++) {
			differs |= memcmp(now[n].ns, alive[n].ns, sizeof(now[n].ns)) != 0;
			*wrong += now[n].wrong;
		}
		if (differs && !shared)
			print_message("point %u of %u: other cycles\n", i, points);
		changed += differs;
	}
	return changed;
}

static void killed_at_each_step(void **state)
{
	uint32_t killed = 0, controls = 0, wrong = 0;
	uint32_t changed = changes(false, every, &killed, &wrong);
	uint32_t control = changes(true, 10 * every, &controls, &wrong);

	(void)state;
	print_message("figure broker.contain.neighbour_kills %u\n"
		      "figure broker.contain.neighbour_cycle_changes %u\n"
		      "figure broker.contain.shared_differ %u\n",
		      killed, changed, control);
	assert_int_equal(changed, 0);
	assert_int_equal(wrong, 0);
	assert_true(control > 0);
}

/* The same four, twice: the same cycles. */
static void the_same_again(void **state)
{
	struct told a[NEIGHBOURS], b[NEIGHBOURS];

	(void)state;
	for (uint32_t shared = 0; shared < 2; shared++) {
		(void)run(shared != 0, NEVER, a);
		(void)run(shared != 0, NEVER, b);
		assert_memory_equal(a, b, sizeof(a));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_again),
		cmocka_unit_test(killed_at_each_step),
	};

	if (argc > 1)
		every = (uint32_t)strtoul(argv[1], NULL, 10);
	if (every == 0 || argc > 2) {
		fprintf(stderr, "test_neighbours [EVERY]\n");
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
