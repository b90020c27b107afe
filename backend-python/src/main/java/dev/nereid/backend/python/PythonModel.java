package dev.nereid.backend.python;

import dev.nereid.backend.python.execute.ModelTensors;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;

/**
 * A version of a model that is written in Python: each of its instances has a process.
 *
 * <p>An instance takes no work after its process was restarted in vain, while another one of the model serves or is
 * restarted for the first time. If there is no such instance, all of them take work, so that requests fail at once and
 * do not wait.
 */
final class PythonModel implements Model {
    private final ModelContext context;
    private final ModelProgram program;
    private final ModelTensors tensors;
    private final LongSupplier nanoTime;
    private final List<PythonInstance> instances = new CopyOnWriteArrayList<>();
    private final ReentrantLock states = new ReentrantLock();

    /** Creates the model as it is configured; it owns the program, which its processes run. */
    PythonModel(ModelContext context, ModelProgram program) {
        this(context, program, System::nanoTime);
    }

    /** Creates the model with a clock, in nanoseconds. */
    PythonModel(ModelContext context, ModelProgram program, LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
        this.context = context;
        this.program = program;
        this.tensors = tensors(context.settings());
    }

    /** Returns the tables of names: requests may carry the inputs of the configuration, controls and states. */
    private static ModelTensors tensors(ModelSettings settings) {
        Set<String> inputs = new LinkedHashSet<>();
        settings.inputs().forEach(input -> inputs.add(input.name()));
        settings.sequenceBatching().ifPresent(batching -> {
            batching.controls().forEach(control -> inputs.add(control.name()));
            batching.states().forEach(state -> inputs.add(state.inputName()));
        });
        return new ModelTensors(
                new ArrayList<>(inputs),
                settings.outputs().stream().map(TensorSpec::name).toList());
    }

    ModelContext context() {
        return context;
    }

    ModelProgram program() {
        return program;
    }

    /** Returns the clock of the restarts, in nanoseconds. */
    LongSupplier nanoTime() {
        return nanoTime;
    }

    ModelTensors tensors() {
        return tensors;
    }

    /** Returns the counter of processes that were started again for an instance. */
    Metrics.Counter restarts(String instance) {
        return context.metrics()
                .counter(
                        "python_process_restarts_total",
                        "Number of processes of Python models that were started again",
                        Map.of("instance", instance));
    }

    @Override
    public ModelInstance newInstance(InstanceContext instance) {
        PythonInstance created = new PythonInstance(this, instance);
        instances.add(created);
        created.start(isCompletion(instance) ? context.take(PythonProcess.class) : Optional.empty());
        return created;
    }

    /** Returns whether the process that has completed the configuration fits an instance: it was started for the first one. */
    private boolean isCompletion(InstanceContext instance) {
        boolean seesDevices = instance.device().kind() == Device.Kind.CPU
                || !program.parameters().setsVisibleDevices();
        return seesDevices && instance.name().equals(PythonBackend.firstInstance(context.settings()));
    }

    /** Says that the state of an instance has changed, so that others may have to take work or not. */
    void onStateChange() {
        states.lock();
        try {
            boolean serves = instances.stream().anyMatch(PythonInstance::isServingOrRestarting);
            instances.forEach(instance -> instance.setOthersServe(serves));
        } finally {
            states.unlock();
        }
        instances.forEach(PythonInstance::updateAvailability);
    }

    /** Returns whether the model has another instance that serves. */
    boolean isServedBeside(PythonInstance instance) {
        return instances.stream().anyMatch(other -> !other.equals(instance) && other.isServing());
    }

    void remove(PythonInstance instance) {
        instances.remove(instance);
        onStateChange();
    }

    @Override
    public List<MemoryUsage> memoryUsage() {
        long bytes = 0;
        for (PythonInstance instance : instances) {
            bytes += instance.memoryUsage();
        }
        return List.of(new MemoryUsage(MemoryPlace.HOST, bytes));
    }

    @Override
    public void close() {
        program.close();
    }
}
