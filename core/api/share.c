/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - hal_timeline_export and hal_timeline_import. */
#include <errno.h>

#include "api/handle.h"
#include "command/courier.h"
#include "far/far.h"

/* Refuse to share timelines of dev while it writes a journal.  name is the function's. */
static int journal_refuse(const struct hal_device *dev, const char *name)
{
	if (dev->replay.journal == NULL)
		return 0;
	return fail(ENOTSUP,
		    "%s: a journal (hal.journal) of %s cannot record other processes",
		    name, dev->name);
}

static int rights_check(const struct hal_timeline *t, uint32_t rights)
{
	const uint32_t known = HAL_TIMELINE_WAIT | HAL_TIMELINE_SIGNAL;

	if ((rights & ~known) != 0 || (rights & HAL_TIMELINE_WAIT) == 0)
		return fail(EINVAL,
			    "hal_timeline_export: rights 0x%x: HAL_TIMELINE_WAIT (0x%x) "
			    "is needed, 0x%x is defined",
			    rights, HAL_TIMELINE_WAIT, known);
	if ((rights & HAL_TIMELINE_SIGNAL) != 0 && t->raiser == NULL)
		return fail(
			EINVAL,
			"hal_timeline_export: HAL_TIMELINE_SIGNAL: the timeline belongs "
			"to a queue or partition, or was imported without it");
	return 0;
}

int hal_timeline_export(struct hal_timeline *timeline, uint32_t rights, int *fd)
{
	int err;

	if (!OBJECT_OK(timeline, OBJECT_TIMELINE))
		return FAR_OR_BAD(timeline, OBJECT_TIMELINE,
				  far_timeline_export(timeline, rights, fd));
	if (fd == NULL)
		return fail(EINVAL, "hal_timeline_export: fd is NULL");
	err = rights_check(timeline, rights);
	if (err == 0)
		err = journal_refuse(timeline->dev, "hal_timeline_export");
	return err != 0 ? err : courier_export(timeline, rights, fd);
}

int hal_timeline_import(struct hal_device *dev, int fd, struct hal_timeline **timeline)
{
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_timeline_import(dev, fd, timeline));
	if (timeline == NULL)
		return fail(EINVAL, "hal_timeline_import: timeline is NULL");
	err = journal_refuse(dev, "hal_timeline_import");
	return err != 0 ? err : courier_import(dev, fd, timeline);
}
