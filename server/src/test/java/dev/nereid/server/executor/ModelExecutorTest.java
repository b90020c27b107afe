package dev.nereid.server.executor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.Supervision;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The threads for tasks of a model. */
@Timeout(60)
final class ModelExecutorTest {
    private final AtomicReference<OutOfMemoryError> fatal = new AtomicReference<>();
    private final AtomicInteger released = new AtomicInteger();

    private ModelExecutor executor(Duration patience) {
        FatalErrorHandler handler = fatal::set;
        return new ModelExecutor(
                new ModelRef("m", 3),
                "p",
                new Supervision(handler, Optional.empty(), Duration.ZERO, patience, 0, false));
    }

    /** The last thread ended as the task was queued, and polls it when the executor is closed. */
    @Test
    void runsATaskThatAnEndingThreadHasMissedAlsoAfterTheClose() {
        ModelExecutor executor = executor(Duration.ZERO);
        executor.close(() -> {});
        AtomicInteger ran = new AtomicInteger();

        executor.passOn(ran::incrementAndGet);

        assertThat(ran).hasValue(1);
    }

    @Test
    void namesThreadsAndReusesIdleOnes() throws Exception {
        ModelExecutor executor = executor(Duration.ZERO);
        assertThat(executor.isUsed()).isFalse();
        Set<String> names = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < 100; i++) {
            CompletableFuture<ClassLoader> loader = new CompletableFuture<>();
            executor.execute(() -> {
                names.add(Thread.currentThread().getName());
                loader.complete(Thread.currentThread().getContextClassLoader());
            });
            assertThat(loader.get()).isSameAs(ClassLoader.getSystemClassLoader());
        }

        assertThat(names).contains("executor/m/3/0").hasSizeLessThan(5);
        assertThat(executor.isUsed()).isTrue();
        assertThat(executor.threads()).isLessThan(5);
        executor.close(released::incrementAndGet);
        assertThat(released).hasValue(1);
        assertThat(executor.threads()).isZero();
    }

    @Test
    void boundsThreadsAndTasks() throws Exception {
        ModelExecutor executor = executor(Duration.ZERO);
        CountDownLatch started = new CountDownLatch(ModelExecutor.MAX_THREADS);
        CountDownLatch end = new CountDownLatch(1);
        AtomicInteger ran = new AtomicInteger();
        Runnable task = () -> {
            started.countDown();
            awaitQuietly(end);
            ran.incrementAndGet();
        };
        int all = ModelExecutor.MAX_THREADS + ModelExecutor.MAX_WAITING;
        for (int i = 0; i < all; i++) {
            executor.execute(task);
        }
        started.await();

        assertThat(executor.threads()).isEqualTo(ModelExecutor.MAX_THREADS);
        assertThat(executor.waiting()).isEqualTo(ModelExecutor.MAX_WAITING);
        assertThatThrownBy(() -> executor.execute(task))
                .isInstanceOf(RejectedExecutionException.class)
                .hasMessage(
                        "model 'm', version 3: its executor has 10000 tasks that wait for one of 64 threads (expected:"
                                + " fewer; wait for some before adding more)");
        end.countDown();
        executor.close(released::incrementAndGet);
        assertThat(ran).as("those that wait run before the close").hasValue(all);
        assertThat(released).hasValue(1);
    }

    @Test
    void refusesTasksOnceItIsClosed() {
        ModelExecutor executor = executor(Duration.ZERO);
        executor.close(released::incrementAndGet);
        executor.close(released::incrementAndGet);

        assertThatThrownBy(() -> executor.execute(() -> {}))
                .isInstanceOf(RejectedExecutionException.class)
                .hasMessageContaining("is closed (expected: no task after the close of the model)");
        assertThatThrownBy(() -> executor.execute(null)).isInstanceOf(NullPointerException.class);
        assertThat(released).hasValue(1);
    }

    @Test
    void goesOnAfterTasksThatThrowAndReportsFatalErrors() throws Exception {
        ModelExecutor executor = executor(Duration.ZERO);
        executor.execute(() -> {
            throw new IllegalStateException("a bug");
        });
        List<Error> errors = List.of(new AssertionError("a worse one"), new OutOfMemoryError("Java heap space"));
        for (Error error : errors) {
            executor.execute(() -> {
                throw error;
            });
        }
        CompletableFuture<Void> after = CompletableFuture.runAsync(() -> {}, executor);

        after.get(30, TimeUnit.SECONDS);
        executor.close(released::incrementAndGet);
        assertThat(fatal.get()).hasMessage("Java heap space");
        assertThat(released).hasValue(1);
    }

    /** A task may be in native code of the plugin: nothing is released before it ends, and nothing interrupts it. */
    @Test
    void releasesAfterATaskThatOutlivesTheClose() throws Exception {
        ModelExecutor executor = executor(Duration.ofMillis(50));
        CountDownLatch end = new CountDownLatch(1);
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        CompletableFuture<Void> freed = new CompletableFuture<>();
        CountDownLatch started = new CountDownLatch(ModelExecutor.MAX_THREADS);
        for (int i = 0; i < ModelExecutor.MAX_THREADS; i++) {
            executor.execute(() -> {
                started.countDown();
                awaitQuietly(end);
                interrupted.complete(Thread.currentThread().isInterrupted());
            });
        }
        AtomicInteger ran = new AtomicInteger();
        executor.execute(ran::incrementAndGet);
        started.await();

        executor.close(() -> freed.complete(null));

        assertThat(freed).isNotDone();
        end.countDown();
        freed.get(30, TimeUnit.SECONDS);
        assertThat(interrupted).isCompletedWithValue(false);
        assertThat(ran).as("the one that waited was dropped").hasValue(0);
    }

    @Test
    void placesEachThreadOnceForEachPlacement() throws Exception {
        ModelExecutor executor = executor(Duration.ZERO);
        List<Thread> placed = new ArrayList<>();
        CompletableFuture.runAsync(() -> {}, executor).get();
        executor.place(() -> placed.add(Thread.currentThread()));
        for (int i = 0; i < 10; i++) {
            CompletableFuture.runAsync(() -> {}, executor).get();
        }

        executor.close(released::incrementAndGet);
        assertThat(placed).isNotEmpty().doesNotHaveDuplicates();
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
