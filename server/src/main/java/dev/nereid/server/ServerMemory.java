package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.shared.ClientSharedMemory;
import dev.nereid.spi.ErrorCode;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Tensor pool and shared memory of a server. Closed by the server at its end.
 *
 * @param pool the pool for inputs and outputs
 * @param gpus the memory of GPUs
 */
record ServerMemory(TensorPool pool, SharedMemory shared, GpuAccess gpus) implements AutoCloseable {
    static ServerMemory of(TensorPool pool, GpuAccess gpus, boolean clientSharedMemory) {
        // Off the path of the start: links native functions, which the first large body needs.
        Thread.ofPlatform().daemon().name("tensor-memory-start").start(TensorPool::prepare);
        return new ServerMemory(pool, clientSharedMemory ? new ClientSharedMemory(gpus) : new NoSharedMemory(), gpus);
    }

    @Override
    public void close() {
        if (shared instanceof ClientSharedMemory regions) {
            regions.close();
        }
        pool.close();
        gpus.close();
    }

    /** Refuses shared memory: the server does not allow clients to register any. Immutable. */
    private static final class NoSharedMemory implements SharedMemory {
        @Override
        public void checkAllowed() {
            throw disabled();
        }

        @Override
        public void register(String name, String key, long offset, long byteSize) {
            throw disabled();
        }

        @Override
        public void unregister(String name) {
            throw disabled();
        }

        @Override
        public void unregisterAll() {
            throw disabled();
        }

        @Override
        public Region region(String name) {
            throw notFound("Unable to find system shared memory region: '" + Quoted.text(name) + "'");
        }

        @Override
        public List<Region> regions() {
            return List.of();
        }

        @Override
        public Lease lease(String name, long offset, long byteSize) {
            throw notFound("Unable to find shared memory region: '" + Quoted.text(name) + "'");
        }

        @Override
        public void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize) {
            throw disabled();
        }

        @Override
        public void unregisterCuda(String name) {
            throw disabled();
        }

        @Override
        public void unregisterAllCuda() {
            throw disabled();
        }

        @Override
        public CudaRegion cudaRegion(String name) {
            throw notFound("Unable to find cuda shared memory region: '" + Quoted.text(name) + "'");
        }

        @Override
        public List<CudaRegion> cudaRegions() {
            return List.of();
        }

        private static InferenceException disabled() {
            return new InferenceException(
                    ErrorCode.UNSUPPORTED,
                    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.");
        }

        private static InferenceException notFound(String text) {
            return new InferenceException(ErrorCode.NOT_FOUND, text);
        }
    }
}
