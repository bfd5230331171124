/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

const struct host_face host_face = {
	.library = "any", .topology = TOPOLOGY, .stand_in = "libamdhip64.so.5"};
