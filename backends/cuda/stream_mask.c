/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks in streams: the driver keeps, in its own structure of each stream, a word that
 * says whether there is a mask, and four words of units that its launches are kept off,
 * counted as the driver counts them.  Where, no document says, and it differs from driver
 * to driver: a place is used only where it is known, it is tried out like masks at launch
 * are, and a new stream that has something else there is never written to.  The driver
 * seems to make new streams of old ones as they were: no mask is left in one.
 *
 * Known: of CUDA 13.0, tried out on an H100 with 580.159.04 (docs/devices); the others
 * from what users of libsmctrl report, and tried out here by nobody.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <string.h>

struct field {
	uint32_t on, mask[4];
};

int cu_stream_mask_place(uint32_t *at)
{
#ifdef __x86_64__
	static const struct {
		int least, most; /* CUDA of the driver */
		uint32_t at;
	} known[] = {{12040, 12040, 0x4ac},
		     {12050, 12060, 0x4ec},
		     {12070, 12080, 0x4fc},
		     {13000, 13000, 0x51c}};
	size_t i;
#endif
	int version = 0, err = CU(NULL, cuDriverGetVersion, &version);

	if (err)
		return err;
#ifdef __x86_64__
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (version >= known[i].least && version <= known[i].most) {
			*at = known[i].at;
			return 0;
		}
#endif
	*at = 0;
	return cu_host->fail(ENOTSUP,
			     "cuda: partitions=stream: it is unknown where CUDA %d.%d "
			     "stores a stream's mask; use partitions=auto, mask or green",
			     version / 1000, version % 1000 / 10);
}

void cu_stream_mask_clear(const struct cu_device *dev, void *stream)
{
	static const struct field none;
	char *inner;

	memcpy(&inner, stream, sizeof(inner));
	memcpy(inner + dev->mask->stream_at, &none, sizeof(none));
}

int cu_stream_mask_set(const struct cu_device *dev, void *stream, const uint32_t mask[4],
		       bool is_new)
{
	static const struct field none;
	struct field f = {.on = 1};
	char *inner;

	memcpy(&inner, stream, sizeof(inner));
	if (is_new &&
	    (!inner || memcmp(inner + dev->mask->stream_at, &none, sizeof(none)) != 0))
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: partitions=stream: a new stream has "
				     "unexpected data where its mask should be",
				     dev->index);
	memcpy(f.mask, mask, sizeof(f.mask));
	memcpy(inner + dev->mask->stream_at, &f, sizeof(f));
	return 0;
}
