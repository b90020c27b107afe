package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

/** Outputs that are cut by the shapes of an input. */
final class ScatterTest {
    private static final Shape ANY = Shape.of(-1);
    private final ModelSettings model = model(TensorSpec.of("OUT", DataType.FP32, ANY));

    /** Ways to give the input back as the output. */
    private static void allocate(Batch batch) {
        Tensor in = batch.gather("IN");
        Tensor out = batch.allocate("OUT", DataType.FP32, in.shape());
        assertThat(out.shape()).isEqualTo(in.shape());
        out.data().copyFrom(in.data());
    }

    private static void alias(Batch batch) {
        batch.put("OUT", batch.gather("IN"));
    }

    @Test
    void givesEachRequestTheShapeOfItsInput() {
        for (FakeInstance.Execution backend :
                List.<FakeInstance.Execution>of(ScatterTest::allocate, ScatterTest::alias)) {
            try (Execution execution = new Execution(model, backend)) {
                submit(execution, Shape.of(1, 3), Shape.of(2, 2), Shape.of(1, 0), Shape.of(1, 1));

                execution.run();

                assertPart(execution, 0, Shape.of(1, 3), 0, 1, 2);
                assertPart(execution, 1, Shape.of(2, 2), 100, 101, 102, 103);
                assertPart(execution, 2, Shape.of(1, 0));
                assertPart(execution, 3, Shape.of(1, 1), 300);
            }
        }
    }

    @Test
    void givesASingleRequestTheShapeOfItsInput() {
        for (FakeInstance.Execution backend :
                List.<FakeInstance.Execution>of(ScatterTest::allocate, ScatterTest::alias)) {
            try (Execution execution = new Execution(model, backend)) {
                submit(execution, Shape.of(2, 3));

                execution.run();

                assertPart(execution, 0, Shape.of(2, 3), 0, 1, 2, 3, 4, 5);
            }
        }
    }

    @Test
    void takesADimensionOfTheSourceWhereTheOutputIsVariable() {
        ModelSettings wide = model(TensorSpec.of("OUT", DataType.FP32, Shape.of(-1, 2)));
        try (Execution execution = new Execution(wide, batch -> {
            MemorySegment data =
                    batch.allocate("OUT", DataType.FP32, Shape.of(8, 1)).data();
            for (int i = 0; i < 8; i++) {
                data.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, i);
            }
        })) {
            submit(execution, Shape.of(1, 3), Shape.of(1, 1));

            execution.run();

            assertPart(execution, 0, Shape.of(1, 3, 2), 0, 1, 2, 3, 4, 5);
            assertPart(execution, 1, Shape.of(1, 1, 2), 6, 7);
        }
    }

    @Test
    void reshapesPartsForClients() {
        ModelSettings reshaped =
                model(TensorSpec.of("OUT", DataType.FP32, Shape.of(1, -1)).withReshape(ANY));
        try (Execution single = new Execution(reshaped, ScatterTest::alias);
                Execution several = new Execution(reshaped, ScatterTest::alias)) {
            submit(single, Shape.of(2, 3));
            submit(several, Shape.of(1, 3), Shape.of(1, 2));

            single.run();
            several.run();

            assertThat(single.observers.getFirst().output("OUT").shape()).isEqualTo(Shape.of(2, 1, 3));
            assertThat(several.observers.getFirst().output("OUT").shape()).isEqualTo(Shape.of(1, 1, 3));
            assertThat(several.observers.getLast().output("OUT").shape()).isEqualTo(Shape.of(1, 1, 2));
        }
    }

    @Test
    void cutsByteStringsByTheirFraming() {
        ModelSettings strings = model(TensorSpec.of("OUT", DataType.BYTES, ANY));
        FakeInstance.Execution backend = batch -> {
            String[] texts = {"", "ä", "three", "x", ""};
            int count = Math.toIntExact(batch.gather("IN").shape().dim(0));
            String[] some = List.of(texts).subList(0, count).toArray(String[]::new);
            Requests.write(
                    batch.allocateBytes("OUT", Shape.of(count), Requests.byteSize(some))
                            .data(),
                    some);
        };
        try (Execution single = new Execution(strings, backend);
                Execution several = new Execution(strings, backend)) {
            submit(single, Shape.of(1, 2));
            submit(several, Shape.of(1, 3), Shape.of(1, 0), Shape.of(1, 2));

            single.run();
            several.run();

            assertThat(single.observers.getFirst().output("OUT").strings()).containsExactly("", "ä");
            assertThat(several.observers.get(0).output("OUT").strings()).containsExactly("", "ä", "three");
            assertThat(several.observers.get(1).output("OUT").strings()).isEmpty();
            assertThat(several.observers.get(2).output("OUT").strings()).containsExactly("x", "");
            assertThat(several.observers.get(2).output("OUT").shape()).isEqualTo(Shape.of(1, 2));
        }
    }

    @Test
    void refusesByteStringsThatEndTooEarly() {
        ModelSettings strings = model(TensorSpec.of("OUT", DataType.BYTES, ANY));
        try (Execution execution = new Execution(strings, batch -> {
            MemorySegment data = batch.allocateBytes("OUT", Shape.of(3), 8).data();
            Requests.write(data, "", "");
        })) {
            submit(execution, Shape.of(1, 1), Shape.of(1, 2));

            execution.run();

            execution.observers.forEach(observer -> observer.assertError(
                    ErrorCode.INTERNAL,
                    "output 'OUT' of model 'm': 8 bytes (expected: [3] byte strings, each with its length in front)"));
        }
    }

    /** Shapes of requests, the shape of the output, and what is wrong with it. */
    static final List<Arguments> WRONG = List.of(
            arguments(
                    List.of(Shape.of(1, 3), Shape.of(1, 2)),
                    Shape.of(4),
                    "shape [4] (expected: 5 elements, as input 'IN' requires)"),
            arguments(
                    List.of(Shape.of(1, 3), Shape.of(1, 2)),
                    Shape.of(2, 3),
                    "shape [2,3] (expected: 5 elements, as input 'IN' requires)"),
            arguments(List.of(Shape.of(1, 3)), Shape.of(2), "shape [2] (expected: 3 elements, as input 'IN' requires)"),
            arguments(List.of(Shape.of(1, 3)), ANY, "shape [-1] (expected: no variable dimension)"),
            arguments(
                    List.of(Shape.of(1, 3)),
                    Shape.of(1L << 40, 1L << 40),
                    "shape [1099511627776,1099511627776] (expected: a size that fits 64 bits)"));

    @ParameterizedTest
    @FieldSource("WRONG")
    void refusesAnOutputOfAnotherSize(List<Shape> requests, Shape output, String problem) {
        try (Execution execution = new Execution(model, batch -> batch.allocate("OUT", DataType.FP32, output))) {
            submit(execution, requests.toArray(Shape[]::new));

            execution.run();

            execution.observers.forEach(
                    observer -> observer.assertError(ErrorCode.INTERNAL, "output 'OUT' of model 'm': " + problem));
        }
    }

    @Test
    void runsTheReleaseOnce() {
        AtomicInteger released = new AtomicInteger();
        FakeInstance.Execution right = batch -> {
            Shape shape = batch.gather("IN").shape();
            Tensor out = Tensor.of(DataType.FP32, shape, Arena.ofAuto().allocate(shape.byteSize(DataType.FP32), 4));
            batch.put("OUT", out, released::incrementAndGet);
        };
        FakeInstance.Execution wrong = batch -> {
            Tensor out = Tensor.of(DataType.FP32, Shape.of(1), Arena.ofAuto().allocate(4, 4));
            batch.put("OUT", out, released::incrementAndGet);
        };
        for (FakeInstance.Execution backend : List.of(right, wrong)) {
            for (int requests = 1; requests <= 2; requests++) {
                released.set(0);
                try (Execution execution = new Execution(model, backend)) {
                    Shape[] shapes = {Shape.of(1, 3), Shape.of(1, 2)};
                    submit(execution, List.of(shapes).subList(0, requests).toArray(Shape[]::new));

                    execution.run();

                    if (backend.equals(right)) {
                        assertThat(released).hasValue(0);
                    }
                    execution.observers.forEach(RecordingObserver::close);
                    assertThat(released).hasValue(1);
                }
            }
        }
    }

    @Test
    void leavesTheNextPartsWhereTheyAreWhenARequestFails() {
        try (Execution execution = new Execution(model, batch -> {
            allocate(batch);
            batch.requests().getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "no"));
        })) {
            submit(execution, Shape.of(2, 3), Shape.of(1, 2));

            execution.run();

            execution.observers.getFirst().assertError(ErrorCode.NOT_FOUND, "no");
            assertPart(execution, 1, Shape.of(1, 2), 100, 101);
        }
    }

    @Test
    void doesNotTouchResponsesThatAreMadeOneByOne() {
        try (Execution execution = new Execution(model, batch -> {
            for (var request : batch.requests()) {
                request.response().put("OUT", request.input("IN").orElseThrow());
            }
        })) {
            submit(execution, Shape.of(1, 3), Shape.of(2, 2));

            execution.run();

            assertPart(execution, 0, Shape.of(1, 3), 0, 1, 2);
            assertPart(execution, 1, Shape.of(2, 2), 100, 101, 102, 103);
        }
    }

    private static ModelSettings model(TensorSpec output) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, ANY).with(TensorSpec.Trait.RAGGED))
                .output(output)
                .batchOutput(new BatchOutput(BatchOutput.Kind.SCATTER_WITH_INPUT_SHAPE, List.of("OUT"), "IN"))
                .build();
    }

    private static void submit(Execution execution, Shape... shapes) {
        for (int i = 0; i < shapes.length; i++) {
            execution.submit(
                    execution.request().floats("IN", shapes[i], 100f * i).of(Math.toIntExact(shapes[i].dim(0))));
        }
    }

    private static void assertPart(Execution execution, int index, Shape shape, float... content) {
        RecordingObserver observer = execution.observers.get(index);
        assertThat(observer.output("OUT").shape()).isEqualTo(shape);
        assertThat(observer.floats("OUT")).containsExactly(content);
    }
}
