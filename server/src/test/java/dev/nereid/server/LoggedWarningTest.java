package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Warnings that backends log about models, which a check reports. */
final class LoggedWarningTest {
    @TempDir
    private Path directory;

    /** Logs in each method. */
    private static final class Logging implements BackendProvider, Backend {
        @Override
        public String name() {
            return "logging";
        }

        @Override
        public Backend create(BackendContext context) {
            return this;
        }

        private static void log(ModelContext context) {
            context.logger().log(Level.INFO, "nothing is odd");
            context.logger()
                    .log(Level.WARNING, "file {0} is odd", context.settings().name());
        }

        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            log(context);
            return Optional.of(ModelCompletion.EMPTY);
        }

        @Override
        public Model load(ModelContext context) {
            log(context);
            context.logger().log(Level.WARNING, "its memory is odd {0}");
            return instance -> batch -> batch.put("OUTPUT0", batch.gather("INPUT0"));
        }
    }

    private static List<String> warnings(CheckReport report, String model) {
        return report.models().stream()
                .filter(one -> one.name().equals(model))
                .findFirst()
                .orElseThrow()
                .warnings();
    }

    @Test
    void aCheckReportsThemWithTheirModel() throws Exception {
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        for (String name : List.of("a", "b")) {
            models.model(name, "backend: \"logging\"\nmax_batch_size: 8\n" + TestModels.TENSORS);
        }
        ServerOptions options = ServerOptions.of(models.root()).with(o -> o.providers = List.of(new Logging()));

        CheckReport report = RepositoryCheck.run(options);
        CheckReport loaded = RepositoryCheck.runWithLoads(options);

        assertThat(warnings(report, "a")).containsExactly("file a is odd");
        assertThat(warnings(report, "b")).containsExactly("file b is odd");
        assertThat(warnings(loaded, "b")).containsExactly("file b is odd", "its memory is odd {0}");
    }
}
