package dev.nereid.testkit.contract;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A model in memory, without a server: one backend, one model, its instances. Confined to the test's thread; {@link
 * #close} closes all of them, in the order of the server, and fails if scratch memory is left.
 *
 * <p>An execution goes through the same checks as in a {@link BackendContract}: outputs fit the configuration, inputs
 * stay as they are, no memory is left, and every request ends. A model is loaded and responds in milliseconds:
 *
 * {@snippet :
 * ContractModel model = ContractModel.of(ModelSettings.builder("doubled", 1)
 *         .maxBatchSize(8)
 *         .input(TensorSpec.of("INPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
 *         .output(TensorSpec.of("OUTPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
 *         .build());
 * try (LocalModel doubled = LocalModel.load(new Twice(), model)) {
 *     Tensor out = doubled.infer(ContractExample.request().input("INPUT", Shape.of(1, 2), 1, 2.5f)).output("OUTPUT");
 * }
 * }
 */
public final class LocalModel implements AutoCloseable {
    private static final int PROCESSORS = 2;

    /** How long the start of an instance may take. */
    private static final int START_SECONDS = 60;

    private final ContractModel contract;
    private final Backend backend;
    private final Model model;
    private final LeakCheckingMemory scratch;
    private final Optional<ModelCalls> calls;
    private final List<ModelInstance> instances = new ArrayList<>();
    private int created;

    private LocalModel(ContractModel contract, Backend backend, Model model, Optional<ModelCalls> calls) {
        this.contract = contract;
        scratch = contract.memory();
        this.calls = calls;
        this.backend = backend;
        this.model = model;
    }

    /**
     * Loads a model with one instance.
     *
     * @return the model, owned by the caller
     * @throws BackendException if backend, model or instance cannot be created
     */
    public static LocalModel load(BackendProvider provider, ContractModel model) {
        return load(provider, model, 1);
    }

    static LocalModel load(BackendProvider provider, ContractModel model, int instances) {
        Path cache = model.cacheDirectory().orElseGet(LocalModel::temporaryDirectory);
        Backend backend = ContextLoader.returned(
                "BackendProvider.create",
                () -> provider.create(new FakeBackendContext(model.backendSettings(), cache, PROCESSORS)));
        LocalModel local = null;
        try {
            local = of(backend, model, instances);
            return local;
        } finally {
            if (local == null) {
                backend.close();
            }
        }
    }

    private static LocalModel of(Backend backend, ContractModel contract, int instances) {
        Optional<ModelCalls> calls = contract.calls();
        FakeModelContext plain = contract.context(instances);
        FakeModelContext context =
                calls.map(models -> plain.with(models.client())).orElse(plain);
        try {
            Model model = ContextLoader.returned("Backend.load", () -> backend.load(context));
            LocalModel local = new LocalModel(contract, backend, model, calls);
            boolean created = false;
            try {
                for (int i = 0; i < instances; i++) {
                    local.addInstance();
                }
                created = true;
                return local;
            } finally {
                if (!created) {
                    local.instances.forEach(ModelInstance::close);
                    model.close();
                }
            }
        } finally {
            context.endLoad();
        }
    }

    private static Path temporaryDirectory() {
        try {
            Path directory = Files.createTempDirectory("nereid-backend");
            directory.toFile().deleteOnExit();
            return directory;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Executes one request.
     *
     * @param request the request; its expected response does not count
     * @return the response, or the error with which the request failed
     * @throws AssertionError if the backend violates its contract
     */
    public LocalResponse infer(ContractExample request) {
        return inferTogether(List.of(request)).getFirst();
    }

    /**
     * Executes several requests as one batch.
     *
     * @param requests the requests, at least one
     * @return the responses in the order of the requests
     * @throws AssertionError if the backend violates its contract
     */
    public List<LocalResponse> inferTogether(List<ContractExample> requests) {
        return execution(requests, Set.of()).run(instances.getFirst(), () -> {});
    }

    LocalExecution execution(List<ContractExample> requests, Set<Integer> nulls) {
        return new LocalExecution(contract, requests, nulls, new LeakCheckingMemory());
    }

    /** Creates one more instance, as an update of the configuration does while others serve. */
    void addInstance() {
        String name = contract.settings().name() + "_0_" + created++;
        ModelInstance instance = ContextLoader.returned(
                "Model.newInstance",
                () -> model.newInstance(new FakeInstanceContext(name, contract.device(), List.of(), scratch)));
        instances.add(instance);
        awaitStarted(name, ContextLoader.returned("ModelInstance.started", instance::started));
    }

    private static void awaitStarted(String name, CompletionStage<Void> start) {
        try {
            start.toCompletableFuture().get(START_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof BackendException failure
                    ? new BackendException(failure.code(), String.valueOf(failure.getMessage()), failure)
                    : new BackendException(ErrorCode.INTERNAL, "ModelInstance.started: " + e.getCause(), e);
        } catch (TimeoutException e) {
            throw new AssertionError(
                    "ModelInstance.started: " + name + " has not started after " + START_SECONDS
                            + " s (expected: a stage that ends)",
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted during the start of " + name, e);
        }
    }

    /** Closes the first instance. */
    void removeInstance() {
        instances.removeFirst().close();
    }

    ModelInstance instance(int index) {
        return instances.get(index);
    }

    Model model() {
        return model;
    }

    /**
     * Closes instances, model and backend.
     *
     * @throws AssertionError if scratch memory of an instance is open, or was closed twice, or if a response of a called
     *     model is open
     */
    @Override
    public void close() {
        try {
            ContextLoader.keeping("the close", () -> {
                instances.forEach(ModelInstance::close);
                model.close();
            });
            scratch.close();
            ContextLoader.keeping("Backend.close", backend::close);
            calls.ifPresent(ModelCalls::close);
        } catch (BackendException e) {
            throw new AssertionError("closed with " + e + " (expected: no exception)", e);
        }
    }
}
