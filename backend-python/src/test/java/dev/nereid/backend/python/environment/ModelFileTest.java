package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ModelFileTest {
    @TempDir
    Path directory;

    @Test
    void findsModelPyOfTheVersion() throws IOException {
        FakeModelContext model = Contexts.model(directory, "m");
        Path file = Files.writeString(model.versionDirectory().resolve("model.py"), "");

        ModelFile found = ModelFile.of(model);

        assertThat(found.file()).isEqualTo(file);
        assertThat(found.moduleName()).isEqualTo("1.model");
        assertThat(found.searchPath()).containsExactly(model.versionDirectory(), model.modelDirectory());
    }

    @Test
    void findsTheConfiguredFile() throws IOException {
        FakeModelContext model = Contexts.model(
                directory,
                ModelSettings.builder("m", 3).modelFilename("infer.py").build());
        Path file = Files.writeString(model.versionDirectory().resolve("infer.py"), "");

        assertThat(ModelFile.of(model).file()).isEqualTo(file);
        assertThat(ModelFile.of(model).moduleName()).isEqualTo("3.infer");
    }

    @Test
    void refusesOtherEndings() {
        FakeModelContext model = Contexts.model(
                directory,
                ModelSettings.builder("m", 1).modelFilename("model.txt").build());

        failure(ErrorCode.INTERNAL, "Model name must end with '.py'. Model name is \"model.txt\".", model);
    }

    @Test
    void namesTheMissingFileAndWhatIsThere() throws IOException {
        FakeModelContext model = Contexts.model(directory, "m");
        String text = "Failed to preinitialize Python stub: Python model file not found in '"
                + model.versionDirectory().resolve("model.py") + "' (expected: this file";

        failure(ErrorCode.INTERNAL, text + ")", model);
        Files.writeString(model.versionDirectory().resolve("infer.py"), "");
        failure(ErrorCode.INTERNAL, text + "; default_model_filename may name another one, such as infer.py)", model);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a;b", "a|b", "$(a)", "a`b", "a'b", "a\"b", "a\\b", "~a", "a#", "a!", "a{b}", "[a]", "a*?"})
    void refusesNamesThatShellsWouldRead(String name) {
        failure(
                ErrorCode.INVALID_ARGUMENT,
                "Invalid stub name: contains invalid characters",
                Contexts.model(directory, name));
    }

    @Test
    void findsTheProgramOfABackendThatIsWrittenInPython() throws IOException {
        FakeModelContext model = Contexts.model(directory, "m");
        Files.writeString(model.versionDirectory().resolve("model.py"), "ignored");
        Path vllm = Files.createDirectory(directory.resolve("vllm"));
        FakeBackendContext backend =
                new FakeBackendContext("vllm", Parameters.of(Map.of()), vllm, vllm, 1, new RecordedLog(), Map.of());

        assertThat(ModelFile.isBackend(vllm)).isFalse();
        assertThatThrownBy(() -> ModelFile.of(model, backend))
                .hasMessage("unable to find backend library for backend 'vllm', try specifying runtime on the model"
                        + " configuration.");
        Path file = Files.writeString(vllm.resolve("model.py"), "");
        assertThat(ModelFile.isBackend(vllm)).isTrue();
        ModelFile found = ModelFile.of(model, backend);
        assertThat(found.file()).isEqualTo(file);
        assertThat(found.moduleName()).isEqualTo("model");
        assertThat(found.searchPath()).containsExactly(vllm);
        Files.writeString(vllm.resolve("some.jar"), "");
        assertThat(ModelFile.isBackend(vllm)).isFalse();
        assertThat(ModelFile.isBackend(directory.resolve("nothing"))).isFalse();
    }

    private static void failure(ErrorCode code, String text, FakeModelContext model) {
        assertThatThrownBy(() -> ModelFile.of(model))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(text);
    }
}
