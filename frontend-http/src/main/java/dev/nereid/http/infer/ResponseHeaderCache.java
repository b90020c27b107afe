package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Response header cache: pre-rendered headers and JSON of repeated responses. Confined to one event loop. Holds at
 * most {@value #MAX_ENTRIES} texts of {@value #MAX_JSON_BYTES} bytes, and none of the responses' memory.
 *
 * <p>Only answers are kept whose outputs are all binary, since the elements of others stand in the text, and that have
 * no id and no parameters, which are new each time as a rule.
 */
final class ResponseHeaderCache {
    /** A power of two. */
    private static final int MAX_ENTRIES = 64;

    private static final int MAX_JSON_BYTES = 2048;

    private final @Nullable ResponseTemplate[] templates = new ResponseTemplate[MAX_ENTRIES];

    /** For each place what came last, known or not: what comes but once is not worth its place. */
    private final int[] lastHashes = new int[MAX_ENTRIES];

    /**
     * Finds the answer that a response makes.
     *
     * @param response the response
     * @param outputs how each of its outputs is to be written
     * @return the answer; {@code null} if it is not known
     */
    @Nullable
    ResponseTemplate find(InferResponse response, RequestedOutputs outputs) {
        if (!isCacheable(response)) {
            return null;
        }
        int hash = hash(response);
        int slot = slot(hash);
        ResponseTemplate known = templates[slot];
        if (known == null || !known.matches(response, outputs)) {
            return null;
        }
        lastHashes[slot] = hash;
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
    void put(InferResponse response, RequestedOutputs outputs, byte[] json, int jsonSize) {
        if (jsonSize > MAX_JSON_BYTES || !isCacheable(response) || !areBinary(response.outputs(), outputs)) {
            return;
        }
        int hash = hash(response);
        int slot = slot(hash);
        if (lastHashes[slot] == hash) {
            templates[slot] = new ResponseTemplate(response, json, jsonSize);
        }
        lastHashes[slot] = hash;
    }

    private static boolean isCacheable(InferResponse response) {
        return !response.outputs().isEmpty()
                && response.id().isEmpty()
                && response.parameters().isEmpty();
    }

    private static boolean areBinary(List<NamedTensor> tensors, RequestedOutputs outputs) {
        for (NamedTensor output : tensors) {
            if (outputs.format(output.name()) != RequestedOutputs.Format.BINARY
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
        return (hash ^ hash >>> 16) & MAX_ENTRIES - 1;
    }
}
