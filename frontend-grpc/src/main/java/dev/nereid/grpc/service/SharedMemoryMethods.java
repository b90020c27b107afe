package dev.nereid.grpc.service;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.spi.ErrorCode;
import inference.CudaSharedMemoryRegisterRequest;
import inference.CudaSharedMemoryRegisterResponse;
import inference.CudaSharedMemoryStatusRequest;
import inference.CudaSharedMemoryStatusResponse;
import inference.CudaSharedMemoryUnregisterRequest;
import inference.CudaSharedMemoryUnregisterResponse;
import inference.GRPCInferenceServiceGrpc;
import inference.SystemSharedMemoryRegisterRequest;
import inference.SystemSharedMemoryRegisterResponse;
import inference.SystemSharedMemoryStatusRequest;
import inference.SystemSharedMemoryStatusResponse;
import inference.SystemSharedMemoryUnregisterRequest;
import inference.SystemSharedMemoryUnregisterResponse;
import io.grpc.ServerMethodDefinition;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** Handles the methods that register and unregister shared memory. Safe for use by any thread. */
final class SharedMemoryMethods {
    private final SharedMemory memory;

    private final Executor longTasks;

    private SharedMemoryMethods(SharedMemory memory, Executor longTasks) {
        this.memory = memory;
        this.longTasks = longTasks;
    }

    static List<ServerMethodDefinition<?, ?>> of(SharedMemory memory, Executor longTasks) {
        SharedMemoryMethods methods = new SharedMemoryMethods(memory, longTasks);
        return List.of(
                UnaryMethod.of(GRPCInferenceServiceGrpc.getSystemSharedMemoryStatusMethod(), methods::status),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getSystemSharedMemoryRegisterMethod(), methods::register),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getSystemSharedMemoryUnregisterMethod(), methods::unregister),
                UnaryMethod.of(GRPCInferenceServiceGrpc.getCudaSharedMemoryStatusMethod(), methods::cudaStatus),
                UnaryMethod.async(
                        GRPCInferenceServiceGrpc.getCudaSharedMemoryRegisterMethod(), methods::registerCudaLater),
                UnaryMethod.of(
                        GRPCInferenceServiceGrpc.getCudaSharedMemoryUnregisterMethod(), methods::unregisterCuda));
    }

    private SystemSharedMemoryStatusResponse status(SystemSharedMemoryStatusRequest request) {
        String name = request.getName();
        List<SharedMemory.Region> regions = name.isEmpty() ? memory.regions() : List.of(memory.region(name));
        SystemSharedMemoryStatusResponse.Builder response = SystemSharedMemoryStatusResponse.newBuilder();
        for (SharedMemory.Region region : regions) {
            response.putRegions(
                    region.name(),
                    SystemSharedMemoryStatusResponse.RegionStatus.newBuilder()
                            .setName(region.name())
                            .setKey(region.key())
                            .setOffset(region.offset())
                            .setByteSize(region.byteSize())
                            .build());
        }
        return response.build();
    }

    private SystemSharedMemoryRegisterResponse register(SystemSharedMemoryRegisterRequest request) {
        memory.register(request.getName(), request.getKey(), request.getOffset(), request.getByteSize());
        return SystemSharedMemoryRegisterResponse.getDefaultInstance();
    }

    private SystemSharedMemoryUnregisterResponse unregister(SystemSharedMemoryUnregisterRequest request) {
        if (request.getName().isEmpty()) {
            memory.unregisterAll();
        } else {
            memory.unregister(request.getName());
        }
        return SystemSharedMemoryUnregisterResponse.getDefaultInstance();
    }

    private CudaSharedMemoryStatusResponse cudaStatus(CudaSharedMemoryStatusRequest request) {
        String name = request.getName();
        List<SharedMemory.CudaRegion> regions =
                name.isEmpty() ? memory.cudaRegions() : List.of(memory.cudaRegion(name));
        CudaSharedMemoryStatusResponse.Builder response = CudaSharedMemoryStatusResponse.newBuilder();
        for (SharedMemory.CudaRegion region : regions) {
            response.putRegions(
                    region.name(),
                    CudaSharedMemoryStatusResponse.RegionStatus.newBuilder()
                            .setName(region.name())
                            .setDeviceId(region.deviceId())
                            .setByteSize(region.byteSize())
                            .build());
        }
        return response.build();
    }

    /** Registers off the event loop: the driver takes milliseconds, and longer while a kernel runs. */
    private CompletionStage<CudaSharedMemoryRegisterResponse> registerCudaLater(
            CudaSharedMemoryRegisterRequest request) {
        return CompletableFuture.supplyAsync(() -> registerCuda(request), longTasks);
    }

    private CudaSharedMemoryRegisterResponse registerCuda(CudaSharedMemoryRegisterRequest request) {
        String name = request.getName();
        try {
            memory.registerCuda(
                    name, request.getRawHandle().asReadOnlyByteBuffer(), request.getDeviceId(), request.getByteSize());
        } catch (InferenceException error) {
            if (error.code() != ErrorCode.UNSUPPORTED) {
                throw error;
            }
            // gRPC clients expect this text whether or not shared memory is allowed.
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to register CUDA shared memory region: '" + Quoted.text(name) + "', GPUs not supported");
        }
        return CudaSharedMemoryRegisterResponse.getDefaultInstance();
    }

    private CudaSharedMemoryUnregisterResponse unregisterCuda(CudaSharedMemoryUnregisterRequest request) {
        if (request.getName().isEmpty()) {
            memory.unregisterAllCuda();
        } else {
            memory.unregisterCuda(request.getName());
        }
        return CudaSharedMemoryUnregisterResponse.getDefaultInstance();
    }
}
