package dev.nereid.backend.tensorflow;

import dev.nereid.spi.Backend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A backend as the server opens it, and the models loaded with it. Confined to the test's thread; closes all. */
final class TestBackend implements AutoCloseable {
    static final int PROCESSORS = 2;
    private static final long ALIGNMENT = 64;

    private final Deque<AutoCloseable> loaded = new ArrayDeque<>();
    private final Path directory;
    private final Map<String, String> parameters = new HashMap<>();
    private final RecordedLog log = new RecordedLog();
    final Arena arena = Arena.ofShared();
    final LeakCheckingMemory memory = new LeakCheckingMemory();
    final Backend backend;

    /** Opens a backend for models in a directory, whose version it is. */
    TestBackend(Path directory, Map<String, String> settings) {
        TensorFlowJava.ensureLoaded();
        this.directory = directory;
        backend = new TensorFlowBackendProvider()
                .create(new FakeBackendContext(settings, TensorFlowJava.CACHE, PROCESSORS));
    }

    TestBackend(Path directory) {
        this(directory, Map.of());
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

    FakeModelContext context(ModelSettings settings, int instances) {
        return context(directory, settings, instances);
    }

    FakeModelContext context(Path directory, ModelSettings settings, int instances) {
        return new FakeModelContext(settings, directory, directory, Collections.nCopies(instances, Device.CPU), log)
                .withParameters(parameters);
    }

    ModelCompletion complete(ModelSettingsBuilder settings) {
        return backend.complete(context(settings.build(), 0)).orElseThrow();
    }

    Model load(ModelSettingsBuilder settings) {
        return load(settings, 1);
    }

    Model load(ModelSettingsBuilder settings, int instances) {
        Model model = backend.load(context(settings.build(), instances));
        loaded.push(model);
        return model;
    }

    ModelInstance instance(Model model) {
        ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_" + loaded.size()));
        loaded.push(instance);
        return instance;
    }

    /** Loads a model and creates an instance of it. */
    ModelInstance instance(ModelSettingsBuilder settings) {
        return instance(load(settings));
    }

    /** Executes one request for all outputs, and returns copies of them. */
    Map<String, Tensor> run(ModelInstance instance, ModelSettings settings, int items, Map<String, Tensor> inputs) {
        FakeRequest request = new FakeRequest(
                items, settings.outputs().stream().map(output -> output.name()).toList());
        inputs.forEach(request::with);
        try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
            instance.execute(batch);
            Map<String, Tensor> outputs = new HashMap<>();
            batch.outputs().forEach((name, output) -> outputs.put(name, copy(output)));
            return outputs;
        }
    }

    Tensor copy(Tensor tensor) {
        MemorySegment copied = arena.allocate(tensor.byteSize(), ALIGNMENT).copyFrom(tensor.data());
        return Tensor.of(tensor.type(), tensor.shape(), copied);
    }

    /** Returns a tensor whose memory begins {@code offset} bytes after a multiple of 64. */
    Tensor tensor(DataType type, Shape shape, byte[] content, int offset) {
        MemorySegment data =
                arena.allocate(content.length + ALIGNMENT, ALIGNMENT).asSlice(offset, content.length);
        MemorySegment.copy(content, 0, data, ValueLayout.JAVA_BYTE, 0, content.length);
        return Tensor.of(type, shape, data);
    }

    Tensor floats(Shape shape, float... values) {
        MemorySegment data =
                arena.allocate(Math.max(1, values.length) * 4L, ALIGNMENT).asSlice(0, values.length * 4L);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_FLOAT, 0, values.length);
        return Tensor.of(DataType.FP32, shape, data);
    }

    static float[] floats(Tensor tensor) {
        return tensor.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    static String text(Tensor tensor) {
        return Arrays.toString(floats(tensor));
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
