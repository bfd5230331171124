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
#define S(ours, theirs, f)                                                               \
	_Static_assert(offsetof(struct ours, f) == offsetof(struct theirs, f), #f);
S(ort_ep, OrtEp, GetName)
S(ort_ep, OrtEp, GetCapability)
S(ort_ep, OrtEp, Compile)
S(ort_ep, OrtEp, ReleaseNodeComputeInfos)
S(ort_ep, OrtEp, SetDynamicOptions)
S(ort_ep, OrtEp, OnRunEnd)
S(ort_ep, OrtEp, GetCompiledModelCompatibilityInfo)
S(ort_factory_, OrtEpFactory, GetSupportedDevices) S(
	ort_factory_, OrtEpFactory,
	CreateEp) S(ort_factory_, OrtEpFactory,
		    GetVersion) S(ort_factory_, OrtEpFactory,
				  CreateSyncStreamForDevice) S(ort_compute_info,
							       OrtNodeComputeInfo,
							       Compute)
	S(ort_fusion, OrtNodeFusionOptions, drop_constant_initializers) _Static_assert(
		sizeof(struct ort_ep) == offsetof(struct OrtEp, GetKernelRegistry),
		"OrtEp of version 23");
_Static_assert(sizeof(struct ort_factory_) ==
		       offsetof(struct OrtEpFactory,
				GetHardwareDeviceIncompatibilityDetails),
	       "OrtEpFactory of version 23");
_Static_assert(offsetof(OrtApi, TensorTypeAndShape_HasShape) == 8 * 390,
	       "OrtApi of version 23");
_Static_assert(offsetof(OrtEpApi, CreateHardwareDevice) == 8 * 16,
	       "OrtEpApi of version 23");
