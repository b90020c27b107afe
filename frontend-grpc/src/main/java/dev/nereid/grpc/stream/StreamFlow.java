package dev.nereid.grpc.stream;

import dev.nereid.api.ResponseFlow;
import dev.nereid.api.frontend.FlowSignal;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The flow of one request of a stream. Open while the transport accepts messages and none of the request waits, and
 * once the request or the stream has ended. Lock-free; safe for use by any thread.
 *
 * <p>An action waits for one of two events. While messages wait, {@link #check} is called after each that is written.
 * While none waits, the writer resumes the flow when the transport is ready.
 */
final class StreamFlow implements ResponseFlow {
    private final StreamWriter writer;
    private final StreamOutbox.Lane lane;
    private final FlowSignal signal = new FlowSignal(this::isOpen);

    /** {@code true} while the writer is to resume it. */
    private final AtomicBoolean paused = new AtomicBoolean();

    StreamFlow(StreamWriter writer, StreamOutbox.Lane lane) {
        this.writer = writer;
        this.lane = lane;
    }

    @Override
    public boolean isOpen() {
        return switch (writer.progress(lane)) {
            case WAITING -> false;
            case IDLE -> writer.isReady();
            case ENDED -> true;
        };
    }

    @Override
    public void whenOpen(Runnable action) {
        signal.whenOpen(action);
        pause();
    }

    /** Runs the action if the flow is open. Called after a message of the request was written, and at its end. */
    void check() {
        if (signal.isAwaited()) {
            signal.check();
            pause();
        }
    }

    /** Runs the action if the flow is open. Called by the writer for a flow that it was passed, when it is ready. */
    void resume() {
        paused.set(false);
        check();
    }

    /** Waits for the transport if there is an action and no message waits. */
    private void pause() {
        if (signal.isAwaited()
                && writer.progress(lane) == StreamOutbox.Progress.IDLE
                && paused.compareAndSet(false, true)) {
            writer.resumeLater(this);
        }
    }
}
