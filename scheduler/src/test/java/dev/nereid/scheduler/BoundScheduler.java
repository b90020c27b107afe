package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceThreads;
import dev.nereid.scheduler.instance.WorkerGroup;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.queue.BoundSource;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Schedules sequences, each bound to one instance whose {@link BoundSource} keeps its state. How far {@link Scheduler}
 * carries a scheduler without a queue is what it is for. Safe for use by any thread.
 */
final class BoundScheduler implements Scheduler, Continuations.Target {
    private final ModelScope model;
    private final List<BoundSource> sources = new ArrayList<>();
    private final InstanceThreads threads =
            new InstanceThreads("instance/bound/", FatalErrorHandler.NONE, Runnable::run);
    private volatile boolean draining;

    /** Starts a scheduler; the thread of an instance starts with the first request of a sequence on it. */
    BoundScheduler(ModelSettings settings, TensorMemory memory, List<FakeInstance> instances) {
        model = Scopes.of(settings, memory, System::nanoTime);
        List<Instance> managed = new ArrayList<>();
        for (FakeInstance instance : instances) {
            managed.add(SteppedScheduler.slot("i" + managed.size(), instance, RateProfile.NONE));
            sources.add(new BoundSource(model));
        }
        ExecutionScope scope = ExecutionScope.of(model, AcceptedMemory.HOST, ExecutionScope.DIRECT_CALLBACKS)
                .withIterative(true);
        Iterator<BoundSource> next = sources.iterator();
        WorkerGroup workers = WorkerGroup.of(
                scope,
                managed,
                ExecutionTraits.DEFAULT.withMaxDeferred(4),
                next::next,
                new DirectExecutionPolicy(settings, ExecutionTraits.DEFAULT),
                List.of());
        threads.start(workers.workers(), workers.warmup());
        threads.serve(workers.workers()::contains);
    }

    @Override
    public Cancellation submit(CheckedRequest request, ResponseObserver observer) {
        ScheduledRequest scheduled = new ScheduledRequest(model, null, request, observer, System.nanoTime());
        Continuations continuations = Continuations.current();
        if (continuations.isOpen()) {
            continuations.add(this, scheduled);
        } else {
            enqueue(List.of(scheduled), false);
        }
        return scheduled;
    }

    @Override
    public void enqueue(List<ScheduledRequest> requests, boolean mayRun) {
        for (ScheduledRequest request : requests) {
            request.attach();
            Sequence position = request.checked().options().sequence().orElseThrow();
            if (!sources.get(Math.floorMod(position.id().hashCode(), sources.size()))
                    .offer(request)) {
                request.reject(
                        new InferenceException(ErrorCode.UNAVAILABLE, "stopped (expected: no new sequence)"),
                        FailureReason.REJECTED);
            }
        }
    }

    /** Returns the number of sequences that have not ended. */
    int sequences() {
        return sources.stream().mapToInt(BoundSource::sequences).sum();
    }

    @Override
    public Optional<InstanceControl> instances() {
        return Optional.empty();
    }

    @Override
    public Object source() {
        return model.source();
    }

    @Override
    public long openResponses() {
        return model.drain().openResponses();
    }

    @Override
    public boolean isCached() {
        return false;
    }

    @Override
    public MeterReading statistics() {
        return model.meter().read();
    }

    @Override
    public boolean isReady() {
        return !draining && !threads.alive().isEmpty();
    }

    @Override
    public CompletionStage<Readiness> checkReady() {
        return CompletableFuture.completedStage(isReady() ? Readiness.READY : Readiness.NOT_READY);
    }

    @Override
    public boolean isServing() {
        return !draining;
    }

    @Override
    public String problems() {
        return "";
    }

    @Override
    public int inFlight() {
        return model.drain().count();
    }

    @Override
    public void cancelled(RequestOptions options, long arrivedNanos) {
        model.meter().failed(FailureReason.CANCELED, 0);
    }

    @Override
    public int waiting() {
        return sources.stream().mapToInt(source -> source.waiting().size()).sum();
    }

    @Override
    public void drain() {
        draining = true;
        sources.forEach(BoundSource::stop);
    }

    @Override
    public boolean awaitIdle(long nanos) throws InterruptedException {
        return model.drain().await(nanos);
    }

    @Override
    public void abandon() {
        drain();
        model.detached().abandon();
        sources.forEach(source -> source.waiting().forEach(ScheduledRequest::abandon));
        threads.abandon();
        model.detached().abandonAll();
    }

    /** As in the interface; the caller has ended all sequences. */
    @Override
    public void close() {
        drain();
        model.drain().awaitUninterruptibly();
        threads.awaitEnd();
        threads.close();
    }
}
