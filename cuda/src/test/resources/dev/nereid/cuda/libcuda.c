/* Stands in for libcuda.so.1: memory of the host is that of the device, work ends at the second query of its event.
 * Checks what the binding passes: handles that live, contexts of the thread, flags. Anything else is INVALID_VALUE. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef VERSION
#define VERSION 12040
#endif

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

#define CONTEXT(device) ((void *) (uintptr_t) (0x7f0000001000 + (device) * 16))
#define LIVE 0x5eed5eed5eed5eedULL
#define LARGEST (1ULL << 30)

typedef struct { uint64_t live; int queries; } handle;
typedef struct { unsigned char bytes[16]; } uuid;

static int initialized;
static int failed;
static int blocks;
static __thread void *current;

#define NEEDS_INIT if (!initialized) return NOT_INITIALIZED; if (failed) return failed
#define NEEDS_DEVICE NEEDS_INIT; if (device < 0 || device >= DEVICES) return INVALID_DEVICE
#define NEEDS_CONTEXT NEEDS_INIT; if (!current) return INVALID_CONTEXT
#define NEEDS(h) NEEDS_INIT; if (!(h) || (h)->live != LIVE) return INVALID_HANDLE

/* For the test: the error of every later call, and the number of blocks that are not freed. */
void standin_fail(int error) { failed = error; }
int standin_blocks(void) { return blocks; }

int cuDriverGetVersion(int *version) { *version = VERSION; return SUCCESS; }

int cuInit(unsigned flags) {
    if (flags) return INVALID_VALUE;
    if (DEVICES == 0) return NO_DEVICE;
    initialized = 1;
    return SUCCESS;
}

int cuGetErrorName(int error, const char **name) {
    switch (error) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; return SUCCESS;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; return SUCCESS;
    case INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; return SUCCESS;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; return SUCCESS;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return SUCCESS;
    default: return INVALID_VALUE;
    }
}

int cuDeviceGetCount(int *count) { NEEDS_INIT; *count = DEVICES; return SUCCESS; }

int cuDeviceGet(int *result, int device) { NEEDS_DEVICE; *result = device; return SUCCESS; }

int cuDeviceGetName(char *name, int size, int device) {
    NEEDS_DEVICE;
    strncpy(name, "Stand-in", size);
    return SUCCESS;
}

int cuDeviceGetUuid_v2(uuid *result, int device) {
    NEEDS_DEVICE;
    for (int i = 0; i < 16; i++) result->bytes[i] = 0xa0 + i;
    result->bytes[15] = device;
    return SUCCESS;
}

int cuDeviceGetAttribute(int *result, int attribute, int device) {
    NEEDS_DEVICE;
    if (attribute != 75 && attribute != 76) return INVALID_VALUE;
    *result = attribute == 75 ? 9 : device;
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) { NEEDS_DEVICE; *bytes = 80ULL << 30; return SUCCESS; }

int cuDevicePrimaryCtxRetain(void **context, int device) { NEEDS_DEVICE; *context = CONTEXT(device); return SUCCESS; }

int cuCtxSetCurrent(void *context) {
    NEEDS_INIT;
    for (int device = 0; device < DEVICES; device++) {
        if (context == CONTEXT(device)) { current = context; return SUCCESS; }
    }
    return INVALID_CONTEXT;
}

static int allocate(void **result, size_t bytes) {
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > LARGEST) return OUT_OF_MEMORY;
    *result = calloc(1, bytes);
    blocks++;
    return SUCCESS;
}

static int release(void *address) { if (address) { free(address); blocks--; } return SUCCESS; }

int cuMemAlloc_v2(void **result, size_t bytes) { NEEDS_CONTEXT; return allocate(result, bytes); }
int cuMemFree_v2(void *address) { NEEDS_INIT; return release(address); }

int cuMemHostAlloc(void **result, size_t bytes, unsigned flags) {
    NEEDS_CONTEXT;
    return flags == 1 ? allocate(result, bytes) : INVALID_VALUE;
}

int cuMemFreeHost(void *address) { NEEDS_INIT; return release(address); }

static int copy(void *to, const void *from, size_t bytes) {
    if (!to || !from) return INVALID_VALUE;
    memcpy(to, from, bytes);
    return SUCCESS;
}

int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes); }
int cuMemcpyDtoDAsync_v2(void *to, void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes); }

int cuMemsetD8Async(void *to, unsigned char value, size_t bytes, handle *stream) {
    NEEDS(stream);
    memset(to, value, bytes);
    return SUCCESS;
}

static int create(handle **result) { *result = calloc(1, sizeof(handle)); (*result)->live = LIVE; return SUCCESS; }
static int destroy(handle *it) { it->live = 0; return SUCCESS; } /* not freed: a stale handle is an error, not a crash */

int cuStreamCreate(handle **stream, unsigned flags) { NEEDS_CONTEXT; return flags == 1 ? create(stream) : INVALID_VALUE; }
int cuStreamDestroy_v2(handle *stream) { NEEDS(stream); return destroy(stream); }

int cuStreamWaitEvent(handle *stream, handle *event, unsigned flags) {
    NEEDS(stream);
    NEEDS(event);
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuEventCreate(handle **event, unsigned flags) { NEEDS_CONTEXT; return flags == 2 ? create(event) : INVALID_VALUE; }
int cuEventDestroy_v2(handle *event) { NEEDS(event); return destroy(event); }

int cuEventRecord(handle *event, handle *stream) {
    NEEDS(event);
    NEEDS(stream);
    event->queries = 1;
    return SUCCESS;
}

int cuEventQuery(handle *event) {
    NEEDS(event);
    if (event->queries == 0) return SUCCESS;
    event->queries--;
    return NOT_READY;
}
