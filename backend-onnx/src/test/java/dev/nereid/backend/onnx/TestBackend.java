package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.Backend;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.RecordedLog;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/** A backend as the server opens it, and the models loaded with it. Confined to the test's thread; closes all. */
final class TestBackend implements AutoCloseable {
    private static final int PROCESSORS = 4;

    private final Deque<AutoCloseable> loaded = new ArrayDeque<>();
    final Backend backend;

    TestBackend(Map<String, String> settings) {
        backend = new OnnxBackendProvider().create(context(settings));
    }

    TestBackend() {
        this(Map.of());
    }

    static FakeBackendContext context(Map<String, String> settings) {
        return new FakeBackendContext(settings, Path.of("target", "native"), PROCESSORS);
    }

    /** Returns a model among the resources of the tests, or anywhere else by its whole path. */
    static FakeModelContext model(ModelSettings settings, Device... instances) {
        Path file = Path.of(settings.modelFilename());
        Path directory = file.isAbsolute()
                ? file.getParent()
                : TestModels.model("add_sub.onnx").getParent();
        return new FakeModelContext(settings, directory, directory, List.of(instances), new RecordedLog());
    }

    static FakeModelContext model(ModelSettings settings, int instances) {
        return model(settings, Collections.nCopies(instances, Device.CPU).toArray(Device[]::new));
    }

    /** Loads a model and creates an instance of it. */
    ModelInstance instance(ModelSettingsBuilder settings) {
        Model model = backend.load(model(settings.build(), 1));
        loaded.push(model);
        ModelInstance instance = model.newInstance(new FakeInstanceContext("0"));
        loaded.push(instance);
        return instance;
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
    }
}
