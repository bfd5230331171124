/* SPDX-License-Identifier: Apache-2.0 */
/* test_onnx_plugin.c - the execution provider in a runtime of our own (host.h): what it
 * claims and computes, and what it does when the runtime is old, fails, or lets go of
 * things in another order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host.h"

#define C       3
#define H       5
#define N       4
#define PREFIX  "ep.accelhalexecutionprovider."
#define TARGET  "npu:0?clock=virtual&model=" MODEL
#define THREADS 4

typedef struct ort_status *(*create_fn)(const char *name, const struct ort_api_base *base,
					const struct ort_logger *logger,
					struct ort_factory **factories, size_t room,
					size_t *made);
typedef struct ort_status *(*release_fn)(struct ort_factory *f);

static void *library;
static create_fn create;
static release_fn release;

static void load(void)
{
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	*(void **)&create = dlsym(library, "CreateEpFactories");
	*(void **)&release = dlsym(library, "ReleaseEpFactory");
	assert_true(create && release);
}

static void ok(struct ort_status *s)
{
	int code;

	if (s)
		fail_msg("%s", host_text(s, &code));
}

static void fails(struct ort_status *s, int want, const char *what)
{
	int code;
	const char *text = host_text(s, &code);

	assert_int_equal(code, want);
	if (!strstr(text, what))
		fail_msg("no '%s' in '%s'", what, text);
}

/* ---- sessions ----------------------------------------------------------------------- */

static struct ort_factory *factory_make(void)
{
	struct ort_factory *f = NULL;
	size_t made = 9;

	ok(create("npu", host_base(ORT_VERSION), NULL, &f, 1, &made));
	assert_int_equal(made, 1);
	assert_non_null(f);
	return f;
}

struct session {
	struct ort_factory *factory;
	struct ort_ep *ep;
	struct host_support support;
	struct host_graph subs[4];
	struct host_node fused[4];
	struct ort_compute_info *infos[4];
	void *states[4];
};

static struct host_options options_of(const char *key, const char *value)
{
	struct host_options o = {.keys = {PREFIX "target", "session.other"},
				 .values = {TARGET, "x"},
				 .count = 2};

	if (key) {
		o.keys[o.count] = key;
		o.values[o.count++] = value;
	}
	return o;
}

static struct ort_status *session_make(struct session *s, struct ort_factory *f,
				       const char *key, const char *value)
{
	struct host_options o = options_of(key, value);
	static const int cpu = ORT_HARDWARE_CPU;
	const struct ort_hardware *device = (const void *)&cpu;
	static char logger;

	*s = (struct session){.factory = f};
	return f->CreateEp(f, &device, NULL, 1, (const void *)&o, (const void *)&logger,
			   &s->ep);
}

static struct ort_status *claim(struct session *s, const struct host_graph *g)
{
	return s->ep->GetCapability(s->ep, (const void *)g, (void *)&s->support);
}

static struct ort_status *compile(struct session *s, const struct host_graph *g)
{
	const struct ort_graph *graphs[4];
	const struct ort_node *nodes[4];

	for (uint32_t i = 0; i < s->support.count; i++) {
		host_fuse(g, &s->support.parts[i], &s->subs[i], &s->fused[i]);
		graphs[i] = (const void *)&s->subs[i];
		nodes[i] = (const void *)&s->fused[i];
	}
	return s->ep->Compile(s->ep, graphs, nodes, s->support.count, s->infos, NULL);
}

static void session_open(struct session *s, struct ort_factory *f,
			 const struct host_graph *g)
{
	ok(session_make(s, f, NULL, NULL));
	ok(claim(s, g));
	ok(compile(s, g));
	for (uint32_t i = 0; i < s->support.count; i++)
		ok(s->infos[i]->CreateState(s->infos[i], NULL, &s->states[i]));
}

static void release_kernels(struct session *s)
{
	for (uint32_t i = 0; i < s->support.count; i++)
		s->infos[i]->ReleaseState(s->infos[i], s->states[i]);
	s->ep->ReleaseNodeComputeInfos(s->ep, s->infos, s->support.count);
}

static void session_close(struct session *s)
{
	release_kernels(s);
	s->factory->ReleaseEp(s->factory, s->ep);
}

/* ---- a convolution between quantized values ------------------------------------------ */

static const int64_t image[] = {1, C, H, H}, weights_shape[] = {N, C, 3, 3},
		     result[] = {1, N, H, H}, channels[] = {N};
static const float x_scale = 0.05f, y_scale = 0.07f,
		   w_scales[N] = {.011f, .02f, .005f, .013f};
static const uint8_t x_zero = 120, y_zero = 7;
static const int8_t w_zeros[N];
static const int32_t b_zeros[N], bias[N] = {300, -700, 0, 45};
static float b_scales[N];
static int8_t weights[N * C * 9];

static struct host_value *constant(struct host_graph *g, const char *name, int type,
				   uint32_t count, const void *data)
{
	const int64_t dims[] = {count};

	return host_value(g, name, type, count > 1, dims, data);
}

static struct host_value *dequantize(struct host_graph *g, const char *name,
				     struct host_value *q, struct host_value *scale,
				     struct host_value *zero, bool axis)
{
	struct host_value *f =
		host_value(g, name, ORT_TYPE_FLOAT, q->rank, q->dims, NULL);
	struct host_node *n = host_node(g, "DequantizeLinear", 3,
					(struct host_value *[]){q, scale, zero}, f);

	if (axis)
		n->attrs[0] = (struct host_attr){
			.name = "axis", .type = ORT_ATTR_INT, .ints = {0}, .count = 1};
	return f;
}

/* The graph: uint8 "x" -> Conv, Relu -> uint8 "y". */
static struct host_value *conv(struct host_graph *g)
{
	struct host_value *x = host_value(g, "x", ORT_TYPE_UINT8, 4, image, NULL);
	struct host_value *xs = constant(g, "xs", ORT_TYPE_FLOAT, 1, &x_scale);
	struct host_value *xz = constant(g, "xz", ORT_TYPE_UINT8, 1, &x_zero);
	struct host_value *w =
		host_value(g, "w", ORT_TYPE_INT8, 4, weights_shape, weights);
	struct host_value *ws = constant(g, "ws", ORT_TYPE_FLOAT, N, w_scales);
	struct host_value *wz = constant(g, "wz", ORT_TYPE_INT8, N, w_zeros);
	struct host_value *b = host_value(g, "b", ORT_TYPE_INT32, 1, channels, bias);
	struct host_value *bs = constant(g, "bs", ORT_TYPE_FLOAT, N, b_scales);
	struct host_value *bz = constant(g, "bz", ORT_TYPE_INT32, N, b_zeros);
	struct host_value *ys = constant(g, "ys", ORT_TYPE_FLOAT, 1, &y_scale);
	struct host_value *yz = constant(g, "yz", ORT_TYPE_UINT8, 1, &y_zero);
	struct host_value *c = host_value(g, "c", ORT_TYPE_FLOAT, 4, result, NULL);
	struct host_value *r = host_value(g, "r", ORT_TYPE_FLOAT, 4, result, NULL);
	struct host_value *y = host_value(g, "y", ORT_TYPE_UINT8, 4, result, NULL);
	struct host_value *in[3];
	struct host_node *n;

	for (uint32_t i = 0; i < N; i++)
		b_scales[i] = x_scale * w_scales[i];
	for (uint32_t i = 0; i < sizeof(weights); i++)
		weights[i] = (int8_t)(i * 73 % 255 - 127);
	in[0] = dequantize(g, "xf", x, xs, xz, false);
	in[1] = dequantize(g, "wf", w, ws, wz, true);
	in[2] = dequantize(g, "bf", b, bs, bz, true);
	n = host_node(g, "Conv", 3, in, c);
	n->attrs[0] = (struct host_attr){
		.name = "pads", .type = ORT_ATTR_INTS, .ints = {1, 1, 1, 1}, .count = 4};
	host_node(g, "Relu", 1, &c, r);
	host_node(g, "QuantizeLinear", 3, (struct host_value *[]){r, ys, yz}, y);
	return y;
}

/* What the graph's result is, in float. */
static float expected(const uint8_t *x, uint32_t n, int32_t row, int32_t col)
{
	float sum = (float)bias[n];

	for (uint32_t c = 0; c < C; c++)
		for (int32_t a = 0; a < 3; a++)
			for (int32_t b = 0; b < 3; b++) {
				int32_t y = row + a - 1, z = col + b - 1;

				if (y < 0 || z < 0 || y >= H || z >= H)
					continue;
				sum += (float)((x[(c * H + (uint32_t)y) * H +
						  (uint32_t)z] -
						x_zero) *
					       weights[((n * C + c) * 3 + (uint32_t)a) *
							       3 +
						       (uint32_t)b]);
			}
	sum *= x_scale * w_scales[n] / y_scale;
	return fminf(fmaxf(rintf(sum), 0) + y_zero, 255);
}

/* Run the convolution; NULL, or what was wrong. */
static const char *run(struct session *s, uint32_t seed)
{
	uint8_t x[C * H * H];
	struct host_context c = {.in = {{.data = x, .dims = {1, C, H, H}, .rank = 4}},
				 .in_count = 1};
	const char *wrong = NULL;
	uint32_t varied = 0;
	int code;

	for (uint32_t i = 0; i < sizeof(x); i++)
		x[i] = (uint8_t)((i + seed) * 151 % 256);
	wrong = host_text(s->infos[0]->Compute(s->infos[0], s->states[0], (void *)&c),
			  &code);
	if (code)
		return wrong;
	wrong = c.out[0].bytes == N * H * H && c.out[0].rank == 4 && c.out[0].dims[1] == N
			? NULL
			: "shape";
	for (uint32_t i = 0; !wrong && i < N * H * H; i++) {
		float want =
			expected(x, i / (H * H), (int32_t)(i / H % H), (int32_t)(i % H));
		uint8_t got = ((uint8_t *)c.out[0].data)[i];

		varied += got != y_zero;
		if (fabsf(want - got) > 1)
			wrong = "a result is wrong by more than one step";
	}
	free(c.out[0].data);
	return wrong ? wrong : varied ? NULL : "all results are zero";
}

static void runs(struct session *s, uint32_t seed)
{
	const char *wrong = run(s, seed);

	if (wrong)
		fail_msg("%s", wrong);
}

/* ---- tests -------------------------------------------------------------------------- */

static void test_old(void **state)
{
	struct ort_factory *f = NULL;
	size_t made = 9;

	(void)state;
	fails(create("npu", host_base(22), NULL, &f, 1, &made), ORT_ERROR_NOT_IMPLEMENTED,
	      "1.22.1 has no API 23; 1.23 or newer");
	assert_int_equal(made, 0);
	made = 9;
	ok(create("npu", host_base(0), NULL, &f, 1, &made));
	assert_int_equal(made, 0);
	fails(create("npu", host_base(ORT_VERSION), NULL, &f, 0, &made), ORT_ERROR_FAIL,
	      "no room");
	assert_null(f);
	/* The table may be longer. */
	ok(create("npu", host_base(ORT_VERSION + 9), NULL, &f, 1, &made));
	assert_int_equal(made, 1);
	ok(release(f));
	ok(release(NULL));
}

static void test_factory(void **state)
{
	static const int types[] = {ORT_HARDWARE_GPU, ORT_HARDWARE_CPU, ORT_HARDWARE_CPU};
	const struct ort_hardware *devices[3];
	struct ort_ep_device *out[3] = {NULL};
	struct ort_factory *f = factory_make();
	struct ort_allocator *a = (void *)f;
	void *transfer = f;
	struct ort_ep *ep = (void *)f;
	size_t made = 9;

	(void)state;
	for (int i = 0; i < 3; i++)
		devices[i] = (const void *)&types[i];
	assert_int_equal(f->version, ORT_VERSION);
	assert_string_equal(f->GetName(f), "AccelHalExecutionProvider");
	assert_string_equal(f->GetVendor(f), "accelhal");
	assert_true(f->GetVersion(f)[0] >= '0' && f->GetVersion(f)[0] <= '9');
	assert_int_equal(f->GetVendorId(f), 0);
	ok(f->GetSupportedDevices(f, devices, 3, out, 3, &made));
	assert_int_equal(made, 1);
	assert_ptr_equal(out[0], devices[1]);
	ok(f->GetSupportedDevices(f, devices, 3, out, 0, &made));
	assert_int_equal(made, 0);
	ok(f->CreateAllocator(f, NULL, NULL, &a));
	assert_null(a);
	f->ReleaseAllocator(f, NULL);
	ok(f->CreateDataTransfer(f, &transfer));
	assert_null(transfer);
	assert_false(f->IsStreamAware(f));
	fails(f->CreateEp(f, devices, NULL, 2, NULL, NULL, &ep), ORT_ERROR_FAIL,
	      "2 devices");
	assert_null(ep);
	f->ReleaseEp(f, NULL);
	ok(release(f));
}

static void test_options(void **state)
{
	static const char *const bad[][3] = {
		{"speed", "1", "unknown option speed; there are target"},
		{"units", "-1",
		 "units: \"-1\" is not valid; it must be a whole number from 0 to 65535"},
		{"units", "65536", "units: \"65536\""},
		{"log", "3", "log: \"3\""},
		{"priority", "high", "priority: \"high\""},
		{"priority", "2147483648", "priority"},
		{"deadline_us", "1ms", "deadline_us: \"1ms\""},
		{"min_macs", "", "min_macs: \"\""},
		{"strict", "yes", "strict: \"yes\" is not valid; it must be 0 or 1"},
		{"rows", "4", "rows and cols: give both"},
		{"partition", "a name of more than thirty-one characters", "partition"},
	};
	static const char *const good[][2] = {{"units", "4"},
					      {"priority", "-3"},
					      {"deadline_us", "1000"},
					      {"min_macs", "0x10"},
					      {"strict", "0"},
					      {"cache_dir", "/tmp"},
					      {"log", "2"},
					      {"memory_bytes", "1048576"}};
	struct ort_factory *f = factory_make();
	struct session s;
	char key[80];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(key, sizeof(key), PREFIX "%s", bad[i][0]);
		fails(session_make(&s, f, key, bad[i][1]), ORT_ERROR_FAIL, bad[i][2]);
		assert_null(s.ep);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(key, sizeof(key), PREFIX "%s", good[i][0]);
		ok(session_make(&s, f, key, good[i][1]));
		assert_string_equal(s.ep->GetName(s.ep), "AccelHalExecutionProvider");
		f->ReleaseEp(f, s.ep);
	}
	ok(release(f));
}

/* Options that contradict each other, and one of the runtime that asks for what is not
 * there. */
static void test_option_pairs(void **state)
{
	static const struct {
		const char *keys[3], *values[3], *what;
	} bad[] = {
		{{PREFIX "rows", PREFIX "cols", PREFIX "units"},
		 {"4", "4", "3"},
		 "units=3 cannot be combined with rows=4, cols=4"},
		{{PREFIX "partition", PREFIX "units"},
		 {"left", "3"},
		 "partition=left: its section says the place"},
		{{PREFIX "partition", PREFIX "memory_bytes"},
		 {"left", "65536"},
		 "leave out units, rows, cols and memory_bytes"},
	};
	struct ort_factory *f = factory_make();
	struct session s;

	(void)state;
	ok(session_make(&s, f, "ep.context_enable", "0"));
	f->ReleaseEp(f, s.ep);
	fails(session_make(&s, f, "ep.context_enable", "1"), ORT_ERROR_FAIL,
	      "writes no compiled models; its option cache_dir");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct host_options o = options_of(NULL, NULL);
		struct ort_ep *ep;

		for (uint32_t k = 0; k < 3 && bad[i].keys[k]; k++) {
			o.keys[o.count] = bad[i].keys[k];
			o.values[o.count++] = bad[i].values[k];
		}
		fails(f->CreateEp(f, NULL, NULL, 1, (const void *)&o, NULL, &ep),
		      ORT_ERROR_FAIL, bad[i].what);
		assert_null(ep);
	}
	ok(release(f));
}

static void test_conv(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;
	const char *log;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	assert_int_equal(s.support.count, 1);
	assert_int_equal(s.support.parts[0].count, 6);
	log = host_log();
	if (!strstr(log, "accelhal: 2 of 2 operators with 2700 MACs in 1 partition"))
		fail_msg("%s", log);
	for (uint32_t i = 0; i < 3; i++)
		runs(&s, i);
	session_close(&s);
	ok(release(f));
}

/* uint8 "x" -> Split of one and two channels -> uint8 "y0", "y1"; integers, or float. */
static void split(struct host_graph *g, bool integers)
{
	static const int64_t dims[2][4] = {{1, 1, H, H}, {1, 2, H, H}};
	static const int64_t sizes[] = {1, 2};
	static const char *const names[2][2] = {{"f0", "f1"}, {"y0", "y1"}};
	struct host_value *xs = constant(g, "xs", ORT_TYPE_FLOAT, 1, &x_scale);
	struct host_value *xz = constant(g, "xz", ORT_TYPE_UINT8, 1, &x_zero);
	struct host_value *s = constant(g, "sizes", ORT_TYPE_INT64, 2, sizes);
	struct host_value *x = host_value(g, "x", ORT_TYPE_UINT8, 4, image, NULL), *v[2];
	struct host_node *n;

	if (!integers)
		x = dequantize(g, "xf", x, xs, xz, false);
	for (int i = 0; i < 2; i++)
		v[i] = host_value(g, names[integers][i],
				  integers ? ORT_TYPE_UINT8 : ORT_TYPE_FLOAT, 4, dims[i],
				  NULL);
	n = host_node(g, "Split", 2, (struct host_value *[]){x, s}, v[0]);
	n->out[n->out_count++] = v[1];
	n->attrs[0] = (struct host_attr){
		.name = "axis", .type = ORT_ATTR_INT, .ints = {1}, .count = 1};
	for (int i = 0; i < 2; i++) {
		struct host_value *f = v[i];

		if (!integers) {
			v[i] = host_value(g, names[1][i], ORT_TYPE_UINT8, 4, dims[i],
					  NULL);
			host_node(g, "QuantizeLinear", 3,
				  (struct host_value *[]){f, xs, xz}, v[i]);
		}
		v[i]->output = true;
	}
}

/* Two results of one operator are two of the partition. */
static void test_split(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	uint8_t x[C * H * H];

	(void)state;
	for (uint32_t i = 0; i < sizeof(x); i++)
		x[i] = (uint8_t)(i * 151 % 256);
	for (int integers = 0; integers < 2; integers++) {
		struct host_context c = {
			.in = {{.data = x, .dims = {1, C, H, H}, .rank = 4}},
			.in_count = 1};
		struct session s;

		g = (struct host_graph){0};
		split(&g, integers);
		session_open(&s, f, &g);
		assert_int_equal(s.support.count, 1);
		assert_int_equal(s.support.parts[0].count, integers ? 1 : 4);
		if (!strstr(host_log(), "accelhal: 1 of 1 operators"))
			fail_msg("the summary");
		ok(s.infos[0]->Compute(s.infos[0], s.states[0], (void *)&c));
		for (uint32_t i = 0; i < 2; i++) {
			bool first = s.fused[0].out[i]->dims[1] == 1;

			assert_int_equal(c.out[i].bytes, (first ? 1 : 2) * H * H);
			assert_memory_equal(c.out[i].data, first ? x : x + H * H,
					    c.out[i].bytes);
			free(c.out[i].data);
		}
		assert_int_not_equal(c.out[0].bytes, c.out[1].bytes);
		session_close(&s);
	}
	ok(release(f));
}

/* A part that is needed in float leaves the Split to the CPU. */
static void test_split_left(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	split(&g, false);
	for (uint32_t i = 0; i < g.value_count; i++)
		g.values[i].output |= strcmp(g.values[i].name, "f1") == 0;
	ok(session_make(&s, f, NULL, NULL));
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	if (!strstr(host_log(), "1 Split ('f1' is needed in float32)"))
		fail_msg("the summary");
	f->ReleaseEp(f, s.ep);
	ok(release(f));
}

/* Where the runtime's windows of SAME are others than those of the schema, the pool is
 * the CPU's: with a stride beyond the kernel, and with a shape that is another one. */
static void test_pools(void **state)
{
	static const struct {
		int64_t kernel, stride, size; /* of the result */
		const char *why;
	} cases[] = {{2, 2, 3, NULL},
		     {2, 4, 2, NULL},
		     {1, 3, 2, "auto_pad would be negative"},
		     {2, 2, 4, "its shape is not that of auto_pad"}};
	struct ort_factory *f = factory_make();
	static struct host_graph g;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t size = cases[i].size, k = cases[i].kernel, s = cases[i].stride;
		const int64_t dims[] = {1, C, size, size};
		struct host_value *x, *xs, *xz, *y, *q;
		struct host_node *n;
		struct session session;
		const char *log;

		g = (struct host_graph){0};
		x = host_value(&g, "x", ORT_TYPE_UINT8, 4, image, NULL);
		xs = constant(&g, "xs", ORT_TYPE_FLOAT, 1, &x_scale);
		xz = constant(&g, "xz", ORT_TYPE_UINT8, 1, &x_zero);
		y = host_value(&g, "y", ORT_TYPE_FLOAT, 4, dims, NULL);
		q = host_value(&g, "q", ORT_TYPE_UINT8, 4, dims, NULL);
		x = dequantize(&g, "xf", x, xs, xz, false);
		n = host_node(&g, "AveragePool", 1, &x, y);
		n->attrs[0] = (struct host_attr){.name = "kernel_shape",
						 .type = ORT_ATTR_INTS,
						 {k, k},
						 .count = 2};
		n->attrs[1] = (struct host_attr){
			.name = "strides", .type = ORT_ATTR_INTS, {s, s}, .count = 2};
		n->attrs[2] = (struct host_attr){.name = "auto_pad",
						 .type = ORT_ATTR_STRING,
						 .text = "SAME_UPPER"};
		host_node(&g, "QuantizeLinear", 3, (struct host_value *[]){y, xs, xz}, q);
		q->output = true;
		ok(session_make(&session, f, NULL, NULL));
		ok(claim(&session, &g));
		log = host_log();
		if (session.support.count != !cases[i].why ||
		    (cases[i].why && !strstr(log, cases[i].why)))
			fail_msg("case %zu: %s", i, log);
		f->ReleaseEp(f, session.ep);
	}
	ok(release(f));
}

/* What nobody compiles in between: the parts must not wait for each other. */
static void test_convex(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct host_value *y, *v[6], *s2, *z2;
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	y = conv(&g);
	s2 = constant(&g, "s2", ORT_TYPE_FLOAT, 1, &y_scale);
	z2 = constant(&g, "z2", ORT_TYPE_UINT8, 1, &y_zero);
	for (int i = 0; i < 6; i++)
		v[i] = host_value(
			&g, (const char *[]){"f1", "g1", "q1", "sum", "out", "unused"}[i],
			i == 2 || i == 4 ? ORT_TYPE_UINT8 : ORT_TYPE_FLOAT, 4, result,
			NULL);
	v[0] = dequantize(&g, "yf1", y, s2, z2, false);
	host_node(&g, "Frobnicate", 1, &v[0], v[1]);
	host_node(&g, "QuantizeLinear", 3, (struct host_value *[]){v[1], s2, z2}, v[2]);
	host_node(&g, "Add", 2,
		  (struct host_value *[]){dequantize(&g, "yf2", y, s2, z2, false),
					  dequantize(&g, "qf", v[2], s2, z2, false)},
		  v[3]);
	host_node(&g, "QuantizeLinear", 3, (struct host_value *[]){v[3], s2, z2}, v[4]);
	v[4]->output = true;
	session_open(&s, f, &g);
	assert_int_equal(s.support.count, 2);
	assert_int_equal(s.support.parts[0].count, 6);
	assert_int_equal(s.support.parts[1].count, 4);
	if (!strstr(host_log(), "3 of 4 operators with 2700 MACs in 2 partitions; on the "
				"CPU: 1 Frobnicate (this operator is not supported)"))
		fail_msg("the summary");
	session_close(&s);
	/* Strict: the session fails, and says why. */
	ok(session_make(&s, f, PREFIX "strict", "1"));
	ok(claim(&s, &g));
	fails(compile(&s, &g), ORT_ERROR_FAIL, "strict=1: 3 of 4 operators");
	f->ReleaseEp(f, s.ep);
	(void)host_log();
	ok(release(f));
}

/* Nothing of a graph in a node, of one without shapes, and of one in float. */
static void test_nothing(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct host_node parent;
	struct session s;

	(void)state;
	g = (struct host_graph){.parent = &parent};
	conv(&g)->output = true;
	ok(session_make(&s, f, NULL, NULL));
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	g.parent = NULL;
	g.values[0].dims[0] = -1;
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	if (!strstr(host_log(), "the shape of 'x' is not fixed"))
		fail_msg("the summary");
	g.values[0].dims[0] = 1;
	for (uint32_t i = 0; i < g.value_count; i++)
		if (strcmp(g.values[i].name, "xf") == 0)
			g.values[i].output = true; /* the float itself is needed */
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	if (!strstr(host_log(), "'xf' is needed in float32, too"))
		fail_msg("the summary");
	for (uint32_t i = 0; i < g.value_count; i++) {
		g.values[i].output = false;
		if (strcmp(g.values[i].name, "xs") == 0)
			g.values[i].type = ORT_TYPE_FLOAT16; /* so is the operator */
	}
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	if (!strstr(host_log(), "the scale of 'x' is float16"))
		fail_msg("the summary");
	f->ReleaseEp(f, s.ep);
	ok(release(f));
}

/* The summary counts what it does not name, and log=2 names each, whether somebody asked
 * for it or not. */
static void test_left(void **state)
{
	static const char *const types[] = {"Sin", "Cos", "Tan", "Exp", "Log"};
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct host_value *x, *y;
	struct session s;
	const char *log;

	(void)state;
	g = (struct host_graph){0};
	x = host_value(&g, "x", ORT_TYPE_FLOAT, 4, image, NULL);
	for (uint32_t i = 0; i < 5; i++) {
		y = host_value(&g, types[i], ORT_TYPE_FLOAT, 4, image, NULL);
		host_node(&g, types[i], 1, &x, y);
		x = y;
	}
	x->output = true;
	ok(session_make(&s, f, PREFIX "log", "2"));
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	log = host_log();
	if (!strstr(log, "1 Tan (") || !strstr(log, "), and 2 more (log=2 lists them)") ||
	    !strstr(log, "node 4 (Log) stays on the CPU: not between quantized values"))
		fail_msg("%s", log);
	f->ReleaseEp(f, s.ep);
	ok(release(f));
}

/* Any call of the runtime may fail: a status, and nothing is left over. */
static void test_failures(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;
	unsigned int n = 0, failed = 0;
	int code, before;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	ok(session_make(&s, f, NULL, NULL));
	before = host_statuses();
	do {
		s.support.count = 0;
		host_fail_at(++n);
		failed = strstr(host_text(claim(&s, &g), &code), "made to fail") != NULL;
		assert_int_equal(host_statuses(), before);
	} while (failed || n < 50);
	assert_true(n > 100);
	host_fail_at(0);
	s.support.count = 0;
	ok(claim(&s, &g));
	for (n = 1; n < 60; n++) {
		host_fail_at(n);
		fails(compile(&s, &g), ORT_ERROR_FAIL, "made to fail");
		assert_int_equal(host_statuses(), before);
	}
	host_fail_at(0);
	f->ReleaseEp(f, s.ep);
	(void)host_log();
	ok(release(f));
}

static void test_compute_fails(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct host_context none = {.in_count = 0};
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	/* Not EP_FAIL, after which Python runs all on the CPU and says nothing. */
	fails(s.infos[0]->Compute(s.infos[0], s.states[0], (void *)&none), ORT_ERROR_FAIL,
	      "input 0 is missing");
	runs(&s, 5);
	session_close(&s);
	ok(release(f));
}

static void test_dynamic(void **state)
{
	static const char *const keys[] = {"priority", "deadline_us", "speed"};
	static const char *const values[] = {"-2", "5000", "1"}, *const bad[] = {"x"};
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	ok(s.ep->SetDynamicOptions(s.ep, keys, values, 2));
	runs(&s, 1);
	fails(s.ep->SetDynamicOptions(s.ep, keys, values, 3), ORT_ERROR_FAIL,
	      "dynamic option speed: there are priority and deadline_us");
	fails(s.ep->SetDynamicOptions(s.ep, keys, bad, 1), ORT_ERROR_FAIL,
	      "priority: \"x\"");
	session_close(&s);
	ok(release(f));
}

/* Unregistered under a live session, and its provider released before its kernels. */
static void test_order(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	ok(release(f));
	assert_int_equal(dlclose(library), 0);
	runs(&s, 2);
	s.infos[0]->ReleaseState(s.infos[0], s.states[0]);
	{
		struct ort_ep *ep = s.ep;
		void (*give)(struct ort_ep *, struct ort_compute_info **, size_t) =
			ep->ReleaseNodeComputeInfos;

		f->ReleaseEp(f, ep);
		runs(&s, 3);
		give(NULL, s.infos, 1);
	}
	load();
}

struct caller {
	struct session *s;
	uint32_t seed;
	const char *wrong;
};

static void *call(void *arg)
{
	struct caller *c = arg;

	for (uint32_t i = 0; i < 8 && !c->wrong; i++)
		c->wrong = run(c->s, c->seed + i);
	return NULL;
}

/* Calls at the same time, of one session and of two on the same units. */
static void test_threads(void **state)
{
	struct ort_factory *f = factory_make();
	struct caller callers[THREADS];
	pthread_t threads[THREADS];
	static struct host_graph g;
	struct session s[2];

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	for (int i = 0; i < 2; i++)
		session_open(&s[i], f, &g);
	for (uint32_t i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){&s[i / 2], 100 * i, NULL};
		assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		if (callers[i].wrong)
			fail_msg("%s", callers[i].wrong);
	}
	for (int i = 0; i < 2; i++)
		session_close(&s[i]);
	ok(release(f));
}

/* A target that is no NPU fails the session at its compilation, with the reason. */
/* A partition of the graph that the quota does not hold is the CPU's, and one that it
 * holds once is so for one session only. */
static void test_memory(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s, second;
	const char *quota = PREFIX "memory_bytes", *log;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	ok(session_make(&s, f, quota, "256"));
	ok(claim(&s, &g));
	assert_int_equal(s.support.count, 0);
	log = host_log();
	if (!strstr(log, "of 0.2 KiB are in use; give the partition more memory_bytes), "
			 "1 Relu (it takes"))
		fail_msg("%s", log);
	f->ReleaseEp(f, s.ep);
	ok(session_make(&s, f, quota, "2048"));
	ok(session_make(&second, f, quota, "2048"));
	ok(claim(&s, &g));
	ok(claim(&second, &g));
	assert_int_equal(second.support.count, 1);
	ok(compile(&s, &g));
	fails(compile(&second, &g), ORT_ERROR_FAIL, "KiB of device memory");
	second.ep->ReleaseNodeComputeInfos(second.ep, second.infos, 0);
	f->ReleaseEp(f, second.ep);
	runs(&s, 1);
	release_kernels(&s);
	ok(compile(&s, &g));
	session_close(&s);
	(void)host_log();
	ok(release(f));
}

/* A tensor that is shorter than the graph says is not read beyond its end. */
static void test_short_input(void **state)
{
	struct ort_factory *f = factory_make();
	struct host_context c = {.in_count = 1};
	static struct host_graph g;
	struct session s;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	c.in[0] =
		(struct host_tensor){.data = malloc(1), .dims = {1, 1, 1, 1}, .rank = 4};
	assert_non_null(c.in[0].data);
	fails(s.infos[0]->Compute(s.infos[0], s.states[0], (void *)&c), ORT_ERROR_FAIL,
	      "input 0 has 1 elements; its shape in the model has 75");
	free(c.in[0].data);
	runs(&s, 1);
	session_close(&s);
	ok(release(f));
}

/* A session that a child makes with the options of its parent's has a device of its own.
 */
static void test_fork(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s, child;
	int status;
	pid_t pid;

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	session_open(&s, f, &g);
	pid = fork();
	if (pid == 0) {
		alarm(30);
		if (!run(&s, 1))
			_exit(2);
		session_open(&child, f, &g);
		_exit(run(&child, 2) ? 3 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	runs(&s, 3);
	session_close(&s);
	ok(release(f));
}

static void test_target(void **state)
{
	struct ort_factory *f = factory_make();
	static struct host_graph g;
	struct session s;
	struct host_options o = {
		.keys = {PREFIX "target"}, .values = {"ref"}, .count = 1};

	(void)state;
	g = (struct host_graph){0};
	conv(&g)->output = true;
	s = (struct session){.factory = f};
	ok(f->CreateEp(f, NULL, NULL, 1, (const void *)&o, NULL, &s.ep));
	ok(claim(&s, &g));
	fails(compile(&s, &g), ORT_ERROR_FAIL, "ref is not an NPU");
	f->ReleaseEp(f, s.ep);
	ok(release(f));
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(host_statuses(), 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_old, tear_down),
		cmocka_unit_test_teardown(test_factory, tear_down),
		cmocka_unit_test_teardown(test_options, tear_down),
		cmocka_unit_test_teardown(test_option_pairs, tear_down),
		cmocka_unit_test_teardown(test_conv, tear_down),
		cmocka_unit_test_teardown(test_split, tear_down),
		cmocka_unit_test_teardown(test_split_left, tear_down),
		cmocka_unit_test_teardown(test_pools, tear_down),
		cmocka_unit_test_teardown(test_convex, tear_down),
		cmocka_unit_test_teardown(test_nothing, tear_down),
		cmocka_unit_test_teardown(test_left, tear_down),
		cmocka_unit_test_teardown(test_failures, tear_down),
		cmocka_unit_test_teardown(test_compute_fails, tear_down),
		cmocka_unit_test_teardown(test_dynamic, tear_down),
		cmocka_unit_test_teardown(test_order, tear_down),
		cmocka_unit_test_teardown(test_threads, tear_down),
		cmocka_unit_test_teardown(test_memory, tear_down),
		cmocka_unit_test_teardown(test_short_input, tear_down),
		cmocka_unit_test_teardown(test_fork, tear_down),
		cmocka_unit_test_teardown(test_target, tear_down),
	};

	load();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
