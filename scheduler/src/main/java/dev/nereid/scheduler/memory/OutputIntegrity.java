package dev.nereid.scheduler.memory;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Detects outputs that a backend changes after it passed them to the server. Lock-free; safe for use by any thread.
 *
 * <p>One response in {@code interval} is checked: its outputs must have the same checksum when the server takes them
 * over and when their memory is released, which is after the last byte was sent. Outputs in memory of devices, and of
 * clients, which may change it, are left out.
 */
public final class OutputIntegrity {
    /** The bytes at the start and at the end of an output that are checked, so that a check takes microseconds. */
    static final long CHECKED_BYTES = 32 * 1024;

    private static final Logger LOG = LoggerFactory.getLogger(OutputIntegrity.class);

    private final ModelSettings model;
    private final Supplier<@Nullable Throwable> stacks;
    private final int interval;
    private final AtomicLong total = new AtomicLong();

    /** Counts responses without atomicity: it does not matter which of them are checked. */
    private int responses;

    private volatile String changedOutput = "";

    /** Creates the check of one response in {@code interval}; 0 for none. {@code stacks} of the backend are logged. */
    public OutputIntegrity(ModelSettings model, Supplier<@Nullable Throwable> stacks, int interval) {
        this.model = model;
        this.stacks = stacks;
        this.interval = interval;
    }

    /** Returns the number of outputs that were found changed. */
    public long total() {
        return total.get();
    }

    /** Returns the name of the output that was last found changed; empty if none was. */
    public String changedOutput() {
        return changedOutput;
    }

    /** Returns whether the next response has to be checked. Does not allocate. */
    public boolean isDue() {
        if (interval == 0 || ++responses < interval) {
            return false;
        }
        responses = 0;
        return true;
    }

    /** Begins the check of a response; returns its end, to be run before the memory of the outputs is released. */
    public Runnable begin(List<NamedTensor> outputs, String id, String instance) {
        int[] sums = new int[outputs.size()];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = sum(outputs.get(i).tensor());
        }
        return () -> check(outputs, sums, id, instance);
    }

    private void check(List<NamedTensor> outputs, int[] sums, String id, String instance) {
        for (int i = 0; i < sums.length; i++) {
            if (sum(outputs.get(i).tensor()) != sums[i]) {
                report(outputs.get(i).name(), id, instance);
            }
        }
    }

    private void report(String output, String id, String instance) {
        changedOutput = output;
        if (total.incrementAndGet() > 1) {
            return; // the log has it
        }
        LOG.atError()
                .addKeyValue("model", model.name())
                .addKeyValue("version", model.version())
                .addKeyValue("instance", instance)
                .addKeyValue("requestIds", id.isEmpty() ? "<id_unknown>" : id)
                .addKeyValue("output", Quoted.text(output))
                .setCause(stacks.get())
                .log(
                        "output was changed after it was passed to the server (model '{}', version {}, instance '{}', output '{}')",
                        model.name(),
                        model.version(),
                        instance,
                        Quoted.text(output));
    }

    private static int sum(Tensor tensor) {
        MemorySegment data = tensor.data();
        if (!tensor.place().isHost() || ClientMemory.isClientMemory(data)) {
            return 0;
        }
        CRC32C sum = new CRC32C();
        long size = data.byteSize();
        sum.update(data.asSlice(0, Math.min(size, CHECKED_BYTES)).asByteBuffer());
        if (size > CHECKED_BYTES) {
            long rest = Math.min(size - CHECKED_BYTES, CHECKED_BYTES);
            sum.update(data.asSlice(size - rest, rest).asByteBuffer());
        }
        return (int) sum.getValue();
    }
}
