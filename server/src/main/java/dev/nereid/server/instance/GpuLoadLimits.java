package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.Map;

/**
 * Limits the used memory of GPUs after an instance was created. Beyond a limit the instance is closed, and its model is
 * not loaded, so that the GPU has memory for other uses. Immutable.
 *
 * @param fractions the part of all memory of a GPU, 0 to 1, by the number of the GPU; no limit for others
 */
public record GpuLoadLimits(Map<Integer, Double> fractions) {
    public static final GpuLoadLimits NONE = new GpuLoadLimits(Map.of());

    public GpuLoadLimits {
        fractions = Map.copyOf(fractions);
    }

    /** Checks the GPU of an instance that was just created. */
    void check(InstancePlan plan, DeviceMemory gpu) {
        int number = plan.device().id();
        Double fraction = fractions.get(number);
        if (fraction == null) {
            return;
        }
        DeviceMemory.Use use = use(gpu);
        if (use.usedBytes() > use.totalBytes() * fraction) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "can not create model '" + plan.name() + "': memory limit set for KIND_GPU " + number
                            + " has exceeded, model loading is rejected. " + use.usedBytes() + " of "
                            + use.totalBytes() + " bytes are in use (expected: at most " + fraction
                            + " of them; see --model-load-gpu-limit)");
        }
    }

    private static DeviceMemory.Use use(DeviceMemory gpu) {
        try {
            return gpu.use();
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }
}
