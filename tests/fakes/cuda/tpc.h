/* SPDX-License-Identifier: Apache-2.0 */
/* tpc.h - GPUs as they were drawn, in clusters (GPCs) of places for groups of
 * multiprocessors (TPCs), and which of these do not work. */
#ifndef TESTS_FAKES_CUDA_TPC_H
#define TESTS_FAKES_CUDA_TPC_H

#include <stdbool.h>
#include <stdint.h>

enum { TPC_CLUSTERS_MAX = 8, TPC_GPUS = 8 };

struct tpc_gpu {
	const char *name;
	uint32_t major, minor;
	uint32_t qmd;                   /* version of its launch descriptors */
	uint32_t clusters, places, sms; /* places of a cluster, multiprocessors of one */
	uint32_t broken[TPC_CLUSTERS_MAX]; /* places of each, a bit a place */
	uint64_t memory;
	/* As an H100 was seen: bits run cluster by cluster, multiprocessors are counted
	 * place by place, and these bits are places by themselves, counted last.  Else
	 * the other way round. */
	bool by_cluster;
	uint8_t single[6];
};

/* The first two are the stand-in's devices; device 0 is another one where
 * HAL_STAND_IN_CUDA_CARD has its name. */
extern const struct tpc_gpu tpc_gpus[TPC_GPUS];

uint32_t tpc_sms(const struct tpc_gpu *g);

#endif
