package dev.nereid.backend.tensorflow.graph;

import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * The types of the operations that lead to a model's outputs, including the functions that they call. Immutable.
 *
 * <p>They decide how a graph may be run, and whether it may keep its inputs.
 */
public final class GraphOperators {
    /** Operations of the old control flow: which of them run is decided during the run. */
    private static final Pattern CONTROL_FLOW =
            Pattern.compile("(Ref)?(Switch|Merge|Enter|Exit|NextIteration)|_SwitchN");

    /** Variables of TensorFlow 1, passed on as references. */
    private static final Pattern REFERENCES = Pattern.compile("Variable(V2)?|TemporaryVariable");

    /** Operations that may wait for others, so that these need other threads. */
    private static final Pattern WAITING = Pattern.compile(
            ".*(Queue|Barrier|Dataset|Iterator|Stage|MapClear|MapUnstage|Mutex|Recv|Collective|PyFunc|Accumulator).*"
                    + "|Unstage|.*Batch(Function)?|Unbatch|.*RpcCall.*");

    /** Operations that may keep a tensor beyond the run: variables, tables, stacks and queues that take it over. */
    private static final Pattern KEEPING = Pattern.compile(
            ".*(Assign|Enqueue|Stage|Push|Insert|TensorArray|Barrier|Accumulator|PyFunc|ScatterUpdate|Import"
                    + "|InitializeTable|TensorsMap|Dataset|Iterator).*"
                    + "|.*Apply[A-Z].*|Resource(Scatter|Strided).*|.*Session(Handle|Tensor).*|Batch(Function)?");

    private static final Pattern VARIABLES =
            Pattern.compile("VarHandleOp|_VarHandlesOp|Variable(V2)?|AutoReloadVariable");

    /** Operations that do more work than the number of weights bounds. */
    private static final Pattern LARGE_WORK = Pattern.compile(
            ".*(Conv|While|For|Switch|Merge|Enter|Resize|Image|Decode|Pool|FFT|Fft|NonMax|Sort|TopK|Svd|Qr|Cholesky"
                    + "|Matrix|BatchMatMul|Einsum|LSTM|Lstm|RNN|Rnn|Gru|GRU|Queue|Dataset|Iterator|Read(File|er)).*");

    private final Set<String> types;
    private final long weightBytes;

    GraphOperators(Set<String> types, long weightBytes) {
        this.types = Set.copyOf(types);
        this.weightBytes = weightBytes;
    }

    public boolean contains(String type) {
        return types.contains(type);
    }

    /** Returns whether the executor on one thread cannot run the graph: it refuses such operations. */
    public boolean needsFullExecutor() {
        return any(CONTROL_FLOW) || any(REFERENCES);
    }

    /** Returns whether operations may wait for others, so that the graph needs a pool of threads. */
    public boolean needsThreads() {
        return any(WAITING);
    }

    /** Returns whether the graph may keep its inputs beyond a run. */
    public boolean keepsInputs() {
        return any(KEEPING);
    }

    public boolean readsVariables() {
        return any(VARIABLES);
    }

    /**
     * Returns whether a run is so little work that waking another thread for it would take longer.
     *
     * @param variableBytes the size of the variables' files
     * @param limitBytes the largest size of weights, in variables and constants
     */
    public boolean isLittleWork(long variableBytes, long limitBytes) {
        return weightBytes + variableBytes <= limitBytes && !any(LARGE_WORK) && !needsThreads();
    }

    private boolean any(Pattern pattern) {
        return types.stream().anyMatch(type -> pattern.matcher(type).matches());
    }

    /** Returns the types in the order of their names, for logs. */
    @Override
    public String toString() {
        return new TreeSet<>(types).toString();
    }
}
