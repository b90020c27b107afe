package dev.nereid.backend.python.report;

import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Runs actions when the test advances the clock. Confined to the thread of the test. */
final class FakeDelays implements Delays {
    private final FakeClock clock;
    private final List<Delayed> waiting = new ArrayList<>();

    private record Delayed(long at, Runnable action) {}

    FakeDelays(FakeClock clock) {
        this.clock = clock;
    }

    @Override
    public void run(long millis, Runnable action) {
        waiting.add(new Delayed(clock.getAsLong() + Duration.ofMillis(millis).toNanos(), action));
    }

    int size() {
        return waiting.size();
    }

    /** Loses all actions, as a full executor does. */
    void lose() {
        waiting.clear();
    }

    /** Advances the clock, and runs the actions that are due, the first one first. */
    void advance(Duration time) {
        long end = clock.getAsLong() + time.toNanos();
        while (true) {
            Delayed first = waiting.stream()
                    .filter(delayed -> delayed.at() <= end)
                    .min(Comparator.comparingLong(Delayed::at))
                    .orElse(null);
            if (first == null) {
                break;
            }
            waiting.remove(first);
            clock.advanceNanos(Math.max(0, first.at() - clock.getAsLong()));
            first.action().run();
        }
        clock.advanceNanos(end - clock.getAsLong());
    }
}
