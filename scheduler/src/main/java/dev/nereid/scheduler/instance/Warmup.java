package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the warm-up samples on instances that start together. Safe for use by any thread.
 *
 * <p>Each instance executes the samples on its own thread, before its first request and without the queue. Without
 * samples the threads may start later, and no instance waits for another. Instances
 * take requests only when all of them are warm: if one fails, none does. The executions are not counted in the
 * statistics. A sample ends when all its requests are complete and their memory is released.
 */
public final class Warmup {
    private static final Logger LOG = LoggerFactory.getLogger(Warmup.class);
    private static final Outcome WARM = new Outcome.Warm();

    private final ExecutionScope scope;
    private final List<Sample> samples;
    /** The number of threads that have not ended their part. The last one decides the outcome. */
    private final AtomicInteger parts;

    private final CountDownLatch running;
    private final AtomicReference<@Nullable Outcome> outcome = new AtomicReference<>();
    private final List<Runnable> onFailure = new CopyOnWriteArrayList<>();

    /** Creates a warm-up of a number of threads, with samples that each instance executes in this order. */
    public Warmup(ExecutionScope scope, List<Sample> samples, int threads) {
        this.scope = scope;
        this.samples = samples;
        this.parts = new AtomicInteger(threads);
        outcome.set(threads == 0 ? WARM : null);
        this.running = new CountDownLatch(threads);
    }

    /**
     * Registers an action that runs when the first sample fails, or the warm-up ends early. Called before it begins.
     *
     * @param action such as the retirement of a worker; short, runs on the thread that finds the failure
     */
    void onFailure(Runnable action) {
        onFailure.add(action);
    }

    /** Runs one thread's part, which calls {@link #warm}, and waits for the others; returns whether all are warm. */
    boolean run(Runnable part) {
        try {
            part.run();
        } catch (Throwable e) { // such as one of the placement: the other instances wait for this thread
            fail(new InferenceException(ErrorCode.INTERNAL, "warm-up ended by " + e));
            throw e;
        } finally {
            endPart();
        }
        while (running.getCount() > 0) {
            try {
                running.await();
            } catch (InterruptedException e) {
                // Only a backend has this thread at hand, and none of its code runs: the interrupt is meant for no
                // later code.
            }
        }
        return !hasFailed();
    }

    /** Returns whether there is anything to execute. */
    boolean hasSamples() {
        return !samples.isEmpty();
    }

    /** Ends the part of a thread that starts later, since there are no samples. */
    void pass() {
        endPart();
    }

    /** Ends the part of a thread that was not started, as a failure. */
    void skip() {
        fail(ended());
        endPart();
    }

    private void endPart() {
        if (parts.decrementAndGet() == 0) {
            outcome.compareAndSet(null, WARM);
        }
        running.countDown();
    }

    /**
     * Ends the warm-up early, unless it has ended or has no samples. The current executions are the last, and no
     * instance takes requests.
     */
    public void abandon() {
        if (!samples.isEmpty()) {
            cancel();
        }
    }

    /** Ends the warm-up early, unless it has ended: no instance takes requests, even without samples. */
    void cancel() {
        fail(ended());
    }

    private InferenceException ended() {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "warm-up of model '" + scope.model().settings().name() + "' ended: its instances are closed");
    }

    /**
     * Waits until every instance is warm.
     *
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} with the name of the first sample that failed
     */
    public void await() throws InterruptedException {
        running.await();
        if (outcome.get() instanceof Outcome.Failed(InferenceException error)) {
            throw error;
        }
    }

    /** Executes all samples on an instance. Stops when one of them fails here or on another instance. */
    void warm(String name, Consumer<ExecutionBatch> instance) {
        for (Sample sample : samples) {
            for (int i = 1; i <= sample.executions() && !hasFailed(); i++) {
                LOG.debug(
                        "model '{}' instance {} is running warmup sample '{}' for iteration {}",
                        scope.model().settings().name(),
                        name,
                        sample.name(),
                        i);
                execute(sample, instance);
            }
        }
    }

    private void execute(Sample sample, Consumer<ExecutionBatch> instance) {
        RequestDrain drain = new RequestDrain();
        ExecutionScope uncounted = scope.with(scope.model().uncounted(drain));
        Errors errors = new Errors();
        ExecutionBatch batch = batch(sample, uncounted, errors);
        if (batch == null) {
            return;
        }
        try {
            instance.accept(batch);
        } finally { // also after an error of the virtual machine: the batch is completed
            drain.awaitUninterruptibly();
            errors.failing(sample).ifPresent(this::fail);
        }
    }

    /** Creates a sample's requests and batch; {@code null} for no requests. On a failure, all memory is released. */
    private @Nullable ExecutionBatch batch(Sample sample, ExecutionScope uncounted, Errors errors) {
        List<CheckedRequest> checked = sample.batch().get();
        List<ScheduledRequest> requests = new ArrayList<>();
        try {
            long now = scope.model().nanoTime().getAsLong();
            for (CheckedRequest next : checked) {
                ScheduledRequest request =
                        new ScheduledRequest(uncounted.model(), null, next.arrivedAt(now), errors, now);
                requests.add(request);
                request.begin();
            }
            DroppedStates states = new DroppedStates(scope.model().settings());
            return requests.isEmpty()
                    ? null
                    : new ExecutionBatch(
                            uncounted, requests.stream().map(states::of).toList());
        } catch (RuntimeException e) { // no instance has the requests
            requests.forEach(ScheduledRequest::release);
            checked.subList(requests.size(), checked.size()).forEach(CheckedRequest::releaseInputs);
            throw e;
        }
    }

    /** Fails the warm-up, unless it has ended. */
    private void fail(InferenceException error) {
        if (outcome.compareAndSet(null, new Outcome.Failed(error))) {
            onFailure.forEach(Runnable::run);
        }
    }

    private boolean hasFailed() {
        return outcome.get() instanceof Outcome.Failed;
    }

    /** The result of a warm-up. */
    private sealed interface Outcome {
        /** All instances are warm. */
        record Warm() implements Outcome {}

        /** A sample failed, or the warm-up ended early: no instance takes requests. */
        record Failed(InferenceException error) implements Outcome {}
    }

    /** Collects the errors of one execution. Safe for use by any thread. */
    private static final class Errors implements ResponseObserver {
        private final ConcurrentLinkedQueue<String> texts = new ConcurrentLinkedQueue<>();

        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onFailedResponse(InferenceException error) {
            onError(error);
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {
            texts.add(error.publicMessage());
        }

        Optional<InferenceException> failing(Sample sample) {
            if (texts.isEmpty()) {
                return Optional.empty();
            }
            StringBuilder text = new StringBuilder("failed to run warmup sample '" + sample.name() + "': ");
            texts.forEach(error -> text.append(error).append("; "));
            return Optional.of(new InferenceException(ErrorCode.INVALID_ARGUMENT, text.toString()));
        }
    }

    /** Drops the state updates of warm-up samples, which belong to no sequence. Immutable. */
    private static final class DroppedStates implements StateSink {
        private final ModelSettings model;

        DroppedStates(ModelSettings model) {
            this.model = model;
        }

        @Override
        public @Nullable StateSpec state(String output) {
            return model.sequenceBatching()
                    .flatMap(batching -> batching.state(output))
                    .orElse(null);
        }

        @Override
        public void store(String output, Tensor value, ReferenceCountedMemory memory) {
            memory.release();
        }

        /** Returns a request of a sample. Its states are dropped. */
        Executable of(ScheduledRequest request) {
            return new SampleRequest(request, this);
        }

        private record SampleRequest(ScheduledRequest request, StateSink states) implements Executable {}
    }

    /**
     * Requests that an instance executes before it serves. Immutable.
     *
     * @param name the sample's name in the configuration
     * @param executions the number of executions; at least 1
     * @param batch creates the requests that are executed together, each of one item; called for each execution, on the
     *     thread of the instance
     */
    public record Sample(String name, int executions, Supplier<List<CheckedRequest>> batch) {
        public Sample {
            requireNonNull(name, "name");
            requireNonNull(batch, "batch");
            if (executions < 1) {
                throw new IllegalArgumentException("executions: " + executions + " (expected: >= 1)");
            }
        }
    }
}
