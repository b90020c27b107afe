package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.backend.pytorch.presets.TorchLibrary;
import dev.nereid.backend.pytorch.presets.TorchModule;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.util.Optional;

/** The PyTorch backend: one loaded library, shared by all models. Immutable; any control thread may use it. */
final class PyTorchBackend implements Backend {
    /**
     * The instances of models that leave it open run on the CPU, also beside a GPU. Their threads last, since each has a
     * team of others for parallel work.
     */
    private static final BackendTraits TRAITS = BackendTraits.DEFAULT
            .withParallelInstances()
            .withLastingThreads()
            .withPreferredGroups(BackendTraits.PreferredGroup.of(Device.Kind.CPU, 1));

    private final PyTorchBackendOptions options;
    private final ProcessSettings process;

    private PyTorchBackend(PyTorchBackendOptions options, ProcessSettings process) {
        this.options = options;
        this.process = process;
    }

    /** Unpacks the native libraries where an earlier start has not done so, and loads them. */
    static PyTorchBackend open(BackendContext context) {
        PyTorchBackendOptions options = PyTorchBackendOptions.of(context);
        try {
            TorchLibrary library = PyTorchNatives.load(context.pluginDirectory(), context.cacheDirectory());
            context.logger().log(System.Logger.Level.INFO, "loaded PyTorch " + library.version());
            return new PyTorchBackend(options, new ProcessSettings(library, options.openBlasThreads()));
        } catch (IOException | UnsupportedOperationException | IllegalStateException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "PyTorch could not be loaded: " + e.getMessage(), e);
        }
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        if (!Completions.isNeeded(context)) {
            return Optional.empty();
        }
        PyTorchModelOptions modelOptions = PyTorchModelOptions.of(context, options.processors());
        PyTorchModelFile file = PyTorchModelFile.of(context);
        return LargeStack.call(() -> {
            try (TorchModule module = load(context, file, modelOptions)) {
                return PyTorchCompletion.of(context, module);
            }
        });
    }

    @Override
    public Model load(ModelContext context) {
        PyTorchModelOptions modelOptions = PyTorchModelOptions.of(context, options.processors());
        for (Device device : context.instances()) {
            if (device.kind() == Device.Kind.GPU) {
                throw PyTorchErrors.invalid(
                        "unable to load model '" + context.settings().name()
                                + "', instance_group: KIND_GPU (expected: KIND_CPU, since this PyTorch computes on the CPU)");
            }
        }
        PyTorchValidation.checkConfiguration(context.settings());
        PyTorchModelFile file = PyTorchModelFile.of(context);
        return LargeStack.call(() -> load(context, modelOptions, file));
    }

    private Model load(ModelContext context, PyTorchModelOptions modelOptions, PyTorchModelFile file) {
        TorchModule module = load(context, file, modelOptions);
        boolean loaded = false;
        try {
            PyTorchSignature signature = PyTorchValidation.check(context, module.schema());
            process.apply(context, modelOptions); // before the first execution, which chooses by them
            TraceComparison.run(context, module, signature);
            modelOptions.report(context);
            Model model = new PyTorchModel(context, options, modelOptions, file, module, signature, process);
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                module.close();
            }
        }
    }

    /** Loads one more module of a model. */
    static TorchModule loadCopy(ModelContext context, PyTorchModelFile file, PyTorchModelOptions options) {
        return LargeStack.call(() -> load(context, file, options));
    }

    private static TorchModule load(ModelContext context, PyTorchModelFile file, PyTorchModelOptions options) {
        try {
            return TorchModule.load(
                    file.path(),
                    options.mode(),
                    file.content().hasExamples(),
                    file.content().readsTraining());
        } catch (TorchException e) {
            throw PyTorchErrors.ofLoad(context, e);
        }
    }

    /** Leaves PyTorch loaded: a process cannot load it twice. */
    @Override
    public void close() {}
}
