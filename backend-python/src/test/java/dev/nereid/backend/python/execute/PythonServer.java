package dev.nereid.backend.python.execute;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.PythonProvider;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.LocalServerBuilder;
import dev.nereid.testkit.server.ReceivedResponses;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A server in memory with models in Python that a test writes, run by a Python with NumPy. Skips its test without one. */
public final class PythonServer implements AutoCloseable {
    /** Runs the function {@code run(self, requests)} of the program in its input CODE; of a batch, that of the first request. */
    public static final String SCRIPTED = """
            import asyncio, collections, gc, json, os, sys, threading, time
            import numpy as np
            import triton_python_backend_utils as pb


            def text(request, name="CODE"):
                return pb.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0].decode()


            def tensor(request, name="X"):
                return pb.get_input_tensor_by_name(request, name)


            def out(value, name="OUT"):
                if isinstance(value, str):
                    value = np.array([value.encode()], dtype=object)
                if not isinstance(value, pb.Tensor):
                    value = pb.Tensor(name, np.asarray(value))
                return pb.InferenceResponse([value])


            class TritonPythonModel:
                def initialize(self, args):
                    self.args = args
                    self.kept = []

                def execute(self, requests):
                    scope = dict(globals())
                    exec(text(requests[0]), scope)
                    return scope["run"](self, requests)
            """;

    /** A configuration for {@link #SCRIPTED}: the input X has any shape of FP32. */
    public static final String SCRIPTED_CONFIG = config("TYPE_FP32", "");

    /** Code that is a whole program. */
    private static final Pattern PROGRAM = Pattern.compile("^(async )?def run\\(", Pattern.MULTILINE);

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final LocalServer server;
    private final Path files;
    private final RecordedLog log;

    private PythonServer(LocalServer server, Path files, RecordedLog log) {
        this.server = server;
        this.files = files;
        this.log = log;
    }

    /** Returns a configuration for {@link #SCRIPTED} with the type of the input X, and more fields. */
    public static String config(String type, String more) {
        return """
                input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] },
                        { name: "X" data_type: %s dims: [ -1 ] optional: true } ]
                output [ { name: "OUT" data_type: %s dims: [ -1 ] }, { name: "MORE" data_type: %s dims: [ -1 ] } ]
                """.formatted(type, type, type) + more;
    }

    /** The models of a server before its start. */
    public static final class Builder {
        private final Path files;
        private final LocalServerBuilder builder;

        private Builder(Path files) {
            this.files = files;
            builder = LocalServer.with(new PythonProvider())
                    .timeout(LIMIT)
                    .withWrongOutputs()
                    .options(options -> options.backendSetting("python", "executable", Pythons.executable()));
        }

        /** Adds a model. */
        public Builder model(String name, String config, String program) {
            builder.model(name, config);
            return file(name, "1/model.py", program);
        }

        /** Adds a model of another backend, such as an ensemble. */
        public Builder model(String name, String config) {
            builder.model(name, config);
            return this;
        }

        /** Adds a file to a model. */
        public Builder file(String model, String path, String content) {
            try {
                Path file = files.resolve(model).resolve(path);
                Files.createDirectories(file.getParent());
                Files.writeString(file, content);
                builder.file(model, path, file);
                return this;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        public Builder options(Consumer<ServerOptions.Builder> change) {
            builder.options(change);
            return this;
        }

        public PythonServer start() {
            RecordedLog log = RecordedLog.begin();
            boolean isStarted = false;
            try {
                PythonServer server = new PythonServer(builder.start(), files, log);
                isStarted = true;
                return server;
            } finally {
                if (!isStarted) {
                    log.close();
                    delete(files);
                }
            }
        }
    }

    /** Begins a server without models. */
    public static Builder builder() {
        Assumptions.assumeTrue(Pythons.isAvailable(), "no python3 with NumPy on this machine");
        try {
            return new Builder(Files.createTempDirectory("nereid-python"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Starts a server with one model. */
    public static PythonServer serve(String name, String config, String program) {
        return builder().model(name, config, program).start();
    }

    /** Starts a server with the model {@code scripted}. */
    public static PythonServer scripted() {
        return serve("scripted", SCRIPTED_CONFIG, SCRIPTED);
    }

    public LocalServer local() {
        return server;
    }

    public RecordedLog log() {
        return log;
    }

    public ModelRequest request(String model) {
        return server.client().request(model);
    }

    /** Returns a request that runs code: a whole program with {@code run}, or the body of it. */
    public ModelRequest code(String model, String code) {
        return request(model).input("CODE", Shape.of(1), program(code));
    }

    /** Returns a program with {@code run}, of which the code may be the body. */
    public static String program(String code) {
        return PROGRAM.matcher(code).find()
                ? code
                : "def run(self, requests):\n" + code.strip().indent(4);
    }

    public ReceivedResponses send(ModelRequest request) {
        return server.send(request);
    }

    /** Runs code in the model {@code scripted} and returns its response, owned by the server. */
    public ModelResponse run(String code) {
        return send(code("scripted", code)).one();
    }

    /** Runs code in the model {@code scripted} and returns the text of its output OUT. */
    public String runText(String code) {
        return run(code).requireOutput("OUT").strings().getFirst();
    }

    /** Waits until a condition holds. */
    public static void await(String what, BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(what).isLessThan(LIMIT.toNanos());
            java.util.concurrent.locks.LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    @Override
    public void close() {
        try {
            server.close();
        } finally {
            log.close();
            delete(files);
        }
    }

    private static void delete(Path root) {
        try (Stream<Path> files = Files.walk(root)) {
            List<Path> all = new ArrayList<>(files.toList());
            all.sort(Comparator.reverseOrder());
            for (Path file : all) {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
