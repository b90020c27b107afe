package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that requests with wrong outputs fail with a text that names them. Nothing leaks. */
final class WrongOutputTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    /** The possible errors of a backend with an output. */
    enum Wrong {
        BATCH_SIZE("shape [5,2] (expected: first dimension %d, the batch size)") {
            @Override
            void give(Batch batch) {
                batch.allocate("OUT", DataType.FP32, Shape.of(5, 2));
            }
        },
        SCALAR("shape [] (expected: first dimension %d, the batch size)") {
            @Override
            void give(Batch batch) {
                batch.allocate("OUT", DataType.FP32, Shape.SCALAR);
            }
        },
        TWICE("given twice (expected: once)") {
            @Override
            void give(Batch batch) {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
            }
        },
        TWO_WAYS("given twice (expected: once)") {
            @Override
            void give(Batch batch) {
                InferenceRequest request = batch.requests().getLast();
                request.response().allocate("OUT", DataType.FP32, Shape.of(request.batchSize(), 2));
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
            }
        },
        TWO_WAYS_AROUND("given twice (expected: once)") {
            @Override
            void give(Batch batch) {
                InferenceRequest request = batch.requests().getLast();
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
                request.response().allocate("OUT", DataType.FP32, Shape.of(request.batchSize(), 2));
            }
        },
        TOO_LARGE("shape [%d,9223372036854775807] (expected: a size that fits 64 bits)") {
            @Override
            void give(Batch batch) {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), Long.MAX_VALUE));
            }
        },
        VARIABLE_SHAPE("shape [%d,-1] (expected: no variable dimension)") {
            @Override
            void give(Batch batch) {
                batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), -1));
            }
        },
        JAVA_ARRAY("lies in a Java array (expected: native memory that any thread may use)") {
            @Override
            void give(Batch batch) {
                put(batch, MemorySegment.ofArray(new byte[8 * batch.size()]));
            }
        },
        CONFINED("lies in a confined arena (expected: native memory that any thread may use)") {
            @Override
            void give(Batch batch) {
                try (Arena arena = Arena.ofConfined()) {
                    put(batch, arena.allocate(8L * batch.size()));
                }
            }
        };

        private final String text;

        Wrong(String text) {
            this.text = text;
        }

        abstract void give(Batch batch);

        private static void put(Batch batch, MemorySegment data) {
            AtomicInteger released = new AtomicInteger();
            try {
                Tensor tensor = Tensor.of(DataType.FP32, Shape.of(batch.size(), 2), data);
                batch.put("OUT", tensor, released::incrementAndGet);
            } finally {
                assertThat(released).hasValue(1);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusesAWrongOutputAndFailsItsRequests(Wrong wrong) {
        try (Execution single = new Execution(model, wrong::give);
                Execution several = new Execution(model, wrong::give)) {
            Execution.submit(single, 1);
            Execution.submit(several, 1, 2);

            single.run();
            several.run();

            String prefix = "output 'OUT' of model 'm': ";
            single.observers.forEach(
                    observer -> observer.assertError(ErrorCode.INTERNAL, prefix + wrong.text.formatted(1)));
            several.observers.forEach(
                    observer -> observer.assertError(ErrorCode.INTERNAL, prefix + wrong.text.formatted(3)));
        }
    }

    /** As the reference server does; the log says so. */
    @Test
    void dropsOutputsThatTheConfigurationDoesNotHave() {
        AtomicInteger released = new AtomicInteger();
        FakeInstance.Execution backend = batch -> {
            batch.allocate("WHAT", DataType.FP32, Shape.of(7)).data().set(ValueLayout.JAVA_FLOAT, 24, 1);
            batch.allocateBytes("", Shape.of(1), 4).data().fill((byte) 0);
            batch.put(
                    "\u0000",
                    Tensor.of(DataType.FP32, Shape.of(1), MemorySegment.ofArray(new float[1])),
                    released::incrementAndGet);
            for (InferenceRequest request : batch.requests()) {
                InferenceResponse response = request.response();
                response.allocate("WHAT", DataType.INT8, Shape.of(0));
                response.allocate("WHAT", DataType.INT8, Shape.of(3)); // not part of a response, so no error
                response.put(
                        "MINE",
                        Tensor.of(DataType.FP32, Shape.of(1), Arena.global().allocate(4)),
                        released::incrementAndGet);
            }
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
            batch.allocate("MORE", DataType.FP32, Shape.of(batch.size(), 1));
        };
        try (Execution single = new Execution(model, backend);
                Execution several = new Execution(model, backend)) {
            Execution.submit(single, 1);
            Execution.submit(several, 1, 2);
            single.run();
            several.run();
            for (Execution execution : List.of(single, several)) {
                execution.observers.forEach(
                        observer -> assertThat(observer.response().outputs())
                                .extracting(NamedTensor::name)
                                .containsExactly("OUT", "MORE"));
            }
            assertThat(released).hasValue(5);
        }
    }

    @Test
    void refusesUnknownOutputsThatArePossibleNowhere() {
        try (Execution execution = new Execution(model, batch -> {
            assertThatThrownBy(() -> batch.allocate("WHAT", DataType.FP32, Shape.of(-1)))
                    .isInstanceOf(BackendException.class);
            assertThatThrownBy(() -> batch.allocate("WHAT", DataType.BYTES, Shape.of(1)))
                    .isInstanceOf(BackendException.class);
            assertThatThrownBy(() -> batch.allocateBytes("WHAT", Shape.of(1), -1))
                    .isInstanceOf(BackendException.class);
            assertThatThrownBy(() -> batch.allocate("WHAT", DataType.FP64, Shape.of(Long.MAX_VALUE)))
                    .isInstanceOf(BackendException.class);
            FakeInstance.copy(batch);
        })) {
            Execution.submit(execution, 1);
            execution.run();
            assertThat(execution.observers.getFirst().output("OUT").shape()).isEqualTo(Shape.of(1, 2));
        }
    }

    @Test
    void passesOnAnotherType() {
        try (Execution single = new Execution(model, WrongOutputTest::giveNumbers);
                Execution several = new Execution(model, WrongOutputTest::giveNumbers)) {
            Execution.submit(single, 1);
            Execution.submit(several, 1, 2);

            single.run();
            several.run();

            assertThat(single.observers.getFirst().output("OUT").type()).isEqualTo(DataType.INT32);
            Tensor second = several.observers.getLast().output("OUT");
            assertThat(second.type()).isEqualTo(DataType.INT32);
            assertThat(second.shape()).isEqualTo(Shape.of(2, 2));
            assertThat(second.data().toArray(ValueLayout.JAVA_INT_UNALIGNED)).containsExactly(2, 3, 4, 5);
            assertThat(several.observers.getLast().output("MORE").type()).isEqualTo(DataType.BYTES);
        }
    }

    private static void giveNumbers(Batch batch) {
        MemorySegment data =
                batch.allocate("OUT", DataType.INT32, Shape.of(batch.size(), 2)).data();
        for (int i = 0; i < 2 * batch.size(); i++) {
            data.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i, i);
        }
        batch.allocateBytes("MORE", Shape.of(batch.size(), 1), 4L * batch.size())
                .data()
                .fill((byte) 0);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 3, 7, 12, 40})
    void refusesByteStringsThatDoNotFillTheirMemory(int size) {
        ModelSettings strings = ModelSettings.builder("s", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(1)))
                .build();
        try (Execution execution = new Execution(strings, batch -> {
            MemorySegment data =
                    batch.allocateBytes("OUT", Shape.of(2, 1), size).data();
            data.fill((byte) 0);
            if (size >= 8) {
                data.set(ValueLayout.JAVA_INT_UNALIGNED, 4, 100);
            }
        })) {
            Execution.submit(execution, 1, 1);

            execution.run();

            execution.observers.forEach(observer -> observer.assertError(
                    ErrorCode.INTERNAL,
                    "output 'OUT' of model 's': " + size
                            + " bytes (expected: [2,1] byte strings, each with its length in front)"));
        }
    }

    @Test
    void refusesByteStringsOfNegativeSize() {
        ModelSettings strings = ModelSettings.builder("s", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(1)))
                .build();
        try (Execution execution = new Execution(strings, batch -> batch.allocateBytes("OUT", Shape.of(2, 1), -1))) {
            Execution.submit(execution, 1, 1);

            execution.run();

            execution.observers.forEach(observer ->
                    observer.assertError(ErrorCode.INTERNAL, "output 'OUT' of model 's': size -1 (expected: >= 0)"));
        }
    }

    @Test
    void refusesAnOutputThatReshapeDoesNotFit() {
        ModelSettings reshaped = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(4)).withReshape(Shape.of(2, 2)))
                .build();
        try (Execution execution =
                new Execution(reshaped, batch -> batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2, 3)))) {
            Execution.submit(execution, 1);

            execution.run();

            execution
                    .observers
                    .getFirst()
                    .assertError(ErrorCode.INTERNAL, "output 'OUT' of model 'm': shape [1,2,3] (expected: [-1,2,2])");
        }
    }

    @Test
    void reportsExhaustedMemory() {
        try (Execution execution =
                new Execution(model, new LeakCheckingMemory(40), batch -> FakeInstance.copy(batch))) {
            Execution.submit(execution, 1, 1);

            execution.run();

            execution.observers.forEach(observer ->
                    observer.assertError(ErrorCode.UNAVAILABLE, "out of memory: 16 bytes wanted, 32 of 40 in use"));
        }
    }

    @Test
    void isOfNoUseAfterItsEnd() {
        Batch[] kept = new Batch[1];
        InferenceRequest[] keptRequest = new InferenceRequest[1];
        InferenceResponse[] keptResponse = new InferenceResponse[1];
        AtomicInteger released = new AtomicInteger();
        try (Execution execution = new Execution(model, batch -> {
            kept[0] = batch;
            keptRequest[0] = batch.requests().getFirst();
            keptResponse[0] = keptRequest[0].response();
        })) {
            Execution.submit(execution, 1);
            execution.run();
            Tensor late =
                    Tensor.of(DataType.FP32, Shape.of(1, 2), Arena.global().allocate(8));

            assertThatThrownBy(() -> kept[0].put("OUT", late, released::incrementAndGet))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> keptResponse[0].put("OUT", late, released::incrementAndGet))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> kept[0].gather("IN")).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> kept[0].allocate("OUT", DataType.FP32, Shape.of(1, 2)))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(kept[0]::defer).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> keptRequest[0].input("IN")).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(keptRequest[0]::response).isInstanceOf(IllegalStateException.class);
            keptRequest[0].fail(new BackendException(ErrorCode.INTERNAL, "late"));
            assertThat(released).hasValue(2);
        }
    }
}
