package dev.nereid.server.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.ModelInstanceGroup;
import java.nio.file.Path;
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

    private record StartingInstance(CompletionStage<Void> started) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }
    }

    private static BackendInstance instance(String name, CompletableFuture<Void> start) {
        InstancePlan plan = new InstancePlan(
                name,
                Device.CPU,
                List.of(),
                false,
                ModelInstanceGroup.newBuilder().build());
        return BackendInstance.create(
                _ -> new StartingInstance(start),
                plan,
                new LeakCheckingMemory(),
                ServerOptions.of(Path.of("models")).models().instances(),
                new FakeOwner(new ResponseHolders().add(new ModelRef("m", 1), "m", "p", Runnable::run)));
    }

    private void await(LoadWaits waits) {
        new InstanceStarts(waits, (instances, waited) -> reports.add(instances + " " + waited.toSeconds()))
                .await(List.of(instance("m_0", first), instance("m_1", second)));
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
