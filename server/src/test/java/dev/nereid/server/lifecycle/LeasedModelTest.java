package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.plugin.BackendLease;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.BackendInstance;
import dev.nereid.server.instance.InstancePlan;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.Backend;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.ModelInstanceGroup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests who closes a model and its lease on the backend. */
@Timeout(60)
final class LeasedModelTest {
    @TempDir
    private Path directory;

    @AutoClose
    private TestGenerations generations;

    @AutoClose
    private final ModelLoadWatch watch = new ModelLoadWatch(Supervision.NONE, System::nanoTime);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final List<String> closes = new ArrayList<>();

    @BeforeEach
    void begin() {
        generations = new TestGenerations(directory, System::nanoTime);
    }

    @Test
    void countsTheCloseOfAnInstanceOnce() {
        LeasedModel leased =
                new LeasedModel(new ClosingModel(), resources(), name -> watch.beginClose("m", 1, name), _ -> {});
        BackendInstance first = newInstance(leased);
        BackendInstance second = newInstance(leased);

        first.close();
        first.close();
        leased.close();
        assertThat(closes).containsExactly("instance");
        second.close();

        assertThat(closes).containsExactly("instance", "instance", "model");
    }

    @Test
    void releasesTheBackendIfALoadFailsBeforeItHasAModel() {
        AtomicReference<Backend> leased = new AtomicReference<>();
        generations.copies().exempt(_ -> {
            leased.set(backend());
            throw new IllegalStateException("a fault");
        });

        assertThatIllegalStateException()
                .isThrownBy(() -> generations.begin(new LiveGenerations(FatalErrorHandler.NONE, () -> {}), "m", 1))
                .withMessage("a fault");

        assertThat(backend()).as("another one").isNotSameAs(leased.get());
    }

    @Test
    void aTaskOfACompletionKeepsTheBackend() throws Exception {
        PreparedModel prepared = generations.prepare("m", 1);
        Path task = Files.createFile(generations.directory("m").resolve("task"));
        Supervision impatient = new Supervision(
                FatalErrorHandler.NONE, Optional.empty(), Duration.ZERO, Duration.ofMillis(1), 0, false);
        Backend completing;
        try (BackendLease lease = generations.backends().acquire("gauge")) {
            completing = lease.backend();
            VersionFiles files = generations.copies().of(prepared.directory());
            VersionCompletion.complete(
                    ServerOptions.of(Path.of("models")).models(),
                    prepared,
                    1,
                    lease,
                    files,
                    impatient,
                    LoadWaits.PLAIN);
        }

        assertThat(backend()).isSameAs(completing);
        Files.delete(task);

        while (backend().equals(completing)) {
            Thread.onSpinWait(); // until the task ends
        }
    }

    private BackendInstance newInstance(LeasedModel leased) {
        InstancePlan plan =
                new InstancePlan("m_0_0", Device.CPU, List.of(), false, ModelInstanceGroup.getDefaultInstance());
        return leased.newInstance(
                plan, memory, ServerOptions.of(Path.of("models")).models().instances());
    }

    private Backend backend() {
        try (BackendLease lease = generations.backends().acquire("gauge")) {
            return lease.backend();
        }
    }

    private LeasedModel.Resources resources() {
        ModelRef model = new ModelRef("m", 1);
        return new LeasedModel.Resources(
                generations.backends().acquire("gauge"),
                generations.copies().of(new ModelDirectory(directory, "m")),
                new ModelExecutor(model, "gauge", Supervision.NONE),
                new ResponseHolders().add(model, "m", "gauge", Runnable::run));
    }

    /** A model that notes its close, and those of its instances. */
    private final class ClosingModel implements Model {
        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return new ModelInstance() {
                @Override
                public void execute(Batch batch) {}

                @Override
                public void close() {
                    closes.add("instance");
                }
            };
        }

        @Override
        public void close() {
            closes.add("model");
        }
    }
}
