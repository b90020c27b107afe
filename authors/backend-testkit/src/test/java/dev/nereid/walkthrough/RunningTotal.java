package dev.nereid.walkthrough;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/** Returns TOTAL, the sum of all VALUE of a sequence; the last response says how many there were. */
public final class RunningTotal implements BackendProvider {
    @Override
    public String name() {
        return "running_total";
    }

    @Override
    public Backend create(BackendContext context) {
        return RunningTotal::load;
    }

    private static Model load(ModelContext model) {
        boolean hasState = model.settings()
                .sequenceBatching()
                .flatMap(batching -> batching.state("TOTAL_OUT"))
                .isPresent();
        if (!hasState) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, "state 'TOTAL_OUT': not in sequence_batching");
        }
        return context -> new Instance();
    }

    /** All requests of a sequence come to the same instance, one after another. */
    private static final class Instance implements ModelInstance {
        private final Map<Sequence.Id, Long> counts = new HashMap<>();

        @Override
        public void execute(Batch batch) {
            for (InferenceRequest request : batch.requests()) {
                if (!request.isNullRequest()) {
                    add(request);
                }
            }
        }

        private void add(InferenceRequest request) {
            float total = number(request.requireInput("TOTAL_IN")) + number(request.requireInput("VALUE"));
            write(request.state("TOTAL_OUT").allocate(DataType.FP32, Shape.of(1, 1)), total);
            write(request.response().allocate("TOTAL", DataType.FP32, Shape.of(1, 1)), total);
            Sequence sequence = request.sequence().orElseThrow();
            long count = sequence.start() ? 1 : counts.getOrDefault(sequence.id(), 0L) + 1;
            counts.put(sequence.id(), count);
            if (sequence.end()) {
                counts.remove(sequence.id());
                request.response().parameter("requests", count);
            }
        }

        private static float number(Tensor tensor) {
            return tensor.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        }

        private static void write(Tensor tensor, float number) {
            tensor.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, number);
        }
    }
}
