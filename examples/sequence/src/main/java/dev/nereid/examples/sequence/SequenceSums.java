package dev.nereid.examples.sequence;

import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Sequence;

/** The sums of one instance's sequences. Confined to the instance: all requests of a sequence come here. */
interface SequenceSums {
    /**
     * Adds the numbers of a request to the sum of its sequence, and responds with the sum.
     *
     * @throws dev.nereid.spi.BackendException if the request fails
     */
    void add(InferenceRequest request, int place);

    /** Forgets the sum of a sequence that ended. */
    void forget(Sequence.Id id);
}
