/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c - one session's execution provider: options, claims, compilation. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

#define SUMMARY 2048u

/* ---- options ----------------------------------------------------------------------- */

static bool read_number(const char *text, uint64_t most, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *n <= most;
}

static bool read_text(const char *text, char *to, size_t size)
{
	int n = snprintf(to, size, "%s", text);

	return n >= 0 && (size_t)n < size;
}

static bool read_priority(const char *text, struct settings *s)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 0);
	s->priority = (int32_t)n;
	s->has_priority = true;
	return *text && !*end && !errno && n >= INT32_MIN && n <= INT32_MAX;
}

/* An option by its name; false: the value is wrong.  *known: there is such an option. */
static bool set_option(struct settings *s, const char *key, const char *value,
		       bool *known)
{
	const struct {
		const char *key;
		uint32_t *to;
		uint64_t most;
	} numbers[] = {{"units", &s->units, UINT16_MAX},
		       {"rows", &s->rows, UINT8_MAX},
		       {"cols", &s->cols, UINT8_MAX},
		       {"log", &s->log, 2}};
	const struct {
		const char *key;
		uint64_t *to;
	} longs[] = {{"deadline_us", &s->deadline_us},
		     {"memory_bytes", &s->memory_bytes},
		     {"min_macs", &s->min_macs}};
	const struct {
		const char *key;
		char *to;
		size_t size;
	} texts[] = {{"target", s->target, sizeof(s->target)},
		     {"partition", s->partition, sizeof(s->partition)},
		     {"cache_dir", s->cache_dir, sizeof(s->cache_dir)}};
	uint64_t n;

	*known = true;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(numbers[i].key, key) == 0) {
			if (!read_number(value, numbers[i].most, &n))
				return false;
			*numbers[i].to = (uint32_t)n;
			return true;
		}
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
		if (strcmp(longs[i].key, key) == 0)
			return read_number(value, UINT64_MAX / 1000, longs[i].to);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].key, key) == 0)
			return read_text(value, texts[i].to, texts[i].size);
	if (strcmp(key, "priority") == 0)
		return read_priority(value, s);
	if (strcmp(key, "strict") == 0) {
		s->strict = strcmp(value, "1") == 0;
		return s->strict || strcmp(value, "0") == 0;
	}
	*known = false;
	return true;
}

static const char *allowed(const char *key)
{
	static const char *const texts[][2] = {
		{"units", "a whole number from 0 to 65535"},
		{"rows", "a whole number from 0 to 255"},
		{"cols", "a whole number from 0 to 255"},
		{"log", "0 (nothing), 1 (summary) or 2 (each operator on the CPU)"},
		{"deadline_us", "a whole number up to 18446744073709551"},
		{"min_macs", "a whole number up to 18446744073709551"},
		{"memory_bytes", "a number of bytes up to 18446744073709551"},
		{"priority", "a whole number from -2147483648 to 2147483647"},
		{"strict", "0 or 1"},
		{"target", "at most 255 characters"},
		{"partition", "at most 31 characters"},
		{"cache_dir", "at most 1023 characters"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i][0], key) == 0)
			return texts[i][1];
	return "another one";
}

static struct ort_status *option_fail(const struct ort_api *api, const char *key,
				      const char *value, bool known)
{
	if (known)
		return plugin_fail(api,
				   "option %s: \"%.120s\" is not valid; it must be %s",
				   key, value, allowed(key));
	return plugin_fail(api,
			   "unknown option %.60s; there are target, partition, units, "
			   "rows, cols, priority, deadline_us, memory_bytes, min_macs, "
			   "strict, cache_dir and log",
			   key);
}

/* Refuse options that do not fit each other. */
static struct ort_status *check_options(const struct ort_api *api,
					const struct settings *s)
{
	if (!s->rows != !s->cols)
		return plugin_fail(api, "options rows and cols: give both or neither");
	if (s->rows && s->units)
		return plugin_fail(api,
				   "option units=%u cannot be combined with rows=%u, "
				   "cols=%u; give a count or a rectangle",
				   s->units, s->rows, s->cols);
	if (s->partition[0] && (s->rows || s->units || s->memory_bytes))
		return plugin_fail(api,
				   "option partition=%s: its section says the place and "
				   "the memory; leave out units, rows, cols and "
				   "memory_bytes",
				   s->partition);
	return NULL;
}

static struct ort_status *read_options(const struct ort_api *api,
				       const struct ort_session_options *o,
				       struct settings *s)
{
	const char *const *keys = NULL, *const *values = NULL;
	struct ort_pairs *pairs = NULL;
	struct ort_status *status;
	size_t count = 0, prefix = strlen(PLUGIN_PREFIX);

	*s = (struct settings){.log = 1};
	if (!o)
		return NULL;
	status = ORT(api, GetSessionOptionsConfigEntries)(o, &pairs);
	if (status)
		return status;
	ORT(api, GetKeyValuePairs)(pairs, &keys, &values, &count);
	for (size_t i = 0; !status && i < count; i++) {
		bool known;

		if (strcmp(keys[i], "ep.context_enable") == 0 &&
		    strcmp(values[i], "1") == 0)
			status = plugin_fail(
				api, "ep.context_enable=1: this provider writes no "
				     "compiled models; its option cache_dir keeps "
				     "compiled partitions");
		if (strncmp(keys[i], PLUGIN_PREFIX, prefix) != 0)
			continue;
		if (!set_option(s, keys[i] + prefix, values[i], &known) || !known)
			status = option_fail(api, keys[i] + prefix, values[i], known);
	}
	ORT(api, ReleaseKeyValuePairs)(pairs);
	return status ? status : check_options(api, s);
}

/* ---- places ------------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	struct place *first;
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
	pthread_mutex_lock(&places.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&places.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}

static bool same_place(const struct settings *a, const struct settings *b)
{
	return strcmp(a->target, b->target) == 0 &&
	       strcmp(a->partition, b->partition) == 0 && a->units == b->units &&
	       a->rows == b->rows && a->cols == b->cols &&
	       a->memory_bytes == b->memory_bytes;
}

static int make_partition(struct place *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info own = HAL_INIT(hal_partition_info);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	const struct settings *s = &p->settings;
	int rc = hal_device_get_info(p->dev, &info);

	if (rc < 0)
		return rc;
	d.rows = (uint16_t)s->rows;
	d.cols = (uint16_t)s->cols;
	if (!s->rows)
		d.units_floor = s->units ? s->units : info.unit_rows * info.unit_cols;
	d.memory_bytes = s->memory_bytes;
	(void)snprintf(d.name, sizeof(d.name), "onnxruntime");
	rc = s->partition[0] ? hal_partition_create_named(p->dev, s->partition, &p->part)
			     : hal_partition_create(p->dev, &d, &p->part);
	if (rc < 0)
		return rc;
	p->memory_bytes = info.memory_bytes;
	if (hal_partition_get_info(p->part, &own) == 0 && own.memory_bytes)
		p->memory_bytes = own.memory_bytes;
	return 0;
}

static int make_place(const struct settings *s, struct place **place, char *why)
{
	struct place *p = calloc(1, sizeof(*p));
	int rc;

	if (!p) {
		snprintf(why, PLUGIN_WHY, "out of memory");
		return -ENOMEM;
	}
	p->settings = *s;
	p->pid = getpid();
	rc = npuc_device_share(s->target[0] ? s->target : NULL, NULL, &p->dev, why);
	if (!rc) {
		rc = make_partition(p);
		if (rc)
			snprintf(why, PLUGIN_WHY, "%s", hal_last_error());
		if (rc)
			(void)npuc_device_unshare(p->dev);
	}
	if (rc) {
		free(p);
		return rc;
	}
	p->next = places.first;
	places.first = p;
	*place = p;
	return 0;
}

int place_take(const struct settings *s, struct place **place, char why[PLUGIN_WHY])
{
	struct place *p;
	int rc = 0;

	pthread_mutex_lock(&places.lock);
	/* A place of the parent process is not the child's to use. */
	for (p = places.first; p && !(p->pid == getpid() && same_place(&p->settings, s));)
		p = p->next;
	if (!p)
		rc = make_place(s, &p, why);
	if (!rc) {
		p->users++;
		*place = p;
	}
	pthread_mutex_unlock(&places.lock);
	return rc;
}

void place_give(struct place *place)
{
	struct place **at = &places.first;

	if (!place)
		return;
	pthread_mutex_lock(&places.lock);
	while (*at != place)
		at = &(*at)->next;
	if (!--place->users) {
		*at = place->next;
		(void)hal_partition_destroy(place->part);
		(void)npuc_device_unshare(place->dev);
		free(place);
	}
	pthread_mutex_unlock(&places.lock);
}

/* A sixteenth more than the program is for page tables. */
static uint64_t held_by(const struct npuc_program *program)
{
	return program->memory_bytes + program->memory_bytes / 16;
}

/* With the lock held; others: bytes that others will hold, too. */
static int fits(const struct place *place, uint64_t need, uint64_t others,
		char why[PLUGIN_WHY])
{
	bool quota = place->settings.memory_bytes || place->settings.partition[0];
	uint64_t used = place->memory_used + others;

	if (!place->memory_bytes || used + need <= place->memory_bytes)
		return 0;
	snprintf(why, PLUGIN_WHY,
		 "it takes %.1f KiB of device memory, and %.1f of %.1f KiB are in use; "
		 "give %s",
		 (double)need / 1024, (double)used / 1024,
		 (double)place->memory_bytes / 1024,
		 quota ? "the partition more memory_bytes"
		       : "the NPU more with target=npu:0?memory_size=N");
	return -ENOSPC;
}

int place_try(const struct place *place, const struct npuc_program *program,
	      uint64_t *others, char why[PLUGIN_WHY])
{
	uint64_t need = held_by(program);
	int rc;

	pthread_mutex_lock(&places.lock);
	rc = fits(place, need, *others, why);
	pthread_mutex_unlock(&places.lock);
	*others += rc ? 0 : need;
	return rc;
}

int place_hold(struct place *place, const struct npuc_program *program,
	       char why[PLUGIN_WHY])
{
	uint64_t need = held_by(program);
	int rc;

	pthread_mutex_lock(&places.lock);
	rc = fits(place, need, 0, why);
	place->memory_used += rc ? 0 : need;
	pthread_mutex_unlock(&places.lock);
	return rc;
}

void place_release(struct place *place, const struct npuc_program *program)
{
	pthread_mutex_lock(&places.lock);
	place->memory_used -= held_by(program);
	pthread_mutex_unlock(&places.lock);
}

/* ---- the provider ------------------------------------------------------------------ */

void provider_log(const struct provider *p, int level, const char *text)
{
	struct ort_status *s;

	if (!p->logger || !p->settings.log)
		return;
	s = ORT(p->api, Logger_LogMessage)(p->logger, level, text, __FILE__, __LINE__,
					   "accelhal");
	if (s)
		ORT(p->api, ReleaseStatus)(s);
}

static struct ort_status *take_partition(struct provider *p, struct graph *g,
					 const struct claims *c, uint32_t part,
					 struct ort_support *support)
{
	const struct ort_fusion fusion = {ORT_VERSION, true};
	const struct ort_node **nodes =
		pool_alloc(&g->pool, g->node_count, sizeof(const struct ort_node *));
	size_t count = 0;

	if (!nodes)
		return plugin_fail(p->api, "out of memory");
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->nodes[i].unit != PLUGIN_NONE && c->part[g->nodes[i].unit] == part)
			nodes[count++] = g->nodes[i].ort;
	return ORT(p->ep_api, EpGraphSupportInfo_AddNodesToFuse)(support, nodes, count,
								 &fusion);
}

static void tell_reasons(struct provider *p, const struct graph *g,
			 const struct claims *c)
{
	char text[PLUGIN_WHY + 256];

	for (uint32_t i = 0; p->settings.log > 1 && i < g->node_count; i++) {
		const char *why = claims_reason(g, c, i);

		if (!why)
			continue;
		snprintf(text, sizeof(text),
			 "accelhal: node %u (%s) stays on the CPU: %s", i,
			 g->nodes[i].type, why);
		provider_log(p, ORT_LOG_WARNING, text);
	}
}

static struct ort_status *claim(struct provider *p, struct graph *g,
				struct ort_support *support)
{
	struct ort_status *status = NULL;
	char text[SUMMARY], why[PLUGIN_WHY];
	struct claims c;

	/* Without a place there is no limit of memory; compile() says what is wrong. */
	if (!p->place && place_take(&p->settings, &p->place, why) != 0)
		p->place = NULL;
	if (claims_find(g, &p->settings, p->place, &c) != 0)
		return plugin_fail(p->api, "out of memory");
	claims_describe(g, &c, text, sizeof(text));
	if (c.part_count || claims_is_first(g)) {
		provider_log(p, ORT_LOG_WARNING, text);
		tell_reasons(p, g, &c);
	}
	if (p->settings.strict && strstr(text, "; on the CPU: "))
		snprintf(p->refusal, sizeof(p->refusal), "%.*s", PLUGIN_WHY - 1, text);
	for (uint32_t i = 0; !status && i < c.part_count; i++)
		status = take_partition(p, g, &c, i, support);
	/* Who takes nothing needs no units. */
	if (!c.part_count && claims_is_first(g)) {
		place_give(p->place);
		p->place = NULL;
	}
	return status;
}

static struct ort_status *get_capability(struct ort_ep *self,
					 const struct ort_graph *from,
					 struct ort_support *support)
{
	struct provider *p = (struct provider *)self;
	const struct ort_node *parent = NULL;
	struct ort_status *status;
	struct graph g;

	/* Bodies of If and Loop: old runtimes give their partitions equal names. */
	status = ORT(p->api, Graph_GetParentNode)(from, &parent);
	if (status || parent)
		return status;
	status = graph_read(&g, p->api, from);
	if (status)
		return status;
	status = claim(p, &g, support);
	graph_free(&g);
	return status;
}

static void release_infos(struct ort_ep *self, struct ort_compute_info **infos,
			  size_t count)
{
	(void)self;
	for (size_t i = 0; i < count; i++)
		kernel_free(infos[i]);
}

static struct ort_status *compile(struct ort_ep *self, const struct ort_graph **graphs,
				  const struct ort_node **fused, size_t count,
				  struct ort_compute_info **infos,
				  struct ort_node **contexts)
{
	struct provider *p = (struct provider *)self;
	struct ort_status *status = NULL;
	size_t made = 0;

	(void)contexts;
	/* An error of GetCapability would only be logged. */
	if (p->refusal[0])
		return plugin_fail(p->api, "strict=1: %s",
				   p->refusal + strlen("accelhal: "));
	while (!status && made < count) {
		status = kernel_create(p, graphs[made], fused[made], &infos[made]);
		made += !status;
	}
	if (status)
		release_infos(self, infos, made);
	return status;
}

static struct ort_status *set_dynamic(struct ort_ep *self, const char *const *keys,
				      const char *const *values, size_t count)
{
	struct provider *p = (struct provider *)self;
	struct ort_status *status = NULL;
	struct settings s;

	pthread_mutex_lock(&p->lock);
	s = p->settings;
	for (size_t i = 0; !status && i < count; i++) {
		bool known;

		if (strcmp(keys[i], "priority") != 0 &&
		    strcmp(keys[i], "deadline_us") != 0)
			status = plugin_fail(p->api,
					     "dynamic option %s: there are priority and "
					     "deadline_us",
					     keys[i]);
		else if (!set_option(&s, keys[i], values[i], &known))
			status = option_fail(p->api, keys[i], values[i], true);
	}
	if (!status)
		p->settings = s;
	pthread_mutex_unlock(&p->lock);
	return status;
}

static const char *get_name(const struct ort_ep *self)
{
	(void)self;
	return PLUGIN_NAME;
}

struct ort_status *provider_create(const struct ort_api *api,
				   const struct ort_session_options *o,
				   const struct ort_logger *l, struct ort_ep **ep)
{
	struct provider *p = calloc(1, sizeof(*p));
	struct ort_status *status;

	if (!p)
		return plugin_fail(api, "out of memory");
	atomic_init(&p->users, 1);
	p->api = api;
	p->ep_api = ORT(api, GetEpApi)();
	p->logger = l;
	p->ep = (struct ort_ep){.version = ORT_VERSION,
				.GetName = get_name,
				.GetCapability = get_capability,
				.Compile = compile,
				.ReleaseNodeComputeInfos = release_infos,
				.SetDynamicOptions = set_dynamic};
	status = read_options(api, o, &p->settings);
	if (status) {
		free(p);
		return status;
	}
	(void)pthread_mutex_init(&p->lock, NULL);
	*ep = &p->ep;
	return NULL;
}

void provider_give(struct provider *p)
{
	if (atomic_fetch_sub(&p->users, 1) != 1)
		return;
	place_give(p->place);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}
