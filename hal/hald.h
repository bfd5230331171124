/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hald.h - what the operator of hald can do with a device that hald serves.
 *
 *   const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");
 *
 * Only the user that hald runs as, root, and tenants with admin = yes may call these
 * functions, except those of traces; hald.conf(5) has the keys of a tenant.
 */
#ifndef HAL_HALD_H
#define HAL_HALD_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors of all: handle; EPERM: the caller is no operator; ENODEV: hald has ended.
 * Threads: any. */
struct hal_hald_extension {
	uint32_t size;
	uint32_t reserved;
	/* Add the tenant whose section of hald.conf is `section`, a text of lines that
	 * begins with [tenant "name"].  It comes after the sections of the file.  If it
	 * has a socket, its path is written to path, which has room bytes; else "" is.
	 * Errors: EINVAL: the text is wrong; EEXIST: there is a tenant of that name.
	 * Others: of mkdir, bind. */
	int (*tenant_add)(struct hal_device *dev, const char *section, char *path,
			  uint32_t room);
	/* Remove a tenant, and end its clients, as if they had been killed.
	 * Errors: ENOENT: there is none of that name; EBUSY: it is the only one. */
	int (*tenant_remove)(struct hal_device *dev, const char *name);
	/* Write a line for each tenant to text, which has room bytes: its name, clients,
	 * units, bytes of memory, queues, and the path of its socket or "", with a tab
	 * between two.  What has a limit is written "HAS of LIMIT".
	 * Errors: ENOBUFS: room is too small. */
	int (*tenant_list)(struct hal_device *dev, char *text, uint32_t room);
	/* Write who uses the device, and for what, as JSON to text, which has room bytes.
	 * Keys may be added; hald_status, 1, changes with the meaning of any.  Times are
	 * device time in ns, memory is in bytes, and counts are of commands where nothing
	 * else is said.
	 *
	 *   device: served (NAME of hald:NAME), name, backend, start_s (of hald, seconds
	 *     since 1970), tick_ns (of --tick; 0: none), ticks_late (requests that have
	 *     missed their tick), now_ns, policy, policy_fallback and lost (true or
	 * false), units, memory, memory_free tenants: a list; "operator" is the tenant of
	 * operators without a section, and
	 *     "" sums up tenants that were removed.  Of each:
	 *     name, socket (its path; "": none)
	 *     limits, has: units, memory, bandwidth, partitions, queues, and of limits
	 *       clients; a resource without a limit is missing in limits
	 *     refused: requests, by error
	 *     ended: clients, by exit (closed the device), killed (ended without that),
	 *       protocol (sent what no library sends), removed (with the tenant)
	 *     busy_ns, submitted, completed, failed, deadline_misses: of its clients,
	 *       ended ones included
	 *     request_ns, requests: of submissions that ended without error, from
	 *       submission until all of it ended; their sum, at most 1 % off, and their
	 *       counts by powers of two, as hal_stats.latency_histogram, up to the last
	 *       count that is not 0
	 *     clients: a list
	 *   Of each client of a tenant:
	 *     number (in order of connection), pid (as hald sees it), self (true for the
	 *       caller), age_ns (since it connected)
	 *     classes (of its queues), units (ceilings included), memory (quotas),
	 *       partitions, queues
	 *     busy_ns (sum over its partitions), submitted, completed, failed,
	 *       deadline_misses
	 *     p50_ns, p99_ns: of submissions, of the slowest partition that it has
	 *
	 * While hald runs, counts of a tenant never decrease, except those in limits, has
	 * and clients.  Check .size before use: an older library's table is shorter.
	 * Errors: ENOBUFS: room is too small, the text needs more. */
	int (*status)(struct hal_device *dev, char *text, uint32_t room);
	/* As hal_trace_start, but keep only the newest events, and write them to the file
	 * at the end, which is at most bytes long.  An operator's trace shows the whole
	 * device, that of others what their tenant does.  Check .size before use.
	 * bytes: 64 KiB to 1 GiB; hald needs that much memory.
	 * Errors: those of hal_trace_start; EINVAL: bytes is out of range; EDQUOT: the
	 * traces of the tenant need too much memory.
	 * Memory: path is read during the call. */
	int (*trace_start)(struct hal_device *dev, const char *path, uint64_t bytes);
	/* As hal_trace_stop.  Write the number of events in the file to *events, and of
	 * those that are not to *dropped; both may be NULL.  Check .size before use. */
	int (*trace_stop)(struct hal_device *dev, uint64_t *events, uint64_t *dropped);
};

#ifdef __cplusplus
}
#endif
#endif
