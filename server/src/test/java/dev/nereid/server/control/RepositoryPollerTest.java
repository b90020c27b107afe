package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;

/** Polls a repository that the test changes, at times that the test sets. */
final class RepositoryPollerTest {
    private static final Duration INTERVAL = Duration.ofSeconds(15);
    private static final Duration WINDOW = Duration.ofSeconds(1);

    private final FakeClock clock = new FakeClock();
    private final TimeoutQueue timer = new TimeoutQueue(() -> {});
    private final Map<String, ModelFingerprint> present = new HashMap<>();
    private final FakeActions actions = new FakeActions();
    private boolean isUnreadable;
    private int scans;

    private final RepositoryPoller poller = new RepositoryPoller(
            this::scan,
            () -> new RepositoryPoller.PluginState(0, Map.of()),
            actions,
            new PollState(INTERVAL, WINDOW),
            new SchedulerEnvironment.Clocks(clock, InstantSource.system(), timer),
            Runnable::run);

    /** Records what is to be done; it ends when the test says so. */
    private static final class FakeActions implements RepositoryPoller.Actions {
        private final List<String> done = new ArrayList<>();
        private final Map<String, CompletableFuture<Void>> loads = new HashMap<>();
        private Set<String> retained = Set.of();

        @Override
        public CompletionStage<Void> load(String model) {
            done.add("load " + model);
            return loads.computeIfAbsent(model, _ -> new CompletableFuture<>());
        }

        @Override
        public CompletionStage<Void> unload(String model) {
            done.add("unload " + model);
            return CompletableFuture.completedStage(null);
        }

        @Override
        public void retain(Set<String> models) {
            retained = models;
        }
    }

    private Map<String, ModelFingerprint> scan() {
        scans++;
        if (isUnreadable) {
            throw new InferenceException(ErrorCode.INTERNAL, "the disk is away");
        }
        return Map.copyOf(present);
    }

    private void pass(Duration time) {
        clock.advance(time);
        timer.runExpired(clock.getAsLong());
    }

    private static ModelFingerprint files(long nanos) {
        return new ModelFingerprint(Map.of(), Map.of(), new ModelFingerprint.TreeStamp(nanos, 1, 1));
    }

    private void load(String model) {
        present.put(model, files(1));
        poller.start(Set.of());
        pass(Duration.ZERO);
        pass(WINDOW);
        actions.loads.get(model).complete(null);
        assertThat(actions.done).containsExactly("load " + model);
    }

    @Test
    void scansAgainAfterTheWindowAndThenAfterTheInterval() {
        load("m");
        assertThat(scans).isEqualTo(2);
        pass(INTERVAL.minusNanos(1));
        assertThat(scans).isEqualTo(2);
        present.put("m", files(2));
        pass(Duration.ofNanos(1));
        assertThat(scans).isEqualTo(3);
        assertThat(actions.done).containsExactly("load m");
        pass(WINDOW);
        assertThat(actions.done).containsExactly("load m", "load m");
    }

    @Test
    void goesOnWhenTheRepositoryCannotBeRead() {
        load("m");
        isUnreadable = true;
        pass(INTERVAL);
        pass(INTERVAL);
        assertThat(scans).isEqualTo(4);
        assertThat(actions.done).containsExactly("load m");
        isUnreadable = false;
        present.clear();
        pass(INTERVAL);
        pass(WINDOW);
        assertThat(actions.done).containsExactly("load m", "unload m");
    }

    @Test
    void keepsCopiesOfModelsThatMayComeBack() {
        load("m");
        assertThat(actions.retained).containsExactly("m");
        present.clear();
        pass(INTERVAL);
        assertThat(actions.retained).containsExactly("m");
        pass(WINDOW);
        pass(INTERVAL);
        assertThat(actions.retained).isEmpty();
    }

    @Test
    void unloadsAModelThatLiesInTwoRepositories() {
        load("m");
        present.put("m", ModelFingerprint.AMBIGUOUS);
        pass(INTERVAL);
        pass(WINDOW);
        assertThat(actions.done).containsExactly("load m", "unload m", "load m");
    }

    @Test
    void scansNoMoreWhenItIsClosed() {
        load("m");
        poller.close();
        pass(INTERVAL);
        assertThat(scans).isEqualTo(2);
    }
}
