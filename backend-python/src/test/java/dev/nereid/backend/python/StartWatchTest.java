package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.RecordedLog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class StartWatchTest {
    private final FakeClock clock = new FakeClock();
    private final RecordedLog log = new RecordedLog();
    private final List<Delayed> waiting = new ArrayList<>();
    private final List<String> kills = new ArrayList<>();
    private final List<Long> stacks = new ArrayList<>();
    private final CompletableFuture<Void> start = new CompletableFuture<>();
    private final StartWatch watch = new StartWatch(
            log,
            (delay, action) ->
                    waiting.add(new Delayed(clock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(delay), action)),
            clock);

    private record Delayed(long at, Runnable action) {}

    private void advance(Duration time) {
        long end = clock.getAsLong() + time.toNanos();
        while (true) {
            Optional<Delayed> first =
                    waiting.stream().filter(delayed -> delayed.at() <= end).min(Comparator.comparingLong(Delayed::at));
            if (first.isEmpty()) {
                break;
            }
            waiting.remove(first.get());
            clock.advanceNanos(first.get().at() - clock.getAsLong());
            first.get().action().run();
        }
        clock.advanceNanos(end - clock.getAsLong());
    }

    @Test
    void logsALineEachThirtySeconds() {
        watch.watch(
                start,
                "m_0",
                "import and initialize",
                Optional.empty(),
                kills::add,
                () -> stacks.add(clock.getAsLong()));

        advance(Duration.ofSeconds(29));
        assertThat(log.lines()).isEmpty();
        advance(Duration.ofSeconds(62));
        assertThat(log.lines())
                .containsExactly(
                        "INFO m_0: import and initialize have taken 30 s so far",
                        "INFO m_0: import and initialize have taken 60 s so far",
                        "INFO m_0: import and initialize have taken 90 s so far");
        start.complete(null);
        advance(Duration.ofHours(1));
        assertThat(log.lines()).hasSize(3);
        assertThat(waiting).isEmpty();
        assertThat(kills).isEmpty();
        assertThat(stacks).as("after a minute").hasSize(1);
    }

    @Test
    void endsAStartAfterItsLimit() {
        watch.watch(
                start,
                "m_0",
                "import and initialize",
                Optional.of(Duration.ofMillis(1500)),
                kills::add,
                () -> stacks.add(clock.getAsLong()));

        advance(Duration.ofSeconds(1));
        assertThat(kills).isEmpty();
        advance(Duration.ofSeconds(1));
        assertThat(kills).containsExactly("import and initialize took longer than 1.5 s");
    }

    @Test
    void leavesAStartAloneThatIsDone() {
        watch.watch(
                start,
                "m_0",
                "import and initialize",
                Optional.of(Duration.ofSeconds(1)),
                kills::add,
                () -> stacks.add(clock.getAsLong()));
        start.completeExceptionally(new IllegalStateException());

        advance(Duration.ofMinutes(1));
        assertThat(kills).isEmpty();
        assertThat(log.lines()).isEmpty();
    }
}
