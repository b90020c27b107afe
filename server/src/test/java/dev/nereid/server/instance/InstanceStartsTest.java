package dev.nereid.server.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import inference.ModelInstanceGroup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The end of the wait for instances. */
final class InstanceStartsTest {
    private final List<String> reports = new ArrayList<>();
    private final CompletableFuture<Void> first = new CompletableFuture<>();
    private final CompletableFuture<Void> second = new CompletableFuture<>();

    private record Instance(CompletionStage<Void> started) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }
    }

    private static InstancePlan plan(String name) {
        return new InstancePlan(
                name,
                Device.CPU,
                List.of(),
                false,
                ModelInstanceGroup.newBuilder().build());
    }

    private void await(LoadWaits waits) {
        new InstanceStarts(waits, (instances, waited) -> reports.add(instances + " " + waited.toSeconds()))
                .await(List.of(plan("m_0"), plan("m_1")), List.of(new Instance(first), new Instance(second)));
    }

    private static boolean check(CompletableFuture<?> stage, Duration limit) {
        assertThat(limit).isEqualTo(LoadWaits.INTERVAL);
        return stage.isDone();
    }

    @Test
    void endsWhenAllHaveStarted() {
        first.complete(null);
        await((stage, limit) -> {
            assertThat(stage).isNotDone();
            second.complete(null);
            return check(stage, limit);
        });
    }

    @Test
    void endsWithTheFirstFailure() {
        second.completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no module"));

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> await(InstanceStartsTest::check))
                .withMessage("no module")
                .satisfies(failure -> assertThat(failure.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @Test
    void reportsTheInstancesThatTakeLongAndGoesOn() {
        AtomicInteger hours = new AtomicInteger();
        await((stage, limit) -> {
            switch (hours.incrementAndGet()) {
                case 1 -> {}
                case 2 -> first.complete(null);
                default -> second.complete(null);
            }
            return check(stage, limit);
        });

        assertThat(reports).containsExactly("[m_0, m_1] 3600", "[m_1] 7200");
    }

    @Test
    void endsWithAnInterrupt() {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> await((_, _) -> {
                    throw new InterruptedException();
                }))
                .withMessageContaining("interrupted");
        assertThat(Thread.interrupted()).isTrue();
    }
}
