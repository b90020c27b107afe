package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.admission.RequestAdmission;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.batch.OutputTracker;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.cache.CachedSubmission;
import dev.nereid.scheduler.client.WaitingCalls;
import dev.nereid.scheduler.instance.DirectExecutionPolicy;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.RequestIntake;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ResponseOrder;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.StepObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Admits requests to one model: load check, response cache, then queue or direct execution. Immutable; safe for use by
 * any thread, and never blocks.
 *
 * <p>In any case the submitter calls the observer, and releases the memory of the request. Errors are reported to the
 * observer and not thrown: the submitting thread has other requests to serve.
 */
final class RequestSubmitter implements Continuations.Target {
    private final ModelScope model;
    private final OutputTracker outputTracker;
    private final RequestIntake queue;
    private final @Nullable ResponseOrder order;
    private final DirectExecutionPolicy executions;
    private final ExecutionLimiter rateLimiter;
    private final @Nullable CachedSubmission cache;
    private final WaitingCalls calls;

    /** The instances for which requests wait; {@code null} if the model has none. */
    private final WaitingCalls.@Nullable Instances instances;

    /**
     * Creates the submitter of a queue.
     *
     * @param order orders responses as their requests leave the queue; {@code null} if the model preserves no order
     * @param rateLimiter prevents direct execution if it limits, since instances may have to wait
     * @param calls finds requests of models that would wait for ever
     * @param instances the instances for which requests wait; {@code null} if the model has none
     */
    RequestSubmitter(
            ExecutionScope scope,
            RequestIntake queue,
            @Nullable ResponseOrder order,
            DirectExecutionPolicy executions,
            ExecutionLimiter rateLimiter,
            Optional<CacheAccess> cache,
            WaitingCalls calls,
            WaitingCalls.@Nullable Instances instances) {
        this.calls = calls;
        this.instances = instances;
        this.model = scope.model();
        this.outputTracker = scope.outputTracker();
        this.queue = queue;
        this.order = order;
        this.executions = executions;
        this.rateLimiter = rateLimiter;
        this.cache = cache.map(access -> new CachedSubmission(model, access, model.nanoTime(), this::enqueue))
                .orElse(null);
    }

    /** Returns whether requests may be completed from the response cache. */
    boolean isCached() {
        return cache != null;
    }

    /** Submits a request, as {@link ModelScheduler#submit(CheckedRequest, ResponseObserver)} describes. */
    Cancellation submit(CheckedRequest checked, ResponseObserver observer) {
        WaitingCalls.Call call = call(checked);
        ScheduledRequest request = new ScheduledRequest(
                model, order, call == null ? checked : ending(checked, call), observer, checked.arrivedNanos());
        try {
            Continuations scope = Continuations.current();
            if (admit(request, observer, call, scope.isOpen())) {
                if (scope.isOpen()) {
                    scope.add(this, request);
                } else if (cache == null || !queue.isOpen()) {
                    enqueueNow(request, true);
                } else {
                    cache.submit(request);
                }
            }
        } catch (Throwable e) { // such as the end of the stack of a plugin that submits the request
            request.failUnqueued(e);
        }
        return request;
    }

    /**
     * Counts a request, or refuses it.
     *
     * @param together whether it is queued with others that follow from one batch, which read the clock then
     */
    private boolean admit(
            ScheduledRequest request, ResponseObserver observer, WaitingCalls.@Nullable Call call, boolean together) {
        if (!together) {
            request.queuedAt(model.nanoTime().getAsLong());
        }
        CheckedRequest checked = request.checked();
        long bytes = checked.inputBytes();
        boolean isPart = observer instanceof StepObserver;
        RequestAdmission.Verdict verdict = model.admission().enter(bytes, isPart);
        if (verdict != RequestAdmission.Verdict.ADMITTED) {
            request.refuse(SchedulerErrors.refusal(checked, verdict, queue.isStopped()));
            return false;
        }
        request.admitted(bytes, isPart);
        if (call != null && !mayWait(call, request)) {
            return false;
        }
        // Memory of a client or device may have to be copied, and large outputs cleared.
        if (observer.isLong()
                || request.usesClientMemory()
                || !checked.inputs().areOnHost()
                || outputTracker.isLarge(bytes)) {
            request.requireInstanceThread();
        }
        return true;
    }

    /** Returns the call of a request that executions wait for; {@code null} for any other, such as a client's. */
    private WaitingCalls.@Nullable Call call(CheckedRequest checked) {
        CallChain chain = checked.options().callers();
        return instances == null || chain.holds().isEmpty() ? null : new WaitingCalls.Call(chain, instances);
    }

    private CheckedRequest ending(CheckedRequest checked, WaitingCalls.Call call) {
        return checked.withInputs(checked.inputs().withReleased(() -> calls.end(call)));
    }

    /** Returns whether a request may begin to wait, and refuses it if not. */
    private boolean mayWait(WaitingCalls.Call call, ScheduledRequest request) {
        return switch (calls.begin(call, request::isWaiting)) {
            case WAITS -> true;
            case WAITS_FOR_ITSELF -> {
                request.refuse(SchedulerErrors.waitsForItself(request.checked()));
                yield false;
            }
            case WAITS_FOR_OTHERS -> {
                request.refuse(SchedulerErrors.waitsForOthers(request.checked()));
                yield false;
            }
        };
    }

    /**
     * Queues a request, or executes it directly.
     *
     * @param submitting whether the caller is the submitting thread, which may execute requests; not while it delivers
     *     responses
     */
    private void enqueue(ScheduledRequest request, boolean submitting) {
        enqueueNow(request, submitting && !Continuations.current().isOpen());
    }

    private void enqueueNow(ScheduledRequest request, boolean direct) {
        request.attach();
        switch (queue.offer(request, direct && mayRun())) {
            case InstanceHandle handle -> handle.directRun().run();
            case OfferResult.Refused refused -> refuse(request, refused.error(), direct);
            case OfferResult.Outcome outcome -> refuse(request, outcome, direct);
        }
    }

    @Override
    public void enqueue(List<ScheduledRequest> requests, boolean mayRun) {
        long now = model.nanoTime().getAsLong();
        for (int i = 0; i < requests.size(); i++) {
            requests.get(i).queuedAt(now);
        }
        if (cache == null || !queue.isOpen()) {
            offer(requests, mayRun && mayRun());
            return;
        }
        for (int i = 0; i < requests.size(); i++) {
            submitTo(cache, requests.get(i));
        }
    }

    /** Queues requests together. */
    private void offer(List<ScheduledRequest> requests, boolean mayRun) {
        for (int i = 0; i < requests.size(); i++) {
            requests.get(i).attach();
        }
        List<OfferResult> outcomes = new ArrayList<>(requests.size());
        InstanceHandle handle = queue.offerAll(requests, mayRun, outcomes);
        if (handle != null) { // before anything that may fail: the instance has no other thread
            Continuations.current().runLater(handle.directRun());
        }
        removeQueued(requests, outcomes);
        for (int i = 0; i < outcomes.size(); i++) {
            refuseQuietly(requests.get(i), outcomes.get(i));
        }
    }

    /** Removes the requests that were queued, and their outcomes: only the others may be completed here. */
    private static void removeQueued(List<ScheduledRequest> requests, List<OfferResult> outcomes) {
        int refused = 0;
        for (int i = 0; i < outcomes.size(); i++) {
            OfferResult outcome = outcomes.get(i);
            if (!(outcome instanceof InstanceHandle) && outcome != OfferResult.Outcome.ACCEPTED) {
                requests.set(refused, requests.get(i));
                outcomes.set(refused, outcome);
                refused++;
            }
        }
        requests.subList(refused, outcomes.size()).clear();
        outcomes.subList(refused, outcomes.size()).clear();
    }

    /** Refuses a request that the queue does not accept. Exceptions are logged: the other requests are refused too. */
    private static void refuseQuietly(ScheduledRequest request, OfferResult result) {
        try {
            switch (result) {
                case InstanceHandle _ -> {}
                case OfferResult.Refused refused -> refuse(request, refused.error(), false);
                case OfferResult.Outcome outcome -> refuse(request, outcome, false);
            }
        } catch (RuntimeException e) {
            request.log("completion of request failed", e);
        }
    }

    private static void submitTo(CachedSubmission submission, ScheduledRequest request) {
        if (!request.tryRetain()) {
            return; // cancelled while it was collected, and its inputs are freed
        }
        try {
            submission.submit(request);
        } catch (RuntimeException e) {
            request.failUnqueued(e);
        } finally {
            request.release();
        }
    }

    private boolean mayRun() {
        return !rateLimiter.isLimiting() && executions.areTrusted();
    }

    /** Refuses a request that the queue does not accept. */
    private static void refuse(ScheduledRequest request, OfferResult.Outcome outcome, boolean submitting) {
        switch (outcome) {
            case ACCEPTED -> {}
            case FULL -> refuse(request, SchedulerErrors.full(request.checked()), submitting);
            case STOPPED -> refuse(request, SchedulerErrors.stopped(request.checked()), submitting);
            case STRANDED -> refuse(request, SchedulerErrors.stranded(request.checked()), submitting);
            case NO_INSTANCE -> refuse(request, SchedulerErrors.noInstance(request.checked()), submitting);
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
