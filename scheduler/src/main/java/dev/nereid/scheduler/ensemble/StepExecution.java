package dev.nereid.scheduler.ensemble;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.statistics.StepObserver;
import org.jspecify.annotations.Nullable;

/**
 * One request to the model of a step. Its observer's methods pass everything to the {@link EnsembleRun}, to which its
 * fields are confined.
 */
final class StepExecution implements ResponseObserver, StepObserver, InflightLimit.Waiter, StepSet.Member {
    private final EnsembleRun run;
    private final DataFlow.Ready ready;
    private final @Nullable ResponseFlow flow;

    /** The position in a sequence of this request and of its outputs. */
    private TensorValue.@Nullable Mark mark;

    /** The {@code StepSet} that the step is in. */
    private @Nullable Object set;

    private int place;
    private @Nullable Cancellation cancellation;
    private int batchSize;
    private boolean responded;

    /** Written before the last notification, and read after it. */
    private long inputNanos;

    private long inferNanos;
    private long outputNanos;

    /** Creates the request of a step, with the flow of its responses; {@code null} if it has one response. */
    StepExecution(EnsembleRun run, DataFlow.Ready ready, @Nullable ResponseFlow flow) {
        this.run = run;
        this.ready = ready;
        this.flow = flow;
    }

    StepPlan step() {
        return ready.step();
    }

    DataFlow.Ready ready() {
        return ready;
    }

    TensorValue.@Nullable Mark mark() {
        return mark;
    }

    void requested(TensorValue.@Nullable Mark position, int items) {
        mark = position;
        batchSize = items;
    }

    /** Returns the size of its batch dimension; 0 if its model has none. */
    int batchSize() {
        return batchSize;
    }

    void submitted(Cancellation handle) {
        cancellation = handle;
    }

    /** Cancels it, if it was submitted. */
    void cancel() {
        if (cancellation != null) {
            requireNonNull(cancellation).cancel();
        }
    }

    @Override
    public void placed(Object owner, int index) {
        set = owner;
        place = index;
    }

    @Override
    public void removed() {
        set = null;
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // Sets are mutable.
    public boolean isIn(Object other) {
        return set == other;
    }

    @Override
    public int place() {
        return place;
    }

    /** Records a response of the step; returns whether it is the first. */
    boolean isFirstResponse() {
        boolean first = !responded;
        responded = true;
        return first;
    }

    @Override
    public void granted() {
        run.offer(new EnsembleEvent.Granted(this));
    }

    @Override
    public void computed(long input, long infer, long output) {
        inputNanos = input;
        inferNanos = infer;
        outputNanos = output;
    }

    long inputNanos() {
        return inputNanos;
    }

    long inferNanos() {
        return inferNanos;
    }

    long outputNanos() {
        return outputNanos;
    }

    @Override
    public void onResponse(InferResponse response) {
        if (flow != null) {
            run.arrived();
        }
        run.offer(new EnsembleEvent.Responded(this, response));
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        run.offer(new EnsembleEvent.FailedResponse(this, error));
    }

    @Override
    public void onCompleted() {
        run.offer(new EnsembleEvent.Completed(this));
    }

    @Override
    public void onError(InferenceException error) {
        run.offer(new EnsembleEvent.Failed(this, error));
    }

    @Override
    public boolean isLong() {
        return run.isLong();
    }

    @Override
    public RequestProtocol protocol() {
        return RequestProtocol.EMBEDDED;
    }

    @Override
    public ResponseFlow flow() {
        return flow == null ? ResponseFlow.OPEN : flow;
    }
}
