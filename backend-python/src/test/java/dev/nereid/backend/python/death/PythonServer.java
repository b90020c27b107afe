package dev.nereid.backend.python.death;

import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.backend.python.PythonProvider;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendException;
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
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.stream.Stream;

/**
 * A server with models that run the code of their requests: the input CODE is executed by Python, with the input IN as {@code
 * value}, and OUT is {@code value} afterwards. Where the code sets {@code answer}, that is returned from {@code execute}.
 */
final class PythonServer implements AutoCloseable {
    private static final String CONFIG = """
            backend: "python"
            input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] }, { name: "IN" data_type: TYPE_INT64 dims: [ -1 ] } ]
            output [ { name: "OUT" data_type: TYPE_INT64 dims: [ -1 ] } ]
            """;

    private static final long PATIENCE_NANOS = Duration.ofSeconds(60).toNanos();

    private final LocalServer server;
    private final Queue<String> log = new ConcurrentLinkedQueue<>();
    private final Logger root = Logger.getLogger("");
    private final Handler handler = new Handler() {
        private final SimpleFormatter formatter = new SimpleFormatter();

        @Override
        public void publish(LogRecord line) {
            log.add(line.getLevel() + " " + formatter.formatMessage(line));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    private PythonServer(Builder builder) {
        root.addHandler(handler);
        for (Handler other : root.getHandlers()) {
            if (other instanceof java.util.logging.ConsoleHandler) {
                root.removeHandler(other);
            }
        }
        LocalServerBuilder built = LocalServer.with(new PythonProvider()).timeout(Duration.ofSeconds(60));
        builder.models.forEach(built::model);
        server = built.options(builder.options).start();
    }

    /** Begins a server whose models are written to a directory. Processes are started again at once unless set otherwise. */
    static Builder in(Path directory) {
        return new Builder(directory);
    }

    /** A builder of a server. */
    static final class Builder {
        private final Path directory;
        private final List<Path> models = new ArrayList<>();
        private Consumer<ServerOptions.Builder> options = _ -> {};

        private Builder(Path directory) {
            this.directory = directory;
            setting("restart-delay", "50ms");
        }

        Builder model(String name) {
            return model(name, "");
        }

        Builder model(String name, String config) {
            return model(name, config, "", "");
        }

        /** Adds a model with code that runs in {@code initialize} and {@code finalize}. */
        Builder model(String name, String config, String initialize, String finalize) {
            write(directory.resolve(name).resolve("config.pbtxt"), CONFIG + config);
            write(
                    directory.resolve(name).resolve("1").resolve("model.py"),
                    program(quoted(initialize), quoted(finalize)));
            models.add(directory.resolve(name));
            return this;
        }

        private static String program(String initialize, String finalize) {
            return """
                import ctypes, gc, os, resource, signal, subprocess, sys, threading, time
                import numpy as np
                import triton_python_backend_utils as pb


                class TritonPythonModel:
                    def initialize(self, args):
                        self.args = args
                        self.kept = []
                        exec(compile(%s, "initialize", "exec"), globals(), {"self": self, "args": args})

                    def execute(self, requests):
                        responses = []
                        for request in requests:
                            code = pb.get_input_tensor_by_name(request, "CODE").as_numpy().reshape(-1)[0].decode()
                            scope = {"self": self, "request": request, "value": pb.get_input_tensor_by_name(request, "IN").as_numpy()}
                            exec(compile(code, "code", "exec"), globals(), scope)
                            if "answer" in scope:
                                responses.append(scope["answer"])
                            else:
                                responses.append(pb.InferenceResponse([pb.Tensor("OUT", scope["value"])]))
                        return None if self.args["model_config"].find('"decoupled":true') >= 0 else responses

                    def finalize(self):
                        exec(compile(%s, "finalize", "exec"), globals(), {"self": self})
                """.formatted(initialize, finalize);
        }

        private static String quoted(String code) {
            return '"' + code.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
        }

        Builder setting(String name, String value) {
            return options(changed -> changed.backendSetting("python", name, value));
        }

        Builder options(Consumer<ServerOptions.Builder> change) {
            options = options.andThen(change);
            return this;
        }

        PythonServer start() {
            return new PythonServer(this);
        }

        private static void write(Path file, String text) {
            try {
                Files.createDirectories(file.getParent());
                Files.writeString(file, text);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    LocalServer server() {
        return server;
    }

    ModelRequest request(String model, String code, long... values) {
        return server.client()
                .request(model)
                .input("CODE", Shape.of(1), code)
                .input("IN", Shape.of(values.length), values);
    }

    ReceivedResponses send(String model, String code, long... values) {
        return server.send(request(model, code, values));
    }

    /** Returns the output of a request. */
    long[] ask(String model, String code, long... values) {
        try (ModelResponse response =
                request(model, code, values).send().toCompletableFuture().join()) {
            return response.requireOutput("OUT").longs();
        } catch (CompletionException e) {
            throw e.getCause() instanceof BackendException failure ? failure : e;
        }
    }

    /** Returns the error of a request. */
    BackendException failure(String model, String code, long... values) {
        try {
            ask(model, code, values);
        } catch (BackendException e) {
            return e;
        }
        throw new AssertionError("the request did not fail: " + code);
    }

    /** Waits until a request succeeds, as after a restart. */
    void awaitService(String model) {
        await(() -> {
            try {
                return ask(model, "", 7)[0] == 7;
            } catch (BackendException e) {
                return false;
            }
        });
    }

    /** Returns the number of the process of an instance. */
    long process(String model) {
        return ask(model, "value = np.array([os.getpid()])", 0)[0];
    }

    ModelCatalog.Readiness readiness(String model) {
        return server.server()
                .models()
                .checkReady(ModelRef.latest(model))
                .toCompletableFuture()
                .join();
    }

    ModelStatus status(String model) {
        return server.server().models().index().stream()
                .filter(status -> status.name().equals(model))
                .findFirst()
                .orElseThrow();
    }

    /** Returns the lines that were logged. */
    List<String> log() {
        return List.copyOf(log);
    }

    boolean hasLogged(String part) {
        return log.stream().anyMatch(line -> line.contains(part));
    }

    static void await(BooleanSupplier condition) {
        long begin = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - begin > PATIENCE_NANOS) {
                throw new AssertionError("it does not come about");
            }
            LockSupport.parkNanos(5_000_000);
        }
    }

    static boolean isAlive(long process) {
        try {
            String stat = Files.readString(Path.of("/proc", Long.toString(process), "stat"));
            return stat.charAt(stat.lastIndexOf(')') + 2) != 'Z';
        } catch (IOException e) {
            return false;
        }
    }

    /** Returns the directories of sockets in the directory for temporary files. */
    static List<Path> socketDirectories() {
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
            return files.filter(file -> file.getFileName().toString().startsWith("nereid-python-"))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void kill(long process, String signal) {
        try {
            new ProcessBuilder("kill", "-" + signal, Long.toString(process))
                    .start()
                    .waitFor();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        try {
            server.close();
        } finally {
            root.removeHandler(handler);
        }
    }
}
