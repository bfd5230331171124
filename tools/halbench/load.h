/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - who asks for which network when: load files, and the arrivals they mean. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/json.h"

#define LOAD_TASKS_MAX    256u
#define LOAD_ARRIVALS_MAX 10000000u /* of a task */

enum load_type {
	LOAD_CONTINUOUS, /* a closed loop: one request at a time, the next at its end */
	LOAD_PERIODIC,
	LOAD_POISSON,
	LOAD_TRACE,
	LOAD_DEPENDENT, /* when each of others has ended once more */
	LOAD_BURSTS,    /* Poisson while on; on and off for random times */
	LOAD_DIURNAL,   /* Poisson of a rate that swings */
};

struct load_task {
	char *id, *model;
	uint32_t model_line;
	enum load_type type;
	bool critical; /* latency-critical, else best effort */
	/* Periodic tasks of one frequency begin one behind the other, not at once. */
	bool staggered;
	double frequency; /* requests a second; bursts: while on; diurnal: the mean */
	double on_s, off_s;
	double period_s, swing;
	double *trace_s;
	uint32_t trace_count;
	uint32_t *after; /* indices of tasks */
	uint32_t after_count;
};

struct load {
	const char *file; /* as load_read was given it */
	char name[64];    /* of the file, without folder and ending */
	double seconds;
	uint32_t count;
	struct load_task *tasks;
};

/* 0, or -1 with why: file, line, field. */
int load_read(const char *path, struct load *load, char why[JSON_WHY]);
int load_parse(const char *bytes, size_t size, const char *name, struct load *load,
	       char why[JSON_WHY]);
void load_free(struct load *load);
const char *load_type_name(enum load_type type);

/* How the times of a load become device time. */
struct load_clock {
	double window_s; /* of the load's time; what comes later does not */
	double rate;     /* 0.5: as many requests in twice the time */
	double scale;    /* device time of a second of the load, at rate 1 */
	uint64_t seed;
};

uint64_t load_window_ns(const struct load_clock *c);
/* Ascending device times, each below load_window_ns; none for closed loops and
 * dependents.  begin_ns: of a periodic task's first.  0, or -1 with why. */
int load_arrivals(const struct load *load, uint32_t task, const struct load_clock *c,
		  uint64_t begin_ns, uint64_t **out, uint32_t *count, char why[JSON_WHY]);

#endif
