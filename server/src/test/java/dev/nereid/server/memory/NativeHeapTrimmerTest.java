package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import org.junit.jupiter.api.Test;

/** When freed memory is returned. */
final class NativeHeapTrimmerTest {
    private static final Duration SECOND = Duration.ofSeconds(1);

    private final FakeClock clock = new FakeClock();
    private final ManualTimer timer = new ManualTimer();
    private final Queue<Runnable> begun = new ArrayDeque<>();
    private Duration duration = Duration.ZERO;
    private int trims;
    private final NativeHeapTrimmer trimmer = new NativeHeapTrimmer(this::trim, clock, timer, begun::add);

    private void trim() {
        trims++;
        clock.advance(duration);
    }

    @Test
    void trimsOnceForAllThatIsFreedWithinASecond() {
        trimmer.freed();
        clock.advance(SECOND.dividedBy(2));
        trimmer.freed();
        assertThat(timer.remaining(clock)).hasValue(SECOND.dividedBy(2).toNanos());

        fire();
        assertThat(begun).hasSize(1);
        begun.remove().run();

        assertThat(trims).isEqualTo(1);
        assertThat(timer.deadline).isEmpty();
        trimmer.freed();
        assertThat(timer.remaining(clock)).hasValue(SECOND.toNanos());
    }

    @Test
    void pausesForLongAfterALongTrim() {
        duration = Duration.ofMillis(100);
        trimmer.freed();
        fire();
        begun.remove().run();

        trimmer.freed();

        assertThat(timer.remaining(clock)).hasValue(Duration.ofSeconds(5).toNanos());
    }

    @Test
    void trimsAgainForWhatIsFreedDuringATrim() {
        trimmer.freed();
        fire();
        trimmer.freed();
        fire();
        assertThat(begun).hasSize(1);
        assertThat(timer.remaining(clock)).hasValue(SECOND.toNanos());

        begun.remove().run();
        fire();
        begun.remove().run();

        assertThat(trims).isEqualTo(2);
    }

    @Test
    void doesNothingAfterItsClose() {
        trimmer.close();
        trimmer.freed();

        assertThat(timer.deadline).isEmpty();
    }

    @Test
    void doesNothingWhereTheLibraryCannotTrim() {
        assertThat(NativeHeapTrimmer.NativeHeap.of(name -> Optional.empty())).isEmpty();
    }

    private void fire() {
        clock.advanceNanos(timer.remaining(clock).orElseThrow());
        timer.deadline = OptionalLong.empty();
        timer.action.run();
    }

    /** A timer with one timeout, fired by the test. */
    private static final class ManualTimer implements Timer {
        private Runnable action = () -> {};
        private OptionalLong deadline = OptionalLong.empty();
        private boolean closed;

        @Override
        public Timeout newTimeout(Runnable created) {
            action = created;
            return new Timeout() {
                @Override
                public void scheduleAtLatest(long nanos) {
                    if (!closed && (deadline.isEmpty() || nanos - deadline.getAsLong() < 0)) {
                        deadline = OptionalLong.of(nanos);
                    }
                }

                @Override
                public void close() {
                    closed = true;
                    deadline = OptionalLong.empty();
                }
            };
        }

        OptionalLong remaining(FakeClock clock) {
            return deadline.isEmpty() ? deadline : OptionalLong.of(deadline.getAsLong() - clock.getAsLong());
        }
    }
}
