package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Runs the model of a session repeatedly, without allocating. Confined to one thread at a time, its user, but for
 * {@link #terminate} and {@link #close}, which any thread may call at any time.
 *
 * <p>A run goes {@link #begin}, inputs and outputs, {@link #run}, results, {@link #end}; {@code end} belongs in a
 * {@code finally}. Only what lies between {@code begin} and {@code end} touches native objects on behalf of the user,
 * and {@code lock} orders its two borders with the calls of other threads: {@code terminate} reaches the run options of
 * the run that is named by its ticket or nothing, so a late one neither stops the next run nor touches released
 * options; and {@code close} releases at once if nobody is inside, or leaves it to {@code end}. The session is acquired
 * for as long as the execution lives, so that it cannot be released first.
 */
public final class OrtExecution implements AutoCloseable {
    private final OrtSession session;
    private final OrtApi api;
    private final Arena arena = Arena.ofShared();
    private final OrtScratch scratch = new OrtScratch(arena);
    private final TensorSlot[] inputs;
    private final TensorSlot[] outputs;
    private final int requiredInputs;
    private final MemorySegment inputNames;
    private final MemorySegment inputValues;
    private final MemorySegment outputNames;
    private final MemorySegment outputValues;
    private final long options;

    /** For each output of the model, where it is in the arrays of the present run; -1 if it was not asked for. */
    private final int[] positions;

    private int outputCount;
    /** The user's own view of {@code busy}. */
    private boolean begun;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private long runId;

    @GuardedBy("lock")
    private boolean busy;

    @GuardedBy("lock")
    private boolean terminated;

    @GuardedBy("lock")
    private boolean closed;

    OrtExecution(OrtSession session, Map<String, String> runConfig) throws OrtException {
        session.references().retain();
        this.session = session;
        api = session.library().api();
        inputs = slots(session.inputs());
        requiredInputs = session.requiredInputs().size();
        outputs = slots(session.outputs());
        inputNames = arena.allocate(JAVA_LONG, Math.max(1, inputs.length));
        inputValues = arena.allocate(JAVA_LONG, Math.max(1, inputs.length));
        outputNames = arena.allocate(JAVA_LONG, Math.max(1, outputs.length));
        outputValues = arena.allocate(JAVA_LONG, Math.max(1, outputs.length));
        positions = new int[outputs.length];
        try {
            options = OrtRunOptions.create(api, runConfig);
        } catch (OrtException | RuntimeException e) {
            arena.close();
            session.references().release();
            throw e;
        }
    }

    private TensorSlot[] slots(List<OrtTensorInfo> infos) {
        return infos.stream()
                .map(info -> new TensorSlot(session.library(), scratch, info))
                .toArray(TensorSlot[]::new);
    }

    /**
     * Starts a run, with no inputs and no outputs yet.
     *
     * @return the run's ticket, by which {@link #terminate} names it
     * @throws IllegalStateException if the execution was closed, or the run before has not ended
     */
    public long begin() {
        lock.lock();
        try {
            if (closed || busy) {
                throw new IllegalStateException("execution: " + (closed ? "closed" : "running") + " (expected: idle)");
            }
            busy = true;
            begun = true;
            Arrays.fill(positions, -1);
            outputCount = 0;
            return ++runId;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Passes input {@code index}, where it lies. Strings are copied: each is its length in 4 bytes, little-endian, then
     * its bytes.
     *
     * @param data native memory that stays alive and unchanged until {@link #end}
     * @throws IllegalArgumentException if the size of {@code data} does not match the shape
     */
    public void input(int index, MemorySegment data, long... shape) throws OrtException {
        requireBegun();
        inputs[index].setInput(data, shape);
    }

    /** Asks for output {@code index} in memory of ONNX Runtime's own, from where {@link #takeOutput} gives it out. */
    public void output(int index) {
        requireBegun();
        outputs[index].unset();
        request(index, 0);
    }

    /**
     * Asks for output {@code index} in memory of the caller. The run fails if the output turns out to have another
     * shape.
     *
     * @param target native memory that stays alive until {@link #end}
     * @throws IllegalArgumentException if the size of {@code target} does not match the shape, or for strings
     */
    public void output(int index, MemorySegment target, long... shape) throws OrtException {
        requireBegun();
        outputs[index].setOutput(target, shape);
        request(index, outputs[index].value());
    }

    private void request(int index, long value) {
        if (positions[index] < 0) {
            positions[index] = outputCount++;
        }
        outputNames.setAtIndex(JAVA_LONG, positions[index], session.outputName(index));
        outputValues.setAtIndex(JAVA_LONG, positions[index], value);
    }

    /**
     * Runs the model. Blocks until it is done, failed or terminated.
     *
     * @throws OrtException if ONNX Runtime reports a failure, a termination among them
     * @throws IllegalStateException if an input was not passed
     */
    public void run() throws OrtException {
        requireBegun();
        int inputCount = collectInputs();
        api.run(
                session.handle(),
                options,
                inputNames.address(),
                inputValues.address(),
                inputCount,
                outputNames.address(),
                outputCount,
                outputValues.address());
    }

    /** Writes names and values of the inputs for C, and returns their number. */
    private int collectInputs() {
        int count = 0;
        for (int i = 0; i < inputs.length; i++) {
            if (inputs[i].isSet()) {
                inputNames.setAtIndex(JAVA_LONG, count, session.inputName(i));
                inputValues.setAtIndex(JAVA_LONG, count, inputs[i].value());
                count++;
            } else if (i < requiredInputs) {
                inputs[i].requireOptional(); // ONNX Runtime does not look, and lets operators read what is not there
            }
        }
        return count;
    }

    /**
     * Hands output {@code index} of a successful run to the caller, who closes it. Possible once, and only for an
     * output that was asked for without memory.
     */
    public OrtValue takeOutput(int index) throws OrtException {
        requireBegun();
        int position = positions[index];
        if (position < 0 || outputs[index].isSet() || outputValues.getAtIndex(JAVA_LONG, position) == 0) {
            throw new IllegalStateException("output " + index + ": nothing to take (expected: asked for and computed)");
        }
        OrtValue value = OrtValue.adopt(session.library(), outputValues.getAtIndex(JAVA_LONG, position), scratch);
        outputValues.setAtIndex(JAVA_LONG, position, 0);
        return value;
    }

    /** Ends the run: forgets its memory and frees the outputs that nobody took. Does nothing if none was begun. */
    public void end() {
        if (!begun) {
            return;
        }
        begun = false;
        for (TensorSlot input : inputs) {
            input.unset();
        }
        for (int i = 0; i < outputs.length; i++) {
            endOutput(i);
        }
        if (becomesIdle()) {
            release();
        }
    }

    private void endOutput(int index) {
        long value = positions[index] < 0 ? 0 : outputValues.getAtIndex(JAVA_LONG, positions[index]);
        if (value != 0 && !outputs[index].isSet()) {
            api.release(OrtFunction.ReleaseValue, value);
        }
        outputs[index].unset();
    }

    /** Returns whether the execution was closed meanwhile, so that it is now ours to release. */
    private boolean becomesIdle() {
        lock.lock();
        try {
            busy = false;
            if (terminated) {
                setTerminate(OrtFunction.RunOptionsUnsetTerminate);
                terminated = false;
            }
            return closed;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Makes the run with {@code ticket} fail soon, if it has begun and not ended; otherwise does nothing. Any thread.
     */
    public void terminate(long ticket) {
        lock.lock();
        try {
            if (busy && !terminated && this.runId == ticket) {
                setTerminate(OrtFunction.RunOptionsSetTerminate);
                terminated = true;
            }
        } finally {
            lock.unlock();
        }
    }

    /** Called under the lock although it is foreign code: it sets one field. */
    private void setTerminate(OrtFunction function) {
        try {
            api.call(function, options);
        } catch (OrtException e) {
            throw new IllegalStateException("run options cannot be changed", e);
        }
    }

    /** Lets no further run begin, and releases everything, when the present run ends if there is one. Any thread. */
    @Override
    public void close() {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            if (busy) {
                return;
            }
        } finally {
            lock.unlock();
        }
        release();
    }

    private void release() {
        for (TensorSlot input : inputs) {
            input.releaseValue();
        }
        for (TensorSlot output : outputs) {
            output.releaseValue();
        }
        api.release(OrtFunction.ReleaseRunOptions, options);
        arena.close();
        session.references().release();
    }

    private void requireBegun() {
        if (!begun) {
            throw new IllegalStateException("execution: idle (expected: begun)");
        }
    }
}
