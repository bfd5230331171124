/* SPDX-License-Identifier: Apache-2.0 */
/* abi_check.c - tfl_abi.h against TensorFlow Lite's own headers; compiled where these
 * are installed, and never run. */
#include <stddef.h>

#if __has_include("tflite/core/c/common.h")
#include "tflite/core/c/builtin_op_data.h"
#include "tflite/core/c/common.h"
#else
#include "tensorflow/lite/core/c/builtin_op_data.h"
#include "tensorflow/lite/core/c/common.h"
#endif

#include "tfl_abi.h"

#define SAME(ours, theirs, a, b)                                                         \
	_Static_assert(offsetof(struct ours, a) == offsetof(theirs, b), #ours "." #a);
#define SAME_NUMBER(a, b) _Static_assert((int)(a) == (int)(b), #a);

SAME(tfl_tensor, TfLiteTensor, type, type)
SAME(tfl_tensor, TfLiteTensor, data, data)
SAME(tfl_tensor, TfLiteTensor, dims, dims)
SAME(tfl_tensor, TfLiteTensor, params, params)
SAME(tfl_tensor, TfLiteTensor, allocation_type, allocation_type)
SAME(tfl_tensor, TfLiteTensor, bytes, bytes)
SAME(tfl_tensor, TfLiteTensor, name, name)
SAME(tfl_tensor, TfLiteTensor, is_variable, is_variable)
SAME(tfl_tensor, TfLiteTensor, quantization, quantization)
SAME(tfl_tensor, TfLiteTensor, sparsity, sparsity)
SAME(tfl_tensor, TfLiteTensor, dims_signature, dims_signature)
SAME(tfl_node, TfLiteNode, inputs, inputs)
SAME(tfl_node, TfLiteNode, outputs, outputs)
SAME(tfl_node, TfLiteNode, user_data, user_data)
SAME(tfl_node, TfLiteNode, builtin_data, builtin_data)
SAME(tfl_node, TfLiteNode, delegate, delegate)
SAME(tfl_registration, TfLiteRegistration, init, init)
SAME(tfl_registration, TfLiteRegistration, free, free)
SAME(tfl_registration, TfLiteRegistration, prepare, prepare)
SAME(tfl_registration, TfLiteRegistration, invoke, invoke)
SAME(tfl_registration, TfLiteRegistration, profiling_string, profiling_string)
SAME(tfl_registration, TfLiteRegistration, builtin_code, builtin_code)
SAME(tfl_registration, TfLiteRegistration, custom_name, custom_name)
SAME(tfl_registration, TfLiteRegistration, version, version)
SAME(tfl_context, TfLiteContext, tensors_size, tensors_size)
SAME(tfl_context, TfLiteContext, GetExecutionPlan, GetExecutionPlan)
SAME(tfl_context, TfLiteContext, tensors, tensors)
SAME(tfl_context, TfLiteContext, ReportError, ReportError)
SAME(tfl_context, TfLiteContext, GetNodeAndRegistration, GetNodeAndRegistration)
SAME(tfl_context, TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels,
     ReplaceNodeSubsetsWithDelegateKernels)
SAME(tfl_context, TfLiteContext, PreviewDelegatePartitioning, PreviewDelegatePartitioning)
SAME(tfl_delegate, TfLiteDelegate, Prepare, Prepare)
SAME(tfl_delegate, TfLiteDelegate, flags, flags)
SAME(tfl_delegate, TfLiteDelegate, opaque_builder, opaque_delegate_builder)
SAME(tfl_delegate_params, TfLiteDelegateParams, nodes_to_replace, nodes_to_replace)
SAME(tfl_delegate_params, TfLiteDelegateParams, output_tensors, output_tensors)
SAME(tfl_affine, TfLiteAffineQuantization, zero_point, zero_point)
SAME(tfl_affine, TfLiteAffineQuantization, quantized_dimension, quantized_dimension)
_Static_assert(sizeof(struct tfl_registration) >= sizeof(TfLiteRegistration), "by value");
_Static_assert(sizeof(struct tfl_delegate) >= sizeof(TfLiteDelegate), "kept by pointer");
SAME_NUMBER(TFL_FLOAT32, kTfLiteFloat32)
SAME_NUMBER(TFL_INT32, kTfLiteInt32)
SAME_NUMBER(TFL_UINT8, kTfLiteUInt8)
SAME_NUMBER(TFL_INT64, kTfLiteInt64)
SAME_NUMBER(TFL_INT16, kTfLiteInt16)
SAME_NUMBER(TFL_INT8, kTfLiteInt8)
SAME_NUMBER(TFL_BFLOAT16, kTfLiteBFloat16)
SAME_NUMBER(TFL_MMAP_RO, kTfLiteMmapRo)
SAME_NUMBER(TFL_DYNAMIC, kTfLiteDynamic)
SAME_NUMBER(TFL_PERSISTENT_RO, kTfLitePersistentRo)
SAME_NUMBER(TFL_AFFINE, kTfLiteAffineQuantization)
SAME_NUMBER(TFL_DELEGATE_ERROR, kTfLiteDelegateError)
SAME_NUMBER(TFL_ALLOW_DYNAMIC_TENSORS, kTfLiteDelegateFlagsAllowDynamicTensors)
SAME_NUMBER(TFL_REQUIRE_PROPAGATED_SHAPES, kTfLiteDelegateFlagsRequirePropagatedShapes)
/* Offsets in operators.c. */
_Static_assert(offsetof(TfLiteConvParams, dilation_height_factor) == 20, "conv");
_Static_assert(offsetof(TfLiteDepthwiseConvParams, dilation_height_factor) == 24,
	       "depth");
_Static_assert(offsetof(TfLitePoolParams, activation) == 20, "pool");
_Static_assert(offsetof(TfLiteReshapeParams, num_dimensions) == 32, "reshape");
_Static_assert(offsetof(TfLiteSqueezeParams, num_squeeze_dims) == 32, "squeeze");
_Static_assert(offsetof(TfLiteStridedSliceParams, offset) == 20, "strided slice");
_Static_assert(offsetof(TfLiteFullyConnectedParams, keep_num_dims) == 8, "connected");
_Static_assert(offsetof(TfLiteTransposeConvParams, activation) == 12, "transpose");
