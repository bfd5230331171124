/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - halctl top: devices of running programs, or the clients of a hald, live on the
 * terminal, or one frame as text. */
#include "halctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "live.h"
#include "served.h"

#define ONCE_COLUMNS 160u
#define DELAY_MS     1000

static const char *const look[] = {"look", NULL};
static struct sheet sheet; /* too large for a stack */

/* What is shown: devices of programs, or one that hald serves. */
struct shown {
	struct live live;
	struct served served; /* .dev NULL: none */
	uint32_t count;       /* of devices */
};

/* Ask the i-th device for its state; as live_ask. */
static struct json *ask(const struct shown *w, uint32_t i, char **text,
			char why[JSON_WHY])
{
	return w->served.dev != NULL ? served_status(&w->served, text, why)
				     : live_ask(&w->live.device[i], look, text, why);
}

/* Draw the state `now` of a device; as frame_draw. */
static uint32_t draw(const struct shown *w, uint32_t row, const struct json *now,
		     const struct json *before)
{
	return w->served.dev != NULL ? ps_draw(&sheet, row, now, before)
				     : frame_draw(&sheet, row, now, before);
}

/* ---- once --------------------------------------------------------------------------- */

static int once_json(const struct shown *w)
{
	bool first = true;
	int rc = 0;

	putchar('[');
	for (uint32_t i = 0; i < w->count; i++) {
		char why[JSON_WHY], *text;
		struct json *now = ask(w, i, &text, why);

		if (now == NULL) {
			rc = tool_fail("%s", why);
			continue;
		}
		printf("%s%s", first ? "" : ",\n", text);
		first = false;
		free(text);
		json_free(now);
	}
	printf("]\n");
	return rc;
}

static int once_text(const struct shown *w)
{
	uint32_t row = 0;
	int rc = 0;

	sheet_clear(&sheet, ONCE_COLUMNS);
	for (uint32_t i = 0; i < w->count; i++) {
		char why[JSON_WHY];
		struct json *now = ask(w, i, NULL, why);

		if (now == NULL)
			rc = tool_fail("%s", why);
		else
			row = draw(w, row + (row != 0), now, NULL);
		json_free(now);
	}
	sheet_print(&sheet);
	return rc;
}

/* ---- live --------------------------------------------------------------------------- */

#ifdef HALCTL_CURSES

#include <curses.h>

static void colours(void)
{
	static const short hues[SHEET_HUES] = {COLOR_CYAN,    COLOR_YELLOW, COLOR_GREEN,
					       COLOR_MAGENTA, COLOR_BLUE,   COLOR_RED};

	if (!has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(SHEET_WARN, COLOR_RED, -1);
	for (uint32_t i = 0; i < SHEET_HUES; i++)
		(void)init_pair((short)(SHEET_FIRST + i), hues[i], -1);
}

static attr_t attribute(uint8_t colour)
{
	if (colour == SHEET_HEAD)
		return A_REVERSE;
	if (colour == SHEET_PLAIN)
		return A_NORMAL;
	return (attr_t)COLOR_PAIR(colour) | A_BOLD;
}

static void show_sheet(uint32_t from)
{
	for (uint32_t r = 0; from + r < sheet.rows && r < (uint32_t)LINES; r++)
		for (uint32_t c = 0; c < sheet.columns && c < (uint32_t)COLS; c++) {
			const struct sheet_cell *at = &sheet.at[from + r][c];

			(void)mvaddch((int)r, (int)c,
				      (chtype)(unsigned char)at->c |
					      attribute(at->colour));
		}
}

/* What the keys have chosen. */
struct chosen {
	uint32_t device, row;
	bool end;
};

static void key(int c, const struct shown *w, struct chosen *ch)
{
	switch (c) {
	case 'q':
		ch->end = true;
		break;
	case '\t':
		ch->device = (ch->device + 1) % w->count;
		ch->row = 0;
		break;
	case KEY_DOWN:
		ch->row += ch->row + 1 < sheet.rows;
		break;
	case KEY_UP:
		ch->row -= ch->row > 0;
		break;
	default: /* KEY_RESIZE: drawn anew */
		break;
	}
}

/* One frame; false: it cannot be had any more. */
static bool frame(const struct shown *w, const struct chosen *ch, struct json **before,
		  char why[JSON_WHY])
{
	struct json *now = ask(w, ch->device, NULL, why);

	if (now == NULL)
		return false;
	(void)erase();
	if (LINES < (int)FRAME_ROWS || COLS < (int)FRAME_COLUMNS) {
		(void)mvprintw(0, 0, "%d x %d: halctl top needs a terminal of %u x %u",
			       COLS, LINES, FRAME_COLUMNS, FRAME_ROWS);
	} else {
		sheet_clear(&sheet, (uint32_t)COLS);
		(void)draw(w, 0, now, *before);
		sheet_put(&sheet, 2, 0, SHEET_PLAIN, "%s",
			  w->count > 1 ? "q ends, TAB: the next device, arrows scroll"
				       : "q ends, arrows scroll");
		show_sheet(ch->row);
	}
	(void)refresh();
	json_free(*before);
	*before = now;
	return true;
}

static int live_top(const struct halctl *ctl, const struct shown *w)
{
	struct chosen ch = {0}, last = {0};
	struct json *before = NULL;
	char why[JSON_WHY] = "";
	SCREEN *screen;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return tool_fail("top: the output is not a terminal; use --once to print "
				 "the current state");
	screen = newterm(NULL, stdout, stdin);
	if (screen == NULL)
		return tool_fail("top: this terminal cannot be drawn on (TERM); use "
				 "--once to print the current state");
	(void)cbreak();
	(void)noecho();
	(void)curs_set(0);
	(void)keypad(stdscr, true);
	colours();
	timeout(ctl->delay_ms != 0 ? ctl->delay_ms : DELAY_MS);
	while (!ch.end && frame(w, &ch, &before, why)) {
		key(getch(), w, &ch);
		if (ch.device != last.device) { /* nothing to compare with */
			json_free(before);
			before = NULL;
		}
		last = ch;
	}
	json_free(before);
	(void)endwin();
	delscreen(screen);
	return ch.end ? 0 : tool_fail("%s", why);
}

#else

static int live_top(const struct halctl *ctl, const struct shown *w)
{
	(void)ctl, (void)w;
	return tool_fail("top: this halctl was built without ncurses; use --once to "
			 "print the current state");
}

#endif

static int show(const struct halctl *ctl, const struct shown *w)
{
	if (ctl->json)
		return once_json(w);
	return ctl->once ? once_text(w) : live_top(ctl, w);
}

int halctl_top(const struct halctl *ctl)
{
	struct shown w = {.count = 1};
	int rc;

	if (ctl->target == NULL) {
		if (live_find(ctl, &w.live) != 0)
			return TOOL_FAILED;
		w.count = w.live.count;
		return show(ctl, &w);
	}
	if (ctl->program != NULL)
		return tool_usage("top: --program and a target cannot be used together");
	rc = served_open(ctl, "top", &w.served);
	return rc != 0 ? rc : served_close(&w.served, show(ctl, &w));
}
