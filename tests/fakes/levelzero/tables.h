/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the tables of entry points that a loader asks a driver for: nearly all of
 * them, full or empty.  A slot that is NULL answers UNSUPPORTED_FEATURE from the loader.
 */
#ifndef TESTS_FAKES_LEVELZERO_TABLES_H
#define TESTS_FAKES_LEVELZERO_TABLES_H

#include <stddef.h>
#include <string.h>

#include "backends/levelzero/ze_calls.h"

#define EXPORT __attribute__((visibility("default")))

typedef void (*entry_fn)(void);

struct entry {
	const char *table;
	uint32_t slot;
	entry_fn fn;
};

static inline uint32_t fill_table(const struct entry *entries, size_t entry_count,
				  const char *table, void *slots, size_t count)
{
	entry_fn *out = slots;
	size_t i;

	for (i = 0; i < count; i++)
		out[i] = NULL;
	for (i = 0; i < entry_count; i++)
		if (strcmp(entries[i].table, table) == 0)
			out[entries[i].slot] = entries[i].fn;
	return LZ_SUCCESS;
}

/* clang-format off */
/* X(table, slots) */
#define LZ_TABLES(X) \
X(zeGetGlobal, 1) \
X(zeGetDriver, 6) \
X(zeGetDevice, 18) \
X(zeGetDeviceExp, 1) \
X(zeGetContext, 9) \
X(zeGetCommandQueue, 4) \
X(zeGetCommandList, 28) \
X(zeGetImage, 4) \
X(zeGetImageExp, 2) \
X(zeGetFence, 5) \
X(zeGetEventPool, 5) \
X(zeGetEvent, 7) \
X(zeGetEventExp, 1) \
X(zeGetModule, 9) \
X(zeGetModuleBuildLog, 2) \
X(zeGetKernel, 12) \
X(zeGetKernelExp, 2) \
X(zeGetSampler, 2) \
X(zeGetPhysicalMem, 2) \
X(zeGetMem, 10) \
X(zeGetVirtualMem, 7) \
X(zeGetFabricVertexExp, 4) \
X(zeGetFabricEdgeExp, 3) \
X(zetGetDevice, 1) \
X(zetGetContext, 1) \
X(zetGetCommandList, 4) \
X(zetGetModule, 1) \
X(zetGetKernel, 1) \
X(zetGetMetricGroup, 3) \
X(zetGetMetricGroupExp, 1) \
X(zetGetMetric, 2) \
X(zetGetMetricStreamer, 3) \
X(zetGetMetricQueryPool, 2) \
X(zetGetMetricQuery, 4) \
X(zetGetTracerExp, 5) \
X(zetGetDebug, 11) \
X(zesGetDriver, 2) \
X(zesGetDevice, 29) \
X(zesGetScheduler, 8) \
X(zesGetPerformanceFactor, 3) \
X(zesGetPower, 8) \
X(zesGetFrequency, 17) \
X(zesGetEngine, 2) \
X(zesGetStandby, 3) \
X(zesGetFirmware, 2) \
X(zesGetMemory, 3) \
X(zesGetFabricPort, 6) \
X(zesGetTemperature, 4) \
X(zesGetPsu, 2) \
X(zesGetFan, 6) \
X(zesGetLed, 4) \
X(zesGetRas, 4) \
X(zesGetDiagnostics, 3)
/* clang-format on */

/* LZ_TABLES(EXPORT_TABLE) at the end of a driver, behind its `entries`: of two for one
 * slot the later one counts. */
#define EXPORT_TABLE(table, count)                                                       \
	EXPORT uint32_t table##ProcAddrTable(uint32_t version, void *slots);             \
	uint32_t table##ProcAddrTable(uint32_t version, void *slots)                     \
	{                                                                                \
		(void)version;                                                           \
		return fill_table(entries, sizeof(entries) / sizeof(entries[0]), #table, \
				  slots, count);                                         \
	}

#endif
