/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make.h - an xclbin from a text, for tests: no bitstream that any card would take, but
 * whatever XRT itself reads of one.  A line each, # begins a comment:
 *
 *   platform NAME
 *   bank TAG TYPE BASE SIZE      TYPE ddr4, hbm, bram or streaming; SIZE with K, M or G
 *   bitstream SIZE               so large is the file at least
 *   kernel NAME UNITS            its units are NAME_1 to NAME_UNITS
 *   arg NAME memory [BYTES] BANKS   the least size, and the banks it reaches: 0-3,5
 *   arg NAME TYPE                char, short, int, uint, long, ulong, float or double
 *   reach UNIT ARG BANKS         that of unit UNIT (from 1 on) in place of its kernel's
 *
 * arg and reach belong to the kernel above them.  Arguments by the names hal_groups_x,
 * hal_groups_y, hal_groups_z, and behind those hal_state, hal_resume, hal_stop are not
 * given with a launch (docs/fpga.md).
 */
#ifndef HAL_MKXCLBIN_MAKE_H
#define HAL_MKXCLBIN_MAKE_H

#include <stddef.h>

/* *file is the caller's to free.  0; -EINVAL, -ENOMEM with "line N: what is wrong". */
int mkxclbin(const char *text, void **file, size_t *size, char *why, size_t why_bytes);

#endif
