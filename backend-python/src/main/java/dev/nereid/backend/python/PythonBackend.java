package dev.nereid.backend.python;

import dev.nereid.backend.python.environment.Environments;
import dev.nereid.backend.python.environment.Interpreter;
import dev.nereid.backend.python.environment.ModelFile;
import dev.nereid.backend.python.environment.OpenSettings;
import dev.nereid.backend.python.environment.ProgramScan;
import dev.nereid.backend.python.environment.PythonParameters;
import dev.nereid.backend.python.environment.PythonSettings;
import dev.nereid.backend.python.environment.RunnerFiles;
import dev.nereid.backend.python.frame.CompletedFrame;
import dev.nereid.backend.python.report.MetricFamilies;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * The backend {@code python}, or a backend that is itself written in Python: it starts processes for models. Safe for use by any
 * thread.
 */
final class PythonBackend implements Backend {
    private static final String PYTHON = "python";

    private final BackendContext context;
    private final PythonSettings settings;
    private final Environments environments;
    private final MetricFamilies families;
    private final Path runner;

    /** Creates the backend: checks its settings and unpacks its files. Either may fail with a BackendException. */
    PythonBackend(BackendContext context) {
        this.context = context;
        this.settings = PythonSettings.of(context);
        this.environments = new Environments(context, settings);
        this.families = new MetricFamilies(context.metrics());
        this.runner = RunnerFiles.unpack(context);
    }

    @Override
    public BackendTraits traits() {
        // An execution that is not short is deferred, so that no thread waits for it.
        return BackendTraits.DEFAULT
                .withExecution(BackendTraits.Execution.SHORT)
                .withMaxDeferred(1)
                .withParallelInstances()
                .withPreferredGroups(
                        BackendTraits.PreferredGroup.of(Device.Kind.GPU, 1),
                        BackendTraits.PreferredGroup.of(Device.Kind.CPU, 1));
    }

    /** Runs {@code auto_complete_config} in the process that becomes the first instance. */
    @Override
    public Optional<ModelCompletion> complete(ModelContext model) {
        ModelProgram program = model.keep(open(model));
        PythonProcess process =
                model.keep(PythonProcess.startCompletion(model, program, firstInstance(model.settings())));
        CompletableFuture<Optional<CompletedFrame>> completed = process.opened()
                .thenCompose(completes -> completes
                        ? process.complete(Completion.configuration(model)).thenApply(Optional::of)
                        : CompletableFuture.completedFuture(Optional.empty()));
        program.watch()
                .watch(
                        completed,
                        process.name(),
                        "import and auto_complete_config",
                        program.parameters().startTimeout(),
                        process::kill,
                        process::printStacks);
        return model.await(completed).map(frame -> Completion.of(model, frame));
    }

    /** Returns the name of the first instance of a model that is not completed yet. */
    static String firstInstance(ModelSettings settings) {
        String group = settings.value("instance_group.0.name").orElse("");
        if (!group.isEmpty()) {
            return group + "_0";
        }
        return settings.name() + (settings.values("instance_group").isEmpty() ? "_0" : "_0_0");
    }

    @Override
    public Model load(ModelContext model) {
        if (model.instances().stream().anyMatch(device -> device.kind() == Device.Kind.GPU)) {
            model.logger()
                    .log(
                            Level.INFO,
                            "model ''{0}'': its tensors are in the memory of the host; it moves them to the GPU itself,"
                                    + " by the id in the arguments of initialize",
                            model.settings().name());
        }
        return new PythonModel(model, model.take(ModelProgram.class).orElseGet(() -> open(model)));
    }

    /** Finds what the processes of a model run. */
    private ModelProgram open(ModelContext model) {
        ModelFile file = context.name().equals(PYTHON) ? ModelFile.of(model) : ModelFile.of(model, context);
        ProgramScan.at(model, file).forEach(warning -> model.logger().log(Level.WARNING, warning));
        PythonParameters parameters = PythonParameters.of(model, settings);
        OpenSettings open = OpenSettings.of(context, model, file, settings, parameters);
        Interpreter interpreter = model.await(
                CompletableFuture.supplyAsync(() -> environments.open(model, parameters), model.executor()));
        return new ModelProgram(model, interpreter, runner, open, settings, parameters, families);
    }

    @Override
    public void close() {
        environments.close();
    }
}
