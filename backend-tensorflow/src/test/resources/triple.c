/* An operation of an author's own, NereidTriple: y = 3 * x. It is registered when the library is loaded. */
#include <stddef.h>
#include <stdint.h>

enum { FLOAT = 1 };

extern void *TF_NewStatus(void);
extern void TF_DeleteStatus(void *status);
extern void *TF_NewOpDefinitionBuilder(const char *name);
extern void TF_OpDefinitionBuilderAddInput(void *builder, const char *spec);
extern void TF_OpDefinitionBuilderAddOutput(void *builder, const char *spec);
extern void TF_OpDefinitionBuilderSetShapeInferenceFunction(void *builder, void (*shapes)(void *, void *));
extern void TF_ShapeInferenceContextSetUnknownShape(void *context, void *status);
extern void TF_RegisterOpDefinition(void *builder, void *status);
extern void *TF_NewKernelBuilder(const char *operation, const char *device, void *(*create)(void *),
                                 void (*compute)(void *, void *), void (*destroy)(void *));
extern void TF_RegisterKernelBuilder(const char *name, void *builder, void *status);
extern void TF_GetInput(void *context, int index, void **tensor, void *status);
extern void *TF_AllocateOutput(void *context, int index, int type, const int64_t *dims, int rank, size_t bytes,
                               void *status);
extern int TF_NumDims(void *tensor);
extern int64_t TF_Dim(void *tensor, int index);
extern size_t TF_TensorByteSize(void *tensor);
extern void *TF_TensorData(void *tensor);
extern void TF_DeleteTensor(void *tensor);

static void compute(void *kernel, void *context) {
    void *status = TF_NewStatus();
    void *x;
    int64_t dims[8];
    TF_GetInput(context, 0, &x, status);
    int rank = TF_NumDims(x) < 8 ? TF_NumDims(x) : 8;
    for (int i = 0; i < rank; i++) {
        dims[i] = TF_Dim(x, i);
    }
    size_t bytes = TF_TensorByteSize(x);
    void *y = TF_AllocateOutput(context, 0, FLOAT, dims, rank, bytes, status);
    const float *from = TF_TensorData(x);
    float *to = TF_TensorData(y);
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        to[i] = 3 * from[i];
    }
    TF_DeleteTensor(y);
    TF_DeleteTensor(x);
    TF_DeleteStatus(status);
}

__attribute__((constructor)) static void registerAll(void) {
    void *status = TF_NewStatus();
    void *operation = TF_NewOpDefinitionBuilder("NereidTriple");
    TF_OpDefinitionBuilderAddInput(operation, "x: float");
    TF_OpDefinitionBuilderAddOutput(operation, "y: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(operation, TF_ShapeInferenceContextSetUnknownShape);
    TF_RegisterOpDefinition(operation, status);
    TF_RegisterKernelBuilder("NereidTriple", TF_NewKernelBuilder("NereidTriple", "CPU", NULL, compute, NULL), status);
    TF_DeleteStatus(status);
}
