package dev.nereid.backend.python;

import dev.nereid.backend.python.environment.PythonParameters;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.util.LinkedHashMap;
import java.util.Map;

/** The arguments of {@code initialize}. Static functions only. */
final class ModelArguments {
    private ModelArguments() {}

    /** Returns the seven arguments of an instance by name; the configuration of its model is complete. */
    static Map<String, String> of(ModelContext model, InstanceContext instance, PythonParameters parameters) {
        ModelSettings settings = model.settings();
        Device device = instance.device();
        Map<String, String> arguments = new LinkedHashMap<>();
        arguments.put("model_config", settings.json());
        arguments.put("model_instance_kind", device.kind().name());
        arguments.put("model_instance_name", instance.name());
        arguments.put(
                "model_instance_device_id", parameters.setsVisibleDevices() ? "0" : Integer.toString(device.id()));
        arguments.put(
                "model_repository", model.modelDirectory().toAbsolutePath().toString());
        arguments.put("model_version", Long.toString(settings.version()));
        arguments.put("model_name", settings.name());
        return arguments;
    }
}
