package dev.nereid.backend.pytorch.presets;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.ExtraFilesMap;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.Method;
import org.bytedeco.pytorch.StringVectorOptional;
import org.bytedeco.pytorch.global.torch;
import org.jspecify.annotations.Nullable;

/**
 * A module of TorchScript on the CPU. Its executions may run on any threads at the same time, as far as they change
 * nothing of it ({@link #effects}).
 *
 * <p>Owner: the caller of {@link #load}, which closes it after its last execution. Outputs may live longer.
 */
public final class TorchModule implements AutoCloseable {
    private static final String FORWARD = "forward";

    private final JitModule module;
    private final ExecutionMode mode;
    private final TorchSchema schema;
    private final Effects effects;
    private final boolean mayRunLong;
    private final boolean frozen;
    private final boolean training;

    private TorchModule(
            JitModule module,
            ExecutionMode mode,
            TorchSchema schema,
            Effects effects,
            boolean mayRunLong,
            boolean frozen,
            boolean training) {
        this.module = module;
        this.mode = mode;
        this.schema = schema;
        this.effects = effects;
        this.mayRunLong = mayRunLong;
        this.frozen = frozen;
        this.training = training;
    }

    /**
     * Loads a module, and freezes it where its executions are optimized and it is in the mode of evaluation.
     *
     * @param file a file of {@code torch.jit.save}, read as a whole; not used afterwards
     * @param hasExamples whether the file contains the inputs of its trace
     * @param readsTraining whether its code depends on the mode of training
     * @throws TorchException if PyTorch refuses the file
     */
    public static TorchModule load(Path file, ExecutionMode mode, boolean hasExamples, boolean readsTraining)
            throws TorchException {
        try (ModeGuard _ = mode.enter()) {
            return loadInMode(file, mode, hasExamples, readsTraining);
        } catch (RuntimeException e) {
            throw TorchException.of(e);
        }
    }

    private static TorchModule loadInMode(Path file, ExecutionMode mode, boolean hasExamples, boolean readsTraining)
            throws TorchException {
        List<JitModule> unused = new ArrayList<>();
        try {
            JitModule module = read(file, hasExamples);
            unused.add(module);
            TorchSchema schema;
            try (PointerScope _ = new PointerScope();
                    Method forward = module.get_method(FORWARD)) {
                schema = TorchSchema.of(forward, hasExamples);
            }
            if (!readsTraining) {
                module.eval(); // the same for its code
            }
            boolean training = isTraining(module);
            JitModule frozen = training ? null : freeze(module); // which PyTorch does in the other mode alone
            if (frozen == null) {
                unused.remove(module);
                return new TorchModule(module, mode, schema, Effects.UNKNOWN, true, false, training);
            }
            unused.add(frozen);
            GraphEffects effects = effects(frozen);
            JitModule executed = mode.optimized() ? frozen : module;
            unused.remove(executed);
            return new TorchModule(
                    executed, mode, schema, effects.effects(), effects.mayRunLong(), mode.optimized(), false);
        } catch (RuntimeException e) {
            throw TorchException.of(e);
        } finally {
            unused.forEach(JitModule::close);
        }
    }

    /** Says whether a module is in the mode of training. A module that was frozen before it was saved has no mode. */
    private static boolean isTraining(JitModule module) {
        return module.hasattr("training") && module.is_training();
    }

    private static JitModule read(Path file, boolean hasExamples) {
        try (CompilationUnit unit = new CompilationUnit();
                BytePointer path = new BytePointer(file.toString(), StandardCharsets.UTF_8);
                Device device = new Device(torch.DeviceType.CPU);
                DeviceOptional target = new DeviceOptional(device);
                ExtraFilesMap others = new ExtraFilesMap()) {
            // With the places in the source, for messages.
            return torch.import_ir_module(unit, path, target, others, true, hasExamples);
        }
    }

    /** Returns the module with its attributes as constants; null if PyTorch cannot do that. */
    private static @Nullable JitModule freeze(JitModule module) {
        try (StringVectorOptional kept = new StringVectorOptional()) {
            return torch.freeze(module, kept, false); // folded normalization would compute other sums
        } catch (RuntimeException e) {
            return null;
        }
    }

    private static GraphEffects effects(JitModule frozen) {
        try (PointerScope _ = new PointerScope();
                Method forward = frozen.get_method(FORWARD)) {
            return GraphEffects.of(forward.graph());
        }
    }

    /** Objects that an execution changes. */
    public enum Effects {
        /** Nothing except objects that it creates. */
        NONE,
        /** Its inputs may be changed, the module is not. */
        INPUTS,
        /** The module may be changed, and keep inputs. */
        MODULE,
        /** Not known, since the module is not frozen. */
        UNKNOWN;

        /** Says whether executions may use one module at the same time, since they leave it as it is. */
        public boolean leavesModule() {
            return this == NONE || this == INPUTS;
        }
    }

    /** Returns the arguments and the result of {@code forward}. */
    public TorchSchema schema() {
        return schema;
    }

    /** Returns what executions change. */
    public Effects effects() {
        return effects;
    }

    /** Says whether the attributes of the module are constants. */
    public boolean isFrozen() {
        return frozen;
    }

    /** Says whether a missing {@code eval()} changes results: the mode of training is on, and its code asks for it. */
    public boolean isTraining() {
        return training;
    }

    /**
     * Says whether the script has a loop with an unknown or large number of rounds: {@code while}, {@code for} over a
     * computed number, or over many numbers. Returns {@code true} also where that is not known.
     */
    public boolean mayRunLong() {
        return mayRunLong;
    }

    /**
     * Creates the means to execute the module on one thread at a time, to be closed before the module.
     *
     * @param threads the number of threads that one execution computes with; at least 1
     * @param dictionary the names of the inputs if they are passed as one dictionary; otherwise empty
     */
    public TorchExecution newExecution(int threads, List<String> dictionary) {
        return new TorchExecution(
                module, schema, mode, threads, !effects.leavesModule(), effects != Effects.NONE, dictionary);
    }

    @Override
    public void close() {
        module.close();
    }
}
