/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - the checks counted, wherever they are made. */
#include "bench.h"

uint64_t bench_checks, bench_failures;
