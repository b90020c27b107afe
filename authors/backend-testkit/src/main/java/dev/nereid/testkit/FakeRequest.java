package dev.nereid.testkit;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Tensor;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A request of a {@link FakeBatch}. Its end is guarded by a lock: a test may cancel it on any thread while a backend
 * executes it.
 *
 * <p>It belongs to a model that is not decoupled, unless it has a {@link FakeSender} of many responses; the model has the
 * states that the request has, and no iterative sequences unless the request says so. A backend that requests its own
 * response fails the test, unless the test gave it memory for one: the request is executed as part of its batch. The fluent
 * methods are called before the batch is executed.
 */
public final class FakeRequest implements InferenceRequest {
    private final int batchSize;
    private final Map<String, Tensor> inputs = new LinkedHashMap<>();
    private final List<String> requestedOutputs;
    private final RecordedCompletion completion = new RecordedCompletion();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private final Map<String, FakeSequenceState> states = new LinkedHashMap<>();
    private Optional<FakeSender> sender = Optional.empty();
    private Optional<RecordedResponse> response = Optional.empty();
    private Optional<Sequence> sequence = Optional.empty();
    private OptionalLong deadlineNanos = OptionalLong.empty();
    private String id = "";
    private final AtomicInteger leases = new AtomicInteger();
    private volatile boolean isSenderRequested;
    private boolean isNull;
    private boolean isIterative;
    private long timeoutMicros;

    /**
     * Creates a request.
     *
     * @param batchSize the number of its items
     */
    public FakeRequest(int batchSize, List<String> requestedOutputs) {
        this.batchSize = batchSize;
        this.requestedOutputs = List.copyOf(requestedOutputs);
    }

    /**
     * Adds an input.
     *
     * @param tensor its content, which must stay alive until the batch is finished
     */
    public FakeRequest with(String name, Tensor tensor) {
        inputs.put(name, tensor.withName(name));
        return this;
    }

    /**
     * Makes this a request to a decoupled model, or gives a sender {@linkplain FakeSender#ofOneResponse of one response} to
     * a request of another model, which is detached from its batch when the backend requests it.
     *
     * @param responses records the responses
     */
    public FakeRequest with(FakeSender responses) {
        sender = Optional.of(responses);
        if (!responses.hasOneResponse()) {
            completion.follow(responses);
        }
        return this;
    }

    /**
     * Gives the request its own response, which the backend fills.
     *
     * @param memory allocates memory for outputs
     */
    public FakeRequest withResponse(LeakCheckingMemory memory) {
        response = Optional.of(new RecordedResponse(memory));
        return this;
    }

    /**
     * Adds a state of the request's sequence.
     *
     * @param output the name of the state's output
     * @param memory allocates memory for its new value
     */
    public FakeRequest withState(String output, LeakCheckingMemory memory) {
        states.put(output, new FakeSequenceState(output, memory));
        return this;
    }

    /**
     * Adds a state of the request's sequence that has one buffer for its present and its new value.
     *
     * @param output the name of the state's output
     * @param memory allocates memory for its new value
     * @param present the value with which that memory begins
     */
    public FakeRequest withState(String output, LeakCheckingMemory memory, Tensor present) {
        states.put(output, new FakeSequenceState(output, memory, present));
        return this;
    }

    /**
     * Sets the id of the request.
     *
     * @param name the id; empty for none, which is the default
     */
    public FakeRequest withId(String name) {
        id = name;
        return this;
    }

    /** Adds a text as a parameter. */
    public FakeRequest withParameter(String name, String value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds an integer as a parameter. */
    public FakeRequest withParameter(String name, long value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds a number as a parameter. */
    public FakeRequest withParameter(String name, double value) {
        parameters.put(name, value);
        return this;
    }

    /** Adds a truth value as a parameter. */
    public FakeRequest withParameter(String name, boolean value) {
        parameters.put(name, value);
        return this;
    }

    /**
     * Adds parameters.
     *
     * @param added their names and values
     */
    public FakeRequest withParameters(Parameters added) {
        parameters.putAll(added.asMap());
        return this;
    }

    /** Makes the request part of a sequence. */
    public FakeRequest withSequence(Sequence position) {
        sequence = Optional.of(position);
        return this;
    }

    /**
     * Sets the deadline of the client.
     *
     * @param nanos a time on the scale of {@link System#nanoTime()}
     */
    public FakeRequest withDeadlineNanos(long nanos) {
        deadlineNanos = OptionalLong.of(nanos);
        return this;
    }

    /**
     * Makes this a null request. The test adds its inputs as the server does: zeros, empty texts for
     * {@link dev.nereid.spi.DataType#BYTES}, and control inputs that say that it is not ready.
     */
    public FakeRequest asNullRequest() {
        isNull = true;
        return this;
    }

    /** Makes this a request to a model with iterative sequences, which may be rescheduled. */
    public FakeRequest asIterative() {
        isIterative = true;
        return this;
    }

    /**
     * Sets the timeout of the request.
     *
     * @param micros the time in microseconds; 0 for none, which is the default
     */
    public FakeRequest withTimeoutMicros(long micros) {
        timeoutMicros = micros;
        return this;
    }

    /**
     * Cancels the request, as its client would. Runs the cancel actions of the backend, unless the request is complete.
     */
    public void cancel() {
        completion.cancel();
        sender.ifPresent(FakeSender::runActions);
    }

    /**
     * Returns the error with which the backend failed the request.
     *
     * @return the first one, or empty if there was none; that of a sender of one response included
     */
    public Optional<BackendException> failure() {
        return isDetached() ? completion.failure().or(() -> sender.flatMap(FakeSender::failure)) : completion.failure();
    }

    /** Returns the outputs of the request's own response, until its batch is closed. */
    public Map<String, Tensor> outputs() {
        return response.map(RecordedResponse::outputs).orElseGet(Map::of);
    }

    /**
     * Returns the parameters of the request's own response.
     *
     * @return the parameters; none if it has no own response
     */
    public Parameters responseParameters() {
        return response.map(RecordedResponse::parameters).orElseGet(() -> Parameters.of(Map.of()));
    }

    /**
     * Returns the new value of a state, until the batch is closed.
     *
     * @param output the name of the state's output
     * @return the value, or empty if the backend wrote none
     */
    public Optional<Tensor> writtenState(String output) {
        return Optional.ofNullable(states.get(output)).flatMap(FakeSequenceState::value);
    }

    /**
     * Says whether the backend rescheduled the request. Its next execution is that of another request of the test, with the
     * same inputs and the new values of the states.
     *
     * @return whether it did
     */
    public boolean isRescheduled() {
        return completion.isRescheduled();
    }

    /**
     * Says whether the request is complete.
     *
     * @return whether it failed, or its execution is finished
     */
    public boolean isComplete() {
        return completion.isComplete();
    }

    /**
     * Says whether the backend requested the sender, and so has to end it.
     *
     * @return whether it did
     */
    public boolean isSenderRequested() {
        return isSenderRequested;
    }

    /**
     * Returns the number of leases on the inputs that the backend has not ended.
     *
     * @return the number of calls of {@link #leaseInputs()} without the end of their lease
     */
    public int openLeases() {
        return leases.get();
    }

    /** Returns whether a sender has detached the request of a model that is not decoupled from its batch. */
    boolean isDetached() {
        return isSenderRequested && sender.filter(FakeSender::hasOneResponse).isPresent();
    }

    boolean hasState(String output) {
        return states.containsKey(output);
    }

    /** Frees the outputs and states. */
    void release() {
        response.ifPresent(RecordedResponse::release);
        states.values().forEach(FakeSequenceState::close);
    }

    void finish() {
        completion.finish();
    }

    @Override
    public String id() {
        return id;
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
    public Parameters parameters() {
        return Parameters.of(parameters);
    }

    @Override
    public Optional<Sequence> sequence() {
        return sequence;
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
        return deadlineNanos;
    }

    @Override
    public boolean isCancelled() {
        return completion.isCancelled();
    }

    @Override
    public CancelHook onCancel(Runnable action) {
        return completion.onCancel(action);
    }

    /**
     * Counts the actions that the backend has registered and not removed.
     *
     * @return the number of actions of {@link #onCancel}, including actions that have run
     */
    public int openCancelActions() {
        return completion.openActions();
    }

    @Override
    public InferenceResponse response() {
        if (isDetached()) {
            throw new IllegalStateException("response: the request has a sender (expected: a response of that)");
        }
        return response.orElseThrow(
                () -> new AssertionError("a response of one request (expected: outputs of the batch, or a request with"
                        + " withResponse(LeakCheckingMemory))"));
    }

    @Override
    public boolean isNullRequest() {
        return isNull;
    }

    @Override
    public SequenceState state(String output) {
        FakeSequenceState state = states.get(output);
        return state == null ? InferenceRequest.super.state(output) : state;
    }

    @Override
    public void reschedule() {
        if (!isIterative) {
            InferenceRequest.super.reschedule();
        }
        completion.reschedule();
    }

    @Override
    public void fail(BackendException error) {
        completion.fail(error);
    }

    @Override
    public ResponseSender sender() {
        FakeSender found = sender.orElseThrow(
                () -> new AssertionError("a sender (expected: one that the test gives the request: with(FakeSender))"));
        if (!isSenderRequested && found.hasOneResponse()) {
            completion.follow(found);
        }
        isSenderRequested = true;
        return found;
    }

    @Override
    public Runnable leaseInputs() {
        leases.incrementAndGet();
        AtomicBoolean ended = new AtomicBoolean();
        return () -> {
            if (ended.compareAndSet(false, true)) {
                leases.decrementAndGet();
            }
        };
    }
}
