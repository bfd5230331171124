/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.h - a card of the stand-in for XRT whose slot is the NPU, through hal.h and
 * backends/fpga: what carries out the steps of tests/rtl/stepped.h.
 */
#ifndef TESTS_FPGA_CARD_H
#define TESTS_FPGA_CARD_H

#include <stdint.h>

/* With so much memory for the NPU, at most 16 MiB; ends the test where that fails. */
void card_open(uint64_t memory_bytes);
/* Hands stepped.step to the card, and takes what came of them; what the rig has of the
 * memory goes there before, when .changed, and comes back after a run. */
void card_carry_out(void);
/* CHECKs that nothing was misused or is left. */
void card_close(void);

/* A byte of the card's memory at this address is changed behind its back; 0: none. */
extern uint64_t card_plant;

#endif
