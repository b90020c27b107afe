package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.spi.Device;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reads which arenas of memory shrink after each run. Stateless.
 *
 * <p>ONNX Runtime checks the entry when a model is run, and fails each run if there is no such arena. So an execution
 * gets only the arenas of its session: the CPU's arena and its GPU's arena.
 */
final class ArenaShrinkage {
    private static final String SEPARATOR = ";";
    private static final String CPU = "cpu:0";
    private static final String GPU_PREFIX = "gpu:";
    private static final Pattern ANY_GPU = Pattern.compile(GPU_PREFIX + "\\d+");

    private ArenaShrinkage() {}

    /**
     * Reads the parameter.
     *
     * @param arena whether there is an arena of the CPU
     * @param instances the devices of the model's instances; empty while a configuration is completed, which leaves open
     *     what GPUs they will run on
     * @return the entry of the run configuration, for all devices; empty if the parameter is not set
     */
    static Map<String, String> read(OptionValues values, boolean arena, List<Device> instances) {
        String text = values.values().text(OnnxParameters.SHRINKAGE).orElse("").strip();
        if (text.isEmpty()) {
            return Map.of();
        }
        List<String> gpus = instances.stream()
                .filter(device -> device.kind() == Device.Kind.GPU)
                .map(ArenaShrinkage::arena)
                .distinct()
                .toList();
        for (String entry : text.split(SEPARATOR, -1)) {
            boolean isOpen = instances.isEmpty() && ANY_GPU.matcher(entry).matches();
            if (!entry.equals(CPU) && !gpus.contains(entry) && !isOpen) {
                throw values.values().invalid(OnnxParameters.SHRINKAGE, expected(gpus));
            }
            if (entry.equals(CPU) && !arena) {
                throw values.values()
                        .invalid(
                                OnnxParameters.SHRINKAGE,
                                (gpus.isEmpty() ? "none" : "none of the CPU") + ", since " + OnnxParameters.ARENA
                                        + " is false");
            }
        }
        return Map.of(OnnxParameters.SHRINKAGE, text);
    }

    private static String expected(List<String> gpus) {
        return gpus.isEmpty()
                ? CPU + ", the only arena on a machine without GPUs"
                : CPU + " and arenas of the instances' GPUs, " + String.join(", ", gpus) + ", separated by "
                        + SEPARATOR;
    }

    private static String arena(Device gpu) {
        return GPU_PREFIX + gpu.id();
    }

    /** Returns the part of an entry that holds for executions on a device. */
    static Map<String, String> on(Device device, Map<String, String> run) {
        String text = run.get(OnnxParameters.SHRINKAGE);
        if (text == null) {
            return run;
        }
        String own = Arrays.stream(text.split(SEPARATOR, -1))
                .filter(entry -> entry.equals(CPU) || (device.kind() == Device.Kind.GPU && entry.equals(arena(device))))
                .collect(Collectors.joining(SEPARATOR));
        return own.isEmpty() ? Map.of() : Map.of(OnnxParameters.SHRINKAGE, own);
    }
}
