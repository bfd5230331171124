/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what an exported timeline and its import share: a page of memory, and a pair
 * of sockets.
 *
 *   exporter                                  importer
 *     half[0] of the page  --- read by --->
 *                          <--- read by ---   half[1] of the page
 *     socket  <--- rings, end of file --->    socket
 *
 * A side writes its counter and its failure to its half of the page, then rings: it sends
 * a message that says only "read my half".  If the socket is full, the other side has
 * rings to read, so that none more is needed.  So nothing queues up, no side waits, and
 * the last state of a side can be read after its process has ended.
 *
 * The descriptor that the application passes on is a third socket.  Its queue has one
 * message, with the descriptors of the page and of the importer's socket.  An import
 * leaves the message there, and takes the link by a word of the page.
 *
 * The other side may be hostile.  It can write any word of the page, at any time: what is
 * read from there is checked, and nothing else depends on it.
 */
#ifndef HAL_COMMAND_WIRE_H
#define HAL_COMMAND_WIRE_H

#include <stdint.h>

#include "util/list.h"

struct wire_page;

struct wire {
	struct list all; /* the wires of this process, for a child of fork() */
	int fd;
	uint32_t own; /* this side's half of the page: 0 exporter, 1 importer */
	uint32_t rights;
	struct wire_page *page;
};

/* Why a side has let go of its timeline. */
enum wire_end {
	WIRE_LIVE, /* it has not */
	WIRE_DESTROYED,
	WIRE_OWNER_DESTROYED, /* a queue or partition, with its timeline */
	WIRE_CLOSED,          /* its device */
};

enum { WIRE_TEXT = 400 };

/* The state of one side. */
struct wire_state {
	uint64_t value;
	int err;      /* of the timeline; 0: it has not failed */
	uint32_t end; /* enum wire_end */
	char text[WIRE_TEXT];
};

/* What wire_listen has found. */
enum wire_heard {
	WIRE_QUIET,
	WIRE_RUNG,   /* the other side has written its half */
	WIRE_GONE,   /* the other side has let go, or its process has ended */
	WIRE_BROKEN, /* it has sent something else than a ring */
};

/* Make the exporter's side, and *fd for the application.  Return 0 or -errno. */
int wire_export(struct wire *w, uint32_t rights, int *fd);
/* Make the importer's side from fd of wire_export, which stays the caller's.  Set
 * .rights.  Return 0; -EBADF; -EINVAL: fd is something else; -EPROTO: another version;
 * -EBUSY: it has been imported; or another -errno. */
int wire_import(struct wire *w, int fd);
/* Undo wire_import: the descriptor can be imported again. */
void wire_put_back(struct wire *w);
/* Close a side.  The other one reads an end of file. */
void wire_close(struct wire *w);

/* Write *s, which may not go back, to this side's half, and ring. */
void wire_write(struct wire *w, const struct wire_state *s);
/* Take the rings that have arrived, without waiting. */
enum wire_heard wire_listen(const struct wire *w);
/* Read the other side's half.  .text has no control characters; .end is any number. */
void wire_read(const struct wire *w, struct wire_state *s);

#endif
