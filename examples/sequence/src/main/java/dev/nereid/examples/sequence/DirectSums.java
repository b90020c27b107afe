package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import java.util.function.Supplier;

/**
 * A sum for each place of the batch. The place of a sequence never changes. START begins with the input; places that
 * are not READY stay as they are. Confined to the instance.
 */
final class DirectSums implements SequenceSums {
    private final String start;
    private final String ready;

    private final Sums<Integer> sums = new Sums<>();

    /**
     * Makes sums without sequences.
     *
     * @param start the control input that is not 0 for the first request of a sequence
     * @param ready the control input that is 0 for a place without a request
     */
    DirectSums(String start, String ready) {
        this.start = start;
        this.ready = ready;
    }

    /** Returns a source of sums for the instances of a model. */
    static Supplier<SequenceSums> of(ModelSettings settings) {
        String start = Controls.name(settings, ControlInput.Kind.SEQUENCE_START, DataType.INT32);
        String ready = Controls.name(settings, ControlInput.Kind.SEQUENCE_READY, DataType.INT32);
        return () -> new DirectSums(start, ready);
    }

    @Override
    public void add(InferenceRequest request, int place) {
        if (!Controls.isSet(request, ready)) {
            return;
        }
        if (request.sequence().isPresent() && request.sequence().get().id() instanceof Sequence.Id.Text) {
            String id = request.id().isEmpty() ? "<id_unknown>" : request.id(); // as the reference's backend
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "[request id: " + id + "] correlation ID in request is not an unsigned int");
        }
        sums.add(request, place, Controls.isSet(request, start), 0);
    }

    @Override
    public void forget(Sequence.Id id) {
        // the next sequence of the place begins at 0
    }
}
