/* SPDX-License-Identifier: Apache-2.0 */
/* broken.h - what the backend of broken.c can do wrong: option break. */
#ifndef TESTS_LAYERS_BROKEN_H
#define TESTS_LAYERS_BROKEN_H

#define BREAKS(X)                                                                        \
	X(none)                                                                          \
	X(open_null)                                                                     \
	X(info_size)                                                                     \
	X(info_text)                                                                     \
	X(info_kind)                                                                     \
	X(info_verified)                                                                 \
	X(info_lost)                                                                     \
	X(info_free)                                                                     \
	X(info_changes)                                                                  \
	X(part_null)                                                                     \
	X(queue_twice)                                                                   \
	X(mem_null)                                                                      \
	X(mem_answer)                                                                    \
	X(mem_leak)                                                                      \
	X(map_null)                                                                      \
	X(prog_null)                                                                     \
	X(kernel_name)                                                                   \
	X(kernel_args)                                                                   \
	X(kernel_engines)                                                                \
	X(isolation)                                                                     \
	X(counters_many)                                                                 \
	X(counters_kind)                                                                 \
	X(counters_index)                                                                \
	X(again)                                                                         \
	X(event_stranger)                                                                \
	X(event_twice)                                                                   \
	X(event_status)                                                                  \
	X(event_killed)                                                                  \
	X(event_times)                                                                   \
	X(event_endless_text)                                                            \
	X(event_says)                                                                    \
	X(event_kind)                                                                    \
	X(event_many)                                                                    \
	X(event_order)                                                                   \
	X(event_behind_fault)                                                            \
	X(idle_stands)                                                                   \
	X(quiet_stranger)                                                                \
	X(quiet_early)                                                                   \
	X(move_status)                                                                   \
	X(time)

enum broken {
#define X(name) BREAK_##name,
	BREAKS(X)
#undef X
};

#endif
