/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.c - halctl tenant: add, remove and list the tenants of a hald while it runs. */
#include "halctl.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <hal/hald.h>

enum { LIST_MAX = 1 << 20, SECTION_MAX = 4096 };

static int list(const struct hal_hald_extension *hald, struct hal_device *dev)
{
	static const char *const heads[] = {"TENANT", "CLIENTS", "UNITS", "MEMORY",
					    "QUEUES"};
	static char text[LIST_MAX];
	char *line = text;

	if (hald->tenant_list(dev, text, sizeof(text)) != 0)
		return tool_fail_hal();
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		printf("%-20s ", heads[i]);
	printf("SOCKET\n");
	while (*line != '\0') {
		for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
			size_t n = strcspn(line, "\t\n");

			printf("%-20.*s ", (int)n, line);
			line += n + (line[n] == '\t');
		}
		printf("%.*s\n", (int)strcspn(line, "\n"), line);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return 0;
}

/* Write the section of a tenant with these keys to section.  It has a socket of its own,
 * unless a key says who else it is for. */
static int write_section(char section[SECTION_MAX], const char *name, char *const *keys,
			 int count)
{
	static const char *const who[] = {
		"socket=", "uid=", "gid=", "label=", "cgroup=", "unit="};
	int used = snprintf(section, SECTION_MAX, "[tenant \"%s\"]\n", name);
	bool said = false;

	for (int i = 0; i < count; i++) {
		if (strchr(keys[i], '=') == NULL || strchr(keys[i], '\n') != NULL)
			return tool_usage("tenant add: %s is not of the form KEY=VALUE",
					  keys[i]);
		for (size_t k = 0; k < sizeof(who) / sizeof(who[0]); k++)
			said |= strncmp(keys[i], who[k], strlen(who[k])) == 0;
		if (used < SECTION_MAX)
			used += snprintf(section + used, (size_t)(SECTION_MAX - used),
					 "%s\n", keys[i]);
	}
	if (!said && used < SECTION_MAX)
		used += snprintf(section + used, (size_t)(SECTION_MAX - used),
				 "socket=yes\n");
	return used < SECTION_MAX ? 0 : tool_usage("tenant add: too many keys");
}

static int add(const struct hal_hald_extension *hald, struct hal_device *dev,
	       const struct halctl *ctl)
{
	char section[SECTION_MAX], path[256];
	int err = write_section(section, ctl->words[2], ctl->words + 3,
				ctl->word_count - 3);

	if (err != 0)
		return err;
	if (hald->tenant_add(dev, section, path, sizeof(path)) != 0)
		return tool_fail_hal();
	if (path[0] != '\0')
		printf("%s\n", path);
	return 0;
}

static int run(const char *what, struct hal_device *dev, const struct halctl *ctl)
{
	const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");

	if (hald == NULL)
		return tool_fail("tenant %s: hald does not serve %s; name its target, "
				 "such as hald:npu0",
				 what, ctl->words[1]);
	if (strcmp(what, "list") == 0)
		return list(hald, dev);
	if (strcmp(what, "add") == 0)
		return add(hald, dev, ctl);
	return hald->tenant_remove(dev, ctl->words[2]) == 0 ? 0 : tool_fail_hal();
}

int halctl_tenant(const struct halctl *ctl)
{
	const char *what = ctl->word_count > 0 ? ctl->words[0] : "";
	const int least = strcmp(what, "list") == 0 ? 2 : 3;
	struct hal_device *dev;
	int err;

	if (strcmp(what, "add") != 0 && strcmp(what, "remove") != 0 &&
	    strcmp(what, "list") != 0)
		return tool_usage("tenant: add, remove or list, not \"%s\"", what);
	if (ctl->word_count < least ||
	    (strcmp(what, "add") != 0 && ctl->word_count > least))
		return tool_usage("tenant %s TARGET%s%s", what, least == 3 ? " NAME" : "",
				  strcmp(what, "add") == 0 ? " [KEY=VALUE...]" : "");
	if (hal_open(ctl->words[1], ctl->options, &dev) != 0)
		return tool_fail_hal();
	err = run(what, dev, ctl);
	if (hal_close(dev) != 0 && err == 0)
		err = tool_fail_hal();
	return err;
}
