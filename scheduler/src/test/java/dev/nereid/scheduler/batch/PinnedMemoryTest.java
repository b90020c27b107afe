package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Inputs and outputs that a backend wants in pinned memory. */
final class PinnedMemoryTest {
    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);
    private static final Device GPU = new Device(Device.Kind.GPU, 0);

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<MemoryPlace> places = new ArrayList<>();
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @AfterEach
    void allIsReleased() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(RecordingObserver::close);
        memory.close();
    }

    @Test
    void holdsInputsAndOutputsWhereItIsLargeEnough() {
        memory.withPinned(32);
        execute(PinnedMemoryTest::copy, 1, 3);

        assertThat(places).containsExactly(PINNED, PINNED);
        assertOutputs();
    }

    @Test
    void holdsTheInputOfOneRequest() {
        memory.withPinned(16);
        execute(PinnedMemoryTest::copy, 1);

        assertThat(places).containsExactly(PINNED, PINNED);
        assertOutputs();
    }

    @Test
    void leavesToOrdinaryMemoryWhatDoesNotFit() {
        memory.withPinned(16);
        execute(PinnedMemoryTest::copy, 1, 3);
        assertThat(places).as("the input takes all of it").containsExactly(PINNED, MemoryPlace.HOST);
        assertOutputs();

        execute(PinnedMemoryTest::copy, 1, 3, 5);
        assertThat(places).containsExactly(MemoryPlace.HOST, MemoryPlace.HOST);
    }

    @Test
    void isOrdinaryMemoryToo() {
        memory.withPinned(16);
        execute(
                batch -> {
                    Tensor pinned = batch.gather("IN", PINNED);
                    assertThat(batch.gather("IN", PINNED)).isSameAs(pinned);
                    assertThat(batch.gather("IN")).isSameAs(pinned);
                    return copy(batch);
                },
                1,
                3);
        assertOutputs();
    }

    @Test
    void outputMayLieInAPinnedInput() {
        memory.withPinned(16);
        execute(
                batch -> {
                    Tensor in = batch.gather("IN", PINNED);
                    batch.put("OUT", in);
                    return List.of(in.place());
                },
                1,
                3);
        assertThat(places).containsExactly(PINNED);
        assertOutputs();
    }

    private void assertOutputs() {
        for (int i = 0; i < observers.size(); i++) {
            assertThat(observers.get(i).floats("OUT")).containsExactly(2 * i + 1, 2 * i + 2);
        }
    }

    /** Writes the input to the output. Returns the places of both. */
    private static List<MemoryPlace> copy(Batch batch) {
        Tensor in = batch.gather("IN", PINNED);
        Tensor out = batch.allocate("OUT", DataType.FP32, in.shape(), PINNED);
        assertThat(out.data().toArray(ValueLayout.JAVA_BYTE)).as("zeroed").containsOnly(0);
        out.data().copyFrom(in.data());
        return List.of(in.place(), out.place());
    }

    private void execute(Execution execution, float... firsts) {
        observers.forEach(RecordingObserver::close);
        observers.clear();
        places.clear();
        SteppedScheduler scheduler = new SteppedScheduler(
                model, new BatchPlanner(64, List.of(), 0), BatchingPolicy.NONE, memory, ExecutionTraits.DEFAULT);
        scheduler.add(GPU, new FakeInstance(batch -> places.addAll(execution.run(batch))));
        for (float first : firsts) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(
                    Requests.to(model, memory)
                            .floats("IN", Shape.of(1, 2), first)
                            .of(1),
                    observer);
        }
        assertThat(scheduler.step()).isTrue();
    }

    private interface Execution {
        List<MemoryPlace> run(Batch batch);
    }
}
