package dev.nereid.scheduler;

import dev.nereid.api.ResponseObserver;
import org.jspecify.annotations.Nullable;

/**
 * What the observer of one request is told: when it is its turn, and on which way. Lock-free; safe for use by any
 * thread, but {@link #open} is confined to the execution of the request. Which answer counts was settled before, by
 * the {@link ScheduledRequest}.
 *
 * <p>The last answer goes after what the backend does about a withdrawal, and through the stream of a decoupled model
 * if one was opened; all answers go through the order of the model, if it has one.
 */
final class RequestAnswers implements ResponseOrder.Recipient {
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
    RequestAnswers(ScheduledRequest request, ResponseObserver observer, @Nullable ResponseOrder order) {
        this.request = request;
        this.observer = observer;
        this.order = order;
    }

    /**
     * Gives the request its place in the order of responses, if the model keeps one. To be called once, when the request
     * begins or is completed without having been queued.
     */
    void takePlace() {
        if (order != null) {
            place = order.nextPlace();
        }
    }

    /** Sets the listener that sees the terminal response; to be called before the request is queued. */
    void onCompletion(CompletionListener observing) {
        listener = observing;
    }

    /** Returns the channel of a decoupled model; {@code null} until it is opened. */
    @Nullable
    ResponseChannel channel() {
        return channel;
    }

    /** Sends all responses through a channel from now on. */
    void open(ResponseChannel opened) {
        channel = opened;
        request.straggle();
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
    boolean areStreamed() {
        return channel != null;
    }

    /** Says whether the responses of a decoupled model were opened, and may still be sent. */
    boolean areSent() {
        ResponseChannel opened = channel;
        return opened != null && !opened.isEnded();
    }

    /**
     * Tells the answer that counts, after what goes before it.
     *
     * @param actions what the backend does about a withdrawal, if that is anything
     */
    void deliver(Answer answer, @Nullable CancelActions actions) {
        if (listener != null) {
            listener.completed(answer);
        }
        if (actions == null) {
            tellLast(answer);
            return;
        }
        request.retain();
        Runnable telling = () -> {
            tellLast(answer);
            request.release();
        };
        if (actions.close(telling)) {
            telling.run();
        }
    }

    /** Tells the answer that counts. */
    void tellLast(Answer answer) {
        Answer last = place < 0 ? answer : new Answer.Last(answer);
        ResponseChannel opened = channel;
        if (opened == null) {
            tell(last);
        } else {
            opened.sendTerminal(last);
        }
    }

    /** Tells an answer when it is its turn. */
    void tell(Answer answer) {
        if (place < 0 || order == null) {
            sendNow(answer);
        } else {
            order.tell(place, this, answer, answer instanceof Answer.Last);
        }
    }

    /** Calls the observer; what it throws is logged. */
    @Override
    public void sendNow(Answer answer) {
        try {
            answer.tell(observer);
        } catch (Throwable e) {
            request.log("observer of responses failed", e);
        }
    }
}
