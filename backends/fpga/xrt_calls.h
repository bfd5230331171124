/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of XRT's C interface that is made here, once: X(name, result, parameters,
 * arguments); and the values that go with them.  Handles are NULL and numbers not 0 when
 * a call has failed; errno may say why.
 */
#ifndef BACKENDS_FPGA_XRT_CALLS_H
#define BACKENDS_FPGA_XRT_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum { XRT_TO_DEVICE, XRT_FROM_DEVICE };
/* CACHEABLE: the kernel's driver allocates the host memory of a buffer, so that an
 * importer can map it, too; else it is memory of the process. */
enum { XRT_FLAGS_NONE, XRT_FLAGS_CACHEABLE = 1 << 24 };

/* What a run is in. */
#define XRT_STATES(X)                                                                    \
	X(NEW, 1)                                                                        \
	X(QUEUED, 2)                                                                     \
	X(RUNNING, 3)                                                                    \
	X(COMPLETED, 4)                                                                  \
	X(ERROR, 5)                                                                      \
	X(ABORT, 6)                                                                      \
	X(SUBMITTED, 7)                                                                  \
	X(TIMEOUT, 8)                                                                    \
	X(NORESPONSE, 9)                                                                 \
	X(SKERROR, 10)                                                                   \
	X(SKCRASHED, 11)

enum xrt_state {
#define XRT_STATE_VALUE(name, value) XRT_##name = (value),
	XRT_STATES(XRT_STATE_VALUE)
#undef XRT_STATE_VALUE
};

/* clang-format off */
#define XRT_CALLS(X) \
X(xrtDeviceOpen, void *, (unsigned int index), (index)) \
X(xrtDeviceClose, int, (void *device), (device)) \
X(xrtDeviceLoadXclbin, int, (void *device, const void *xclbin), (device, xclbin)) \
X(xrtDeviceGetXclbinUUID, int, (void *device, uint8_t *uuid), (device, uuid)) \
X(xrtPLKernelOpenExclusive, void *, \
	(void *device, const uint8_t *uuid, const char *name), (device, uuid, name)) \
X(xrtKernelClose, int, (void *kernel), (kernel)) \
X(xrtRunOpen, void *, (void *kernel), (kernel)) \
X(xrtKernelReadRegister, int, (void *kernel, uint32_t offset, uint32_t *value), \
	(kernel, offset, value)) \
X(xrtKernelWriteRegister, int, (void *kernel, uint32_t offset, uint32_t value), \
	(kernel, offset, value)) \
X(xrtRunClose, int, (void *run), (run)) \
X(xrtRunStart, int, (void *run), (run)) \
X(xrtRunState, uint32_t, (void *run), (run)) \
X(xrtBOAlloc, void *, (void *device, size_t bytes, uint64_t flags, uint32_t bank), \
	(device, bytes, flags, bank)) \
X(xrtBOSubAlloc, void *, (void *parent, size_t bytes, size_t offset), \
	(parent, bytes, offset)) \
X(xrtBOFree, int, (void *bo), (bo)) \
X(xrtBOMap, void *, (void *bo), (bo)) \
X(xrtBOSync, int, (void *bo, uint32_t direction, size_t bytes, size_t offset), \
	(bo, direction, bytes, offset)) \
X(xrtBOCopy, int, (void *to, void *from, size_t bytes, size_t to_offset, \
	size_t from_offset), (to, from, bytes, to_offset, from_offset))
/* A buffer's handle, or a number as C passes it where no parameter is declared. */
#define XRT_CALLS_OPEN(X) \
X(xrtRunSetArg, int, (void *run, int index, ...))
/* Calls without which buffers are not shared.  The number of an export is a file
 * descriptor, negative if it failed; sizes and addresses are all ones then. */
#define XRT_CALLS_SHARE(X) \
X(xrtBOExport, int, (void *bo), (bo)) \
X(xrtBOImport, void *, (void *device, int fd), (device, fd)) \
X(xrtBOSize, size_t, (void *bo), (bo)) \
X(xrtBOAddress, uint64_t, (void *bo), (bo))
/* clang-format on */

enum xrt_call {
#define XRT_NUMBER(name, ...) XRT_CALL_##name,
	XRT_CALLS(XRT_NUMBER) XRT_CALLS_OPEN(XRT_NUMBER) XRT_CALLS_SHARE(XRT_NUMBER)
#undef XRT_NUMBER
		XRT_CALL_COUNT
};
/* Those up to here are always needed. */
#define XRT_CALLS_NEEDED XRT_CALL_xrtBOExport

#endif
