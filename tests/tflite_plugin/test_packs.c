/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_packs.c - models of data/tflite through the delegate in the fake interpreter.
 *
 *   test_packs [--figures] [--shard I/N] PACK...
 *
 * Every model must be accepted.  One that the delegate takes whole must give the bytes of
 * the pack; the fake interpreter cannot compute what is left of the others.  $DELEGATE is
 * the library, $DELEGATE_TARGET the device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_host.h"
#include "model.h"
#include "oracle.h"
#include "plugin.h"

struct totals {
	uint32_t models, whole, partly, not_at_all, failed;
};

/* Copy the next bytes of a pack into, or compare them with, tensors of the graph. */
static int inputs_set(struct host *h, const uint8_t **in, size_t *left)
{
	const struct tfl_ints *list = host_inputs(h);

	for (int i = 0; i < list->size; i++) {
		struct tfl_tensor *t = host_tensor(h, list->data[i]);

		if (t->bytes > *left)
			return -EINVAL;
		memcpy(t->data, *in, t->bytes);
		*in += t->bytes;
		*left -= t->bytes;
	}
	return 0;
}

static int outputs_compare(struct host *h, const uint8_t **out, size_t *left)
{
	const struct tfl_ints *list = host_outputs(h);
	int rc = 0;

	for (int i = 0; i < list->size; i++) {
		struct tfl_tensor *t = host_tensor(h, list->data[i]);

		if (t->bytes > *left)
			return -EINVAL;
		if (memcmp(t->data, *out, t->bytes) != 0)
			rc = -EBADMSG;
		*out += t->bytes;
		*left -= t->bytes;
	}
	return rc;
}

/* Run one inference, or several in a row. */
static int run(struct host *h, const struct oracle_model *m)
{
	uint8_t *random = malloc((size_t)m->input_bytes + 1);
	const uint8_t *in = m->input ? m->input : random, *out = m->output;
	size_t in_left = m->input_bytes, out_left = m->output_bytes;
	int rc = random ? 0 : -ENOMEM;

	if (!rc && !m->input)
		oracle_random(m->seed, random, m->input_bytes);
	while (!rc && (in_left || out_left)) {
		rc = inputs_set(h, &in, &in_left);
		if (!rc && host_invoke(h))
			rc = -EIO;
		if (!rc)
			rc = outputs_compare(h, &out, &out_left);
	}
	free(random);
	return rc;
}

static int accept(struct host *h, struct tfl_delegate *d)
{
	char text[4096];
	int rc;

	capture_begin();
	rc = host_apply(h, d);
	if (!rc)
		rc = host_allocate(h);
	capture_end(text, sizeof(text));
	return rc ? -EPROTO : 0;
}

static void try_model(const struct oracle_model *m, struct tfl_delegate *d,
		      struct totals *t)
{
	uint32_t taken, left, partitions;
	struct npuc_model *model = NULL;
	char why[NPUC_WHY] = "";
	struct host *h;
	int rc;

	t->models++;
	if (npuc_model_parse(m->model, m->model_bytes, "model", &model, why))
		return; /* a hostile one, or one with a type that npuc does not read */
	h = host_of_model(HOST_NOW, model);
	rc = accept(h, d);
	taken = host_delegated(h, &left, &partitions);
	if (!rc && taken && !left) {
		t->whole++;
		rc = m->output_bytes ? run(h, m) : 0;
	} else if (!rc) {
		t->partly += taken != 0;
		t->not_at_all += taken == 0;
	}
	if (rc) {
		t->failed++;
		printf("FAILED %s: %s %s\n", m->text,
		       rc == -EBADMSG ? "other bytes" : strerror(-rc), host_errors(h));
	}
	host_free(h);
	npuc_model_free(model);
}

static int try_pack(const char *path, uint32_t shard, uint32_t shards,
		    struct tfl_delegate *d, struct totals *t)
{
	struct oracle_model m;
	struct oracle_pack p;
	int rc = oracle_pack_open(path, &p);

	for (uint32_t i = 0; !rc && i < p.models; i++) {
		rc = oracle_pack_next(&p, &m);
		if (!rc && i % shards == shard)
			try_model(&m, d, t);
	}
	if (rc)
		printf("FAILED %s: %s\n", path, strerror(-rc));
	oracle_pack_close(&p);
	return rc;
}

int main(int argc, char **argv)
{
	uint32_t shard = 0, shards = 1;
	struct totals t = {0};
	struct tfl_delegate *d;
	char option[512], text[1024];
	/* The packs have the bytes of TensorFlow Lite 2.14. */
	const char *const options[] = {option, "reference=2.14", NULL};
	bool figures = argc > 1 && strcmp(argv[1], "--figures") == 0;
	int at = 1 + figures, rc = 0;

	if (at + 1 < argc && strcmp(argv[at], "--shard") == 0) {
		if (sscanf(argv[at + 1], "%u/%u", &shard, &shards) != 2 ||
		    shard >= shards)
			return 2;
		at += 2;
	}
	plugin_load();
	snprintf(option, sizeof(option), "target=%s", getenv("DELEGATE_TARGET"));
	d = plugin_create(options, text, sizeof(text));
	if (!d) {
		printf("FAILED %s\n", text);
		return 1;
	}
	for (; at < argc && !rc; at++)
		rc = try_pack(argv[at], shard, shards, d, &t);
	plugin_destroy(d);
	printf("%u models: %u whole on the NPU, %u partly, %u not at all; %u failed\n",
	       t.models, t.whole, t.partly, t.not_at_all, t.failed);
	if (figures && !rc) {
		printf("figure plugin.tflite.models %u\n", t.models);
		printf("figure plugin.tflite.mismatches %u\n", t.failed);
		return 0;
	}
	return rc || t.failed || !t.whole;
}
