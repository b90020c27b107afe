package dev.nereid.server;

import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.jar.SpiVersion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** For any schedule with reloads, each sequence is answered as if it were alone, and nothing is left. */
@Tag("slow")
final class SequenceReloadScheduleTest {
    private static final int SEEDS = Integer.getInteger("nereid.test.seeds", 25);
    private static final int STEPS = 150;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void sequencesStayOnTheirGeneration(boolean direct) throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        PluginJar.of(SequenceReloadSchedules.BACKEND).provider("adding.Adding").write(plugins.resolve("adding.jar"));
        try (BackendRegistry backends = BackendRegistry.open(
                List.of(plugins),
                List.of(),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory.resolve("cache"), 2, Map.of()))) {
            for (int seed = 0; seed < SEEDS; seed++) {
                Path files = Files.createDirectories(directory.resolve("seed" + seed));
                try (SequenceReloadSchedules schedule = new SequenceReloadSchedules(seed, direct, backends, files)) {
                    schedule.run(STEPS);
                }
            }
        }
    }
}
