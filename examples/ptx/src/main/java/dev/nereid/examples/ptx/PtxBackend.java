package dev.nereid.examples.ptx;

import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BackendTraits.PreferredGroup;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.IntFunction;

/**
 * Loads models that are a kernel in {@code model.ptx}, with one input and one output of FP32 in one shape. Immutable.
 *
 * <p>The kernel has the parameters {@code (const float *in, float *out, unsigned count, unsigned long long nanos)}. The
 * configuration's parameter {@code kernel} is its name, {@code nanos} the value of the last one, 0 by default.
 */
final class PtxBackend implements Backend {
    /** Executions of one instance that the GPU has at a time: one that runs, and others whose copies are under way. */
    static final int IN_FLIGHT = 8;

    private static final String FILE = "model.ptx";
    private static final String KERNEL = "kernel";
    private static final String NANOS = "nanos";

    private static final BackendTraits TRAITS = BackendTraits.DEFAULT
            .withPreferredGroups(PreferredGroup.of(Device.Kind.GPU, 1))
            .withPlaces(MemoryPlace.Kind.HOST, MemoryPlace.Kind.PINNED, MemoryPlace.Kind.GPU)
            .withMaxDeferred(IN_FLIGHT);

    private final IntFunction<GpuContext> gpus;

    /**
     * Creates the backend.
     *
     * @param gpus opens the GPU of a number
     */
    PtxBackend(IntFunction<GpuContext> gpus) {
        this.gpus = gpus;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        check(settings);
        Kernel kernel = new Kernel(
                read(context.versionDirectory().resolve(FILE)),
                context.parameters().text(KERNEL).orElse("run"),
                context.parameters()
                        .longInteger(NANOS, Long.MIN_VALUE, Long.MAX_VALUE)
                        .orElse(0));
        return instance -> {
            if (instance.device().kind() != Device.Kind.GPU) {
                throw invalid("instance '" + instance.name() + "': on " + instance.device() + " (expected: KIND_GPU)");
            }
            return new PtxInstance(instance, settings, kernel, gpus);
        };
    }

    private static void check(ModelSettings settings) {
        if (settings.inputs().size() != 1 || settings.outputs().size() != 1) {
            throw invalid(
                    "model '" + settings.name() + "': " + settings.inputs().size() + " inputs and "
                            + settings.outputs().size() + " outputs (expected: one of each)");
        }
        TensorSpec in = settings.inputs().getFirst();
        TensorSpec out = settings.outputs().getFirst();
        if (in.type() != DataType.FP32
                || out.type() != DataType.FP32
                || !in.dims().equals(out.dims())
                || !in.dims().isConcrete()) {
            throw invalid("model '" + settings.name() + "': input " + in + ", output " + out
                    + " (expected: TYPE_FP32 in one shape without variable dimension)");
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new BackendException(ErrorCode.NOT_FOUND, file + ": cannot be read: " + e, e);
        }
    }

    static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    /**
     * The kernel that the model runs. Immutable.
     *
     * @param nanos its last parameter
     */
    record Kernel(String source, String name, long nanos) {}
}
