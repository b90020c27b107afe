package dev.nereid.examples.repeat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Sends the responses to one request, one for each element of its input. Owned by one thread at a time, that of the
 * next step.
 *
 * <p>Between two steps {@code waiting} is set, and the thread that clears it takes the next step: the timer, the thread
 * that finds the client ready for more, or the thread that cancels the request, so that a cancelled request ends at
 * once. Only a step ends the sender, so that inputs are available while a step reads them.
 *
 * <p>A client that reads slowly gets its responses later than their times, and loses none: a response waits for the
 * sender to be ready.
 */
final class Repetition {
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final Shape ONE = Shape.of(1);

    private final ResponseSender sender;
    private final Tensor in;
    private final Tensor delay;
    private final Timer timer;
    private final AtomicBoolean waiting = new AtomicBoolean();
    private long next;

    private Repetition(ResponseSender sender, Tensor in, Tensor delay, Timer timer) {
        this.sender = sender;
        this.in = in;
        this.delay = delay;
        this.timer = timer;
    }

    /**
     * Begins the responses to a request, which continue on other threads.
     *
     * @param in the values of the responses
     * @param delay the time before each response, in milliseconds; of the same shape
     */
    static void begin(InferenceRequest request, Tensor in, Tensor delay, Timer timer) {
        Repetition repetition = new Repetition(request.sender(), in, delay, timer);
        request.onCancel(repetition::resume);
        repetition.advance(false);
    }

    private void resume() {
        if (waiting.compareAndSet(true, false)) {
            advance(true);
        }
    }

    /** Takes the next step when the client is ready for it. */
    private void resumeWhenReady() {
        if (sender.isReady()) {
            resume();
        } else {
            sender.onReady(this::resume);
        }
    }

    /** Takes a step. Any failure ends the request, since no other code would. */
    private void advance(boolean timeIsOver) {
        try {
            if (sender.isCancelled()) {
                sender.complete();
                return;
            }
            if (timeIsOver) {
                sender.send(response());
                next++;
            }
            await();
        } catch (BackendException e) {
            sender.fail(e);
        } catch (RuntimeException | Error e) {
            sender.fail(new BackendException(ErrorCode.INTERNAL, "response " + next + " failed: " + e, e));
        }
    }

    /** Waits for the time of the next response, if there is one. */
    private void await() {
        if (next == in.shape().elementCount()) {
            sender.complete();
            return;
        }
        long delayMillis = Integer.toUnsignedLong(delay.data().getAtIndex(INT, next));
        waiting.set(true);
        timer.run(this::resumeWhenReady, delayMillis);
        if (sender.isCancelled()) {
            resume(); // cancelled before the wait began: no other thread resumes before the time is over
        }
    }

    private InferenceResponse response() {
        InferenceResponse response = sender.newResponse();
        try {
            Tensor out = response.allocate(RepeatBackend.OUT, DataType.INT32, ONE);
            out.data().set(INT, 0, in.data().getAtIndex(INT, next));
            Tensor index = response.allocate(RepeatBackend.IDX, DataType.UINT32, ONE);
            index.data().set(INT, 0, (int) next);
            return response;
        } catch (RuntimeException | Error e) {
            response.discard();
            throw e;
        }
    }
}
