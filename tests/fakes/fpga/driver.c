/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a card that the stand-in for XRT has: it has to be there, and to load. */
extern const char hal_stand_in_xrt_driver[];
const char hal_stand_in_xrt_driver[] = "of the stand-in";
