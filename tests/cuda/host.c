/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

const struct host_face host_face = {.library = "libcuda.so.1",
				    .stand_in = "libcuda.so.1"};
