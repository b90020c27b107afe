package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EnvironmentsTest {
    private static final String SCRIPT = "#!/bin/sh\nexec true\n";

    @TempDir
    Path directory;

    private final Map<String, String> settings = new HashMap<>();
    private final Map<String, String> variables = new HashMap<>();
    private final Map<String, String> allVariables = new HashMap<>();
    private Optional<ElfHeader> machine = ElfHeader.of(ElfHeader.THIS_PROCESS);

    @Test
    void takesPython3OfThePath() throws IOException {
        Path python = program(directory.resolve("b/python3"), SCRIPT);
        Files.createDirectory(directory.resolve("a"));
        variables.put(
                "PATH", directory.resolve("a") + ":" + directory.resolve("missing") + ":" + directory.resolve("b"));
        variables.put("PYTHONHOME", "/kept");

        ProcessCommand command = open(model());

        assertThat(command.executable()).isEqualTo(python);
        assertThat(command.arguments()).isEmpty();
        assertThat(command.environment()).isEqualTo(variables);
        assertThat(command.origin()).isEqualTo("python3 of the path (" + python + ")");
    }

    @Test
    void saysHowToGetAPython() {
        variables.put("PATH", directory.toString());

        failure(
                ErrorCode.UNAVAILABLE,
                "python3: not found on the path " + directory
                        + " (expected: python3 there; install Python 3.9 or later with"
                        + " NumPy, set --backend-config=python,executable=FILE, or name an environment in the parameter"
                        + " EXECUTION_ENV_PATH of the model)",
                model());
    }

    @Test
    void takesTheConfiguredExecutable() throws IOException {
        Path python = program(directory.resolve("opt/python"), SCRIPT);
        settings.put("executable", python.toString());
        assertThat(open(model()).executable()).isEqualTo(python);
        assertThat(open(model()).origin()).isEqualTo("--backend-config=python,executable=" + python);

        settings.put("executable", "python");
        variables.put("PATH", directory.resolve("opt").toString());
        assertThat(open(model()).executable()).isEqualTo(python);
    }

    @Test
    void saysWhatIsWrongWithAnExecutable() throws IOException {
        Path missing = directory.resolve("missing");
        executable(missing, "does not exist");
        Files.createSymbolicLink(directory.resolve("link"), missing);
        executable(directory.resolve("link"), "a link to " + missing + ", which does not exist");
        executable(directory, "a directory (expected: the program itself, such as " + directory.resolve("bin/python3"));
        executable(Files.writeString(directory.resolve("plain"), SCRIPT), "may not be executed (expected: permission");
    }

    private void executable(Path file, String text) {
        settings.put("executable", file.toString());
        assertThatThrownBy(() -> open(model()))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("--backend-config=python,executable=" + file + ": " + text);
    }

    @Test
    void refusesAPythonForAnotherMachine() throws IOException {
        machine = Optional.of(new ElfHeader(183, 64, Optional.empty()));
        Path real = Path.of("/proc/self/exe").toRealPath();
        ElfHeader own = ElfHeader.of(real).orElseThrow();
        if (own.machine() == 183) {
            machine = Optional.of(new ElfHeader(62, 64, Optional.empty()));
        }
        Path environment = environment(directory.resolve("env"));
        Files.delete(environment.resolve("bin/python3"));
        Files.createSymbolicLink(environment.resolve("bin/python3"), real);

        assertThatThrownBy(() -> open(model(environment.toString())))
                .isInstanceOf(BackendException.class)
                .hasMessage("Python of the environment " + environment + " (" + environment.resolve("bin/python3")
                        + "): a program for " + own.machineName() + " (expected: one for "
                        + machine.orElseThrow().machineName() + ")");
    }

    @Test
    void setsTheVariablesOfAnEnvironment() throws IOException {
        Path environment = environment(directory.resolve("env"));
        variables.put("PATH", "/bin");
        variables.put("PYTHONHOME", "/removed");
        variables.put("LC_ALL", "C.UTF-8");
        FakeModelContext model = model(environment.toString());

        ProcessCommand command = open(model);

        assertThat(command.executable()).isEqualTo(environment.resolve("bin/python3"));
        assertThat(command.environment())
                .isEqualTo(Map.of(
                        "PATH", environment + "/bin:/bin",
                        "LD_LIBRARY_PATH", environment + "/lib",
                        "VIRTUAL_ENV", environment.toString(),
                        "VIRTUAL_ENV_PROMPT", "(" + environment + ")",
                        "LC_ALL", "C.UTF-8"));
        assertThat(command.origin()).isEqualTo("the execution environment " + environment);
        assertThat(model.logger().lines()).containsExactly("INFO Using Python execution env " + environment);
    }

    @Test
    void findsAnEnvironmentInTheDirectoryOfTheModel() throws IOException {
        FakeModelContext model = model("$$TRITON_MODEL_DIRECTORY/env");
        Path environment = environment(model.modelDirectory().resolve("env"));
        Files.move(environment.resolve("bin/python3"), environment.resolve("bin/python"));

        assertThat(open(model).executable()).isEqualTo(environment.resolve("bin/python"));
    }

    @Test
    void unpacksAnArchive() throws IOException {
        FakeModelContext model = model("$$TRITON_MODEL_DIRECTORY/env.tar.gz");
        Path archive = new TarArchive()
                .file("bin/activate", "")
                .file("bin/python3.12", SCRIPT, 0755)
                .symbolicLink("bin/python3", "python3.12")
                .gzip(model.modelDirectory().resolve("env.tar.gz"));
        FakeBackendContext backend = Contexts.backend(directory, settings, variables);
        try (Environments environments = new Environments(backend, PythonSettings.of(backend));
                Interpreter first = environments.open(model, parameters(model, backend));
                Interpreter second = environments.open(model, parameters(model, backend))) {
            Path directory = first.command().executable().getParent().getParent();

            assertThat(first.command()).isEqualTo(second.command());
            assertThat(first.command().environment()).containsEntry("VIRTUAL_ENV", directory.toString());
            assertThat(first.command().origin()).isEqualTo("the execution environment " + archive);
            assertThat(directory).startsWith(backend.cacheDirectory());
        }
        assertThat(model.logger().lines())
                .containsExactly(
                        "INFO Using Python execution env " + archive,
                        "DEBUG Extracting Python execution env " + archive,
                        "INFO Using Python execution env " + archive);
    }

    @Test
    void refusesEnvironmentsWithTheTextsOfTheReference() throws IOException {
        Path missing = directory.resolve("missing");
        String expected = " EXECUTION_ENV_PATH: no such file (expected: a directory with bin/python3, or an archive";
        failure(
                ErrorCode.INTERNAL,
                "Failed to get the canonical path for " + missing + "." + expected + ")",
                model(missing.toString()));
        failure(
                ErrorCode.INTERNAL,
                "Failed to get the canonical path for $TRITON_MODEL_DIRECTORY/env." + expected
                        + "; $$TRITON_MODEL_DIRECTORY with two $ is the directory of the model)",
                model("$TRITON_MODEL_DIRECTORY/env"));
        Path link = Files.createSymbolicLink(directory.resolve("link"), missing);
        failure(
                ErrorCode.INTERNAL,
                "Failed to get the canonical path for " + link + ". It is a link to " + missing + "." + expected + ")",
                model(link.toString()));
        Path empty = Files.createDirectory(directory.resolve("empty"));
        failure(
                ErrorCode.INTERNAL,
                "Path " + empty
                        + "/bin/activate does not exist. The Python environment should contain an 'activate' script.",
                model(empty.toString()));
        Path archive = new TarArchive().file("/etc/passwd", "x").gzip(directory.resolve("a.tar.gz"));
        failure(
                ErrorCode.INTERNAL,
                "Failed to extract Python execution env " + archive + ": Path is absolute: '/etc/passwd'",
                model(archive.toString()));
    }

    @Test
    void saysWhatAnEnvironmentLacks() throws IOException {
        Path environment = environment(directory.resolve("env"));
        Path python = environment.resolve("bin/python3");
        Files.delete(python);
        lacks(environment, environment.resolve("bin/python"), "does not exist (expected: an environment made for this");
        Files.createSymbolicLink(python, Path.of("/nowhere/python3"));
        lacks(environment, python, "a link to /nowhere/python3, which does not exist");
    }

    private void lacks(Path environment, Path python, String text) {
        assertThatThrownBy(() -> open(model(environment.toString())))
                .hasMessageStartingWith("Python of the environment " + environment + " (" + python + "): " + text);
    }

    @Test
    void ignoresAStubWithAWarning() throws IOException {
        Path python = program(directory.resolve("b/python3"), SCRIPT);
        variables.put("PATH", directory.resolve("b").toString());
        FakeModelContext model = model();
        Files.writeString(model.modelDirectory().resolve("triton_python_backend_stub"), "");

        assertThat(open(model).executable()).isEqualTo(python);
        assertThat(model.logger().lines())
                .containsExactly("WARNING model 'm': triton_python_backend_stub in its directory is not used:"
                        + " Python itself runs the model");
    }

    @Test
    void passesSecretsThatAreNamed() throws IOException {
        program(directory.resolve("b/python3"), SCRIPT);
        variables.put("PATH", directory.resolve("b").toString());
        allVariables.putAll(Map.of("PATH", "other", "SECRET", "1", "KEY", "2"));

        assertThat(open(model()).environment()).containsOnlyKeys("PATH");
        settings.put("pass-environment", "SECRET:MISSING");
        assertThat(open(model()).environment()).containsOnlyKeys("PATH", "SECRET");
        settings.put("pass-environment", "all");
        assertThat(open(model()).environment())
                .containsOnlyKeys("PATH", "SECRET", "KEY")
                .containsEntry("SECRET", "1");
        assertThat(open(model()).environment()).containsEntry("PATH", variables.get("PATH"));
    }

    @Test
    void runsARealPython() throws Exception {
        variables.putAll(new ProcessBuilder().environment());
        ProcessBuilder builder = new ProcessBuilder(open(model()).executable().toString(), "-c", "print(1 + 1)");
        Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();

        assertThat(process.inputReader().readLine()).isEqualTo("2");
        assertThat(process.waitFor()).isZero();
    }

    private ProcessCommand open(FakeModelContext model) {
        FakeBackendContext backend = Contexts.backend(directory, settings, variables);
        try (Environments environments =
                        new Environments(backend, PythonSettings.of(backend), System::nanoTime, allVariables, machine);
                Interpreter interpreter = environments.open(model, parameters(model, backend))) {
            return interpreter.command();
        }
    }

    private static PythonParameters parameters(FakeModelContext model, FakeBackendContext backend) {
        return PythonParameters.of(model, PythonSettings.of(backend));
    }

    private void failure(ErrorCode code, String text, FakeModelContext model) {
        assertThatThrownBy(() -> open(model))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(text);
    }

    private FakeModelContext model() {
        return Contexts.model(directory, "m");
    }

    private FakeModelContext model(String environment) {
        return model().withParameter("EXECUTION_ENV_PATH", environment);
    }

    private static Path environment(Path root) throws IOException {
        program(root.resolve("bin/python3"), SCRIPT);
        Files.writeString(root.resolve("bin/activate"), "");
        return root;
    }

    private static Path program(Path file, String content) throws IOException {
        Files.createDirectories(file.getParent());
        Files.writeString(file, content);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
}
