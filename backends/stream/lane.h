/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.h - copy between host memory and a device on a stream of its own.
 *
 * Drivers copy pageable memory only after the whole stream has ended, so the bytes go
 * through pinned memory: two stages.  While the device copies one piece, the caller
 * copies the next one into or out of the other stage.  Several threads may copy at once:
 * they get stages in the order in which they ask, a piece at a time.
 */
#ifndef BACKENDS_STREAM_LANE_H
#define BACKENDS_STREAM_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAM_LANE_PIECE  (UINT64_C(1) << 20) /* bytes of a stage */
#define STREAM_LANE_STAGES 2u
/* An event for each stage, and one for fills. */
#define STREAM_LANE_EVENTS (STREAM_LANE_STAGES + 1)

/* Calls of the driver on the lane's stream: 0, or -errno with the error text set. */
struct stream_lane_ops {
	int (*copy)(void *device, uint64_t to, uint64_t from, uint64_t bytes);
	/* Write zeros; address and bytes are multiples of 4.  -EAGAIN: the device has no
	 * units for that, and zeros are copied. */
	int (*clear)(void *device, uint64_t address, uint64_t bytes);
	int (*record)(void *device, uint32_t event);
	/* Wait until the device has passed the last record of the event. */
	int (*wait)(void *device, uint32_t event);
	/* Wait for all of the stream's work, after an error. */
	void (*drain)(void *device);
};

struct stream_lane {
	const struct stream_lane_ops *ops;
	void *device;
	pthread_mutex_t lock; /* of .held, .next and the tickets */
	pthread_cond_t freed;
	uint64_t asked, served; /* tickets */
	uint32_t next;          /* the stage that was used longest ago */
	struct stream_lane_stage {
		char *memory;
		bool held;
		bool copying; /* the device may still read it; of the thread that holds it
			       */
	} stages[STREAM_LANE_STAGES];
};

void stream_lane_init(struct stream_lane *l, const struct stream_lane_ops *ops,
		      void *device);
/* Use pinned memory of STREAM_LANE_STAGES pieces. */
void stream_lane_stages(struct stream_lane *l, void *memory);
void stream_lane_fini(struct stream_lane *l);

/* Copy; return when it is complete.  After an error nothing is left running: the caller
 * may free both ends. */
int stream_lane_write(struct stream_lane *l, uint64_t address, const void *data,
		      uint64_t bytes);
int stream_lane_read(struct stream_lane *l, uint64_t address, void *data, uint64_t bytes);
/* Write zeros; address is a multiple of 4.  What fits into a stage is copied, as the
 * device may have no multiprocessor free for a fill; the rest is filled by the device,
 * where it can. */
int stream_lane_clear(struct stream_lane *l, uint64_t address, uint64_t bytes);

#endif
