package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PythonProviderTest {
    @TempDir
    Path directory;

    @Test
    void isFoundAsThePythonBackend() {
        BackendProvider found = ServiceLoader.load(BackendProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(PythonProvider.class::isInstance)
                .findFirst()
                .orElseThrow();

        assertThat(found.name()).isEqualTo("python");
        assertThat(found.platforms()).isEmpty();
        assertThat(found.unavailable()).isEmpty();
    }

    @Test
    void claimsDirectoriesWithModelPy() throws IOException {
        PythonProvider provider = new PythonProvider();
        Path backend = Files.createDirectory(directory.resolve("vllm"));
        assertThat(provider.claims(backend)).isEmpty();

        Files.createDirectory(backend.resolve("model.py"));
        assertThat(provider.claims(backend)).isEmpty();
        Files.delete(backend.resolve("model.py"));
        Files.writeString(backend.resolve("model.py"), "");
        assertThat(provider.claims(backend)).contains("vllm");
        Files.writeString(backend.resolve("a.jar"), "");
        assertThat(provider.claims(backend)).isEmpty();
    }
}
