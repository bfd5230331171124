/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - comparisons as a page that needs no network, or as pictures. */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include "compare.h"

/* Those of one load behind each other; all on one device, with .shown.  0 or TOOL_FAILED.
 */
int page_write(const struct comparison *list, uint32_t count, const char *path);
/* PREFIX-LOAD-RATE-units.png and so on. */
int pictures_write(const struct comparison *list, uint32_t count, const char *prefix);

#endif
