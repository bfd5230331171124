/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - what bench_real compares the library with: another thread that gets records
 * of 64 bytes through a bare ring of Concurrency Kit and hands them back through a
 * second.
 *
 * Either side sleeps by the rule of the library's engine: when there is nothing it looks
 * for at most 8 us, at least twice as long as it last took or half as long as was in
 * vain, then sleeps on a futex: publish, full barrier, look at the other's flag; set the
 * own flag, full barrier, look at the ring.  Nothing of the library is used.
 */
#ifndef HALBENCH_CONTROL_H
#define HALBENCH_CONTROL_H

#include <stdint.h>

#define CONTROL_RECORDS_MAX 1023 /* under way at a time */

struct control;

/* Value of least_ns: neither side ever sleeps, or tells whether it does. */
#define CONTROL_BARE UINT64_MAX

/* NULL when there is no memory or no thread.  Both sides look for least_ns at least:
 * where a wake-up takes longer than 8 us, two that wait for each other's by the rule
 * alone sleep in turn, and all is compared with a sleeper. */
struct control *control_open(uint64_t least_ns);
void control_close(struct control *c);
/* So many records out, then all of them back; one thread. */
void control_hand(struct control *c, unsigned int records);

#endif
