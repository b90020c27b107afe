package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Inputs of a batch that are parts of one allocation, such as the outputs of an earlier batch. */
final class NeighboringInputsTest {
    private static final int ITEM = 2 * Float.BYTES;

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    private final List<Tensor> gathered = new ArrayList<>();

    /** Allocates items that count from 0, and submits a request for each of some ranges of them, in that order. */
    private static List<RecordingObserver> submit(Execution execution, int items, int... firstAndCount) {
        TensorBuffer buffer = execution.memory.allocate(items * (long) ITEM);
        for (int i = 0; i < items * 2; i++) {
            buffer.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, i);
        }
        ReferenceCountedMemory memory = ReferenceCountedMemory.of(buffer);
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < firstAndCount.length; i += 2) {
            int first = firstAndCount[i];
            int count = firstAndCount[i + 1];
            memory.retain();
            Tensor part = Tensor.of(
                    DataType.FP32,
                    Shape.of(count, 2),
                    buffer.segment().asSlice(first * (long) ITEM, count * (long) ITEM));
            observers.add(execution.submit(new CheckedRequest(
                    new ModelVersion("m", 1),
                    String.valueOf(i),
                    RequestInputs.of(List.of(new NamedTensor("IN", part)), count, memory::release),
                    RequestOutputs.all(List.of("OUT", "MORE")),
                    Map.of(),
                    RequestOptions.DEFAULT,
                    0)));
        }
        memory.release();
        return observers;
    }

    private void passOn(Batch batch) {
        Tensor in = batch.gather("IN");
        gathered.add(in);
        assertThat(batch.gather("IN")).isSameAs(in);
        batch.put("OUT", in);
    }

    private static long copies(Execution execution) {
        return execution.scheduler.model.meter().read().inputCopies();
    }

    private static List<Float> floats(Tensor tensor) {
        return LongStream.range(0, tensor.shape().elementCount())
                .mapToObj(i -> tensor.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i))
                .toList();
    }

    @Test
    void stayInPlace() {
        try (Execution execution = new Execution(model, this::passOn)) {
            List<RecordingObserver> all = submit(execution, 4, 1, 1, 2, 2);
            long address = execution
                    .requests
                    .getFirst()
                    .checked()
                    .inputs()
                    .getFirst()
                    .tensor()
                    .data()
                    .address();

            execution.run();

            assertThat(gathered.getFirst().data().address()).isEqualTo(address);
            assertThat(gathered.getFirst().shape()).isEqualTo(Shape.of(3, 2));
            assertThat(copies(execution)).isZero();
            assertThat(execution.memory.buffersInUse()).as("that of the inputs").isOne();
            assertThat(all.get(0).floats("OUT")).containsExactly(2, 3);
            all.get(0).close();
            assertThat(all.get(1).floats("OUT")).containsExactly(4, 5, 6, 7);
            assertThat(all.get(1).output("OUT").data().address()).isEqualTo(address + ITEM);
            all.get(1).close();
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    @Test
    void areCopiedTogetherInAnotherOrder() {
        try (Execution execution = new Execution(model, this::passOn)) {
            List<RecordingObserver> all = submit(execution, 2, 1, 1, 0, 1);

            execution.run();

            assertThat(copies(execution)).isOne();
            assertThat(floats(gathered.getFirst())).containsExactly(2f, 3f, 0f, 1f);
            assertThat(all.get(0).floats("OUT")).containsExactly(2, 3);
            assertThat(all.get(1).floats("OUT")).containsExactly(0, 1);
        }
    }

    @Test
    void areCopiedTogetherWithAGap() {
        try (Execution execution = new Execution(model, this::passOn)) {
            submit(execution, 3, 0, 1, 2, 1);

            execution.run();

            assertThat(copies(execution)).isOne();
            assertThat(floats(gathered.getFirst())).containsExactly(0f, 1f, 4f, 5f);
        }
    }

    /** Each request keeps its own inputs; the response of one may lie in those of several. */
    @Test
    void areKeptForAnOutputThatLiesInSeveral() {
        try (Execution execution = new Execution(model, batch -> {
            Tensor in = batch.gather("IN");
            Tensor both = Tensor.of(DataType.FP32, Shape.of(1, 4), in.data());
            batch.requests().get(0).response().put("MORE", both);
        })) {
            List<RecordingObserver> first = submit(execution, 2, 0, 1, 1, 1);

            execution.run();

            first.get(1).close();
            assertThat(execution.memory.buffersInUse()).isOne();
            assertThat(first.get(0).floats("MORE")).containsExactly(0, 1, 2, 3);
            first.get(0).close();
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    /** Each response keeps its own part, and so the allocation. */
    @Test
    void areFreedWithTheLastResponse() {
        try (Execution execution = new Execution(model, batch -> {
            Tensor in = batch.gather("IN");
            for (int i = 0; i < batch.requests().size(); i++) {
                Tensor part = Tensor.of(DataType.FP32, Shape.of(1, 2), in.data().asSlice(i * (long) ITEM, ITEM));
                batch.requests().get(i).response().put("OUT", part);
            }
        })) {
            List<RecordingObserver> all = submit(execution, 3, 0, 1, 1, 1, 2, 1);

            execution.run();

            assertThat(copies(execution)).isZero();
            for (int i = 2; i >= 0; i--) {
                assertThat(execution.memory.buffersInUse()).isOne();
                assertThat(all.get(i).floats("OUT")).containsExactly(2 * i, 2 * i + 1);
                all.get(i).close();
            }
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }
}
