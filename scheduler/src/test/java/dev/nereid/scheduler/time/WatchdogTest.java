package dev.nereid.scheduler.time;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.FailingTimer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class WatchdogTest {
    private final FailingTimer timer = new FailingTimer();
    private final List<String> ended = new ArrayList<>();
    private final Watchdog watchdog = new Watchdog(timer, () -> 0, new FatalErrorHandler() {
        @Override
        public void onFatalError(OutOfMemoryError error) {}

        @Override
        public void onThreadEnded(String thread) {
            ended.add(thread);
        }
    });

    @Test
    void goesOnAfterAnErrorOfACheck() {
        watchdog.add(nowNanos -> {
            throw new StackOverflowError("of a test");
        });
        int before = timer.scheduled();

        assertThatThrownBy(timer::fire).isInstanceOf(StackOverflowError.class);

        assertThat(timer.scheduled()).isEqualTo(before + 1);
        assertThat(ended).isEmpty();
    }

    @Test
    void reportsItsEndIfTheNextChecksCannotBeScheduled() {
        watchdog.add(nowNanos -> {});
        timer.failNext();

        assertThatThrownBy(timer::fire).isInstanceOf(IllegalStateException.class);

        assertThat(ended).containsExactly("watchdog");
    }

    @Test
    void reportsNoEndWhenItIsClosed() {
        watchdog.add(nowNanos -> {});
        watchdog.close();

        timer.fire();

        assertThat(ended).isEmpty();
    }
}
