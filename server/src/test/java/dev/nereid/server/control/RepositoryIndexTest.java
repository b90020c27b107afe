package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModels;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RepositoryIndexTest {
    private final LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {});
    private final ServedModels models = new ServedModels(
            live,
            new ModelLoadWatch(Supervision.NONE, System::nanoTime),
            new MemoryRefresh(live, Runnable::run, System::nanoTime, FatalErrorHandler.NONE));

    /** The heap of a process may be full for a while: later reads do not wait for one that never began. */
    @Test
    void failsAReadWithoutAThreadAndAnswersLaterOnes() throws Exception {
        AtomicInteger threads = new AtomicInteger();
        RepositoryIndex index = new RepositoryIndex(models, Optional.empty(), task -> {
            if (threads.getAndIncrement() == 0) {
                throw new OutOfMemoryError("of a test");
            }
            return new Thread(task);
        });

        CompletableFuture<?> first = index.read().toCompletableFuture();
        assertThatThrownBy(() -> first.get(1, TimeUnit.MINUTES))
                .hasRootCauseMessage("index of the repository: no thread to read it: java.lang.OutOfMemoryError: of a"
                        + " test (retry later)");

        assertThat(index.read().toCompletableFuture().get(1, TimeUnit.MINUTES)).isEmpty();
    }
}
