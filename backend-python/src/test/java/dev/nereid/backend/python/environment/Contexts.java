package dev.nereid.backend.python.environment;

import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/** Contexts of a backend and of a model in a temporary directory. Static functions only. */
final class Contexts {
    private Contexts() {}

    /** Settings of the backend, which errors name as the server does. */
    private record Settings(Parameters values) implements Parameters {
        @Override
        public Optional<Object> value(String name) {
            return values.value(name);
        }

        @Override
        public Map<String, Object> asMap() {
            return values.asMap();
        }

        @Override
        public String label(String name) {
            return "--backend-config=python," + name;
        }
    }

    static FakeBackendContext backend(Path directory, Map<String, String> settings, Map<String, String> environment) {
        Path plugin = directory(directory.resolve("plugin"));
        Path cache = directory(directory.resolve("cache"));
        return new FakeBackendContext(
                "python", new Settings(Parameters.of(settings)), plugin, cache, 2, new RecordedLog(), environment);
    }

    static FakeModelContext model(Path directory, String name) {
        return model(directory, ModelSettings.builder(name, 1).build());
    }

    static FakeModelContext model(Path directory, ModelSettings settings) {
        Path model = directory(directory.resolve("models").resolve(settings.name()));
        directory(model.resolve(Long.toString(settings.version())));
        return new FakeModelContext(settings, model);
    }

    private static Path directory(Path path) {
        try {
            return Files.createDirectories(path);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
