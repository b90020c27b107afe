package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A model with an engine on each GPU that has an instance. Called as {@link Model} says. */
final class TensorRtModel implements PaddedModel {
    /** Executions in flight of an instance: one runs while another is prepared. */
    static final int SETS = 2;

    /** With {@code eager_batching} a third one is prepared while the outputs of the first are copied. */
    static final int EAGER_SETS = 3;

    private final ModelSettings settings;
    private final TensorRtOptions options;
    private final Map<Integer, LoadedEngine> engines;

    /** An engine on its GPU, owned by the model, with the bytes of its plan: about those of its weights on the GPU. */
    record LoadedEngine(GpuContext gpu, Engine engine, long planBytes) {}

    TensorRtModel(ModelSettings settings, TensorRtOptions options, Map<Integer, LoadedEngine> engines) {
        this.settings = settings;
        this.options = options;
        this.engines = engines;
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        LoadedEngine loaded = engines.get(context.device().id());
        if (context.device().kind() != Device.Kind.GPU || loaded == null) {
            throw TensorRtBackend.noGpu(context.name(), context.device());
        }
        Engine engine = loaded.engine();
        List<String> configured = context instanceof DeviceInstanceContext device ? device.profiles() : List.of();
        List<Integer> profiles = ProfileChoice.read(configured, engine.profiles());
        Bindings bindings = Bindings.of(engine.tensors(), settings);
        InstanceResources resources = InstanceResources.open(
                loaded.gpu(), engine, bindings, profiles, options.priority(), options.eager() ? EAGER_SETS : SETS);
        return new TensorRtInstance(
                context.name(), bindings, new ProfileChoice(engine.tensors(), profiles), resources, options.graphs());
    }

    @Override
    public Map<String, Shape> paddedInputs() {
        return engines.values().stream()
                .findFirst()
                .map(loaded -> TensorFormats.paddedInputs(loaded.engine().tensors(), settings))
                .orElse(Map.of());
    }

    @Override
    public List<MemoryUsage> memoryUsage() {
        List<MemoryUsage> usage = new ArrayList<>();
        engines.forEach((gpu, loaded) -> usage.add(new MemoryUsage(
                new MemoryPlace(MemoryPlace.Kind.GPU, gpu),
                loaded.planBytes() + loaded.engine().contextBytes())));
        return usage;
    }

    @Override
    public void close() {
        engines.values()
                .forEach(
                        loaded -> loaded.gpu().release(driver -> loaded.engine().close()));
    }
}
