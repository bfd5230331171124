/* SPDX-License-Identifier: Apache-2.0 */
/* Backends out of the tree that are not what they should be. */
#define _GNU_SOURCE
#include "negative.h"

#include <stdio.h>

static int open_with(struct neg *w, const char *path)
{
	char option[1024];
	const char *options[] = {option, NULL};

	snprintf(option, sizeof(option), "hal.plugins=%s", path);
	return hal_open("ref", options, &w->dev2);
}

NEGATIVE(hal_open, EPROTO, plugin_of_other_abi, "ABI 43")
{
	return open_with(w, NEG_PLUGINS "/neg_plugin_abi.so");
}

NEGATIVE(hal_open, EPROTO, plugin_table_short, "16 bytes")
{
	return open_with(w, NEG_PLUGINS "/neg_plugin_size.so");
}

NEGATIVE(hal_open, EPROTO, plugin_name, "neg_plugin_name.so")
{
	return open_with(w, NEG_PLUGINS "/neg_plugin_name.so");
}

NEGATIVE(hal_open, EINVAL, plugin_name_taken, "ref")
{
	return open_with(w, NEG_PLUGINS "/neg_plugin_same.so");
}

NEGATIVE(hal_open, EPROTO, plugin_refuses, "not today")
{
	return open_with(w, NEG_PLUGINS "/neg_plugin_refuses.so");
}

NEGATIVE(hal_open, EPROTO, plugin_without_symbol, "hal_backend_entry")
{
	return open_with(w, "libm.so.6");
}

NEGATIVE(hal_open, ENOENT, plugin_missing, "/nonexistent/plugin.so")
{
	return open_with(w, "/nonexistent/plugin.so");
}

NEGATIVE(hal_open, ENOENT, plugin_not_a_library, "hal-negative")
{
	NEG_OK(neg_config(w, "not a library\n"));
	return open_with(w, w->path);
}
