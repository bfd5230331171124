/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - buffers whose bytes are a memory file, which other devices and processes map.
 *
 * The machine reaches device memory by an array.  The file of such a buffer is mapped
 * over the part of the array that the buffer's granules are, which therefore are whole
 * pages of the host.
 */
#ifndef BACKENDS_NPU_SHARE_H
#define BACKENDS_NPU_SHARE_H

#include "internal.h"

/* Return the most granules that a buffer of so many pages takes. */
uint64_t npu_share_granules(const struct npu_device *dev, uint64_t pages);

/* Take the granules of mem, of colours in mask, and map file fd over them; the file has
 * at least mem->bytes.  Set .granules, .taken and .shared.  -ENOTSUP: whole pages do not
 * lie on these colours; -ENOSPC: too few are free. */
int npu_share_place(struct npu_device *dev, uint64_t mask, int fd, struct npu_mem *mem);

/* Unmap the file: the device gets memory of its own there, and the granules are free. */
void npu_share_remove(struct npu_mem *mem);

#endif
