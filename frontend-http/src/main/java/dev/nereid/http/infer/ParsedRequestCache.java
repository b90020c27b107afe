package dev.nereid.http.infer;

import dev.nereid.api.InputTensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Parsed-request cache: JSON texts of repeated requests and their parsed content. Confined to one event loop. Holds
 * at most {@value #MAX_ENTRIES} texts of {@value #MAX_JSON_BYTES} bytes, and none of the requests' memory.
 *
 * <p>Only a text that was found to be without fault is kept, and only if nothing but the bytes behind it can differ the
 * next time it comes: one without an id, without elements of its own and without shared memory.
 */
final class ParsedRequestCache {
    /** A power of two. */
    private static final int MAX_ENTRIES = 64;

    private static final int MAX_JSON_BYTES = 2048;

    private final @Nullable ParsedRequest[] entries = new ParsedRequest[MAX_ENTRIES];

    /**
     * A cached JSON text and its parsed content. Immutable.
     *
     * @param text its bytes
     * @param request what it said; its inputs are without bytes
     * @param byteSizes how many bytes each of the inputs has
     */
    private record ParsedRequest(MemorySegment text, InferRequestBody request, List<Long> byteSizes) {
        boolean matches(MemorySegment body, long jsonLength) {
            return text.byteSize() == jsonLength
                    && MemorySegment.mismatch(text, 0, jsonLength, body, 0, jsonLength) < 0;
        }
    }

    /**
     * Reads a request whose text is known.
     *
     * @param model the name of the model that it is sent to, by which clients are told apart
     * @param body the whole body
     * @param jsonLength how many bytes of it are JSON
     * @return the request, whose inputs view the body; {@code null} if the text is not known
     */
    @Nullable
    InferRequestBody get(String model, MemorySegment body, long jsonLength) {
        ParsedRequest known = entries[slot(model, body.byteSize(), jsonLength)];
        if (known == null || !known.matches(body, jsonLength)) {
            return null;
        }
        InferRequestBody request = known.request;
        List<InputTensor> inputs = new ArrayList<>(request.inputs().size());
        long at = jsonLength;
        for (int i = 0; i < request.inputs().size(); i++) {
            long byteSize = known.byteSizes.get(i);
            if (byteSize > body.byteSize() - at) {
                return null;
            }
            inputs.add(request.inputs().get(i).withData(body.asSlice(at, byteSize)));
            at += byteSize;
        }
        // What is missing or too much is for the reader of unknown texts to tell.
        return at == body.byteSize()
                ? new InferRequestBody(request.id(), inputs, request.outputs(), request.parameters(), request.options())
                : null;
    }

    /**
     * Keeps what a text said, if it may come again.
     *
     * @param model the name of the model that it was sent to
     * @param body the whole body
     * @param jsonLength how many bytes of it are JSON
     * @param request what it said; all its inputs lie behind the text, none in shared memory
     */
    void put(String model, MemorySegment body, long jsonLength, InferRequestBody request) {
        if (jsonLength > MAX_JSON_BYTES || !isCacheable(request)) {
            return;
        }
        List<InputTensor> inputs = new ArrayList<>(request.inputs().size());
        List<Long> byteSizes = new ArrayList<>(request.inputs().size());
        for (InputTensor input : request.inputs()) {
            byteSizes.add(input.data().byteSize());
            inputs.add(input.withData(MemorySegment.NULL));
        }
        byte[] text = body.asSlice(0, jsonLength).toArray(ValueLayout.JAVA_BYTE);
        entries[slot(model, body.byteSize(), jsonLength)] = new ParsedRequest(
                MemorySegment.ofArray(text),
                new InferRequestBody(
                        request.id(), List.copyOf(inputs), request.outputs(), request.parameters(), request.options()),
                List.copyOf(byteSizes));
    }

    /** An id is new each time as a rule, and so is what is said of a sequence. */
    private static boolean isCacheable(InferRequestBody request) {
        return request.id().isEmpty()
                && request.options().sequence().isEmpty()
                && !request.outputs().hasSharedMemoryOutputs();
    }

    private static int slot(String model, long bodySize, long jsonLength) {
        int hash = 31 * (31 * model.hashCode() + Long.hashCode(bodySize)) + Long.hashCode(jsonLength);
        return (hash ^ hash >>> 16) & MAX_ENTRIES - 1;
    }
}
