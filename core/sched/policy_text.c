/* SPDX-License-Identifier: Apache-2.0 */
/* policy_text.c - write a policy and its settings as one line of text. */
#include "sched/policy_text.h"

#include <string.h>

#include "util/error.h"

/* Copy text into to, escaping spaces, "%" and unprintable bytes as %XX.  Stop when the
 * next character does not fit into the `room` bytes of to.  Return the number of bytes
 * written, without a terminating NUL. */
static size_t put_escaped(char *to, size_t room, const char *text)
{
	size_t n = 0;

	for (; *text != '\0' && n + 4 <= room; text++) {
		unsigned char c = (unsigned char)*text;

		if (c > ' ' && c < 0x7f && c != '%') {
			to[n++] = (char)c;
		} else {
			format_text(to + n, 4, "%%%02x", c);
			n += 3;
		}
	}
	return n;
}

void policy_text(const struct hal_policy *p, const struct hal_bk_config *cfg,
		 const struct policy_limits *limits, char *text)
{
	static const char *const ways[] = {"best", "drain", "fold",
					   "save", "kill",  "never"};
	static const char *const whom[] = {"class", "deadline", "priority"};
	uint64_t starve_ns = limits->starve_ns;
	size_t n = put_escaped(text, POLICY_TEXT_BYTES - 144, p->name);

	format_text(text + n, 144,
		    " timeout_ms=%llu kills=%u inherit=%d preempt=%s "
		    "preempt_for=%s preempt_unknown_us=%llu",
		    U64(starve_ns != UINT64_MAX ? starve_ns / 1000000 : 0), limits->kills,
		    limits->inherit, ways[limits->preempt], whom[limits->preempt_for],
		    U64(limits->unknown_ns / 1000));
	n += strlen(text + n);

	for (uint32_t i = 0; i < cfg->count && n + 2 < POLICY_TEXT_BYTES; i++) {
		text[n++] = ' ';
		n += put_escaped(text + n, POLICY_TEXT_BYTES - 1 - n, cfg->defs[i].key);
		if (n + 2 < POLICY_TEXT_BYTES)
			text[n++] = '=';
		n += put_escaped(text + n, POLICY_TEXT_BYTES - 1 - n,
				 cfg->values[i].text);
	}
	text[n] = '\0';
}
