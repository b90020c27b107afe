package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.scheduler.statistics.StepObserver;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Delivers the responses of one request to its observer. Lock-free; safe for use by any thread, except that
 * {@link #open} is confined to the execution of the request. The {@link ScheduledRequest} decides which completion
 * counts.
 *
 * <p>The terminal response is delivered after the cancel actions of the backend, and through the channel of a decoupled
 * model if one is open. All responses go through the order of the model, if it preserves one.
 */
public final class ResponseDelivery implements ResponseOrder.Recipient {
    private final ScheduledRequest request;
    private final ResponseObserver observer;
    private final @Nullable ResponseOrder order;

    /**
     * The channel of a request with a sender. A thread that completes the request from outside of the execution and
     * does not see the channel may deliver the completion directly: the channel is opened after the completion then,
     * and sends nothing.
     */
    private volatile @Nullable ResponseChannel channel;

    /** The place in the order of a model that preserves order; below 0 for none. Taken when the request begins. */
    private long place = -1;

    /** The sums of the times of the steps of an ensemble; {@code null} for another model. Set before the execution. */
    private ExecutionTally.@Nullable Totals steps;

    /** Receives the terminal response before the observer; set before the request is queued. */
    private @Nullable CompletionListener listener;

    /** Creates the delivery of a request; {@code order} is {@code null} if the model preserves no order. */
    ResponseDelivery(ScheduledRequest request, ResponseObserver observer, @Nullable ResponseOrder order) {
        this.request = request;
        this.observer = observer;
        this.order = order;
    }

    /**
     * Takes the next place in the order of responses, if the model preserves one. Called when the request begins, or
     * completes without having been queued; a rescheduled request keeps its place.
     */
    public void takePlace() {
        if (order != null && place < 0) {
            place = order.nextPlace();
        }
    }

    /** Sets the listener that sees the terminal response; called before the request is queued. */
    public void onCompletion(CompletionListener added) {
        listener = added;
    }

    /** Passes the identity of the models that execute the request to the listener, if there is one. */
    public void executedBy(Supplier<Optional<String>> executing) {
        CompletionListener informed = listener;
        if (informed != null) {
            informed.executedBy(executing);
        }
    }

    /**
     * Sets the times of the steps with which the request is counted. Called before it is completed; they change until
     * then.
     */
    public void countSteps(ExecutionTally.Totals totals) {
        steps = totals;
    }

    /** Creates the tally of a request that completes outside of an execution. */
    ExecutionTally tally(long startNanos, long nowNanos) {
        ExecutionTally.Totals totals = steps;
        return totals == null
                ? new ExecutionTally(startNanos, startNanos, nowNanos, nowNanos)
                : totals.tally(startNanos, nowNanos);
    }

    /** Counts a request that succeeds, and reports its times if it is a step of another one. */
    void count(ExecutionTally tally) {
        CheckedRequest checked = request.checked();
        if (steps != null) {
            tally.executed(checked.batchSize());
        }
        tally.succeeded(checked.batchSize(), checked.arrivedNanos(), request.queuedNanos());
        if (observer instanceof StepObserver listener) {
            tally.report(listener);
        }
    }

    /** Returns the channel of the sender; {@code null} until it is opened. */
    @Nullable
    public ResponseChannel channel() {
        return channel;
    }

    public ResponseFlow flow() {
        return observer.flow();
    }

    /** Notifies the channel of the sender that the request is cancelled; called after the cancellation was recorded. */
    void onCancelled() {
        ResponseChannel opened = channel;
        if (opened != null) {
            opened.onCancelled();
        }
    }

    /** Sends all responses through a channel from now on. */
    public void open(ResponseChannel opened) {
        channel = opened;
    }

    /**
     * Notifies the channel of the sender that no execution follows.
     *
     * @param endsStream whether to end the sender, for a rescheduled request that its backend cannot end any more
     */
    void executed(boolean endsStream) {
        ResponseChannel opened = channel;
        if (opened != null) {
            if (endsStream) {
                opened.endByServer();
            }
            opened.executed();
        }
    }

    @Override
    public void retain() {
        request.retain();
    }

    @Override
    public void release() {
        request.release();
    }

    /** Returns whether the channel of the sender was opened. */
    public boolean isStreaming() {
        return channel != null;
    }

    /** Returns whether the channel of the sender was opened, and may still send. */
    public boolean isStreamOpen() {
        ResponseChannel opened = channel;
        return opened != null && !opened.isEnded();
    }

    /** Delivers the settled terminal response, after running cancel actions and after responses ordered before it. */
    public void deliver(ResponseEvent event) {
        if (listener != null) {
            listener.completed(event);
        }
        CancelActions actions = request.cancelActions();
        if (actions == null) {
            sendTerminal(event);
            return;
        }
        request.retain();
        Runnable delivery = () -> {
            sendTerminal(event);
            request.release();
        };
        if (actions.close(delivery)) {
            delivery.run();
        }
    }

    void sendTerminal(ResponseEvent event) {
        ResponseChannel opened = channel;
        if (opened != null) {
            opened.sendTerminal(place < 0 ? event : new ResponseEvent.Terminal(event));
        } else if (place < 0) {
            sendNow(event);
        } else {
            send(new ResponseEvent.Terminal(event));
        }
    }

    /** Delivers a response when its place in the order is the first. */
    public void send(ResponseEvent event) {
        if (place < 0 || order == null) {
            sendNow(event);
        } else {
            order.send(place, this, event, event instanceof ResponseEvent.Terminal);
        }
    }

    /** Counts the refusal of the request for a mistake of its client, unless it is a step of another request. */
    void countRefusal(InferenceException error) {
        if (!(observer instanceof StepObserver)) {
            request.model().refusals().count(observer.protocol(), error.refusalCause());
        }
    }

    /** Calls the observer, and logs its exceptions. */
    @Override
    public void sendNow(ResponseEvent event) {
        ObserverScope scope = ObserverScope.current();
        scope.open();
        try {
            event.deliverTo(observer);
        } catch (Throwable e) { // of the observer, which may belong to an embedding program or a plugin
            request.log("response observer failed", e);
        } finally {
            scope.close();
        }
    }

    /**
     * Receives the terminal response of an executed request before its observer does. Not called for a request that is
     * rejected in a queue, refused, or completed without an execution. An interface, since {@code cache} depends on this
     * package.
     */
    public interface CompletionListener {
        /**
         * Called when the models that execute a request to an ensemble are known, before its completion. Must be short, and
         * must not block or throw.
         *
         * @param executing returns the identity of their content; empty if it is not known
         */
        default void executedBy(Supplier<Optional<String>> executing) {}

        /** Called by the thread that completes the request. Must be short, and must not block or throw. */
        void completed(ResponseEvent event);
    }
}
