/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - counts system calls with ptrace; see calls.h. */
#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* getppid takes no arguments: with these it is a mark. */
#define MARK_BEGIN 0x68616c31ul
#define MARK_END   0x68616c32ul

void calls_begin(void)
{
	(void)syscall(SYS_getppid, MARK_BEGIN);
}

void calls_end(unsigned long divisor)
{
	(void)syscall(SYS_getppid, MARK_END, divisor);
}

struct tracer {
	pid_t child;
	struct calls_part *parts;
	unsigned int count, done;
	int counting;
};

static void on_entry(struct tracer *t, const struct __ptrace_syscall_info *info)
{
	uint64_t mark = info->entry.nr == SYS_getppid ? info->entry.args[0] : 0;

	if (mark == MARK_BEGIN) {
		t->counting = t->done < t->count;
		return;
	}
	if (!t->counting)
		return;
	if (mark == MARK_END) {
		t->counting = 0;
		t->parts[t->done++].divisor = info->entry.args[1];
		return;
	}
	t->parts[t->done].calls++;
}

/* The signal that thread is to go on with. */
static int on_stop(struct tracer *t, pid_t thread, int status)
{
	struct __ptrace_syscall_info info;
	int signal = WSTOPSIG(status);

	if (signal == (SIGTRAP | 0x80)) {
		if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY)
			on_entry(t, &info);
		return 0;
	}
	/* Events of ptrace, and the stop with which a new thread begins. */
	return signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
}

static int follow(struct tracer *t)
{
	for (;;) {
		int status;
		pid_t thread = waitpid(-1, &status, __WALL);

		if (thread < 0 && errno == EINTR)
			continue;
		if (thread < 0)
			return 1;
		if (WIFSTOPPED(status)) {
			long signal = on_stop(t, thread, status);

			/* It may be gone: then its end is what comes next. */
			(void)ptrace(PTRACE_SYSCALL, thread, NULL, signal);
			continue;
		}
		if (thread != t->child)
			continue;
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
}

static _Noreturn void be_traced(int (*run)(void *user), void *user)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(BENCH_SKIP);
	(void)raise(SIGSTOP);
	_exit(run(user));
}

int calls_trace(int (*run)(void *user), void *user, struct calls_part *parts,
		unsigned int count)
{
	struct tracer t = {.parts = parts, .count = count};
	long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACESYSGOOD |
		       PTRACE_O_EXITKILL;
	int status;

	memset(parts, 0, count * sizeof(*parts));
	t.child = fork();
	if (t.child < 0)
		return bench_die("fork");
	if (t.child == 0)
		be_traced(run, user);
	if (waitpid(t.child, &status, 0) < 0 || !WIFSTOPPED(status)) {
		printf("a child cannot be traced here\n");
		return BENCH_SKIP;
	}
	if (ptrace(PTRACE_SETOPTIONS, t.child, NULL, options) != 0) {
		(void)kill(t.child, SIGKILL);
		printf("a child's threads cannot be traced here\n");
		return BENCH_SKIP;
	}
	(void)ptrace(PTRACE_SYSCALL, t.child, NULL, NULL);
	status = follow(&t);
	if (status == 0 && t.done != count) {
		fprintf(stderr, "bench_real: %u of %u parts were counted\n", t.done,
			count);
		return 1;
	}
	return status;
}
