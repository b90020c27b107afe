package dev.nereid.backend.python.lifecycle;

import static java.util.concurrent.TimeUnit.SECONDS;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.backend.python.PythonProvider;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.testkit.server.LocalServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;

/** A server with models in Python that are loaded one by one. Confined to the thread of a test, which closes it. */
final class PythonServer implements AutoCloseable {
    /** Long, since other builds may run on the same machine. */
    static final long LIMIT_SECONDS = 120;

    private final Path root;
    private final ServerLog log = ServerLog.open();
    private final Map<String, String> environment = new HashMap<>(System.getenv());
    private Consumer<ServerOptions.Builder> change = _ -> {};
    private @Nullable LocalServer server;

    /** Prepares a server with files below a temporary directory. Skips the test where no Python with NumPy is. */
    PythonServer(Path root) {
        Optional<Path> python = PythonPrograms.withNumpy();
        Assumptions.assumeTrue(python.isPresent(), "no python3 with NumPy on this machine");
        this.root = root;
        environment.keySet().removeIf(name -> name.startsWith("PYTHON")); // such as one that keeps no byte code
        directory("models");
        setting("executable", python.orElseThrow().toString());
    }

    private Path directory(String name) {
        try {
            return Files.createDirectories(root.resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Path models() {
        return root.resolve("models");
    }

    Path cache() {
        return root.resolve("cache");
    }

    ServerLog log() {
        return log;
    }

    PythonServer options(Consumer<ServerOptions.Builder> changed) {
        change = change.andThen(changed);
        return this;
    }

    PythonServer setting(String key, String value) {
        return options(options -> options.backendSetting("python", key, value));
    }

    PythonServer variable(String name, String value) {
        environment.put(name, value);
        return this;
    }

    /** Writes a model without inputs and outputs that are of interest. */
    PythonServer model(String name, String code) {
        return model(
                name,
                "input [{ name: \"IN\" data_type: TYPE_FP32 dims: [ 1 ] }]"
                        + " output [{ name: \"OUT\" data_type: TYPE_FP32 dims: [ 1 ] }]",
                code);
    }

    PythonServer model(String name, String config, String code) {
        return file(name + "/config.pbtxt", "backend: \"python\" " + config).file(name + "/1/model.py", code);
    }

    /** Writes a file into the repository. */
    PythonServer file(String path, String content) {
        try {
            Path file = models().resolve(path);
            Files.createDirectories(file.getParent());
            Files.writeString(file, content);
            return this;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sets the times of the last change of files. */
    PythonServer changed(Instant time, String... paths) {
        try {
            for (String path : paths) {
                Files.setLastModifiedTime(models().resolve(path), FileTime.from(time));
            }
            return this;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    PythonServer start() {
        directory("cache");
        LocalServer started = LocalServer.with(new PythonProvider())
                .options(options -> {
                    options.environment = environment;
                    options.modelRepositories = List.of(models());
                    options.pluginCache = cache();
                    options.controlMode = ModelControlMode.EXPLICIT;
                    change.accept(options);
                })
                .timeout(Duration.ofSeconds(LIMIT_SECONDS))
                .withWrongOutputs()
                .start();
        server = started;
        return this;
    }

    LocalServer server() {
        LocalServer started = server;
        if (started == null) {
            throw new IllegalStateException("not started");
        }
        return started;
    }

    /** Loads models one after the other. */
    PythonServer load(String... names) {
        for (String name : names) {
            await(begin(name));
        }
        return this;
    }

    /** Begins a load. */
    CompletableFuture<Void> begin(String name) {
        return server().server()
                .control()
                .load(new ModelControl.Load(name, Optional.empty(), Map.of()).forced())
                .toCompletableFuture();
    }

    /** Returns the text of the error with which a load fails. */
    InferenceException failure(String name) {
        try {
            load(name);
        } catch (InferenceException e) {
            return e;
        }
        throw new AssertionError(
                "model '" + name + "' is loaded (expected: an error)\n" + String.join("\n", log.lines()));
    }

    String failureText(String name) {
        return failure(name).publicMessage();
    }

    void unload(String name) {
        await(server().server().control().unload(name, false).toCompletableFuture());
    }

    /** Returns whether a model is ready, with the reason if it is not. */
    String ready(String name) {
        var readiness = await(
                server().server().models().checkReady(ModelRef.latest(name)).toCompletableFuture());
        return readiness.isReady() ? "ready" : readiness.code() + " " + readiness.reason();
    }

    static <T> T await(CompletableFuture<T> stage) {
        try {
            return stage.get(LIMIT_SECONDS, SECONDS);
        } catch (ExecutionException | CompletionException e) {
            if (e.getCause() instanceof InferenceException failure) {
                throw failure;
            }
            throw new AssertionError(e.getCause());
        } catch (TimeoutException e) {
            throw new AssertionError("nothing within " + LIMIT_SECONDS + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** Returns the processes of models that run now. */
    static List<Long> processes() {
        List<Long> found = new ArrayList<>();
        try (Stream<ProcessHandle> children = ProcessHandle.current().children()) {
            children.filter(child -> child.info()
                            .commandLine()
                            .filter(line -> line.contains("triton_python_backend_stub"))
                            .isPresent())
                    .forEach(child -> found.add(child.pid()));
        }
        return found;
    }

    @Override
    public void close() {
        LocalServer started = server;
        try {
            if (started != null) {
                started.close();
            }
        } finally {
            log.close();
        }
    }
}
