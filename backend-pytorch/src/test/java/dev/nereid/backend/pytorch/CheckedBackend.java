package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A backend as the server opens it, and the versions that are loaded from one directory. Confined to the test's thread;
 * closes all.
 */
final class CheckedBackend implements AutoCloseable {
    static final int PROCESSORS = 4;
    private static final long ALIGNMENT = 64;

    private final Deque<AutoCloseable> loaded = new ArrayDeque<>();
    private final Path directory;
    private final Map<String, String> parameters = new HashMap<>();
    private final RecordedLog log = new RecordedLog();
    private final Arena arena = Arena.ofShared();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final Backend backend;

    /** Opens a backend for versions in a directory, which is that of the model and of the version. */
    CheckedBackend(Path directory, Map<String, String> settings) {
        this.directory = directory;
        backend =
                new PyTorchBackendProvider().create(new FakeBackendContext(settings, ScriptFiles.NATIVES, PROCESSORS));
    }

    CheckedBackend(Path directory) {
        this(directory, Map.of());
    }

    /** Sets a parameter of the models that are loaded from now on. */
    CheckedBackend with(String name, String value) {
        parameters.put(name, value);
        return this;
    }

    /** Returns the lines that models have logged. */
    List<String> log() {
        return log.lines();
    }

    private FakeModelContext context(ModelSettings settings, List<Device> instances) {
        return new FakeModelContext(settings, directory, directory, instances, log).withParameters(parameters);
    }

    Optional<ModelCompletion> complete(ModelSettingsBuilder settings) {
        return backend.complete(context(settings.build(), List.of(Device.CPU)));
    }

    Model load(ModelSettingsBuilder settings) {
        return load(settings, 1);
    }

    Model load(ModelSettingsBuilder settings, int instances) {
        return load(settings, Collections.nCopies(instances, Device.CPU));
    }

    Model load(ModelSettingsBuilder settings, List<Device> instances) {
        Model model = backend.load(context(settings.build(), instances));
        loaded.push(model);
        return model;
    }

    /** Returns why a configuration is refused. */
    BackendException refusal(ModelSettingsBuilder settings) {
        return catchThrowableOfType(BackendException.class, () -> load(settings));
    }

    /** Returns why a configuration is not completed. */
    BackendException refusalToComplete(ModelSettingsBuilder settings) {
        return catchThrowableOfType(BackendException.class, () -> complete(settings));
    }

    ModelInstance instance(Model model) {
        ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_" + loaded.size()));
        loaded.push(instance);
        return instance;
    }

    /** Loads a model, and executes one request for all outputs; returns copies of them. */
    Map<String, Tensor> run(ModelSettingsBuilder settings, int items, Map<String, Tensor> inputs) {
        return run(instance(load(settings)), settings, items, inputs);
    }

    /** Executes one request for all outputs, and returns copies of them. */
    Map<String, Tensor> run(
            ModelInstance instance, ModelSettingsBuilder builder, int items, Map<String, Tensor> inputs) {
        ModelSettings settings = builder.build();
        FakeRequest request = new FakeRequest(
                items, settings.outputs().stream().map(TensorSpec::name).toList());
        inputs.forEach((name, tensor) -> request.with(name, copy(tensor)));
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            instance.execute(batch);
            Map<String, Tensor> outputs = new HashMap<>();
            batch.outputs().forEach((name, output) -> outputs.put(name, copy(output)));
            return outputs;
        }
    }

    private Tensor copy(Tensor tensor) {
        MemorySegment copied = arena.allocate(Math.max(1, tensor.byteSize()), ALIGNMENT)
                .asSlice(0, tensor.byteSize())
                .copyFrom(tensor.data());
        return Tensor.of(tensor.type(), tensor.shape(), copied);
    }

    @Override
    public void close() {
        try {
            for (AutoCloseable one : loaded) {
                one.close();
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        backend.close();
        memory.close();
        arena.close();
    }
}
