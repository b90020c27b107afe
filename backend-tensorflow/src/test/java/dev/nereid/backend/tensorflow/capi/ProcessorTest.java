package dev.nereid.backend.tensorflow.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.natives.HostMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessorTest {
    @TempDir
    private Path directory;

    private Path cpuInfo(String flags) throws IOException {
        return Files.writeString(
                directory.resolve("cpuinfo"), "processor\t: 0\nmodel name\t: any\nflags\t\t: " + flags + "\nbugs\t:\n");
    }

    @Test
    void needsAvxOnX86() throws IOException {
        NativePlatform platform = NativePlatform.of(new HostMachine("Linux", "amd64"));

        assertThat(Processor.obstacle(platform, cpuInfo("fpu sse4_2 avx avx2"))).isEmpty();
        assertThat(Processor.obstacle(platform, cpuInfo("fpu sse4_2 xsave")))
                .hasValue("processor: without AVX (expected: AVX, which TensorFlow is compiled for)");
        assertThat(Processor.obstacle(platform, cpuInfo("fpu avx2 avx512f"))).isPresent();
    }

    @Test
    void needsNoAvxElsewhere() throws IOException {
        assertThat(Processor.obstacle(NativePlatform.of(new HostMachine("Linux", "aarch64")), cpuInfo("fp asimd")))
                .isEmpty();
        assertThat(Processor.obstacle(NativePlatform.of(new HostMachine("Darwin", "arm64")), directory.resolve("none")))
                .isEmpty();
    }

    @Test
    void thisMachineIsSuitable() {
        assertThat(Processor.obstacle()).isEmpty();
        assertThat(NativePlatform.current().toString()).startsWith("linux-");
    }

    @Test
    void namesPlatformsThatTensorFlowIsNotPublishedFor() {
        assertThatThrownBy(() -> NativePlatform.of(new HostMachine("Windows", "x86_64")))
                .hasMessage("platform: Windows x86_64 (expected: Linux x86_64, Linux aarch64 or Darwin arm64)");
    }
}
