/* SPDX-License-Identifier: Apache-2.0 */
/* test_halrun.c - the command halrun: files in and out, what it says, and what it
 * refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <yajl/yajl_tree.h>

#include "pictures.h"
#include "result.h"
#include "run.h"
#include "tiny.h"

#define DIGITS HAL_SOURCE_DIR "/data/digits/"
#define ON     HALRUN " -t 'npu:0?clock=virtual&model=" MODEL "' "
#define DIGIT  ON DIGITS "digits.tflite "
#define SEVEN  ON DIGITS "digits.tflite " DIGITS "seven.npy "

static FILE *open_in(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	return f;
}

static void write_in(const char *name, const void *data, size_t size)
{
	FILE *f = open_in(name);

	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* A .npy file with this header and count elements of value. */
static void write_npy(const char *name, int version, const char *header,
		      const void *value, size_t bytes, size_t count)
{
	size_t length = strlen(header) + 1;
	FILE *f = open_in(name);

	fprintf(f, "\x93NUMPY%c%c%c%c", version, 0, (char)(length & 0xff),
		(char)(length >> 8));
	if (version > 1)
		fprintf(f, "%c%c", 0, 0);
	fprintf(f, "%s\n", header);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fwrite(value, 1, bytes, f), bytes);
	assert_int_equal(fclose(f), 0);
}

/* left, right (1 x 4, int8) -> sum; real (float32) -> scaled (float32), and left again.
 */
static void write_ports(void)
{
	static uint8_t file[8192];
	static const int32_t four[] = {1, 4};
	struct tiny m = {0};
	int32_t left = tiny_int8(&m, "left", 2, four, 1, 0);
	int32_t right = tiny_int8(&m, "right", 2, four, 1, 0);
	int32_t sum = tiny_int8(&m, "sum", 2, four, 1, 0);
	int32_t real = tiny_int8(&m, "a=real", 2, four, 0, 0);
	int32_t quantized = tiny_int8(&m, "quantized", 2, four, 0.5f, 10);
	int32_t scaled = tiny_int8(&m, "dir/scaled", 2, four, 0, 0);
	const int32_t both[] = {left, right};

	m.tensors[real].type = m.tensors[scaled].type = 0;
	m.tensors[real].scales = m.tensors[scaled].scales = 0;
	tiny_op(&m, 0, 2, both, sum);
	tiny_op(&m, 114, 1, &real, quantized);
	tiny_op(&m, 6, 1, &quantized, scaled);
	m.inputs[0] = left;
	m.inputs[1] = real;
	m.inputs[2] = right;
	m.outputs[0] = sum;
	m.outputs[1] = scaled;
	m.input_count = 3;
	m.output_count = 2;
	write_in("ports.tflite", file, tiny_write(&m, file, sizeof(file)));
}

static int set_up(void **state)
{
	static const int8_t left[] = {1, 2, 3, 4}, right[] = {10, 20, 30, -40};
	static const float real[] = {0.26f, -1, 3, 100};

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	write_ports();
	write_in("left", left, 4);
	write_in("right", right, 4);
	write_in("real", real, 16);
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* ---- files ------------------------------------------------------------------------ */

static void test_npy(void **state)
{
	(void)state;
	RUNS(SEVEN "-n 1 -l " DIGITS
		   "labels.txt -o out.npy -o logits=out.bin -o all.bin");
	SAYS("logits: 1 of 10 outputs\n     7    74      5.62489  seven\n");
	SAYS(", engine golden, ");
	RUNS("tail -c 10 out.npy | cmp - out.bin && cmp all.bin out.bin");
	RUNS("head -c 128 out.npy | tr -d '\\000\\200-\\377'");
	SAYS("NUMPY");
	SAYS("{'descr': '|i1', 'fortran_order': False, 'shape': (1, 10), }");
	RUNS("wc -c < out.npy");
	assert_int_equal(strtol(text, NULL, 10), 138);
	/* What was written can be read: the elements begin at a multiple of 64. */
	RUNS("tail -c 64 " DIGITS "seven.npy > raw && " ON DIGITS
	     "digits.tflite raw -n 0 -o raw.bin && cmp raw.bin out.bin");
	RUNS(ON DIGITS "digits.tflite - -n 0 -o - < raw 2>/dev/null | cmp - out.bin");
	RUNS(ON "- image=raw -n 0 -o raw.bin < " DIGITS
		"digits.tflite && cmp raw.bin out.bin");
}

static void test_versions(void **state)
{
	static const char *const headers[] = {
		"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 4), }",
		"{\"shape\":(1,4,),\"fortran_order\":False,\"descr\":\"i1\"}",
		" { 'fortran_order' : False , 'descr' : '|i1' , 'shape' : ( 1 , 4 ) } ",
		/* One byte has no order, whatever is written. */
		"{'descr': '<i1', 'fortran_order': False, 'shape': (1, 4), }",
		"{'descr': '=i1', 'fortran_order': False, 'shape': (1, 4), }  ",
		"{'descr': '>i1', 'fortran_order': False, 'shape': (1L, 4L), }",
	};
	const size_t count = sizeof(headers) / sizeof(headers[0]);
	int8_t three = 3;

	(void)state;
	for (size_t i = 0; i < 3 * count; i++) {
		write_npy("in.npy", 1 + (int)(i / count), headers[i % count], &three, 1,
			  4);
		RUNS(ON "ports.tflite left=in.npy right=left real -n 4");
		SAYS("     3     7            7\n     2     6            6\n");
	}
}

/* One .npy file, everything but one thing right. */
static void test_wrong_npy(void **state)
{
	static const struct {
		const char *header, *says;
		int version;
		size_t elements;
	} wrong[] = {
		{"{'descr': '<f2', 'fortran_order': False, 'shape': (1, 4)}",
		 "in.npy: its elements are float16, but input 'left' takes int8, or "
		 "float32",
		 1, 8},
		{"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 4)}",
		 "elements are int16, but input 'left' takes int8", 1, 8},
		{"{'descr': '>i2', 'fortran_order': False, 'shape': (1, 4)}",
		 "type '>i2' are not supported; only little-endian", 1, 8},
		{"{'descr': '=i2', 'fortran_order': False, 'shape': (1, 4)}",
		 "elements are int16, but input 'left' takes int8", 1, 8},
		{"{'descr': '|b1', 'fortran_order': False, 'shape': (1, 4)}",
		 "elements are bool, but input 'left' takes int8", 1, 4},
		{"{'descr': '', 'fortran_order': False, 'shape': (1, 4)}",
		 "type '' are not supported; only int8 '|i1'", 1, 4},
		{"{'descr': '<', 'fortran_order': False, 'shape': (1, 4)}",
		 "type '<' are not supported; only int8 '|i1'", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 4)} + 1",
		 "text after the dictionary", 1, 4},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (1, 4)}",
		 "type '<c8' are not supported; only int8 '|i1', uint8", 1, 32},
		{"{'descr': [('a', '|i1')], 'fortran_order': False, 'shape': (1, 4)}",
		 "structured arrays are not supported", 1, 4},
		{"{'descr': '|i1', 'fortran_order': True, 'shape': (1, 4)}",
		 "stored in Fortran order; convert it to C order", 1, 4},
		{"{'descr': '|i1', 'fortran_order': Maybe, 'shape': (1, 4)}",
		 "fortran_order is neither", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (4, 1)}",
		 "its shape is 4x1, but input 'left' takes 1x4", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (0, 4)}",
		 "its shape is 0x4, but input 'left' takes 1x4", 1, 0},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (2, 4)}",
		 "in.npy: shorter than the 8 bytes that input 'left' takes (after", 1, 7},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': ()}",
		 "its shape is scalar, but input 'left' takes 1x4", 1, 1},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, -4)}",
		 "a dimension is not a number", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 99999999999)}",
		 "a dimension is above", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,4)}",
		 "more than 8 dimensions", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1 4)}",
		 "the shape is not closed", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': 4}",
		 "the shape is not a tuple", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False}", "'shape' is missing", 1, 4},
		{"{'descr': '|i1', 'descr': '|i1', 'shape': (1, 4)}", "key 'descr'", 1,
		 4},
		{"{'descr': '|i1", "a quoted string is not terminated", 1, 4},
		{"{'descr' '|i1'}", "key 'descr' has no value", 1, 4},
		{"{'descr': '|i1' 'shape': (1, 4)}", "the dictionary is not closed", 1,
		 4},
		{"descr", "it is not a dictionary", 1, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 4)}",
		 "version 4.0 of .npy is not supported; 1.0, 2.0 and 3.0", 4, 4},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 4)}",
		 "in.npy: shorter than the 4 bytes that input 'left' takes (after", 1, 3},
		{"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 4)}",
		 "in.npy: longer than the 4 bytes that input 'left' takes (after", 2, 5},
	};
	int8_t three = 3;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_npy("in.npy", wrong[i].version, wrong[i].header, &three, 1,
			  wrong[i].elements);
		REFUSED(1, wrong[i].says, ON "ports.tflite left=in.npy right=left real");
		SAYS("halrun: in.npy: ");
	}
	write_in("in.npy", "\x93NUMPY\x01\x01\x02\0{}", 12);
	REFUSED(1, "version 1.1 of .npy", ON "ports.tflite in.npy real right");
	write_in("in.npy", "\x93NUMPY\x01\0\xff\xff{", 11);
	REFUSED(1, "it is truncated", ON "ports.tflite in.npy real right");
	write_in("in.npy", "\x93NUMPY\x01", 7);
	REFUSED(1, "it is truncated", ON "ports.tflite in.npy real right");
	write_in("in.npy", "\x93NUMPY\x02\0\xff\xff\xff\xff{", 13);
	REFUSED(1, "at most 65536", ON "ports.tflite in.npy real right");
}

static void test_names(void **state)
{
	float got[4];
	char path[128];
	FILE *f;

	(void)state;
	/* The others go to the inputs that are left, in the model's order. */
	RUNS(ON "ports.tflite right=right left a=real=real -n 1 -o sum=sum.bin "
		"-o dir/scaled=scaled.npy");
	SAYS("sum: 1 of 4 outputs\n     2    33           33\n");
	SAYS("dir/scaled: 1 of 4 outputs\n     3   127         58.5\n");
	snprintf(path, sizeof(path), "%s/scaled.npy", dir);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, -16, SEEK_END), 0);
	assert_int_equal(fread(got, 4, 4, f), 4);
	fclose(f);
	assert_true(got[0] == 0.5f && got[1] == -1 && got[2] == 3 && got[3] == 58.5f);
	REFUSED(1, "two files are given for input 'left'",
		ON "ports.tflite left=left left=right");
	REFUSED(1, "right: too many input files; inputs: 'left', 'a=real'",
		ON "ports.tflite left real right right");
	REFUSED(1, "no file for input 'right'; give one, or --random",
		ON "ports.tflite left real");
	REFUSED(1, "there is no input 'lfet'; inputs: 'left'",
		ON "ports.tflite lfet=left");
	REFUSED(1, "there is no output 'smu'; outputs: 'sum', 'dir/scaled'",
		ON "ports.tflite -r 1 -o smu=x");
	REFUSED(1, "a .npy file holds one output", ON "ports.tflite -r 1 -o both.npy");
	REFUSED(1, "the file name is missing", ON "ports.tflite -r 1 -o sum=");
	REFUSED(1, "standard output can be used for one output only",
		ON "ports.tflite -r 1 -o sum=- -o -");
	REFUSED(1, "standard input can be used for one input only",
		ON "ports.tflite -r 1 left=- right=- < left");
	REFUSED(1, "none: No such file", ON "ports.tflite none real right");
	REFUSED(1, ": ", ON "ports.tflite . real right");
	REFUSED(1, "longer than the 4 bytes", ON "ports.tflite real real right");
	REFUSED(1, "shorter than the 16 bytes", ON "ports.tflite left left right");
	REFUSED(1, "none/x: No such file", ON "ports.tflite -r 1 -o none/x");
	REFUSED(1, "/dev/full: cannot be written", ON "ports.tflite -r 1 -o /dev/full");
	REFUSED(1, "cannot write the output", ON "ports.tflite -r 1 > /dev/full");
	REFUSED(1, "cannot write the output", ON "ports.tflite -j -r 1 > /dev/full");
	REFUSED(1, "cannot write the output", ON "ports.tflite -r 1 -o - > /dev/full");
	REFUSED(1, "cannot write the output", HALRUN " --help > /dev/full");
	REFUSED(1, "trace /dev/full could not be written",
		"HAL_HAL_TRACE=/dev/full " ON "ports.tflite -r 1");
}

/* Elements of other types are quantized with the input's scale, and that is said. */
static void test_convert(void **state)
{
#define HEADER(type, shape)                                                              \
	"{'descr': '" type "', 'fortran_order': False, 'shape': " shape "}"
	static const float half = 2.5f, large = -1000;
	static const double wide = -3.5;
	static const uint8_t bright = 200;

	(void)state;
	write_npy("f.npy", 1, HEADER("<f4", "(1, 4)"), &half, 4, 4);
	RUNS(ON "ports.tflite left=f.npy right=right real -n 4");
	SAYS("f.npy: float32 quantized to int8 with scale 1 and zero point 0; 0 of 4 "
	     "elements were clamped\n");
	SAYS("     2    33           33\n     1    23           23\n");
	write_npy("f.npy", 1, HEADER("<f4", "(1, 4)"), &large, 4, 4);
	RUNS(ON "ports.tflite left=f.npy right=right real -n 4");
	SAYS("4 of 4 elements were clamped");
	SAYS("     2   -98          -98\n");
	write_npy("d.npy", 1, HEADER("<f8", "(4,)"), &wide, 8, 4);
	RUNS(ON "ports.tflite left=d.npy right=right real -n 4");
	SAYS("d.npy: float64 quantized to int8");
	SAYS("     2    26           26\n");
	write_npy("u.npy", 1, HEADER("|u1", "(1, 4)"), &bright, 1, 4);
	RUNS(ON "ports.tflite left=u.npy right=right real -n 4 --mean 180 --deviation 2");
	SAYS("u.npy: uint8 quantized to int8");
	SAYS("     2    40           40\n");
	/* A mean of each channel, and float32 for float32. */
	RUNS(ON "ports.tflite left=u.npy right=u.npy a=real=u.npy -n 1 "
		"--mean 200,190,180,170 -o dir/scaled=out.npy");
	SAYS("sum: 1 of 4 outputs\n     3    60           60\n");
	SAYS("dir/scaled: 1 of 4 outputs\n     3    70           30\n");
	REFUSED(1, "u.npy: 2 means or deviations are given, but input 'left' has 4",
		ON "ports.tflite left=u.npy right=right real --mean 1,2");
	write_npy("q.npy", 1, HEADER("|i1", "(1, 4)"), &bright, 1, 4);
	/* What is quantized already stays as it is. */
	RUNS(ON "ports.tflite left=q.npy right=right real -n 4 --mean 1");
	SAYS("     2   -26          -26\n");
	REFUSED(2, "--deviation 0: it must be positive numbers",
		ON "ports.tflite -r 1 --deviation 0");
	REFUSED(2, "--mean 1,x: it must be numbers", ON "ports.tflite -r 1 --mean 1,x");
}

/* Several images in the place of a batch of 1; outputs are as many. */
static void test_images(void **state)
{
	static const int8_t images[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {-1, -2, -3, -4}};

	(void)state;
	write_npy("i.npy", 1, HEADER("|i1", "(3, 4)"), images, sizeof(images), 1);
	RUNS(ON "ports.tflite left=i.npy right=right real -n 1 -o sum=sum.npy -R 2");
	SAYS("image 0, sum: 1 of 4 outputs\n     2    33           33\n");
	SAYS("image 1, sum: 1 of 4 outputs\n     2    37           37\n");
	SAYS("image 2, sum: 1 of 4 outputs\n     2    27           27\n");
	SAYS("6 runs on ");
	RUNS("head -c 128 sum.npy | tr -d '\\000\\200-\\377'");
	SAYS("'shape': (3, 4), }");
	/* Each output is that of its image alone. */
	write_npy("one.npy", 1, HEADER("|i1", "(4,)"), images[1], 4, 1);
	RUNS(ON "ports.tflite left=one.npy right=right real -n 0 -o sum=one.bin && "
		"tail -c 12 sum.npy | head -c 8 | tail -c 4 | cmp - one.bin");
	RUNS(ON "ports.tflite left=i.npy right=right real -n 0 --in-flight 2 -o "
		"sum=sum2.npy && cmp sum.npy sum2.npy");
	RUNS(ON "ports.tflite left=i.npy right=right real -n 1 -j");
	SAYS("\"image\": 2");
	write_npy("two.npy", 1, HEADER("|i1", "(2, 4)"), images, 8, 1);
	REFUSED(1, "input 'right' has 2 images, but input 'left' has 3",
		ON "ports.tflite left=i.npy right=two.npy real");
	REFUSED(1, "the inputs have 3 images; give one to explain",
		HALRUN " -t 'npu:0?clock=virtual&engine=fast' --explain ports.tflite "
		       "left=i.npy right=right real");
}

/* Pictures: the pixels as they are, resized, and grey. */
static void test_pictures(void **state)
{
	static uint8_t file[8192];
	static const int32_t dims[] = {1, 2, 2, 3};
	static const char ppm[] = "P6 # two by two\n2 2\n255\n"
				  "\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a\x64\x6e\x78";
	struct tiny m = {.input_count = 1, .output_count = 1};

	(void)state;
	tiny_int8(&m, "pixels", 4, dims, 1, -128);
	tiny_int8(&m, "same", 4, dims, 1, -128);
	m.outputs[0] = 1;
	tiny_op(&m, 19, 1, (const int32_t[]){0}, 1);
	write_in("net.tflite", file, tiny_write(&m, file, sizeof(file)));
	write_in("p.ppm", ppm, sizeof(ppm) - 1);
	RUNS(ON "net.tflite p.ppm -n 2 -o out.bin");
	SAYS("p.ppm: uint8 quantized to int8 with scale 1 and zero point -128; 0 of 12");
	SAYS("    11    -8          120\n    10   -18          110\n");
	/* Twice as large, a pixel four times: the same pixels come out of resizing. */
	RUNS("printf 'P6\\n4 2\\n255\\n' > wide.ppm; for i in 1 2; do printf "
	     "'\\12\\24\\36\\12\\24\\36\\50\\62\\74\\50\\62\\74'; done >> wide.ppm");
	RUNS(ON "net.tflite wide.ppm -n 1");
	SAYS("wide.ppm: 4 x 2 pixels resized to 2 x 2\n");
	SAYS("     5   -68           60\n");
	m.tensors[0].dims[3] = m.tensors[1].dims[3] = 1;
	write_in("grey.tflite", file, tiny_write(&m, file, sizeof(file)));
	RUNS(ON "grey.tflite p.ppm -n 1");
	SAYS("     3   -20          108\n"); /* 0.299 100 + 0.587 110 + 0.114 120 */
	write_in("p.png", picture_png, sizeof(picture_png));
	write_in("p.jpg", picture_jpeg, sizeof(picture_jpeg));
#ifdef HALRUN_PNG
	RUNS(ON "net.tflite p.png -n 0 -o png.bin && cmp png.bin out.bin");
	write_in("cut.png", picture_png, sizeof(picture_png) - 30);
	REFUSED(1, "cut.png: ", ON "net.tflite cut.png");
#else
	REFUSED(1, "p.png: halrun was built without libpng", ON "net.tflite p.png");
#endif
#ifdef HALRUN_JPEG
	RUNS(ON "grey.tflite p.jpg -n 4");
	SAYS("p.jpg: 8 x 8 pixels resized to 2 x 2\n");
	SAYS("     0   -38           90\n     1   -38           90\n");
	write_in("cut.jpg", picture_jpeg, sizeof(picture_jpeg) - 4);
	REFUSED(1, "cut.jpg: the JPEG data are damaged", ON "grey.tflite cut.jpg");
#else
	REFUSED(1, "p.jpg: halrun was built without libjpeg", ON "net.tflite p.jpg");
#endif
	REFUSED(1, "p.ppm: it is a picture, but input 'left' has not the shape",
		ON "ports.tflite p.ppm real right");
	write_in("cut.ppm", ppm, sizeof(ppm) - 2);
	REFUSED(1, "cut.ppm: it is truncated", ON "net.tflite cut.ppm");
	RUNS("printf 'P6 2 2 256\\n' > deep.ppm");
	REFUSED(1, "deep.ppm: the largest value is 256; only 255",
		ON "net.tflite deep.ppm");
	RUNS("printf 'P6 0 2 255\\n' > none.ppm");
	REFUSED(1, "none.ppm: 0 x 2 pixels; 1 to 32768", ON "net.tflite none.ppm");
	RUNS("printf '\\211PNG\\r\\n\\032\\n12345' > bad.png");
	REFUSED(1, "bad.png: PNG: ", ON "net.tflite bad.png");
	RUNS("printf '\\377\\330\\377\\340JFIF' > bad.jpg");
	REFUSED(1, "bad.jpg: JPEG: ", ON "net.tflite bad.jpg");
	RUNS("printf 'P6 400000000 3 255\\n' > wide.ppm");
	REFUSED(1, "wide.ppm: 1000000 x 3 pixels; 1 to 32768", ON "net.tflite wide.ppm");
	RUNS("printf 'BM12345' > p.bmp");
	REFUSED(1, "p.bmp: shorter than", ON "net.tflite p.bmp");
	REFUSED(1, "(it is no .npy, PNG, JPEG, PGM or PPM file)", ON "net.tflite p.bmp");
}

static void test_expected(void **state)
{
	static const float reals[] = {11, 22, 33.4f, -36};
	static const int8_t off[] = {11, 22, 31, -36};

	(void)state;
	RUNS(ON "ports.tflite left real right -n 0 -o sum=sum.bin -d -o sum=f.npy");
	RUNS("tail -c 16 f.npy | od -An -tf4");
	SAYS("11");
	SAYS("-36");
	RUNS("head -c 128 f.npy | tr -d '\\000\\200-\\377'");
	SAYS("'descr': '<f4'");
	RUNS(ON "ports.tflite left real right -n 0 --expected sum=f.npy");
	SAYS("sum: as expected: all 4 elements are equal\n");
	write_in("off", off, sizeof(off));
	REFUSED(1,
		"off: output 'sum': 1 of 4 elements differ by more than 0; the largest "
		"difference is 2, at element 2: 33 instead of 31",
		ON "ports.tflite left real right -n 0 --expected sum=off");
	RUNS(ON "ports.tflite left real right -n 0 --expected sum=off --tolerance 2");
	SAYS("sum: as expected: 1 of 4 elements differ, by at most 2\n");
	write_npy("reals.npy", 1, HEADER("<f4", "(1, 4)"), reals, sizeof(reals), 1);
	REFUSED(1, "differ by more than 0.25; the largest difference is 0.4",
		ON "ports.tflite left real right -n 0 --expected sum=reals.npy "
		   "--tolerance 0.25");
	RUNS(ON "ports.tflite left real right -n 0 --expected sum=reals.npy "
		"--tolerance 0.5");
	/* Bare elements of either type. */
	RUNS(ON "ports.tflite left real right -n 0 --expected sum=sum.bin");
	RUNS("tail -c 16 f.npy > f.bin && " ON
	     "ports.tflite left real right -n 0 --expected sum=f.bin");
	SAYS("sum: as expected: all 4 elements are equal\n");
	RUNS("head -c 15 f.bin > f15.bin");
	REFUSED(1,
		"f15.bin: it has 15 bytes of elements, but output 'sum' has 4 elements",
		ON "ports.tflite left real right --expected sum=f15.bin");
	REFUSED(1, "off: it has one output; select it with NAME=FILE, of 'sum'",
		ON "ports.tflite left real right --expected off");
	REFUSED(1, "none: No such file",
		ON "ports.tflite left real right --expected sum=none");
	/* Files are looked at before the network runs: there is no such device. */
	REFUSED(1, "none: No such file",
		ON "ports.tflite left real right --expected sum=none -t npu:9");
	REFUSED(2, "--tolerance is an option of --expected",
		ON "ports.tflite -r 1 --tolerance 1");
	REFUSED(2, "--tolerance -1: it must be a number of at least 0",
		ON "ports.tflite -r 1 --tolerance -1");
}

/* Names that begin with the same 80 characters. */
static void test_long_names(void **state)
{
	static uint8_t file[8192];
	static const int32_t four[] = {1, 4};
	char name[3][84];
	struct tiny m = {.input_count = 2, .output_count = 1};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(name[i], sizeof(name[i]), "%080d%zu", 0, i);
		m.inputs[i] = tiny_int8(&m, name[i], 2, four, 1, 0);
	}
	m.outputs[0] = 2;
	tiny_op(&m, 41, 2, m.inputs, 2); /* SUB */
	write_in("long.tflite", file, tiny_write(&m, file, sizeof(file)));
	RUNS(ON "long.tflite %s=left %s=right -n 1 -o %s=out", name[1], name[0], name[2]);
	SAYS(name[2]);
	SAYS(": 1 of 4 outputs\n     2    27           27\n");
	RUNS(NPUC " long.tflite -o long.npu && " ON "long.npu %s=right %s=left -n 1",
	     name[1], name[0]);
	SAYS(": 1 of 4 outputs\n     3    44           44\n");
	REFUSED(1, "no file for input '", ON "long.tflite %s=left", name[1]);
	SAYS(name[0]);
}

/* ---- what it says ----------------------------------------------------------------- */

/* Like tests/tflite: the top byte of xorshift64*, input after input. */
static void test_random(void **state)
{
	(void)state;
	RUNS(ON "ports.tflite -r 1 -n 0 -o one.bin && " ON
		"ports.tflite -r 0x1 -n 0 -o hex.bin && " ON
		"ports.tflite -r 2 -n 0 -o two.bin && cmp one.bin hex.bin && "
		"! cmp -s one.bin two.bin");
	/* Four bytes each for left, real and right; the sum of the first and the last. */
	{
		uint64_t x = 1;
		int8_t byte[12], want[4];

		for (size_t i = 0; i < 12; i++) {
			x ^= x >> 12;
			x ^= x << 25;
			x ^= x >> 27;
			byte[i] = (int8_t)(x * UINT64_C(2685821657736338717) >> 56);
		}
		for (size_t i = 0; i < 4; i++) {
			int sum = byte[i] + byte[8 + i];

			want[i] = (int8_t)(sum > 127 ? 127 : sum < -128 ? -128 : sum);
		}
		write_in("want.bin", want, 4);
		RUNS("head -c 4 one.bin | cmp - want.bin");
	}
	/* Only what has no file. */
	RUNS(ON "ports.tflite -r 1 left=left right=right -n 1");
	SAYS("     2    33           33\n");
}

/* Of int16 both bytes are random, the low one first; the largest are printed as such. */
static void test_random_int16(void **state)
{
	static uint8_t file[8192];
	static const int32_t four[] = {1, 4};
	struct tiny m = {0};
	int32_t in = tiny_int8(&m, "in", 2, four, 0.5f, 0);
	int32_t out = tiny_int8(&m, "out", 2, four, 0.5f, 0);
	int16_t number[4];
	uint64_t x = 7;
	int most = 0;

	(void)state;
	m.tensors[in].type = m.tensors[out].type = 7;
	tiny_op(&m, 114, 1, &in, out);
	m.inputs[0] = in;
	m.outputs[0] = out;
	m.input_count = m.output_count = 1;
	write_in("int16.tflite", file, tiny_write(&m, file, sizeof(file)));
	for (size_t i = 0; i < 4; i++) {
		uint32_t bits = 0;

		for (uint32_t byte = 0; byte < 2; byte++) {
			x ^= x >> 12;
			x ^= x << 25;
			x ^= x >> 27;
			bits |= (uint32_t)(x * UINT64_C(2685821657736338717) >> 56)
				<< 8 * byte;
		}
		number[i] = (int16_t)bits;
		if (number[i] > number[most])
			most = (int)i;
	}
	write_in("int16.bin", number, sizeof(number));
	RUNS(ON "int16.tflite -r 7 -n 1 -o out.bin -o out.npy && cmp out.bin int16.bin");
	{
		char line[64];

		snprintf(line, sizeof(line), "%6d%6d%13g\n", most, number[most],
			 number[most] * 0.5);
		SAYS(line);
	}
	RUNS(ON "int16.tflite -n 1 -j out.npy");
	{
		char part[64];

		snprintf(part, sizeof(part), "\"value\": %d", number[most]);
		SAYS(part);
	}
	REFUSED(1, "shorter than the 8 bytes",
		"head -c 7 int16.bin > short; " ON "int16.tflite short");
}

static yajl_val get(yajl_val tree, const char *a, const char *b)
{
	const char *path[] = {a, b, NULL};
	yajl_val v = yajl_tree_get(tree, path, yajl_t_any);

	if (!v)
		fail_msg("no %s %s in: %s", a, b ? b : "", text);
	return v;
}

static void test_json(void **state)
{
	const char *device;
	char why[256];
	yajl_val tree, result, best;
	double use;

	(void)state;
	RUNS(SEVEN "-j -R 7 -n 2 -l " DIGITS "labels.txt");
	tree = yajl_tree_parse(text, why, sizeof(why));
	if (!tree)
		fail_msg("%s: %s", why, text);
	assert_int_equal(YAJL_GET_INTEGER(get(tree, "runs", NULL)), 7);
	device = YAJL_GET_STRING(get(tree, "device", NULL));
	assert_true(device && strstr(device, "engine golden"));
	assert_int_equal(YAJL_GET_INTEGER(get(tree, "macs", NULL)), 231680);
	assert_true(YAJL_GET_INTEGER(get(tree, "cycles", "p50")) > 0);
	assert_true(YAJL_GET_INTEGER(get(tree, "cycles", "p99")) >=
		    YAJL_GET_INTEGER(get(tree, "cycles", "p50")));
	assert_true(YAJL_GET_DOUBLE(get(tree, "wall_ms", "p99")) >=
		    YAJL_GET_DOUBLE(get(tree, "wall_ms", "p50")));
	use = 231680.0 / (double)YAJL_GET_INTEGER(get(tree, "cycles", "p50")) /
	      (double)(YAJL_GET_INTEGER(get(tree, "rows", NULL)) *
		       YAJL_GET_INTEGER(get(tree, "cols", NULL)));
	assert_true(YAJL_GET_DOUBLE(get(tree, "mac_use", NULL)) > use * 0.999999 &&
		    YAJL_GET_DOUBLE(get(tree, "mac_use", NULL)) < use * 1.000001);
	result = YAJL_GET_ARRAY(get(tree, "results", NULL))->values[0];
	assert_string_equal(YAJL_GET_STRING(get(result, "name", NULL)), "logits");
	assert_int_equal(YAJL_GET_ARRAY(get(result, "top", NULL))->len, 2);
	best = YAJL_GET_ARRAY(get(result, "top", NULL))->values[0];
	assert_int_equal(YAJL_GET_INTEGER(get(best, "index", NULL)), 7);
	assert_int_equal(YAJL_GET_INTEGER(get(best, "value", NULL)), 74);
	assert_string_equal(YAJL_GET_STRING(get(best, "label", NULL)), "seven");
	yajl_tree_free(tree);
}

static void test_percentile(void **state)
{
	uint64_t sorted[200];

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		sorted[i] = i + 1;
	assert_int_equal(result_percentile(sorted, 1, 50), 1);
	assert_int_equal(result_percentile(sorted, 1, 99), 1);
	assert_int_equal(result_percentile(sorted, 2, 50), 1);
	assert_int_equal(result_percentile(sorted, 3, 50), 2);
	assert_int_equal(result_percentile(sorted, 3, 99), 3);
	assert_int_equal(result_percentile(sorted, 100, 50), 50);
	assert_int_equal(result_percentile(sorted, 100, 99), 99);
	assert_int_equal(result_percentile(sorted, 101, 99), 100);
	assert_int_equal(result_percentile(sorted, 200, 99), 198);
	assert_true(result_mean(sorted, 200) == 100.5);
}

static void test_repeat(void **state)
{
	(void)state;
	RUNS(SEVEN "-n 0 -R 5");
	SAYS("5 runs on ");
	SAYS("cycles: p50 ");
	SAYS(", p99 ");
	SAYS(", min ");
	SAYS(", mean ");
	SAYS(", max ");
	SAYS("wall time: p50 ");
	SAYS("MAC use: ");
	SAYS(" %, 231680 MACs a run\n");
	RUNS(SEVEN "-n 0 -R 2 --warm-up 3");
	SAYS("2 runs on ");
	/* Several at a time, with the same results: of the same random inputs, too. */
	RUNS(SEVEN "-n 0 -R 7 --in-flight 3 --warm-up 2");
	SAYS("7 runs on ");
	SAYS(", 3 in flight\n");
	RUNS(SEVEN "-j -R 2 --in-flight 4");
	SAYS("\"in_flight\": 4");
	RUNS(DIGIT "-r 5 -n 0 -o one.npy");
	RUNS(DIGIT "-r 5 -n 0 -R 5 --in-flight 4 -o four.npy && cmp one.npy four.npy");
	/* On a part of the array, with the same results. */
	RUNS(SEVEN "-n 0 -o whole.npy");
	RUNS(SEVEN "-n 0 -R 2 --units 128 -o part.npy && cmp whole.npy part.npy");
	SAYS("2 runs on ");
	SAYS(", 8 x 16\n");
}

static void test_labels(void **state)
{
	(void)state;
	write_in("nine", "1\n2\n3\n4\n5\n6\n7\n8\n9", 17);
	REFUSED(1, "9 labels, but output 'logits' has 10 elements", SEVEN "-l nine");
	write_in("ten", "1\n2\n\n4\n5\n6\n7\nacht\r\n9\n10\n\n", 25);
	RUNS(SEVEN "-n 1 -l ten");
	SAYS("5.62489  acht\n");
	/* A byte order mark is no part of the first label; of the others it is. */
	write_in("ten",
		 "\xef\xbb\xbf"
		 "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
		 24);
	RUNS(SEVEN "-n 10 -l ten | cat -v");
	SAYS("  8\n");
	assert_null(strstr(text, "M-"));
	write_in("mark", "\xef\xbb\xbf", 3);
	REFUSED(1, "mark: the file has no labels", SEVEN "-l mark");
	write_in("binary", "1\n\x01\n", 4);
	REFUSED(1, "binary:2: the text is not valid UTF-8", SEVEN "-l binary");
	write_in("latin", "\xc3\xa4\n\xe4\n", 5);
	REFUSED(1, "latin:2: the text is not valid UTF-8", SEVEN "-l latin");
	write_in("empty", "", 0);
	REFUSED(1, "empty: the file has no labels", SEVEN "-l empty");
	REFUSED(1, "none: No such file", SEVEN "-l none");
}

/* A network that ends early says so, as a program of npuc, too. */
static void test_host(void **state)
{
	static uint8_t file[8192];
	static const int32_t four[] = {1, 4}, in[] = {0}, mid[] = {1};
	struct tiny m = {0};

	(void)state;
	tiny_int8(&m, "pixels", 2, four, 0.5f, 3);
	tiny_int8(&m, "boxes", 2, four, 0.5f, 3);
	tiny_int8(&m, "found", 2, four, 0.5f, 3);
	tiny_op(&m, 19, 1, in, 1);
	tiny_op(&m, 32, 1, mid, 2)->custom = "Detect";
	m.inputs[0] = 0;
	m.outputs[0] = 2;
	m.input_count = m.output_count = 1;
	write_in("tail.tflite", file, tiny_write(&m, file, sizeof(file)));
	RUNS(NPUC " tail.tflite -o tail.npu && " ON "tail.npu -r 1 -n 1");
	SAYS("boxes: 1 of 4 outputs");
	SAYS("the network ends before layer 1 (CUSTOM Detect)");
	RUNS(ON "-j tail.tflite -r 1");
	SAYS("\"host\": \"the network ends before layer 1 (CUSTOM Detect)");
}

/* 5 / 4 is 1, but rounded twice 2. */
static void test_reference(void **state)
{
	static uint8_t file[8192];
	static const int32_t one[] = {1, 1};
	static const int8_t weight = 1;
	struct tiny m = {0};
	int32_t x = tiny_int8(&m, "x", 2, one, 1, 0);
	int32_t w = tiny_int8(&m, "w", 2, one, 0.25f, 0);
	const int32_t both[] = {x, w};

	(void)state;
	m.tensors[w].data = &weight;
	m.tensors[w].bytes = 1;
	tiny_op(&m, 9, 2, both, tiny_int8(&m, "y", 2, one, 1, 0));
	m.inputs[0] = x;
	m.outputs[0] = m.ops[0].outputs[0];
	m.input_count = m.output_count = 1;
	write_in("dense.tflite", file, tiny_write(&m, file, sizeof(file)));
	write_in("five", "\005", 1);
	write_in("one", "\001", 1);
	write_in("two", "\002", 1);
	RUNS(ON "dense.tflite five --expected one");
	RUNS(ON "--reference current dense.tflite five --expected one");
	RUNS(ON "--reference 2.14 dense.tflite five --expected two");
	/* A program keeps the one that it was compiled with. */
	RUNS(NPUC " --reference 2.14 dense.tflite -o old.npu && " ON
		  "old.npu five --expected two");
	RUNS(NPUC " dense.tflite -o new.npu && " ON "new.npu five --expected one");
	REFUSED(1, "old.npu: it has the reference that it was compiled with",
		ON "--reference 2.14 old.npu five");
}

/* The current reference alone refuses a bias of int64 that the options say is int32. */
static void test_check_reference(void **state)
{
	static uint8_t file[8192];
	static const int32_t one[] = {1, 1};
	static const int8_t weight = 1;
	static const int64_t seven = 7;
	struct tiny m = {0};
	int32_t x = tiny_int8(&m, "x", 2, one, 0.5f, 0);
	int32_t w = tiny_const(&m, "w", 9, 2, one, 0.5f, 0, &weight, 1);
	int32_t b = tiny_const(&m, "b", 4, 1, one, 0.25f, 0, &seven, 8);
	int32_t y = tiny_int8(&m, "y", 2, one, 0.5f, 0);
	const int32_t all[] = {x, w, b};

	(void)state;
	m.tensors[x].type = m.tensors[y].type = 7;
	tiny_option(tiny_op(&m, 9, 3, all, y), 8, 4, 1, 2);
	m.inputs[0] = x;
	m.outputs[0] = y;
	m.input_count = m.output_count = 1;
	write_in("bias.tflite", file, tiny_write(&m, file, sizeof(file)));
	RUNS(NPUC " --reference 2.14 --check bias.tflite");
	SAYS("compiles: 1 layer");
	REFUSED(1,
		"obstacle: layer 0 (FULLY_CONNECTED): quantized_bias_type is int32, but "
		"the bias is int64",
		NPUC " --check bias.tflite");
}

static void test_usage(void **state)
{
	(void)state;
	REFUSED(2, "no model", HALRUN);
	REFUSED(2, "no inputs given; name a file", HALRUN " ports.tflite");
	/* A missing file is more than missing inputs. */
	REFUSED(1, "x.tflite: No such file", HALRUN " x.tflite");
	REFUSED(1, "none: No such file", ON "ports.tflite none");
	REFUSED(2, "--random 0: it must be a number of at least 1", HALRUN " -r 0 x");
	REFUSED(2, "--random -1: it must be a number", HALRUN " -r -1 x");
	REFUSED(2, "--random x: it must be a number", HALRUN " -r x x");
	REFUSED(2, "--in-flight 33: it must be a number from 1 to 32",
		HALRUN " --in-flight 33 x y");
	REFUSED(2, "leave out --in-flight", HALRUN " -e --in-flight 2 ports.tflite");
	REFUSED(2, "--repeat 0: it must be a number from 1 to 10000000",
		HALRUN " -R 0 x y");
	REFUSED(2, "--units 0: it must be a number from 1", HALRUN " -u 0 x y");
	REFUSED(1, "units", ON "ports.tflite -r 1 -u 100000");
	REFUSED(2, "--top 1.5: it must be a number", HALRUN " -n 1.5 x y");
	REFUSED(2, "--reference 2.15: it must be current or 2.14",
		HALRUN " --reference 2.15 x y");
	REFUSED(2, "--reference x: it must be", NPUC " --reference x x");
	REFUSED(2, "--json and an output cannot both", HALRUN " -j -o - x y");
	REFUSED(2, "the model and an input cannot both be standard input", HALRUN " - -");
	REFUSED(2, "try: halrun --help", HALRUN " --nonsense");
	REFUSED(1, "none.tflite: No such file", HALRUN " none.tflite -r 1");
	REFUSED(1, "not a TensorFlow Lite model", HALRUN " " DIGITS "seven.npy -r 1");
	REFUSED(1, "ref is not an NPU", HALRUN " -t ref ports.tflite -r 1");
	/* What the configuration selects where the NPU has no models. */
	REFUSED(1, "looked in /nonexistent (No such file or directory)",
		"HAL_HAL_CONFIG=/dev/null HAL_HAL_DEVICE=ref "
		"HAL_NPU_MODELS=/nonexistent " HALRUN " ports.tflite -r 1");
	RUNS(HALRUN " --version");
	SAYS("halrun 0.");
}

/* The model in C where nobody names an engine or a model; else what is named. */
static void test_engine(void **state)
{
	(void)state;
#define PLAIN(variables, target)                                                         \
	"HAL_HAL_CONFIG=/dev/null HAL_HAL_DEVICE=npu:0 HAL_BACKEND_NPU_CLOCK=virtual "   \
	"HAL_NPU_MODELS=" MODELS " " variables " " HALRUN " " target " " DIGITS          \
	"digits.tflite " DIGITS "seven.npy -n 0"
	RUNS(PLAIN("", ""));
	SAYS(", engine fast, ");
	RUNS(PLAIN("", "-t 'npu:0?rows=8&cols=8'"));
	SAYS("8 x 8");
	SAYS(", engine fast, ");
	RUNS(PLAIN("HAL_BACKEND_NPU_ENGINE=golden", ""));
	SAYS(", engine golden, ");
	RUNS(PLAIN("HAL_BACKEND_NPU_MODEL=" MODEL, ""));
	SAYS(", engine golden, ");
	RUNS(PLAIN("", "-t npu:0?engine=golden"));
	SAYS(", engine golden, ");
#undef PLAIN
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_npy),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_wrong_npy),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_convert),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_expected),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_int16),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_repeat),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_check_reference),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
