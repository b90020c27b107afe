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

/** What becomes of the steps of an answer when one of them throws. */
@Timeout(60)
final class ResponseTaskQueueIT {
    private final Vertx vertx = Vertx.vertx();
    private final EventLoopExecutor loop = new EventLoopExecutor(vertx.getOrCreateContext());
    private final List<String> done = new CopyOnWriteArrayList<>();
    private final ResponseTaskQueue steps = new ResponseTaskQueue(loop, () -> done.add("broken off"));
    private final CountDownLatch end = new CountDownLatch(1);

    @AfterEach
    void close() {
        vertx.close().await();
    }

    @Test
    void goesOnAfterWorkThatThrows() throws InterruptedException {
        steps.add(() -> steps.runOnWorker(
                () -> {
                    throw new OutOfMemoryError("Java heap space");
                },
                () -> done.add("then")));
        steps.add(() -> done.add("next"));

        assertThat(awaitEnd()).containsExactly("then", "next");
    }

    @Test
    void goesOnAfterAStepThatThrows() throws InterruptedException {
        CountDownLatch added = new CountDownLatch(1);
        steps.add(() -> steps.runOnWorker(() -> await(added), () -> {
            throw new IllegalStateException("what follows the work");
        }));
        steps.add(() -> {
            throw new StackOverflowError("what waited");
        });
        steps.add(() -> done.add("next"));
        steps.add(end::countDown);
        added.countDown();

        assertThat(end.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(done).containsExactly("broken off", "broken off", "next");
    }

    @Test
    void breaksOffAfterAStepThatWaitedForNothing() throws InterruptedException {
        steps.add(() -> {
            throw new IllegalStateException("at once");
        });
        steps.add(() -> done.add("next"));

        assertThat(awaitEnd()).containsExactly("broken off", "next");
    }

    private List<String> awaitEnd() throws InterruptedException {
        steps.add(end::countDown);
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
