/* SPDX-License-Identifier: Apache-2.0 */
/* out.h - records and lists of records, written as JSON. */
#ifndef HAL_TOOL_OUT_H
#define HAL_TOOL_OUT_H

#include <stdint.h>

struct out;

/* NULL, and it is said, when out of memory. */
struct out *out_create(void);
/* Without line breaks and spaces, from here on. */
void out_compact(struct out *o);
void out_list(struct out *o, const char *key); /* key: NULL at the top or in a list */
void out_list_end(struct out *o);
void out_record(struct out *o, const char *key);
void out_record_end(struct out *o);
void out_str(struct out *o, const char *key, const char *value);
void out_u64(struct out *o, const char *key, uint64_t value);
void out_i64(struct out *o, const char *key, int64_t value);
/* Nine digits, which tell every float from the next; null where there is no number. */
void out_real(struct out *o, const char *key, double value);
/* Prints what was collected and frees it; 0 or TOOL_FAILED. */
int out_finish(struct out *o);
/* The same into a file. */
int out_finish_to(struct out *o, const char *path);

#endif
