package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The heads and JSON texts of answers that were given lately: a model that answers one request after the other says the
 * same each time, but for the bytes behind it. Confined to one event loop. Holds at most {@value #MOST} texts of
 * {@value #LONGEST} bytes, and none of the responses' memory.
 *
 * <p>Only answers are kept whose outputs are all binary, since the elements of others stand in the text, and that have
 * no id and no parameters, which are new each time as a rule.
 */
final class KnownAnswers {
    /** A power of two. */
    private static final int MOST = 64;

    private static final int LONGEST = 2048;

    private final @Nullable KnownAnswer[] answers = new KnownAnswer[MOST];

    /** For each place what came last, known or not: what comes but once is not worth its place. */
    private final int[] last = new int[MOST];

    /**
     * Finds the answer that a response makes.
     *
     * @param response the response
     * @param outputs how each of its outputs is to be written
     * @return the answer; {@code null} if it is not known
     */
    @Nullable
    KnownAnswer find(InferResponse response, RequestedOutputs outputs) {
        if (!mayComeAgain(response)) {
            return null;
        }
        int hash = hash(response);
        int slot = slot(hash);
        KnownAnswer known = answers[slot];
        if (known == null || !known.fits(response, outputs)) {
            return null;
        }
        last[slot] = hash;
        return known;
    }

    /**
     * Keeps an answer, if it comes for the second time in a row, as far as its place goes, and may come again.
     *
     * @param response the response
     * @param outputs how each of its outputs was written
     * @param json what was written, of which the first bytes are the text
     * @param jsonSize how many bytes of it are the text
     */
    void keep(InferResponse response, RequestedOutputs outputs, byte[] json, int jsonSize) {
        if (jsonSize > LONGEST || !mayComeAgain(response) || !areBinary(response.outputs(), outputs)) {
            return;
        }
        int hash = hash(response);
        int slot = slot(hash);
        if (last[slot] == hash) {
            answers[slot] = new KnownAnswer(response, json, jsonSize);
        }
        last[slot] = hash;
    }

    private static boolean mayComeAgain(InferResponse response) {
        return !response.outputs().isEmpty()
                && response.id().isEmpty()
                && response.parameters().isEmpty();
    }

    private static boolean areBinary(List<NamedTensor> tensors, RequestedOutputs outputs) {
        for (NamedTensor output : tensors) {
            if (outputs.form(output.name()) != RequestedOutputs.Form.BINARY
                    || !output.tensor().place().isHost()) {
                return false;
            }
        }
        return true;
    }

    private static int hash(InferResponse response) {
        int hash = 31 * response.model().hashCode() + Long.hashCode(response.version());
        List<NamedTensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            Tensor tensor = outputs.get(i).tensor();
            hash = 31 * (31 * hash + tensor.shape().hashCode()) + Long.hashCode(tensor.byteSize());
        }
        return hash;
    }

    private static int slot(int hash) {
        return (hash ^ hash >>> 16) & MOST - 1;
    }
}
