package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelStatus;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.MemoryRefresh;
import dev.nereid.server.lifecycle.MeterRegistry;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.lifecycle.TestGenerations;
import dev.nereid.server.lifecycle.VersionState;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The end of a generation that drains, at each moment of the task that follows. The gate keeps the end back until the
 * test lets it come between two steps.
 */
@Timeout(60)
final class CatalogUpdaterTest {
    private static final String MODEL = "m";
    private static final VersionState.Unavailable BROKEN =
            VersionState.Unavailable.of(ErrorCode.INTERNAL, "the file is broken");

    private static final long END_NANOS = TimeUnit.SECONDS.toNanos(20);

    private final CountDownLatch gate = new CountDownLatch(1);
    private final LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, this::awaitGate);
    private final ServedModels models = new ServedModels(
            live,
            new ModelLoadWatch(Supervision.NONE, System::nanoTime),
            new MemoryRefresh(live, Runnable::run, System::nanoTime, FatalErrorHandler.NONE));
    private final CatalogUpdater catalog =
            new CatalogUpdater(models, live, new MeterRegistry(InstantSource.system()), Optional.empty(), true);

    @TempDir
    private Path directory;

    private TestGenerations generations;
    private Generation first;

    @BeforeEach
    void setUp() throws Exception {
        generations = new TestGenerations(directory, System::nanoTime);
        first = generations.begin(live, MODEL, 1);
        serve(1, first);
        assertThat(index()).containsExactly("1 READY ");
    }

    @AfterEach
    void close() throws Exception {
        gate.countDown();
        catalog.unloadAll();
        assertThat(live.awaitAllClosed(END_NANOS)).isTrue();
        generations.close();
    }

    private void awaitGate() {
        try {
            gate.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private void serve(long version, Generation generation) {
        catalog.serve(MODEL, new TreeMap<>(Map.of(version, generation)), Set.of(version), false);
    }

    /** Runs the steps, and lets the first generation end after some of them. */
    private void run(int position, Runnable... steps) {
        for (int step = 0; step < steps.length; step++) {
            steps[step].run();
            if (step == position) {
                gate.countDown();
                awaitEnd(first);
            }
        }
        assertThat(live.all()).doesNotContain(first);
    }

    /** Waits until the end of a generation was shown, after which it is forgotten. */
    private void awaitEnd(Generation generation) {
        long begun = System.nanoTime();
        while (live.all().contains(generation)) {
            assertThat(System.nanoTime() - begun).as("waited").isLessThan(END_NANOS);
            Thread.onSpinWait();
        }
    }

    private List<String> index() {
        return models.index().stream().map(CatalogUpdaterTest::describe).toList();
    }

    private static String describe(ModelStatus status) {
        String version = status.version().isPresent() ? status.version().getAsLong() + " " : "";
        return version + status.state() + " " + status.reason();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void loadsAnUnloadedVersionAgain(int position) throws Exception {
        Generation second = generations.begin(live, MODEL, 1);

        run(
                position,
                () -> catalog.unload(MODEL, false),
                () -> catalog.loading(MODEL, Set.of(1L)),
                () -> serve(1, second));

        assertThat(index()).containsExactly("1 READY ");
        assertThat(catalog.serving(MODEL)).containsEntry(1L, second);
        assertThat(catalog.isWhole(MODEL)).isTrue();
    }

    /** The end of what was gone from the repository would remove the model. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void loadsAModelAgainThatWasGone(int position) throws Exception {
        Generation second = generations.begin(live, MODEL, 1);

        run(
                position,
                () -> catalog.unload(MODEL, true),
                () -> catalog.loading(MODEL, Set.of(1L)),
                () -> serve(1, second));

        assertThat(index()).containsExactly("1 READY ");
        assertThat(catalog.serving(MODEL)).containsEntry(1L, second);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void showsWhyTheNextLoadHasFailed(int position) {
        run(
                position,
                () -> catalog.unload(MODEL, false),
                () -> catalog.loading(MODEL, Set.of(1L)),
                () -> catalog.failed(MODEL, Map.of(1L, BROKEN)));

        assertThat(index()).containsExactly("1 UNAVAILABLE Internal: the file is broken");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void goesOnWithAReloadWhenTheNextOneHasFailed(int position) throws Exception {
        Generation second = generations.begin(live, MODEL, 1);

        run(
                position,
                () -> serve(1, second),
                () -> catalog.loading(MODEL, Set.of(1L)),
                () -> catalog.failed(MODEL, Map.of(1L, BROKEN)));

        assertThat(index()).containsExactly("1 READY ");
        assertThat(catalog.serving(MODEL)).containsEntry(1L, second);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void showsAVersionAsUnloadedThatAnotherHasReplaced(int position) throws Exception {
        Generation second = generations.begin(live, MODEL, 2);

        run(position, () -> serve(2, second), () -> catalog.refresh(MODEL));

        assertThat(index()).containsExactly("1 UNAVAILABLE unloaded", "2 READY ");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void showsThatAllIsUnloadedAtTheEnd(int position) throws Exception {
        Generation second = generations.begin(live, MODEL, 2);

        run(position, () -> serve(2, second), () -> catalog.unload(MODEL, false), catalog::unloadAll);
        awaitEnd(second);

        assertThat(index()).containsExactly("1 UNAVAILABLE unloaded", "2 UNAVAILABLE unloaded");
    }
}
