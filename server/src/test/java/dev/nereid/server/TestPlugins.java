package dev.nereid.server;

import dev.nereid.plugin.PluginJar;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Plugins for tests. */
final class TestPlugins {
    /**
     * A backend that writes a line for each call to the file of its setting {@code events}, computes OUTPUT0 = INPUT0,
     * and fails or waits as configured by the model's parameters.
     */
    private static final String RECORDING = """
            package recording;

            import dev.nereid.spi.*;
            import java.io.IOException;
            import java.nio.file.*;
            import java.util.*;

            public final class Recording implements BackendProvider {
                public String name() { return "recording"; }
                public Set<String> platforms() { return Set.of("recorded"); }

                public Backend create(BackendContext context) {
                    Path file = Path.of(context.settings().required("events"));
                    Events events = line -> {
                        try {
                            Files.writeString(file, line + "\\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                        } catch (IOException e) {
                            throw new IllegalStateException(e);
                        }
                    };
                    events.add("create");
                    if (context.settings().value("fail_create").isPresent()) {
                        throw new BackendException(ErrorCode.UNAVAILABLE, "no device");
                    }
                    return new RecordingBackend(events);
                }

                interface Events {
                    void add(String line);
                }

                record RecordingBackend(Events events) implements Backend {
                    public BackendTraits traits() {
                        return BackendTraits.DEFAULT;
                    }

                    public Optional<ModelCompletion> complete(ModelContext context) {
                        events.add("complete " + id(context));
                        context.parameters().text("completion_note");
                        if (!context.settings().name().startsWith("auto")) {
                            return Optional.empty();
                        }
                        return Optional.of(ModelCompletion.EMPTY
                                .withProposedMaxBatchSize(4)
                                .withMaxBatchSizeLimit(8)
                                .withDynamicBatching()
                                .withInput("INPUT0", DataType.FP32, -1)
                                .withOutput("OUTPUT0", DataType.FP32, -1));
                    }

                    public Model load(ModelContext context) {
                        Parameters parameters = context.parameters();
                        events.add("load " + id(context) + " on " + context.instances());
                        Path gate = context.modelDirectory().resolve(parameters.text("load_gate").orElse("gate"));
                        if (Files.exists(gate)) {
                            await(gate);
                        }
                        if (String.valueOf(context.settings().version()).equals(parameters.text("fail_load").orElse(""))) {
                            throw new BackendException(ErrorCode.INTERNAL, "the model's file is broken");
                        }
                        if (parameters.value("fail_with").isPresent()) {
                            throw new BackendException(ErrorCode.INTERNAL, parameters.required("fail_with")
                                    .replace("VERSION", context.versionDirectory().toString())
                                    .replace("LIBRARY", "/opt/vendor/lib/libvendor.so"));
                        }
                        if (parameters.value("throw_load").isPresent()) {
                            throw new IllegalStateException("a bug");
                        }
                        return new RecordingModel(events, id(context), parameters);
                    }

                    public void close() {
                        events.add("close backend");
                    }

                    private static String id(ModelContext context) {
                        return context.settings().name() + "/" + context.settings().version();
                    }
                }

                /** Waits until a file is deleted. */
                static void await(Path gate) {
                    try (WatchService watch = gate.getFileSystem().newWatchService()) {
                        gate.getParent().register(watch, StandardWatchEventKinds.ENTRY_DELETE);
                        while (Files.exists(gate)) {
                            watch.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS);
                        }
                    } catch (IOException | InterruptedException e) {
                        throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted", e);
                    }
                }

                record RecordingModel(Events events, String id, Parameters parameters) implements Model {
                    public ModelInstance newInstance(InstanceContext context) {
                        events.add("instance " + context.name() + " on " + context.device());
                        if (context.name().equals(parameters.text("fail_instance").orElse(""))) {
                            throw new BackendException(ErrorCode.UNAVAILABLE, "no memory for an instance");
                        }
                        String place = context.name() + " of " + context.hostPolicy();
                        if (parameters.value("cpus").isPresent()) {
                            events.add("made " + place + " on " + cpus());
                        }
                        return new RecordingInstance(events, context.name(), place, parameters);
                    }

                    public Optional<BackendTraits.Execution> execution() {
                        return parameters.text("execution").map(BackendTraits.Execution::valueOf);
                    }

                    public Optional<BatchingStrategy> batching() {
                        String strategy = parameters.text("strategy").orElse(null);
                        if (strategy == null) {
                            return Optional.empty();
                        }
                        events.add("batching " + id);
                        return switch (strategy) {
                            case "null" -> null;
                            case "crash" -> throw new NoClassDefFoundError("Missing");
                            case "fail" -> throw new BackendException(ErrorCode.UNAVAILABLE, "no table of costs");
                            default -> Optional.of(new RecordingStrategy(events, id));
                        };
                    }

                    public boolean suits(List<Device> instances) {
                        String count = parameters.text("suits").orElse(null);
                        return count == null || count.equals(Integer.toString(instances.size()));
                    }

                    public List<MemoryUsage> memoryUsage() {
                        String bytes = parameters.text("memory_bytes").orElse(null);
                        if (parameters.value("memory_file").isPresent()) {
                            events.add("memory " + id);
                            Path file = Path.of(parameters.required("memory_file"));
                            await(file.resolveSibling("memory_gate"));
                            try {
                                bytes = Files.readString(file);
                            } catch (IOException e) {
                                throw new BackendException(ErrorCode.INTERNAL, "no file", e);
                            }
                        }
                        return bytes == null
                                ? List.of()
                                : List.of(new MemoryUsage(MemoryPlace.HOST, Long.parseLong(bytes)));
                    }

                    public void close() {
                        events.add("close " + id);
                    }
                }

                record RecordingStrategy(Events events, String id) implements BatchingStrategy {
                    public FormingBatch begin() {
                        String loader = Thread.currentThread().getContextClassLoader() == getClass().getClassLoader()
                                ? "its own"
                                : "another";
                        events.add("begin under " + loader + " class loader");
                        return request -> {
                            events.add("include " + request.input("INPUT0").orElseThrow().shape());
                            return false;
                        };
                    }

                    public void close() {
                        events.add("close strategy of " + id);
                    }
                }

                /** Returns the processors that the operating system lets this thread run on. */
                static String cpus() {
                    try {
                        return Files.readAllLines(Path.of("/proc/thread-self/status")).stream()
                                .filter(line -> line.startsWith("Cpus_allowed_list:"))
                                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                                .findFirst()
                                .orElseThrow();
                    } catch (IOException e) {
                        throw new IllegalStateException(e);
                    }
                }

                record RecordingInstance(Events events, String name, String place, Parameters parameters)
                        implements ModelInstance {
                    public void execute(Batch batch) {
                        if (parameters.value("record").isPresent()) {
                            events.add("execute " + batch.requests().size() + " on " + name);
                        }
                        if (parameters.value("cpus").isPresent()) {
                            events.add("executed " + place + " on " + cpus());
                        }
                        if (name.equals(parameters.text("fail_execute").orElse(""))) {
                            throw new BackendException(ErrorCode.INTERNAL, "broken " + name);
                        }
                        if (name.equals(parameters.text("die_execute").orElse(""))) {
                            throw new OutOfMemoryError("Java heap space");
                        }
                        if (parameters.value("gate").isPresent()) {
                            await(Path.of(parameters.required("gate")));
                        }
                        for (InferenceRequest request : batch.requests()) {
                            request.response().put("OUTPUT0", request.input("INPUT0").orElseThrow(), () -> {});
                        }
                    }

                    public void executionOverdue() {
                        if (parameters.value("record").isPresent()) {
                            events.add("overdue " + name);
                        }
                    }

                    public java.util.concurrent.CompletionStage<Void> checkReady() {
                        return parameters.text("unready")
                                .map(reason -> java.util.concurrent.CompletableFuture.<Void>failedStage(
                                        new BackendException(ErrorCode.INTERNAL, reason)))
                                .orElseGet(() -> java.util.concurrent.CompletableFuture.completedFuture(null));
                    }

                    public void close() {
                        events.add("close " + name);
                    }
                }
            }
            """;

    /** A decoupled backend that passes on the responses of the decoupled model {@code numbers}. */
    private static final String NARRATING = """
            package narrating;

            import dev.nereid.spi.*;

            public final class Narrating implements BackendProvider {
                public String name() { return "narrating"; }

                public Backend create(BackendContext context) {
                    return model -> instance -> batch -> {
                        for (InferenceRequest request : batch.requests()) {
                            model.models().request("numbers")
                                    .onBehalfOf(request)
                                    .input("IN", request.requireInput("IN"))
                                    .send(new Narrator(request.sender()));
                        }
                    };
                }

                record Narrator(ResponseSender sender) implements ModelResponseObserver {
                    public boolean isReady() { return sender.isReady(); }

                    public void onReady(Runnable action) { sender.onReady(action); }

                    public void onResponse(ModelResponse number) {
                        InferenceResponse response = sender.newResponse();
                        try (number) {
                            response.put("OUT", number.requireOutput("OUT"), number.lease("OUT"));
                            sender.send(response);
                        } catch (BackendException e) {
                            response.discard();
                            sender.sendError(e);
                        }
                    }

                    public void onCompleted() { sender.complete(); }

                    public void onError(BackendException error) { sender.fail(error); }
                }
            }
            """;

    /**
     * A function that sends INPUT0 to the models of the parameter {@code to}, one after another, in the way of the
     * parameter {@code mode}.
     */
    private static final String CALLING = """
            package calling;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            import java.lang.foreign.MemorySegment;
            import java.util.*;
            import java.util.concurrent.*;

            public final class Calling implements AsyncTensorFunction {
                public String name() { return "Calling".toLowerCase(); }

                public BackendTraits.Execution execution() { return BackendTraits.Execution.LONG; }

                public Backend create(BackendContext context) {
                    Backend backend = AsyncTensorFunction.super.create(context);
                    return new Backend() {
                        public BackendTraits traits() { return backend.traits(); }

                        public Optional<ModelCompletion> complete(ModelContext model) {
                            return backend.complete(model);
                        }

                        public Model load(ModelContext model) {
                            change(model);
                            return backend.load(model);
                        }

                        public void close() { backend.close(); }
                    };
                }

                /** Loads and unloads other models, as the parameters say. */
                private static void change(ModelContext model) {
                    Parameters parameters = model.parameters();
                    if (parameters.value("loads").isPresent()) {
                        wait(model.models().load(parameters.required("loads")));
                    }
                    if (parameters.value("loads_elsewhere").isPresent()) {
                        CompletableFuture<Void> outcome = new CompletableFuture<>();
                        new Thread(() -> model.models()
                                        .load(parameters.required("loads_elsewhere"))
                                        .whenComplete((ignored, failure) -> {
                                            if (failure == null) {
                                                outcome.complete(null);
                                            } else {
                                                outcome.completeExceptionally(failure);
                                            }
                                        }))
                                .start();
                        wait(outcome);
                    }
                    if (parameters.value("unloads").isPresent()) {
                        wait(model.models().unload(parameters.required("unloads")));
                    }
                }

                private static void wait(CompletionStage<Void> control) {
                    try {
                        control.toCompletableFuture().get();
                    } catch (ExecutionException e) {
                        throw (BackendException) e.getCause();
                    } catch (InterruptedException e) {
                        throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted", e);
                    }
                }

                public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
                    Parameters parameters = model.parameters();
                    List<String> to = List.of(parameters.required("to").split(","));
                    Tensor input = request.requireInput("INPUT0");
                    ModelClient models = model.models();
                    switch (parameters.required("mode")) {
                        case "forward":
                            CompletionStage<ModelResponse> last = ask(models, to.get(0), request, input).send();
                            for (String next : to.subList(1, to.size())) {
                                last = last.thenCompose(before -> next(models, next, request, before));
                            }
                            return last.thenAccept(response -> respond(request, response));
                        case "wait":
                            respond(request, await(ask(models, to.get(0), request, input)));
                            return CompletableFuture.completedStage(null);
                        case "wait_alone":
                            respond(request, await(models.request(to.get(0)).input("INPUT0", input)));
                            return CompletableFuture.completedStage(null);
                        case "forget": // copies the output, and never closes the response
                            put(request, await(ask(models, to.get(0), request, input)));
                            return CompletableFuture.completedStage(null);
                        case "forget_lease": // closes the response, and never ends the lease
                            try (ModelResponse leased = await(ask(models, to.get(0), request, input))) {
                                leased.lease("OUTPUT0");
                                put(request, leased);
                            }
                            return CompletableFuture.completedStage(null);
                        case "keep_lease":
                            try (ModelResponse leased = await(ask(models, to.get(0), request, input))) {
                                KEPT_LEASES.add(leased.lease("OUTPUT0"));
                                put(request, leased);
                            }
                            return CompletableFuture.completedStage(null);
                        case "keep":
                            ModelResponse kept = await(ask(models, to.get(0), request, input));
                            KEPT.add(kept);
                            put(request, kept);
                            return CompletableFuture.completedStage(null);
                        case "wait_later":
                            CompletableFuture<Void> outcome = new CompletableFuture<>();
                            ask(models, to.get(0), request, input).send(new ModelResponseObserver() {
                                public void onResponse(ModelResponse response) {
                                    try (response) {
                                        await(ask(models, to.get(0), request, input));
                                        outcome.complete(null);
                                    } catch (IllegalStateException e) {
                                        outcome.completeExceptionally(e);
                                    }
                                }

                                public void onCompleted() {}

                                public void onError(BackendException e) { outcome.completeExceptionally(e); }
                            });
                            return outcome;
                        case "throw":
                            CompletableFuture<Void> thrown = new CompletableFuture<>();
                            ask(models, to.get(0), request, input).send(new ModelResponseObserver() {
                                public void onResponse(ModelResponse response) {
                                    throw new IllegalStateException("an observer that throws");
                                }

                                public void onCompleted() { thrown.completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "ended")); }

                                public void onError(BackendException e) { thrown.completeExceptionally(e); }
                            });
                            return thrown;
                        case "loader":
                            return ask(models, to.get(0), request, input).send().thenAccept(response -> {
                                ClassLoader own = Calling.class.getClassLoader();
                                ClassLoader seen = Thread.currentThread().getContextClassLoader();
                                if (seen != own) {
                                    response.close();
                                    throw new CompletionException(
                                            new BackendException(ErrorCode.INTERNAL, "class loader: " + seen));
                                }
                                respond(request, response);
                            });
                        case "lacking":
                            CompletableFuture<Void> lacking = new CompletableFuture<>();
                            ask(models, to.get(0), request, input).send(new ModelResponseObserver() {
                                public void onResponse(ModelResponse response) {
                                    throw new NoClassDefFoundError("a class that the plugin lacks");
                                }

                                public void onCompleted() {
                                    lacking.completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "ended"));
                                }

                                public void onError(BackendException e) { lacking.completeExceptionally(e); }
                            });
                            return lacking;
                        case "sequence": // started by 1, ended by 2
                            float value = input.data().get(java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                            return ask(models, to.get(0), request, input)
                                    .sequence(new Sequence(new Sequence.Id.Numeric(7), value == 1, value == 2))
                                    .send()
                                    .thenAccept(response -> respond(request, response));
                        case "wait_in_sequence":
                            respond(request, await(models.request(to.get(0))
                                    .sequence(new Sequence(new Sequence.Id.Numeric(7), true, false))
                                    .input("INPUT0", input)));
                            return CompletableFuture.completedStage(null);
                        case "cancel_before", "cancel_meanwhile", "cancel_later", "cancel_after":
                            ModelRequest cancelled = ask(models, to.get(0), request, input);
                            Thread cancelling = new Thread(cancelled::cancel);
                            if (parameters.required("mode").equals("cancel_before")) {
                                cancelled.cancel();
                            } else if (parameters.required("mode").equals("cancel_meanwhile")) {
                                cancelling.start();
                            }
                            CompletionStage<ModelResponse> answer = cancelled.send();
                            if (parameters.required("mode").equals("cancel_later")) {
                                cancelling.start();
                            }
                            return answer.thenAccept(response -> {
                                cancelled.cancel(); // after the end
                                respond(request, response);
                                cancelled.cancel();
                            });
                        case "stage_throws":
                            return ask(models, to.get(0), request, input).send().thenAccept(response -> {
                                response.close();
                                throw new IllegalArgumentException("a continuation that throws");
                            });
                        case "late":
                            new Thread(() -> {
                                try {
                                    while (true) {
                                        ask(models, to.get(0), request, input);
                                        request.id();
                                        Thread.onSpinWait();
                                    }
                                } catch (IllegalStateException finished) {
                                    try {
                                        ask(models, to.get(0), request, input).send();
                                    } catch (IllegalStateException e) {
                                        System.setProperty("calling.late", e.getMessage());
                                    }
                                }
                            }).start();
                            Tensor copy = request.response().allocate("OUTPUT0", input.type(), input.shape());
                            MemorySegment.copy(input.data(), 0, copy.data(), 0, input.byteSize());
                            return CompletableFuture.completedStage(null);
                        case "leave":
                            ask(models, to.get(0), request, input).send().thenAccept(ModelResponse::close);
                            Tensor own = request.response().allocate("OUTPUT0", input.type(), input.shape());
                            MemorySegment.copy(input.data(), 0, own.data(), 0, input.byteSize());
                            return CompletableFuture.completedStage(null);
                        case "load":
                            return models.unload(to.get(0))
                                    .thenCompose(ignored -> models.load(to.get(0)))
                                    .thenCompose(ignored -> ask(models, to.get(0), request, input).send())
                                    .thenAccept(response -> respond(request, response));
                        case "descend", "descend_alone", "descend_async": // as often as the input says
                            float depth = input.data().get(java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                            if (depth == 0) {
                                Tensor end = request.response().allocate("OUTPUT0", input.type(), input.shape());
                                MemorySegment.copy(input.data(), 0, end.data(), 0, input.byteSize());
                                return CompletableFuture.completedStage(null);
                            }
                            MemorySegment less = java.lang.foreign.Arena.ofAuto().allocate(4, 4);
                            less.set(java.lang.foreign.ValueLayout.JAVA_FLOAT, 0, depth - 1);
                            ModelRequest deeper = models.request(to.get(0))
                                    .input("INPUT0", Tensor.of(input.type(), input.shape(), less));
                            if (parameters.required("mode").equals("descend_alone")) {
                                respond(request, await(deeper));
                            } else if (parameters.required("mode").equals("descend")) {
                                respond(request, await(deeper.onBehalfOf(request)));
                            } else {
                                return deeper.onBehalfOf(request)
                                        .send()
                                        .thenAccept(response -> respond(request, response));
                            }
                            return CompletableFuture.completedStage(null);
                        case "load_configured":
                            byte[] added = {1};
                            return models.load(
                                            to.get(0),
                                            parameters.required("config"),
                                            parameters.value("file").isEmpty()
                                                    ? Map.of()
                                                    : Map.of(
                                                            parameters.required("file"),
                                                            java.nio.ByteBuffer.wrap(added)))
                                    .thenCompose(ignored -> ask(models, to.get(0), request, input).send())
                                    .thenAccept(response -> respond(request, response));
                        case "unload_dependents":
                            return models.unload(to.get(0), true).thenAccept(ignored -> {
                                throw new BackendException(ErrorCode.UNAVAILABLE, "unloaded");
                            });
                        case "ready":
                            long version = (long) input.data().get(java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                            throw new BackendException(
                                    ErrorCode.UNAVAILABLE, "ready: " + models.isReady(to.get(0), version));
                        default:
                            throw new IllegalStateException();
                    }
                }

                private static ModelRequest ask(
                        ModelClient models, String name, InferenceRequest cause, Tensor input) {
                    return models.request(name).onBehalfOf(cause).input("INPUT0", input);
                }

                private static CompletionStage<ModelResponse> next(
                        ModelClient models, String name, InferenceRequest cause, ModelResponse before) {
                    try (before) { // which the server keeps for its reader
                        return ask(models, name, cause, before.requireOutput("OUTPUT0")).send();
                    } catch (BackendException e) {
                        return CompletableFuture.failedStage(e);
                    }
                }

                private static ModelResponse await(ModelRequest request) {
                    try {
                        return request.sendAndWait();
                    } catch (BackendException | InterruptedException e) {
                        throw new CompletionException(e);
                    }
                }

                private static final List<ModelResponse> KEPT = new CopyOnWriteArrayList<>();
                private static final List<Runnable> KEPT_LEASES = new CopyOnWriteArrayList<>();

                private static void put(InferenceRequest request, ModelResponse response) {
                    Tensor output = response.requireOutput("OUTPUT0");
                    request.response().put("OUTPUT0", Tensor.ofFloats(output.shape(), output.floats()));
                }

                private static void respond(InferenceRequest request, ModelResponse response) {
                    try (response) {
                        request.response().put("OUTPUT0", response.requireOutput("OUTPUT0"), response.lease("OUTPUT0"));
                    } catch (BackendException e) {
                        throw new CompletionException(e);
                    }
                }
            }
            """;

    /** The example of {@link dev.nereid.spi.function.TensorFunction}. */
    private static final String TWICE = """
            package twice;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;
            import java.lang.foreign.ValueLayout;

            public final class Twice implements TensorFunction {
                public String name() { return "twice"; }

                public void apply(InferenceRequest request, ModelContext model) {
                    Tensor in = request.input("INPUT").orElseThrow();
                    Tensor out = request.response().allocate("OUTPUT", DataType.FP32, in.shape());
                    for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
                        float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
                        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, 2 * value);
                    }
                }
            }
            """;

    /**
     * A backend for ragged batches: OUTPUT0 is INPUT0 plus 100 times the index of the request in its batch, which it
     * finds by the derived input ENDS. Waits until the file of the model's parameter {@code gate} is gone.
     */
    private static final String RAGGED = """
            package ragged;

            import dev.nereid.spi.*;
            import java.lang.foreign.ValueLayout;
            import java.nio.file.*;

            public final class Ragged implements BackendProvider {
                public String name() { return "ragged"; }

                public Backend create(BackendContext context) {
                    return model -> instance -> batch -> execute(batch, Path.of(model.parameters().required("gate")));
                }

                private static void execute(Batch batch, Path gate) {
                    await(gate);
                    Tensor in = batch.gather("INPUT0");
                    Tensor ends = batch.gather("ENDS");
                    Tensor out = batch.allocate("OUTPUT0", DataType.FP32, in.shape());
                    int place = 0;
                    for (long i = 0; i < in.shape().elementCount(); i++) {
                        while (i >= ends.data().getAtIndex(ValueLayout.JAVA_INT, place)) {
                            place++;
                        }
                        float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, i * Float.BYTES);
                        out.data().setAtIndex(ValueLayout.JAVA_FLOAT, i, value + 100 * place);
                    }
                }

                private static void await(Path gate) {
                    try (WatchService watch = gate.getFileSystem().newWatchService()) {
                        gate.getParent().register(watch, StandardWatchEventKinds.ENTRY_DELETE);
                        while (Files.exists(gate)) {
                            watch.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS);
                        }
                    } catch (java.io.IOException | InterruptedException e) {
                        throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted", e);
                    }
                }
            }
            """;

    /** An identity backend that adds the result of its library as a parameter of each response. */
    private static final String IDENTITY = """
            package identity;

            import dev.nereid.spi.*;
            import dev.nereid.spi.function.*;

            public final class Identity implements TensorFunction {
                public String name() { return "NAME"; }

                public void apply(InferenceRequest request, ModelContext model) {
                    request.response().put("OUTPUT0", request.input("INPUT0").orElseThrow(), () -> {});
                    request.response().parameter("library", small.Library.version());
                }
            }
            """;

    private static final String ACTING = """
            package acting;

            import dev.nereid.spi.*;

            public final class Acting implements BackendProvider {
                public String name() { return "acting"; }

                public Backend create(BackendContext context) {
                    return model -> place -> batch -> {
                        for (InferenceRequest request : batch.requests()) {
                            ResponseSender sender = request.sender();
                            sender.onReady(() -> act(sender));
                        }
                    };
                }

                private static void act(ResponseSender sender) {
                    Thread thread = Thread.currentThread();
                    InferenceResponse response = sender.newResponse();
                    response.parameter("thread", thread.getName());
                    response.parameter("virtual", thread.isVirtual());
                    response.parameter("loader", thread.getContextClassLoader() == Acting.class.getClassLoader());
                    try {
                        response.allocate("OUT", DataType.INT32, Shape.of(1));
                        sender.complete(response);
                    } catch (BackendException e) {
                        sender.fail(e);
                    }
                }
            }
            """;

    /**
     * A backend whose fence computes OUTPUT0: 1 for each number if it runs with the class loader of the plugin, and 0
     * otherwise. The fence of a negative number is broken.
     */
    private static final String FENCED = """
            package fenced;

            import dev.nereid.spi.*;
            import java.lang.foreign.*;
            import java.time.Duration;

            public final class Fenced implements BackendProvider {
                public String name() { return "fenced"; }

                public Backend create(BackendContext context) {
                    return model -> place -> batch -> {
                        Tensor in = batch.gather("INPUT0");
                        Arena arena = Arena.ofShared();
                        Tensor out = Tensor.of(DataType.FP32, in.shape(), arena.allocate(in.byteSize(), 64));
                        float first = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
                        batch.put("OUTPUT0", out.withFence(new Work(first, out.data())), arena::close);
                    };
                }

                record Work(float number, MemorySegment out) implements Fence {
                    public boolean isDone() { return false; }

                    public boolean await(Duration timeout) {
                        if (number < 0) {
                            throw new IllegalStateException("a broken fence");
                        }
                        boolean own = Thread.currentThread().getContextClassLoader() == Fenced.class.getClassLoader();
                        for (long at = 0; at < out.byteSize(); at += Float.BYTES) {
                            out.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, own ? 1 : 0);
                        }
                        return true;
                    }

                }
            }
            """;

    /** A backend of TensorRT's name with an input in vectors of four, whose first three numbers are its output. */
    private static final String PADDED = """
            package padded;

            import dev.nereid.spi.*;
            import java.lang.foreign.MemorySegment;
            import java.util.Map;

            public final class Padded implements BackendProvider {
                public String name() { return "tensorrt"; }

                public Backend create(BackendContext context) {
                    return model -> new PaddedModel() {
                        public Map<String, Shape> paddedInputs() { return Map.of("INPUT0", Shape.of(4, 1, 1)); }

                        public ModelInstance newInstance(InstanceContext instance) { return Padded::execute; }
                    };
                }

                private static void execute(Batch batch) {
                    Tensor in = batch.gather("INPUT0");
                    if (!in.shape().equals(Shape.of(batch.size(), 4, 1, 1))) {
                        throw new BackendException(ErrorCode.INTERNAL, "shape " + in.shape());
                    }
                    Tensor out = batch.allocate("OUTPUT0", DataType.FP32, Shape.of(batch.size(), 3));
                    for (int item = 0; item < batch.size(); item++) {
                        MemorySegment.copy(in.data(), 16L * item, out.data(), 12L * item, 12);
                    }
                }
            }
            """;

    private static final String LIBRARY = """
            package small;

            public final class Library {
                public static String version() { return "VERSION"; }
            }
            """;

    private TestPlugins() {}

    static void narrating(Path plugins) {
        PluginJar.of(NARRATING).provider("narrating.Narrating").write(plugins.resolve("narrating.jar"));
    }

    static void calling(Path plugins) {
        PluginJar.of(CALLING, CALLING.replace("Calling", "Short").replace("LONG", "SHORT"))
                .provider("calling.Calling")
                .provider("calling.Short")
                .write(plugins.resolve("calling.jar"));
    }

    static void recording(Path plugins) {
        PluginJar.of(RECORDING).provider("recording.Recording").write(plugins.resolve("recording.jar"));
    }

    /** The backend with a rule of its own for batches that the documentation shows. */
    static void documentedStrategy(Path plugins) throws IOException {
        PluginJar.of("package budget;" + documented("Budget"))
                .provider("budget.Budget")
                .write(plugins.resolve("budget.jar"));
    }

    /** The asynchronous function that the documentation shows. */
    static void documentedFunction(Path plugins) throws IOException {
        PluginJar.of("package delay;" + documented("Delay"))
                .provider("delay.Delay")
                .write(plugins.resolve("delay.jar"));
    }

    /** The functions with annotations and with methods that the documentation shows. */
    static void documentedFunctions(Path jar) throws IOException {
        List<String> types = List.of("Twice", "Labels", "Vocabulary", "Count", "TextScores");
        List<String> sources = new ArrayList<>();
        for (String type : types) {
            sources.add(documented(type));
        }
        PluginJar.of(sources.toArray(String[]::new))
                .entry("META-INF/services/dev.nereid.spi.BackendProvider", String.join("\n", types))
                .write(jar);
    }

    /** The backend for slow clients that the documentation shows. */
    static void documentedSender(Path plugins) throws IOException {
        PluginJar.of("package numbers;" + documented("Numbers"))
                .provider("numbers.Numbers")
                .write(plugins.resolve("numbers.jar"));
    }

    /** Returns the source of a class that the documentation shows. */
    private static String documented(String type) throws IOException {
        String text = Files.readString(Path.of("..", "docs", "backend-authors.md"));
        int name = text.lastIndexOf("public final class " + type + " ");
        int start = text.lastIndexOf("```java", name);
        return text.substring(text.indexOf('\n', start), text.indexOf("```", name));
    }

    /** A backend whose action reports its thread, its class loader and its sender by a response. */
    static void acting(Path plugins) {
        PluginJar.of(ACTING).provider("acting.Acting").write(plugins.resolve("acting.jar"));
    }

    static void fenced(Path plugins) {
        PluginJar.of(FENCED).provider("fenced.Fenced").write(plugins.resolve("fenced.jar"));
    }

    static void padded(Path plugins) {
        PluginJar.of(PADDED).provider("padded.Padded").write(plugins.resolve("padded.jar"));
    }

    static void ragged(Path plugins) {
        PluginJar.of(RAGGED).provider("ragged.Ragged").write(plugins.resolve("ragged.jar"));
    }

    static void twice(Path plugins) {
        PluginJar.of(TWICE).provider("twice.Twice").write(plugins.resolve("twice.jar"));
    }

    /** An identity plugin that is compiled against, and brings, its own version of a library. */
    static void identity(Path plugins, String name, String libraryVersion) {
        Path directory = plugins.resolve(name);
        Path library = PluginJar.of(LIBRARY.replace("VERSION", libraryVersion))
                .spiVersion("")
                .write(directory.resolve("library.jar"));
        PluginJar.of(IDENTITY.replace("NAME", name))
                .provider("identity.Identity")
                .compiledAgainst(library)
                .write(directory.resolve("plugin.jar"));
    }
}
