package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.server.memory.ReportedMemory;
import dev.nereid.testkit.FakeClock;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Refreshes of the memory of generations, which run when the test says so. */
@Timeout(60)
final class MemoryRefreshTest {
    private static final Duration DUE = Duration.ofNanos(ReportedMemory.MIN_AGE_NANOS);

    private static final int TRIES = 100;

    private final FakeClock clock = new FakeClock();
    private final ArrayDeque<Runnable> waiting = new ArrayDeque<>();
    private final LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {});
    private final MemoryRefresh refresh = new MemoryRefresh(live, waiting::add, clock, FatalErrorHandler.NONE);

    @TempDir
    private Path directory;

    private TestGenerations generations;
    private Path memory;

    @BeforeEach
    void setUp() {
        generations = new TestGenerations(directory, clock);
        memory = generations.directory("m").resolve("memory");
    }

    @AfterEach
    void close() {
        live.all().forEach(live::discard);
        generations.close();
    }

    /** Begins a generation whose memory may be refreshed. */
    private Generation begin() throws Exception {
        Generation generation = generations.begin(live, "m", 1);
        clock.advance(DUE);
        return generation;
    }

    @Test
    void followsTheMemoryOfAModel() throws Exception {
        Generation generation = begin();
        Files.writeString(memory, "5000");

        refresh.request(generation);
        refresh.request(generation);

        assertThat(waiting).as("one at a time").hasSize(1);
        assertThat(generation.byteSize()).isEqualTo(1000);
        waiting.remove().run();
        assertThat(generation.byteSize()).isEqualTo(5000);
        refresh.request(generation);
        assertThat(waiting).as("not again within a second").isEmpty();
        clock.advance(DUE);
        refresh.request(generation);
        assertThat(waiting).hasSize(1);
    }

    @Test
    void keepsTheLastValueWhenTheBackendFails() throws Exception {
        Generation generation = begin();
        Files.writeString(memory, "none");
        refresh.request(generation);
        waiting.remove().run();
        assertThat(generation.byteSize()).isEqualTo(1000);

        Files.writeString(memory, "7000");
        clock.advance(DUE);
        refresh.request(generation);
        waiting.remove().run();
        assertThat(generation.byteSize()).isEqualTo(7000);
    }

    @Test
    void triesAgainAfterARefusal() throws Exception {
        Generation generation = begin();
        MemoryRefresh refused = new MemoryRefresh(
                live,
                _ -> {
                    throw new RejectedExecutionException();
                },
                clock,
                FatalErrorHandler.NONE);
        refused.request(generation);
        clock.advance(DUE);

        refresh.request(generation);

        assertThat(waiting).hasSize(1);
    }

    /** A refresh may wait behind a backend that does not return, for longer than models live. */
    @Test
    void keepsNoGenerationThatIsClosed() throws Exception {
        WeakReference<Generation> reference = closedWhileItWaits();
        for (int i = 0; i < TRIES && reference.get() != null; i++) {
            System.gc();
        }
        assertThat(reference.get()).isNull();

        Files.createFile(generations.directory("m").resolve("gate"));
        waiting.remove().run(); // does not wait for the gate: the backend is not called
    }

    private WeakReference<Generation> closedWhileItWaits() throws Exception {
        Generation generation = begin();
        refresh.request(generation);
        assertThat(waiting).hasSize(1);
        live.discard(generation);
        return new WeakReference<>(generation);
    }

    @Test
    void doesNotCallAModelThatDrains() throws Exception {
        Generation generation = begin();
        Files.writeString(memory, "5000");
        refresh.request(generation);
        live.discard(generation);

        waiting.remove().run();

        assertThat(generation.byteSize()).isEqualTo(1000);
    }

    @Test
    void saysThatAModelWaitsForItsBackend() throws Exception {
        Generation generation = begin();
        Path gate = Files.createFile(generations.directory("m").resolve("gate"));
        refresh.request(generation);
        Thread asks = Thread.ofPlatform().start(waiting.remove());
        while (!generation.model().memory().isCalling()) {
            Thread.onSpinWait();
        }
        CountDownLatch closed = new CountDownLatch(1);

        live.drain(generation, closed::countDown);

        assertThat(closed.getCount())
                .as("the model is not closed during the call")
                .isEqualTo(1);
        assertThat(live.whatDrains("m"))
                .isEqualTo(
                        "still complete requests, or wait for the backend, which has not returned from memoryUsage,");
        assertThat(live.whatDrains("other")).isEqualTo("still complete requests");
        Files.delete(gate);
        closed.await();
        asks.join();
    }

    @Test
    void saysWhyAValueIsKept() throws IOException {
        assertThat(MemoryRefresh.text("m", null))
                .isEqualTo(
                        "the backend of model 'm' takes long to return memoryUsage, and a close of the model waits for"
                                + " it; the last value of its memory is kept");
        assertThat(MemoryRefresh.text("m", new IOException("no driver")))
                .isEqualTo("the backend of model 'm' failed in memoryUsage: no driver; the last value of its memory is"
                        + " kept");
        assertThat(MemoryRefresh.text("m", new NullPointerException()))
                .isEqualTo("the backend of model 'm' failed in memoryUsage: java.lang.NullPointerException; the last"
                        + " value of its memory is kept");
    }
}
