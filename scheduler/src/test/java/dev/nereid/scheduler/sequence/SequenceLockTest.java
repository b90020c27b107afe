package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class SequenceLockTest {
    private final SequenceLock lock = new SequenceLock();
    private final List<String> events = new ArrayList<>();

    @Test
    void runsActionsWithoutTheLockBeforeASleep() {
        lock.lock();
        try {
            assertThat(lock.runLater()).isFalse();
            lock.later(() -> events.add("locked: " + lock.isHeldByCurrentThread()));

            assertThat(lock.runLater()).isTrue();

            assertThat(events).containsExactly("locked: false");
            assertThat(lock.isHeldByCurrentThread()).isTrue();
            assertThat(lock.runLater()).as("each runs once").isFalse();
        } finally {
            lock.unlock();
        }
        assertThat(events).hasSize(1);
    }

    @Test
    void anActionThatFailsLeavesThoseBehindIt() {
        lock.lock();
        try {
            lock.later(() -> {
                throw new IllegalStateException("for a test");
            });
            lock.later(() -> events.add("next"));
        } finally {
            lock.unlock();
        }
        assertThat(events).containsExactly("next");
    }

    @Test
    void anErrorOfAnActionIsThrownAfterTheOthers() {
        StackOverflowError overflow = new StackOverflowError("for a test");
        lock.lock();
        lock.later(() -> {
            throw overflow;
        });
        lock.later(() -> events.add("next"));

        assertThatThrownBy(lock::unlock).isSameAs(overflow);

        assertThat(events).containsExactly("next");
        assertThat(lock.isHeldByCurrentThread()).isFalse();
    }
}
