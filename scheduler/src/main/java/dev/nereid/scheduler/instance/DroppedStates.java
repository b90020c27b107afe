package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import org.jspecify.annotations.Nullable;

/** Drops the state updates of warm-up samples, which belong to no sequence. Immutable. */
final class DroppedStates implements StateSink {
    private final ModelSettings model;

    DroppedStates(ModelSettings model) {
        this.model = model;
    }

    @Override
    public @Nullable StateSpec state(String output) {
        return model.sequenceBatching()
                .flatMap(batching -> batching.state(output))
                .orElse(null);
    }

    @Override
    public void store(String output, Tensor value, ReferenceCountedMemory memory) {
        memory.release();
    }

    /** Returns a request of a sample. Its states are dropped. */
    Executable of(ScheduledRequest request) {
        return new Sample(request, this);
    }

    private record Sample(ScheduledRequest request, StateSink states) implements Executable {}
}
