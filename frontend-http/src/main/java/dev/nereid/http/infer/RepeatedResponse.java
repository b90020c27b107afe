package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Response to a repeated request: the JSON text that its responses have in common. Part of an entry of
 * {@link ParsedRequestCache}, and confined to one event loop as that is. It holds a text of at most
 * {@value #MAX_JSON_BYTES} bytes, and none of a response's memory.
 *
 * <p>A text is kept when a response has the same lengths as the one before, if all its outputs are binary, since the
 * text holds the elements of others, and if it has no id and no parameters, which usually differ each time.
 */
final class RepeatedResponse {
    private static final int MAX_JSON_BYTES = 2048;

    private @Nullable ResponseTemplate template;
    private long lastLengths;

    /** Finds the template of a response; {@code null} if there is none. */
    @Nullable
    ResponseTemplate find(InferResponse response) {
        ResponseTemplate known = template;
        return known != null && isCacheable(response) && known.matches(response) ? known : null;
    }

    /**
     * Notes a response of {@code size} bytes, of which the first {@code jsonSize} are the JSON text, and keeps its
     * template if it repeats. The formats of its outputs follow from the request.
     */
    void put(InferResponse response, RequestedOutputs outputs, byte[] json, int jsonSize, int size) {
        long lengths = (long) jsonSize << Integer.SIZE | size;
        boolean repeats = lengths == lastLengths;
        lastLengths = lengths;
        if (repeats && jsonSize <= MAX_JSON_BYTES && isCacheable(response) && areBinary(response.outputs(), outputs)) {
            template = new ResponseTemplate(response, json, jsonSize);
        }
    }

    private static boolean isCacheable(InferResponse response) {
        return !response.outputs().isEmpty()
                && response.id().isEmpty()
                && response.parameters().isEmpty();
    }

    private static boolean areBinary(List<NamedTensor> tensors, RequestedOutputs outputs) {
        for (NamedTensor output : tensors) {
            if (outputs.format(output.name()) != RequestedOutputs.Format.BINARY) {
                return false;
            }
        }
        return true;
    }
}
