/* SPDX-License-Identifier: Apache-2.0 */
/* prober_npu.h - an NPU whose memory is asked about by the time of loads; and its map. */
#ifndef HALCTL_PROBER_NPU_H
#define HALCTL_PROBER_NPU_H

#include <stdbool.h>

#include "discover.h"
#include "halctl.h"

#define PROBE_WAYS  3u /* of loading */
#define PROBE_SIZES 5u /* 1, 2, 4, 8 and 16 lines of each granule */

struct probe_npu {
	struct hal_device *dev; /* opened, and closed, by its owner */
	struct hal_device_info info;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *memory, *result;
	struct hal_program *program;
	struct hal_kernel *kernel[PROBE_WAYS][PROBE_SIZES + 1];
	uint32_t way;
	bool brief;            /* not until nothing more can be tried */
	uint64_t first, bytes; /* of memory, by its own addresses */
	/* What a test is, as in struct discover_device: probe_npu_measure, or something
	 * around it. */
	int (*measure)(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		       uint64_t *cycles);
	void *user;
};

/* A partition, a program, and all memory that is left.  0 or TOOL_FAILED. */
int probe_npu_open(struct probe_npu *d);
/* All but the device.  0 or -errno. */
int probe_npu_close(struct probe_npu *d);
/* user: the struct probe_npu. */
int probe_npu_measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		      uint64_t *cycles);
/* As discover, by each way of loading until one finds a map. */
int probe_npu_find(struct probe_npu *d, uint64_t seed, struct discover_result *r);
/* What the last way loads by: "gemm", "add". */
const char *probe_npu_loads_by(const struct probe_npu *d);

#endif
