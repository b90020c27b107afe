package dev.nereid.http;

import dev.nereid.api.TensorBuffer;
import dev.nereid.api.TensorMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * The memory of one call's inputs. Confined to the event loop until the call is handed over; from then on
 * {@link #run()}, which gives everything back, is all that is left to do, once, on any thread.
 */
final class CallMemory implements Runnable {
    private final TensorMemory memory;
    private final List<TensorBuffer> buffers = new ArrayList<>(2);

    CallMemory(TensorMemory memory) {
        this.memory = memory;
    }

    /** Takes memory from the pool. */
    MemorySegment allocate(long byteSize) {
        TensorBuffer buffer = memory.allocate(byteSize);
        buffers.add(buffer);
        return buffer.segment();
    }

    /** Takes over a buffer. */
    void adopt(TensorBuffer buffer) {
        buffers.add(buffer);
    }

    @Override
    public void run() {
        for (int i = buffers.size() - 1; i >= 0; i--) {
            buffers.get(i).close();
        }
        buffers.clear();
    }
}
