package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.BatchInput.Kind;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** Inputs that the server derives from the requests of a batch. */
final class DerivedInputsTest {
    private static final TensorSpec RAGGED =
            TensorSpec.of("IN", DataType.FP32, Shape.of(-1, -1)).with(TensorSpec.Trait.RAGGED);

    /** A batch of two items of [3,1], one of [2,2], and one of nothing. */
    private static final List<Shape> SOURCES = List.of(Shape.of(2, 3, 1), Shape.of(1, 2, 2), Shape.of(1, 0, 5));

    @Test
    void countsElements() {
        assertThat(numbers(Kind.ELEMENT_COUNT, SOURCES, true)).containsExactly(6, 4, 0);
        assertThat(numbers(Kind.ELEMENT_COUNT, List.of(Shape.of(7)), true)).containsExactly(7);
    }

    @Test
    void accumulates() {
        assertThat(numbers(Kind.ACCUMULATED_ELEMENT_COUNT, SOURCES, true)).containsExactly(6, 10, 10);
    }

    @Test
    void accumulatesFromZero() {
        assertThat(numbers(Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, SOURCES, true))
                .containsExactly(0, 6, 10, 10);
    }

    @Test
    void hasTheLargestCountAsShape() {
        assertThat(DerivedInputs.shape(Kind.MAX_ELEMENT_COUNT_AS_SHAPE, SOURCES, true))
                .isEqualTo(Shape.of(6));
        assertThat(DerivedInputs.shape(Kind.MAX_ELEMENT_COUNT_AS_SHAPE, List.of(Shape.of(1, 0)), true))
                .isEqualTo(Shape.of(0));
    }

    @Test
    void listsShapesOfItems() {
        assertThat(DerivedInputs.shape(Kind.ITEM_SHAPE, SOURCES, true)).isEqualTo(Shape.of(4, 2));
        assertThat(numbers(Kind.ITEM_SHAPE, SOURCES, true)).containsExactly(3, 1, 3, 1, 2, 2, 0, 5);
    }

    @Test
    void listsShapesOfItemsFlat() {
        assertThat(DerivedInputs.shape(Kind.ITEM_SHAPE_FLATTEN, SOURCES, true)).isEqualTo(Shape.of(8));
        assertThat(numbers(Kind.ITEM_SHAPE_FLATTEN, SOURCES, true)).containsExactly(3, 1, 3, 1, 2, 2, 0, 5);
    }

    @Test
    void takesARequestWithoutBatchDimensionForOneItem() {
        List<Shape> sources = List.of(Shape.of(2, 3));

        assertThat(DerivedInputs.shape(Kind.ITEM_SHAPE, sources, false)).isEqualTo(Shape.of(1, 2));
        assertThat(numbers(Kind.ITEM_SHAPE, sources, false)).containsExactly(2, 3);
        assertThat(numbers(Kind.ITEM_SHAPE_FLATTEN, sources, false)).containsExactly(2, 3);
    }

    /** Kind, type, sources, and the first number that does not fit. */
    static final List<Arguments> TOO_LARGE = List.of(
            arguments(Kind.ELEMENT_COUNT, DataType.INT32, List.of(Shape.of(1L << 31)), "2147483648"),
            arguments(
                    Kind.ACCUMULATED_ELEMENT_COUNT,
                    DataType.INT32,
                    List.of(Shape.of(Integer.MAX_VALUE), Shape.of(1)),
                    "2147483648"),
            arguments(
                    Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
                    DataType.INT32,
                    List.of(Shape.of(1L << 32)),
                    "4294967296"),
            arguments(Kind.ITEM_SHAPE, DataType.INT32, List.of(Shape.of(1, 0, 1L << 40)), "1099511627776"),
            arguments(Kind.ITEM_SHAPE_FLATTEN, DataType.INT32, List.of(Shape.of(1, 0, 1L << 33)), "8589934592"),
            arguments(Kind.ELEMENT_COUNT, DataType.FP32, List.of(Shape.of((1L << 24) + 1)), "16777217"));

    @ParameterizedTest
    @FieldSource("TOO_LARGE")
    void refusesNumbersThatItsTypeCannotHold(Kind kind, DataType type, List<Shape> sources, String number) {
        MemorySegment data = Arena.ofAuto().allocate(64);

        assertThatExceptionOfType(ArithmeticException.class)
                .isThrownBy(() -> DerivedInputs.write(kind, type, sources, true, data))
                .withMessage(number + " does not fit " + type);
    }

    @Test
    void writesTheLargestPossibleNumbers() {
        MemorySegment data = Arena.ofAuto().allocate(4);

        DerivedInputs.write(Kind.ELEMENT_COUNT, DataType.INT32, List.of(Shape.of(Integer.MAX_VALUE)), true, data);
        assertThat(data.get(ValueLayout.JAVA_INT_UNALIGNED, 0)).isEqualTo(Integer.MAX_VALUE);
        DerivedInputs.write(Kind.ELEMENT_COUNT, DataType.FP32, List.of(Shape.of(1L << 40)), true, data);
        assertThat(data.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0)).isEqualTo(0x1p40f);
    }

    @Test
    void neverWrapsASum() {
        List<Shape> sources = List.of(Shape.of(Long.MAX_VALUE), Shape.of(Long.MAX_VALUE));

        assertThatExceptionOfType(ArithmeticException.class)
                .isThrownBy(() -> DerivedInputs.shape(Kind.ITEM_SHAPE, sources, true));
        assertThatExceptionOfType(ArithmeticException.class)
                .isThrownBy(() -> DerivedInputs.write(
                        Kind.ACCUMULATED_ELEMENT_COUNT,
                        DataType.FP32,
                        sources,
                        true,
                        Arena.ofAuto().allocate(64)));
    }

    @Test
    void writesBothTypes() {
        ModelSettings model = model(
                new BatchInput(Kind.ACCUMULATED_ELEMENT_COUNT, List.of("INTS"), DataType.INT32, "IN"),
                new BatchInput(Kind.ACCUMULATED_ELEMENT_COUNT, List.of("FLOATS"), DataType.FP32, "IN"));
        try (Execution execution = new Execution(model, batch -> {
            assertThat(ints(batch.gather("INTS"))).containsExactly(6, 10);
            Tensor floats = batch.gather("FLOATS");
            assertThat(floats.type()).isEqualTo(DataType.FP32);
            assertThat(floats.shape()).isEqualTo(Shape.of(2));
            assertThat(floats.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED)).containsExactly(6, 10);
        })) {
            submit(execution, Shape.of(2, 3, 1), Shape.of(1, 2, 2));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void servesAllTargets() {
        ModelSettings model = model(new BatchInput(Kind.ELEMENT_COUNT, List.of("A", "B", "C"), DataType.INT32, "IN"));
        try (Execution execution = new Execution(model, batch -> {
            assertThat(batch.inputs()).containsExactly("IN", "A", "B", "C");
            assertThat(ints(batch.gather("B"))).containsExactly(6, 4);
            for (String target : List.of("A", "C")) { // each has a name, and all lie in the same memory
                assertThat(batch.gather(target).name()).contains(target);
                assertThat(batch.gather(target)).isSameAs(batch.gather(target));
                assertThat(batch.gather(target).data())
                        .isSameAs(batch.gather("B").data());
            }
            assertThat(batch.requests().getFirst().input("A")).isEmpty();
        })) {
            submit(execution, Shape.of(2, 3, 1), Shape.of(1, 2, 2));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void isFoundInABatchOfOneRequest() {
        ModelSettings model = model(
                new BatchInput(Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, List.of("ENDS"), DataType.INT32, "IN"),
                new BatchInput(Kind.MAX_ELEMENT_COUNT_AS_SHAPE, List.of("MAX"), DataType.FP32, "IN"));
        try (Execution execution = new Execution(model, batch -> {
            assertThat(batch.inputs()).containsExactly("IN", "ENDS", "MAX");
            assertThat(ints(batch.gather("ENDS"))).containsExactly(0, 6);
            assertThat(batch.gather("MAX").shape()).isEqualTo(Shape.of(6));
            assertThat(batch.gather("IN").shape()).isEqualTo(Shape.of(6));
        })) {
            submit(execution, Shape.of(2, 3, 1));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void mayBeGivenAsAnOutput() {
        ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(RAGGED)
                .batchInput(new BatchInput(Kind.ELEMENT_COUNT, List.of("COUNT"), DataType.INT32, "IN"))
                .output(TensorSpec.of("OUT", DataType.INT32, Shape.SCALAR))
                .build();
        try (Execution single = new Execution(model, DerivedInputsTest::giveCounts);
                Execution several = new Execution(model, DerivedInputsTest::giveCounts)) {
            submit(single, Shape.of(1, 3, 1));
            submit(several, Shape.of(1, 3, 1), Shape.of(1, 2, 2));

            single.run();
            several.run();

            assertThat(ints(single.observers.getFirst().output("OUT"))).containsExactly(3);
            assertThat(ints(several.observers.getFirst().output("OUT"))).containsExactly(3);
            assertThat(ints(several.observers.getLast().output("OUT"))).containsExactly(4);
        }
    }

    private static void giveCounts(Batch batch) {
        batch.put("OUT", batch.gather("COUNT"));
    }

    @Test
    void failsTheBatchForANumberThatDoesNotFit() {
        ModelSettings model = model(new BatchInput(Kind.ITEM_SHAPE, List.of("SHAPE"), DataType.INT32, "IN"));
        try (Execution execution = new Execution(model, batch -> batch.gather("SHAPE"))) {
            submit(execution, Shape.of(1, 2, 2), Shape.of(1, 0, 1L << 40));

            execution.run();

            execution.observers.forEach(observer -> observer.assertError(
                    ErrorCode.INVALID_ARGUMENT, "input 'SHAPE' of model 'm': 1099511627776 does not fit INT32"));
        }
    }

    @Test
    void givesTheMemoryBackOfWhatCannotBeWritten() {
        ModelSettings model = model(new BatchInput(Kind.ELEMENT_COUNT, List.of("COUNT"), DataType.INT32, "IN"));
        LeakCheckingMemory checked = new LeakCheckingMemory();
        TensorMemory tooSmall = new TensorMemory() {
            @Override
            public TensorBuffer allocate(long byteSize) {
                return checked.allocate(byteSize - 1);
            }

            @Override
            public long bytesInUse() {
                return checked.bytesInUse();
            }
        };
        FakeInstance instance = new FakeInstance(batch -> batch.gather("COUNT"));
        SteppedScheduler scheduler =
                new SteppedScheduler(model, new BatchPlanner(64, List.of(), 0), tooSmall, instance);
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(
                Requests.to(model, checked).floats("IN", Shape.of(1, 2, 2), 0).of(1), observer);

        scheduler.drain();

        assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
        checked.close();
    }

    @Test
    void failsOnShapesThatExceedMemory() {
        ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(Integer.MAX_VALUE)
                .input(RAGGED)
                .batchInput(new BatchInput(Kind.ITEM_SHAPE, List.of("SHAPE"), DataType.INT32, "IN"))
                .build();
        LeakCheckingMemory memory = new LeakCheckingMemory(1_000);
        try (Execution execution = new Execution(model, memory, batch -> batch.gather("SHAPE"))) {
            execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(Integer.MAX_VALUE, 0, 1), 0)
                    .of(Integer.MAX_VALUE));

            execution.run();

            assertThat(execution.observers.getFirst().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        }
    }

    @Test
    void isNotThereWithoutItsSource() {
        ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("A", DataType.FP32, Shape.of(2)))
                .input(RAGGED.with(TensorSpec.Trait.OPTIONAL))
                .batchInput(new BatchInput(Kind.ELEMENT_COUNT, List.of("COUNT"), DataType.INT32, "IN"))
                .build();
        try (Execution execution = new Execution(model, batch -> {
            assertThat(batch.inputs()).containsExactly("A");
            batch.gather("COUNT");
        })) {
            execution.submit(execution.request().floats("A", Shape.of(1, 2), 0).of(1));

            execution.run();

            execution
                    .observers
                    .getFirst()
                    .assertError(ErrorCode.INVALID_ARGUMENT, "input 'IN' of model 'm': not in the request");
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void agreesWithTheFakeOfTheTestkit(Kind kind) {
        ModelSettings model = model(new BatchInput(kind, List.of("DERIVED"), DataType.INT32, "IN"));
        try (Execution execution = new Execution(model, batch -> {
            FakeRequest[] requests = batch.requests().stream()
                    .map(request -> new FakeRequest(request.batchSize(), List.of())
                            .with("IN", request.input("IN").orElseThrow()))
                    .toArray(FakeRequest[]::new);
            LeakCheckingMemory memory = new LeakCheckingMemory();
            try (FakeBatch fake = new FakeBatch(model, memory, requests)) {
                assertThat(fake.inputs()).isEqualTo(batch.inputs());
                Tensor faked = fake.gather("DERIVED");
                Tensor derived = batch.gather("DERIVED");
                assertThat(faked.shape()).isEqualTo(derived.shape());
                if (kind != Kind.MAX_ELEMENT_COUNT_AS_SHAPE) {
                    assertThat(ints(faked)).isEqualTo(ints(derived));
                }
                assertThat(fake.gather("IN").shape())
                        .isEqualTo(batch.gather("IN").shape());
            }
            memory.close();
        })) {
            submit(execution, Shape.of(2, 3, 1), Shape.of(1, 2, 2), Shape.of(1, 0, 5));

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    private static ModelSettings model(BatchInput... derived) {
        ModelSettingsBuilder model =
                ModelSettings.builder("m", 1).maxBatchSize(64).input(RAGGED);
        for (BatchInput input : derived) {
            model.batchInput(input);
        }
        return model.build();
    }

    private static void submit(Execution execution, Shape... shapes) {
        for (Shape shape : shapes) {
            int items = Math.toIntExact(shape.dim(0));
            execution.submit(execution.request().floats("IN", shape, 0).of(items));
        }
    }

    private static int[] ints(Tensor tensor) {
        return tensor.data().toArray(ValueLayout.JAVA_INT_UNALIGNED);
    }

    /** Derives an input in both types, which must agree. */
    private static List<Integer> numbers(Kind kind, List<Shape> sources, boolean batched) {
        long count = DerivedInputs.shape(kind, sources, batched).elementCount();
        MemorySegment ints = Arena.ofAuto().allocate(4 * count);
        MemorySegment floats = Arena.ofAuto().allocate(4 * count);
        DerivedInputs.write(kind, DataType.INT32, sources, batched, ints);
        DerivedInputs.write(kind, DataType.FP32, sources, batched, floats);
        List<Integer> numbers = new ArrayList<>();
        for (long at = 0; at < 4 * count; at += 4) {
            numbers.add(ints.get(ValueLayout.JAVA_INT_UNALIGNED, at));
            assertThat(floats.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at)).isEqualTo((float) numbers.getLast());
        }
        return numbers;
    }
}
