/* Stands in for libcuda.so.1: memory of the host is that of the device. Work is done as late as it may be: at the second
 * query of an event behind it, after what its stream waits for, so that a result that is read before that is missing.
 * Checks what the binding passes: handles that live, contexts of the thread, flags. Anything else is INVALID_VALUE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef VERSION
#define VERSION 12040
#endif

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

#define CONTEXT(device) ((void *) (uintptr_t) (0x7f0000001000 + (device) * 16))
#define LIVE 0x5eed5eed5eed5eedULL
#define LARGEST (1ULL << 30)

struct work;

/* An object of the driver; for a stream what it has to do, for an event its place in a stream. */
typedef struct handle {
    uint64_t live;
    int queries;
    struct work *first, *last;
    uint64_t appended, done;
    struct handle *stream;
    uint64_t place;
} handle;
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
    case INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; return SUCCESS;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
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

/* Device memory: files in memory, so that other processes can open them. */
typedef struct { void *address; size_t size; int file; int opens; } block;
static block memory[4096];
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static block *find(void *address) {
    for (int i = 0; i < 4096; i++) if (memory[i].address == address) return &memory[i];
    return 0;
}

static int map(void **result, int file, size_t bytes, int opens) {
    void *address = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    block *free_block = find(0);
    if (address == MAP_FAILED || !free_block) return OUT_OF_MEMORY;
    *free_block = (block) { address, bytes, file, opens };
    *result = address;
    return SUCCESS;
}

static void unmap(block *mapped) {
    munmap(mapped->address, mapped->size);
    close(mapped->file);
    *mapped = (block) { 0 };
}

int cuMemAlloc_v2(void **result, size_t bytes) {
    NEEDS_CONTEXT;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > LARGEST) return OUT_OF_MEMORY;
    pthread_mutex_lock(&memory_lock);
    int file = memfd_create("device-memory", 0);
    int error = file < 0 || ftruncate(file, bytes) ? OUT_OF_MEMORY : map(result, file, bytes, 0);
    blocks += error == SUCCESS;
    pthread_mutex_unlock(&memory_lock);
    return error;
}

int cuMemFree_v2(void *address) {
    NEEDS_INIT;
    if (!address) return SUCCESS;
    pthread_mutex_lock(&memory_lock);
    block *freed = find(address); /* work that uses it would fault: the test has to see that */
    int error = freed && !freed->opens ? SUCCESS : INVALID_VALUE;
    if (!error) {
        unmap(freed);
        blocks--;
    }
    pthread_mutex_unlock(&memory_lock);
    return error;
}

int cuMemHostAlloc(void **result, size_t bytes, unsigned flags) {
    NEEDS_CONTEXT;
    return flags == 1 ? allocate(result, bytes) : INVALID_VALUE;
}

int cuMemFreeHost(void *address) { NEEDS_INIT; return release(address); }

/* Kinds of work; a module's kernels are the last ones. */
enum { COPY_BYTES, FILL, WAIT, ADD, INCREMENT, COPY, FAULT };

typedef struct work {
    int kind;
    void *to;
    const void *from;
    size_t count;
    int value;
    handle *stream;
    uint64_t place;
    struct work *next;
} work;

static pthread_mutex_t work_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int append(handle *stream, work given) {
    work *added = malloc(sizeof(work));
    *added = given;
    added->next = NULL;
    pthread_mutex_lock(&work_lock);
    if (stream->last) stream->last->next = added;
    else stream->first = added;
    stream->last = added;
    stream->appended++;
    pthread_mutex_unlock(&work_lock);
    return SUCCESS;
}

static void run(handle *stream, uint64_t place);

static void do_work(const work *it) {
    switch (it->kind) {
    case COPY_BYTES: memcpy(it->to, it->from, it->count); break;
    case FILL: memset(it->to, it->value, it->count); break;
    case WAIT: if (it->stream) run(it->stream, it->place); break;
    case ADD: *(int *) it->to = it->value; break;
    case FAULT: failed = ILLEGAL_ADDRESS; break;
    default:
        for (size_t i = 0; i < it->count; i++) ((float *) it->to)[i] = ((const float *) it->from)[i] + (it->kind == INCREMENT);
    }
}

static void run(handle *stream, uint64_t place) {
    pthread_mutex_lock(&work_lock);
    while (!failed && stream->done < place && stream->first) {
        work *next = stream->first;
        stream->first = next->next;
        if (!stream->first) stream->last = NULL;
        stream->done++;
        do_work(next);
        free(next);
    }
    pthread_mutex_unlock(&work_lock);
}

static int copy(void *to, const void *from, size_t bytes, handle *stream) {
    if (!to || !from) return INVALID_VALUE;
    return append(stream, (work) { .kind = COPY_BYTES, .to = to, .from = from, .count = bytes });
}

int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes, stream); }
int cuMemcpyDtoHAsync_v2(void *to, void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes, stream); }
int cuMemcpyDtoDAsync_v2(void *to, void *from, size_t bytes, handle *stream) { NEEDS(stream); return copy(to, from, bytes, stream); }

int cuMemcpyPeerAsync(void *to, void *context, const void *from, void *peer, size_t bytes, handle *stream) {
    NEEDS(stream);
    if (!context || !peer || context == peer) return INVALID_VALUE;
    return copy(to, from, bytes, stream);
}

int cuMemsetD8Async(void *to, unsigned char value, size_t bytes, handle *stream) {
    NEEDS(stream);
    return append(stream, (work) { .kind = FILL, .to = to, .value = value, .count = bytes });
}

static int create(handle **result) { *result = calloc(1, sizeof(handle)); (*result)->live = LIVE; return SUCCESS; }
static int destroy(handle *it) { it->live = 0; return SUCCESS; } /* not freed: a stale handle is an error, not a crash */

int cuStreamCreate(handle **stream, unsigned flags) { NEEDS_CONTEXT; return flags == 1 ? create(stream) : INVALID_VALUE; }
int cuStreamDestroy_v2(handle *stream) { NEEDS(stream); run(stream, stream->appended); return destroy(stream); }

int cuStreamWaitEvent(handle *stream, handle *event, unsigned flags) {
    NEEDS(stream);
    NEEDS(event);
    if (flags) return INVALID_VALUE;
    return append(stream, (work) { .kind = WAIT, .stream = event->stream, .place = event->place });
}

int cuEventCreate(handle **event, unsigned flags) { NEEDS_CONTEXT; return flags == 2 ? create(event) : INVALID_VALUE; }
int cuEventDestroy_v2(handle *event) { NEEDS(event); return destroy(event); }

int cuEventRecord(handle *event, handle *stream) {
    NEEDS(event);
    NEEDS(stream);
    pthread_mutex_lock(&work_lock);
    event->queries = 1;
    event->stream = stream;
    event->place = stream->appended;
    pthread_mutex_unlock(&work_lock);
    return SUCCESS;
}

int cuEventQuery(handle *event) {
    NEEDS(event);
    if (event->queries > 0) {
        event->queries--;
        return NOT_READY;
    }
    if (event->stream) run(event->stream, event->place);
    return failed;
}

int cuStreamCreateWithPriority(handle **stream, unsigned flags, int priority) {
    NEEDS_CONTEXT;
    return flags == 1 && priority <= 0 && priority >= -5 ? create(stream) : INVALID_VALUE;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest) { NEEDS_CONTEXT; *least = 0; *greatest = -5; return SUCCESS; }

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    NEEDS_CONTEXT;
    *available = (80ULL << 30) - blocks;
    *total = 80ULL << 30;
    return SUCCESS;
}

/* A module is a text with ".version" and without "nonsense". Its kernels: "add" writes its second parameter plus the
 * numbers of blocks and threads to the address that is its first one; "increment" and "copy" have the parameters
 * (const float *in, float *out, unsigned count, unsigned long long nanos); "fault" ends the use of the device. */
int cuModuleLoadDataEx(handle **module, const char *image, unsigned count, int *options, void **values) {
    NEEDS_CONTEXT;
    if (count != 2 || options[0] != 5 || options[1] != 6) return INVALID_VALUE;
    if (strstr(image, ".version") && !strstr(image, "nonsense")) return create(module);
    strncpy(values[0], "line 1: syntax error\n", (size_t) (uintptr_t) values[1]);
    return INVALID_PTX;
}

int cuModuleUnload(handle *module) { NEEDS(module); return destroy(module); }

int cuModuleGetFunction(handle **function, handle *module, const char *name) {
    NEEDS(module);
    const char *names[] = { "add", "increment", "copy", "fault" };
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            create(function);
            (*function)->queries = ADD + i;
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

int cuLaunchKernel(handle *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, handle *stream, void **parameters, void **extra) {
    NEEDS(function);
    NEEDS(stream);
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra) return INVALID_VALUE;
    if (function->queries == FAULT) return append(stream, (work) { .kind = FAULT });
    if (function->queries == ADD) {
        int sum = *(int *) parameters[1] + 1000 * gx + bx;
        return append(stream, (work) { .kind = ADD, .to = *(void **) parameters[0], .value = sum });
    }
    unsigned count = *(unsigned *) parameters[2];
    if ((unsigned long long) gx * bx < count) return INVALID_VALUE;
    return append(stream, (work) { .kind = function->queries, .to = *(void **) parameters[1],
        .from = *(const void **) parameters[0], .count = count });
}

static handle *captured;

int cuStreamBeginCapture_v2(handle *stream, int mode) {
    NEEDS(stream);
    if (mode != 1 || captured) return INVALID_VALUE;
    captured = stream;
    return SUCCESS;
}

int cuStreamEndCapture(handle *stream, handle **graph) {
    NEEDS(stream);
    if (captured != stream) return INVALID_VALUE;
    captured = NULL;
    return create(graph);
}

int cuGraphInstantiateWithFlags(handle **executable, handle *graph, unsigned long long flags) {
    NEEDS(graph);
    return flags ? INVALID_VALUE : create(executable);
}

int cuGraphLaunch(handle *executable, handle *stream) { NEEDS(executable); NEEDS(stream); return SUCCESS; }
int cuGraphDestroy(handle *graph) { NEEDS(graph); return destroy(graph); }
int cuGraphExecDestroy(handle *executable) { NEEDS(executable); return destroy(executable); }

/* A handle names the process, its file, and the size where the driver has it; its last byte is a mark. Unlike with the
 * driver, the process of the memory can open it too. */
typedef struct { int32_t process; int32_t file; void *address; uint64_t size; unsigned char rest[39]; unsigned char mark; } ipc_handle;

int cuIpcGetMemHandle(ipc_handle *result, void *address) {
    NEEDS_INIT;
    pthread_mutex_lock(&memory_lock);
    block *exported = find(address);
    if (exported) *result = (ipc_handle) { getpid(), exported->file, address, exported->size, { 0 }, 0x5e };
    pthread_mutex_unlock(&memory_lock);
    return exported ? SUCCESS : INVALID_VALUE;
}

int cuIpcOpenMemHandle_v2(void **result, ipc_handle opened, unsigned flags) {
    NEEDS_CONTEXT;
    if (opened.mark != 0x5e || flags != 1) return INVALID_VALUE;
    if (opened.process == getpid()) {
        *result = opened.address;
        return SUCCESS;
    }
    char path[64];
    struct stat now;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", opened.process, opened.file);
    int file = open(path, O_RDWR);
    if (file < 0) return INVALID_VALUE;
    pthread_mutex_lock(&memory_lock);
    int error = INVALID_VALUE;
    fstat(file, &now);
    for (int i = 0; i < 4096; i++) { /* opened again: the same address */
        struct stat known;
        if (memory[i].opens && !fstat(memory[i].file, &known) && known.st_ino == now.st_ino && known.st_dev == now.st_dev) {
            memory[i].opens++;
            *result = memory[i].address;
            error = SUCCESS;
        }
    }
    if (error == SUCCESS) close(file);
    else if ((uint64_t) now.st_size == opened.size) error = map(result, file, opened.size, 1);
    else close(file);
    pthread_mutex_unlock(&memory_lock);
    return error;
}

int cuIpcCloseMemHandle(void *address) {
    NEEDS_INIT;
    pthread_mutex_lock(&memory_lock);
    block *closed = address ? find(address) : 0;
    if (closed && closed->opens && --closed->opens == 0) unmap(closed);
    pthread_mutex_unlock(&memory_lock);
    return closed ? SUCCESS : INVALID_VALUE;
}

int cuMemGetAddressRange_v2(void **base, size_t *size, void *address) {
    NEEDS_INIT;
    pthread_mutex_lock(&memory_lock);
    block *found = find(address);
    if (found) {
        *base = found->address;
        *size = found->size;
    }
    pthread_mutex_unlock(&memory_lock);
    return found ? SUCCESS : INVALID_VALUE;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) { NEEDS_DEVICE; *can = device != peer; return SUCCESS; }

static int peer_access;

int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    NEEDS_CONTEXT;
    if (flags || context == current) return INVALID_VALUE;
    return peer_access++ ? 704 : SUCCESS;
}
