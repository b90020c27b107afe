package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.Tensor;
import java.util.Arrays;
import java.util.List;

/**
 * The addresses of all inputs of a batch. Immutable. It excludes for most outputs that they lie in an input. The cost
 * of one check grows with the logarithm of the number of requests, since each request may put outputs.
 */
final class InputAddresses {
    static final InputAddresses NONE = new InputAddresses(new long[0], 0);

    /** The addresses in rising order. */
    private final long[] starts;

    private final long largest;

    private InputAddresses(long[] starts, long largest) {
        this.starts = starts;
        this.largest = largest;
    }

    /** Returns the addresses of the inputs as the backend sees them. */
    static InputAddresses of(List<ScheduledRequest> requests) {
        int number = 0;
        for (ScheduledRequest request : requests) {
            number += request.inputs().size();
        }
        long[] starts = new long[number];
        long largest = 0;
        int next = 0;
        for (ScheduledRequest request : requests) {
            for (NamedTensor input : request.inputs()) {
                starts[next] = input.tensor().data().address();
                largest = Math.max(largest, input.tensor().byteSize());
                next++;
            }
        }
        Arrays.sort(starts);
        return new InputAddresses(starts, largest);
    }

    /** Returns {@code false} if an output lies in no input, not even at its end. */
    boolean mayContain(Tensor output) {
        long start = output.data().address();
        int found = Arrays.binarySearch(starts, start + output.byteSize());
        int last = found < 0 ? -found - 2 : found; // the last input that begins before the end of the output
        return last >= 0 && starts[last] + largest >= start;
    }
}
