package dev.nereid.backend.pytorch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.pytorch.presets.TorchModule;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A loaded model: a module that instances share, or one for each of them where executions change it. Any control thread may
 * use it.
 */
final class PyTorchModel implements Model {
    /** The largest weights with which an execution may take less time than waking another thread. */
    private static final long MAX_SHORT_BYTES = 256 * 1024;

    private static final Duration MAX_SHORT_EXECUTION = Duration.ofNanos(300_000);

    private final ModelContext context;
    private final PyTorchBackendOptions backend;
    private final PyTorchModelOptions options;
    private final PyTorchModelFile file;
    private final TorchModule module;
    private final PyTorchSignature signature;
    private final ProcessSettings process;
    private final boolean shares;
    private final boolean isCompiled;
    private final boolean isShort;
    private final ReentrantLock lock = new ReentrantLock();

    /** An instance uses the module that was loaded first. */
    @GuardedBy("lock")
    private boolean used;

    @GuardedBy("lock")
    private int instances;

    /** Creates the model, and warms its module where that changes nothing; it owns the module unless this throws. */
    PyTorchModel(
            ModelContext context,
            PyTorchBackendOptions backend,
            PyTorchModelOptions options,
            PyTorchModelFile file,
            TorchModule module,
            PyTorchSignature signature,
            ProcessSettings process) {
        this.context = context;
        this.backend = backend;
        this.options = options;
        this.file = file;
        this.module = module;
        this.signature = signature;
        this.process = process;
        boolean leavesModule = module.effects().leavesModule();
        shares = leavesModule || options.sharesWeights();
        WarmUp.Outcome warmUp = WarmUp.run(context, module, signature);
        isCompiled = warmUp.isCompiled();
        isShort = shares
                && file.content().tensorBytes() <= MAX_SHORT_BYTES
                && warmUp.execution()
                        .filter(time -> time.compareTo(MAX_SHORT_EXECUTION) <= 0)
                        .isPresent();
        process.add(context, openBlasThreads());
        if (options.sharesWeights() && !leavesModule) {
            context.logger()
                    .log(
                            System.Logger.Level.WARNING,
                            "ENABLE_WEIGHT_SHARING: executions may change the module of model '"
                                    + context.settings().name() + "', which its instances share (expected: a module"
                                    + " whose forward changes no buffer)");
        }
        if (module.isTraining()) {
            context.logger()
                    .log(
                            System.Logger.Level.WARNING,
                            "the module of model '" + context.settings().name()
                                    + "' is in the mode of training: dropout and statistics of batches change its results"
                                    + " (expected: model.eval() before it is scripted or traced)");
        }
        context.logger().log(System.Logger.Level.INFO, report());
    }

    private String report() {
        return "loaded version " + context.settings().version() + ": " + module.schema()
                + (module.isFrozen() ? ", frozen" : ", not frozen") + ", threads " + threads() + ", instances "
                + context.instances().size() + (shares ? " with one module" : " with a module each");
    }

    /** A short execution is over before other threads would have begun with their parts. */
    private int threads() {
        return isShort ? 1 : options.intraOpThreads();
    }

    private int openBlasThreads() {
        return isShort ? ProcessSettings.ANY : options.intraOpThreads();
    }

    @Override
    public ModelInstance newInstance(InstanceContext instance) {
        boolean isFirst = begin();
        if (shares) {
            if (!isFirst && options.sharesWeights()) {
                context.logger()
                        .log(
                                System.Logger.Level.INFO,
                                "Reusing TorchScript model for instance '"
                                        + context.settings().name() + "'");
            }
            return instance(module, () -> {});
        }
        if (isFirst) {
            return instance(module, () -> {});
        }
        TorchModule copy = copy();
        return instance(copy, () -> {
            end();
            copy.close();
        });
    }

    private TorchModule copy() {
        try {
            return PyTorchBackend.loadCopy(context, file, options);
        } catch (RuntimeException e) {
            end();
            throw e;
        }
    }

    private ModelInstance instance(TorchModule own, Runnable whenClosed) {
        return new PyTorchInstance(
                context.settings(),
                signature,
                own.newExecution(threads(), signature.keys()),
                isCompiled ? 0 : WarmUp.COMPILING_RUNS,
                whenClosed);
    }

    /** Counts an instance; returns whether the module that was loaded first is for it. */
    private boolean begin() {
        lock.lock();
        try {
            boolean isFirst = !used;
            used = true;
            instances++;
            return isFirst;
        } finally {
            lock.unlock();
        }
    }

    private void end() {
        lock.lock();
        try {
            instances--;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public Optional<BackendTraits.Execution> execution() {
        return isShort ? Optional.of(BackendTraits.Execution.SHORT) : Optional.empty();
    }

    /** Says whether each instance would compute with as many threads. */
    @Override
    public boolean suits(List<Device> others) {
        return options.suits(context.parameters(), others, backend.processors());
    }

    /** Reports the tensors of all modules. */
    @Override
    public List<MemoryUsage> memoryUsage() {
        lock.lock();
        try {
            int modules = shares ? 1 : Math.max(1, instances);
            return List.of(
                    new MemoryUsage(MemoryPlace.HOST, modules * file.content().tensorBytes()));
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        process.remove(openBlasThreads());
        module.close();
    }
}
