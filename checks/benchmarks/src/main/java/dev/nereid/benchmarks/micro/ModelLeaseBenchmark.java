package dev.nereid.benchmarks.micro;

import dev.nereid.api.InferRequest;
import dev.nereid.api.ModelRef;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.server.NereidServer;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.Resolution;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Measures how a request finds its model in the catalog of a server, and acquires and releases a lease on it. Run by JMH
 * itself, in the directory of the checkout: {@code java -cp 'checks/benchmarks/target/classes:checks/benchmarks/target/lib/*'
 * org.openjdk.jmh.Main ModelLeaseBenchmark}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(Scope.Benchmark)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class ModelLeaseBenchmark {
    private static final int SEVERAL = 4;

    /** The directory of the example plugins, one of which executes the model. */
    @Param("examples/plugins")
    @SuppressWarnings("NullAway.Init") // By JMH.
    public String plugins;

    private final InferRequest request =
            InferRequest.of(ModelRef.latest(ModelRepositories.IDENTITY), List.of(), () -> {});

    @SuppressWarnings("NullAway.Init") // By open().
    private Path repository;

    @SuppressWarnings("NullAway.Init") // By open().
    private NereidServer server;

    @SuppressWarnings("NullAway.Init") // By open().
    private ServedModels models;

    @Setup
    public void open() throws IOException, InterruptedException {
        repository = Files.createTempDirectory("lease");
        ModelRepositories.write(repository, ModelRepositories.IDENTITY, """
                backend: "identity"
                input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
                output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
                """);
        server = NereidServer.start(ServerOptions.of(repository).withPlugins(Path.of(plugins)));
        models = (ServedModels) server.models();
    }

    @TearDown
    public void close() throws IOException {
        server.close();
        try (Stream<Path> files = Files.walk(repository)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    /** Finds the model, acquires and releases, on one thread. */
    @Benchmark
    @Threads(1)
    public Resolution oneThread() {
        return lease();
    }

    /** Finds the same model on several threads. */
    @Benchmark
    @Threads(SEVERAL)
    public Resolution severalThreads() {
        return lease();
    }

    private Resolution lease() {
        Resolution found = models.acquire(request);
        if (found instanceof Generation generation) {
            generation.release();
        }
        return found;
    }
}
