/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - for which of the application's threads a thread works.  Any thread. */
#ifndef HAL_UTIL_CALLER_H
#define HAL_UTIL_CALLER_H

#include <stdint.h>

/* Return the number of the thread that this thread acts for, else its own.  Never 0; no
 * two threads of the process ever have the same. */
uint64_t caller_number(void);
/* Let this thread act for the one with that number; 0: for none.  Return the number that
 * it acted for before, or 0. */
uint64_t caller_act_for(uint64_t number);

#endif
