package dev.nereid.benchmarks.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

final class JvmTest {
    @Test
    void keepsMemoryAndCollectorOfTheServerButNothingOfItsOwn() {
        Jvm jvm = Jvm.of(
                "/jdk/bin/java",
                List.of(
                        "-XX:AOTCache=/nereid/lib/nereid.aot",
                        "-XX:AOTMode=auto",
                        "-Xlog:aot=off",
                        "-XX:+UseSerialGC",
                        "-Xms16m",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-Dnereid.home=/nereid",
                        "-jar",
                        "/nereid/lib/nereid.jar",
                        "serve",
                        "--http-port=8000"));

        assertThat(jvm)
                .isEqualTo(new Jvm(
                        "/jdk/bin/java",
                        List.of("-XX:+UseSerialGC", "-Xms16m", "--sun-misc-unsafe-memory-access=allow")));
    }

    @Test
    void readsTheCommandOfARunningProcess() throws IOException {
        assertThat(Jvm.of(ProcessHandle.current()).command()).endsWith("java");
    }
}
