package dev.nereid.examples.repeat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Shape;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The only response to a request of a model that is not decoupled: the first element, after its delay. Safe for use by
 * any thread; the thread that sets {@code ended} ends the execution.
 */
final class SingleResponse {
    private static final Shape ONE = Shape.of(1);

    private final InferenceRequest request;
    private final DeferredExecution execution;
    private final int value;
    private final AtomicBoolean ended = new AtomicBoolean();

    private SingleResponse(InferenceRequest request, DeferredExecution execution, int value) {
        this.request = request;
        this.execution = execution;
        this.value = value;
    }

    /**
     * Sends the response later. The execution ends with it.
     *
     * @param batch the batch of this request alone
     * @param delayMillis the time before the response, in milliseconds
     */
    static void begin(Batch batch, InferenceRequest request, int value, long delayMillis, Timer timer) {
        SingleResponse response = new SingleResponse(request, batch.defer(), value);
        request.onCancel(response::cancel);
        timer.run(response::send, delayMillis);
    }

    private void cancel() {
        if (ended.compareAndSet(false, true)) {
            execution.fail(new BackendException(ErrorCode.CANCELLED, "request was cancelled"));
        }
    }

    private void send() {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        try {
            request.response()
                    .allocate(RepeatBackend.OUT, DataType.INT32, ONE)
                    .data()
                    .set(Repetition.INT, 0, value);
            request.response()
                    .allocate(RepeatBackend.IDX, DataType.UINT32, ONE)
                    .data()
                    .set(Repetition.INT, 0, 0);
            execution.complete();
        } catch (BackendException e) {
            execution.fail(e);
        } catch (RuntimeException | Error e) {
            execution.fail(new BackendException(ErrorCode.INTERNAL, "response failed: " + e, e));
        }
    }
}
