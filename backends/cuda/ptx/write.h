/* SPDX-License-Identifier: Apache-2.0 */
/* write.h - the text of a module as a pass rewrites it: copied, with what the pass adds
 * put in where it belongs. */
#ifndef BACKENDS_CUDA_PTX_WRITE_H
#define BACKENDS_CUDA_PTX_WRITE_H

#include "check.h"

struct ptx_color;

struct ptx_writer {
	const struct ptx *m;
	enum ptx_pass pass;
	const struct ptx_color *color; /* of PTX_COLOR */
	char *text;
	size_t count, room;
	uint32_t at; /* of the old text: copied so far */
	bool failed;
};

void ptx_put(struct ptx_writer *w, const char *text);
__attribute__((format(printf, 2, 3))) void ptx_putf(struct ptx_writer *w, const char *fmt,
						    ...);
void ptx_put_tokens(struct ptx_writer *w, uint32_t first, uint32_t count);
void ptx_put_token(struct ptx_writer *w, uint32_t token);
/* Copy the old text up to there. */
void ptx_copy_to(struct ptx_writer *w, uint32_t at);
/* Copy the old text up to the token, and leave out what is before that byte. */
void ptx_replace(struct ptx_writer *w, uint32_t token, uint32_t until);
uint32_t ptx_end_of(const struct ptx *m, uint32_t token);
/* Return whether the body goes on after its last statement. */
bool ptx_falls_out(const struct ptx *m, const struct ptx_function *f);

/* Write a kernel's body as PTX_ENTRY or PTX_LOOP make it.  w stands after its {; at the
 * end, in front of its }. */
int ptx_write_stops(struct ptx_writer *w, const struct ptx_function *f,
		    char why[PTX_WHY]);

/* The same of PTX_COLOR. */
void ptx_write_color(struct ptx_writer *w, const struct ptx_function *f);

#endif
