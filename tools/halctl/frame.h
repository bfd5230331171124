/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what halctl top shows of a device. */
#ifndef HALCTL_FRAME_H
#define HALCTL_FRAME_H

#include "lib/json.h"
#include "sheet.h"

#define FRAME_COLUMNS 78u /* no narrower */
#define FRAME_ROWS    16u /* no lower */

/* An answer to "look".  Use is that between before and now; before NULL: since the device
 * was opened.  From row on; returns the row behind it. */
uint32_t frame_draw(struct sheet *s, uint32_t row, const struct json *now,
		    const struct json *before);

#endif
