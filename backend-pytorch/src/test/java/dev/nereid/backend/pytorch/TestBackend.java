package dev.nereid.backend.pytorch;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A backend as the server opens it, and the models loaded with it. Closes all of them. Confined to the test's thread, but
 * for executions.
 */
final class TestBackend implements AutoCloseable {
    static final int PROCESSORS = 2;
    private static final long ALIGNMENT = 64;

    private final Deque<AutoCloseable> loaded = new ArrayDeque<>();
    private final Path directory;
    private final Map<String, String> parameters = new HashMap<>();
    private final RecordedLog log = new RecordedLog();
    private int models;
    final Arena arena = Arena.ofShared();
    final LeakCheckingMemory memory = new LeakCheckingMemory();
    final Backend backend;

    /** Opens a backend whose models lie in a directory. */
    TestBackend(Path directory) {
        this(directory, Map.of());
    }

    /** Opens a backend with settings. */
    TestBackend(Path directory, Map<String, String> settings) {
        this.directory = directory;
        backend = new PyTorchBackendProvider().create(new FakeBackendContext(settings, TestModels.CACHE, PROCESSORS));
    }

    /** Sets a parameter of the models that are loaded from now on. */
    TestBackend with(String name, String value) {
        parameters.put(name, value);
        return this;
    }

    /** Returns the lines that models have logged. */
    List<String> log() {
        return log.lines();
    }

    /** Writes a module into a new directory, which it returns. */
    Path write(TestModels.Script script) {
        try {
            models++;
            Path version =
                    Files.createDirectories(directory.resolve("model" + models).resolve("1"));
            script.save(version.resolve("model.pt"));
            return version;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    FakeModelContext context(Path version, ModelSettings settings, int instances) {
        return new FakeModelContext(
                        settings, version.getParent(), version, Collections.nCopies(instances, Device.CPU), log)
                .withParameters(parameters);
    }

    /** Loads the module in a directory. */
    Model load(Path version, ModelSettings settings, int instances) {
        Model model = backend.load(context(version, settings, instances));
        loaded.push(model);
        return model;
    }

    /** Creates an instance of a model. */
    Served instance(Model model, ModelSettings settings) {
        ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_" + loaded.size()));
        loaded.push(instance);
        return new Served(settings, model, instance);
    }

    /** Loads a module with one instance. */
    Served serve(TestModels.Script script, ModelSettingsBuilder settings) {
        ModelSettings built = settings.build();
        return instance(load(write(script), built, 1), built);
    }

    /** Loads a module, written as a source without members, with one instance. */
    Served serve(String source, ModelSettingsBuilder settings) {
        return serve(TestModels.script(source), settings);
    }

    /** An instance with its model. Executions may run on one thread at a time. */
    final class Served {
        final ModelSettings settings;
        final Model model;
        final ModelInstance instance;

        Served(ModelSettings settings, Model model, ModelInstance instance) {
            this.settings = settings;
            this.model = model;
            this.instance = instance;
        }

        /** Returns a request for all outputs. */
        FakeRequest request(int items) {
            return new FakeRequest(
                    items, settings.outputs().stream().map(TensorSpec::name).toList());
        }

        FakeBatch batch(FakeRequest... requests) {
            return new FakeBatch(settings, memory, requests);
        }

        /** Executes one request of one item, and returns copies of its outputs. */
        Map<String, Tensor> run(Map<String, Tensor> inputs) {
            return run(1, inputs);
        }

        /** Executes one request, and returns copies of its outputs. */
        Map<String, Tensor> run(int items, Map<String, Tensor> inputs) {
            FakeRequest request = request(items);
            inputs.forEach(request::with);
            try (FakeBatch batch = batch(request)) {
                instance.execute(batch);
                Map<String, Tensor> outputs = new HashMap<>();
                batch.outputs().forEach((name, output) -> outputs.put(name, copy(output)));
                return outputs;
            }
        }

        /** Executes one request with the input {@code a}, and returns a copy of its output {@code OUT__0}. */
        Tensor run(Tensor a) {
            return run(a.shape().rank() == 0 ? 1 : (int) Math.max(1, a.shape().dim(0)), Map.of("a", a))
                    .get("OUT__0");
        }

        /** Executes one request that fails, and returns the failure. */
        BackendException fails(Map<String, Tensor> inputs) {
            FakeRequest request = request(1);
            inputs.forEach(request::with);
            try (FakeBatch batch = batch(request).withWrongOutputs()) {
                instance.execute(batch);
            } catch (BackendException e) {
                return e;
            }
            return request.failure().orElseThrow(() -> new AssertionError("the request did not fail"));
        }
    }

    /** Returns a configuration with one input {@code a} and one output {@code OUT__0}. */
    static ModelSettingsBuilder one(DataType type, Shape input, Shape output) {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", type, input))
                .output(TensorSpec.of("OUT__0", type, output));
    }

    /** Returns a configuration of FP32 without batches, with one input {@code a} and one output {@code OUT__0}. */
    static ModelSettingsBuilder vector() {
        return one(DataType.FP32, Shape.of(Shape.VARIABLE), Shape.of(Shape.VARIABLE));
    }

    Tensor copy(Tensor tensor) {
        MemorySegment copied = allocate(tensor.byteSize());
        if (tensor.byteSize() > 0) {
            copied.copyFrom(tensor.data());
        }
        return Tensor.of(tensor.type(), tensor.shape(), copied);
    }

    private MemorySegment allocate(long bytes) {
        return arena.allocate(Math.max(1, bytes), ALIGNMENT).asSlice(0, bytes);
    }

    /** Returns a tensor whose memory begins {@code offset} bytes after a multiple of 64. */
    Tensor tensor(DataType type, Shape shape, byte[] content, int offset) {
        MemorySegment data =
                arena.allocate(content.length + ALIGNMENT, ALIGNMENT).asSlice(offset, content.length);
        MemorySegment.copy(content, 0, data, ValueLayout.JAVA_BYTE, 0, content.length);
        return Tensor.of(type, shape, data);
    }

    Tensor floats(Shape shape, float... values) {
        MemorySegment data = allocate(values.length * 4L);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_FLOAT, 0, values.length);
        return Tensor.of(DataType.FP32, shape, data);
    }

    Tensor ints(Shape shape, int... values) {
        MemorySegment data = allocate(values.length * 4L);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_INT, 0, values.length);
        return Tensor.of(DataType.INT32, shape, data);
    }

    static float[] floats(Tensor tensor) {
        return tensor.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    static byte[] bytes(Tensor tensor) {
        return tensor.data().toArray(ValueLayout.JAVA_BYTE);
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
