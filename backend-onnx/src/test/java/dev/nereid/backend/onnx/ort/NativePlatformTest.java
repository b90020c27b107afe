package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NativePlatformTest {
    @ParameterizedTest
    @CsvSource({
        "Linux, x86_64, ai/onnxruntime/native/linux-x64/libonnxruntime.so",
        "Linux, aarch64, ai/onnxruntime/native/linux-aarch64/libonnxruntime.so",
        "Darwin, arm64, ai/onnxruntime/native/osx-aarch64/libonnxruntime.dylib",
        "Windows, x86_64, ai/onnxruntime/native/win-x64/onnxruntime.dll",
    })
    void namesTheResourceThatTheArtifactHas(String system, String machine, String resource) {
        NativePlatform platform = NativePlatform.of(system, machine);

        assertThat(platform.resource()).isEqualTo(resource);
        assertThat(getClass().getClassLoader().getResource(resource)).isNotNull();
    }

    @Test
    void refusesAPlatformThatTheArtifactLacks() {
        assertThatThrownBy(() -> NativePlatform.of("Linux", "riscv64"))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith("platform: Linux riscv64 (expected: ");
    }

    @Test
    void agreesWithTheJvmAboutThePlatformOfThisProcess() {
        String system = System.getProperty("os.name").startsWith("Windows") ? "Windows" : jvmSystem();

        NativePlatform expected = NativePlatform.of(system, System.getProperty("os.arch"));
        assertThat(NativePlatform.current()).isEqualTo(expected);
        assertThat(NativePlatform.ofUname()).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({"62, linux-x64", "183, linux-aarch64"})
    void reportsThePlatformByTheHeaderOfAnExecutable(int machine, String directory, @TempDir Path temporary)
            throws IOException {
        Path file = Files.write(temporary.resolve("exe"), header((byte) machine));

        assertThat(NativePlatform.ofExecutable(file).orElseThrow().directory()).isEqualTo(directory);
    }

    @Test
    void knowsWhichExecutablesItDoesNotKnow(@TempDir Path temporary) throws IOException {
        Path riscV = Files.write(temporary.resolve("riscv"), header((byte) 243));
        Path script = Files.writeString(temporary.resolve("script"), "#!/bin/sh\nexit 0 # and so on\n");
        Path cut = Files.write(temporary.resolve("cut"), new byte[] {0x7f, 'E', 'L', 'F'});

        assertThatThrownBy(() -> NativePlatform.ofExecutable(riscV))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith("platform: Linux (ELF machine 243) (expected: ");
        assertThat(NativePlatform.ofExecutable(script)).isEmpty();
        assertThat(NativePlatform.ofExecutable(cut)).isEmpty();
        assertThat(NativePlatform.ofExecutable(temporary.resolve("none"))).isEmpty();
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

    private static String jvmSystem() {
        return System.getProperty("os.name").startsWith("Mac") ? "Darwin" : System.getProperty("os.name");
    }
}
