package dev.nereid.backend.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostMachineTest {
    @TempDir
    private Path directory;

    @Test
    void agreesWithTheJvmAboutTheMachineOfThisProcess() {
        String system = System.getProperty("os.name");
        String name = system.startsWith("Windows") ? "Windows" : system.startsWith("Mac") ? "Darwin" : system;
        String processor = System.getProperty("os.arch").replace("amd64", "x86_64");

        for (HostMachine machine : new HostMachine[] {HostMachine.current(), HostMachine.ofUname()}) {
            assertThat(machine.system()).isEqualTo(name);
            assertThat(machine.processor().toLowerCase(Locale.ROOT).replace("arm64", "aarch64"))
                    .isEqualTo(processor);
        }
    }

    @ParameterizedTest
    @CsvSource({"62, x86_64", "183, aarch64", "243, (ELF machine 243)"})
    void isThatOfTheHeaderOfAnExecutable(int machine, String processor) throws IOException {
        Path file = Files.write(directory.resolve("exe"), header((byte) machine));

        assertThat(HostMachine.ofExecutable(file)).contains(new HostMachine("Linux", processor));
    }

    @Test
    void isUnknownIfThereIsNoExecutableOfLinux() throws IOException {
        Path script = Files.writeString(directory.resolve("script"), "#!/bin/sh\nexit 0 # and so on\n");
        Path cut = Files.write(directory.resolve("cut"), new byte[] {0x7f, 'E', 'L', 'F'});

        assertThat(HostMachine.ofExecutable(script)).isEmpty();
        assertThat(HostMachine.ofExecutable(cut)).isEmpty();
        assertThat(HostMachine.ofExecutable(directory.resolve("none"))).isEmpty();
    }

    private static byte[] header(byte machine) {
        byte[] header = new byte[64];
        header[0] = 0x7f;
        header[1] = 'E';
        header[2] = 'L';
        header[3] = 'F';
        header[18] = machine;
        return header;
    }
}
