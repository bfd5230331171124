/* SPDX-License-Identifier: Apache-2.0 */
/* factory.c - what the runtime finds in the library. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define EXPORT    __attribute__((visibility("default")))
#define VENDOR_ID 0u /* of no bus */

/* The runtime releases the factory when the library is unregistered, and providers of
 * sessions that still live through it afterwards. */
struct factory {
	struct ort_factory f; /* first */
	const struct ort_api *api;
	const struct ort_ep_api *ep_api;
	atomic_uint users; /* the runtime, and each provider */
};

static void give(struct factory *f)
{
	if (atomic_fetch_sub(&f->users, 1) == 1)
		free(f);
}

EXPORT struct ort_status *CreateEpFactories(const char *name,
					    const struct ort_api_base *base,
					    const struct ort_logger *logger,
					    struct ort_factory **factories, size_t room,
					    size_t *made);
EXPORT struct ort_status *ReleaseEpFactory(struct ort_factory *f);

static const char *get_name(const struct ort_factory *self)
{
	(void)self;
	return PLUGIN_NAME;
}

static const char *get_vendor(const struct ort_factory *self)
{
	(void)self;
	return "accelhal";
}

static uint32_t get_vendor_id(const struct ort_factory *self)
{
	(void)self;
	return VENDOR_ID;
}

static const char *get_version(const struct ort_factory *self)
{
	(void)self;
	return ACCELHAL_VERSION;
}

/* An NPU that no bus shows: the runtime lists it with the CPU. */
static struct ort_status *get_devices(struct ort_factory *self,
				      const struct ort_hardware *const *devices,
				      size_t count, struct ort_ep_device **out,
				      size_t room, size_t *made)
{
	struct factory *f = (struct factory *)self;

	*made = 0;
	for (size_t i = 0; i < count && room; i++) {
		struct ort_status *s;

		if (ORT(f->api, HardwareDevice_Type)(devices[i]) != ORT_HARDWARE_CPU)
			continue;
		s = ORT(f->ep_api, CreateEpDevice)(self, devices[i], NULL, NULL, &out[0]);
		if (!s)
			*made = 1;
		return s;
	}
	return NULL;
}

static struct ort_status *create_ep(struct ort_factory *self,
				    const struct ort_hardware *const *devices,
				    const struct ort_pairs *const *metadata, size_t count,
				    const struct ort_session_options *o,
				    const struct ort_logger *l, struct ort_ep **ep)
{
	struct factory *f = (struct factory *)self;
	struct ort_status *s;

	(void)devices;
	(void)metadata;
	*ep = NULL;
	if (count > 1)
		return plugin_fail(f->api, "%zu devices for one session; it takes one",
				   count);
	s = provider_create(f->api, o, l, ep);
	if (!s)
		atomic_fetch_add(&f->users, 1);
	return s;
}

static void release_ep(struct ort_factory *self, struct ort_ep *ep)
{
	if (!ep)
		return;
	provider_give((struct provider *)ep);
	give((struct factory *)self);
}

static struct ort_status *create_allocator(struct ort_factory *self,
					   const struct ort_memory_info *m,
					   const struct ort_pairs *options,
					   struct ort_allocator **a)
{
	(void)self;
	(void)m;
	(void)options;
	*a = NULL; /* the runtime's own */
	return NULL;
}

static void release_allocator(struct ort_factory *self, struct ort_allocator *a)
{
	(void)self;
	(void)a;
}

static struct ort_status *create_transfer(struct ort_factory *self, void **transfer)
{
	(void)self;
	*transfer = NULL;
	return NULL;
}

static bool is_stream_aware(const struct ort_factory *self)
{
	(void)self;
	return false;
}

/* Fail without the API of version 23: version 1 has CreateStatus, and all runtimes have
 * version 1. */
static struct ort_status *too_old(const struct ort_api_base *base)
{
	const struct ort_api *first = base->GetApi(1);
	char text[160];

	if (!first)
		return NULL;
	snprintf(text, sizeof(text),
		 "accelhal: ONNX Runtime %s has no API %u; 1.23 or newer is needed",
		 base->GetVersionString(), ORT_VERSION);
	return ORT(first, CreateStatus)(ORT_ERROR_NOT_IMPLEMENTED, text);
}

struct ort_status *CreateEpFactories(const char *name, const struct ort_api_base *base,
				     const struct ort_logger *logger,
				     struct ort_factory **factories, size_t room,
				     size_t *made)
{
	const struct ort_api *api = base->GetApi(ORT_VERSION);
	struct factory *f;

	(void)name;
	(void)logger;
	*made = 0;
	if (!api)
		return too_old(base);
	if (!room)
		return plugin_fail(api, "no room for a factory");
	f = calloc(1, sizeof(*f));
	if (!f)
		return plugin_fail(api, "out of memory");
	atomic_init(&f->users, 1);
	f->api = api;
	f->ep_api = ORT(api, GetEpApi)();
	f->f = (struct ort_factory){.version = ORT_VERSION,
				    .GetName = get_name,
				    .GetVendor = get_vendor,
				    .GetSupportedDevices = get_devices,
				    .CreateEp = create_ep,
				    .ReleaseEp = release_ep,
				    .GetVendorId = get_vendor_id,
				    .GetVersion = get_version,
				    .CreateAllocator = create_allocator,
				    .ReleaseAllocator = release_allocator,
				    .CreateDataTransfer = create_transfer,
				    .IsStreamAware = is_stream_aware};
	factories[0] = &f->f;
	*made = 1;
	return NULL;
}

struct ort_status *ReleaseEpFactory(struct ort_factory *f)
{
	if (f)
		give((struct factory *)f);
	return NULL;
}
