/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - messages for the function of hal_log_set and for the file of HAL_LOG.
 *
 * A receiver may run on any thread, so it may call nothing of the library that needs a
 * lock or the engine.  Callers of LOG may therefore hold locks.
 */
#ifndef HAL_UTIL_LOG_H
#define HAL_UTIL_LOG_H

#include <hal/hal.h>

#include <stdatomic.h>

#include "util/compiler.h"

/* The highest level that a receiver wants. */
extern atomic_int log_level;

/* Send one line of text to the receivers that want level (enum hal_log_level).  Keep this
 * thread's error message and errno. */
#define LOG(level, ...)                                                                  \
	do {                                                                             \
		if (UNLIKELY(atomic_load_explicit(&log_level, memory_order_relaxed) >=   \
			     (level)))                                                   \
			log_text((level), __VA_ARGS__);                                  \
	} while (0)
void log_text(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Read the environment variable HAL_LOG, if it has changed since the last call.  Return
 * 0, -EINVAL if it is wrong, or -errno if its file cannot be opened. */
int log_environment(void);

#endif
