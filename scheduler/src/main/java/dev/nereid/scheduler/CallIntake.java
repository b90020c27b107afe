package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.FailureReason;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.rate.RateLimiter;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Takes the calls to one model: refuses what is too much, asks the cache of responses, and queues the rest or has it
 * executed at once. Immutable; safe for use by any thread, and never blocks.
 *
 * <p>Whatever happens, the observer is told, and the call's memory is given back. Errors of the virtual machine are
 * told like others and not thrown: the thread that submits has other calls to serve, and is no part of this one.
 */
final class CallIntake {
    private static final Cancellation NOTHING_TO_WITHDRAW = () -> {};

    private final ModelScope model;
    private final OutputNotes outputNotes;
    private final RequestQueue queue;
    private final @Nullable ResponseOrder order;
    private final ShortExecutions executions;
    private final RateLimiter rateLimiter;
    private final @Nullable CacheGate cache;

    /**
     * Opens the intake of a queue.
     *
     * @param order keeps the answers in the order in which requests leave the queue; {@code null} if any order will do
     * @param executions says whether a thread that submits a request may run its execution
     * @param rateLimiter may have instances wait, so that only their own threads run them
     * @param cache the cache of responses, if the model has one
     */
    CallIntake(
            ExecutionScope scope,
            RequestQueue queue,
            @Nullable ResponseOrder order,
            ShortExecutions executions,
            RateLimiter rateLimiter,
            Optional<CacheAccess> cache) {
        this.model = scope.model();
        this.outputNotes = scope.outputNotes();
        this.queue = queue;
        this.order = order;
        this.executions = executions;
        this.rateLimiter = rateLimiter;
        this.cache = cache.map(access ->
                        new CacheGate(model, access, CacheCounter.of(model.meter()), model.nanoTime(), this::enqueue))
                .orElse(null);
    }

    /** Says whether calls are answered from a cache of responses where it has them. */
    boolean isCached() {
        return cache != null;
    }

    /** Takes a call, as {@link ModelScheduler#submit(CheckedCall, ResponseObserver, long, boolean)} says. */
    Cancellation submit(CheckedCall call, ResponseObserver observer, long arrivedNanos, boolean heavy) {
        long bytes = call.inputBytes();
        ModelLoad.Verdict verdict = model.load().enter(bytes);
        ScheduledRequest request;
        try {
            request = new ScheduledRequest(
                    model, order, call, observer, arrivedNanos, model.nanoTime().getAsLong());
        } catch (RuntimeException | Error e) { // such as no memory
            if (verdict == ModelLoad.Verdict.ADMITTED) {
                model.load().leave(bytes);
            }
            refuseUnmade(call, observer, arrivedNanos, e);
            return NOTHING_TO_WITHDRAW;
        }
        if (verdict != ModelLoad.Verdict.ADMITTED) {
            request.refuse(SchedulerErrors.refusal(call, verdict, queue.isStopped()));
            return request;
        }
        request.admitted(bytes);
        // Memory of a client may have to be copied, and large outputs cleared.
        if (heavy || request.usesClientMemory() || outputNotes.isLarge(bytes)) {
            request.keepToInstances();
        }
        try {
            if (cache == null || !queue.isOpen()) {
                enqueue(request, true);
            } else {
                cache.submit(request);
            }
        } catch (RuntimeException
                | Error e) { // such as no memory for a place in the queue, or for a copy of its shape tensors
            request.failUnqueued(e);
        }
        return request;
    }

    /** Answers a call of which no request could be made, and gives its memory back. */
    private void refuseUnmade(CheckedCall call, ResponseObserver observer, long arrivedNanos, Throwable cause) {
        model.fatalErrors().check(cause);
        RequestLog.error(call, "queueing failed", cause);
        model.meter().failed(FailureReason.OTHER, model.nanoTime().getAsLong() - arrivedNanos);
        try {
            call.release().run();
        } catch (Throwable e) {
            RequestLog.error(call, "release of inputs failed", e);
        }
        try {
            observer.onRefused(SchedulerErrors.internal(cause));
        } catch (Throwable e) {
            RequestLog.error(call, "observer of responses failed", e);
        }
    }

    /** Queues a request, or executes it if this is the thread that submits it. */
    private void enqueue(ScheduledRequest request, boolean submitting) {
        request.comesBack();
        switch (queue.offer(request, submitting && !rateLimiter.isLimiting() && executions.areTrusted())) {
            case Seat seat -> seat.runDirectly();
            case Admission.Outcome.ACCEPTED -> {}
            case Admission.Outcome.FULL -> refuse(request, SchedulerErrors.full(request.call()), submitting);
            case Admission.Outcome.STOPPED -> refuse(request, SchedulerErrors.stopped(request.call()), submitting);
            case Admission.Outcome.NO_INSTANCE ->
                refuse(request, SchedulerErrors.noInstance(request.call()), submitting);
        }
    }

    private static void refuse(ScheduledRequest request, InferenceException error, boolean submitting) {
        if (submitting) {
            request.refuse(error);
        } else {
            request.reject(error, FailureReason.REJECTED);
        }
    }
}
