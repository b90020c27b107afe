package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ElfHeaderTest {
    @TempDir
    Path directory;

    @Test
    void readsTheProgramOfThisProcess() {
        ElfHeader header = ElfHeader.of(ElfHeader.THIS_PROCESS).orElseThrow();

        assertThat(header.isSupported()).isTrue();
        assertThat(header.machineName()).isIn("x86-64", "aarch64");
        assertThat(header.loader())
                .hasValueSatisfying(loader -> assertThat(Path.of(loader)).exists());
        assertThat(Machines.unsupported()).isEmpty();
    }

    @Test
    void otherFilesHaveNoHeader() throws IOException {
        assertThat(ElfHeader.of(Files.writeString(directory.resolve("script"), "#!/bin/sh\n" + " ".repeat(100))))
                .isEmpty();
        assertThat(ElfHeader.of(directory.resolve("missing"))).isEmpty();
        assertThat(ElfHeader.of(directory)).isEmpty();
    }

    @Test
    void aDamagedHeaderIsNone() throws IOException {
        byte[] program = Files.readAllBytes(Path.of("/proc/self/exe"));
        for (int length : new int[] {0, 4, 63, 64, 100}) {
            assertThat(ElfHeader.of(Files.write(directory.resolve("p"), Arrays.copyOf(program, length))))
                    .isEmpty();
        }
        byte[] wrong = program.clone();
        Arrays.fill(wrong, 32, 40, (byte) 0xff);
        assertThat(ElfHeader.of(Files.write(directory.resolve("p"), wrong))).isEmpty();
    }

    @Test
    void namesMachinesThatAreNotSupported() {
        assertThat(Machines.unsupported(Optional.of(new ElfHeader(22, 64, Optional.empty()))))
                .contains("Linux on s390 (expected: Linux on x86-64 or aarch64)");
        assertThat(Machines.unsupported(Optional.of(new ElfHeader(62, 32, Optional.empty()))))
                .contains("Linux on x32 (expected: Linux on x86-64 or aarch64)");
        assertThat(Machines.unsupported(Optional.empty()))
                .hasValueSatisfying(text -> assertThat(text).startsWith("this system is not Linux"));
    }
}
