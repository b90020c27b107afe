package dev.nereid.backend.tensorflow.capi;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Runs the graph of a session repeatedly. Confined to one thread at a time, its user, except {@link #close}, which any
 * thread may call at any time.
 *
 * <p>The order of a run is {@link #begin}, inputs and outputs, {@link #run}, results, {@link #end}; {@code end} belongs
 * in a {@code finally}. Native objects are used only between {@code begin} and {@code end}, and {@code lock} orders
 * these two with {@code close}, which releases at once if no run is in progress, or leaves the release to {@code end}.
 * The session is retained for the lifetime of the execution, so that it cannot be released first.
 */
public final class TfExecution implements AutoCloseable {
    /** The most dimensions of a tensor: with more TensorFlow ends the process. */
    public static final int MAX_RANK = 254;

    /** Larger arrays of strings are not kept for the next run. */
    private static final long MAX_KEPT_BYTES = 1 << 20;

    private final TfSession session;
    private final TfLibrary library;
    private final TfApi api;
    private final TfPort[] inputs;
    private final TfPort[] outputs;
    private final TfScratch fed;
    private final TfScratch fetched;
    private final TfStatus status;

    /** The strings of each input as TensorFlow sees them; grows with the requests up to a limit. */
    private final MemorySegment[] strings;

    /** The index of each output in the arrays of the current run; -1 for an output that was not requested. */
    private final int[] positions;

    private int inputCount;
    private int outputCount;
    /** The user's own view of {@code busy}. */
    private boolean begun;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private boolean busy;

    @GuardedBy("lock")
    private boolean closed;

    TfExecution(TfSession session, List<String> inputs, List<String> outputs) {
        session.references().retain();
        try {
            this.session = session;
            library = session.library();
            api = library.api();
            this.inputs = inputs.stream().map(session::port).toArray(TfPort[]::new);
            this.outputs = outputs.stream().map(session::port).toArray(TfPort[]::new);
            fed = new TfScratch(inputs.size());
            fetched = new TfScratch(outputs.size());
            strings = new MemorySegment[inputs.size()];
            Arrays.fill(strings, MemorySegment.NULL);
            positions = new int[outputs.size()];
            status = new TfStatus(api);
        } catch (RuntimeException e) {
            session.references().release();
            throw e;
        }
    }

    /**
     * Starts a run, with no inputs and no outputs yet.
     *
     * @throws IllegalStateException if the execution was closed, or the run before has not ended
     */
    public void begin() {
        lock.lock();
        try {
            if (closed || busy) {
                throw new IllegalStateException("execution: " + (closed ? "closed" : "running") + " (expected: idle)");
            }
            busy = true;
            begun = true;
            Arrays.fill(positions, -1);
            inputCount = 0;
            outputCount = 0;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Feeds input {@code index} without a copy, if it is aligned to 64 bytes; TensorFlow copies others itself. Strings
     * are never copied: each is its length in 4 bytes, little-endian, then its bytes.
     *
     * @param data native memory that stays alive and unchanged until {@link #end}, and as long as an output lies in it
     * @throws IllegalArgumentException if the size of {@code data} does not match the shape
     */
    public void input(int index, MemorySegment data, long... shape) {
        requireBegun();
        TfPort port = inputs[index];
        long count = TfDataType.elementCount(shape);
        if (port.type() == TfDataType.STRING) {
            MemorySegment array = stringArray(index, count);
            TfStrings.view(api, requireNative(data), count, array);
            feed(port, array, shape, CMemory.noDeallocation());
            return;
        }
        requireSize(port, requireNative(data), count);
        feed(port, count == 0 ? stringArray(index, 1).asSlice(0, 0) : data, shape, CMemory.noDeallocation());
    }

    /**
     * Feeds a copy of input {@code index}, which TensorFlow frees with its last use: for a graph that keeps inputs
     * beyond the run.
     *
     * @throws IllegalArgumentException if the size of {@code data} does not match the shape
     */
    public void copiedInput(int index, MemorySegment data, long... shape) {
        requireBegun();
        TfPort port = inputs[index];
        long count = TfDataType.elementCount(shape);
        long arrayBytes = port.type() == TfDataType.STRING ? Math.multiplyExact(count, TfStrings.STRING_BYTES) : 0;
        if (port.type() != TfDataType.STRING) {
            requireSize(port, data, count);
        }
        MemorySegment block = CMemory.allocate(Math.addExact(arrayBytes, data.byteSize()));
        boolean isFed = false;
        try {
            MemorySegment bytes = block.asSlice(arrayBytes).copyFrom(data);
            if (port.type() == TfDataType.STRING) {
                TfStrings.copyable(bytes, count, block);
                feed(port, block.asSlice(0, arrayBytes), shape, CMemory.freeing());
            } else {
                feed(port, block, shape, CMemory.freeing());
            }
            isFed = true;
        } finally {
            if (!isFed) {
                CMemory.free(block);
            }
        }
    }

    private void feed(TfPort port, MemorySegment data, long[] shape, long deallocator) {
        if (shape.length > MAX_RANK) {
            throw new IllegalArgumentException(shape.length + " dimensions (expected: <= " + MAX_RANK + ")");
        }
        long tensor = api.newTensor(
                port.type().number(), fed.shape(shape), shape.length, data.address(), data.byteSize(), deallocator);
        if (tensor == 0) {
            throw new IllegalArgumentException("tensor " + port.type().text() + " " + Arrays.toString(shape)
                    + ": refused by TensorFlow (expected: a shape that fits its memory)");
        }
        fed.port(inputCount, port);
        fed.value(inputCount, tensor);
        inputCount++;
    }

    /** Returns memory for the strings of an input; one for none too, since every tensor has an address. */
    private MemorySegment stringArray(int index, long count) {
        long needed = Math.multiplyExact(Math.max(1, count), TfStrings.STRING_BYTES);
        if (strings[index].byteSize() < needed) {
            strings[index] = Arena.ofAuto().allocate(needed, CMemory.ALIGNMENT);
        }
        return strings[index].asSlice(0, count * TfStrings.STRING_BYTES);
    }

    /** Requests output {@code index}, for {@link #takeOutput}. */
    public void output(int index) {
        requireBegun();
        if (positions[index] < 0) {
            positions[index] = outputCount++;
            fetched.port(positions[index], outputs[index]);
            fetched.value(positions[index], 0);
        }
    }

    /** Runs the part of the graph that leads to the requested outputs. Blocks until it is done or failed. */
    public void run() throws TfException {
        requireBegun();
        api.run(
                session.handle(),
                fed.portsAddress(),
                fed.valuesAddress(),
                inputCount,
                fetched.portsAddress(),
                fetched.valuesAddress(),
                outputCount,
                0,
                0,
                status.handle());
        status.check();
    }

    /**
     * Passes output {@code index} of a successful run to the caller, which closes it. Possible once, and only for an
     * output that was requested.
     */
    public TfTensor takeOutput(int index) {
        requireBegun();
        int position = positions[index];
        if (position < 0 || fetched.value(position) == 0) {
            throw new IllegalStateException("output " + index + ": not available (expected: requested and computed)");
        }
        TfTensor tensor = TfTensor.adopt(library, fetched.value(position));
        fetched.value(position, 0);
        return tensor;
    }

    /** Ends the run: drops inputs and frees outputs that were not taken. Does nothing if no run was begun. */
    public void end() {
        if (!begun) {
            return;
        }
        begun = false;
        for (int i = 0; i < inputCount; i++) {
            api.call(TfFunction.DeleteTensor, fed.value(i));
        }
        for (int i = 0; i < outputCount; i++) {
            if (fetched.value(i) != 0) {
                api.call(TfFunction.DeleteTensor, fetched.value(i));
            }
        }
        for (int i = 0; i < strings.length; i++) {
            if (strings[i].byteSize() > MAX_KEPT_BYTES) {
                strings[i] = MemorySegment.NULL;
            }
        }
        if (becomesIdle()) {
            release();
        }
    }

    /** Returns whether the execution was closed during the run. In that case the caller must release it. */
    private boolean becomesIdle() {
        lock.lock();
        try {
            busy = false;
            return closed;
        } finally {
            lock.unlock();
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
        status.close();
        session.references().release();
    }

    private void requireBegun() {
        if (!begun) {
            throw new IllegalStateException("execution: idle (expected: begun)");
        }
    }

    private static MemorySegment requireNative(MemorySegment data) {
        if (!data.isNative()) {
            throw new IllegalArgumentException("memory on the heap (expected: native memory)");
        }
        return data;
    }

    private static void requireSize(TfPort port, MemorySegment data, long count) {
        long needed = Math.multiplyExact(count, port.type().byteSize());
        if (data.byteSize() != needed) {
            throw new IllegalArgumentException(data.byteSize() + " bytes (expected: " + needed + " for " + count
                    + " elements of " + port.type().text() + ")");
        }
    }
}
