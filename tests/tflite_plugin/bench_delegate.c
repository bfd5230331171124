/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_delegate.c - how much of networks the delegate takes, and what a hand-over costs.
 *
 *   bench_delegate NETWORK...
 *
 * Networks are .tflite files.  Prints, as figures, the median and the least share of
 * their multiply-accumulates on the device, and the wall time of a partition that is one
 * small convolution, in us.  A network with nothing on the device is a failure.
 * $DELEGATE is the library, $DELEGATE_TARGET the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_host.h"
#include "model.h"
#include "plugin.h"

#define NETWORKS_MAX 64
#define ROUNDS       201

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Read the share of multiply-accumulates from the summary; -1: there is none. */
static double share_of(const char *text)
{
	static const char *const nodes = " nodes, ", *const of = " of ";
	const char *at = strstr(text, nodes), *all = at ? strstr(at, of) : NULL;
	double macs, total;

	if (!all)
		return -1;
	macs = strtod(at + strlen(nodes), NULL);
	total = strtod(all + strlen(of), NULL);
	return total > 0 ? macs / total : -1;
}

static double try_network(const char *path, struct tfl_delegate *d)
{
	char why[NPUC_WHY], text[4096];
	struct npuc_model *m;
	double share = -1;
	struct host *h;

	if (npuc_model_load(path, &m, why)) {
		printf("FAILED %s\n", why);
		return -1;
	}
	h = host_of_model(HOST_NOW, m);
	capture_begin();
	if (host_apply(h, d) == TFL_OK && host_allocate(h) == TFL_OK)
		share = -2;
	capture_end(text, sizeof(text));
	if (share == -2)
		share = share_of(text);
	printf("%s: %.4f of the multiply-accumulates are on the device\n", path, share);
	if (share <= 0)
		printf("FAILED %s%s\n", text, host_errors(h));
	host_free(h);
	npuc_model_free(m);
	return share;
}

/* ---- hand-over -------------------------------------------------------------------- */

static struct host *small_graph(void)
{
	static const int8_t weight = 1;
	static const int32_t bias = 0;
	static const int params[7] = {2 /* valid */, 1, 1, 0, 1, 1, 0};
	struct host_tensor x = {.name = "x",
				.type = TFL_INT8,
				.rank = 4,
				.dims = {1, 1, 1, 1},
				.scale = 1};
	struct host_tensor w = x, b = {.type = TFL_INT32,
				       .rank = 1,
				       .dims = {1},
				       .scale = 1,
				       .data = &bias};
	struct host *h = host_make(HOST_NOW);
	void *copy = malloc(sizeof(params));

	if (!copy)
		abort();
	memcpy(copy, params, sizeof(params));
	w.data = &weight;
	host_add_tensor(h, &x);
	host_add_tensor(h, &w);
	host_add_tensor(h, &b);
	host_add_tensor(h, &x);
	host_add_node(h, NPUC_CONV_2D, 3, NULL, (int[]){0, 1, 2, -2}, (int[]){3, -2},
		      copy, NULL);
	host_set_ports(h, (int[]){0, -2}, (int[]){3, -2});
	return h;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The median of many inferences, or -1. */
static double handover_us(struct tfl_delegate *d)
{
	struct host *h = small_graph();
	double times[ROUNDS], median = -1;
	char text[4096];
	int rc;

	capture_begin();
	rc = host_apply(h, d);
	capture_end(text, sizeof(text));
	rc = rc ? rc : host_allocate(h);
	for (int i = 0; !rc && i < ROUNDS; i++) {
		double start = now_us();

		rc = host_invoke(h);
		times[i] = now_us() - start;
	}
	if (rc) {
		printf("FAILED %s%s\n", text, host_errors(h));
	} else {
		qsort(times, ROUNDS, sizeof(times[0]), by_value);
		median = times[ROUNDS / 2];
	}
	host_free(h);
	return median;
}

int main(int argc, char **argv)
{
	double shares[NETWORKS_MAX], us;
	char option[512], text[1024];
	const char *const options[] = {option, NULL};
	struct tfl_delegate *d;
	int count = argc - 1;

	if (count < 1 || count > NETWORKS_MAX)
		return 2;
	plugin_load();
	snprintf(option, sizeof(option), "target=%s", getenv("DELEGATE_TARGET"));
	d = plugin_create(options, text, sizeof(text));
	if (!d) {
		printf("FAILED %s\n", text);
		return 1;
	}
	for (int i = 0; i < count; i++)
		shares[i] = try_network(argv[1 + i], d);
	us = handover_us(d);
	plugin_destroy(d);
	qsort(shares, (size_t)count, sizeof(shares[0]), by_value);
	if (shares[0] <= 0 || us < 0)
		return 1;
	printf("figure plugin.tflite.macs_on_device %.4f\n", shares[count / 2]);
	printf("figure plugin.tflite.macs_on_device_min %.4f\n", shares[0]);
	printf("figure plugin.tflite.handover_us %.1f\n", us);
	return 0;
}
