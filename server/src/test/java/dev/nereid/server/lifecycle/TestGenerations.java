package dev.nereid.server.lifecycle;

import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.server.instance.InstanceStarts;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Loads generations without a server. Their backend reports the number in the model's file {@code memory}, waits while
 * there is a file {@code gate} beside it, and fails if there is no such number. It responds with the input. A
 * completion begins a task that ends with the file {@code task} beside it, if there is one. Closed after the generations.
 */
public final class TestGenerations implements AutoCloseable {
    private static final String BACKEND = """
            package gauge;

            import dev.nereid.spi.*;
            import java.io.IOException;
            import java.nio.file.*;
            import java.util.List;

            public final class Gauge implements BackendProvider {
                public String name() { return "gauge"; }

                public Backend create(BackendContext context) {
                    return new Backend() {
                        public java.util.Optional<ModelCompletion> complete(ModelContext model) {
                            Path directory = model.modelDirectory();
                            if (Files.exists(directory.resolve("task"))) {
                                model.executor().execute(() -> awaitDeleted(directory, "task"));
                            }
                            return java.util.Optional.empty();
                        }

                        public Model load(ModelContext model) {
                            Path directory = model.modelDirectory();
                            return new Model() {
                                public ModelInstance newInstance(InstanceContext place) {
                                    return batch -> batch.requests().forEach(request ->
                                            request.response().put("OUTPUT0", request.requireInput("INPUT0"), () -> { }));
                                }

                                public List<MemoryUsage> memoryUsage() {
                                    return report(directory);
                                }
                            };
                        }
                    };
                }

                private static List<MemoryUsage> report(Path directory) {
                    awaitDeleted(directory, "gate");
                    try {
                        long bytes = Long.parseLong(Files.readString(directory.resolve("memory")));
                        return List.of(new MemoryUsage(MemoryPlace.HOST, bytes));
                    } catch (IOException | NumberFormatException e) {
                        throw new BackendException(ErrorCode.INTERNAL, "no gauge");
                    }
                }

                private static void awaitDeleted(Path directory, String file) {
                    try (WatchService watch = directory.getFileSystem().newWatchService()) {
                        directory.register(watch, StandardWatchEventKinds.ENTRY_DELETE);
                        while (Files.exists(directory.resolve(file))) {
                            watch.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS);
                        }
                    } catch (IOException | InterruptedException e) {
                        throw new BackendException(ErrorCode.INTERNAL, "no gauge");
                    }
                }
            }
            """;

    private static final String CONFIG = """
            backend: "gauge"
            max_batch_size: 4
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] }
            instance_group { count: 1 kind: KIND_CPU }
            version_policy { all { } }
            """;

    private final TimerThread timer = new TimerThread(System::nanoTime, _ -> {});
    private final ModelLoadWatch watch = new ModelLoadWatch(Supervision.NONE, System::nanoTime);
    private final Path models;
    private final BackendRegistry backends;
    private final FileCopies copies;
    private final VersionLoader loader;

    /**
     * Prepares the backend.
     *
     * @param directory an empty directory
     * @param nanoTime the clock of the loads
     */
    public TestGenerations(Path directory, LongSupplier nanoTime) {
        models = directory.resolve("models");
        PluginJar.of(BACKEND).provider("gauge.Gauge").write(directory.resolve("plugins/gauge.jar"));
        backends = BackendRegistry.open(
                List.of(directory.resolve("plugins")),
                List.of(),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory.resolve("cache"), 2, Map.of()));
        copies = new FileCopies(directory.resolve("cache"));
        loader = new VersionLoader(
                backends,
                copies,
                ServerOptions.of(Path.of("models")).models(),
                new SchedulerEnvironment(new TensorPool(1 << 24, 1 << 20, true), nanoTime, timer),
                new RunningWarmups(),
                watch,
                new MeterRegistry(InstantSource.system()),
                _ -> new FakeModelClient(new LeakCheckingMemory()),
                new ResponseHolders(),
                new InstanceStarts((stage, _) -> stage.isDone()));
    }

    /** Returns the backends, closed with the loader. */
    BackendRegistry backends() {
        return backends;
    }

    /** Returns the copies of files, closed with the loader. */
    FileCopies copies() {
        return copies;
    }

    /** Returns the directory of a model, which is created by its first load. */
    public Path directory(String model) {
        return models.resolve(model);
    }

    /** Loads a version, which reports 1000 bytes at first, and begins its generation. */
    public Generation begin(LiveGenerations live, String model, long version) throws IOException {
        return live.begin(model, load(model, version), 0, Generation.Hooks.NONE);
    }

    /** Loads a version, which reports 1000 bytes at first. */
    ServedModel load(String model, long version) throws IOException {
        return loader.load(prepare(model, version), version);
    }

    /** Prepares the load of a version, which reports 1000 bytes at first. */
    PreparedModel prepare(String model, long version) throws IOException {
        Files.createDirectories(directory(model).resolve(Long.toString(version)));
        Files.writeString(directory(model).resolve("config.pbtxt"), CONFIG);
        Files.writeString(directory(model).resolve("memory"), "1000");
        return new ModelPreparation(
                        backends, ServerOptions.of(Path.of("models")).models(), false, watch)
                .prepare(new ModelDirectory(models, model));
    }

    @Override
    public void close() {
        backends.close();
        watch.close();
        timer.close();
    }
}
