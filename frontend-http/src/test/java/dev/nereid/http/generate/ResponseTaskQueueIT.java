package dev.nereid.http.generate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.body.EventLoopExecutor;
import io.vertx.core.Vertx;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The tasks of a response after one of them throws. */
@Timeout(60)
final class ResponseTaskQueueIT {
    private final Vertx vertx = Vertx.vertx();
    private final EventLoopExecutor loop = new EventLoopExecutor(vertx.getOrCreateContext());
    private final List<String> done = new CopyOnWriteArrayList<>();
    private final ResponseTaskQueue tasks = new ResponseTaskQueue(loop, () -> done.add("aborted"));
    private final CountDownLatch end = new CountDownLatch(1);

    @AfterEach
    void close() {
        vertx.close().await();
    }

    @Test
    void continuesAfterWorkThatThrows() throws InterruptedException {
        tasks.add(() -> tasks.runOnWorker(
                () -> {
                    throw new OutOfMemoryError("Java heap space");
                },
                () -> done.add("then")));
        tasks.add(() -> done.add("next"));

        assertThat(awaitEnd()).containsExactly("then", "next");
    }

    @Test
    void continuesAfterATaskThatThrows() throws InterruptedException {
        CountDownLatch added = new CountDownLatch(1);
        tasks.add(() -> tasks.runOnWorker(() -> await(added), () -> {
            throw new IllegalStateException("what follows the work");
        }));
        tasks.add(() -> {
            throw new StackOverflowError("what waited");
        });
        tasks.add(() -> done.add("next"));
        tasks.add(end::countDown);
        added.countDown();

        assertThat(end.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(done).containsExactly("aborted", "aborted", "next");
    }

    @Test
    void abortsAfterATaskThatRanAtOnce() throws InterruptedException {
        tasks.add(() -> {
            throw new IllegalStateException("at once");
        });
        tasks.add(() -> done.add("next"));

        assertThat(awaitEnd()).containsExactly("aborted", "next");
    }

    private List<String> awaitEnd() throws InterruptedException {
        tasks.add(end::countDown);
        assertThat(end.await(30, TimeUnit.SECONDS)).isTrue();
        return done;
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
