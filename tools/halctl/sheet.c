/* SPDX-License-Identifier: Apache-2.0 */
/* sheet.c - lines of coloured characters; see sheet.h. */
#include "sheet.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sheet_clear(struct sheet *s, uint32_t columns)
{
	s->columns = columns < SHEET_COLUMNS ? columns : SHEET_COLUMNS;
	s->rows = 0;
	for (uint32_t r = 0; r < SHEET_ROWS; r++)
		for (uint32_t c = 0; c < SHEET_COLUMNS; c++)
			s->at[r][c] = (struct sheet_cell){' ', SHEET_PLAIN};
}

void sheet_put(struct sheet *s, uint32_t row, uint32_t column, uint32_t colour,
	       const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (row >= SHEET_ROWS)
		return;
	if (row >= s->rows)
		s->rows = row + 1;
	for (const char *c = text; *c != '\0' && column < s->columns; c++, column++)
		s->at[row][column] = (struct sheet_cell){*c, (uint8_t)colour};
}

void sheet_print(const struct sheet *s)
{
	for (uint32_t r = 0; r < s->rows; r++) {
		uint32_t n = s->columns;

		while (n > 0 && s->at[r][n - 1].c == ' ')
			n--;
		for (uint32_t c = 0; c < n; c++)
			putchar(s->at[r][c].c);
		putchar('\n');
	}
}
