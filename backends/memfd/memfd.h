/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfd.h - memory that several processes map, for backends whose device is this machine.
 *
 * It is an anonymous file (memfd_create) of whole pages.  A file that shrinks kills
 * whoever has it mapped (SIGBUS), so files of others are accepted only when sealed
 * against that.  Any thread may call these functions.
 */
#ifndef BACKENDS_MEMFD_MEMFD_H
#define BACKENDS_MEMFD_MEMFD_H

#include <stdint.h>

#include <hal/backend.h>

/* Return the size of a file that holds bytes. */
uint64_t memfd_size(uint64_t bytes);

/* Make a file of at least bytes, filled with zeros, of a size that nobody can change.
 * backend: its name, for error texts.  *out: its descriptor.  Return 0 or -errno. */
int memfd_make(const struct hal_host *host, const char *backend, uint64_t bytes,
	       int *out);

/* Check a descriptor that a stranger has passed: a memory file of at least bytes, of
 * ordinary pages, that can neither shrink nor is write-protected.  Return 0 or -EINVAL.
 */
int memfd_check(const struct hal_host *host, const char *backend, int fd, uint64_t bytes);

/* Return a copy of fd, O_CLOEXEC, or -errno. */
int memfd_copy(const struct hal_host *host, const char *backend, int fd);

#endif
