/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - a network in a partition, ready to be asked for. */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <stdbool.h>

#include <hal/hal.h>

#include "models.h"
#include "npuc.h"

struct service {
	struct hal_queue *queue;
	struct hal_program *program;
	struct hal_cmd *cmds; /* of one request */
	uint32_t cmd_count;
	/* Behind those, one for each kernel that the image has and no request launches:
	 * "run" beside a kernel a layer. */
	uint32_t more;
	uint64_t work;
	/* Of a network from a file: */
	struct npuc_program network;
	struct npuc_run *run;
};

/* Return whether dev runs a network of that kind, of a file or of steps. */
bool service_runs(struct hal_device *dev, const struct model *model);
/* Loads it and makes its queue.  0 or TOOL_FAILED; to be closed either way. */
int service_open(struct service *s, struct hal_device *dev, struct hal_partition *part,
		 const struct hal_queue_desc *queue, const struct model *model);
/* 0, or not, and hal_last_error() says why. */
int service_close(struct service *s);

#endif
