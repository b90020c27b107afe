package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.environment.PythonParameters;
import dev.nereid.backend.python.environment.PythonSettings;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelArgumentsTest {
    @TempDir
    Path directory;

    @Test
    void areSevenTexts() {
        assertThat(arguments(new Device(Device.Kind.GPU, 2), Map.of()))
                .isEqualTo(Map.of(
                        "model_config", "{\"name\":\"m\"}",
                        "model_instance_kind", "GPU",
                        "model_instance_name", "m_0_0",
                        "model_instance_device_id", "2",
                        "model_repository", directory.toString(),
                        "model_version", "3",
                        "model_name", "m"));
    }

    @Test
    void aVisibleDeviceIsTheFirst() {
        Map<String, String> visible = Map.of("SET_CUDA_VISIBLE_DEVICES", "yes");

        assertThat(arguments(new Device(Device.Kind.GPU, 2), visible))
                .containsEntry("model_instance_device_id", "0")
                .containsEntry("model_instance_kind", "GPU");
        assertThat(arguments(Device.CPU, visible)).containsEntry("model_instance_kind", "CPU");
    }

    private Map<String, String> arguments(Device device, Map<String, String> parameters) {
        FakeModelContext model = new FakeModelContext(
                        ModelSettings.builder("m", 3).json("{\"name\":\"m\"}").build(), directory)
                .withParameters(parameters);
        PythonSettings settings = PythonSettings.of(new FakeBackendContext(Map.of(), directory, 1));
        return ModelArguments.of(
                model, new FakeInstanceContext("m_0_0", device, List.of()), PythonParameters.of(model, settings));
    }
}
