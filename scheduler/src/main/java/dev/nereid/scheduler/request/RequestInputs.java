package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.spi.Tensor;
import java.util.AbstractList;
import java.util.List;
import java.util.RandomAccess;

/**
 * The input tensors of a checked request, with totals and the release of their memory. Immutable as a view of that
 * memory.
 *
 * <p>The tensors are in the order of the configuration, in the shapes that the backend sees, batch dimension included;
 * optional inputs that the client omitted are missing. The class is the list itself, since every request has one. It is
 * not final because of tests, in which the inputs of a request fail when they are read.
 */
public class RequestInputs extends AbstractList<NamedTensor> implements RandomAccess {
    private final NamedTensor[] tensors;
    private final int batchSize;
    private final long byteSize;
    private final boolean onHost;
    private final boolean inClientMemory;
    private final Runnable release;

    /**
     * Takes over the tensors of a request.
     *
     * @param tensors the tensors in the order of the configuration; not to be changed any more
     * @param batchSize the first dimension that all inputs share if the model batches, else 1; at least 1
     * @param release frees the memory of the inputs: run exactly once, on any thread; short, and must not block or throw
     */
    public RequestInputs(NamedTensor[] tensors, int batchSize, Runnable release) {
        if (batchSize < 1) {
            throw new IllegalArgumentException("batchSize: " + batchSize + " (expected: >= 1)");
        }
        this.tensors = tensors;
        this.batchSize = batchSize;
        this.release = requireNonNull(release, "release");
        long bytes = 0;
        boolean host = true;
        boolean client = false;
        for (NamedTensor input : tensors) {
            Tensor tensor = input.tensor();
            bytes += tensor.byteSize();
            host &= tensor.place().isHost();
            client |= ClientMemory.isClientMemory(tensor.data());
        }
        byteSize = bytes;
        onHost = host;
        inClientMemory = client;
    }

    private RequestInputs(RequestInputs inputs, Runnable release) {
        tensors = inputs.tensors;
        batchSize = inputs.batchSize;
        byteSize = inputs.byteSize;
        onHost = inputs.onHost;
        inClientMemory = inputs.inClientMemory;
        this.release = release;
    }

    /** Returns the same inputs with an action after the release: once, on any thread; short, never blocks or throws. */
    public RequestInputs withReleased(Runnable action) {
        return new RequestInputs(this, () -> {
            try {
                release.run();
            } finally {
                action.run();
            }
        });
    }

    /** Creates inputs as the constructor does, of a copied list of tensors. */
    public static RequestInputs of(List<NamedTensor> tensors, int batchSize, Runnable release) {
        return new RequestInputs(tensors.toArray(NamedTensor[]::new), batchSize, release);
    }

    @Override
    public NamedTensor get(int index) {
        return tensors[index];
    }

    @Override
    public int size() {
        return tensors.length;
    }

    /** Returns the first dimension that all inputs share if the model batches, else 1; at least 1. */
    public int batchSize() {
        return batchSize;
    }

    public long byteSize() {
        return byteSize;
    }

    public boolean areOnHost() {
        return onHost;
    }

    public boolean useClientMemory() {
        return inClientMemory;
    }

    /**
     * Returns whether inputs may have to be moved before an execution.
     *
     * @param inPlace whether the execution works in memory of the client
     */
    boolean needStaging(boolean inPlace) {
        return !onHost || (inClientMemory && !inPlace);
    }

    /** Frees the memory of the inputs. {@link ScheduledRequest} does so once, after the last use of them. */
    void release() {
        release.run();
    }
}
