/* SPDX-License-Identifier: Apache-2.0 */
/* What a build would have, for test_core_builtin.c. */
HAL_BACKEND(refusing)
HAL_BACKEND(silent)
HAL_BACKEND(strange)
HAL_BACKEND(ref)
