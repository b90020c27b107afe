package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

final class CompletionLatchTest {
    private final CompletionLatch latch = new CompletionLatch();

    /** A stale execution completes nothing, nor does it reschedule. */
    @Test
    void executionsDoNotMeddleWithOneAnother() {
        assertThat(latch.execution()).isZero();
        latch.begin();
        assertThat(latch.execution()).isEqualTo(1);
        assertThat(latch.reschedule(1)).isTrue();
        assertThat(latch.isWaiting()).isTrue();
        assertThat(latch.completeExecuting(1)).isFalse();
        assertThat(latch.begin()).isTrue();

        assertThat(latch.execution()).isEqualTo(2);
        assertThat(latch.isExecuting(1)).isFalse();
        assertThat(latch.isExecuting(2)).isTrue();
        assertThat(latch.completeExecuting(1)).isFalse();
        assertThat(latch.reschedule(1)).isFalse();
        assertThat(latch.completeExecuting(2)).isTrue();
        assertThat(latch.reschedule(2)).isFalse();
        assertThat(latch.execution()).isEqualTo(2);
    }

    /** All steps that there are, those of which each place takes, and where it leads. */
    @Test
    void takesNoOtherStep() {
        List<Predicate<CompletionLatch>> steps = List.of(
                CompletionLatch::begin,
                CompletionLatch::completeWaiting,
                CompletionLatch::completeExecuting,
                step -> step.reschedule(1));
        Consumer<CompletionLatch> begin = CompletionLatch::begin;
        List<Consumer<CompletionLatch>> places = List.of(
                waiting -> {},
                begin,
                CompletionLatch::completeWaiting,
                begin.andThen(CompletionLatch::completeExecuting),
                begin.andThen(executing -> executing.reschedule(1)));

        StringBuilder table = new StringBuilder();
        for (Consumer<CompletionLatch> place : places) {
            for (Predicate<CompletionLatch> step : steps) {
                CompletionLatch taken = new CompletionLatch();
                place.accept(taken);
                table.append(name(taken));
                boolean took = step.test(taken);
                table.append(took ? "→" : "=").append(name(taken)).append(' ');
            }
            table.append('\n');
        }

        assertThat(table).hasToString("""
                waiting→executing waiting→completed waiting=waiting waiting=waiting\s
                executing=executing executing=executing executing→completed executing→waiting\s
                completed=completed completed=completed completed=completed completed=completed\s
                completed=completed completed=completed completed=completed completed=completed\s
                waiting→executing waiting→completed waiting=waiting waiting=waiting\s
                """);
    }

    private static String name(CompletionLatch latch) {
        assertThat(List.of(latch.isWaiting(), latch.isExecuting(), latch.isCompleted()))
                .as("one state at a time")
                .containsOnlyOnce(true);
        return latch.isWaiting() ? "waiting" : latch.isExecuting() ? "executing" : "completed";
    }

    @Test
    void theLastReleaseReturnsTrue() {
        latch.retain();
        latch.retain();

        assertThat(latch.release()).isFalse();
        assertThat(latch.release()).isFalse();
        assertThat(latch.release()).isTrue();
    }

    @Test
    void referencesAndStepsAreIndependent() {
        latch.retain();

        assertThat(latch.begin()).isTrue();
        assertThat(latch.completeExecuting()).isTrue();
        assertThat(latch.release()).isFalse();
        assertThat(latch.release()).isTrue();
    }
}
