package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.crashing.CrashingBackendProvider;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The installed command {@code nereid check} with libraries that end the process. */
@Timeout(600)
@Tag("slow")
final class ChildCheckIT {
    private static final int TIMEOUT_SECONDS = 120;
    private static final String EXPECTED =
            " (expected: files that the library of the backend can read; a server would end too)";

    @TempDir
    private Path directory;

    private Repository models;
    private Path plugins;
    private Path working;

    @BeforeEach
    void makeModels() throws IOException {
        models = new Repository(directory.resolve("models"));
        plugins = GatedPlugin.pack(
                directory.resolve("plugins"), CrashingBackendProvider.class, Map.of("Nereid-Native", "foreign"));
        working = Files.createDirectory(directory.resolve("working"));
    }

    @Test
    void reportsTheModelsThatEndTheProcessAndChecksTheOthers() throws Exception {
        model("aborting", "complete", "abort");
        model("before", "", "");
        model("exiting", "load", "exit");
        model("faulty", "load", "segv");
        model("healthy", "", "");
        model("misread", "complete", "segv");

        InstalledServer.Result result = check(Map.of(), "--load", "--json");

        assertThat(result.status()).as(result.err()).isEqualTo(1);
        JsonObject report = new JsonObject(result.out()); // and nothing else
        assertThat(report.getBoolean("valid")).isFalse();
        assertThat(names(report)).containsExactly("aborting", "before", "exiting", "faulty", "healthy", "misread");
        assertThat(errors(report, "aborting"))
                .containsExactly("version 1: the process ended (signal 6, SIGABRT) while backend 'crashing' completed"
                        + " model 'aborting'" + EXPECTED);
        assertThat(errors(report, "exiting"))
                .containsExactly("version 1: the process ended (exit status 7) while backend 'crashing' loaded model"
                        + " 'exiting'" + EXPECTED);
        assertThat(errors(report, "faulty"))
                .singleElement()
                .asString()
                .matches("version 1: the process ended \\(signal 11, SIGSEGV, in \\[lib.*\\) while backend 'crashing'"
                        + " loaded model 'faulty' \\(.*");
        assertThat(errors(report, "misread")).singleElement().asString().contains("SIGSEGV", "completed");
        assertThat(errors(report, "before")).isEmpty();
        assertThat(errors(report, "healthy")).isEmpty();
        assertThat(result.err()).doesNotContain("A fatal error has been detected");
        assertNothingIsLeft();
    }

    @Test
    void printsTheTextOfTheJvmWithTheLog() throws Exception {
        model("faulty", "complete", "segv");

        InstalledServer.Result result = check(Map.of(), "--log", "--verbose");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out())
                .contains("faulty: completed configuration", "SIGSEGV")
                .endsWith("0 valid, 1 invalid\n");
        assertThat(result.err()).contains("# A fatal error has been detected by the Java Runtime Environment");
        assertNothingIsLeft();
    }

    @Test
    void reportsModelsThatEndTheProcessOnlyTogether() throws Exception {
        model("first", "other", "second");
        model("second", "other", "first");

        InstalledServer.Result result = check(Map.of(), "--load", "--json");

        JsonObject report = new JsonObject(result.out());
        assertThat(result.status()).isEqualTo(1);
        for (String name : List.of("first", "second")) {
            assertThat(errors(report, name))
                    .containsExactly("version 1: the process ended (signal 6, SIGABRT) while backend 'crashing' loaded"
                            + " model '" + name + "' at the same time as others of [first, second], and not when they"
                            + " were loaded one after the other" + EXPECTED);
        }
    }

    @Test
    void reportsAModelThatExhaustsTheHeap() throws Exception {
        model("greedy", "load", "heap");
        model("healthy", "", "");

        InstalledServer.Result result = check(Map.of("NEREID_JAVA_OPTIONS", "-Xmx96m"), "--load", "--json");

        JsonObject report = new JsonObject(result.out());
        assertThat(result.status()).isEqualTo(1);
        assertThat(errors(report, "greedy"))
                .singleElement()
                .asString()
                .contains("the process ended (exit status 3, out of memory) while backend 'crashing' loaded model");
        assertThat(errors(report, "healthy")).isEmpty();
    }

    @Test
    void givesUpAfterManyEnds() throws Exception {
        for (int i = 10; i < 28; i++) {
            model("aborting_" + i, "complete", "abort");
        }

        InstalledServer.Result result = check(Map.of(), "--json");

        JsonObject report = new JsonObject(result.out());
        assertThat(result.status()).isEqualTo(1);
        assertThat(errors(report, "aborting_25")).singleElement().asString().contains("SIGABRT");
        assertThat(errors(report, "aborting_26"))
                .containsExactly(
                        "version 1: not checked: the process ended 16 times for other models (expected: correct"
                                + " or remove these first)");
    }

    @Test
    void aKilledParentLeavesNoChild() throws Exception {
        model("hanging", "load", "hang");
        Process parent = start(Map.of(), "--load");
        ProcessHandle child = awaitChild(parent, "hanging");

        parent.destroyForcibly();

        Eventually.holds("ended", TIMEOUT_SECONDS, () -> !child.isAlive());
    }

    @Test
    void aSignalEndsBothProcesses() throws Exception {
        model("hanging", "load", "hang");
        Process parent = start(Map.of(), "--load");
        ProcessHandle child = awaitChild(parent, "hanging");

        parent.destroy();

        InstalledServer.Result result = await(parent);
        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).isEmpty();
        assertThat(result.err()).isEqualTo("nereid check: interrupted\n");
        assertThat(child.isAlive()).isFalse();
    }

    @Test
    void worksWithoutAHome() throws Exception {
        model("faulty", "complete", "abort");
        model("healthy", "", "");

        InstalledServer.Result result = check(Map.of("HOME", "", "XDG_CACHE_HOME", ""), "--load");

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out()).endsWith("2 models: 1 valid, 1 invalid\n");
        assertThat(result.err()).isEmpty();
    }

    @Test
    void aDebuggerIsOfTheOnlyProcess() throws Exception {
        model("healthy", "", "");

        InstalledServer.Result result =
                check(Map.of("NEREID_JAVA_OPTIONS", "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=0"));

        assertThat(result.status()).isZero();
        assertThat(result.out().lines().filter(line -> line.startsWith("Listening for transport")))
                .hasSize(1);
    }

    private static JsonArray models(JsonObject report) {
        return report.getJsonArray("models");
    }

    private static List<String> names(JsonObject report) {
        return models(report).stream()
                .map(model -> ((JsonObject) model).getString("name"))
                .toList();
    }

    private static List<String> errors(JsonObject report, String name) {
        Optional<JsonObject> found = models(report).stream()
                .map(JsonObject.class::cast)
                .filter(model -> model.getString("name").equals(name))
                .findFirst();
        return found.orElseThrow().getJsonArray("errors").stream()
                .map(error -> ((JsonObject) error).getString("message"))
                .toList();
    }

    private void model(String name, String parameter, String value) {
        String more = parameter.isEmpty()
                ? ""
                : "parameters { key: \"" + parameter + "\" value { string_value: \"" + value + "\" } }";
        models.model(name, Repository.identity(0, "FP32", "[ -1 ]", more).replace("\"identity\"", "\"crashing\""));
    }

    /** No report of a fatal error, and no core. */
    private void assertNothingIsLeft() throws IOException {
        try (Stream<Path> files = Files.list(working)) {
            assertThat(files).isEmpty();
        }
    }

    private ProcessHandle awaitChild(Process parent, String model) throws IOException {
        Path waiting = models.directory().resolve(model).resolve("waiting");
        Eventually.holds("loads", TIMEOUT_SECONDS, () -> !text(waiting).isEmpty());
        long pid = Long.parseLong(text(waiting));
        assertThat(pid).isNotEqualTo(parent.pid());
        return ProcessHandle.of(pid).orElseThrow();
    }

    private static String text(Path file) {
        try {
            return Files.exists(file) ? Files.readString(file) : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private InstalledServer.Result check(Map<String, String> environment, String... flags) throws Exception {
        return await(start(environment, flags));
    }

    private Process start(Map<String, String> environment, String... flags) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                InstalledServer.HOME.resolve("bin/nereid").toString(),
                "check",
                models.directory().toString(),
                "--backend-directory=" + plugins,
                "--plugin-cache-directory=" + directory.resolve("cache")));
        command.addAll(List.of(flags));
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(working.toFile())
                .redirectOutput(directory.resolve("out").toFile())
                .redirectError(directory.resolve("err").toFile());
        environment.forEach((name, value) -> {
            if (value.isEmpty()) {
                builder.environment().remove(name);
            } else {
                builder.environment().put(name, value);
            }
        });
        Process process = builder.start();
        process.getOutputStream().close();
        return process;
    }

    private InstalledServer.Result await(Process process) throws Exception {
        assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
        return new InstalledServer.Result(
                process.exitValue(),
                Files.readString(directory.resolve("out"), StandardCharsets.UTF_8),
                Files.readString(directory.resolve("err"), StandardCharsets.UTF_8));
    }
}
