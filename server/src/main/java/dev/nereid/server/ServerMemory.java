package dev.nereid.server;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.shared.ClientSharedMemory;

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
}
