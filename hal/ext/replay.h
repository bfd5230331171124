/* SPDX-License-Identifier: Apache-2.0 */
/* hal/ext/replay.h - repeat what an engine decided, from its journal. */
#ifndef HAL_EXT_REPLAY_H
#define HAL_EXT_REPLAY_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a replay. */
struct hal_replay_info {
	uint32_t size;
	uint32_t reserved;
	uint64_t turns;      /* of the engine */
	uint64_t inputs;     /* submissions' records, events, calls, times ... */
	uint64_t decisions;  /* that were compared */
	uint64_t mismatches; /* 0: all of them are the same */
	uint64_t line;       /* of the first mismatch in the journal; 0: none */
	char mismatch[256];  /* its text; empty: none */
	char missing[256];   /* where the journal ends too early; empty: it is complete */
};

/* Give an engine without a device the inputs of a journal, and compare its decisions.
 * path: a file of hal.journal.  out: set .size; .mismatches may be above 0 although the
 * call returns 0.
 * Errors: memory; EINVAL: path or out is NULL, the file is no journal (the text names the
 * line), or its policy is not known.  EISDIR: path is a folder.  ENOENT: path does not
 * exist.  ENOTSUP: host callbacks of a virtual clock overlap.  Others: of fopen(3).
 * Threads: any.
 * Memory: path is read, and out is written, during the call. */
HAL_API int hal_replay(const char *path, struct hal_replay_info *out);

#ifdef __cplusplus
}
#endif
#endif
