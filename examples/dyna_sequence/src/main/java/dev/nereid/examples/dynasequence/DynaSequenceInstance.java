package dev.nereid.examples.dynasequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Adds up the numbers of each sequence, which it finds by the control input CORRID: all elements of all inputs. START
 * begins with the input; END adds the id to the sum. Confined to the instance: all requests of a sequence come here.
 */
final class DynaSequenceInstance implements ModelInstance {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    /** As the reference server reads the number of a text: what follows the number does not count. */
    private static final Pattern NUMBER = Pattern.compile("\\s*([+-]?\\d+).*", Pattern.DOTALL);

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Controls controls;
    private final long delayNanos;
    private final LongSupplier nanoTime;

    /** The sums so far, by sequence. */
    private final Map<Sequence.Id, Integer> sums = new HashMap<>();

    /**
     * The names of the control inputs.
     *
     * @param start is not 0 for the first request of a sequence
     * @param end is not 0 for the last request of a sequence
     * @param id is the id of the sequence, a number or a text
     */
    record Controls(String start, String end, String id) {}

    DynaSequenceInstance(Controls controls, long delayNanos, LongSupplier nanoTime) {
        this.controls = controls;
        this.delayNanos = delayNanos;
        this.nanoTime = nanoTime;
    }

    @Override
    public void execute(Batch batch) {
        if (delayNanos > 0) {
            await(delayNanos);
        }
        List<InferenceRequest> requests = batch.requests();
        for (int i = 0; i < requests.size(); i++) {
            InferenceRequest request = requests.get(i);
            try {
                if (!request.isNullRequest()) {
                    add(request);
                }
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }

    private void add(InferenceRequest request) {
        Sequence.Id id = id(request.requireInput(controls.id()));
        int number = number(id);
        Tensor input = request.requireInput(DynaSequenceBackend.INPUT);
        boolean ends = isSet(request, controls.end());
        int sum = isSet(request, controls.start()) ? 0 : sums.getOrDefault(id, 0);
        long count = input.shape().elementCount();
        for (long i = 0; i < count; i++) {
            sum += input.data().getAtIndex(INT, i);
        }
        sum += ends ? number : 0;
        Tensor output = request.response().allocate(DynaSequenceBackend.OUTPUT, DataType.INT32, input.shape());
        for (long i = 0; i < count; i++) {
            output.data().setAtIndex(INT, i, sum);
        }
        if (ends) {
            sums.remove(id);
        } else {
            sums.put(id, sum);
        }
    }

    private static Sequence.Id id(Tensor control) {
        return control.type() == DataType.BYTES
                ? new Sequence.Id.Text(control.strings().getFirst())
                : new Sequence.Id.Numeric(control.data().get(LONG, 0));
    }

    /** Returns the number that the end of a sequence adds: the low 32 bits of a number, or the number in a text. */
    private static int number(Sequence.Id id) {
        return switch (id) {
            case Sequence.Id.Numeric(long value) -> (int) value;
            case Sequence.Id.Text(String value) -> {
                Matcher matcher = NUMBER.matcher(value);
                try {
                    if (matcher.matches()) {
                        yield Integer.parseInt(matcher.group(1));
                    }
                } catch (NumberFormatException ignored) {
                    // refused below, together with texts that are no numbers
                }
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "dyna sequence backend expects correlation ID to be decodable into an integer (expected: one of"
                                + " 32 bits)");
            }
        };
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        sums.remove(id);
    }

    private static boolean isSet(InferenceRequest request, String control) {
        return request.requireInput(control).data().get(INT, 0) != 0;
    }

    /** Simulates a model that computes: waits, unless the thread is interrupted. */
    private void await(long nanos) {
        long end = nanoTime.getAsLong() + nanos;
        for (long left = nanos; left > 0; left = end - nanoTime.getAsLong()) {
            if (Thread.currentThread().isInterrupted()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "execution was interrupted");
            }
            LockSupport.parkNanos(this, left);
        }
    }
}
