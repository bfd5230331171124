/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - send and receive the messages of wire.h. */
#ifndef HAL_FAR_MESSAGE_H
#define HAL_FAR_MESSAGE_H

#include <stddef.h>

#include "far/wire.h"

/* Send m, with its payload of m->bytes bytes unless data is NULL, and count (0 to 2) file
 * descriptors.  Return 0 or -errno. */
int message_send(int fd, const struct far_message *m, const void *data, const int *fds,
		 int count);
/* Receive a message, its inline payload into data, which has FAR_INLINE bytes, and its
 * file descriptors, which the caller closes; -1: none.  Return 0; -ENOTCONN if the other
 * side has closed the connection; -EPROTO if what came is no message; or -errno. */
int message_receive(int fd, struct far_message *m, void *data, int fds[2]);
/* The same, with *sent_ns: CLOCK_REALTIME when it was sent; 0: not known.  message_stamps
 * has the kernel tell that of what comes to fd from then on. */
int message_receive_stamped(int fd, struct far_message *m, void *data, int fds[2],
			    uint64_t *sent_ns);
int message_stamps(int fd);
/* Return a memfd with bytes bytes of data, or -errno. */
int message_memory(const void *data, uint64_t bytes);
/* Read bytes bytes of a memfd from another process.  Return 0; -EPROTO if it is no memfd
 * or has fewer. */
int message_read(int memory, void *data, uint64_t bytes);

#endif
