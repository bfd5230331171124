/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the delegate's library, loaded as a runtime loads it. */
#ifndef DELEGATE_PLUGIN_H
#define DELEGATE_PLUGIN_H

#include <stddef.h>

#include "tfl_abi.h"

/* Load $DELEGATE; exits the test if that fails. */
void plugin_load(void);
/* options: "key=value" strings, and NULL.  text: what report_error got, or NULL to pass
 * no function. */
struct tfl_delegate *plugin_create(const char *const *options, char *text, size_t size);
void plugin_destroy(struct tfl_delegate *d);

/* Send standard error to a file, and read what has been written to it. */
void capture_begin(void);
void capture_end(char *text, size_t size);

#endif
