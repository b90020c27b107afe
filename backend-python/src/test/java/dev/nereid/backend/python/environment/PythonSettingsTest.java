package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeBackendContext;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PythonSettingsTest {
    private static final long MEMORY = 8L << 30;

    @TempDir
    Path directory;

    @Test
    void hasTheDefaultsOfTheReference() {
        assertThat(settings(Map.of()))
                .isEqualTo(new PythonSettings(
                        1 << 20,
                        1 << 20,
                        Duration.ofSeconds(30),
                        1000,
                        32,
                        2L << 30,
                        16384,
                        Optional.empty(),
                        Duration.ofSeconds(2),
                        Optional.empty(),
                        Set.of(),
                        ProcessLimits.NONE));
        assertThat(PythonSettings.of(context(Map.of())).shmLimitByteSize()).isGreaterThanOrEqualTo(64 << 20);
    }

    @Test
    void readsAllValues() {
        PythonSettings settings = settings(Map.ofEntries(
                Map.entry("shm-default-byte-size", "1048576"),
                Map.entry("shm-growth-byte-size", "2M"),
                Map.entry("stub-timeout-seconds", "60"),
                Map.entry("shm_message_queue_size", "10"),
                Map.entry("thread-pool-size", "4"),
                Map.entry("shm-region-prefix-name", "x"),
                Map.entry("shm-limit-byte-size", "1G"),
                Map.entry("inline-limit", "0"),
                Map.entry("executable", "/opt/python"),
                Map.entry("restart-delay", "10ms"),
                Map.entry("start-timeout", "5m"),
                Map.entry("pass-environment", "AWS_SESSION_TOKEN:OTHER"),
                Map.entry("limit-memory", "4G"),
                Map.entry("limit-processor-seconds", "100"),
                Map.entry("limit-open-files", "1000")));

        assertThat(settings)
                .isEqualTo(new PythonSettings(
                        1 << 20,
                        2 << 20,
                        Duration.ofMinutes(1),
                        10,
                        4,
                        1 << 30,
                        0,
                        Optional.of("/opt/python"),
                        Duration.ofMillis(10),
                        Optional.of(Duration.ofMinutes(5)),
                        Set.of("AWS_SESSION_TOKEN", "OTHER"),
                        new ProcessLimits(OptionalLong.of(4L << 30), OptionalLong.of(100), OptionalLong.of(1000))));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    shm-default-byte-size | 1048575 | shm-default-byte-size can't be smaller than 4 MiBs
                    shm-default-byte-size | -5 | shm-default-byte-size can't be smaller than 4 MiBs
                    shm-growth-byte-size | 0 | shm-growth-byte-size can't be smaller than or equal to zero.
                    stub-timeout-seconds | 0 | stub-timeout-seconds can't be smaller than or equal to zero.
                    thread-pool-size | 0 | thread-pool-size can't be less than 1.
                    shm-region-prefix-name | '' | shm-region-prefix-name must at least contain one character.
                    thread-pool-size | many | --backend-config=python,thread-pool-size: many (expected: an integer
                    shm-default-byte-size | x | --backend-config=python,shm-default-byte-size: x (expected:
                    shm_message_queue_size | x | --backend-config=python,shm_message_queue_size: x (expected:
                    shm-limit-byte-size | 10 | --backend-config=python,shm-limit-byte-size: 10 (expected:
                    inline-limit | 1G | --backend-config=python,inline-limit: 1G (expected: 0 to
                    restart-delay | soon | --backend-config=python,restart-delay: soon (expected:
                    limit-memory | 0 | --backend-config=python,limit-memory: 0 (expected:
                    limit-processor-seconds | 0 | --backend-config=python,limit-processor-seconds: 0 (expected:
                    limit-open-files | 3 | --backend-config=python,limit-open-files: 3 (expected: 64 to
                    pass-environment | A=1 | --backend-config=python,pass-environment: A=1 (expected:
                    """)
    void refusesValuesThatDoNotFit(String name, String value, String text) {
        assertThatThrownBy(() -> settings(Map.of(name, value)))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageStartingWith(text);
    }

    @Test
    void doublesTheDelayOfRestartsUpToAMinute() {
        assertThat(delays(Map.of(), 8)).containsExactly(2L, 4L, 8L, 16L, 32L, 60L, 60L, 60L);
        assertThat(delays(Map.of("restart-delay", "90"), 3)).containsExactly(90L, 90L, 90L);
        assertThat(delays(Map.of("restart-delay", "0"), 3)).containsExactly(0L, 0L, 0L);
        assertThat(settings(Map.of()).restartDelay(Integer.MAX_VALUE)).isEqualTo(Duration.ofMinutes(1));
    }

    private List<Long> delays(Map<String, String> given, int count) {
        PythonSettings settings = settings(given);
        return IntStream.range(0, count)
                .mapToObj(restarts -> settings.restartDelay(restarts).toSeconds())
                .toList();
    }

    private PythonSettings settings(Map<String, String> given) {
        return PythonSettings.of(context(given), MEMORY);
    }

    private FakeBackendContext context(Map<String, String> given) {
        return Contexts.backend(directory, given, Map.of());
    }
}
