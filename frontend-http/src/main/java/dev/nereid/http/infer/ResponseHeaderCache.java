package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.frontend.DirectMappedCache;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Response header cache: pre-rendered headers and JSON of repeated responses. Confined to one event loop. An entry
 * holds a JSON text of at most {@value #MAX_JSON_BYTES} bytes, and none of the response's memory.
 *
 * <p>A response is cached when it comes for the second time in a row in its slot, if all its outputs are binary, since
 * the text holds the elements of others, and if it has no id and no parameters, which usually differ each time.
 */
final class ResponseHeaderCache {
    private static final int MAX_JSON_BYTES = 2048;

    private final DirectMappedCache<ResponseTemplate> templates = new DirectMappedCache<>();

    /**
     * Finds the template of a response.
     *
     * @param outputs the formats of its outputs
     * @return the template; {@code null} if it is not cached
     */
    @Nullable
    ResponseTemplate find(InferResponse response, RequestedOutputs outputs) {
        if (!isCacheable(response)) {
            return null;
        }
        int hash = hash(response);
        ResponseTemplate cached = templates.get(hash);
        if (cached == null || !cached.matches(response, outputs)) {
            return null;
        }
        templates.repeats(hash);
        return cached;
    }

    /**
     * Caches the template of a repeated response. Does so if the response comes for the second time in a row in its
     * slot, and may come again.
     *
     * @param outputs the formats of its outputs
     * @param json the bytes that were written, which begin with the JSON text
     * @param jsonSize the number of bytes of the text
     */
    void put(InferResponse response, RequestedOutputs outputs, byte[] json, int jsonSize) {
        if (jsonSize > MAX_JSON_BYTES || !isCacheable(response) || !areBinary(response.outputs(), outputs)) {
            return;
        }
        int hash = hash(response);
        if (templates.repeats(hash)) {
            templates.put(hash, new ResponseTemplate(response, json, jsonSize));
        }
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
}
