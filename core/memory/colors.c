/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colors.c - load a map of memory channels (hal.color_map) for a device that does not
 * report its own.
 */
#include "api/opened.h"

#include <errno.h>

#include "lib/color_map.h"
#include "util/error.h"

static const char *color_map_path(const struct hal_device *dev)
{
	return option_str(dev->opened->core_cfg, "color_map");
}

/* Return the upper bound of wrong granules in the map, per million; UINT32_MAX: unknown.
 */
static uint32_t wrong_ppm(const struct color_map *map)
{
	return map->tests > 0 ? (uint32_t)(map->bound * 1e6 + 0.999) : UINT32_MAX;
}

/* Pass map to the device, and read the device's properties again, which depend on it. */
static int apply_map(struct hal_device *dev, const struct color_map *map)
{
	struct hal_bk_color_map passed;
	char text[384];
	int err;

	color_map_tell(map, &passed);
	err = dev->table->cold.colors_set(dev->bk, &passed);
	if (err == 0) {
		dev->info = (struct hal_device_info)HAL_INIT(hal_device_info);
		err = dev->table->cold.get_info(dev->bk, &dev->info);
	}
	if (err != 0) {
		format_text(text, sizeof(text), "%s", hal_last_error());
		return fail(err, "hal.color_map %s: %s", color_map_path(dev), text);
	}
	dev->info.color_source =
		map->source == COLOR_MAP_PROBE ? HAL_COLOR_PROBE : HAL_COLOR_FILE;
	dev->info.color_wrong_ppm = wrong_ppm(map);
	return 0;
}

int colors_load(struct hal_device *dev)
{
	bool unverified = option_int(dev->opened->core_cfg, "color_map_unverified") != 0;
	const char *path = color_map_path(dev);
	char why[COLOR_MAP_WHY];
	struct color_map *map;
	int err;

	dev->info.color_source =
		dev->info.colors != 0 ? HAL_COLOR_DEVICE : HAL_COLOR_NONE;
	if (path[0] == '\0')
		return 0;
	err = color_map_read(path, &map, why);
	if (err != 0)
		return fail(err, "hal.color_map: %s", why);
	err = color_map_fits(map, &dev->info, unverified, path, why);
	if (err == 0)
		err = color_map_pages(map, dev->info.page_bytes, path, why);
	if (err != 0)
		err = fail(err, "hal.color_map: %s", why);
	else if (color_map_split(map, dev->info.page_bytes) != 0)
		err = fail(ENOMEM, "hal.color_map: no memory for %s", path);
	else
		err = apply_map(dev, map);
	color_map_free(map);
	return err;
}
