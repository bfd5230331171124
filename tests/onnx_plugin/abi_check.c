/* SPDX-License-Identifier: Apache-2.0 */
/* abi_check.c - compiled only where ONNX Runtime (1.23 or newer) has its headers: numbers
 * of functions, places of members and values of enumerations in ort_abi.h are theirs. */
#include "onnxruntime_c_api.h"
#include <stddef.h>
#define ort_factory ort_factory_
#include "ort_abi.h"

#define X(name, number, r, a)                                                            \
	_Static_assert(offsetof(OrtApi, name) == 8 * (number), #name);
ORT_FUNCTIONS(X)
#undef X
#define X(name, number, r, a)                                                            \
	_Static_assert(offsetof(OrtEpApi, name) == 8 * (number), #name);
ORT_EP_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs, f)                                                            \
	_Static_assert(offsetof(struct ours, f) == offsetof(struct theirs, f), #f)
SAME(ort_ep, OrtEp, GetName);
SAME(ort_ep, OrtEp, GetCapability);
SAME(ort_ep, OrtEp, Compile);
SAME(ort_ep, OrtEp, ReleaseNodeComputeInfos);
SAME(ort_ep, OrtEp, GetPreferredDataLayout);
SAME(ort_ep, OrtEp, ShouldConvertDataLayoutForOp);
SAME(ort_ep, OrtEp, SetDynamicOptions);
SAME(ort_ep, OrtEp, OnRunStart);
SAME(ort_ep, OrtEp, OnRunEnd);
SAME(ort_ep, OrtEp, CreateAllocator);
SAME(ort_ep, OrtEp, CreateSyncStreamForDevice);
SAME(ort_ep, OrtEp, GetCompiledModelCompatibilityInfo);
SAME(ort_factory_, OrtEpFactory, GetName);
SAME(ort_factory_, OrtEpFactory, GetVendor);
SAME(ort_factory_, OrtEpFactory, GetSupportedDevices);
SAME(ort_factory_, OrtEpFactory, CreateEp);
SAME(ort_factory_, OrtEpFactory, ReleaseEp);
SAME(ort_factory_, OrtEpFactory, GetVendorId);
SAME(ort_factory_, OrtEpFactory, GetVersion);
SAME(ort_factory_, OrtEpFactory, ValidateCompiledModelCompatibilityInfo);
SAME(ort_factory_, OrtEpFactory, CreateAllocator);
SAME(ort_factory_, OrtEpFactory, ReleaseAllocator);
SAME(ort_factory_, OrtEpFactory, CreateDataTransfer);
SAME(ort_factory_, OrtEpFactory, IsStreamAware);
SAME(ort_factory_, OrtEpFactory, CreateSyncStreamForDevice);
SAME(ort_compute_info, OrtNodeComputeInfo, CreateState);
SAME(ort_compute_info, OrtNodeComputeInfo, Compute);
SAME(ort_compute_info, OrtNodeComputeInfo, ReleaseState);
SAME(ort_fusion, OrtNodeFusionOptions, drop_constant_initializers);
SAME(ort_api_base, OrtApiBase, GetApi);
SAME(ort_api_base, OrtApiBase, GetVersionString);

#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME_NUMBER(ORT_ERROR_OK, ORT_OK);
SAME_NUMBER(ORT_ERROR_FAIL, ORT_FAIL);
SAME_NUMBER(ORT_ERROR_INVALID, ORT_INVALID_ARGUMENT);
SAME_NUMBER(ORT_ERROR_NOT_IMPLEMENTED, ORT_NOT_IMPLEMENTED);
SAME_NUMBER(ORT_ERROR_EP_FAIL, ORT_EP_FAIL);
SAME_NUMBER(ORT_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
SAME_NUMBER(ORT_TYPE_UINT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8);
SAME_NUMBER(ORT_TYPE_INT8, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8);
SAME_NUMBER(ORT_TYPE_INT32, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
SAME_NUMBER(ORT_TYPE_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
SAME_NUMBER(ORT_TYPE_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
SAME_NUMBER(ORT_HARDWARE_CPU, OrtHardwareDeviceType_CPU);
SAME_NUMBER(ORT_HARDWARE_GPU, OrtHardwareDeviceType_GPU);
SAME_NUMBER(ORT_HARDWARE_NPU, OrtHardwareDeviceType_NPU);
SAME_NUMBER(ORT_ATTR_INT, ORT_OP_ATTR_INT);
SAME_NUMBER(ORT_ATTR_INTS, ORT_OP_ATTR_INTS);
SAME_NUMBER(ORT_ATTR_FLOAT, ORT_OP_ATTR_FLOAT);
SAME_NUMBER(ORT_ATTR_FLOATS, ORT_OP_ATTR_FLOATS);
SAME_NUMBER(ORT_ATTR_STRING, ORT_OP_ATTR_STRING);
SAME_NUMBER(ORT_LOG_VERBOSE, ORT_LOGGING_LEVEL_VERBOSE);
SAME_NUMBER(ORT_LOG_INFO, ORT_LOGGING_LEVEL_INFO);
SAME_NUMBER(ORT_LOG_WARNING, ORT_LOGGING_LEVEL_WARNING);
SAME_NUMBER(ORT_LOG_ERROR, ORT_LOGGING_LEVEL_ERROR);

/* What version 23 ends with: later headers have members behind it. */
#if ORT_API_VERSION > 23
#define ENDS(ours, theirs, next)                                                         \
	_Static_assert(sizeof(struct ours) == offsetof(struct theirs, next),             \
		       #theirs " of version 23")
#else
#define ENDS(ours, theirs, next)                                                         \
	_Static_assert(sizeof(struct ours) == sizeof(struct theirs),                     \
		       #theirs " of version 23")
#endif
ENDS(ort_ep, OrtEp, GetKernelRegistry);
ENDS(ort_factory_, OrtEpFactory, GetHardwareDeviceIncompatibilityDetails);
ENDS(ort_api, OrtApi, TensorTypeAndShape_HasShape);
ENDS(ort_ep_api, OrtEpApi, CreateHardwareDevice);
