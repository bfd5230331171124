/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - what a client of server.c sends and gets
 *
 * One packet of a SOCK_SEQPACKET socket is one request, and one is its answer.
 */
#ifndef SERVER_H
#define SERVER_H

#include <stdint.h>

#define SERVER_WORDS 4096 /* most in a request */

enum {
	SERVER_FILL, /* words with value, and send them */
	SERVER_COPY, /* the words that follow, and send them back */
};

struct server_request {
	uint32_t op;
	uint32_t words;
	uint32_t value;
	uint32_t deadline_us; /* device time; 0: there is none */
};

struct server_answer {
	int32_t status; /* 0, and the words follow; or -errno */
	uint32_t reserved;
	uint64_t ns; /* device time from submission to end */
};
#endif
