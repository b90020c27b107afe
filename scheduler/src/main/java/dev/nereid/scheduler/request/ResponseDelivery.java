package dev.nereid.scheduler.request;

import dev.nereid.api.ResponseObserver;
import org.jspecify.annotations.Nullable;

/**
 * Delivers the responses of one request to its observer. Lock-free; safe for use by any thread, but {@link #open} is
 * confined to the execution of the request. Which answer counts was settled before, by the {@link ScheduledRequest}.
 *
 * <p>The last answer goes after what the backend does about a withdrawal, and through the stream of a decoupled model
 * if one was opened; all answers go through the order of the model, if it has one.
 */
public final class ResponseDelivery implements ResponseOrder.Recipient {
    private final ScheduledRequest request;
    private final ResponseObserver observer;
    private final @Nullable ResponseOrder order;

    /**
     * The responses of a decoupled model. Who answers from outside of the execution and does not see it may tell the
     * answer by itself: the stream is opened after the request was answered then, and sends nothing.
     */
    private volatile @Nullable ResponseChannel channel;

    /**
     * The place among the answers of a model that answers in order; below 0 for none. Given when the request begins.
     */
    private long place = -1;

    /** Sees the terminal response before the observer; set before the request is queued. */
    private @Nullable CompletionListener listener;

    /**
     * Begins with nothing told.
     *
     * @param request whose answers these are
     * @param observer who is told
     * @param order keeps the answers of the model in order; {@code null} if any order will do
     */
    ResponseDelivery(ScheduledRequest request, ResponseObserver observer, @Nullable ResponseOrder order) {
        this.request = request;
        this.observer = observer;
        this.order = order;
    }

    /**
     * Gives the request its place in the order of responses, if the model keeps one. To be called once, when the
     * request begins or is completed without having been queued.
     */
    public void takePlace() {
        if (order != null) {
            place = order.nextPlace();
        }
    }

    /** Sets the listener that sees the terminal response; to be called before the request is queued. */
    public void onCompletion(CompletionListener observing) {
        listener = observing;
    }

    /** Returns the channel of a decoupled model; {@code null} until it is opened. */
    @Nullable
    public ResponseChannel channel() {
        return channel;
    }

    /** Sends all responses through a channel from now on. */
    public void open(ResponseChannel opened) {
        channel = opened;
        request.detach();
    }

    @Override
    public void retain() {
        request.retain();
    }

    @Override
    public void release() {
        request.release();
    }

    /** Says whether the responses of a decoupled model were opened. */
    public boolean isStreaming() {
        return channel != null;
    }

    /** Says whether the responses of a decoupled model were opened, and may still be sent. */
    public boolean isStreamOpen() {
        ResponseChannel opened = channel;
        return opened != null && !opened.isEnded();
    }

    /**
     * Tells the answer that counts, after what goes before it.
     *
     * @param actions what the backend does about a withdrawal, if that is anything
     */
    void deliver(ResponseEvent answer, @Nullable CancelActions actions) {
        if (listener != null) {
            listener.completed(answer);
        }
        if (actions == null) {
            sendTerminal(answer);
            return;
        }
        request.retain();
        Runnable telling = () -> {
            sendTerminal(answer);
            request.release();
        };
        if (actions.close(telling)) {
            telling.run();
        }
    }

    /** Tells the answer that counts. */
    void sendTerminal(ResponseEvent answer) {
        ResponseEvent last = place < 0 ? answer : new ResponseEvent.Terminal(answer);
        ResponseChannel opened = channel;
        if (opened == null) {
            send(last);
        } else {
            opened.sendTerminal(last);
        }
    }

    /** Tells an answer when it is its turn. */
    public void send(ResponseEvent answer) {
        if (place < 0 || order == null) {
            sendNow(answer);
        } else {
            order.send(place, this, answer, answer instanceof ResponseEvent.Terminal);
        }
    }

    /** Calls the observer; what it throws is logged. */
    @Override
    public void sendNow(ResponseEvent answer) {
        try {
            answer.deliverTo(observer);
        } catch (Throwable e) {
            request.log("observer of responses failed", e);
        }
    }
}
