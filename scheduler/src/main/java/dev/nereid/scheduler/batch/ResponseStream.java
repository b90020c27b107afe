package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.Quoted;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.handle.PluginHandles;
import dev.nereid.scheduler.handle.SenderHandle;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.scheduler.statistics.ResponseIndices;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Sends the responses of one request to a decoupled model, in order. Guarded by its own lock, under which the clock and
 * the meter are called; the observer is called outside of it.
 *
 * <p>Any number of threads may send, but the observer is called by one at a time: a thread that adds a response while
 * no other thread delivers becomes the sender, and delivers until none is left; the other threads only add. The request
 * decides which terminal response counts; nothing is delivered after it, and nothing is sent once the request is
 * cancelled.
 *
 * <p>The stream is ready while no response waits for the thread that delivers and the client reads. In a model that
 * preserves order, responses that wait for responses of other requests do not count: the other requests may wait for
 * the backend. Once the request is cancelled or completed, or the sender is ended, it is always ready.
 *
 * <p>A model that is not decoupled has one response: sending it completes the request, and the sender stays open. A
 * second one is refused, and an end without a response is a failure of the backend.
 *
 * <p>The end of the sender discards the open responses that the ending thread used last; a response is open until it is
 * sent or discarded. Other threads may still write to their responses, which are dropped when they are sent. So an end
 * by the server discards none. When the plugin cannot reach the sender any more, or anything of it, all are discarded,
 * and the sender is ended.
 *
 * <p>The stream holds a reference to the request until it is ended, even if the request completes meanwhile. The last
 * reference is released after the delivery of the last response. The inputs are freed before that, when executions and
 * sender have ended.
 */
public final class ResponseStream implements ResponseChannel, PluginHandles.EndableSender, GatheredInputs.Holder {
    private final ExecutionScope scope;
    private final ScheduledRequest request;

    /** The inputs that the current execution gathered, in which outputs may lie. */
    private volatile @Nullable GatheredInputs gathered;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Queue<ResponseEvent> events = new ArrayDeque<>(2);

    /** {@code true} while a thread delivers responses. */
    @GuardedBy("lock")
    private boolean sending;

    /** {@code true} if the terminal response was added. */
    @GuardedBy("lock")
    private boolean completed;

    /** {@code true} if the backend ended the sender. */
    @GuardedBy("lock")
    private boolean ended;

    /** {@code true} if the model has one response for each request. */
    private final boolean single;

    /** {@code true} if the one response was sent, for a model that has one. */
    @GuardedBy("lock")
    private boolean responded;

    /** The last of the open responses, with the others linked to it. */
    @GuardedBy("lock")
    private @Nullable ResponseBuilder open;

    /** {@code true} if the backend failed the request by the sender. */
    private volatile boolean failed;

    /** The users of the inputs: the executions, as one, and the sender. The last one frees them. */
    @GuardedBy("lock")
    private int inputUsers = 2;

    @GuardedBy("lock")
    private final ResponseIndices indices;

    /** The action of the backend for the time when the stream is ready; {@code null} until the first one. */
    private volatile @Nullable ReadyAction readyAction;

    /** The number of handles that the plugin may reach. */
    @GuardedBy("lock")
    private int handles;

    /** The handle while the request waits for another execution, which gets it again; {@code null} otherwise. */
    @GuardedBy("lock")
    private @Nullable SenderHandle held;

    /** Creates a stream, which holds a reference to the request until it is ended. */
    public ResponseStream(ExecutionScope scope, ScheduledRequest request, @Nullable GatheredInputs gathered) {
        this.scope = scope;
        this.request = request;
        this.gathered = gathered;
        this.single = !request.model().settings().decoupled();
        this.indices = new ResponseIndices(request.model().nanoTime().getAsLong());
        request.retain();
    }

    @Override
    public void retainHandle() {
        lock.lock();
        try {
            handles++;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean releaseHandle() {
        lock.lock();
        try {
            handles--;
            return handles == 0 && needsEnd();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean needsEnd() {
        lock.lock();
        try {
            return !ended || open != null;
        } finally {
            lock.unlock();
        }
    }

    /** Keeps the handle for another execution of the request, until the sender is ended; {@code null} for no other. */
    void hold(@Nullable SenderHandle handle) {
        lock.lock();
        try {
            held = ended ? null : handle;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the handle that is kept; {@code null} for none. */
    @Nullable
    SenderHandle held() {
        lock.lock();
        try {
            return held;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void forgotten(Runnable report) {
        boolean ends = end();
        try {
            if (ends) {
                report.run();
                if (!hasResponded()) {
                    failed = true;
                    request.complete(forgottenSender());
                }
            }
        } finally {
            discardOpen(_ -> true);
            if (ends) {
                releaseStream();
            }
        }
    }

    /** Returns the failure of a request after the plugin forgot its sender. */
    private ResponseEvent forgottenSender() {
        BackendException error = new BackendException(
                ErrorCode.INTERNAL,
                "model '" + request.checked().model()
                        + "': its plugin forgot the sender of the request (expected: ResponseSender.complete or fail)");
        return ResponseEvent.Failure.of(error, FailureReason.BACKEND);
    }

    /** Sets the inputs that the current or another execution of the request gathers. */
    void executedWith(@Nullable GatheredInputs inputs) {
        gathered = inputs;
    }

    @Override
    public @Nullable GatheredInputs gathered() {
        return gathered;
    }

    @Override
    public InferenceResponse newResponse() {
        ResponseBuilder builder = new ResponseBuilder(scope, request, this);
        lock.lock();
        try {
            ResponseBuilder last = open;
            builder.previous = last;
            if (last != null) {
                last.next = builder;
            }
            open = builder;
        } finally {
            lock.unlock();
        }
        return builder;
    }

    /** Retains the memory of an open response in which a tensor lies; {@code null} if it lies in none. */
    @Nullable
    ReferenceCountedMemory retain(Tensor tensor) {
        lock.lock();
        try {
            for (ResponseBuilder each = open; each != null; each = each.previous) {
                ReferenceCountedMemory memory = each.retain(tensor);
                if (memory != null) {
                    return memory;
                }
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    /** Removes an open response, which ends; returns whether it was open. If so, the caller owns its outputs. */
    boolean remove(ResponseBuilder builder) {
        lock.lock();
        try {
            return builder.endOnce(false) && unlink(builder);
        } finally {
            lock.unlock();
        }
    }

    /** Removes a response from the open ones; returns true. */
    @GuardedBy("lock")
    @SuppressWarnings("ReferenceEquality") // Responses are mutable.
    private boolean unlink(ResponseBuilder builder) {
        ResponseBuilder before = builder.previous;
        ResponseBuilder after = builder.next;
        if (before != null) {
            before.next = after;
        }
        if (after != null) {
            after.previous = before;
        } else if (open == builder) {
            open = before;
        }
        builder.previous = null;
        builder.next = null;
        return true;
    }

    /** Runs a change of an open response while the stream cannot discard it. */
    boolean whileOpen(BooleanSupplier change) {
        lock.lock();
        try {
            return change.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Discards the open responses that the calling thread used last: another thread may still write to its own. Called
     * when the backend has ended the stream.
     */
    private void discardOpen() {
        Thread ending = Thread.currentThread();
        discardOpen(each -> each.isUsedBy(ending));
    }

    private void discardOpen(Predicate<ResponseBuilder> which) {
        List<ResponseBuilder> left = List.of();
        lock.lock();
        try {
            ResponseBuilder each = open;
            while (each != null) {
                ResponseBuilder before = each.previous;
                if (which.test(each) && each.endOnce(true)) {
                    unlink(each);
                    left = left.isEmpty() ? new ArrayList<>(1) : left;
                    left.add(each);
                }
                each = before;
            }
        } finally {
            lock.unlock();
        }
        left.forEach(ResponseBuilder::release);
    }

    @Override
    public void send(InferenceResponse response) {
        ResponseBuilder builder = own(response);
        boolean retained = tryRetain(); // before the step to the response: an end leaves the request to it from then on
        try {
            checkFirst(builder);
            if (retained) {
                sendRetained(builder);
            } else {
                drop(builder);
            }
        } finally {
            if (retained) {
                request.release();
            }
        }
    }

    private void sendRetained(ResponseBuilder builder) {
        if (dropsResponses()) {
            try {
                drop(builder);
            } finally {
                endCancelled();
            }
        } else {
            finish(builder, single);
        }
    }

    /** Sends a response, or completes the request with it. Fails the request if the response is not valid. */
    private void finish(ResponseBuilder builder, boolean completes) {
        try {
            FinishedResponse response = builder.finish(completes);
            if (completes) {
                request.complete(response);
            } else {
                add(response, false);
            }
        } catch (BackendException e) {
            failed = true;
            request.fail(e);
        } catch (RuntimeException | Error e) { // of memory or a fence of the backend, or its stack is used up
            failUnexpectedly(e);
            throw e;
        }
    }

    /** Completes a cancelled request after its one response was dropped. */
    private void endCancelled() {
        if (single) {
            request.complete(ResponseEvent.END);
        }
    }

    /** Fails a request if its only response could not be sent, or if its sender is ended. */
    private void failUnexpectedly(Throwable cause) {
        if (single || isEnded()) {
            failed = true;
            request.fail(SchedulerErrors.unexpected(request.model().settings(), cause), FailureReason.OTHER);
        }
    }

    /**
     * Marks the one response of a model that is not decoupled as sent; has no effect for a decoupled model.
     *
     * @param builder the response, which is dropped if it is the second one; {@code null} for an error
     * @throws IllegalStateException if it is the second one
     */
    private void checkFirst(@Nullable ResponseBuilder builder) {
        if (single && !respond()) {
            if (builder != null) {
                drop(builder);
            }
            throw new IllegalStateException("sender of request '"
                    + Quoted.text(request.checked().id()) + "' to model '"
                    + request.checked().model()
                    + "': a second response (expected: one, since the model is not decoupled;"
                    + " model_transaction_policy { decoupled: true } allows more)");
        }
    }

    private boolean respond() {
        lock.lock();
        try {
            boolean first = !responded;
            responded |= !ended; // what follows an end is dropped
            return first;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether the one response was sent; {@code false} for a decoupled model. */
    private boolean hasResponded() {
        lock.lock();
        try {
            return responded;
        } finally {
            lock.unlock();
        }
    }

    /** Releases the outputs of a response that is not sent, unless the end of the stream did. */
    private void drop(ResponseBuilder builder) {
        if (!whileOpen(builder::isDiscardedByEnd)) {
            builder.release();
        }
    }

    @Override
    public void sendError(BackendException error) {
        ResponseEvent event = new ResponseEvent.FailedResponse(SchedulerErrors.of(requireNonNull(error, "error")));
        boolean retained = tryRetain(); // as in send
        try {
            checkFirst(null);
            if (!retained) {
                return;
            }
            if (dropsResponses()) {
                endCancelled();
            } else if (single) {
                failed = true;
                request.fail(error);
            } else {
                add(event, false);
            }
        } finally {
            if (retained) {
                request.release();
            }
        }
    }

    private boolean dropsResponses() {
        return request.isCompleted() || request.isCancelled();
    }

    @Override
    public void complete(InferenceResponse last) {
        ResponseBuilder builder = own(last);
        boolean retained = tryRetain(); // as in send
        try {
            complete(builder, retained);
        } finally {
            if (retained) {
                request.release();
            }
        }
    }

    private void complete(ResponseBuilder builder, boolean retained) {
        try {
            checkFirst(builder);
        } catch (IllegalStateException e) {
            complete();
            throw e;
        }
        if (!end()) { // another thread has ended it
            if (single && retained) {
                sendRetained(builder);
            } else {
                drop(builder);
            }
            return;
        }
        try {
            finish(builder, true);
        } finally {
            discardOpen();
            releaseStream();
        }
    }

    @Override
    public void complete() {
        boolean none = single && !request.isCompleted();
        endWith(none ? noResponse() : ResponseEvent.END, none);
    }

    /** Returns the failure of a request to a model with one response that got none. */
    private ResponseEvent noResponse() {
        BackendException error = new BackendException(
                ErrorCode.INTERNAL,
                "model '" + request.checked().model() + "': its backend sent no response (expected: one, or an error)");
        return ResponseEvent.Failure.of(error, FailureReason.BACKEND);
    }

    @Override
    public void fail(BackendException error) {
        ResponseEvent failure = ResponseEvent.Failure.of(requireNonNull(error, "error"), FailureReason.BACKEND);
        endWith(failure, true);
    }

    /** Returns whether the backend failed the request by the sender. */
    boolean hasFailed() {
        return failed;
    }

    /**
     * Ends the stream; {@code fails} says whether the backend fails the request by that. A thread that sends the one response
     * of a model completes the request itself.
     */
    private void endWith(ResponseEvent last, boolean fails) {
        boolean ends = end();
        try {
            if (ends && !hasResponded()) {
                if (fails) {
                    failed = true;
                }
                request.complete(last);
            }
        } finally {
            discardOpen();
            if (ends) {
                releaseStream();
            }
        }
    }

    /** Releases the resources of an open stream, once. */
    private void releaseStream() {
        checkReadiness();
        endInputUse();
        request.release();
    }

    @Override
    public void executed() {
        endInputUse();
    }

    private void endInputUse() {
        boolean last;
        lock.lock();
        try {
            inputUsers--;
            last = inputUsers == 0;
        } finally {
            lock.unlock();
        }
        if (last) {
            request.freeInputs();
        }
    }

    @Override
    public boolean isCancelled() {
        return single ? request.isCancelledForBackend() : request.isCancelled();
    }

    @Override
    public boolean isReady() {
        return dropsResponses()
                || isEnded()
                || (!isDelivering() && request.delivery().flow().isOpen());
    }

    /** Returns whether responses wait for the thread that delivers. */
    private boolean isDelivering() {
        lock.lock();
        try {
            return !events.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void onReady(Runnable action) {
        requireNonNull(action, "action");
        readyAction().set(action);
    }

    @Override
    public void alsoWhenReady(Runnable action) {
        readyAction().setServers(action);
    }

    private ReadyAction readyAction() {
        ReadyAction existing = readyAction;
        if (existing != null) {
            return existing;
        }
        lock.lock();
        try {
            ReadyAction current = readyAction;
            if (current == null) {
                current = new ReadyAction(new ReadySender(), scope.callbacks());
                readyAction = current;
            }
            return current;
        } finally {
            lock.unlock();
        }
    }

    /** Starts the action of the backend if the stream is ready; called after changes that may have made it ready. */
    private void checkReadiness() {
        ReadyAction existing = readyAction;
        if (existing != null) {
            existing.check();
        }
    }

    @Override
    public void onCancelled() {
        checkReadiness();
    }

    @Override
    public void report(ResponseReport report) {
        ModelMeter.check(report);
        request.model().meter().responded(nextReport(), report);
    }

    private int nextReport() {
        lock.lock();
        try {
            return indices.nextReport();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isEnded() {
        lock.lock();
        try {
            return ended;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void endByServer() {
        if (end()) {
            releaseStream();
        }
    }

    @Override
    public void sendTerminal(ResponseEvent last) {
        add(last, true);
        checkReadiness();
    }

    private ResponseBuilder own(InferenceResponse response) {
        if (response instanceof ResponseBuilder builder
                && builder.isOf(this)
                && (remove(builder) || whileOpen(builder::isDiscardedByEnd))) {
            return builder;
        }
        throw new IllegalArgumentException(
                "response: " + response + " (expected: made by this sender, neither sent nor discarded)");
    }

    /** Retains the request while a response is sent; returns whether the stream was open. */
    private boolean tryRetain() {
        lock.lock();
        try {
            if (!ended) {
                request.retain();
            }
            return !ended;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the stream; returns whether it was open, so that the caller has to release its reference. */
    private boolean end() {
        lock.lock();
        try {
            boolean first = !ended;
            ended = true;
            held = null;
            return first;
        } finally {
            lock.unlock();
        }
    }

    /** Adds a response, and delivers it unless another thread delivers. Discards it after the terminal response. */
    private void add(ResponseEvent event, boolean terminal) {
        boolean added = false;
        boolean sends = false;
        lock.lock();
        try {
            if (!completed) {
                takeIndex(event);
                events.add(event);
                added = true;
                completed = terminal;
                sends = !sending;
                sending = true;
            }
        } finally {
            lock.unlock();
            if (!added) {
                event.discard();
            }
        }
        if (sends) {
            sendAll();
        }
    }

    /** Assigns the next statistics index to a response. A failed one is counted before its delivery. */
    @GuardedBy("lock")
    private void takeIndex(ResponseEvent event) {
        if (event instanceof ResponseEvent.FailedResponse failure) {
            long now = request.model().nanoTime().getAsLong();
            indices.addFailed(failure.error().code(), now, request.model().meter());
        } else {
            indices.add();
        }
    }

    /** Delivers responses until none is left; retains the request meanwhile. The caller holds a reference. */
    private void sendAll() {
        request.retain();
        for (ResponseEvent next = next(); next != null; next = next()) {
            request.delivery().send(next);
            checkReadiness();
        }
        request.release();
    }

    private @Nullable ResponseEvent next() {
        lock.lock();
        try {
            ResponseEvent next = events.poll();
            sending = next != null;
            return next;
        } finally {
            lock.unlock();
        }
    }

    /** This stream, as the action of the backend sees it. */
    private final class ReadySender implements ReadyAction.Sender {
        @Override
        public boolean isReady() {
            return ResponseStream.this.isReady();
        }

        @Override
        public boolean isDelivering() {
            return ResponseStream.this.isDelivering();
        }

        @Override
        public ResponseFlow flow() {
            return request.delivery().flow();
        }

        @Override
        public boolean tryRetain() {
            return request.tryRetain();
        }

        @Override
        public void release() {
            request.release();
        }

        @Override
        public void log(String event, Throwable cause) {
            request.log(event, cause);
        }
    }
}
