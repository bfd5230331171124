/* SPDX-License-Identifier: Apache-2.0 */
/* sheet.h - lines of coloured characters, to be printed or put on a terminal. */
#ifndef HALCTL_SHEET_H
#define HALCTL_SHEET_H

#include <stdint.h>

#define SHEET_COLUMNS 200u
#define SHEET_ROWS    1024u

enum sheet_colour {
	SHEET_PLAIN,
	SHEET_HEAD, /* of a table */
	SHEET_WARN,
	SHEET_FIRST, /* of SHEET_HUES */
};
#define SHEET_HUES 6u

struct sheet {
	uint32_t columns, rows; /* no wider; rows that are used */
	struct sheet_cell {
		char c;
		uint8_t colour; /* enum sheet_colour */
	} at[SHEET_ROWS][SHEET_COLUMNS];
};

/* Empty; columns up to SHEET_COLUMNS. */
void sheet_clear(struct sheet *s, uint32_t columns);
/* What does not fit is cut. */
__attribute__((format(printf, 5, 6))) void sheet_put(struct sheet *s, uint32_t row,
						     uint32_t column, uint32_t colour,
						     const char *fmt, ...);
void sheet_print(const struct sheet *s);

#endif
