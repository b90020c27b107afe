package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.natives.HostMachine;
import org.junit.jupiter.api.Test;
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
        NativePlatform platform = NativePlatform.of(new HostMachine(system, machine));

        assertThat(platform.resource()).isEqualTo(resource);
        assertThat(getClass().getClassLoader().getResource(resource)).isNotNull();
    }

    @Test
    void refusesAPlatformThatTheArtifactLacks() {
        assertThatThrownBy(() -> NativePlatform.of(new HostMachine("Linux", "riscv64")))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith("platform: Linux riscv64 (expected: ");
    }

    @ParameterizedTest
    @CsvSource({"x86_64, linux-x64", "aarch64, linux-aarch64"})
    void isThatOfTheMachine(String processor, String directory) {
        assertThat(NativePlatform.of(new HostMachine("Linux", processor)).directory())
                .isEqualTo(directory);
        assertThat(NativePlatform.current()).isEqualTo(NativePlatform.of(HostMachine.current()));
    }
}
