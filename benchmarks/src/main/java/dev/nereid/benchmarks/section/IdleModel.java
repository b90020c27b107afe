package dev.nereid.benchmarks.section;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;

/** A dynamically batched model of one instance that does nothing. Safe for use by any thread. */
final class IdleModel implements AutoCloseable {
    private static final int MAX_BATCH = 64;
    private static final String NAME = "idle";
    private static final ModelVersion VERSION = new ModelVersion(NAME, 1);
    private static final RequestInputs INPUTS = RequestInputs.of(
            List.of(new NamedTensor(
                    "IN", Tensor.of(DataType.FP32, Shape.of(1, 1), MemorySegment.ofArray(new byte[Float.BYTES])))),
            1,
            () -> {});
    private static final RequestOutputs OUTPUTS = RequestOutputs.all(List.of());

    private final TimerThread timer = new TimerThread(System::nanoTime);
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelScheduler scheduler;

    /**
     * Starts the model.
     *
     * @param shortExecutions whether the threads that submit may run it
     */
    IdleModel(boolean shortExecutions) {
        this(shortExecutions, batch -> {});
    }

    /**
     * Starts the model.
     *
     * @param shortExecutions whether the threads that submit may run it
     * @param instance its instance
     */
    IdleModel(boolean shortExecutions, ModelInstance instance) {
        ModelSettings settings = ModelSettings.builder(NAME, 1)
                .maxBatchSize(MAX_BATCH)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                .build();
        BatchingPolicy dynamic = new BatchingPolicy(true, List.of(), 0);
        scheduler = ModelScheduler.start(
                new ModelPlan(settings, dynamic).with(new ExecutionTraits(NAME, false, shortExecutions)),
                List.of(new InstanceSlot("idle_0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    ModelScheduler scheduler() {
        return scheduler;
    }

    /** Returns a request of one item that arrives now. */
    CheckedRequest request() {
        return request(System.nanoTime());
    }

    /** Returns a request of one item that arrives at a time. */
    CheckedRequest request(long arrivedNanos) {
        return new CheckedRequest(VERSION, "", INPUTS, OUTPUTS, Map.of(), RequestOptions.DEFAULT, arrivedNanos);
    }

    @Override
    public void close() {
        scheduler.close();
        timer.close();
        memory.close();
    }
}
