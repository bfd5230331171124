/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - our declarations of a vendor's library against its own headers, where those are
 * installed.
 *
 * abi.c is the program; test_abi.c of tests/cuda, rocm and levelzero (test_hsa_abi.c for
 * HSA's runtime) has the tables.
 */
#ifndef TESTS_VENDOR_ABI_H
#define TESTS_VENDOR_ABI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Two numbers or two texts that must be the same. */
struct abi_row {
	const char *what;
	uint64_t ours, theirs;
	const char *our_text, *their_text;
};

#define ABI_ROW(name, a, b)                                                              \
	{                                                                                \
		.what = name, .ours = (a), .theirs = (b)                                 \
	}
#define ABI_VALUE(a, b) ABI_ROW(#b, (uint32_t)(a), (uint32_t)(b))
#define ABI_SIZE(a, b)  ABI_ROW("sizeof " #b, sizeof(a), sizeof(b))
#define ABI_AT(a, member, b, named)                                                      \
	ABI_ROW("offset of " #b "." #named, offsetof(a, member), offsetof(b, named))
/* The same offset and size. */
#define ABI_FIELD(a, member, b, named)                                                   \
	ABI_AT(a, member, b, named),                                                     \
		ABI_ROW("size of " #b "." #named, sizeof(((a *)0)->member),              \
			sizeof(((b *)0)->named))
/* The header declares the call with this type and these parameters. */
#define ABI_TYPE(type, call, ...)                                                        \
	ABI_ROW("type of " #call, 1,                                                     \
		__builtin_types_compatible_p(__typeof__(call), type(__VA_ARGS__)))
/* The header's own macro names this function. */
#define ABI_NAME(macro, name)                                                            \
	{                                                                                \
		.what = "name of " name, .our_text = name, .their_text = ABI_TEXT(macro) \
	}
#define ABI_TEXT(x)  ABI_TEXT_(x)
#define ABI_TEXT_(x) #x

/* A case of the test. */
struct abi_group {
	const char *name; /* NULL: the end of the groups */
	const struct abi_row *rows;
	size_t count;
};
#define ABI_GROUP(r)                                                                     \
	{                                                                                \
		.name = #r, .rows = r, .count = sizeof(r) / sizeof((r)[0])               \
	}

struct abi_vendor {
	const struct abi_group *groups;
	const struct CMUnitTest *cases; /* of the vendor's own, or NULL */
	size_t case_count;
};
extern const struct abi_vendor abi_vendor;

#endif
