package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Requests whose inputs differ in shape and share a batch all the same. */
final class RaggedBatchTest {
    private static final TensorSpec IN = TensorSpec.of("IN", DataType.FP32, Shape.of(-1));
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(IN.with(TensorSpec.Trait.RAGGED))
            .build();

    @Test
    void joinsOtherShapes() {
        try (Execution execution =
                new Execution(model, batch -> assertThat(batch.requests()).hasSize(3))) {
            submit(execution, Shape.of(1, 3), Shape.of(2, 1), Shape.of(1, 0));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void comesFlat() {
        try (Execution execution = new Execution(model, batch -> {
            assertThat(batch.size()).isEqualTo(4);
            assertThat(batch.gather("IN").shape()).isEqualTo(Shape.of(7));
            assertThat(batch.gather("IN")).isSameAs(batch.gather("IN"));
            assertThat(floats(batch)).containsExactly(0, 1, 2, 100, 101, 102, 103);
            assertThat(batch.requests().get(1).input("IN").orElseThrow().shape())
                    .isEqualTo(Shape.of(2, 2));
        })) {
            submit(execution, Shape.of(1, 3), Shape.of(2, 2), Shape.of(1, 0));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
            assertThat(execution.memory.buffersInUse())
                    .as("inputs, gathered or not")
                    .isZero();
        }
    }

    @Test
    void comesFlatForASingleRequest() {
        try (Execution execution = new Execution(model, batch -> {
            Tensor in = batch.requests().getFirst().input("IN").orElseThrow();
            assertThat(in.shape()).isEqualTo(Shape.of(2, 3));
            assertThat(batch.gather("IN").shape()).isEqualTo(Shape.of(6));
            assertThat(batch.gather("IN").data()).as("in place").isEqualTo(in.data());
        })) {
            submit(execution, Shape.of(2, 3));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void joinsByteStringsOfDifferentNumbers() {
        ModelSettings strings = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.BYTES, Shape.of(-1)).with(TensorSpec.Trait.RAGGED))
                .build();
        try (Execution execution = new Execution(strings, batch -> {
            assertThat(batch.gather("IN").shape()).isEqualTo(Shape.of(3));
            assertThat(batch.gather("IN").strings()).containsExactly("a", "", "long");
        })) {
            execution.submit(
                    execution.request().strings("IN", Shape.of(1, 1), "a").of(1));
            execution.submit(execution
                    .request()
                    .strings("IN", Shape.of(1, 2), "", "long")
                    .of(1));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void keepsToShapesInItsOtherInputs() {
        ModelSettings mixed = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(IN.with(TensorSpec.Trait.RAGGED))
                .input(TensorSpec.of("MORE", DataType.FP32, Shape.of(-1)))
                .build();
        try (Execution execution = new Execution(
                mixed, batch -> assertThat(batch.gather("MORE").shape().dim(1)).isEqualTo(2))) {
            for (int length : List.of(3, 5)) {
                execution.submit(execution
                        .request()
                        .floats("IN", Shape.of(1, length), 0)
                        .floats("MORE", Shape.of(1, 2), 0)
                        .of(1));
            }
            RecordingObserver other = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 3), 0)
                    .floats("MORE", Shape.of(1, 4), 0)
                    .of(1));

            execution.run();

            assertThat(other.hasEnded()).isFalse();
            other.close();
            execution.requests.getLast().cancel();
        }
    }

    @Test
    void givesBackWhatWasJoinedWhenTheBackendFails() {
        try (Execution execution = new Execution(model, batch -> {
            batch.gather("IN");
            throw new BackendException(ErrorCode.INTERNAL, "failed");
        })) {
            submit(execution, Shape.of(1, 3), Shape.of(1, 2));

            execution.run();

            execution.observers.forEach(observer -> observer.assertError(ErrorCode.INTERNAL, "failed"));
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    private static float[] floats(Batch batch) {
        return batch.gather("IN").data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    private static void submit(Execution execution, Shape... shapes) {
        for (int i = 0; i < shapes.length; i++) {
            execution.submit(
                    execution.request().floats("IN", shapes[i], 100f * i).of(Math.toIntExact(shapes[i].dim(0))));
        }
    }
}
