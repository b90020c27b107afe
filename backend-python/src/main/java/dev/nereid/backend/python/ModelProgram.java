package dev.nereid.backend.python;

import dev.nereid.backend.python.environment.Interpreter;
import dev.nereid.backend.python.environment.OpenSettings;
import dev.nereid.backend.python.environment.ProcessCommand;
import dev.nereid.backend.python.environment.PythonParameters;
import dev.nereid.backend.python.environment.PythonSettings;
import dev.nereid.backend.python.memory.MemoryBudget;
import dev.nereid.backend.python.process.WorkerCommand;
import dev.nereid.backend.python.report.Delays;
import dev.nereid.backend.python.report.MetricFamilies;
import dev.nereid.backend.python.report.ModelLog;
import dev.nereid.backend.python.report.Notices;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** Program of one version of a model, and the shared memory of all its processes. Safe for use by any thread. */
final class ModelProgram implements AutoCloseable {
    private final Interpreter interpreter;
    private final Path runner;
    private final OpenSettings open;
    private final PythonSettings settings;
    private final PythonParameters parameters;
    private final MemoryBudget budget;
    private final ModelLog log;
    private final MetricFamilies families;
    private final Notices notices;
    private final AtomicBoolean isFirst = new AtomicBoolean(true);
    private final StartWatch watch;

    /**
     * Creates the program.
     *
     * @param interpreter the Python, owned by the program
     * @param runner the directory of the Python side of the backend
     * @param open the settings of the frame OPEN that all instances share
     */
    ModelProgram(
            ModelContext model,
            Interpreter interpreter,
            Path runner,
            OpenSettings open,
            PythonSettings settings,
            PythonParameters parameters,
            MetricFamilies families) {
        this.interpreter = interpreter;
        this.runner = runner;
        this.open = open;
        this.settings = settings;
        this.parameters = parameters;
        this.budget = new MemoryBudget(settings.shmLimitByteSize());
        this.log = ModelLog.open(model, System::nanoTime);
        this.families = families;
        this.notices = new Notices(model.logger());
        this.watch = new StartWatch(model.logger(), Delays.on(model.executor()), System::nanoTime);
    }

    /** Returns how the process of an instance is started. */
    WorkerCommand worker(String instance, Device device) {
        ProcessCommand command = parameters.setsVisibleDevices()
                ? interpreter.command().withVisibleDevice(device)
                : interpreter.command();
        List<String> python = new ArrayList<>();
        python.add(command.executable().toString());
        python.addAll(command.arguments());
        return new WorkerCommand(instance, python, command.environment(), runner, command.origin());
    }

    /** Returns the settings of the frame OPEN for a process. The first one alone waits for a debugger. */
    Map<String, String> open(String instance) {
        Map<String, String> all = new LinkedHashMap<>(open.forProcess(instance, log.levels()));
        if (!isFirst.getAndSet(false)) {
            all.remove("debug_port");
        }
        return all;
    }

    PythonSettings settings() {
        return settings;
    }

    PythonParameters parameters() {
        return parameters;
    }

    /** Returns the budget of the memory that processes share with the server. */
    MemoryBudget budget() {
        return budget;
    }

    ModelLog log() {
        return log;
    }

    MetricFamilies families() {
        return families;
    }

    Notices notices() {
        return notices;
    }

    StartWatch watch() {
        return watch;
    }

    /** Releases the environment, after the end of the last process. */
    @Override
    public void close() {
        log.close();
        interpreter.close();
    }
}
