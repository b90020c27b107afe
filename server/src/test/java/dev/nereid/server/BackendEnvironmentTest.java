package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The environment variables that a backend passes to its processes. */
final class BackendEnvironmentTest {
    @TempDir
    private Path directory;

    private final List<Map<String, String>> seen = new CopyOnWriteArrayList<>();

    @Test
    void hasTheVariablesOfTheServerWithoutItsSecrets() throws Exception {
        Files.createDirectories(directory.resolve("plugins"));
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.model("m", "backend: \"looking\"\n" + TestModels.TENSORS);
        ServerOptions options = ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.providers = List.of(new Looking());
                    o.exitOnError = false;
                });

        NereidServer.start(options).close();
        NereidServer.start(options.with(
                        o -> o.environment = Map.of("HOME", "/root", "NEREID_HTTP_RESTRICTED_API", "health:k=v")))
                .close();

        assertThat(seen).containsExactly(Map.of(), Map.of("HOME", "/root"));
    }

    private final class Looking implements BackendProvider, Backend {
        @Override
        public String name() {
            return "looking";
        }

        @Override
        public Backend create(BackendContext context) {
            seen.add(context.environment());
            return this;
        }

        @Override
        public Model load(ModelContext context) {
            throw new BackendException(ErrorCode.UNSUPPORTED, "no models here");
        }
    }
}
