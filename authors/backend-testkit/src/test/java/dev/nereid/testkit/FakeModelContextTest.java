package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ModelSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The optional services of a model's context in tests. */
final class FakeModelContextTest {
    private final FakeModelContext context =
            new FakeModelContext(ModelSettings.builder("m", 1).build(), Path.of("m"));

    @Test
    void recordsMistakesOfMetricsAsWarnings() {
        context.metrics().counter("tokens", "Tokens.", Map.of()).increment(1);
        assertThat(context.logger().lines()).isEmpty();

        context.metrics().gauge("tokens", "Tokens.", Map.of()).set(1);
        context.metrics().counter("nv_tokens", "Tokens.", Map.of()).increment(1);

        assertThat(context.logger().lines())
                .hasSize(2)
                .allMatch(line -> line.startsWith("WARNING metric '") && line.contains("counts nothing"));
    }

    @Test
    void metricsOfABackendAreTheSameForAllItsModels() {
        FakeBackendContext backend = new FakeBackendContext(Map.of(), Path.of("cache"), 1);
        backend.metrics().counter("tokens", "Tokens.", Map.of()).increment(2);

        assertThat(backend.metrics().counter("tokens", "Other words.", Map.of()).value())
                .isEqualTo(2);
        assertThat(backend.logger().lines()).isEmpty();
    }

    @Test
    void logsPlacesInTheCode() {
        context.log(System.Logger.Level.INFO, "model.py", 12, "loaded {0}");

        assertThat(context.logger().lines()).containsExactly("INFO model.py:12] loaded {0}");
    }

    @Test
    void tellsTheLevelThatATestSets() {
        List<System.Logger.Level> told = new ArrayList<>();
        CancelHook hook = context.onLogLevel(told::add);
        context.logger().setLevel(System.Logger.Level.WARNING);
        context.logger().log(System.Logger.Level.INFO, "not written");
        context.logger().log(System.Logger.Level.ERROR, "written");
        hook.close();
        context.logger().setLevel(System.Logger.Level.DEBUG);

        assertThat(told).containsExactly(System.Logger.Level.TRACE, System.Logger.Level.WARNING);
        assertThat(context.logger().lines()).containsExactly("ERROR written");
    }

    @Test
    void runsTasksAndRecordsWhatTheyThrow() throws Exception {
        CompletableFuture<Thread> ran = new CompletableFuture<>();
        context.executor().execute(() -> ran.complete(Thread.currentThread()));
        assertThat(ran.get(30, TimeUnit.SECONDS)).isNotSameAs(Thread.currentThread());

        CompletableFuture<Void> thrown = new CompletableFuture<>();
        context.executor().execute(() -> {
            thrown.complete(null);
            throw new IllegalStateException("a bug");
        });
        thrown.get(30, TimeUnit.SECONDS);
        while (context.logger().lines().isEmpty()) {
            Thread.onSpinWait();
        }
        assertThat(context.logger().lines())
                .containsExactly("ERROR task of the executor failed: java.lang.IllegalStateException: a bug");
    }

    @Test
    void keepsObjectsUntilTheyAreTakenOrTheLoadEnds() {
        List<String> closed = new ArrayList<>();
        FakeModelContext other = context.withParameter("n", "1");
        other.keep(new Kept("a", closed));
        other.keep(new Kept("b", closed));
        other.keep(new Kept("c", closed));

        assertThat(context.take(Kept.class)).map(Kept::name).contains("a");
        assertThat(context.kept()).hasSize(2);
        context.endLoad();

        assertThat(closed).containsExactly("c", "b");
        assertThat(context.take(Kept.class)).isEmpty();
        assertThat(context.logger().lines())
                .containsExactly("WARNING close of an object that was kept failed: java.io.IOException: broken c");
    }

    private record Kept(String name, List<String> closed) implements AutoCloseable {
        @Override
        public void close() throws IOException {
            closed.add(name);
            if (name.equals("c")) {
                throw new IOException("broken c");
            }
        }
    }

    @Test
    void recordsTheModelsThatABackendRequires() {
        context.requires("minilm");
        context.withParameter("n", "1").requires("other");

        assertThat(context.required()).containsExactly("minilm", "other");
    }
}
