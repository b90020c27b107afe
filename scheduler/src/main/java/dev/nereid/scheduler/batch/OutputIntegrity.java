package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Detects outputs that a backend changes after it passed them to the server. Lock-free; safe for use by any thread.
 *
 * <p>One response in {@code interval} is checked: the checksum of its outputs when the server takes them over has to be
 * theirs when their memory is released, which is after the last byte was sent. Outputs in memory of devices, and of
 * clients, which may change it, are left out.
 */
public final class OutputIntegrity {
    /** The bytes at the start and at the end of an output that are checked, so that a check takes microseconds. */
    static final long CHECKED_BYTES = 32 * 1024;

    private static final Logger LOG = LoggerFactory.getLogger(OutputIntegrity.class);

    private final ModelSettings model;
    private final BackendCallbacks backend;
    private final int interval;
    private final AtomicLong total = new AtomicLong();

    /** Counts responses without atomicity: which of them are checked is of no meaning. */
    private int responses;

    private volatile String changedOutput = "";

    /**
     * Creates the check of a model.
     *
     * @param model the settings of the model
     * @param backend knows the threads of the backend
     * @param interval one response in this many is checked; 0 for none
     */
    public OutputIntegrity(ModelSettings model, BackendCallbacks backend, int interval) {
        this.model = model;
        this.backend = backend;
        this.interval = interval;
    }

    /** Returns how many outputs were found changed. */
    public long total() {
        return total.get();
    }

    /** Returns the name of the output that was last found changed; empty if none was. */
    public String changedOutput() {
        return changedOutput;
    }

    /**
     * Begins the check of a response, if it is one of those that are checked.
     *
     * @param outputs the outputs of the response
     * @return runs before their memory is released; {@code null} if the response is not checked
     */
    @Nullable
    Runnable begin(ScheduledRequest request, List<NamedTensor> outputs) {
        if (interval == 0 || outputs.isEmpty() || ++responses < interval) {
            return null;
        }
        responses = 0;
        int[] sums = new int[outputs.size()];
        for (int i = 0; i < sums.length; i++) {
            sums[i] = sum(outputs.get(i).tensor());
        }
        String id = request.checked().id();
        String instance = request.instance();
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
                .setCause(BackendStacks.of(backend))
                .log("output was changed after it was passed to the server");
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
