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
 * Runs the model of a session repeatedly, without allocating. Confined to one thread at a time, its user, except {@link
 * #terminate} and {@link #close}, which any thread may call at any time.
 *
 * <p>The order of a run is {@link #begin}, inputs and outputs, {@link #run}, results, {@link #end}; {@code end} belongs
 * in a {@code finally}. Native objects are used only between {@code begin} and {@code end}, and {@code lock} orders
 * these two with the calls of other threads: {@code terminate} reaches only the run options of the run with the given
 * id, so a late call does not stop the next run or touch released options; and {@code close} releases at once if no run
 * is in progress, or leaves the release to {@code end}. The session is retained for the lifetime of the execution, so
 * that it cannot be released first.
 */
public final class OrtExecution implements AutoCloseable {
    private final OrtSession session;
    private final OrtApi api;
    private final OrtScratch scratch;
    private final TensorSlot[] inputs;
    private final TensorSlot[] outputs;
    private final int requiredInputs;
    private final MemorySegment inputNames;
    private final MemorySegment inputValues;
    private final MemorySegment outputNames;
    private final MemorySegment outputValues;
    private final long options;

    /** Index of each output of the model in the arrays of the current run; -1 for an output that was not requested. */
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
        // Freed by the garbage collector. To close memory that several threads use, the JVM stops its threads one after
        // another, which takes long where there are thousands.
        Arena arena = Arena.ofAuto();
        scratch = new OrtScratch(arena);
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
     * @return the run's id, for {@link #terminate}
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
     * Passes input {@code index} without a copy. Strings are copied: each is its length in 4 bytes, little-endian, then
     * its bytes.
     *
     * @param data native memory that stays alive and unchanged until {@link #end}
     * @throws IllegalArgumentException if the size of {@code data} does not match the shape
     */
    public void input(int index, MemorySegment data, long... shape) throws OrtException {
        requireBegun();
        inputs[index].setInput(data, shape);
    }

    /**
     * Passes input {@code index} in memory of the session's device, without a copy.
     *
     * @param data its address on the device, a multiple of {@link OrtProviders#ALIGNMENT}, and its size; the work that
     *     writes it has ended, and it stays alive and unchanged until {@link #end}
     * @throws IllegalArgumentException if address or size do not fit, or for strings
     * @throws IllegalStateException if the session has no device
     */
    public void inputOnDevice(int index, MemorySegment data, long... shape) throws OrtException {
        requireBegun();
        inputs[index].setOnDevice(deviceMemory(), data, shape);
    }

    /**
     * Requests output {@code index} in memory of the session's device, which is written when {@link #run} returns. The
     * run fails if the output has another shape.
     *
     * @param target as of {@link #inputOnDevice}
     * @throws IllegalArgumentException as there
     * @throws IllegalStateException as there
     */
    public void outputOnDevice(int index, MemorySegment target, long... shape) throws OrtException {
        requireBegun();
        outputs[index].setOnDevice(deviceMemory(), target, shape);
        request(index, outputs[index].value());
    }

    private long deviceMemory() {
        if (session.deviceMemory() == 0) {
            throw new IllegalStateException("session: on the CPU (expected: on a device)");
        }
        return session.deviceMemory();
    }

    /** Requests output {@code index} in memory of ONNX Runtime's own, for {@link #takeOutput}. */
    public void output(int index) {
        requireBegun();
        outputs[index].unset();
        request(index, 0);
    }

    /**
     * Requests output {@code index} in memory of the caller. The run fails if the output has another shape.
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
     * @throws OrtException if an input was not passed, or ONNX Runtime reports a failure, a termination among them
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
    private int collectInputs() throws OrtException {
        int count = 0;
        for (int i = 0; i < inputs.length; i++) {
            if (inputs[i].isSet()) {
                inputNames.setAtIndex(JAVA_LONG, count, session.inputName(i));
                inputValues.setAtIndex(JAVA_LONG, count, inputs[i].value());
                count++;
            } else if (i < requiredInputs) {
                inputs[i].requireOptional(); // ONNX Runtime does not check, and operators would read a missing input
            }
        }
        return count;
    }

    /**
     * Passes output {@code index} of a successful run to the caller, which closes it. Possible once, and only for an
     * output that was requested without memory.
     */
    public OrtValue takeOutput(int index) throws OrtException {
        requireBegun();
        int position = positions[index];
        if (position < 0 || outputs[index].isSet() || outputValues.getAtIndex(JAVA_LONG, position) == 0) {
            throw new IllegalStateException("output " + index + ": not available (expected: requested and computed)");
        }
        if (session.deviceMemory() != 0) {
            OrtProviders.requireHost(api, outputValues.getAtIndex(JAVA_LONG, position), scratch);
        }
        OrtValue value = OrtValue.adopt(session.library(), outputValues.getAtIndex(JAVA_LONG, position), scratch);
        outputValues.setAtIndex(JAVA_LONG, position, 0);
        return value;
    }

    /** Ends the run, if any: drops references to its memory and frees outputs that were not taken. */
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

    /** Returns whether the execution was closed during the run. In that case the caller must release it. */
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

    /** Makes the run with id {@code run} fail soon. Has no effect if the run has not begun or has ended. Any thread. */
    public void terminate(long run) {
        lock.lock();
        try {
            if (busy && !terminated && this.runId == run) {
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

    /** Refuses further runs, and releases everything. A current run delays the release to its end. Any thread. */
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
        session.references().release();
    }

    private void requireBegun() {
        if (!begun) {
            throw new IllegalStateException("execution: idle (expected: begun)");
        }
    }
}
