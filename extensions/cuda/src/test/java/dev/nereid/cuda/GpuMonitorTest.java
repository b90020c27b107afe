package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of what is read from GPUs, with a library in C that stands in for NVML. */
final class GpuMonitorTest {
    private static final String UUID = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae0";

    @TempDir
    private Path directory;

    @Test
    void readsEachGpu() throws IOException, InterruptedException {
        GpuMonitor monitor = GpuMonitor.open(StandInLibrary.nvml(directory).toString());

        assertThat(monitor.read())
                .containsExactly(
                        new GpuReading(
                                UUID + 0,
                                OptionalDouble.of(0.37),
                                OptionalLong.of(80L << 30),
                                OptionalLong.of(1L << 30),
                                OptionalDouble.of(79.5),
                                OptionalDouble.of(700),
                                OptionalDouble.of(5_000_000_000.5)),
                        new GpuReading(
                                UUID + 1,
                                OptionalDouble.of(0.38),
                                OptionalLong.of(80L << 30),
                                OptionalLong.of(2L << 30),
                                OptionalDouble.of(79.501),
                                OptionalDouble.of(700),
                                OptionalDouble.empty()));
    }

    @Test
    void aValueThatFailsThreeTimesIsNotReadAgain() throws IOException, InterruptedException {
        String library = StandInLibrary.nvml(directory).toString();
        GpuMonitor monitor = GpuMonitor.open(library);

        for (int i = 0; i < 10; i++) {
            assertThat(monitor.read().getLast().joules()).isEmpty();
        }

        MemorySegment reads = SharedLibrary.open(library).find("standin_reads");
        assertThat(NativeCalls.call(reads)).isEqualTo(3);
    }

    @Test
    void aGpuThatDoesNotAnswerIsLeftOut() throws IOException, InterruptedException {
        GpuMonitor monitor =
                GpuMonitor.open(StandInLibrary.nvml(directory, "LOST=0").toString());

        assertThat(monitor.read()).singleElement().extracting(GpuReading::uuid).isEqualTo(UUID + 1);
    }

    @Test
    void saysWhyThereIsNone() throws IOException, InterruptedException {
        String missing = directory.resolve("libnvidia-ml.so.1").toString();

        assertThatThrownBy(() -> GpuMonitor.open(missing))
                .isInstanceOf(IOException.class)
                .hasMessage(missing + ": cannot open shared object file: No such file or directory");

        String library = StandInLibrary.nvml(directory, "INIT=9").toString();
        assertThatThrownBy(() -> GpuMonitor.open(library))
                .isInstanceOf(IOException.class)
                .hasMessage("nvmlInit_v2: error 9");
    }
}
