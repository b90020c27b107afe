package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.plugin.PluginLogger;
import dev.nereid.plugin.boundary.KeptObjects;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.dependency.ModelRequirer;
import dev.nereid.server.dependency.RequiredModels;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class VersionContextTest {
    private final RecordedLog log = new RecordedLog();
    private final ModelExecutor executor = new ModelExecutor(new ModelRef("m", 1), "b", Supervision.NONE);

    private VersionContext context() {
        return context(LoadWaits.PLAIN);
    }

    private VersionContext context(LoadWaits waits) {
        return new VersionContext(
                ModelSettings.builder("m", 1).build(),
                ModelParameters.of(Map.of()),
                Path.of("m"),
                Path.of("m/1"),
                List.of(),
                new PluginLogger("b", "m"),
                Optional.empty(),
                new FileCopies(Path.of("none")).of(new ModelDirectory(Path.of("."), "m")),
                Runnable::run,
                new KeptObjects(new PluginBoundary("test", VersionContextTest.class.getClassLoader())),
                new RequiredModels(ModelRequirer.NONE),
                executor.logLevels(),
                Metrics.unpublished(log),
                waits);
    }

    @Test
    void waitsForSlowWork() {
        CompletableFuture<String> slow = new CompletableFuture<>();
        AtomicInteger hours = new AtomicInteger();
        LoadWaits waits = (stage, _) -> hours.incrementAndGet() == 3 && slow.complete("done");

        assertThat(context(waits).await(slow)).isEqualTo("done");
        assertThat(hours).hasValue(3);
        BackendException error = new BackendException(ErrorCode.NOT_FOUND, "no module");
        assertThatThrownBy(() -> context().await(CompletableFuture.failedStage(error)))
                .isSameAs(error);
        assertThatThrownBy(() -> context().await(CompletableFuture.failedStage(new IllegalStateException("a bug"))))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("a bug");
        assertThatThrownBy(() -> context().await(CompletableFuture.failedStage(new IOException("no file"))))
                .isInstanceOf(CompletionException.class)
                .hasRootCauseMessage("no file");
    }

    @Test
    void cancelsWhatItWaitsForAtTheEnd() {
        CompletableFuture<String> slow = new CompletableFuture<>();
        LoadWaits stopping = (_, _) -> {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        };
        assertThatThrownBy(() -> context(stopping).await(slow))
                .isInstanceOfSatisfying(
                        BackendException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("Server not ready");
        assertThat(slow).isCancelled();

        CompletableFuture<String> other = new CompletableFuture<>();
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> context().await(other)).hasMessageContaining("interrupted");
        assertThat(Thread.interrupted()).isTrue();
        assertThat(other).isCancelled();
    }

    @Test
    void hasMetricsAndTracesThatThrowNothing() {
        VersionContext context = context();

        context.metrics().counter("requests", "Requests.", Map.of("kind", "a")).increment(1);
        assertThat(context.metrics()
                        .counter("requests", "Requests.", Map.of("kind", "a"))
                        .value())
                .as("of the same context")
                .isEqualTo(1);
        assertThat(context.tracing()).isSameAs(context.tracing());
        assertThat(log.lines()).isEmpty();
        context.metrics().gauge("nv_mine", "Mine.", Map.of()).set(1);
        assertThat(log.lines()).singleElement().asString().startsWith("WARNING metric 'nv_mine' counts nothing: ");
    }

    /** The actions of a completion without a load end with it, as those of a model. */
    @Test
    void tellsTheLevelOfItsLogUntilItsExecutorIsClosed() {
        List<System.Logger.Level> told = new ArrayList<>();
        context().onLogLevel(told::add);

        assertThat(told).as("of the log of this test").hasSize(1);
        executor.close(() -> {});
        executor.logLevels().check(0);
        assertThat(told).hasSize(1);
    }

    @Test
    void hasNoOtherModelsWhileAConfigurationIsCompleted() {
        ModelClient models = context().models();

        assertThat(models.isReady("m")).isFalse();
        assertThatThrownBy(() -> models.request("m"))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("other models: not available here");
        assertThat(models.load("m")).isCompletedExceptionally();
        assertThat(models.unload("m")).isCompletedExceptionally();
    }
}
