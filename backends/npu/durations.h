/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durations.h - how many cycles descriptors took, for engine=replay.
 *
 * A descriptor's duration is from the end of the one ahead of it, or from the write of
 * TAIL when the ring was empty, to its own end.  It is remembered by what decides it: the
 * descriptor without the upper parts of its addresses and without values it only moves,
 * the one ahead of it, the rectangle's height and width, whether folds overlap, the
 * partition's channels and how memory lies on them.  Who else uses these channels is not
 * part of that, nor is a limit of bandwidth, so it is recorded only where nobody did and
 * there was none from its beginning to its end.
 *
 * The file is text: a line of what it is, then one a descriptor:
 *   key count fewest sum most
 * numbers, the key in hexadecimal.  Recording adds to what is there.
 */
#ifndef NPU_DURATIONS_H
#define NPU_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

struct npu_durations;

/* What decides a duration beside the descriptors. */
struct npu_place {
	uint32_t rows, cols;
	uint64_t channels;  /* mask */
	uint32_t all, seed; /* channels of the device, its hash */
	uint32_t gran;      /* log2 of a page */
	bool ideal, serial; /* serial: a fold begins when the last one has ended */
};

#define NPU_AFTER_ANY   0u /* whatever was ahead: the mean over all */
#define NPU_AFTER_EMPTY 1u /* the ring was empty */

/* The descriptor as part of a key, never one of the two above. */
uint64_t npu_desc_hash(const struct npu_place *place, const uint32_t desc[16]);
uint64_t npu_duration_key(uint64_t ahead, uint64_t self);

/* record: the file is made when it is not there, and written at close.  -errno with the
 * file, and the line where one is wrong. */
int npu_durations_open(const char *path, bool record, struct npu_durations **out);
/* False: the file could not be written. */
bool npu_durations_close(struct npu_durations *d);
/* One more of that key; false: no host memory. */
bool npu_durations_add(struct npu_durations *d, uint64_t key, uint64_t cycles);
/* The mean, rounded; false: there is none. */
bool npu_durations_get(const struct npu_durations *d, uint64_t key, uint64_t *cycles);

#endif
