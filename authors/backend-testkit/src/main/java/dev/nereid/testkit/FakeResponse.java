package dev.nereid.testkit;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * A response created by a test, which counts its closes. Safe for use by any thread.
 *
 * @param model the name of the model
 * @param outputs the outputs, with memory of the test
 * @param isFinal whether it ends its request
 * @param closes one permit for each close
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
     * Creates a response to a request without an id. It is of version 1 of a model {@code m}.
     *
     * @param isFinal whether it ends its request
     * @param outputs the outputs, with memory of the test
     */
    public static FakeResponse of(boolean isFinal, NamedTensor... outputs) {
        return of("m", 1, "", List.of(outputs), Map.of(), isFinal);
    }

    /**
     * Creates a response.
     *
     * @param model the name of the model
     * @param outputs the outputs, with memory of the test
     * @param isFinal whether it ends its request
     */
    public static FakeResponse of(
            String model,
            long version,
            String id,
            List<NamedTensor> outputs,
            Map<String, ParameterValue> parameters,
            boolean isFinal) {
        return new FakeResponse(model, version, id, outputs, parameters, isFinal, new Semaphore(0));
    }

    /**
     * Returns the number of closes.
     *
     * @return the number, which may exceed one
     */
    public int timesClosed() {
        return closes.availablePermits();
    }

    /**
     * Waits until it was closed some more times.
     *
     * @param timeout the limit on the wait
     * @return whether it was closed so often
     * @throws InterruptedException if the thread is interrupted
     */
    public boolean awaitCloses(int times, Duration timeout) throws InterruptedException {
        return closes.tryAcquire(times, timeout.toNanos(), TimeUnit.NANOSECONDS);
    }

    /** {@inheritDoc} Its close does nothing, since the memory is that of the test. */
    @Override
    public TensorLease lease(int output) {
        if (timesClosed() > 0) {
            throw new IllegalStateException("response: closed (expected: leased before its close)");
        }
        return new Lease(outputs.get(output).tensor());
    }

    @Override
    public void close() {
        closes.release();
    }

    /** A lease of memory of the test. */
    private record Lease(Tensor tensor) implements TensorLease {
        @Override
        public void close() {
            // the test frees its memory
        }
    }
}
