package dev.nereid.benchmarks.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.ChildProcesses;
import dev.nereid.benchmarks.run.Options;
import dev.nereid.benchmarks.run.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class LaunchTest {
    @TempDir
    Path checkout;

    private Path home;

    @BeforeEach
    void installsTheServer() throws IOException {
        home = Files.createDirectories(checkout.resolve("distribution/target/nereid"));
    }

    @Test
    void usesTheExamplesOfTheCheckoutWhereTheInstalledOnesLackTheMeasuredBackend() throws IOException {
        Files.createFile(
                Files.createDirectories(home.resolve("examples/plugins")).resolve("vision.jar"));
        Path examples = Files.createDirectories(checkout.resolve("examples/plugins"));
        Files.createFile(examples.resolve("identity.jar"));

        assertThat(launch().flags()).contains("--backend-directory=" + examples);
    }

    @Test
    void usesTheInstalledExamplesThatHaveIt() throws IOException {
        Path examples = Files.createDirectories(home.resolve("examples/plugins"));
        Files.createFile(examples.resolve("identity.jar"));

        assertThat(launch().flags()).contains("--backend-directory=" + examples);
    }

    private Launch launch() throws IOException {
        try (Workspace workspace = Workspace.create();
                ChildProcesses children = new ChildProcesses()) {
            BenchmarkRun bench =
                    new BenchmarkRun(Options.parse(List.of(), 2), checkout, "", workspace, children, _ -> {});
            return Launch.withExamples(bench, checkout);
        }
    }
}
