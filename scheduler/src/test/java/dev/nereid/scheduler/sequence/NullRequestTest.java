package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.memory.ZeroMemory;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The inputs of null requests show nothing of the requests of clients. */
final class NullRequestTest {
    private static final Shape ANY = Shape.of(Shape.VARIABLE);

    private final ModelSettings settings = ModelSettings.builder("stateful", 1)
            .maxBatchSize(2)
            .input(TensorSpec.of("IN", DataType.FP32, ANY))
            .input(TensorSpec.of("TEXT", DataType.BYTES, ANY).with(TensorSpec.Trait.OPTIONAL))
            .input(TensorSpec.of("SIZE", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
            .output(TensorSpec.of("OUT", DataType.FP32, ANY))
            .build();

    /** The inputs of the last null request, and of its batch, as bytes. */
    private final Map<String, byte[]> seen = new HashMap<>();

    private final List<InferenceRequest> kept = new ArrayList<>();

    private void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            if (request.isNullRequest()) {
                seen.clear();
                for (String name : request.inputs()) {
                    seen.put(name, bytes(request.requireInput(name)));
                }
                seen.put("gathered", bytes(batch.gather("IN")));
                kept.add(request);
            }
        }
        FakeInstance.copy(batch);
    }

    private static byte[] bytes(Tensor tensor) {
        return tensor.data().toArray(ValueLayout.JAVA_BYTE);
    }

    private Requests request(SteppedSequences s, float first, int elements) {
        return Requests.to(settings, s.memory)
                .floats("IN", Shape.of(1, elements), first)
                .longs("SIZE", Shape.of(2), 3, 4);
    }

    /** Sends a request of the second of two sequences, so that the first has a null request. */
    private void sendToSecondSlot(SteppedSequences s, Requests request) {
        s.send(sequence(1).start(), request(s, 1, 1));
        s.send(sequence(2).start(), request(s, 1, 1));
        s.steps();
        s.send(sequence(2), request);
        s.steps();
    }

    @Test
    void numbersAreZerosAndTextsAreEmpty() {
        try (SteppedSequences s = new SteppedSequences(settings, Plans.direct(2), this::execute)) {
            sendToSecondSlot(s, request(s, 5, 2).strings("TEXT", Shape.of(1, 2), "secret", "of another"));
            assertThat(seen.get("IN")).containsOnly(0).hasSize(8);
            assertThat(seen.get("TEXT")).containsOnly(0).hasSize(8);
            assertThat(seen.get("gathered")).hasSize(16).startsWith(new byte[8]);
            assertThat(seen).containsKeys("READY", "CORRID");
        }
    }

    @Test
    void aShapeTensorHasTheValuesOfItsBatch() {
        try (SteppedSequences s = new SteppedSequences(settings, Plans.direct(2), this::execute)) {
            sendToSecondSlot(s, request(s, 5, 1));
            assertThat(seen.get("SIZE")).startsWith(3, 0).hasSize(16);
            assertThat(seen).doesNotContainKey("TEXT"); // optional: the other request has none
        }
    }

    @Test
    void emptyTensorsStayEmpty() {
        try (SteppedSequences s = new SteppedSequences(settings, Plans.direct(2), this::execute)) {
            sendToSecondSlot(s, request(s, 5, 0).strings("TEXT", Shape.of(1, 0)));
            assertThat(seen.get("IN")).isEmpty();
            assertThat(seen.get("TEXT")).isEmpty();
        }
    }

    @Test
    void zerosStayWhenALargerBlockReplacesThem() {
        try (SteppedSequences s = new SteppedSequences(
                decoupled(), Plans.direct(2), batch -> batch.requests().forEach(this::keepNullRequest))) {
            s.send(sequence(1).start(), s.request(1));
            s.send(sequence(2).start(), s.request(2));
            s.steps();
            s.send(sequence(2), s.request(3));
            s.steps();
            Tensor before = kept.getFirst().requireInput("IN");
            s.send(sequence(2), Requests.to(s.model.settings(), s.memory).floats("IN", Shape.of(1, 10_000), 7));
            s.steps();
            assertThat(kept).hasSize(2);
            assertThat(bytes(before)).containsOnly(0).hasSize(4);
            kept.forEach(request -> request.sender().complete());
        }
    }

    private static ModelSettings decoupled() {
        return SteppedSequences.settings(2, true);
    }

    private void keepNullRequest(InferenceRequest request) {
        ResponseSender sender = request.sender();
        if (request.isNullRequest()) {
            kept.add(request);
        } else {
            sender.complete();
        }
    }

    @Test
    void isFreedWithTheLastSequence() {
        try (SteppedSequences s = new SteppedSequences(settings, Plans.direct(2), this::execute)) {
            s.send(sequence(1).start(), request(s, 1, 1));
            s.send(sequence(2).start(), request(s, 1, 1));
            s.steps();
            s.send(sequence(2).end(), request(s, 1, 1));
            s.send(sequence(1).end(), request(s, 1, 1));
            s.steps();
            assertThat(s.memory.bytesInUse()).as("four responses").isEqualTo(4 * Float.BYTES);
            sendToSecondSlot(s, request(s, 5, 1)); // as before
            assertThat(seen.get("IN")).containsOnly(0).hasSize(4);
        }
    }

    @Test
    void needsNoMemoryThatIsNotThereAfterItWasFreed() {
        try (LeakCheckingMemory memory = new LeakCheckingMemory(200)) {
            ZeroMemory zeros = new ZeroMemory(memory);
            zeros.reserve(100);
            zeros.free();
            assertThat(memory.buffersInUse()).isZero();
            ZeroMemory.Use use = zeros.use(1000);
            assertThat(bytes(use.like("IN", Tensor.ofFloats(Shape.of(250), new float[250]))))
                    .containsOnly(0);
            use.release();
            zeros.reserve(100);
            assertThat(memory.buffersInUse()).isOne();
            zeros.close();
        }
    }

    @Test
    void aLargerBlockIsClearedWhileOthersAreUsed() {
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            List<Runnable> clearing = new ArrayList<>();
            ZeroMemory zeros = new ZeroMemory(new TensorMemory() {
                @Override
                public TensorBuffer allocate(long byteSize) {
                    clearing.forEach(Runnable::run);
                    return memory.allocate(byteSize);
                }

                @Override
                public long bytesInUse() {
                    return memory.bytesInUse();
                }
            });
            zeros.reserve(80);
            clearing.add(() -> CompletableFuture.runAsync(() -> zeros.use(50).release())
                    .orTimeout(20, TimeUnit.SECONDS)
                    .join());

            zeros.reserve(200);
            zeros.use(400).release();
            clearing.add(() -> zeros.close());
            ZeroMemory.Use last = zeros.use(1000);

            assertThat(memory.buffersInUse()).isOne();
            last.release();
        }
    }

    @Test
    void growsByPartsAndIsAccounted() {
        try (LeakCheckingMemory memory = new LeakCheckingMemory(200)) {
            ZeroMemory zeros = new ZeroMemory(memory);
            zeros.reserve(0);
            assertThat(memory.buffersInUse()).isZero();
            zeros.reserve(80);
            assertThat(memory.bytesInUse()).isEqualTo(100);
            zeros.reserve(100);
            assertThat(memory.buffersInUse()).isEqualTo(1);
            assertThatThrownBy(() -> zeros.reserve(180)).isInstanceOf(InferenceException.class);
            assertThat(memory.bytesInUse()).isEqualTo(100); // the block stays
            ZeroMemory.Use use = zeros.use(100);
            zeros.close();
            assertThat(memory.bytesInUse()).isEqualTo(100);
            zeros.reserve(1000); // has no effect any more
            use.release();
        }
    }
}
