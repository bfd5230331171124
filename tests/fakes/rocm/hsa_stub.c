/* SPDX-License-Identifier: Apache-2.0 */
/* libhsa-runtime64.so.1: its calls are in the stand-in of HIP, which stands on the same
 * devices and which this library needs; so they are found here by dlsym. */
extern const int hal_stand_in_hsa;
__attribute__((visibility("default"))) const int hal_stand_in_hsa = 1;
