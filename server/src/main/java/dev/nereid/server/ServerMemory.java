package dev.nereid.server;

import dev.nereid.api.memory.SharedMemory;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.shared.SystemSharedMemory;

/**
 * Tensor pool and shared memory of a server. Closed by the server at its end.
 *
 * @param pool where inputs and outputs lie
 * @param shared what clients share
 * @param sharedEnd gives the shared memory back
 */
record ServerMemory(TensorPool pool, SharedMemory shared, Runnable sharedEnd) implements AutoCloseable {
    /** Makes the memory of a server whose clients may share theirs or not. */
    static ServerMemory of(TensorPool pool, boolean clientsMayShare) {
        // Off the path of the start: links native functions, which the first large body needs.
        Thread.ofPlatform().daemon().name("tensor-memory-start").start(TensorPool::prepare);
        if (!clientsMayShare) {
            return new ServerMemory(pool, new NoSharedMemory(), () -> {});
        }
        SystemSharedMemory shared = new SystemSharedMemory();
        return new ServerMemory(pool, shared, shared::close);
    }

    @Override
    public void close() {
        sharedEnd.run();
        pool.close();
    }
}
