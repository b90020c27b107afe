package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Device;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ProcessCommandTest {
    @Test
    void showsOneDevice() {
        ProcessCommand command = new ProcessCommand(Path.of("/python"), List.of(), Map.of("A", "1"), "a test");

        assertThat(command.withVisibleDevice(new Device(Device.Kind.GPU, 1)).environment())
                .isEqualTo(Map.of("A", "1", "CUDA_VISIBLE_DEVICES", "1"));
        assertThat(command.withVisibleDevice(Device.CPU).environment())
                .isEqualTo(Map.of("A", "1", "CUDA_VISIBLE_DEVICES", ""));
        assertThat(command.withVisibleDevice(new Device(Device.Kind.MODEL, 0))).isSameAs(command);
    }

    @Test
    void countsTheDevicesThatTheServerSees() {
        ProcessCommand command = new ProcessCommand(
                Path.of("/python"), List.of(), Map.of("CUDA_VISIBLE_DEVICES", "3, GPU-8932f937"), "a test");

        assertThat(visible(command, 0)).isEqualTo("3");
        assertThat(visible(command, 1)).isEqualTo("GPU-8932f937");
        assertThat(visible(command, 2)).isEqualTo("2");
    }

    private static String visible(ProcessCommand command, int id) {
        return command.withVisibleDevice(new Device(Device.Kind.GPU, id))
                .environment()
                .get("CUDA_VISIBLE_DEVICES");
    }
}
