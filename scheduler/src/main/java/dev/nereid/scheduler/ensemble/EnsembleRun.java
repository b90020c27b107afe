package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.call.CallChain;
import dev.nereid.scheduler.batch.ResponseStream;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import java.util.BitSet;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Executes one request to an ensemble. Submits steps as their inputs come, and responds when outputs are complete.
 *
 * <p><b>Threads.</b> Any thread offers events, such as the response of a step. One thread at a time handles them: a
 * thread that offers an event while no other handles any, until none is left. All other state is confined to that
 * thread; no lock is held while a step is submitted or an observer is called, and no thread waits. Events that this
 * thread offers meanwhile are handled afterwards, so that the stack does not grow with the number of steps.
 *
 * <p><b>End.</b> The first failure counts. From then on, and after a cancellation, no step is submitted, and steps in
 * flight are cancelled; the request completes when all of them have returned. Until then the models are pinned.
 */
public final class EnsembleRun implements StepModels.Receiver {
    /** The number of unfinished responses from which on decoupled steps pause. */
    private static final int MAX_ITERATIONS = 64;

    /** The number of unfinished responses that a request may keep whatever their size. */
    private static final int MIN_ITERATIONS = 4;

    private static final EnsembleEvent BEGUN = new EnsembleEvent.Begun();
    private static final EnsembleEvent CANCELLED = new EnsembleEvent.Cancelled();

    private final EnsembleScope scope;
    private final EnsemblePlan plan;
    private final ScheduledRequest request;
    private final DataFlow flow;
    private final OutputSelection selection;
    private final Queue<EnsembleEvent> events = new ConcurrentLinkedQueue<>();

    /** The number of events that are not handled; the thread that raises it from 0 handles them. */
    private final AtomicInteger pending = new AtomicInteger();

    private final ExecutionTally.Totals totals = new ExecutionTally.Totals();
    private final StepSet<StepExecution> submitted = new StepSet<>();
    private final StepSet<StepExecution> waiting = new StepSet<>();
    private final EnsembleFlow producers;
    private final ResponseStream responses;
    private final EnsembleTimeout timeout;

    /**
     * The indexes of the steps that lack no request, or need none; {@code null} if the request has no sequence. A step
     * behind a decoupled one gets many, so that it may always lack one.
     */
    private final @Nullable BitSet reached;

    private StepModels.@Nullable Pinned models;
    private CallChain callers = CallChain.NONE;
    private @Nullable Cancellation acquisition;
    private @Nullable InferenceException failure;

    /** {@code true} while the models are being acquired. */
    private boolean acquiring;

    /** An error while an event was handled, which the next turn handles: there may be no stack left. */
    private @Nullable Throwable broken;

    private boolean stopped;
    private boolean responded;
    private boolean finished;

    /** The responses of decoupled steps that were handled since the last decision about their flow. */
    private int handled;

    /**
     * The error after the deadline or timeout; {@code null} before. A step that has to wait after that fails the
     * request.
     */
    private @Nullable InferenceException overdue;

    private EnsembleRun(EnsembleScope scope, ScheduledRequest request) {
        this.scope = scope;
        this.request = request;
        plan = scope.plan();
        selection = plan.select(request.checked().outputs().names());
        flow = new DataFlow(plan, selection);
        reached = request.checked().options().sequence().isPresent() ? unneeded(plan, selection) : null;
        producers = new EnsembleFlow(request.delivery().flow());
        responses = new ResponseStream(scope.execution(), request, null);
        timeout =
                new EnsembleTimeout(scope.timer(), request.checked(), error -> offer(new EnsembleEvent.Expired(error)));
    }

    /** Begins an admitted, waiting request that was taken from its caller, unless it was cancelled. Never blocks. */
    public static void begin(EnsembleScope scope, ScheduledRequest request) {
        EnsembleRun run = new EnsembleRun(scope, request); // calls the observer, and the request still waits
        if (!request.begin()) { // completed, and its reference released
            cancelSequence(scope, request.checked().options(), run.reached);
            return;
        }
        request.started(scope.now());
        run.offer(BEGUN);
    }

    /**
     * Ends the sequence of a cancelled request on the models of the steps that it never reached.
     *
     * @param reached the indexes of the steps that lack no request; {@code null} for none
     */
    static void cancelSequence(EnsembleScope scope, RequestOptions options, @Nullable BitSet reached) {
        if (options.sequence().isEmpty()) {
            return;
        }
        for (int step = 0; step < scope.plan().stepCount(); step++) {
            if (reached == null || !reached.get(step)) {
                scope.models().cancelSequence(step, options);
            }
        }
    }

    private static BitSet unneeded(EnsemblePlan plan, OutputSelection selection) {
        BitSet steps = new BitSet(plan.stepCount());
        for (int step = 0; step < plan.stepCount(); step++) {
            steps.set(step, !selection.needs(step));
        }
        return steps;
    }

    private void begun() {
        request.delivery().countSteps(totals);
        request.delivery().open(responses);
        request.detach();
        request.onCancel(() -> offer(CANCELLED), request.execution());
        acquisition = scope.models().acquire(request.checked(), this);
        acquiring = true; // until the event of its end, which is handled later
    }

    @Override
    public void acquired(StepModels.Pinned acquired) {
        offer(new EnsembleEvent.Acquired(acquired));
    }

    @Override
    public void failed(InferenceException error) {
        offer(new EnsembleEvent.NotAcquired(error));
    }

    /** Returns whether steps are to be executed on the threads of instances. */
    boolean isLong() {
        return request.needsInstanceThread();
    }

    /** Counts a response of a decoupled step, before it is offered. Called by any thread. */
    void arrived() {
        producers.arrived();
    }

    /** Adds an event, and handles it unless another thread handles events. */
    void offer(EnsembleEvent event) {
        events.add(event);
        if (pending.getAndIncrement() == 0) {
            handleAll();
        }
    }

    private void handleAll() {
        int missed = 1;
        while (missed != 0) {
            boolean handled = false;
            while (!handled) {
                handled = handleNext();
            }
            if (!finished && !acquiring && submitted.isEmpty() && waiting.isEmpty()) {
                finished = true;
                finish();
            }
            missed = pending.addAndGet(-missed);
        }
    }

    /** Handles the next event, or proceeds if there is none; returns whether nothing is left. */
    private boolean handleNext() {
        Throwable cause = broken;
        broken = null;
        try {
            if (cause != null) {
                failed(cause);
                return false;
            }
            EnsembleEvent next = events.poll();
            if (next == null) {
                proceed();
                return true;
            }
            handle(next);
        } catch (RuntimeException | Error e) { // such as the end of the stack of a plugin that submits or responds
            if (cause == null) {
                broken = e;
            } else { // nothing else completes the request
                failure = failure == null ? EnsembleErrors.BROKEN : failure;
                stopped = true;
            }
        }
        return false;
    }

    private void failed(Throwable cause) {
        fail(EnsembleErrors.internal(cause));
        if (!(cause instanceof InferenceException)) {
            request.log(acquisition == null ? "begin of ensemble failed" : "ensemble step failed", cause);
        }
    }

    private void proceed() {
        do {
            submitReady();
        } while (respond() && flow.holdsSteps()); // responses end iterations, whose memory steps may wait for
        pace();
        if (acquiring && !stopped) {
            timeout.start();
        }
    }

    private void handle(EnsembleEvent event) {
        switch (event) {
            case EnsembleEvent.Begun() -> begun();
            case EnsembleEvent.Acquired(StepModels.Pinned acquired) -> start(acquired);
            case EnsembleEvent.NotAcquired(InferenceException error) -> {
                acquiring = false;
                fail(error);
            }
            case EnsembleEvent.Responded(StepExecution step, InferResponse response) -> responded(step, response);
            case EnsembleEvent.FailedResponse(StepExecution step, InferenceException error) ->
                fail(EnsembleErrors.ofStep(step.step(), error));
            case EnsembleEvent.Completed(StepExecution step) -> ended(step);
            case EnsembleEvent.Failed(StepExecution step, InferenceException error) -> {
                ended(step);
                fail(EnsembleErrors.ofStep(step.step(), error));
            }
            case EnsembleEvent.Granted(StepExecution step) -> granted(step);
            case EnsembleEvent.Cancelled() -> cancelled();
            case EnsembleEvent.Expired(InferenceException error) -> expired(error);
        }
    }

    private void start(StepModels.Pinned acquired) {
        acquiring = false;
        models = acquired;
        callers = scope.models().callers(request.checked());
        if (!stopped) {
            request.delivery().executedBy(acquired::identity);
            flow.begin(EnsembleTensors.read(plan.settings(), request));
        }
    }

    /** Submits the steps that are ready, as far as the limits of the ensemble allow. */
    private void submitReady() {
        for (DataFlow.Ready next = flow.nextReady(); next != null; next = flow.nextReady()) {
            boolean isDecoupled = next.step().decoupled();
            StepExecution step = new StepExecution(this, next, isDecoupled ? producers.ofStep(next.iteration()) : null);
            if (scope.acquire(step)) {
                submit(step);
            } else {
                waiting.add(step);
                InferenceException late = overdue;
                if (late == null) {
                    timeout.start();
                } else {
                    fail(late);
                }
            }
        }
    }

    /** Decides which decoupled steps pause. Last of all, since responses of the ensemble end iterations. */
    private void pace() {
        int iterations = flow.iterations();
        EnsembleLimits limits = plan.limits();
        boolean behind = !waiting.isEmpty()
                || flow.holdsSteps()
                || iterations >= MAX_ITERATIONS
                || (iterations >= MIN_ITERATIONS
                        && flow.bufferedBytes() + flow.outputBytes() > limits.maxBufferedBytes() / 2);
        int responses = handled;
        handled = 0;
        // A step that paused for its own responses would keep others from the limit of requests in flight.
        producers.handled(responses, behind, limits.maxInflightRequests() == 0 ? MAX_ITERATIONS : Integer.MAX_VALUE);
    }

    private void granted(StepExecution step) {
        waiting.remove(step);
        if (stopped) {
            scope.release(step);
        } else {
            submit(step);
        }
    }

    /** Returns whether the outputs of a step have to lie on the host, for its own model or for one that reads them. */
    private static boolean isOnHost(StepPlan step, StepModels.Pinned pinned) {
        if (pinned.model(step.index()).needsHostTensors()) {
            return true;
        }
        for (int reader : step.readers()) {
            if (pinned.model(reader).needsHostTensors()) {
                return true;
            }
        }
        return false;
    }

    private void submit(StepExecution step) {
        StepModels.Pinned pinned = models;
        if (pinned == null) {
            throw new IllegalStateException("models: none (expected: acquired)");
        }
        StepModel model = pinned.model(step.step().index());
        submitted.add(step);
        if (reached != null && step.step().depth() == 0) {
            reached.set(step.step().index());
        }
        boolean isSubmitted = false;
        try {
            InferRequest message = StepMessages.request(
                    request.checked(),
                    callers,
                    flow,
                    step,
                    model.settings(),
                    isOnHost(step.step(), pinned),
                    scope.now());
            flow.markRead(step.ready());
            step.submitted(model.submit(message, step));
            isSubmitted = true;
        } finally {
            if (!isSubmitted) {
                submitted.remove(step);
                scope.release(step);
            }
        }
    }

    private void responded(StepExecution step, InferResponse response) {
        boolean last = response.isFinal();
        if (step.step().decoupled()) {
            handled++;
        }
        try {
            if (stopped) {
                response.close();
            } else if (!step.isFirstResponse() && !step.step().decoupled()) {
                response.close();
                fail(EnsembleErrors.secondResponse(step.step()));
            } else {
                add(step, response);
            }
        } finally {
            if (last) {
                ended(step);
            }
        }
    }

    private void add(StepExecution step, InferResponse response) {
        TensorValue[] values;
        try (response) {
            TensorValue.Mark mark = SequenceMarks.of(
                    response, step.mark(), request.checked().options().sequence());
            values = StepMessages.values(response, step, mark);
        } catch (InferenceException e) {
            fail(e);
            return;
        }
        flow.responded(step.ready(), values, response.isFinal());
        long max = plan.limits().maxBufferedBytes();
        if (flow.iterations() > MIN_ITERATIONS && flow.bufferedBytes() > max) {
            fail(EnsembleErrors.tooManyBytes(step.step(), max));
        }
    }

    /** Ends a step that was submitted: it sends nothing more. */
    private void ended(StepExecution step) {
        if (!submitted.remove(step)) {
            return;
        }
        totals.add(step.inputNanos(), step.inferNanos(), step.outputNanos());
        producers.remove(step.flow());
        scope.release(step);
        if (!stopped) {
            flow.ended(step.ready());
        }
    }

    /** Sends the responses with complete outputs, in their order. Returns whether there were any. */
    private boolean respond() {
        boolean any = false;
        for (Iteration next = flow.nextAnswer(); next != null && !stopped; next = flow.nextAnswer()) {
            var response = responses.newResponse();
            boolean isComplete = false;
            try {
                EnsembleTensors.put(response, plan, selection, flow, next, request.checked());
                isComplete = true;
            } catch (BackendException e) {
                fail(SchedulerErrors.of(e));
                return any;
            } finally {
                if (!isComplete) {
                    response.discard();
                }
            }
            // Not by what has ended at this moment: the mark would come with the response or behind it by chance.
            boolean last = !plan.isDecoupled() || next.isLast();
            flow.answered(next);
            any = true;
            responded |= last;
            if (last) {
                StepModels.Pinned executing = models;
                if (executing != null) { // again: a step of a nested ensemble may have been loaded anew
                    request.delivery().executedBy(executing::identity);
                }
                responses.complete(response);
            } else {
                responses.send(response);
            }
        }
        return any;
    }

    private void fail(InferenceException error) {
        if (failure == null && !stopped) {
            failure = error;
        }
        stop();
    }

    /** Stops submitting steps, and cancels the steps in flight. */
    private void stop() {
        if (stopped) {
            return;
        }
        stopped = true;
        flow.release();
        waiting.removeIf(scope::leave);
        submitted.forEach(StepExecution::cancel);
        Cancellation wait = acquisition;
        if (acquiring && wait != null) {
            wait.cancel();
        }
        producers.end();
    }

    private void cancelled() {
        boolean isFirst = !stopped;
        stop();
        if (isFirst) {
            cancelSequence(scope, request.checked().options(), reached);
        }
    }

    private void expired(InferenceException error) {
        overdue = error;
        if (acquiring || !waiting.isEmpty()) {
            fail(error);
        }
    }

    private void finish() {
        try {
            complete();
        } finally {
            flow.release();
            producers.end();
            timeout.close();
            if (models != null) {
                models.close();
            }
            request.endExecutions(true);
        }
    }

    private void complete() {
        InferenceException error = failure;
        if (error != null) {
            EnsembleErrors.fail(request, error);
        } else if (request.isCancelled()) {
            request.complete(ResponseEvent.END); // replaced by the cancellation
        } else if (!responded && plan.isDecoupled()) {
            responses.complete();
        } else if (!responded) {
            EnsembleErrors.fail(request, EnsembleErrors.deadlock(request.checked()));
        }
    }
}
