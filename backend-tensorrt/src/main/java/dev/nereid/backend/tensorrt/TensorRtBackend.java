package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.TensorRtModel.LoadedEngine;
import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.Gpu;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BackendTraits.PreferredGroup;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Loads engines. Safe for use by several threads. */
final class TensorRtBackend implements Backend {
    private static final String DEFAULT_FILE = "model.plan";

    /** The most bytes of a plan that are read at once. */
    private static final long CHUNK = 1 << 26;

    /** The alignment of a plan in memory, in bytes. */
    private static final long ALIGNMENT = 64;

    private static final BackendTraits TRAITS = BackendTraits.DEFAULT
            .withPreferredGroups(PreferredGroup.of(Device.Kind.GPU, 1))
            .withPlaces(MemoryPlace.Kind.HOST, MemoryPlace.Kind.PINNED, MemoryPlace.Kind.GPU)
            .withMaxDeferred(TensorRtModel.EAGER_SETS);

    private final TensorRtRuntime runtime;
    private final GpuDiscovery found;
    private final EngineCache cache;

    /** Creates the backend for the GPUs found, at least one. */
    TensorRtBackend(TensorRtRuntime runtime, GpuDiscovery found, EngineCache cache) {
        this.runtime = runtime;
        this.found = found;
        this.cache = cache;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        ModelSettings settings = context.settings();
        if (!EngineCompletion.isNeeded(settings)) {
            return Optional.empty();
        }
        LoadedEngine loaded = load(
                context, TensorRtOptions.of(context), found.gpus().getFirst().id());
        try {
            return Optional.of(EngineCompletion.of(settings, loaded.engine()));
        } finally {
            loaded.gpu().release(driver -> loaded.engine().close());
        }
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        TensorRtOptions options = TensorRtOptions.of(context);
        Map<Integer, LoadedEngine> engines = new TreeMap<>();
        boolean loaded = false;
        try {
            for (Device device : context.instances()) {
                if (device.kind() != Device.Kind.GPU) {
                    throw noGpu("model '" + settings.name() + "'", device);
                }
                if (!engines.containsKey(device.id())) {
                    engines.put(device.id(), load(context, options, device.id()));
                }
            }
            checkTensors(settings, engines);
            loaded = true;
            return new TensorRtModel(settings, options, engines);
        } finally {
            if (!loaded) {
                new TensorRtModel(settings, options, engines).close();
            }
        }
    }

    /** Compares all engines with the configuration, so that a difference fails the load before any instance. */
    private static void checkTensors(ModelSettings settings, Map<Integer, LoadedEngine> engines) {
        Map<String, Shape> padded = null;
        for (LoadedEngine loaded : engines.values()) {
            List<EngineTensor> tensors = loaded.engine().tensors();
            Bindings.of(tensors, settings);
            Map<String, Shape> own = TensorFormats.paddedInputs(tensors, settings);
            if (padded != null && !padded.equals(own)) {
                throw TensorRtErrors.unsupported("model '" + settings.name() + "': inputs padded to " + padded
                        + " in one plan and to " + own + " in another (expected: the same in all plans of the model)");
            }
            padded = own;
        }
    }

    static BackendException noGpu(String what, Device device) {
        return TensorRtErrors.invalid(
                what + ": an instance on " + device + " (expected: instance_group { kind: KIND_GPU })");
    }

    private LoadedEngine load(ModelContext context, TensorRtOptions options, int id) {
        Gpu gpu = found.gpus().stream()
                .filter(candidate -> candidate.id() == id)
                .findFirst()
                .orElseThrow(() -> new BackendException(
                        ErrorCode.UNAVAILABLE, "GPU " + id + ": not found (expected: one of " + found.gpus() + ")"));
        try {
            CudaDriver driver =
                    found.driver().orElseThrow(() -> new BackendException(ErrorCode.UNAVAILABLE, found.report()));
            GpuContext used = new GpuContext(driver, id);
            used.run(current -> {}); // makes it the current one of this thread, for TensorRT
            Path plan = options.onnx().isEmpty()
                    ? plan(context, options, gpu)
                    : cache.plan(runtime, request(context, options), gpu);
            return deserialize(plan, used);
        } catch (GpuException e) {
            throw TensorRtErrors.unavailable(e);
        }
    }

    /** Returns the plan for a GPU: that of its compute capability, or else the default one. */
    static Path plan(ModelContext context, TensorRtOptions options, Gpu gpu) {
        String configured = context.settings().modelFilename();
        String name = options.filenames()
                .getOrDefault(gpu.computeCapability(), configured.isEmpty() ? DEFAULT_FILE : configured);
        Path plan = context.versionDirectory().resolve(name);
        if (!Files.isRegularFile(plan)) {
            throw new BackendException(
                    ErrorCode.NOT_FOUND,
                    plan + ": not found (expected: a plan for compute capability " + gpu.computeCapability()
                            + ", named by cc_model_filenames or default_model_filename)");
        }
        return plan;
    }

    private static BuildRequest request(ModelContext context, TensorRtOptions options) {
        Path onnx = context.versionDirectory().resolve(options.onnx());
        if (!Files.isRegularFile(onnx)) {
            throw new BackendException(
                    ErrorCode.NOT_FOUND, onnx + ": not found (expected: the model that build_from_onnx names)");
        }
        Map<String, ProfileRange> ranges = new HashMap<>(configuredRanges(context.settings()));
        ranges.putAll(options.shapes());
        return new BuildRequest(onnx, options.precision(), options.workspaceBytes(), ranges);
    }

    /** Returns limits of inputs and states with only a variable batch dimension: from one item to the largest batch. */
    static Map<String, ProfileRange> configuredRanges(ModelSettings settings) {
        Map<String, ProfileRange> ranges = new HashMap<>();
        if (settings.batches()) {
            for (TensorSpec input : settings.inputs()) {
                addRange(ranges, input.name(), input.backendDims(), settings.maxBatchSize());
            }
            for (StateSpec state :
                    settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of())) {
                addRange(ranges, state.inputName(), state.dims(), settings.maxBatchSize());
            }
        }
        return ranges;
    }

    private static void addRange(Map<String, ProfileRange> ranges, String name, Shape dims, int maxBatchSize) {
        if (dims.isConcrete()) {
            Shape largest = dims.prepend(maxBatchSize);
            ranges.put(name, new ProfileRange(dims.prepend(1), largest, largest));
        }
    }

    private LoadedEngine deserialize(Path plan, GpuContext gpu) {
        try (Arena arena = Arena.ofConfined();
                FileChannel file = FileChannel.open(plan, StandardOpenOption.READ)) {
            if (file.size() == 0) {
                throw TensorRtErrors.invalid(plan + ": empty (expected: a plan of TensorRT)");
            }
            MemorySegment content = read(file, arena);
            Engine engine = runtime.deserialize(content);
            return new LoadedEngine(gpu, engine, file.size());
        } catch (IOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, plan + ": cannot be read: " + e, e);
        } catch (BackendException e) {
            throw new BackendException(e.code(), plan + ": " + e.getMessage(), e);
        }
    }

    /** Reads a file. It is not mapped: TensorRT would end the process if the file is truncated meanwhile. */
    private static MemorySegment read(FileChannel file, Arena arena) throws IOException {
        long size = file.size();
        MemorySegment content = arena.allocate(size, ALIGNMENT);
        long at = 0;
        while (at < size) {
            int read = file.read(content.asSlice(at, Math.min(CHUNK, size - at)).asByteBuffer());
            if (read < 0) {
                throw new IOException("ended after " + at + " bytes (expected: " + size + ")");
            }
            at += read;
        }
        return content;
    }
}
