package dev.nereid.testkit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A request of a {@link FakeBatch}. Guarded by its own lock: a test may cancel it on any thread while a backend
 * executes it.
 *
 * <p>It belongs to a model that is not decoupled, unless it has a {@link FakeSender}. Backends that request its own
 * response get an exception: this request is executed as part of its batch.
 */
public final class FakeRequest implements InferenceRequest {
    private final int batchSize;
    private final Map<String, Tensor> inputs = new LinkedHashMap<>();
    private final List<String> requestedOutputs;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Runnable> cancelActions = new ArrayList<>();

    @GuardedBy("lock")
    private boolean cancelled;

    @GuardedBy("lock")
    private boolean completed;

    @GuardedBy("lock")
    private Optional<BackendException> failure = Optional.empty();

    private Optional<FakeSender> sender = Optional.empty();
    private long timeoutMicros;

    /**
     * Creates a request.
     *
     * @param batchSize the number of its items
     * @param requestedOutputs the requested outputs
     */
    public FakeRequest(int batchSize, List<String> requestedOutputs) {
        this.batchSize = batchSize;
        this.requestedOutputs = List.copyOf(requestedOutputs);
    }

    /**
     * Adds an input.
     *
     * @param name its name
     * @param tensor its content, which must stay alive until the batch is finished
     * @return this request
     */
    public FakeRequest with(String name, Tensor tensor) {
        inputs.put(name, tensor);
        return this;
    }

    /**
     * Makes this a request to a decoupled model.
     *
     * @param responses records the responses
     * @return this request
     */
    public FakeRequest with(FakeSender responses) {
        sender = Optional.of(responses);
        return this;
    }

    /**
     * Sets the timeout of the request.
     *
     * @param micros the time in microseconds; 0 for none, which is the default
     * @return this request
     */
    public FakeRequest withTimeoutMicros(long micros) {
        timeoutMicros = micros;
        return this;
    }

    /**
     * Cancels the request, as its client would. Runs the cancel actions of the backend, unless the request is complete.
     */
    public void cancel() {
        List<Runnable> actions;
        lock.lock();
        try {
            if (cancelled || isCompleted()) {
                return;
            }
            cancelled = true;
            sender.ifPresent(FakeSender::cancel);
            actions = List.copyOf(cancelActions);
        } finally {
            lock.unlock();
        }
        actions.forEach(Runnable::run);
        sender.ifPresent(FakeSender::runActions);
    }

    /**
     * Returns the error with which the backend failed the request.
     *
     * @return the first one, or empty if there was none
     */
    public Optional<BackendException> failure() {
        lock.lock();
        try {
            return failure;
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean isCompleted() {
        return sender.map(FakeSender::hasEnded).orElse(completed);
    }

    void finish() {
        lock.lock();
        try {
            completed = true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public String id() {
        return "";
    }

    @Override
    public int batchSize() {
        return batchSize;
    }

    @Override
    public List<String> inputs() {
        return List.copyOf(inputs.keySet());
    }

    @Override
    public Optional<Tensor> input(String name) {
        return Optional.ofNullable(inputs.get(name));
    }

    @Override
    public List<String> requestedOutputs() {
        return requestedOutputs;
    }

    @Override
    public Map<String, ParameterValue> parameters() {
        return Map.of();
    }

    @Override
    public Optional<Sequence> sequence() {
        return Optional.empty();
    }

    @Override
    public long priority() {
        return 0;
    }

    @Override
    public long timeoutMicros() {
        return timeoutMicros;
    }

    @Override
    public OptionalLong deadlineNanos() {
        return OptionalLong.empty();
    }

    @Override
    public boolean isCancelled() {
        lock.lock();
        try {
            return cancelled;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public CancelHook onCancel(Runnable action) {
        boolean isLate;
        lock.lock();
        try {
            isLate = cancelled;
            if (!isLate) {
                cancelActions.add(action);
            }
        } finally {
            lock.unlock();
        }
        if (isLate) {
            action.run();
        }
        return () -> forget(action);
    }

    private void forget(Runnable action) {
        lock.lock();
        try {
            cancelActions.remove(action);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public InferenceResponse response() {
        throw new AssertionError("a response of one request (expected: outputs of the batch)");
    }

    @Override
    public void fail(BackendException error) {
        lock.lock();
        try {
            if (!completed) {
                completed = true;
                failure = Optional.of(error);
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public ResponseSender sender() {
        return sender.orElseThrow(() -> new IllegalStateException("model: not decoupled"));
    }
}
