package dev.nereid.backend.python.environment;

import dev.nereid.spi.Device;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * How the Python of a model is started. Immutable.
 *
 * @param executable the program, which exists and may be executed
 * @param arguments the arguments before the path of the runner; commonly none
 * @param environment all environment variables of the process
 * @param origin which Python it is and why, for errors and the log, such as {@code python3 of the path
 *     (/usr/bin/python3)}
 */
public record ProcessCommand(Path executable, List<String> arguments, Map<String, String> environment, String origin) {
    private static final String VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES";

    public ProcessCommand {
        arguments = List.copyOf(arguments);
        environment = Map.copyOf(environment);
    }

    /**
     * Returns the same command with the device of an instance as the one visible GPU: none for an instance on the CPU.
     *
     * <p>Numbers of devices count the devices that the server sees, so where the server has {@code
     * CUDA_VISIBLE_DEVICES} itself, the process gets the entry of that number.
     *
     * @return the changed command; this one for {@link Device.Kind#MODEL}
     */
    public ProcessCommand withVisibleDevice(Device device) {
        if (device.kind() == Device.Kind.MODEL) {
            return this;
        }
        Map<String, String> variables = new HashMap<>(environment);
        variables.put(VISIBLE_DEVICES, device.kind() == Device.Kind.GPU ? visible(device.id()) : "");
        return new ProcessCommand(executable, arguments, variables, origin);
    }

    private String visible(int id) {
        String[] seen = environment.getOrDefault(VISIBLE_DEVICES, "").split(",", -1);
        boolean isListed = id < seen.length && !seen[id].isBlank();
        return isListed ? seen[id].strip() : Integer.toString(id);
    }
}
