package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Requests of one item that wait for one instance. The test decides when the instance runs. The close releases all
 * memory, and checks that. Confined.
 */
public final class QueuedRequests implements AutoCloseable {
    public static final int MAX_BATCH = 8;

    public final LeakCheckingMemory memory = new LeakCheckingMemory();
    public final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(MAX_BATCH)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    public final SteppedScheduler scheduler;
    private final FakeInstance instance;
    private final Map<String, RecordingObserver> observers = new HashMap<>();

    /** Executes one by one. */
    public QueuedRequests(PriorityPolicy priorities) {
        this(BatchPlanner.oneByOne(), priorities, FakeInstance::copy);
    }

    public QueuedRequests(BatchPlanner planner, PriorityPolicy priorities, FakeInstance.Execution backend) {
        instance = new FakeInstance(backend);
        BatchingPolicy policy = new BatchingPolicy(true, List.of(), 0, false, priorities);
        scheduler = new SteppedScheduler(model, planner, policy, memory, ExecutionTraits.DEFAULT, instance);
    }

    /** Creates a model without levels. */
    public static QueuedRequests under(QueuePolicy policy) {
        return new QueuedRequests(new PriorityPolicy(0, 0, policy, Map.of()));
    }

    /** Submits a request; {@code options} changes it before. */
    public Cancellation submit(String id, Options options) {
        Requests request = Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1);
        RecordingObserver observer = new RecordingObserver();
        assertThat(observers.put(id, observer)).as("ids of one test differ").isNull();
        options.on(request);
        return scheduler.submit(request.of(1), observer);
    }

    public Cancellation submit(String id) {
        return submit(id, request -> {});
    }

    public Cancellation submit(String id, long priority) {
        return submit(id, request -> request.priority(priority));
    }

    /** The options of a request. */
    public interface Options {
        void on(Requests request);
    }

    public RecordingObserver observer(String id) {
        return observers.get(id);
    }

    /** Returns whether the instance takes batches. */
    public InstanceAvailability availability() {
        return instance.availability;
    }

    /** Returns the ids of the requests of each batch. */
    public List<List<String>> batches() {
        return instance.batches();
    }

    /** Returns the ids of all requests in the order of their execution. */
    public List<String> executed() {
        return instance.batches().stream().flatMap(List::stream).toList();
    }

    @Override
    public void close() {
        scheduler.queue.stop();
        scheduler.drain();
        observers.forEach((id, observer) -> {
            observer.check();
            assertThat(observer.hasEnded()).as("%s is completed", id).isTrue();
            observer.close();
        });
        assertThat(instance.violations()).isEmpty();
        assertThat(scheduler.inFlight()).as("in flight").isZero();
        assertThat(scheduler.queue.waiting()).as("waiting").isZero();
        memory.close();
    }
}
