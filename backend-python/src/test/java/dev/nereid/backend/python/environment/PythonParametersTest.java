package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PythonParametersTest {
    @TempDir
    Path directory;

    @Test
    void hasDefaultsOfTheBackend() {
        PythonParameters parameters =
                parameters(Map.of("start-timeout", "3", "limit-memory", "1G"), Map.of("free", "of the model"));

        assertThat(parameters)
                .isEqualTo(new PythonParameters(
                        Optional.empty(),
                        true,
                        Optional.empty(),
                        Optional.of(Duration.ofSeconds(3)),
                        false,
                        OptionalInt.empty(),
                        new ProcessLimits(OptionalLong.of(1 << 30), OptionalLong.empty(), OptionalLong.empty())));
    }

    @Test
    void readsWhatTheModelSets() {
        PythonParameters parameters = parameters(
                Map.of("start-timeout", "3", "limit-memory", "1G"),
                Map.of(
                        "EXECUTION_ENV_PATH", "/env",
                        "FORCE_CPU_ONLY_INPUT_TENSORS", "no",
                        "EXECUTION_TIMEOUT_SECONDS", "0.25",
                        "START_TIMEOUT_SECONDS", "0",
                        "SET_CUDA_VISIBLE_DEVICES", "yes",
                        "DEBUG_PORT", "5678",
                        "LIMIT_MEMORY", "2G",
                        "LIMIT_PROCESSOR_SECONDS", "9",
                        "LIMIT_OPEN_FILES", "512"));

        assertThat(parameters)
                .isEqualTo(new PythonParameters(
                        Optional.of("/env"),
                        false,
                        Optional.of(Duration.ofMillis(250)),
                        Optional.empty(),
                        true,
                        OptionalInt.of(5678),
                        new ProcessLimits(OptionalLong.of(2L << 30), OptionalLong.of(9), OptionalLong.of(512))));
    }

    @Test
    void noParameterOfTheModelIsReportedAsMisspelt() {
        var model = Contexts.model(directory, "m").withParameter("EXECUTION_TIMEOUT_SECOND", "of the model");
        PythonParameters.of(model, PythonSettings.of(Contexts.backend(directory, Map.of(), Map.of())));

        assertThat(model.unreadParameters()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    FORCE_CPU_ONLY_INPUT_TENSORS | maybe | UNSUPPORTED | Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: maybe'
                    EXECUTION_TIMEOUT_SECONDS | -1 | INVALID_ARGUMENT | parameter 'EXECUTION_TIMEOUT_SECONDS': -1 (expected: 0 to
                    START_TIMEOUT_SECONDS | NaN | INVALID_ARGUMENT | parameter 'START_TIMEOUT_SECONDS': NaN (expected: 0 to
                    SET_CUDA_VISIBLE_DEVICES | 1 | INVALID_ARGUMENT | parameter 'SET_CUDA_VISIBLE_DEVICES': 1 (expected: one of
                    DEBUG_PORT | 70000 | INVALID_ARGUMENT | parameter 'DEBUG_PORT': 70000 (expected: 1 to 65535
                    LIMIT_MEMORY | 0 | INVALID_ARGUMENT | parameter 'LIMIT_MEMORY': 0 (expected: 1 or more
                    """)
    void refusesValuesThatDoNotFit(String name, String value, ErrorCode code, String text) {
        assertThatThrownBy(() -> parameters(Map.of(), Map.of(name, value)))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessageStartingWith(text);
    }

    private PythonParameters parameters(Map<String, String> settings, Map<String, String> parameters) {
        return PythonParameters.of(
                Contexts.model(directory, "m").withParameters(parameters),
                PythonSettings.of(Contexts.backend(directory, settings, Map.of())));
    }
}
