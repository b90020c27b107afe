package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tasks of one model and of several. */
@Timeout(60)
final class ControlTasksTest {
    private final ControlTasks tasks = new ControlTasks(FatalErrorHandler.NONE);
    private final CountDownLatch gate = new CountDownLatch(1);
    private final List<String> done = new CopyOnWriteArrayList<>();

    @AfterEach
    void openGate() throws InterruptedException {
        gate.countDown();
        assertThat(tasks.awaitEnd(TimeUnit.SECONDS.toNanos(20))).isTrue();
    }

    @Test
    void runsTheTasksOfAModelInOrder() throws Exception {
        List<CompletionStage<Void>> all = new ArrayList<>();
        AtomicInteger running = new AtomicInteger();
        for (int i = 0; i < 20; i++) {
            String name = "task " + i;
            all.add(tasks.submit("m", () -> {
                assertThat(running.incrementAndGet()).isEqualTo(1);
                done.add(name);
                running.decrementAndGet();
            }));
        }
        for (CompletionStage<Void> one : all) {
            ControlTasks.await(one);
        }

        assertThat(done).hasSize(20);
        assertThat(done)
                .isEqualTo(done.stream()
                        .sorted(java.util.Comparator.comparingInt(name -> Integer.parseInt(name.substring(5))))
                        .toList());
    }

    @Test
    void runsModelsBesideEachOther() throws Exception {
        CompletionStage<Void> blocked = tasks.submit("a", gate::await);

        ControlTasks.await(tasks.submit("b", () -> done.add("b")));

        assertThat(done).containsExactly("b");
        assertThat(blocked.toCompletableFuture()).isNotDone();
    }

    @Test
    void namesTheModelWithoutItsNamespaceIfTooManyTasksWait() {
        String key = ModelKey.of("/repositories/one", "m");
        tasks.submit(key, gate::await);
        for (int i = 0; i < ControlTasks.MAX_WAITING; i++) {
            tasks.submit(key, () -> {});
        }

        assertThatThrownBy(() -> ControlTasks.await(tasks.submit(key, () -> {})))
                .isInstanceOf(InferenceException.class)
                .hasMessageStartingWith("model 'm': 64 loads and unloads are waiting already");
    }

    @Test
    void sharesAWaitingTask() throws Exception {
        tasks.submit("m", gate::await);
        List<CompletionStage<Void>> all = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            all.add(tasks.share("m", "load", () -> done.add("load")));
        }
        all.add(tasks.submit("m", () -> done.add("unload")));
        all.add(tasks.share("m", "load", () -> done.add("load again")));
        gate.countDown();
        for (CompletionStage<Void> one : all) {
            ControlTasks.await(one);
        }

        assertThat(done).containsExactly("load", "unload", "load again");
    }

    /** Of two configurations in turn, the one that was given last is served at the end. */
    @Test
    void keepsTheOrderOfDifferentTasks() throws Exception {
        tasks.submit("m", gate::await);
        List<CompletionStage<Void>> all = new ArrayList<>();
        for (String config : List.of("a", "a", "b", "b", "a", "a")) {
            all.add(tasks.share("m", config, () -> done.add(config)));
        }
        gate.countDown();
        for (CompletionStage<Void> one : all) {
            ControlTasks.await(one);
        }

        assertThat(done).containsExactly("a", "b", "a");
    }

    /** Files that the running task has read already may have changed since. */
    @Test
    void doesNotShareARunningTask() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CompletionStage<Void> first = tasks.share("m", "load", () -> {
            begun.countDown();
            gate.await();
            done.add("first");
        });
        begun.await();
        CompletionStage<Void> second = tasks.share("m", "load", () -> done.add("second"));
        gate.countDown();
        ControlTasks.await(first);
        ControlTasks.await(second);

        assertThat(done).containsExactly("first", "second");
    }

    @Test
    void refusesMoreThanMayWait() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        tasks.submit("m", () -> {
            begun.countDown();
            gate.await();
        });
        begun.await();
        List<CompletionStage<Void>> accepted = new ArrayList<>();
        for (int i = 0; i < ControlTasks.MAX_WAITING; i++) {
            accepted.add(tasks.submit("m", () -> done.add("waited")));
        }

        CompletionStage<Void> refused = tasks.submit("m", () -> done.add("too many"));

        assertFailure(
                refused,
                ErrorCode.UNAVAILABLE,
                "model 'm': 64 loads and unloads are waiting already (expected: fewer; retry later)");
        gate.countDown();
        for (CompletionStage<Void> one : accepted) {
            ControlTasks.await(one);
        }
        assertThat(done).hasSize(64).containsOnly("waited");
    }

    @Test
    void goesOnAfterATaskThatFails() throws Exception {
        CompletionStage<Void> refused = tasks.submit("m", () -> {
            throw new InferenceException(ErrorCode.NOT_FOUND, "no such model");
        });
        CompletionStage<Void> broken = tasks.submit("m", () -> {
            throw new IllegalStateException("a bug");
        });

        assertFailure(refused, ErrorCode.NOT_FOUND, "no such model");
        assertFailure(broken, ErrorCode.INTERNAL, "internal error: java.lang.IllegalStateException: a bug");
        ControlTasks.await(tasks.submit("m", () -> done.add("next")));
        assertThat(done).containsExactly("next");
    }

    @Test
    void endsWithTheRunningTasks() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CompletionStage<Void> running = tasks.submit("m", () -> {
            begun.countDown();
            gate.await();
        });
        begun.await();
        CompletionStage<Void> waiting = tasks.submit("m", () -> done.add("waiting"));

        tasks.end();

        assertFailure(waiting, ErrorCode.UNAVAILABLE, "Server not ready");
        assertFailure(tasks.submit("other", () -> done.add("late")), ErrorCode.UNAVAILABLE, "Server not ready");
        assertThat(tasks.awaitEnd(0)).isFalse();
        gate.countDown();
        ControlTasks.await(running);
        assertThat(tasks.awaitEnd(TimeUnit.SECONDS.toNanos(20))).isTrue();
        assertThat(done).isEmpty();
    }

    private static void assertFailure(CompletionStage<Void> stage, ErrorCode code, String message) {
        assertThatThrownBy(() -> ControlTasks.await(stage))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(message);
    }
}
