package dev.nereid.distribution.child;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ProcessEndTest {
    private static final String START = "# A fatal error has been detected by the Java Runtime Environment:\n#\n";

    @Test
    void namesTheSignalAndTheFrame() {
        ProcessEnd end = new ProcessEnd(134, START + """
                #  SIGSEGV (0xb) at pc=0x00007f1d2c57c5c2, pid=17, tid=18
                #
                # JRE version: OpenJDK Runtime Environment (25.0+36) (build 25+36)
                # Problematic frame:
                # C  [libtorch_cpu.so+0x16e5c2]  torch::jit::load()+0x22
                #
                """);

        assertThat(end.text()).isEqualTo("signal 11, SIGSEGV, in [libtorch_cpu.so+0x16e5c2]  torch::jit::load()+0x22");
    }

    @Test
    void namesTheMemoryThatTheSystemRefuses() {
        ProcessEnd end = new ProcessEnd(1, """
                # There is insufficient memory for the Java Runtime Environment to continue.
                # Native memory allocation (mmap) failed to map 65536 bytes. Error detail: committing reserved memory.
                """);

        assertThat(end.text())
                .isEqualTo("out of memory: Native memory allocation (mmap) failed to map 65536 bytes. Error detail:"
                        + " committing reserved memory.");
    }

    @Test
    void namesAnErrorOfTheJvm() {
        ProcessEnd end =
                new ProcessEnd(134, START + "#  Internal Error (codeCache.cpp:654), pid=17, tid=18\n#  guarantee(x)\n");

        assertThat(end.text()).isEqualTo("Internal Error (codeCache.cpp:654)");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                134|signal 6, SIGABRT
                139|signal 11, SIGSEGV
                137|signal 9, SIGKILL, perhaps for lack of memory
                192|signal 64
                3|exit status 3, out of memory
                0|exit status 0
                """)
    void namesTheStatusWithoutATextOfTheJvm(int status, String text) {
        assertThat(new ProcessEnd(status, "").text()).isEqualTo(text);
    }
}
