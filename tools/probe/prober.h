/* SPDX-License-Identifier: Apache-2.0 */
/* prober.h - what the parts of the discovery share: questions, classes, a rule. */
#ifndef PROBE_PROBER_H
#define PROBE_PROBER_H

#include <stdbool.h>

#include "discover.h"

#define LINE_BYTES 64u
#define LINES      8u  /* of a granule in a test */
#define CLASSES    24u /* more than there are channels: some may be found twice */
#define SETS       (DISCOVER_TOGETHER - 1u)

/* Granules that lie on one channel; handed out in turn, so that none is asked about twice
 * in a row: a cache would answer for it. */
struct pool {
	uint32_t *granule;
	uint32_t count, room, next;
};

struct prober {
	const struct discover_device *dev;
	struct discover_result *result;
	uint64_t rng, tests_max;
	int error;      /* once it is set, every answer is "fast", at once */
	uint32_t lines; /* of each granule */
	/* By granules beside the one in question: slow is what takes longer than tau,
	 * which p0 of the fast and p1 of the slow ones do. */
	double tau[SETS + 1], p0[SETS + 1], p1[SETS + 1];
	uint32_t set; /* so many at a time tell most */
	uint32_t classes;
	struct pool pool[CLASSES];
};

/* ask.c */
uint64_t prober_random64(struct prober *p);
uint32_t prober_random(struct prober *p, uint32_t below);
double prober_uniform(struct prober *p);
uint32_t prober_granule(struct prober *p); /* any that may be loaded */
/* The time of a test of count granules; 0 after an error. */
double prober_time(struct prober *p, const uint32_t *granules, uint32_t count);
/* Is the first on one channel with any of the others? */
bool prober_ask(struct prober *p, const uint32_t *granules, uint32_t count);
/* Tests of random pairs: what was asked lately is forgotten. */
void prober_fill(struct prober *p, uint32_t tests);
/* What such an answer weighs for "one channel" against "two". */
double prober_weight(const struct prober *p, bool slow);
/* First thresholds, without a label.  Sets *single where all of it is one channel. */
void prober_calibrate(struct prober *p, bool *single);
/* The map of one channel, tried once more: it sets .tests, .bad and .bound where it is
 * wrong. */
void prober_try_single(struct prober *p, struct color_map *map);
/* Thresholds and rates by the classes. */
void prober_recalibrate(struct prober *p);
void prober_add(struct prober *p, uint32_t class, uint32_t granule);
uint32_t prober_member(struct prober *p, uint32_t class, uint32_t but);
void prober_drop(struct prober *p, uint32_t class);
void prober_forget(struct prober *p);

/* seed.c: classes out of answers alone */
void prober_seed(struct prober *p);

/* label.c: which class a granule is of */
struct job {
	uint32_t granule, label, asked;
	bool done;
	double sure;       /* of label, 0..1 */
	double p[CLASSES]; /* of each class; what is known before, if it is known */
};
void prober_label(struct prober *p, struct job *jobs, uint32_t count, double target,
		  uint32_t most);

/* fit.c: a rule out of labels, of which a share of error may be wrong.  True: map has it;
 * its channels are as many as the classes, or fewer where some were found twice.  False:
 * .channels is 0. */
struct sample {
	uint32_t granule, label;
};
bool fit_rule(struct prober *p, const struct sample *samples, uint32_t count,
	      double error, struct color_map *map);

/* verify.c: sets .tests, .bad and .bound of the map */
void prober_verify(struct prober *p, struct color_map *map);

#endif
