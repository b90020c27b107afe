package dev.nereid.testkit;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.ParameterValue;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * A response created by a test, which counts its closes. Safe for use by any thread.
 *
 * @param model the name of the model
 * @param version its version
 * @param id the id of the call
 * @param outputs the outputs, whose memory is the test's
 * @param parameters the parameters
 * @param isFinal whether it ends its call
 * @param closes one permit for each time that it was closed
 */
public record FakeResponse(
        String model,
        long version,
        String id,
        List<NamedTensor> outputs,
        Map<String, ParameterValue> parameters,
        boolean isFinal,
        Semaphore closes)
        implements InferResponse {
    /**
     * Makes a response of version 1 of a model {@code m} to a call without an id.
     *
     * @param isLast whether it ends its call
     * @param outputs the outputs, whose memory is the test's
     * @return the response
     */
    public static FakeResponse of(boolean isLast, NamedTensor... outputs) {
        return of("m", 1, "", List.of(outputs), Map.of(), isLast);
    }

    /**
     * Makes a response.
     *
     * @param model the name of the model
     * @param version its version
     * @param id the id of the call
     * @param outputs the outputs, whose memory is the test's
     * @param parameters the parameters
     * @param isLast whether it ends its call
     * @return the response
     */
    public static FakeResponse of(
            String model,
            long version,
            String id,
            List<NamedTensor> outputs,
            Map<String, ParameterValue> parameters,
            boolean isLast) {
        return new FakeResponse(model, version, id, outputs, parameters, isLast, new Semaphore(0));
    }

    /**
     * Says how often it was closed.
     *
     * @return how often, also beyond the first time
     */
    public int timesClosed() {
        return closes.availablePermits();
    }

    /**
     * Waits until it was closed some more times.
     *
     * @param times how often
     * @param patience how long to wait at most
     * @return whether it was
     * @throws InterruptedException if the thread is interrupted
     */
    public boolean awaitCloses(int times, Duration patience) throws InterruptedException {
        return closes.tryAcquire(times, patience.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Override
    public void close() {
        closes.release();
    }
}
