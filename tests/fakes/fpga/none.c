/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the name, but not XRT's. */
int nothing_of_xrt(void);
int nothing_of_xrt(void)
{
	return 0;
}
