/* Stands in for libnvidia-ml.so.1: DEVICES GPUs, of which the second has no energy, and none answers for a null handle. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef INIT
#define INIT 0
#endif

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, UNKNOWN = 999 };

#define HANDLE(index) ((void *) (uintptr_t) (0x7e0000001000 + (index) * 16))
#define INDEX(handle) ((int) (((uintptr_t) (handle) - 0x7e0000001000) / 16))

static int initialized;
static int reads;

int standin_reads(void) { return reads; }

int nvmlInit_v2(void) { initialized = INIT == 0; return INIT; }

int nvmlDeviceGetCount_v2(unsigned *count) {
    if (!initialized) return UNINITIALIZED;
    *count = DEVICES;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= DEVICES) return INVALID_ARGUMENT;
#ifdef LOST
    if (index == LOST) return UNKNOWN;
#endif
    *device = HANDLE(index);
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae0%d", INDEX(device));
    return SUCCESS;
}

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { uint64_t total, free, used; } memory_info;

int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    rates->gpu = 37 + INDEX(device);
    rates->memory = 5;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_info *memory) {
    memory->total = 80ULL << 30;
    memory->used = (1ULL << 30) * (INDEX(device) + 1);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 79500 + INDEX(device); return SUCCESS; }

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    (void) device;
    *milliwatts = 700000;
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, uint64_t *millijoules) {
    if (INDEX(device) == 1) {
        reads++;
        return NOT_SUPPORTED;
    }
    *millijoules = 5000000000500ULL;
    return SUCCESS;
}
