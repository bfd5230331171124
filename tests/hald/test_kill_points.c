/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kill_points - a program is killed at each step of what it does with hald: before
 * and after each of its system calls, and at each instruction of hal_submit and hal_wait.
 *
 *   test_kill_points [EVERY [OFFSET]]   kill at every EVERY-th point (1) from OFFSET (0)
 * on
 *
 * After each kill all units of the device must become free, with memory of zeros; a
 * victim beside it, whose units are its own, must see nothing.  Ends with the lines
 * "figure broker.kill_points NUMBER" and "figure broker.kill_points.harmed NUMBER".
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "hald_world.h"

enum { UNITS = 8, VICTIM_UNITS = 8 };

/* getppid takes no arguments: with these it is a mark. */
#define MARK_BEGIN 0x68616c31ul
#define MARK_END   0x68616c32ul

/* From here to the other mark the parent counts instructions, else system calls. */
static void mark(unsigned long value)
{
	(void)syscall(SYS_getppid, value);
}

/* ---- the program that is killed ---------------------------------------------------------- */

#define MUST(call)                                                                       \
	do {                                                                             \
		if ((call) != 0)                                                         \
			_exit(__LINE__ % 250 + 1);                                       \
	} while (0)

/* Do one of everything. */
static _Noreturn void killed_main(const struct hald *h)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	static uint32_t data[1024];
	struct hal_timeline *line;
	struct hal_point points[2], done;
	struct hal_cmd cmds[2];
	struct program p;

	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	MUST(program_open(h, &p, UNITS));
	MUST(hal_timeline_create(p.dev, &line));
	memset(data, 0xee, sizeof(data));
	MUST(hal_buffer_write(p.buf, 0, data, sizeof(data)));
	cmds[0] = hal_cmd_fill(p.buf, 0, 2048, 0xffffffff);
	cmds[1] = hal_cmd_fill(p.buf, 2048, 2048, 0xeeeeeeee);
	points[0] = (struct hal_point){line, 1};
	points[1] = (struct hal_point){line, 2};
	d.cmds = cmds;
	d.cmd_count = 2;
	d.waits = &points[0];
	d.wait_count = 1;
	d.signals = &points[1];
	d.signal_count = 1;
	mark(MARK_BEGIN);
	MUST(hal_submit(p.q, &d, &done));
	mark(MARK_END);
	MUST(hal_timeline_signal(line, 1));
	mark(MARK_BEGIN);
	MUST(hal_wait(&done, 1, 0, HAL_FOREVER));
	mark(MARK_END);
	MUST(hal_buffer_read(p.buf, 0, data, sizeof(data)));
	MUST(program_spins(&p));
	MUST(hal_queue_suspend(p.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL));
	while (hal_queue_destroy(p.q) == -EBUSY)
		;
	MUST(hal_timeline_destroy(line));
	MUST(hal_buffer_destroy(p.buf));
	MUST(hal_program_unload(p.prog));
	MUST(hal_partition_destroy(p.part));
	MUST(hal_close(p.dev));
	_exit(0);
}

/* ---- its parent ------------------------------------------------------------------------- */

/* Run the program to its point number `last`, and kill it there.  Return how many points
 * it has passed: fewer than last if it has ended before. */
static uint32_t run_to(const struct hald *h, uint32_t last)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	bool steps = false;
	uint32_t passed = 0;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		killed_main(h);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status)) {
		print_message("a child cannot be traced here\n");
		skip();
	}
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, options), 0);
	while (passed < last) {
		struct __ptrace_syscall_info info = {0};

		assert_int_equal(ptrace(steps ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, pid,
					NULL, NULL),
				 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status)) {
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			return passed;
		}
		passed++;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY &&
		    info.entry.nr == SYS_getppid && info.entry.args[0] == MARK_BEGIN)
			steps = true;
#if defined(__x86_64__)
		/* Single steps do not stop at system calls: the mark is in a register. */
		if (steps && WSTOPSIG(status) == SIGTRAP) {
			long rdi = ptrace(PTRACE_PEEKUSER, pid,
					  offsetof(struct user, regs.rdi), NULL);
			long rax = ptrace(PTRACE_PEEKUSER, pid,
					  offsetof(struct user, regs.rax), NULL);

			if (rax == SYS_getppid && rdi == (long)MARK_END)
				steps = false;
		}
#endif
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return passed;
}

/* ---- who is beside it --------------------------------------------------------------------- */

/* Work until `stop` hangs up; exit with 0 if all answers were right. */
static _Noreturn void victim_main(const struct hald *h, int stop, int ready)
{
	struct pollfd p = {.fd = stop, .events = POLLIN};
	struct program own;
	uint32_t round = 0;

	MUST(program_open(h, &own, VICTIM_UNITS));
	MUST(program_works(&own, 1));
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (poll(&p, 1, 0) == 0)
		MUST(program_works(&own, ++round));
	_exit(0);
}

static pid_t victim_start(const struct hald *h, int *stop)
{
	int stops[2], ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(stops, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(stops[1]);
		victim_main(h, stops[0], ready[1]);
	}
	(void)close(stops[0]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	*stop = stops[1];
	return pid;
}

/* In a child, since one that has the device open cannot give it to the next: take the
 * units that the killed one had, as soon as they are free.  Return whether all is well.
 */
static bool all_is_well(const struct hald *h)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		const char *const options[] = {h->option, NULL};
		struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
		struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
		struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
		const int64_t until = now_ns() + LONG_NS;
		static char got[65536], zeros[sizeof(got)];
		struct program p;
		int err;

		p.prog = NULL;
		MUST(hal_open("hald:ref0", options, &p.dev));
		pd.units_floor = UNITS;
		do
			err = hal_partition_create(p.dev, &pd, &p.part);
		while (err == -ENOSPC && now_ns() < until);
		MUST(err);
		bd.bytes = sizeof(got);
		MUST(hal_queue_create(p.part, &qd, &p.q));
		MUST(hal_buffer_create(p.part, &bd, &p.buf));
		MUST(hal_buffer_read(p.buf, 0, got, sizeof(got)));
		MUST(memcmp(got, zeros, sizeof(got)));
		MUST(program_works(&p, 7));
		/* The next one needs the units at once. */
		program_close(&p);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* -------------------------------------------------------------------------------------------
 */

static uint32_t every = 1, offset;

static void killed_anywhere(void **state)
{
	uint32_t points, killed = 0, harmed = 0;
	struct hald h;
	int stop, status;
	pid_t victim;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim = victim_start(&h, &stop);
	points = run_to(&h, UINT32_MAX);
	for (uint32_t i = 1 + offset; i <= points + 20; i += every, killed++) {
		/* Waits take more or fewer steps each time. */
		if (run_to(&h, i) < i && i > points)
			break;
		if (!all_is_well(&h)) {
			print_message("point %u: harm\n", i);
			harmed++;
		}
	}
	(void)close(stop);
	assert_int_equal(waitpid(victim, &status, 0), victim);
	harmed += status != 0;
	hald_stop(&h);
	print_message(
		"figure broker.kill_points %u\nfigure broker.kill_points.harmed %u\n",
		killed, harmed);
	assert_true(points > 100);
	assert_int_equal(harmed, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(killed_anywhere)};

	if (argc > 1)
		every = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		offset = (uint32_t)strtoul(argv[2], NULL, 10);
	if (every == 0 || argc > 3) {
		fprintf(stderr, "test_kill_points [EVERY [OFFSET]]\n");
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
