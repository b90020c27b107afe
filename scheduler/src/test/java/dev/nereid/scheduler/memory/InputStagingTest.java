package dev.nereid.scheduler.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeFence;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.FakeStrategy;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Inputs on devices. Those in memory of clients are tested by {@link ClientMemoryTest}. */
final class InputStagingTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace GPU1 = new MemoryPlace(MemoryPlace.Kind.GPU, 1);
    private static final MemoryPlace GPU2 = new MemoryPlace(MemoryPlace.Kind.GPU, 2);
    private static final ExecutionTraits ANYWHERE =
            ExecutionTraits.DEFAULT.withPlaces(Set.of(MemoryPlace.Kind.GPU, MemoryPlace.Kind.HOST));

    private final FakeDeviceMemory gpu0 = new FakeDeviceMemory(GPU0);
    private final FakeDeviceMemory gpu1 = new FakeDeviceMemory(GPU1);
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu0, gpu1);
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<MemoryPlace> seen = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();

    @AfterEach
    void checkMemory() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(RecordingObserver::close);
        memory.close();
    }

    @Test
    void movesInputsToTheHost() {
        SteppedScheduler scheduler = scheduler(ExecutionTraits.DEFAULT);

        submit(scheduler, on(gpu0, 1));
        submit(scheduler, on(gpu1, 3));
        submit(scheduler, onHost(5));
        scheduler.drain();

        assertThat(observers.get(0).floats("OUT")).containsExactly(1, 2);
        assertThat(observers.get(1).floats("OUT")).containsExactly(3, 4);
        assertThat(observers.get(2).floats("OUT")).containsExactly(5, 6);
        assertThat(seen).containsOnly(MemoryPlace.HOST);
        assertThat(gpu0.copiesToHost() + gpu1.copiesToHost()).isEqualTo(2);
        assertThat(memory.buffersInUse()).as("the output of the batch").isEqualTo(1);
        assertThat(gpu0.buffersInUse()).isZero();
    }

    @Test
    void leavesInputsOnTheDeviceOfTheInstance() {
        SteppedScheduler scheduler = scheduler(ANYWHERE, new Device(Device.Kind.GPU, 0));

        submit(scheduler, on(gpu0, 1));
        submit(scheduler, on(gpu1, 3));
        scheduler.drain();

        assertThat(seen).containsExactly(GPU0, MemoryPlace.HOST);
        assertThat(observers.get(0).floats("OUT")).as("gathered").containsExactly(1, 2);
        assertThat(observers.get(1).floats("OUT")).containsExactly(3, 4);
    }

    @Test
    void copiesInputsThatBeginWhereKernelsMayReadNoNumbers() {
        List<Long> addresses = new ArrayList<>();
        SteppedScheduler scheduler = scheduler(new Device(Device.Kind.GPU, 0), ANYWHERE, new FakeInstance(batch -> {
            for (InferenceRequest request : batch.requests()) {
                Tensor in = request.input("IN").orElseThrow();
                seen.add(in.place());
                addresses.add(in.data().address());
            }
            addresses.add(batch.gather("IN", GPU0).data().address());
            FakeInstance.copy(batch);
        }));

        for (int offset : new int[] {1, 64, 256}) {
            TensorBuffer region = gpu0.allocate(offset + 8);
            MemorySegment data = region.segment().asSlice(offset);
            gpu0.write(MemorySegment.ofArray(new float[] {offset, 2}), data);
            Tensor tensor = Tensor.of(DataType.FP32, Shape.of(1, 2), data, GPU0);
            submit(scheduler, Requests.to(model, memory).input("IN", tensor).onRelease(region::close));
            scheduler.drain();
            assertThat(observers.getLast().floats("OUT")).containsExactly(offset, 2);
        }

        assertThat(seen).containsOnly(GPU0);
        assertThat(addresses).allMatch(address -> address % 256 == 0);
        assertThat(gpu0.copies()).as("two of three").isEqualTo(2);
    }

    @Test
    void gathersASingleInputOnTheHost() {
        SteppedScheduler scheduler = scheduler(ANYWHERE, new Device(Device.Kind.GPU, 0));

        submit(scheduler, on(gpu0, 1));
        scheduler.drain();

        assertThat(seen).containsExactly(GPU0);
        assertThat(observers.getFirst().floats("OUT")).containsExactly(1, 2);
        assertThat(gpu0.copiesToHost()).isEqualTo(1);
    }

    @Test
    void movesInputsOnDevicesIfTheInstanceRunsOnNone() {
        SteppedScheduler scheduler = scheduler(ANYWHERE, Device.CPU);

        submit(scheduler, on(gpu0, 1));
        scheduler.drain();

        assertThat(seen).containsExactly(MemoryPlace.HOST);
    }

    @Test
    void failsARequestWhoseInputCannotBeMoved() {
        SteppedScheduler scheduler = scheduler(ExecutionTraits.DEFAULT);
        FakeDeviceMemory unknown = new FakeDeviceMemory(GPU2);

        submit(scheduler, on(unknown, 1));
        submit(scheduler, onHost(5));
        scheduler.drain();

        observers
                .get(0)
                .assertError(
                        ErrorCode.UNSUPPORTED,
                        "input 'IN' of model 'm': lies in " + GPU2 + " (expected: memory of the host)");
        assertThat(observers.get(1).floats("OUT")).containsExactly(5, 6);
        unknown.close();
    }

    @Test
    void namesTheDeviceOfTheInstance() {
        SteppedScheduler scheduler = scheduler(ANYWHERE, new Device(Device.Kind.GPU, 1));
        FakeDeviceMemory unknown = new FakeDeviceMemory(GPU2);

        submit(scheduler, on(unknown, 1));
        scheduler.drain();

        observers
                .getFirst()
                .assertError(
                        ErrorCode.UNSUPPORTED,
                        "input 'IN' of model 'm': lies in " + GPU2 + " (expected: memory of the host or in " + GPU1
                                + ")");
        unknown.close();
    }

    @Test
    void refusesByteStringsWhoseFramingIsNotChecked() {
        ModelSettings strings = ModelSettings.builder("s", 1)
                .input(TensorSpec.of("IN", DataType.BYTES, Shape.of(1)))
                .build();
        SteppedScheduler scheduler = new SteppedScheduler(
                strings, BatchPlanner.oneByOne(), memory, new FakeInstance(batch -> seen.add(GPU0)));
        TensorBuffer buffer = gpu0.allocate(5);
        Tensor tensor = Tensor.of(DataType.BYTES, Shape.of(1), buffer.segment(), GPU0);
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);

        scheduler.submit(
                Requests.to(strings, memory)
                        .input("IN", tensor)
                        .onRelease(buffer::close)
                        .of(1),
                observer);
        scheduler.drain();

        observer.assertError(
                ErrorCode.UNSUPPORTED,
                "input 'IN' of model 's': byte strings in " + GPU0 + " (expected: memory of the host)");
        assertThat(seen).isEmpty();
    }

    @Test
    void waitsForTheWorkThatComputesAnInput() {
        SteppedScheduler scheduler = scheduler(ExecutionTraits.DEFAULT);
        List<String> events = new ArrayList<>();
        Requests request = on(gpu0, 1, new FakeFence(() -> events.add("copies " + gpu0.copiesToHost())));

        submit(scheduler, request);
        scheduler.drain();

        assertThat(events).containsExactly("copies 0");
        assertThat(observers.getFirst().floats("OUT")).containsExactly(1, 2);
    }

    @Test
    void failsARequestWhoseInputWasNotComputed() {
        SteppedScheduler scheduler = scheduler(ExecutionTraits.DEFAULT);

        submit(scheduler, on(gpu0, 1, new FakeFence(() -> {
            throw new BackendException(ErrorCode.UNAVAILABLE, "device lost");
        })));
        scheduler.drain();

        observers.getFirst().assertError(ErrorCode.UNAVAILABLE, "device lost");
    }

    @Test
    void keepsCopiesAsLongAsAnOutputLiesInThem() {
        SteppedScheduler scheduler = scheduler(Device.CPU, ExecutionTraits.DEFAULT, new FakeInstance(batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.response().put("OUT", request.input("IN").orElseThrow());
        }));

        submit(scheduler, on(gpu0, 1));
        scheduler.drain();

        assertThat(observers.getFirst().floats("OUT")).containsExactly(1, 2);
        assertThat(memory.buffersInUse()).isEqualTo(1);
    }

    @Test
    void showsInputsToTheBatchingStrategyOnTheHost() {
        List<Float> read = new ArrayList<>();
        FakeStrategy strategy = new FakeStrategy(request -> {
            Tensor in = request.input("IN").orElseThrow();
            assertThat(request.input("IN")).as("copied once").containsSame(in);
            read.add(in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0));
            return true;
        });
        SteppedScheduler scheduler = new SteppedScheduler(
                model,
                new BatchPlanner(64, List.of(), 0),
                new BatchingPolicy(true, List.of(), 0),
                memory,
                ExecutionTraits.DEFAULT,
                strategy,
                new FakeInstance(FakeInstance::copy));

        submit(scheduler, on(gpu0, 1));
        submit(scheduler, onHost(3));
        scheduler.drain();

        assertThat(strategy.violations()).isEmpty();
        assertThat(read).containsExactly(1f, 3f);
        assertThat(observers.get(0).floats("OUT")).containsExactly(1, 2);
        assertThat(gpu0.copiesToHost())
                .as("for the strategy and for the backend")
                .isEqualTo(2);
    }

    /** Kernels cannot read numbers there, and no memory is left for a copy on the device. */
    @Test
    void movesAnInputToTheHostIfItBeginsAtAnyOffsetAndNoMemoryIsLeft() {
        SteppedScheduler scheduler = scheduler(ANYWHERE, new Device(Device.Kind.GPU, 0));
        for (boolean left : new boolean[] {true, false}) {
            TensorBuffer region = gpu0.allocate(64);
            gpu0.write(
                    MemorySegment.ofArray(new float[] {7, 8}), region.segment().asSlice(4, 8));
            Tensor input =
                    Tensor.of(DataType.FP32, Shape.of(1, 2), region.segment().asSlice(4, 8), GPU0);
            if (!left) {
                gpu0.exhaust();
            }
            submit(scheduler, Requests.to(model, memory).input("IN", input).onRelease(region::close));
            if (left) {
                scheduler.drain();
            }
        }
        scheduler.drain();

        assertThat(seen).containsExactly(GPU0, MemoryPlace.HOST);
        assertThat(observers.getLast().floats("OUT")).containsExactly(7, 8);
    }

    private Requests onHost(float first) {
        return Requests.to(model, memory).floats("IN", Shape.of(1, 2), first);
    }

    private Requests on(FakeDeviceMemory device, float first) {
        TensorBuffer buffer = device.allocate(8);
        Tensor tensor = device.floats(buffer, Shape.of(1, 2), first, first + 1);
        return Requests.to(model, memory).input("IN", tensor).onRelease(buffer::close);
    }

    private Requests on(FakeDeviceMemory device, float first, Fence fence) {
        TensorBuffer buffer = device.allocate(8);
        Tensor tensor = device.floats(buffer, Shape.of(1, 2), first, first + 1).withFence(fence);
        return Requests.to(model, memory).input("IN", tensor).onRelease(buffer::close);
    }

    private void submit(SteppedScheduler scheduler, Requests request) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request.of(1), observer);
    }

    private SteppedScheduler scheduler(ExecutionTraits traits) {
        return scheduler(traits, Device.CPU);
    }

    private SteppedScheduler scheduler(ExecutionTraits traits, Device device) {
        return scheduler(device, traits, new FakeInstance(batch -> {
            for (InferenceRequest request : batch.requests()) {
                seen.add(request.input("IN").orElseThrow().place());
            }
            FakeInstance.copy(batch);
        }));
    }

    private SteppedScheduler scheduler(Device device, ExecutionTraits traits, FakeInstance instance) {
        SteppedScheduler scheduler =
                new SteppedScheduler(model, new BatchPlanner(64, List.of(), 0), BatchingPolicy.NONE, memory, traits);
        scheduler.add(device, instance);
        return scheduler;
    }
}
