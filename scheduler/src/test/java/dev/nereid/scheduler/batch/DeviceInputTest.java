package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeFence;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Inputs that a backend gathers in memory of a device. */
final class DeviceInputTest {
    private static final MemoryPlace GPU0 = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace GPU1 = new MemoryPlace(MemoryPlace.Kind.GPU, 1);
    private static final MemoryPlace UNKNOWN = new MemoryPlace(MemoryPlace.Kind.GPU, 2);

    /** A backend on the host, one that accepts inputs on its device, and one that accepts memory of clients too. */
    private static final ExecutionTraits HOST = ExecutionTraits.DEFAULT;

    private static final Set<MemoryPlace.Kind> KINDS = Set.of(MemoryPlace.Kind.HOST, MemoryPlace.Kind.GPU);
    private static final ExecutionTraits DEVICE = ExecutionTraits.DEFAULT.withPlaces(KINDS);
    private static final ExecutionTraits CLIENT =
            new ExecutionTraits("b", new AcceptedMemory(true, KINDS), false, false);

    private final FakeDeviceMemory gpu0 = new FakeDeviceMemory(GPU0);
    private final FakeDeviceMemory gpu1 = new FakeDeviceMemory(GPU1);
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu0, gpu1);
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<float[]> read = new ArrayList<>();

    @TempDir
    private Path directory;

    private ModelSettings model = settings(TensorSpec.of("IN", DataType.FP32, Shape.of(2)), false);
    private FakeInstance instance = new FakeInstance(this::gatherOnTheDevice);

    private static ModelSettings settings(TensorSpec input, boolean decoupled) {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .decoupled(decoupled)
                .input(input)
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .batchInput(
                        new BatchInput(BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT, List.of("ENDS"), DataType.FP32, "IN"))
                .build();
    }

    @AfterEach
    void allIsReleased() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
        memory.close();
    }

    /** Reads {@code IN} on the device, twice; returns {@code OUT} on the host, all of it 0. */
    private void gatherOnTheDevice(Batch batch) {
        Tensor in = batch.gather("IN", GPU0);
        boolean same = batch.gather("IN", GPU0) == in && in.place().equals(GPU0);
        read.add(same ? gpu0.floats(in.data()) : new float[0]);
        batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2)).data().fill((byte) 0);
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

    /** Executes requests as one batch, on an instance of the first device. */
    private void execute(ExecutionTraits traits, Requests... requests) {
        SteppedScheduler scheduler =
                new SteppedScheduler(model, new BatchPlanner(64, List.of(), 0), BatchingPolicy.NONE, memory, traits);
        scheduler.add(new Device(Device.Kind.GPU, 0), instance);
        for (Requests request : requests) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(request.of(1), observer);
        }
        assertThat(scheduler.step()).isTrue();
        assertThat(instance.batches()).hasSize(1);
    }

    private void assertRead(float... expected) {
        observers.forEach(observer -> assertThat(observer.floats("OUT")).containsExactly(0, 0));
        assertThat(read).hasSize(1);
        assertThat(read.getFirst()).containsExactly(expected);
    }

    @Test
    void ofOneRequestAreCopiedFromTheHost() {
        execute(HOST, onHost(3));

        assertRead(3, 4);
        assertThat(gpu0.copiesFromHost()).as("gathered twice").isEqualTo(1);
        assertThat(gpu0.buffersInUse()).as("freed with the execution").isZero();
        assertThat(memory.buffersInUse()).as("the output").isEqualTo(1);
    }

    @Test
    void ofOneRequestStayInPlace() {
        execute(DEVICE, on(gpu0, 3));

        assertRead(3, 4);
        assertThat(gpu0.copies() + gpu0.copiesFromHost() + gpu0.copiesToHost()).isZero();
    }

    @Test
    void ofOneRequestKeepTheirFenceInPlace() {
        List<String> awaited = new ArrayList<>();
        Fence fence = new FakeFence(() -> awaited.add("awaited"));
        instance = new FakeInstance(batch -> {
            Fence of = batch.gather("IN", GPU0).fence().orElseThrow();
            read.add(of.equals(fence) ? new float[] {1} : new float[0]);
            batch.allocate("OUT", DataType.FP32, Shape.of(1, 2)).data().fill((byte) 0);
        });

        execute(DEVICE, on(gpu0, 3, fence));

        assertRead(1);
        assertThat(awaited).isEmpty();
    }

    @Test
    void ofOneRequestThatAreNotAcceptedThereAreMovedTwice() {
        execute(HOST, on(gpu0, 3));

        assertRead(3, 4);
        assertThat(gpu0.copiesToHost()).as("before the execution").isEqualTo(1);
        assertThat(gpu0.copiesFromHost()).isEqualTo(1);
    }

    @Test
    void ofManyRequestsAreJoinedFromAnywhere() {
        execute(DEVICE, onHost(1), on(gpu0, 3), on(gpu1, 5), on(gpu0, 7));

        assertRead(1, 2, 3, 4, 5, 6, 7, 8);
        assertThat(gpu0.copies()).isEqualTo(2);
        assertThat(gpu0.copiesFromHost()).isEqualTo(2);
        assertThat(gpu1.copiesToHost()).as("before the execution").isEqualTo(1);
        assertThat(gpu0.copiesToHost()).isZero();
        assertThat(gpu0.buffersInUse()).isZero();
        assertThat(memory.buffersInUse()).as("the output").isEqualTo(1);
    }

    @Test
    void areJoinedOnTheHostToo() {
        instance = new FakeInstance(batch -> {
            gatherOnTheDevice(batch);
            read.set(0, batch.gather("IN").data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED));
            Tensor pinned = batch.gather("IN", new MemoryPlace(MemoryPlace.Kind.PINNED, 0));
            if (pinned != batch.gather("IN", MemoryPlace.HOST)
                    || !pinned.place().equals(MemoryPlace.HOST)) {
                throw new BackendException(ErrorCode.INTERNAL, "pinned: " + pinned);
            }
        });

        execute(DEVICE, onHost(1), on(gpu0, 3));

        assertRead(1, 2, 3, 4);
        assertThat(gpu0.copiesToHost()).isEqualTo(1);
    }

    @Test
    void areJoinedWhenTheirWorkHasEnded() {
        List<Integer> copiesBefore = new ArrayList<>();
        execute(DEVICE, onHost(1), on(gpu0, 3, new FakeFence(() -> copiesBefore.add(gpu0.copies()))));

        assertRead(1, 2, 3, 4);
        assertThat(copiesBefore).containsExactly(0);
    }

    @Test
    void failTheExecutionIfTheirWorkFailed() {
        Fence lost = new FakeFence(() -> {
            throw new BackendException(ErrorCode.UNAVAILABLE, "device lost");
        });
        execute(DEVICE, onHost(1), on(gpu0, 3, lost));

        observers.forEach(observer -> observer.assertError(ErrorCode.UNAVAILABLE, "device lost"));
        assertThat(gpu0.buffersInUse()).isZero();
    }

    @Test
    void areRefusedOnADeviceWithoutMemory() {
        instance = new FakeInstance(batch -> batch.gather("IN", UNKNOWN));
        String message = "input 'IN' of model 'm': no memory in " + UNKNOWN + " (expected: memory of the host)";

        execute(HOST, onHost(1));
        observers.getFirst().assertError(ErrorCode.UNSUPPORTED, message);

        instance = new FakeInstance(batch -> batch.gather("IN", UNKNOWN));
        execute(DEVICE, onHost(1), on(gpu0, 3));
        observers.forEach(observer -> observer.assertError(ErrorCode.UNSUPPORTED, message));
    }

    @Test
    void thatTheServerDerivesAreCopied() {
        instance = new FakeInstance(batch -> {
            gatherOnTheDevice(batch);
            Tensor ends = batch.gather("ENDS", GPU0);
            read.set(0, gpu0.floats(ends.data()));
            if (batch.gather("ENDS", GPU0) != ends) {
                throw new BackendException(ErrorCode.INTERNAL, "gathered again");
            }
        });

        execute(HOST, onHost(1), onHost(3));

        assertRead(2, 4);
        assertThat(memory.buffersInUse()).as("the output").isEqualTo(1);
    }

    @Test
    void thatAreRaggedAreFlat() {
        List<Shape> shapes = new ArrayList<>();
        model = settings(
                TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)).with(TensorSpec.Trait.RAGGED), false);
        instance = new FakeInstance(batch -> {
            gatherOnTheDevice(batch);
            shapes.add(batch.gather("IN", GPU0).shape());
        });

        execute(DEVICE, on(gpu0, 3), Requests.to(model, memory).floats("IN", Shape.of(1, 3), 5));

        assertRead(3, 4, 5, 6, 7);
        assertThat(shapes).containsExactly(Shape.of(5));
    }

    @Test
    void thatAreEqualInAllRequestsAreCopiedOnce() {
        model = settings(TensorSpec.of("IN", DataType.FP32, Shape.of(1, 2)).with(TensorSpec.Trait.SHAPE_TENSOR), false);

        execute(DEVICE, onHost(3), onHost(3));

        assertRead(3, 4);
        assertThat(gpu0.copiesFromHost()).isEqualTo(1);
        assertThat(memory.buffersInUse()).as("the output").isEqualTo(1);
    }

    /** Native code, which makes the copy, must not read memory that its owner may cut off. */
    @Test
    void inMemoryOfAClientAreCopiedByWayOfTheServer() throws IOException {
        try (Arena arena = Arena.ofShared();
                FileChannel file = FileChannel.open(
                        directory.resolve("in"),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE)) {
            MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 8, arena);
            mapped.setAtIndex(ValueLayout.JAVA_FLOAT, 1, 9);

            execute(CLIENT, Requests.to(model, memory).input("IN", Tensor.of(DataType.FP32, Shape.of(1, 2), mapped)));

            assertRead(0, 9);
            assertThat(memory.maxBytesRequested())
                    .as("the copy, then the output")
                    .isEqualTo(8);
            observers.forEach(RecordingObserver::close);
        }
    }

    @Test
    void lastAsLongAsAResponseThatLiesInThem() {
        model = settings(TensorSpec.of("IN", DataType.FP32, Shape.of(2)), true);
        List<ResponseSender> senders = new ArrayList<>();
        List<InferenceResponse> responses = new ArrayList<>();
        instance = new FakeInstance(batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            InferenceResponse response = sender.newResponse(); // before there is gathered memory
            response.put("OUT", batch.gather("IN", GPU0));
            senders.add(sender);
            responses.add(response);
        });

        execute(HOST, onHost(3));
        assertThat(gpu0.buffersInUse()).isEqualTo(1);
        senders.getFirst().send(responses.getFirst());
        senders.getFirst().complete();

        assertThat(observers.getFirst().responses()).hasSize(1);
        assertThat(observers
                        .getFirst()
                        .responses()
                        .getFirst()
                        .outputs()
                        .getFirst()
                        .tensor()
                        .data()
                        .toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
                .containsExactly(3, 4);
        assertThat(gpu0.buffersInUse()).isZero();
    }
}
