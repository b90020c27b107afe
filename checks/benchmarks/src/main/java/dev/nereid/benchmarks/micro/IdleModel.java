package dev.nereid.benchmarks.micro;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.sequence.ControlValues;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** A model of one instance that does nothing, dynamically batched or with sequences. Safe for use by any thread. */
public final class IdleModel implements AutoCloseable {
    private static final int MAX_BATCH = 64;
    private static final long MAX_MEMORY = 1L << 30;
    private static final String NAME = "idle";
    private static final ModelVersion VERSION = new ModelVersion(NAME, 1);
    private static final RequestInputs INPUTS = RequestInputs.of(
            List.of(new NamedTensor(
                    "IN", Tensor.of(DataType.FP32, Shape.of(1, 1), MemorySegment.ofArray(new byte[Float.BYTES])))),
            1,
            () -> {});
    private static final RequestOutputs OUTPUTS = RequestOutputs.all(List.of());

    private final TimerThread timer = new TimerThread(System::nanoTime);
    private final TensorPool memory = new TensorPool(MAX_MEMORY, 0);
    private final ModelScheduler scheduler;

    /** Starts the model; if its executions are short, the threads that submit may run it. */
    public IdleModel(boolean shortExecutions) {
        this(shortExecutions, batch -> {});
    }

    /** Starts the model with an instance; if its executions are short, the threads that submit may run it. */
    public IdleModel(boolean shortExecutions, ModelInstance instance) {
        this(shortExecutions, instance, MAX_BATCH, Optional.empty());
    }

    /**
     * Starts a model with sequences: all controls, no delay.
     *
     * @param strategy the direct one has a place in its batches for each sequence
     * @param slots how many sequences the instance has at a time; further ones are in the backlog
     */
    public static IdleModel ofSequences(SequenceBatching.Strategy strategy, int slots, ModelInstance instance) {
        return new IdleModel(
                false,
                instance,
                strategy == SequenceBatching.Strategy.DIRECT ? slots : MAX_BATCH,
                Optional.of(new SequencePlan(
                        SequenceBatching.of(strategy, Duration.ofHours(1)),
                        List.of(
                                control(ControlInput.Kind.SEQUENCE_START, "START", DataType.INT32),
                                control(ControlInput.Kind.SEQUENCE_END, "END", DataType.INT32),
                                control(ControlInput.Kind.SEQUENCE_READY, "READY", DataType.INT32),
                                control(ControlInput.Kind.SEQUENCE_CORRID, "CORRID", DataType.UINT64)),
                        List.of(),
                        slots,
                        0,
                        0,
                        List.of(),
                        false)));
    }

    private static ControlValues control(ControlInput.Kind kind, String name, DataType type) {
        return new ControlValues(new ControlInput(kind, name, type), 0, 1);
    }

    private IdleModel(boolean shortExecutions, ModelInstance instance, int maxBatch, Optional<SequencePlan> sequences) {
        ModelSettings settings = ModelSettings.builder(NAME, 1)
                .maxBatchSize(maxBatch)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                .build();
        BatchingPolicy dynamic = new BatchingPolicy(true, List.of(), 0);
        scheduler = ModelScheduler.start(
                new ModelPlan(settings, sequences.isPresent() ? BatchingPolicy.NONE : dynamic)
                        .with(new ExecutionTraits(NAME, false, shortExecutions))
                        .withSequences(sequences),
                List.of(new Instance("idle_0", Device.CPU, instance)),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
    }

    /** Returns its scheduler, which {@link #close} closes. */
    public ModelScheduler scheduler() {
        return scheduler;
    }

    /** Returns a request of one item that arrives now. */
    public CheckedRequest request() {
        return request(System.nanoTime());
    }

    public CheckedRequest request(long arrivedNanos) {
        return new CheckedRequest(VERSION, "", INPUTS, OUTPUTS, Map.of(), RequestOptions.DEFAULT, arrivedNanos);
    }

    public CheckedRequest request(Sequence sequence) {
        RequestOptions options = new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(sequence));
        return new CheckedRequest(VERSION, "", INPUTS, OUTPUTS, Map.of(), options, System.nanoTime());
    }

    /** Returns the memory that the model holds outside the heap, in bytes. */
    public long bytesInUse() {
        return memory.bytesInUse();
    }

    /** Waits for the requests in flight, then frees the memory. */
    @Override
    public void close() {
        scheduler.close();
        timer.close();
        memory.close();
    }
}
