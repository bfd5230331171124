/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - a map of memory channels as a picture. */
#ifndef HALCTL_PICTURE_H
#define HALCTL_PICTURE_H

#include "lib/color_map.h"

/* A PPM file: a square a granule, the colour its channel's, 64 granules a row from the
 * first one on, up to 128 rows; of larger memories 64 rows more, at equal distances over
 * all of it.  0 or TOOL_FAILED. */
int picture_of_map(const struct color_map *map, const char *path);

#endif
