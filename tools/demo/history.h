/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - how much there was of some things, when: bins of equal length, which get
 * longer as time goes on. */
#ifndef DEMO_HISTORY_H
#define DEMO_HISTORY_H

#include <stdint.h>

#define HISTORY_BINS 384u
#define HISTORY_ROWS 16u

struct history {
	uint64_t begin;
	uint64_t width; /* of a bin */
	double amount[HISTORY_ROWS][HISTORY_BINS];
};

void history_begin(struct history *h, uint64_t now);
/* Evenly between from and to; what was before history_begin is left out. */
void history_add(struct history *h, uint32_t row, uint64_t from, uint64_t to,
		 double amount);
/* Turn amounts into amounts a unit of time.  Nothing is added after that.  The bin in
 * which end lies is as long as what of it lies before end. */
void history_rates(struct history *h, uint64_t end);

#endif
