package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.host.HostSetting;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Instances on the processors of their policies, from their creation on. */
final class HostPolicyLoadTest {
    private static final Path STATUS = Path.of("/proc/thread-self/status");

    @TempDir
    private Path directory;

    @Test
    void createsAndRunsInstancesOnTheProcessorsOfTheirPolicy() throws Exception {
        assumeThat(STATUS).exists();
        String all = Files.readAllLines(STATUS).stream()
                .filter(line -> line.startsWith("Cpus_allowed_list:"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst()
                .orElseThrow();
        String one = all.replaceFirst(".*[-,]", "");
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        Path events = directory.resolve("events");
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
        models.recording("a", parameter("cpus", "yes"));
        models.recording(
                "b", parameter("cpus", "yes") + "instance_group { kind: KIND_CPU count: 1 host_policy: \"other\" }");

        try (NereidServer server = NereidServer.start(ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> o.hostPolicies =
                        HostPolicies.of(List.of(new HostSetting("cpu", HostSetting.CPU_CORES, one)))))) {
            RecordingObserver.to(server, "a", 1).await();
            RecordingObserver.to(server, "b", 1).await();
        }

        assertThat(Files.readAllLines(events))
                .contains(
                        "made a_0_0 of cpu on " + one,
                        "executed a_0_0 of cpu on " + one,
                        "made b_0_0 of other on " + all,
                        "executed b_0_0 of other on " + all);
    }
}
