/* SPDX-License-Identifier: Apache-2.0 */
/* test_pack.c - packs: what halpack makes of images and says of them, which of a pack's
 * images a device takes, and packs that are none. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/cuda.h>
#include <hal/fpga.h>
#include <hal/hal.h>
#include <hal/levelzero.h>
#include <hal/npu.h>
#include <hal/pack.h>
#include <hal/ref.h>
#include <hal/rocm.h>

static char folder[] = "/tmp/halpack.XXXXXX", output[65536];

/* Runs halpack in the folder; stdout and stderr into output; its exit status. */
static int halpack(const char *args)
{
	char line[1024];
	size_t n;
	int rc;
	FILE *f;

	snprintf(line, sizeof(line), "cd %s && 2>&1 %s %s", folder, HALPACK, args);
	f = popen(line, "r");
	assert_non_null(f);
	n = fread(output, 1, sizeof(output) - 1, f);
	output[n] = '\0';
	rc = pclose(f);
	assert_true(WIFEXITED(rc));
	return WEXITSTATUS(rc);
}

static void says(const char *text)
{
	if (!strstr(output, text))
		fail_msg("no \"%s\" in:\n%.2000s", text, output);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const void *data, size_t bytes)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

static size_t get(const char *name, void *data, size_t room)
{
	FILE *f = fopen(path_of(name), "rb");
	size_t n;

	assert_non_null(f);
	n = fread(data, 1, room, f);
	assert_int_equal(fclose(f), 0);
	return n;
}

/* ---- what halpack makes ------------------------------------------------------------ */

static void put_cuda(const char *name, uint32_t format, const void *module, size_t bytes)
{
	uint8_t file[4096] = {0};
	const struct hal_cuda_image head = {
		.magic = HAL_CUDA_MAGIC,
		.version = HAL_CUDA_VERSION,
		.bytes =
			(uint32_t)(sizeof(head) + sizeof(struct hal_cuda_kernel) + bytes),
		.format = format,
		.kernel_count = 1,
		.kernel_size = sizeof(struct hal_cuda_kernel),
		.module_bytes = (uint32_t)bytes};

	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head) + sizeof(struct hal_cuda_kernel), module, bytes);
	put(name, file, head.bytes);
}

static void put_cubin(const char *name, uint32_t flags, unsigned char abi)
{
	Elf64_Ehdr e = {.e_flags = flags};

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_ABIVERSION] = abi;
	put_cuda(name, HAL_CUDA_CUBIN, &e, sizeof(e));
}

static void put_images(void)
{
	static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n";
	const uint32_t npu[4] = {HAL_NPU_IMAGE_MAGIC, 1};
	const struct hal_levelzero_image lz = {.magic = HAL_LEVELZERO_MAGIC};
	const struct hal_rocm_image code = {.magic = HAL_ROCM_MAGIC},
				    bundle = {.magic = HAL_ROCM_MAGIC,
					      .format = HAL_ROCM_BUNDLE};
	struct hal_xclbin_head card = {.magic = HAL_XCLBIN_MAGIC};

	put_cuda("k75.ptx", HAL_CUDA_PTX, ptx, sizeof(ptx));
	put_cubin("k80", 0x500550, 7);
	put_cubin("k90", 0x04005a02, 8);
	put_cuda("fat", HAL_CUDA_FATBIN, "fat", 3);
	put("npu", npu, sizeof(npu));
	put("lz", &lz, sizeof(lz));
	put("code", &code, sizeof(code));
	put("bundle", &bundle, sizeof(bundle));
	memcpy(card.platform, "xilinx_u250_gen3x16", sizeof("xilinx_u250_gen3x16"));
	put("card", &card, sizeof(card));
}

/* Of one kind code comes before what is compiled, late before early; kinds stay in the
 * order in which they were given. */
static void orders(void **state)
{
	static const char *const want[] = {
		"  0  npu ",
		"  1  cuda cubin sm_90 ",
		"  2  cuda cubin sm_80 ",
		"  3  cuda fatbin ",
		"  4  cuda ptx sm_75 ",
		"  5  levelzero spirv ",
		"  6  fpga xilinx_u250_gen3x16 ",
		"  7  rocm code object ",
		"  8  rocm bundle ",
	};
	char one[4096], other[4096];
	size_t n;

	(void)state;
	put_images();
	assert_int_equal(halpack("-o all npu k75.ptx k80 lz k90 card fat bundle code"),
			 0);
	assert_string_equal(output, "");
	assert_int_equal(halpack("--list all"), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		says(want[i]);
	assert_int_equal(halpack("-x 1 -o back all"), 0);
	n = get("back", one, sizeof(one));
	assert_int_equal(get("k90", other, sizeof(other)), n);
	assert_memory_equal(one, other, n);
	assert_int_equal(halpack("-l - < all"), 0);
	says(want[6]);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	put_images();
	put("none", "what", 4);
	put("empty", "", 0);
	assert_int_equal(halpack("-o all npu"), 0);
	assert_int_equal(halpack("-o p none"), 1);
	says("halpack: none: it is not an image that hal_program_load accepts: of "
	     "cuda, ");
	assert_int_equal(halpack("-o p empty"), 1);
	says("empty: it is not an image");
	assert_int_equal(halpack("-o p all"), 1);
	says("all: it is a pack itself: extract its images first\n");
	assert_int_equal(halpack("-o p /nowhere"), 1);
	says("/nowhere: No such file or directory");
	assert_int_equal(halpack("-l npu"), 1);
	says("npu: it is not a pack");
	assert_int_equal(halpack("-l empty"), 1);
	says("empty: it is not a pack");
	assert_int_equal(halpack("-x 1 all"), 1);
	says("all: there is no image 1; it has 1, counted from 0");
	assert_int_equal(halpack("-x -1 all"), 2);
	says("--extract -1: it must be a number from 0 to 255");
	assert_int_equal(halpack("-x 256 all"), 2);
	assert_int_equal(halpack("-l -x 0 all"), 2);
	says("--list cannot be used with other options");
	assert_int_equal(halpack("-l all all"), 2);
	says("only one pack can be used, but there is a second: all");
	assert_int_equal(halpack("-l"), 2);
	says("no pack given");
	assert_int_equal(halpack(""), 2);
	says("no image given; a pack has 1 to 256");
	assert_int_equal(halpack("-o /dev/full npu"), 1);
	says("/dev/full: No space left");
}

/* ---- which image a device takes ---------------------------------------------------- */

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {{.name = "first", .fn = nothing},
						{.name = "second", .fn = nothing},
						{.name = "here", .fn = nothing}};

struct ref_image {
	struct hal_ref_image head;
	char names[1][HAL_REF_NAME];
};

static struct ref_image ref_image(const char *name)
{
	struct ref_image image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 1},
				  {""}};

	snprintf(image.names[0], sizeof(image.names[0]), "%s", name);
	return image;
}

struct pack {
	struct hal_pack head;
	struct hal_pack_entry entries[3];
	uint8_t images[3][1024] __attribute__((aligned(HAL_PACK_ALIGN)));
};

/* Three places; what an image does not fill lies between it and the next. */
static struct pack *pack_make(void)
{
	struct pack *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->head = (struct hal_pack){HAL_PACK_MAGIC, HAL_PACK_VERSION, sizeof(*p), 3,
				    sizeof(struct hal_pack_entry)};
	for (uint32_t i = 0; i < 3; i++) {
		snprintf(p->entries[i].label, sizeof(p->entries[i].label), "image %u", i);
		p->entries[i].offset = offsetof(struct pack, images) + i * 1024;
		p->entries[i].bytes = 512;
	}
	return p;
}

static void pack_put(struct pack *p, uint32_t i, const void *image, size_t bytes)
{
	assert_in_range(bytes, 1, 1024);
	memcpy(p->images[i], image, bytes);
	p->entries[i].bytes = bytes;
}

static struct hal_device *device(void)
{
	const struct hal_ref_extension *ref;
	struct hal_device *dev = NULL;

	assert_int_equal(hal_open("ref?clock=virtual", NULL, &dev), 0);
	ref = hal_device_get_extension(dev, "ref");
	assert_non_null(ref);
	assert_int_equal(ref->add_kernels(hal_device_get_native(dev), kernels, 3), 0);
	return dev;
}

static void takes_the_first_that_fits(void **state)
{
	const struct ref_image first = ref_image("first"), second = ref_image("second");
	struct hal_device *dev = device();
	struct pack *p = pack_make();
	struct hal_program *prog = NULL;
	struct hal_kernel *k = NULL;

	(void)state;
	pack_put(p, 0, "a cuda image", 12);
	pack_put(p, 1, &first, sizeof(first));
	pack_put(p, 2, &second, sizeof(second));
	assert_int_equal(hal_program_load(dev, p, sizeof(*p), &prog), 0);
	free(p); /* the library has a copy */
	assert_int_equal(hal_kernel_find(prog, "first", &k), 0);
	assert_int_equal(hal_kernel_find(prog, "second", &k), -ENOENT);
	assert_int_equal(hal_program_unload(prog), 0);
	assert_int_equal(hal_close(dev), 0);
}

/* Wherever the caller has it. */
static void need_not_be_aligned(void **state)
{
	const struct ref_image image = ref_image("here");
	struct hal_device *dev = device();
	struct pack *p = pack_make();
	struct hal_program *prog = NULL;
	char *odd = malloc(sizeof(*p) + 1);

	(void)state;
	assert_non_null(odd);
	pack_put(p, 2, &image, sizeof(image));
	memcpy(odd + 1, p, sizeof(*p));
	assert_int_equal(hal_program_load(dev, odd + 1, sizeof(*p), &prog), 0);
	free(odd);
	free(p);
	assert_int_equal(hal_program_unload(prog), 0);
	assert_int_equal(hal_close(dev), 0);
}

static void lists_what_there_was(void **state)
{
	struct hal_device *dev = device();
	struct pack *p = pack_make();
	struct hal_program *prog = NULL;

	(void)state;
	assert_int_equal(hal_program_load(dev, p, sizeof(*p), &prog), -ENOTSUP);
	assert_null(prog);
	assert_string_equal(
		hal_last_error(),
		"the device accepts none of the pack's 3 images: image 0: ref: "
		"not an image: magic 0x00000000 at byte 0, not 0x46455248; "
		"image 1: ref: not an image: magic 0x00000000 at byte 0, not "
		"0x46455248; image 2: ref: not an image: magic 0x00000000 at "
		"byte 0, not 0x46455248");
	free(p);
	assert_int_equal(hal_close(dev), 0);
}

/* A device that has no memory, or is gone, is not asked for the next best. */
static void does_not_hide_a_failure(void **state)
{
	const struct ref_image first = ref_image("first"), second = ref_image("second");
	struct hal_device *dev = device();
	const struct hal_ref_extension *ref = hal_device_get_extension(dev, "ref");
	struct pack *p = pack_make();
	struct hal_program *prog = NULL;

	(void)state;
	assert_non_null(ref);
	pack_put(p, 1, &first, sizeof(first));
	pack_put(p, 2, &second, sizeof(second));
	assert_int_equal(ref->inject(hal_device_get_native(dev), HAL_REF_OP_PROGRAM_LOAD,
				     2, ENOSPC),
			 0);
	assert_int_equal(hal_program_load(dev, p, sizeof(*p), &prog), -ENOSPC);
	if (strstr(hal_last_error(), "image 1 of the pack (image 1): ") !=
	    hal_last_error())
		fail_msg("%s", hal_last_error());
	assert_null(prog);
	free(p);
	assert_int_equal(hal_close(dev), 0);
}

/* ---- packs that are none ----------------------------------------------------------- */

static void refuses(struct hal_device *dev, const struct pack *p, size_t size,
		    const char *why)
{
	struct hal_program *prog = NULL;

	assert_int_equal(hal_program_load(dev, p, size, &prog), -EINVAL);
	assert_null(prog);
	if (!strstr(hal_last_error(), why))
		fail_msg("%s, not %s", hal_last_error(), why);
}

static void refuses_broken_packs(void **state)
{
	const struct ref_image image = ref_image("whole");
	struct hal_device *dev = device();
	struct pack *good = pack_make(), *p = pack_make();

	(void)state;
	pack_put(good, 2, &image, sizeof(image));
#define BROKEN(change, why)                                                              \
	do {                                                                             \
		*p = *good;                                                              \
		change;                                                                  \
		refuses(dev, p, sizeof(*p), why);                                        \
	} while (0)
	BROKEN(p->head.version = 2,
	       "entries of 64 bytes is not supported; supported: 1 with 64");
	BROKEN(p->head.entry_size = 72, "entries of 72 bytes");
	BROKEN(p->head.bytes--, "there are ");
	BROKEN(p->head.bytes = UINT64_MAX, "there are ");
	BROKEN(p->head.count = 0, "0 images; 1 to 256");
	BROKEN(p->head.count = 257, "257 images; 1 to 256");
	BROKEN(p->head.count = 200, "truncated in its table");
	BROKEN(memset(p->entries[1].label, 'x', 48),
	       "the label of image 1 has no terminating NUL");
	BROKEN(p->entries[0].offset += 8, "not 16-aligned");
	BROKEN(p->entries[0].offset = 16, "image 0 claims 512 bytes at offset 16");
	BROKEN(p->entries[1].offset = p->entries[0].offset, "image 1 claims");
	BROKEN(p->entries[2].offset = UINT64_MAX - 15, "image 2 claims");
	BROKEN(p->entries[2].bytes = 1025, "image 2 claims");
	BROKEN(p->entries[2].bytes = UINT64_MAX - 64, "image 2 claims");
	BROKEN(p->entries[1].bytes = 0, "image 1 is empty");
	BROKEN(memcpy(p->images[1], p, 64), "image 1 is itself a pack");
#undef BROKEN
	*p = *good;
	refuses(dev, p, 8, "truncated in its header: 8 bytes");
	free(p);
	free(good);
	assert_int_equal(hal_close(dev), 0);
}

static int folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) == NULL;
}

static int folder_drop(void **state)
{
	char line[64];

	(void)state;
	snprintf(line, sizeof(line), "rm -rf %s", folder);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(takes_the_first_that_fits),
		cmocka_unit_test(need_not_be_aligned),
		cmocka_unit_test(lists_what_there_was),
		cmocka_unit_test(does_not_hide_a_failure),
		cmocka_unit_test(refuses_broken_packs),
	};

	return cmocka_run_group_tests_name("pack", tests, folder_make, folder_drop);
}
