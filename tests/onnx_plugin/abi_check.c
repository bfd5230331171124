/* SPDX-License-Identifier: Apache-2.0 */
/* abi_check.c - compiled only where ONNX Runtime has its headers: numbers of functions
 * and places of members in ort_abi.h are theirs. */
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
#define SAME(ours, theirs, f)                                                            \
	_Static_assert(offsetof(struct ours, f) == offsetof(struct theirs, f), #f)
SAME(ort_ep, OrtEp, GetName);
SAME(ort_ep, OrtEp, GetCapability);
SAME(ort_ep, OrtEp, Compile);
SAME(ort_ep, OrtEp, ReleaseNodeComputeInfos);
SAME(ort_ep, OrtEp, SetDynamicOptions);
SAME(ort_ep, OrtEp, OnRunEnd);
SAME(ort_ep, OrtEp, GetCompiledModelCompatibilityInfo);
SAME(ort_factory_, OrtEpFactory, GetSupportedDevices);
SAME(ort_factory_, OrtEpFactory, CreateEp);
SAME(ort_factory_, OrtEpFactory, GetVersion);
SAME(ort_factory_, OrtEpFactory, CreateSyncStreamForDevice);
SAME(ort_compute_info, OrtNodeComputeInfo, Compute);
SAME(ort_fusion, OrtNodeFusionOptions, drop_constant_initializers);
_Static_assert(sizeof(struct ort_ep) == offsetof(struct OrtEp, GetKernelRegistry),
	       "OrtEp of version 23");
_Static_assert(sizeof(struct ort_factory_) ==
		       offsetof(struct OrtEpFactory,
				GetHardwareDeviceIncompatibilityDetails),
	       "OrtEpFactory of version 23");
_Static_assert(offsetof(OrtApi, TensorTypeAndShape_HasShape) == 8 * 390,
	       "OrtApi of version 23");
_Static_assert(offsetof(OrtEpApi, CreateHardwareDevice) == 8 * 16,
	       "OrtEpApi of version 23");
