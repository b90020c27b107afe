package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ChildCommandTest {
    private static final List<String> ARGUMENTS = List.of("check", "a b", "");
    private static final List<String> LINE = List.of("java", "-Xmx1g", "-jar", "nereid.jar", "check", "a b", "");

    @Test
    void repeatsTheCommandLine() {
        assertThat(ChildCommand.of("/jdk/bin/java", LINE, ARGUMENTS, Map.of("JAVA_TOOL_OPTIONS", " -Xlog:gc ")))
                .containsExactly(
                        "/jdk/bin/java",
                        "-XX:ErrorFile=/dev/null",
                        "-XX:-CreateCoredumpOnCrash",
                        "-Dnereid.child=true",
                        "-Xmx1g",
                        "-jar",
                        "nereid.jar",
                        "check",
                        "a b",
                        "");
    }

    @Test
    void splitsWhatTheKernelHas() {
        assertThat(ChildCommand.split("java\0-Xmx1g\0-jar\0nereid.jar\0check\0a b\0\0"))
                .isEqualTo(LINE);
    }

    @Test
    void knowsNothingOfAProgramThatIsEmbedded() {
        List<String> line = List.of("java", "com.example.Application");

        assertThat(ChildCommand.of("/jdk/bin/java", line, ARGUMENTS, Map.of())).isEmpty();
        assertThat(ChildCommand.of("/jdk/bin/java", LINE, LINE, Map.of())).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"-agentlib:jdwp=server=y", "-javaagent:a.jar", "-XX:StartFlightRecording"})
    void repeatsNoOptionThatASecondProcessDisturbs(String option) {
        List<String> line = List.of("java", option, "Main", "check");

        assertThat(ChildCommand.of("java", line, List.of("check"), Map.of())).isEmpty();
        assertThat(ChildCommand.of("java", LINE, ARGUMENTS, Map.of("JDK_JAVA_OPTIONS", "-Xmx1g " + option)))
                .isEmpty();
    }
}
