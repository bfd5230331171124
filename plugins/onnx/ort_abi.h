/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ort_abi.h - what an execution provider in a library of its own sees of ONNX Runtime,
 * declared anew: no header of ONNX Runtime is needed.
 *
 * OrtApi and OrtEpApi are tables of function pointers that only grow; a function is its
 * number in the table.  The numbers are those of API version 23 (ONNX Runtime 1.23), so
 * GetApi(23) of any later runtime has these functions at the same places.  Structs that
 * the provider fills begin with the version they were made for; the runtime reads no
 * member that is newer.
 */
#ifndef ORT_ABI_H
#define ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "only 64-bit systems"
#endif

#define ORT_VERSION 23u

struct ort_status;
struct ort_env;
struct ort_graph;
struct ort_node;
struct ort_value_info;
struct ort_value;
struct ort_type_info;
struct ort_shape_info;
struct ort_attr;
struct ort_kernel_context;
struct ort_hardware;
struct ort_ep_device;
struct ort_pairs;
struct ort_session_options;
struct ort_logger;
struct ort_support;
struct ort_compute_context;
struct ort_memory_info;
struct ort_memory_device;
struct ort_allocator;
struct ort_run_options;
struct ort_stream;

typedef void (*ort_fn)(void);

struct ort_api {
	ort_fn f[390];
};

struct ort_ep_api {
	ort_fn f[16];
};

struct ort_api_base {
	const struct ort_api *(*GetApi)(uint32_t version);
	const char *(*GetVersionString)(void);
};

enum ort_error {
	ORT_ERROR_OK,
	ORT_ERROR_FAIL,
	ORT_ERROR_INVALID = 2,
	ORT_ERROR_NOT_IMPLEMENTED = 9,
	ORT_ERROR_EP_FAIL = 11
};
enum ort_element {
	ORT_TYPE_FLOAT = 1,
	ORT_TYPE_UINT8 = 2,
	ORT_TYPE_INT8 = 3,
	ORT_TYPE_INT32 = 6,
	ORT_TYPE_INT64 = 7,
	ORT_TYPE_FLOAT16 = 10
};
enum ort_hardware_type { ORT_HARDWARE_CPU, ORT_HARDWARE_GPU, ORT_HARDWARE_NPU };
enum ort_attr_type {
	ORT_ATTR_INT = 1,
	ORT_ATTR_INTS,
	ORT_ATTR_FLOAT,
	ORT_ATTR_FLOATS,
	ORT_ATTR_STRING
};
enum ort_log { ORT_LOG_VERBOSE, ORT_LOG_INFO, ORT_LOG_WARNING, ORT_LOG_ERROR };

/* name, number, result, arguments */
#define ORT_FUNCTIONS(X)                                                                 \
	X(CreateStatus, 0, struct ort_status *, (int code, const char *text))            \
	X(GetErrorMessage, 2, const char *, (const struct ort_status *status))           \
	X(ReleaseStatus, 93, void, (struct ort_status * status))                         \
	X(GetTensorMutableData, 51, struct ort_status *,                                 \
	  (struct ort_value * v, void **data))                                           \
	X(CastTypeInfoToTensorInfo, 55, struct ort_status *,                             \
	  (const struct ort_type_info *t, const struct ort_shape_info **out))            \
	X(GetTensorElementType, 60, struct ort_status *,                                 \
	  (const struct ort_shape_info *s, int *type))                                   \
	X(GetDimensionsCount, 61, struct ort_status *,                                   \
	  (const struct ort_shape_info *s, size_t *rank))                                \
	X(GetDimensions, 62, struct ort_status *,                                        \
	  (const struct ort_shape_info *s, int64_t *dims, size_t rank))                  \
	X(GetTensorShapeElementCount, 64, struct ort_status *,                           \
	  (const struct ort_shape_info *s, size_t *count))                               \
	X(GetTensorTypeAndShape, 65, struct ort_status *,                                \
	  (const struct ort_value *v, struct ort_shape_info **out))                      \
	X(KernelContext_GetInputCount, 88, struct ort_status *,                          \
	  (const struct ort_kernel_context *c, size_t *count))                           \
	X(KernelContext_GetInput, 90, struct ort_status *,                               \
	  (const struct ort_kernel_context *c, size_t i, const struct ort_value **v))    \
	X(KernelContext_GetOutput, 91, struct ort_status *,                              \
	  (struct ort_kernel_context * c, size_t i, const int64_t *dims, size_t rank,    \
	   struct ort_value **v))                                                        \
	X(ReleaseTensorTypeAndShapeInfo, 99, void, (struct ort_shape_info * s))          \
	X(HasSessionConfigEntry, 237, struct ort_status *,                               \
	  (const struct ort_session_options *o, const char *key, int *has))              \
	X(GetSessionConfigEntry, 238, struct ort_status *,                               \
	  (const struct ort_session_options *o, const char *key, char *value,            \
	   size_t *size))                                                                \
	X(Logger_LogMessage, 247, struct ort_status *,                                   \
	  (const struct ort_logger *l, int level, const char *text, const char *file,    \
	   int line, const char *function))                                              \
	X(ReadOpAttr, 272, struct ort_status *,                                          \
	  (const struct ort_attr *a, int type, void *data, size_t bytes, size_t *out))   \
	X(GetValueInfoName, 289, struct ort_status *,                                    \
	  (const struct ort_value_info *v, const char **name))                           \
	X(GetValueInfoTypeInfo, 290, struct ort_status *,                                \
	  (const struct ort_value_info *v, const struct ort_type_info **t))              \
	X(CreateKeyValuePairs, 295, void, (struct ort_pairs * *out))                     \
	X(AddKeyValuePair, 296, void,                                                    \
	  (struct ort_pairs * p, const char *key, const char *value))                    \
	X(GetKeyValue, 297, const char *, (const struct ort_pairs *p, const char *key))  \
	X(GetKeyValuePairs, 298, void,                                                   \
	  (const struct ort_pairs *p, const char *const **keys,                          \
	   const char *const **values, size_t *count))                                   \
	X(ReleaseKeyValuePairs, 300, void, (struct ort_pairs * p))                       \
	X(HardwareDevice_Type, 307, int, (const struct ort_hardware *h))                 \
	X(HardwareDevice_VendorId, 308, uint32_t, (const struct ort_hardware *h))        \
	X(HardwareDevice_Vendor, 309, const char *, (const struct ort_hardware *h))      \
	X(HardwareDevice_DeviceId, 310, uint32_t, (const struct ort_hardware *h))        \
	X(GetEpApi, 317, const struct ort_ep_api *, (void))                              \
	X(ValueInfo_GetValueProducer, 323, struct ort_status *,                          \
	  (const struct ort_value_info *v, const struct ort_node **n, size_t *output))   \
	X(ValueInfo_GetValueNumConsumers, 324, struct ort_status *,                      \
	  (const struct ort_value_info *v, size_t *count))                               \
	X(ValueInfo_GetValueConsumers, 325, struct ort_status *,                         \
	  (const struct ort_value_info *v, const struct ort_node **n, int64_t *inputs,   \
	   size_t count))                                                                \
	X(ValueInfo_GetInitializerValue, 326, struct ort_status *,                       \
	  (const struct ort_value_info *v, const struct ort_value **value))              \
	X(ValueInfo_IsGraphOutput, 330, struct ort_status *,                             \
	  (const struct ort_value_info *v, bool *is))                                    \
	X(ValueInfo_IsConstantInitializer, 331, struct ort_status *,                     \
	  (const struct ort_value_info *v, bool *is))                                    \
	X(Graph_GetName, 333, struct ort_status *,                                       \
	  (const struct ort_graph *g, const char **name))                                \
	X(Graph_GetNumNodes, 344, struct ort_status *,                                   \
	  (const struct ort_graph *g, size_t *count))                                    \
	X(Graph_GetNodes, 345, struct ort_status *,                                      \
	  (const struct ort_graph *g, const struct ort_node **nodes, size_t count))      \
	X(Graph_GetParentNode, 346, struct ort_status *,                                 \
	  (const struct ort_graph *g, const struct ort_node **n))                        \
	X(Graph_GetNumInputs, 338, struct ort_status *,                                  \
	  (const struct ort_graph *g, size_t *count))                                    \
	X(Graph_GetInputs, 339, struct ort_status *,                                     \
	  (const struct ort_graph *g, const struct ort_value_info **v, size_t count))    \
	X(Graph_GetNumOutputs, 340, struct ort_status *,                                 \
	  (const struct ort_graph *g, size_t *count))                                    \
	X(Graph_GetOutputs, 341, struct ort_status *,                                    \
	  (const struct ort_graph *g, const struct ort_value_info **v, size_t count))    \
	X(Node_GetId, 348, struct ort_status *, (const struct ort_node *n, size_t *id))  \
	X(Node_GetName, 349, struct ort_status *,                                        \
	  (const struct ort_node *n, const char **name))                                 \
	X(Node_GetOperatorType, 350, struct ort_status *,                                \
	  (const struct ort_node *n, const char **type))                                 \
	X(Node_GetDomain, 351, struct ort_status *,                                      \
	  (const struct ort_node *n, const char **domain))                               \
	X(Node_GetSinceVersion, 352, struct ort_status *,                                \
	  (const struct ort_node *n, int *version))                                      \
	X(Node_GetNumInputs, 353, struct ort_status *,                                   \
	  (const struct ort_node *n, size_t *count))                                     \
	X(Node_GetInputs, 354, struct ort_status *,                                      \
	  (const struct ort_node *n, const struct ort_value_info **v, size_t count))     \
	X(Node_GetNumOutputs, 355, struct ort_status *,                                  \
	  (const struct ort_node *n, size_t *count))                                     \
	X(Node_GetOutputs, 356, struct ort_status *,                                     \
	  (const struct ort_node *n, const struct ort_value_info **v, size_t count))     \
	X(Node_GetAttributeByName, 361, struct ort_status *,                             \
	  (const struct ort_node *n, const char *name, const struct ort_attr **a))       \
	X(GetTensorData, 378, struct ort_status *,                                       \
	  (const struct ort_value *v, const void **data))                                \
	X(GetSessionOptionsConfigEntries, 379, struct ort_status *,                      \
	  (const struct ort_session_options *o, struct ort_pairs **p))

#define ORT_EP_FUNCTIONS(X)                                                              \
	X(CreateEpDevice, 0, struct ort_status *,                                        \
	  (struct ort_factory * f, const struct ort_hardware *h,                         \
	   const struct ort_pairs *metadata, const struct ort_pairs *options,            \
	   struct ort_ep_device **out))                                                  \
	X(EpGraphSupportInfo_AddNodesToFuse, 2, struct ort_status *,                     \
	  (struct ort_support * s, const struct ort_node *const *nodes, size_t count,    \
	   const struct ort_fusion *f))                                                  \
	X(NodeComputeContext_NodeName, 4, const char *,                                  \
	  (const struct ort_compute_context *c))

struct ort_fusion {
	uint32_t version;
	bool drop_constant_initializers;
};

struct ort_compute_info {
	uint32_t version;
	struct ort_status *(*CreateState)(struct ort_compute_info *self,
					  struct ort_compute_context *c, void **state);
	struct ort_status *(*Compute)(struct ort_compute_info *self, void *state,
				      struct ort_kernel_context *c);
	void (*ReleaseState)(struct ort_compute_info *self, void *state);
};

/* As of version 23; functions that may be absent are NULL. */
struct ort_ep {
	uint32_t version;
	const char *(*GetName)(const struct ort_ep *self);
	struct ort_status *(*GetCapability)(struct ort_ep *self,
					    const struct ort_graph *g,
					    struct ort_support *s);
	struct ort_status *(*Compile)(struct ort_ep *self,
				      const struct ort_graph **graphs,
				      const struct ort_node **fused, size_t count,
				      struct ort_compute_info **infos,
				      struct ort_node **contexts);
	void (*ReleaseNodeComputeInfos)(struct ort_ep *self,
					struct ort_compute_info **infos, size_t count);
	struct ort_status *(*GetPreferredDataLayout)(struct ort_ep *self, int *layout);
	struct ort_status *(*ShouldConvertDataLayoutForOp)(struct ort_ep *self,
							   const char *domain,
							   const char *type, int layout,
							   int *convert);
	struct ort_status *(*SetDynamicOptions)(struct ort_ep *self,
						const char *const *keys,
						const char *const *values, size_t count);
	struct ort_status *(*OnRunStart)(struct ort_ep *self,
					 const struct ort_run_options *o);
	struct ort_status *(*OnRunEnd)(struct ort_ep *self,
				       const struct ort_run_options *o, bool sync);
	struct ort_status *(*CreateAllocator)(struct ort_ep *self,
					      const struct ort_memory_info *m,
					      struct ort_allocator **a);
	struct ort_status *(*CreateSyncStreamForDevice)(struct ort_ep *self,
							const struct ort_memory_device *d,
							struct ort_stream **s);
	const char *(*GetCompiledModelCompatibilityInfo)(struct ort_ep *self,
							 const struct ort_graph *g);
};

struct ort_factory {
	uint32_t version;
	const char *(*GetName)(const struct ort_factory *self);
	const char *(*GetVendor)(const struct ort_factory *self);
	struct ort_status *(*GetSupportedDevices)(
		struct ort_factory *self, const struct ort_hardware *const *devices,
		size_t count, struct ort_ep_device **out, size_t room, size_t *made);
	struct ort_status *(*CreateEp)(struct ort_factory *self,
				       const struct ort_hardware *const *devices,
				       const struct ort_pairs *const *metadata,
				       size_t count, const struct ort_session_options *o,
				       const struct ort_logger *l, struct ort_ep **ep);
	void (*ReleaseEp)(struct ort_factory *self, struct ort_ep *ep);
	uint32_t (*GetVendorId)(const struct ort_factory *self);
	const char *(*GetVersion)(const struct ort_factory *self);
	struct ort_status *(*ValidateCompiledModelCompatibilityInfo)(
		struct ort_factory *self, const struct ort_hardware *const *devices,
		size_t count, const char *info, int *result);
	struct ort_status *(*CreateAllocator)(struct ort_factory *self,
					      const struct ort_memory_info *m,
					      const struct ort_pairs *options,
					      struct ort_allocator **a);
	void (*ReleaseAllocator)(struct ort_factory *self, struct ort_allocator *a);
	struct ort_status *(*CreateDataTransfer)(struct ort_factory *self,
						 void **transfer);
	bool (*IsStreamAware)(const struct ort_factory *self);
	struct ort_status *(*CreateSyncStreamForDevice)(struct ort_factory *self,
							const struct ort_memory_device *d,
							const struct ort_pairs *options,
							struct ort_stream **s);
};

/* ORT(api, CreateStatus)(code, text) and so on, of either table. */
#define ORT_DECLARE(name, number, result, arguments)                                     \
	typedef result(*ort_##name##_fn) arguments;
ORT_FUNCTIONS(ORT_DECLARE)
ORT_EP_FUNCTIONS(ORT_DECLARE)
#undef ORT_DECLARE
#define ORT_NUMBER(name, number, result, arguments) ort_##name##_number = number,
enum { ORT_FUNCTIONS(ORT_NUMBER) ORT_EP_FUNCTIONS(ORT_NUMBER) };
#undef ORT_NUMBER
#define ORT(api, name) ((ort_##name##_fn)(api)->f[ort_##name##_number])

#endif
