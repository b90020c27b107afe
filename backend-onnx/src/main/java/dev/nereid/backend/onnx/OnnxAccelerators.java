package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.onnx.ort.OrtProvider;
import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Maps the execution accelerators of a configuration to execution providers of ONNX Runtime. Stateless.
 *
 * <p>As on the reference server, an instance on a GPU always has the provider of CUDA, and that of TensorRT before it if
 * the accelerator {@code tensorrt} is configured. An accelerator {@code cuda} sets options of the former.
 */
final class OnnxAccelerators {
    private static final String TENSORRT = "tensorrt";
    private static final String CUDA = "cuda";

    private OnnxAccelerators() {}

    /**
     * An execution accelerator of the configuration.
     *
     * @param kind the kind of device it is for: {@link Device.Kind#CPU} or {@link Device.Kind#GPU}
     * @param name its name, for instance {@code tensorrt}
     * @param parameters its settings; immutable
     */
    private record Accelerator(Device.Kind kind, String name, Map<String, String> parameters) {}

    private static List<Accelerator> configured(ModelSettings settings) {
        List<Accelerator> accelerators = new ArrayList<>();
        for (Device.Kind kind : List.of(Device.Kind.GPU, Device.Kind.CPU)) {
            String path = "optimization.execution_accelerators." + kind.name().toLowerCase(Locale.ROOT)
                    + "_execution_accelerator";
            int count = settings.values(path).size();
            for (int i = 0; i < count; i++) {
                String element = path + "." + i;
                accelerators.add(new Accelerator(
                        kind, settings.value(element + ".name").orElse(""), settings.entries(element + ".parameters")));
            }
        }
        return accelerators;
    }

    /** Returns the number of instances that compute on processors. */
    static int cpuInstances(ModelContext context) {
        return cpuInstances(context.instances());
    }

    /** Returns the number of devices that are processors. */
    static int cpuInstances(List<Device> instances) {
        return (int) instances.stream()
                .filter(device -> device.kind() != Device.Kind.GPU)
                .count();
    }

    private static boolean hasGpu(ModelContext context) {
        return context.instances().stream().anyMatch(device -> device.kind() == Device.Kind.GPU);
    }

    /**
     * Refuses accelerators and options that cannot be satisfied. GPU accelerators apply to instances on GPUs; the
     * reference server ignores them for other instances.
     */
    static void check(ModelContext context) {
        for (Accelerator accelerator : configured(context.settings())) {
            if (accelerator.kind() != Device.Kind.GPU) {
                throw unknown(accelerator, "none, this ONNX Runtime has no accelerators for the CPU");
            }
            if (!hasGpu(context)) {
                OnnxModelOptions.logAtLoad(
                        context,
                        System.Logger.Level.WARNING,
                        () -> "execution accelerator '" + accelerator.name()
                                + "' for GPUs has no effect: no instance runs on one");
            }
        }
        if (hasGpu(context)) {
            providers(context.settings(), context.parameters());
        } else {
            OnnxParameters.OF_CUDA.forEach(context.parameters()::value); // known, though they have no effect
        }
    }

    /**
     * Returns the execution providers of a session on a device, without the CPU.
     *
     * @param available the names of the providers that ONNX Runtime was built with
     * @throws BackendException if the configuration is wrong, or a provider is not available
     */
    static OrtProviders on(Device device, ModelContext context, List<String> available) {
        if (device.kind() != Device.Kind.GPU) {
            return OrtProviders.CPU;
        }
        List<OrtProvider> providers = providers(context.settings(), context.parameters());
        for (OrtProvider provider : providers.reversed()) { // CUDA first: no instance on a GPU can be without it
            if (!available.contains(provider.kind().providerName())) {
                throw missing(device, context.settings(), provider.kind(), available);
            }
        }
        return new OrtProviders(device.id(), providers);
    }

    /** Returns the providers of sessions on GPUs: TensorRT providers as often as configured, then the CUDA provider. */
    private static List<OrtProvider> providers(ModelSettings settings, Parameters parameters) {
        List<OrtProvider> providers = new ArrayList<>();
        Map<String, String> cuda = new HashMap<>();
        for (Accelerator accelerator : configured(settings)) {
            if (accelerator.kind() != Device.Kind.GPU) {
                continue;
            }
            switch (accelerator.name()) {
                case TENSORRT ->
                    providers.add(
                            new OrtProvider(OrtProvider.Kind.TENSORRT, TensorRtOptions.of(accelerator.parameters())));
                case CUDA -> cuda.putAll(CudaOptions.of(accelerator.parameters()));
                default -> throw unknown(accelerator, TENSORRT + " or " + CUDA);
            }
        }
        cuda.putAll(CudaOptions.ofModel(parameters));
        providers.add(new OrtProvider(OrtProvider.Kind.CUDA, cuda));
        return providers;
    }

    /** Describes a provider in the words of the reference server's log. */
    static String report(OrtProvider provider, Device device, ModelSettings settings) {
        String name = provider.kind() == OrtProvider.Kind.CUDA ? "CUDA" : "TensorRT";
        return name + " Execution Accelerator is set for '" + settings.name() + "' on device " + device.id()
                + " with options: " + new TreeMap<>(provider.options());
    }

    private static BackendException unknown(Accelerator accelerator, String expected) {
        return ModelErrors.invalid("unknown Execution Accelerator '" + accelerator.name() + "' is requested; for "
                + accelerator.kind() + " (expected: " + expected + ")");
    }

    private static BackendException missing(
            Device device, ModelSettings settings, OrtProvider.Kind kind, List<String> available) {
        boolean isCuda = kind == OrtProvider.Kind.CUDA;
        return ModelErrors.cannotLoad(
                settings.name(),
                "instance on " + device + ": the ONNX Runtime in this plugin has no " + (isCuda ? "CUDA" : "TensorRT")
                        + " provider (has: " + String.join(", ", available)
                        + "): install the plugin directory onnxruntime-gpu in place of onnx, or "
                        + (isCuda ? "use KIND_CPU" : "remove the execution accelerator '" + TENSORRT + "'"));
    }
}
