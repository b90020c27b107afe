package dev.nereid.benchmarks.python;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** One request to a model of the section, and its responses. Used by the thread that measures, but for the observer. */
final class EmbeddedCall implements ResponseObserver {
    private static final long TIMEOUT_SECONDS = 60;

    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile long responses;
    private volatile float[] last = {};
    private volatile String failure = "";

    private EmbeddedCall() {}

    /** Sends a request, and waits for its last response. */
    static EmbeddedCall make(InferenceServer server, String model, float... values)
            throws IOException, InterruptedException {
        EmbeddedCall call = new EmbeddedCall();
        MemorySegment data = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, values);
        InputTensor input = InputTensor.of("INPUT0", "FP32", new long[] {1, values.length}, data, MemoryPlace.HOST);
        server.infer(InferRequest.of(ModelRef.latest(model), List.of(input), () -> {}), call);
        if (!call.ended.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            throw new IOException(model + ": not completed within " + TIMEOUT_SECONDS + " s");
        }
        if (!call.failure.isEmpty()) {
            throw new IOException(model + ": " + call.failure);
        }
        return call;
    }

    long responses() {
        return responses;
    }

    /** Returns the tensor of the last response. */
    float[] output() {
        return last.clone();
    }

    @Override
    @SuppressWarnings("NonAtomicVolatileUpdate") // one response at a time
    public void onResponse(InferResponse response) {
        boolean isFinal = response.isFinal();
        try (response) {
            if (!response.outputs().isEmpty()) {
                last = response.requireOutput("OUTPUT0").data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
                responses++;
            }
        }
        if (isFinal) {
            ended.countDown();
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        failure = error.code() + ": " + error.getMessage();
    }

    @Override
    public void onCompleted() {
        ended.countDown();
    }

    @Override
    public void onError(InferenceException error) {
        failure = error.code() + ": " + error.getMessage();
        ended.countDown();
    }
}
