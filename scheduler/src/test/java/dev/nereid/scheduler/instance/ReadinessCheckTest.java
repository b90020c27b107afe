package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The check of one instance whose end and timeout meet. */
final class ReadinessCheckTest {
    /** The actions of the timeouts: a timer may have begun one whose timeout is closed. */
    private final List<Runnable> actions = new ArrayList<>();

    private final List<CompletableFuture<Void>> checks = new ArrayList<>();
    private final List<OutOfMemoryError> fatal = new ArrayList<>();
    private final ReadinessCheck check = new ReadinessCheck(
            "i0",
            () -> {
                checks.add(new CompletableFuture<>());
                return checks.getLast();
            },
            _ -> {});

    private CompletableFuture<Readiness> begin() {
        Timer timer = action -> {
            actions.add(action);
            return new Timeout() {
                @Override
                public void scheduleAtLatest(long deadlineNanos) {}

                @Override
                public void close() {}
            };
        };
        return check.begin(() -> 0, timer, fatal::add);
    }

    @Test
    void aFullHeapIsAFatalErrorAsOfAnExecution() {
        CompletableFuture<Readiness> begun = begin();
        OutOfMemoryError full = new OutOfMemoryError("Java heap space");

        checks.getFirst().completeExceptionally(new BackendException(ErrorCode.INTERNAL, "check failed", full));

        assertThat(fatal).containsExactly(full);
        assertThat(begun).isCompletedWithValue(Readiness.notReady(ErrorCode.INTERNAL, "check failed"));
    }

    @Test
    void theResultOfTheEndStaysAfterALateTimeout() {
        CompletableFuture<Readiness> begun = begin();
        checks.getFirst().complete(null);

        actions.getFirst().run();

        assertThat(check.last()).isEqualTo(Readiness.READY);
        assertThat(begun).isCompletedWithValue(Readiness.READY);
    }

    @Test
    void aLateTimeoutLeavesTheNextCheckAlone() {
        CompletableFuture<Readiness> _ = begin();
        checks.getFirst().completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "no file"));
        CompletableFuture<Readiness> next = begin();

        actions.getFirst().run();

        assertThat(check.last()).isEqualTo(Readiness.notReady(ErrorCode.NOT_FOUND, "no file"));
        assertThat(next).isNotDone();
        checks.get(1).complete(null);
        assertThat(check.last()).isEqualTo(Readiness.READY);
    }

    @Test
    void theEndReplacesTheResultOfTheTimeout() {
        CompletableFuture<Readiness> begun = begin();
        actions.getFirst().run();
        assertThat(check.last().isReady()).isFalse();

        checks.getFirst().complete(null);

        assertThat(check.last()).isEqualTo(Readiness.READY);
        assertThat(begun).isCompletedWithValueMatching(result -> !result.isReady());
    }
}
