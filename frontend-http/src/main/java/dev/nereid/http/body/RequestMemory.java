package dev.nereid.http.body;

import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory of one request: its inputs and its leases of shared memory. Confined to the thread that reads the request
 * until it is submitted; from then on only {@link #run()}, which releases everything, may change it, once, on any
 * thread.
 */
public final class RequestMemory implements Runnable, SegmentAllocator {
    private final TensorMemory memory;
    private final SharedMemory shared;
    private final List<TensorBuffer> buffers = new ArrayList<>(2);
    /** The buffers that are leases: their registrations end before the response is sent. */
    private List<SharedMemory.Lease> leased = List.of();

    public RequestMemory(TensorMemory memory, SharedMemory shared) {
        this.memory = memory;
        this.shared = shared;
    }

    @Override
    public MemorySegment allocate(long byteSize) {
        TensorBuffer buffer = memory.allocate(byteSize);
        buffers.add(buffer);
        return buffer.segment();
    }

    /** Allocates memory from the pool, which aligns all of it for any tensor. */
    @Override
    public MemorySegment allocate(long byteSize, long byteAlignment) {
        return allocate(byteSize);
    }

    /**
     * Leases a part of a shared memory region.
     *
     * @return the part, which this closes
     * @throws dev.nereid.api.InferenceException if there is no such region or part
     */
    public TensorBuffer lease(String region, long offset, long byteSize) {
        SharedMemory.Lease lease = shared.lease(region, offset, byteSize);
        buffers.add(lease);
        if (leased.isEmpty()) {
            leased = new ArrayList<>(2);
        }
        leased.add(lease);
        return lease;
    }

    /** Takes ownership of a buffer. */
    public void adopt(TensorBuffer buffer) {
        buffers.add(buffer);
    }

    /**
     * Releases the registrations of the leased regions, before the response is sent; also after {@link #run()}. May be
     * called on any thread, and more than once.
     */
    public void releaseRegistrations() {
        if (!leased.isEmpty()) {
            leased.forEach(SharedMemory.Lease::releaseRegistration);
        }
    }

    @Override
    public void run() {
        for (int i = buffers.size() - 1; i >= 0; i--) {
            buffers.get(i).close();
        }
        buffers.clear();
    }
}
