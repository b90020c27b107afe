package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Termination, closing and running in any order. A handle used after its release ends the test's process. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class OrtTerminationTest {
    private static final long FOREVER = Long.MAX_VALUE;

    private final TestTensors tensors = new TestTensors();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        threads.close();
        library.close();
        tensors.close();
    }

    @Test
    void stopsARunThatWouldNeverEnd() throws Exception {
        try (OrtSession session = session();
                OrtExecution execution = session.newExecution(Map.of())) {
            CountDownLatch begun = new CountDownLatch(1);
            AtomicLong runId = new AtomicLong();
            Future<Long> run = threads.submit(() -> count(execution, FOREVER, runId, begun));
            begun.await();

            execution.terminate(runId.get());

            assertThatExceptionOfType(ExecutionException.class)
                    .isThrownBy(run::get)
                    .havingCause()
                    .isInstanceOf(OrtException.class)
                    .withMessageContaining("terminate flag");
        }
    }

    @Test
    void stopsARunThatWasTerminatedBeforeItStarted() throws OrtException {
        try (OrtSession session = session();
                OrtExecution execution = session.newExecution(Map.of())) {
            long runId = execution.begin();
            execution.input(0, tensors.longs(FOREVER));
            execution.output(0);
            execution.terminate(runId);

            assertThatExceptionOfType(OrtException.class).isThrownBy(execution::run);
            execution.end();
        }
    }

    @Test
    void leavesTheNextRunAloneWhenItComesTooLate() throws Exception {
        try (OrtSession session = session();
                OrtExecution execution = session.newExecution(Map.of())) {
            AtomicLong runId = new AtomicLong();
            assertThat(count(execution, 5, runId, new CountDownLatch(1))).isEqualTo(5);
            execution.terminate(runId.get());
            AtomicLong next = new AtomicLong();

            assertThat(count(execution, 6, next, new CountDownLatch(1))).isEqualTo(6);

            execution.terminate(next.get());
            assertThat(next.get()).isNotEqualTo(runId.get());
        }
    }

    @Test
    void runsAgainAfterATermination() throws Exception {
        try (OrtSession session = session();
                OrtExecution execution = session.newExecution(Map.of())) {
            long runId = execution.begin();
            execution.input(0, tensors.longs(FOREVER));
            execution.output(0);
            execution.terminate(runId);
            assertThatExceptionOfType(OrtException.class).isThrownBy(execution::run);
            execution.end();

            assertThat(count(execution, 7, new AtomicLong(), new CountDownLatch(1)))
                    .isEqualTo(7);
        }
    }

    @Test
    void releasesNothingThatARunStillUses() throws Exception {
        OrtSession session = session();
        OrtExecution execution = session.newExecution(Map.of());
        AtomicLong runId = new AtomicLong();
        CountDownLatch begun = new CountDownLatch(1);
        Future<Long> run = threads.submit(() -> count(execution, 2_000, runId, begun));
        begun.await();

        library.close();
        session.close();
        execution.close();

        assertThat(run.get()).isEqualTo(2_000);
        assertThatThrownBy(execution::begin)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("execution: closed (expected: idle)");
        execution.terminate(runId.get());
    }

    @Test
    void keepsAnOutputThatWasTakenAfterEverythingElseIsClosed() throws OrtException {
        OrtSession session = session();
        OrtExecution execution = session.newExecution(Map.of());
        execution.begin();
        execution.input(0, tensors.longs(3));
        execution.output(0);
        execution.run();
        library.close();
        session.close();
        execution.close();
        OrtValue output = execution.takeOutput(0);
        execution.end();

        assertThat(output.data().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(3);

        output.close();
        output.close();
        assertThatThrownBy(output::data).isInstanceOf(IllegalStateException.class);
    }

    @Tag("slow")
    @Test
    void survivesEveryOrderOfRunsTerminationsAndClosing() throws Exception {
        SplittableRandom random = new SplittableRandom(20_250_101);
        for (int round = 0; round < 150; round++) {
            OrtLibrary fresh = TestModels.openLibrary();
            OrtSession session = OrtSession.open(fresh, TestModels.model("slow_loop.onnx"), OrtSessionOptions.DEFAULTS);
            OrtExecution first = session.newExecution(Map.of());
            OrtExecution second = session.newExecution(Map.of());
            AtomicLong firstTicket = new AtomicLong();
            AtomicLong secondTicket = new AtomicLong();
            long pause = random.nextLong(300_000);
            Future<?> runsFirst = threads.submit(() -> countUntilStopped(first, firstTicket));
            Future<?> runsSecond = threads.submit(() -> countUntilStopped(second, secondTicket));
            Future<?> closes = threads.submit(() -> {
                spin(pause);
                closeInOrder(pause, first, second, session, fresh);
            });
            Future<?> terminates = threads.submit(() -> {
                while (!closes.isDone() || !runsFirst.isDone() || !runsSecond.isDone()) {
                    first.terminate(firstTicket.get());
                    second.terminate(secondTicket.get());
                }
            });

            runsFirst.get();
            runsSecond.get();
            closes.get();
            terminates.get();
        }
    }

    private static void closeInOrder(long start, AutoCloseable... all) {
        for (int i = 0; i < all.length; i++) {
            try {
                all[(int) ((start + i) % all.length)].close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Runs again and again, now to the end and now terminated, until the execution is closed. */
    private void countUntilStopped(OrtExecution execution, AtomicLong runId) {
        try (TestTensors own = new TestTensors()) {
            MemorySegment limit = own.longs(50);
            MemorySegment result = own.longs(0);
            for (int run = 0; ; run++) {
                try {
                    runId.set(execution.begin());
                } catch (IllegalStateException e) {
                    return; // closed
                }
                runOnce(execution, limit, result, run % 2 == 0);
            }
        }
    }

    private static void runOnce(OrtExecution execution, MemorySegment limit, MemorySegment result, boolean take) {
        try {
            execution.input(0, limit);
            if (take) {
                execution.output(0);
            } else {
                execution.output(0, result);
            }
            execution.run();
            if (take) {
                try (OrtValue count = execution.takeOutput(0)) {
                    assertThat(count.data().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(50);
                }
            } else {
                assertThat(result.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(50);
            }
        } catch (OrtException e) {
            assertThat(e).hasMessageContaining("terminate flag");
        } finally {
            execution.end();
        }
    }

    private static void spin(long nanos) {
        long start = System.nanoTime();
        while (System.nanoTime() - start < nanos) {
            Thread.onSpinWait();
        }
    }

    private static long count(OrtExecution execution, long limit, AtomicLong runId, CountDownLatch begun)
            throws OrtException {
        try (TestTensors own = new TestTensors()) {
            runId.set(execution.begin());
            begun.countDown();
            execution.input(0, own.longs(limit));
            execution.output(0);
            execution.run();
            try (OrtValue count = execution.takeOutput(0)) {
                return count.data().get(ValueLayout.JAVA_LONG, 0);
            }
        } finally {
            execution.end();
        }
    }

    private OrtSession session() throws OrtException {
        return OrtSession.open(library, TestModels.model("slow_loop.onnx"), OrtSessionOptions.DEFAULTS);
    }
}
