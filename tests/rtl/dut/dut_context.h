/* SPDX-License-Identifier: Apache-2.0 */
/* dut_context.h - a module begins with every register that nothing has reset at random,
 * as a chip does. */
#ifndef DUT_CONTEXT_H
#define DUT_CONTEXT_H

#include "verilated.h"

struct DutContext : VerilatedContext {
	DutContext()
	{
		randReset(2);
		randSeed(1);
	}
};

#endif
