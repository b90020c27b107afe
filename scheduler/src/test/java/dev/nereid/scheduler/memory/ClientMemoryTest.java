package dev.nereid.scheduler.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Inputs and outputs in memory that belongs to clients, who may cut it off. */
final class ClientMemoryTest {
    private static final int PAGE = 1 << 16;
    private static final int ELEMENTS = PAGE / Float.BYTES;
    private static final Shape SHAPE = Shape.of(1, ELEMENTS);
    private static final String GONE =
            "shared memory of the request was truncated (expected: a segment of constant size while it is used)";

    @TempDir
    private Path directory;

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(ELEMENTS)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(ELEMENTS)))
            .build();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final Arena arena = Arena.ofShared();
    private final List<Boolean> mapped = new ArrayList<>();
    private final List<RecordingObserver> observers = new ArrayList<>();

    @AfterEach
    void checkMemory() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(RecordingObserver::close);
        memory.close();
        arena.close();
    }

    @Test
    void handsMemoryOfClientsToBackendsThatCanStandIt() throws IOException {
        MemorySegment in = map("in");
        MemorySegment out = map("out");
        in.set(ValueLayout.JAVA_FLOAT, PAGE - 4, 7);
        SteppedScheduler scheduler = scheduler(true, this::copyInPlace);

        submit(scheduler, in, out);
        scheduler.drain();

        assertThat(mapped).containsExactly(true, true);
        assertThat(out.get(ValueLayout.JAVA_FLOAT, PAGE - 4)).isEqualTo(7);
        Tensor responses = observers.getFirst().response().outputs().getFirst().tensor();
        assertThat(responses.data().address()).isEqualTo(out.address());
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void handsCopiesToOtherBackends() throws IOException {
        MemorySegment in = map("in");
        MemorySegment out = map("out");
        in.set(ValueLayout.JAVA_FLOAT, 0, 7);
        SteppedScheduler scheduler = scheduler(false, this::copyInPlace);

        submit(scheduler, in, out);
        scheduler.drain();

        assertThat(mapped).containsExactly(false, false);
        assertThat(out.get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(7);
        observers.getFirst().response().close();
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void joinsCopiesOfSeveralRequests() throws IOException {
        MemorySegment one = map("one");
        MemorySegment other = map("other");
        MemorySegment out = map("out");
        one.set(ValueLayout.JAVA_FLOAT, 0, 1);
        other.set(ValueLayout.JAVA_FLOAT, 0, 2);
        SteppedScheduler scheduler = scheduler(true, FakeInstance::copy);

        submit(scheduler, one, null);
        submit(scheduler, other, out);
        scheduler.drain();

        assertThat(observers.get(0).floats("OUT")[0]).isEqualTo(1);
        assertThat(observers
                        .get(0)
                        .response()
                        .outputs()
                        .getFirst()
                        .tensor()
                        .data()
                        .isMapped())
                .isFalse();
        assertThat(out.get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(2);
    }

    @Test
    void failsTheRequestWhoseMemoryIsGoneAndNoOther() throws IOException {
        MemorySegment gone = map("gone");
        MemorySegment there = map("there");
        SteppedScheduler scheduler = scheduler(true, FakeInstance::copy);

        submit(scheduler, gone, null);
        submit(scheduler, there, null);
        cut("gone");
        scheduler.drain();

        observers.get(0).assertError(ErrorCode.INVALID_ARGUMENT, GONE);
        assertThat(observers.get(1).floats("OUT")).hasSize(ELEMENTS);
    }

    @Test
    void failsARequestWhoseMemoryGoesWhileTheBackendReadsOrWritesIt() throws IOException {
        // often, so that reads and writes are compiled, which report faults later
        for (int i = 0; i < 300; i++) {
            MemorySegment in = map("in" + i);
            MemorySegment out = map("out" + i);
            int round = i;
            SteppedScheduler scheduler = scheduler(true, batch -> {
                cutUnchecked((round % 2 == 0 ? "in" : "out") + round);
                copyInPlace(batch);
            });

            RecordingObserver lost = submit(scheduler, in, out);
            scheduler.drain();

            lost.assertError(ErrorCode.INVALID_ARGUMENT, GONE);
            assertThat(scheduler.step()).as("the instance goes on").isFalse();
        }
    }

    @Test
    void failsARequestWhoseTargetIsGoneWhenTheOutputIsCopied() throws IOException {
        MemorySegment in = map("in");
        MemorySegment out = map("out");
        SteppedScheduler scheduler = scheduler(false, batch -> {
            cutUnchecked("out");
            copyInPlace(batch);
        });

        submit(scheduler, in, out);
        scheduler.drain();

        observers.getFirst().assertError(ErrorCode.INVALID_ARGUMENT, GONE);
    }

    @Test
    void copiesOutputsThatLieInMemoryOfAnotherClient() throws IOException {
        MemorySegment in = map("in");
        SteppedScheduler scheduler = scheduler(true, batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.response().put("OUT", request.input("IN").orElseThrow());
        });

        submit(scheduler, in, null);
        scheduler.drain();
        cut("in");

        assertThat(observers.getFirst().floats("OUT")).hasSize(ELEMENTS);
    }

    @Test
    void failsARequestWhoseOutputLiesInMemoryThatIsGone() throws IOException {
        MemorySegment in = map("in");
        SteppedScheduler scheduler = scheduler(true, batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.response().put("OUT", request.input("IN").orElseThrow());
            cutUnchecked("in");
        });

        submit(scheduler, in, null);
        scheduler.drain();

        observers.getFirst().assertError(ErrorCode.INVALID_ARGUMENT, GONE);
    }

    @Tag("slow")
    @Test
    void copiesReadableMemoryAndFailsOtherwise() throws IOException {
        MemorySegment there = map("there");
        MemorySegment gone = map("gone");
        MemorySegment to = arena.allocate(PAGE);
        cut("gone");

        ClientMemory.copy(there, to);
        for (int i = 0; i < 20_000; i++) {
            for (int size : new int[] {1, 8, 60, 4_096}) {
                assertThatExceptionOfType(InferenceException.class)
                        .isThrownBy(() -> ClientMemory.copy(gone.asSlice(100, size), to))
                        .withMessage(GONE);
            }
            if (i > 100 && i % 1_000 != 0) {
                ClientMemory.copy(there.asSlice(0, i % 64), to);
            }
        }
    }

    private SteppedScheduler scheduler(boolean clientMemory, FakeInstance.Execution backend) {
        return new SteppedScheduler(
                model,
                new BatchPlanner(64, List.of(), 0),
                BatchingPolicy.NONE,
                memory,
                new ExecutionTraits("b", clientMemory, false),
                new FakeInstance(backend));
    }

    private RecordingObserver submit(SteppedScheduler scheduler, MemorySegment in, @Nullable MemorySegment out) {
        Requests builder = Requests.to(model, memory).input("IN", Tensor.of(DataType.FP32, SHAPE, in));
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit((out == null ? builder : builder.into("OUT", out)).of(1), observer);
        return observer;
    }

    private void copyInPlace(Batch batch) {
        InferenceRequest request = batch.requests().getFirst();
        MemorySegment from = request.input("IN").orElseThrow().data();
        MemorySegment to =
                request.response().allocate("OUT", DataType.FP32, SHAPE).data();
        mapped.add(from.isMapped());
        mapped.add(to.isMapped());
        for (long at = 0; at < from.byteSize(); at += Float.BYTES) {
            to.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at));
        }
    }

    private MemorySegment map(String name) throws IOException {
        try (RandomAccessFile file =
                new RandomAccessFile(directory.resolve(name).toFile(), "rw")) {
            file.setLength(PAGE);
            return file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, PAGE, arena);
        }
    }

    private void cut(String name) throws IOException {
        try (RandomAccessFile file =
                new RandomAccessFile(directory.resolve(name).toFile(), "rw")) {
            file.setLength(0);
        }
    }

    private void cutUnchecked(String name) {
        try {
            cut(name);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
