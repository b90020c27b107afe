package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.BackendException;
import java.util.ArrayList;
import java.util.List;

/** The memory of a batch, freed together. Confined to the batch. */
final class BatchMemory {
    private final LeakCheckingMemory memory;
    private final List<Runnable> releases = new ArrayList<>();
    private boolean isExhausted;

    BatchMemory(LeakCheckingMemory memory) {
        this.memory = memory;
    }

    TensorBuffer allocate(long byteSize) {
        try {
            TensorBuffer buffer = memory.allocate(byteSize);
            releases.add(buffer::close);
            return buffer;
        } catch (InferenceException e) {
            isExhausted = true;
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    /** Adds an action that frees memory of the backend. */
    void add(Runnable release) {
        releases.add(release);
    }

    /** Returns whether memory was refused, so that the execution fails. */
    boolean isExhausted() {
        return isExhausted;
    }

    LeakCheckingMemory source() {
        return memory;
    }

    void release() {
        List<Runnable> all = List.copyOf(releases);
        releases.clear();
        all.forEach(Runnable::run);
    }
}
