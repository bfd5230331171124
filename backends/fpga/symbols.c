/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XRT: its library, opened at run time and once a process, and the environment by which
 * it finds its driver.  It ends the process where that is wrong, so it is looked at
 * before the first call.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fp_symbols xrt;

static struct {
	pthread_mutex_t lock;
	_Atomic(char *) library; /* NULL: none yet; set when xrt is filled in */
} loaded = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* XRT may be slow to load, and a fork is not to wait for that.  If another thread was
 * loading it, the child loads it for itself. */
static void loaded_in_child(void)
{
	(void)pthread_mutex_init(&loaded.lock, NULL);
}

__attribute__((constructor)) static void loaded_watch(void)
{
	(void)pthread_atfork(NULL, NULL, loaded_in_child);
}

static const struct {
	const char *name;
	size_t offset;
} rows[] = {
#define ROW(name, ...) {#name, offsetof(struct fp_symbols, name)},
	XRT_CALLS(ROW) XRT_CALLS_OPEN(ROW) XRT_CALLS_SHARE(ROW)
#undef ROW
		{"halStandInXrtCards", offsetof(struct fp_symbols, cards)},
	{"halStandInXrtDrive", offsetof(struct fp_symbols, drive)},
	{"halStandInXrtAdvance", offsetof(struct fp_symbols, advance)},
};

static int check_driver(const char *root, const char *driver, const char *reason)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/lib/lib%s.so.2", root, driver);
	if (access(path, R_OK) == 0)
		return 0;
	return fp_host->fail(ENODEV,
			     "fpga: XILINX_XRT=%s%s: %s does not exist; XRT would end "
			     "the process without it",
			     root, reason, path);
}

int fp_check_environment(bool *emulated)
{
	const char *root = secure_getenv("XILINX_XRT"),
		   *mode = secure_getenv("XCL_EMULATION_MODE");

	*emulated = mode != NULL;
	if (!root || !root[0])
		return fp_host->fail(ENODEV, "fpga: XILINX_XRT is not set, and XRT would "
					     "end the process without it; set it to the "
					     "folder whose lib/ has libxrt_core.so.2");
	if (!mode)
		return check_driver(root, "xrt_core", "");
	if (strcmp(mode, "noop") == 0)
		return check_driver(root, "xrt_noop", ", XCL_EMULATION_MODE=noop");
	if (strcmp(mode, "sw_emu") == 0 || strcmp(mode, "hw_emu") == 0)
		return fp_host->fail(ENOTSUP,
				     "fpga: XCL_EMULATION_MODE=%s: emulation by the "
				     "vendor's tools is not supported",
				     mode);
	return fp_host->fail(ENODEV,
			     "fpga: XCL_EMULATION_MODE=%s: XRT does not know this mode "
			     "and would end the process; unset it",
			     mode);
}

/* It stays: XRT loads it at its first call, and ends the process where it cannot. */
int fp_load_driver(bool emulated)
{
	const char *root = secure_getenv("XILINX_XRT");
	char path[4096];

	snprintf(path, sizeof(path), "%s/lib/lib%s.so.2", root ? root : "",
		 emulated ? "xrt_noop" : "xrt_core");
	if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
		return 0;
	return fp_host->fail(ENODEV,
			     "fpga: XILINX_XRT=%s: cannot load its driver, and XRT would "
			     "end the process without it: %s",
			     root ? root : "", dlerror());
}

static int open_library(const char *library)
{
	struct fp_symbols s;
	void *handle, *p;
	char *name;
	size_t i;

	if (loaded.library && strcmp(loaded.library, library) != 0)
		return fp_host->fail(
			EBUSY,
			"fpga: library=%s cannot be loaded: this process already uses %s",
			library, loaded.library);
	if (loaded.library)
		return 0;
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return fp_host->fail(ENODEV, "fpga: no XRT: %s", dlerror());
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		p = dlsym(handle, rows[i].name);
		if (!p && i < XRT_CALLS_NEEDED)
			return fp_host->fail(ENODEV,
					     "fpga: %s has no %s: XRT 2.13 (2022.1) or "
					     "later is needed",
					     library, rows[i].name);
		memcpy((char *)&s + rows[i].offset, &p, sizeof(p));
	}
	name = strdup(library);
	if (!name)
		return fp_host->fail(ENOMEM, "fpga: no memory for a name");
	xrt = s;
	loaded.library = name;
	return 0;
}

/* It stays open: it does not survive being unloaded. */
int fp_load(const char *library)
{
	int err;

	pthread_mutex_lock(&loaded.lock);
	err = open_library(library);
	pthread_mutex_unlock(&loaded.lock);
	return err;
}

/* XRT says only now and then why; without a reason it is the device's. */
static int errno_of(int e)
{
	switch (e) {
	case 0:
		return EIO;
	case ENOMEM:
		return ENOSPC;
	case EACCES:
		return EPERM;
	case EOPNOTSUPP:
		return ENOTSUP;
	default:
		return e;
	}
}

int fp_why(struct fp_device *dev, const char *call, char *text, size_t bytes)
{
	const int e = errno;

	if (dev && e == ENODEV)
		atomic_store(&dev->lost, true);
	snprintf(text, bytes, "%s: %s", call, e ? strerrorname_np(e) : "no reason given");
	return -errno_of(e);
}

int fp_failed(struct fp_device *dev, const char *call, const char *what)
{
	char text[96];
	const int err = fp_why(dev, call, text, sizeof(text));

	return fp_host->fail(-err, "fpga: %s: %s", text, what);
}
