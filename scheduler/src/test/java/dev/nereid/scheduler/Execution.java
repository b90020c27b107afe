package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;

/** One execution of requests by a backend of a test. Its close releases all memory, and checks that. */
public final class Execution implements AutoCloseable {
    public final LeakCheckingMemory memory;
    public final SteppedScheduler scheduler;
    public final List<RecordingObserver> observers = new ArrayList<>();
    public final List<ScheduledRequest> requests = new ArrayList<>();
    private final FakeInstance instance;
    private final ModelSettings model;

    public Execution(ModelSettings model, FakeInstance.Execution backend) {
        this(model, new LeakCheckingMemory(), backend);
    }

    public Execution(ModelSettings model, LeakCheckingMemory memory, FakeInstance.Execution backend) {
        this(model, memory, ExecutionTraits.DEFAULT, backend);
    }

    /** Creates an execution by a backend with traits. */
    public Execution(
            ModelSettings model, LeakCheckingMemory memory, ExecutionTraits traits, FakeInstance.Execution backend) {
        this.model = model;
        this.memory = memory;
        this.instance = new FakeInstance(backend);
        this.scheduler = new SteppedScheduler(
                model, new BatchPlanner(64, List.of(), 0), BatchingPolicy.NONE, memory, traits, instance);
    }

    /** Starts a request; add inputs, then pass it to {@link #submit}. */
    public Requests request() {
        return Requests.to(model, memory);
    }

    public RecordingObserver submit(CheckedRequest request) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        requests.add((ScheduledRequest) scheduler.submit(request, observer));
        return observer;
    }

    /** Submits requests of the given items, whose ids and inputs are their indices. */
    public static void submit(Execution execution, int... items) {
        for (int i = 0; i < items.length; i++) {
            execution.submit(execution
                    .request()
                    .id(String.valueOf(i))
                    .floats("IN", Shape.of(items[i], 2), 10f * i)
                    .of(items[i]));
        }
    }

    /** Executes what was submitted as one batch. */
    public Execution run() {
        int before = instance.batches().size();
        assertThat(scheduler.step()).isTrue();
        assertThat(instance.batches()).hasSize(before + 1);
        return this;
    }

    @Override
    public void close() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(
                observer -> assertThat(observer.hasEnded()).as("completed").isTrue());
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
        assertThat(scheduler.inFlight()).as("in flight").isZero();
        memory.close();
    }
}
