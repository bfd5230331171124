/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - counts the system calls of a part of a program exactly, all its threads: the
 * program runs in a child process that its parent traces.  Threads that make none are not
 * disturbed.
 */
#ifndef HALBENCH_CALLS_H
#define HALBENCH_CALLS_H

struct calls_part {
	unsigned long calls;   /* between calls_begin and calls_end */
	unsigned long divisor; /* what calls_end was given */
};

/* Runs run(user) in a child; that many parts of it are counted.  0, its exit status, or
 * BENCH_SKIP with the reason on stdout where a child cannot be traced. */
int calls_trace(int (*run)(void *user), void *user, struct calls_part *parts,
		unsigned int count);

/* Inside run: what lies between the two is one part. */
void calls_begin(void);
void calls_end(unsigned long divisor);

#endif
