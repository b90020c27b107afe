package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

final class CompletionLatchTest {
    private final CompletionLatch latch = new CompletionLatch();

    /** All steps that there are, those of which each place takes, and where it leads. */
    @Test
    void takesNoOtherStep() {
        List<Predicate<CompletionLatch>> steps =
                List.of(CompletionLatch::begin, CompletionLatch::completeWaiting, CompletionLatch::completeExecuting);
        Consumer<CompletionLatch> begin = CompletionLatch::begin;
        List<Consumer<CompletionLatch>> places = List.of(
                waiting -> {},
                begin,
                CompletionLatch::completeWaiting,
                begin.andThen(CompletionLatch::completeExecuting));

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
                waiting→executing waiting→completed waiting=waiting\s
                executing=executing executing=executing executing→completed\s
                completed=completed completed=completed completed=completed\s
                completed=completed completed=completed completed=completed\s
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
