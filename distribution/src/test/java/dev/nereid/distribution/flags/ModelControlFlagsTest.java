package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The flags of loading and unloading. */
final class ModelControlFlagsTest {
    private static ModelControlOptions options(String... arguments) throws StartException, UsageException {
        ServerOptions.Builder options = new ServerOptions.Builder();
        options.modelRepositories.add(Path.of("models"));
        ModelControlFlags control = new ModelControlFlags(options);
        Flags flags = new Flags();
        control.declare(flags);
        flags.read(List.of(arguments), Map.of());
        control.check();
        return options.build().lifecycle().control();
    }

    @Test
    void looksAtTheRepositoryFromTimeToTime() throws Exception {
        ModelControlOptions options = options("--model-control-mode=poll", "--repository-poll-secs=3");

        assertThat(options.mode()).isEqualTo(ModelControlMode.POLL);
        assertThat(options.pollInterval()).isEqualTo(Duration.ofSeconds(3));
    }

    /** As in the reference server. */
    @Test
    void loadsTheModelsOnceIfTheSecondsAreZero() throws Exception {
        assertThat(options("--model-control-mode=poll", "--repository-poll-secs=0"))
                .isEqualTo(options());
        assertThat(options("--model-control-mode=poll", "--repository-poll-secs=-1"))
                .isEqualTo(options());
    }
}
