package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Records events, and checks their protocol: one at a time, nothing after the end. Safe for use by any thread. */
public final class RecordingObserver implements ResponseObserver, AutoCloseable {
    private final List<InferResponse> responses = new CopyOnWriteArrayList<>();
    private final List<InferenceException> errors = new CopyOnWriteArrayList<>();
    private final List<InferenceException> failedResponses = new CopyOnWriteArrayList<>();
    private final List<String> violations = new CopyOnWriteArrayList<>();
    private final AtomicBoolean inside = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);
    private final ResponseFlow flow;
    private boolean isLong;
    private Runnable beforeResponse = () -> {};

    /** Declares that this observer works long on a response. */
    public RecordingObserver workingLong() {
        isLong = true;
        return this;
    }

    /** Runs an action at the begin of {@link #onResponse}, on the thread that delivers. */
    public RecordingObserver beforeResponse(Runnable action) {
        beforeResponse = action;
        return this;
    }

    @Override
    public boolean isLong() {
        return isLong;
    }

    public RecordingObserver() {
        this(ResponseFlow.OPEN);
    }

    public RecordingObserver(ResponseFlow flow) {
        this.flow = flow;
    }

    @Override
    public ResponseFlow flow() {
        return flow;
    }

    @Override
    public void onResponse(InferResponse response) {
        beforeResponse.run();
        enter();
        responses.add(response);
        leave(response.isFinal());
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        enter();
        failedResponses.add(error);
        leave(false);
    }

    @Override
    public void onCompleted() {
        enter();
        leave(true);
    }

    @Override
    public void onError(InferenceException error) {
        enter();
        errors.add(error);
        leave(true);
    }

    private void enter() {
        if (!inside.compareAndSet(false, true)) {
            violations.add("called by two threads at a time");
        }
        if (hasEnded()) {
            violations.add("called after the end");
        }
    }

    private void leave(boolean last) {
        inside.set(false);
        if (last) {
            ended.countDown();
        }
    }

    public boolean hasEnded() {
        return ended.getCount() == 0;
    }

    public boolean isSilent() {
        return !hasEnded() && responses.isEmpty();
    }

    /** Waits until the request has ended; fails if that takes too long. */
    public RecordingObserver await() {
        try {
            assertThat(ended.await(30, TimeUnit.SECONDS))
                    .as("completed in time")
                    .isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
        return this;
    }

    public List<InferResponse> responses() {
        return responses;
    }

    public List<InferenceException> failedResponses() {
        return failedResponses;
    }

    /** Returns the only response. */
    public InferResponse response() {
        check();
        assertThat(errors).isEmpty();
        assertThat(responses).hasSize(1);
        return responses.getFirst();
    }

    public Tensor output(String name) {
        for (NamedTensor output : response().outputs()) {
            if (output.name().equals(name)) {
                return output.tensor();
            }
        }
        throw new AssertionError("no output " + name + " in " + response().outputs());
    }

    public float[] floats(String name) {
        return output(name).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    public void assertError(ErrorCode code, String message) {
        check();
        assertThat(errors).hasSize(1);
        assertThat(errors.getFirst().code()).isEqualTo(code);
        assertThat(errors.getFirst().publicMessage()).isEqualTo(message);
    }

    public InferenceException error() {
        check();
        assertThat(errors).hasSize(1);
        return errors.getFirst();
    }

    public void check() {
        assertThat(violations).isEmpty();
    }

    /** Closes the responses. */
    @Override
    public void close() {
        responses.forEach(InferResponse::close);
    }
}
