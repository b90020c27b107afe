package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** An instance whose behavior a test determines. It detects calls by two threads, and calls after its end. */
public final class FakeInstance implements ModelInstance {
    /** The behavior of an execution. */
    public interface Execution {
        void execute(Batch batch);
    }

    /** The availability of the instance, if a scheduler gets it with the instance. */
    public final InstanceAvailability availability = new InstanceAvailability();

    private final Execution execution;
    private final List<List<String>> batches = new CopyOnWriteArrayList<>();
    private final List<String> violations = new CopyOnWriteArrayList<>();
    private final List<String> ended = new CopyOnWriteArrayList<>();
    private final AtomicBoolean inside = new AtomicBoolean();
    private final AtomicInteger closed = new AtomicInteger();
    private final AtomicInteger overdue = new AtomicInteger();
    private volatile @Nullable Instance scheduled;
    private volatile Supplier<CompletionStage<Void>> readiness = () -> CompletableFuture.completedStage(null);

    public FakeInstance(Execution execution) {
        this.execution = execution;
    }

    /** Returns a new instance for a scheduler, of which this is the backend's object. It runs anywhere. */
    public Instance as(String name, Device device, RateProfile rate) {
        Instance created = new Instance(
                name,
                device,
                Optional.empty(),
                this,
                rate,
                Instance.ThreadPlacement.ANYWHERE,
                availability,
                this::close);
        scheduled = created;
        return created;
    }

    /** Returns the last instance that was made {@linkplain #as of this}. */
    public Instance scheduled() {
        return requireNonNull(scheduled);
    }

    /** Copies {@code IN} to {@code OUT}, for the whole batch. */
    public static void copy(Batch batch) {
        Tensor in = batch.gather("IN");
        batch.allocate("OUT", in.type(), in.shape()).data().copyFrom(in.data());
    }

    @Override
    public void execute(Batch batch) {
        if (!inside.compareAndSet(false, true)) {
            violations.add("executed by two threads");
        }
        if (closed.get() > 0) {
            violations.add("executed after close");
        }
        List<String> ids = new ArrayList<>();
        for (InferenceRequest request : batch.requests()) {
            ids.add(request.id());
        }
        batches.add(ids);
        try {
            execution.execute(batch);
        } catch (AssertionError e) { // would be reported to the client only
            violations.add(e.toString());
            throw e;
        } finally {
            inside.set(false);
        }
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        if (inside.get() || closed.get() > 0) {
            violations.add("told of a sequence during an execution or after close");
        }
        ended.add(id + " " + reason);
    }

    /** Returns the sequences that ended without their last request, and why. */
    public List<String> ended() {
        return ended;
    }

    @Override
    public CompletionStage<Void> checkReady() {
        return readiness.get();
    }

    @Override
    public void executionOverdue() {
        overdue.incrementAndGet();
    }

    /** Returns how often an execution was reported as overdue. */
    public int overdue() {
        return overdue.get();
    }

    /** Sets the results of readiness checks. */
    public void readiness(Supplier<CompletionStage<Void>> changed) {
        readiness = changed;
    }

    @Override
    public void close() {
        if (inside.get()) {
            violations.add("closed while executing");
        }
        if (closed.incrementAndGet() > 1) {
            violations.add("closed twice");
        }
    }

    /** Returns the ids of the requests of each batch. */
    public List<List<String>> batches() {
        return batches;
    }

    public List<String> violations() {
        return violations;
    }

    public boolean isClosed() {
        return closed.get() > 0;
    }
}
