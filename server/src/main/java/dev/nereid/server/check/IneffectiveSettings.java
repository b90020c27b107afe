package dev.nereid.server.check;

import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.server.options.ServerOptions;
import inference.ModelConfig;
import inference.ModelInstanceGroup;
import inference.ModelOptimizationPolicy;
import java.util.ArrayList;
import java.util.List;

/**
 * Lists settings of a configuration that have no effect on this server. Immutable.
 *
 * @param rateLimited whether the server has a rate limiter
 * @param cached whether the server has a response cache
 */
record IneffectiveSettings(boolean rateLimited, boolean cached) {
    private static final String ONLY_GPU = " has no effect: every instance runs on the CPU";

    static IneffectiveSettings on(ServerOptions options) {
        return new IneffectiveSettings(
                options.scheduling().rateLimit().isPresent(),
                options.scheduling().cache().isPresent());
    }

    /**
     * Lists the settings.
     *
     * @param written the configuration as its file has it
     * @param completed the configuration with defaults
     */
    List<String> of(ModelConfig written, ModelConfig completed) {
        List<String> settings = new ArrayList<>();
        for (String setting : ConfigValidation.ignored(written, rateLimited)) {
            settings.add(setting + " has no effect: the server has no rate limiter"
                    + " (expected: --rate-limit=execution_count)");
        }
        if (written.getResponseCache().getEnable() && !cached) {
            settings.add("response_cache has no effect: the server has no cache (expected: --cache-config)");
        }
        if (written.getOptimization().getEagerBatching()) {
            settings.add("optimization.eager_batching has no effect");
        }
        if (isOnCpu(completed)) {
            gpuSettings(written).forEach(setting -> settings.add(setting + ONLY_GPU));
        }
        return settings;
    }

    private static List<String> gpuSettings(ModelConfig written) {
        List<String> settings = new ArrayList<>();
        ModelOptimizationPolicy optimization = written.getOptimization();
        if (optimization.hasCuda()) {
            settings.add("optimization.cuda");
        }
        if (optimization.hasInputPinnedMemory()) {
            settings.add("optimization.input_pinned_memory");
        }
        if (optimization.hasOutputPinnedMemory()) {
            settings.add("optimization.output_pinned_memory");
        }
        if (optimization.getGatherKernelBufferThreshold() != 0) {
            settings.add("optimization.gather_kernel_buffer_threshold");
        }
        if (optimization.getExecutionAccelerators().getGpuExecutionAcceleratorCount() > 0) {
            settings.add("optimization.execution_accelerators.gpu_execution_accelerator");
        }
        if (written.getCcModelFilenamesCount() > 0) {
            settings.add("cc_model_filenames");
        }
        return settings;
    }

    private static boolean isOnCpu(ModelConfig completed) {
        return completed.getInstanceGroupCount() > 0
                && completed.getInstanceGroupList().stream()
                        .allMatch(group -> group.getKind() == ModelInstanceGroup.Kind.KIND_CPU);
    }
}
