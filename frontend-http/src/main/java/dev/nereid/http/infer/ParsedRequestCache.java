package dev.nereid.http.infer;

import dev.nereid.api.InputTensor;
import dev.nereid.api.frontend.DirectMappedCache;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Parsed-request cache: JSON texts of repeated requests, their parsed content, and the JSON text of their responses.
 * Confined to one event loop. An entry holds a text of at most {@value #MAX_JSON_BYTES} bytes, and none of the
 * request's memory.
 *
 * <p>Only a valid text is cached, at once, and only if nothing but the bytes behind it can differ the next time: a text
 * without an id, without elements of tensors and without shared memory.
 */
final class ParsedRequestCache {
    private static final int MAX_JSON_BYTES = 2048;

    private final DirectMappedCache<ParsedRequest> entries = new DirectMappedCache<>();

    /**
     * A cached JSON text and its parsed content. Immutable, but for the responses.
     *
     * @param text the bytes of the text
     * @param request the request and its responses; its inputs have no bytes
     * @param byteSizes the number of bytes of each input
     */
    private record ParsedRequest(MemorySegment text, InferRequestBody request, List<Long> byteSizes) {
        boolean matches(MemorySegment body, long jsonLength) {
            return text.byteSize() == jsonLength
                    && MemorySegment.mismatch(text, 0, jsonLength, body, 0, jsonLength) < 0;
        }
    }

    /**
     * Reads a request of which the JSON, {@code jsonLength} bytes at the start of the body, is cached; {@code null} if it
     * is not. The inputs view the body. Clients of different models have different slots.
     */
    @Nullable
    InferRequestBody get(String model, MemorySegment body, long jsonLength) {
        ParsedRequest cached = entries.get(hash(model, body.byteSize(), jsonLength));
        if (cached == null || !cached.matches(body, jsonLength)) {
            return null;
        }
        InferRequestBody request = cached.request;
        List<InputTensor> inputs = new ArrayList<>(request.inputs().size());
        long at = jsonLength;
        for (int i = 0; i < request.inputs().size(); i++) {
            long byteSize = cached.byteSizes.get(i);
            if (byteSize > body.byteSize() - at) {
                return null;
            }
            inputs.add(request.inputs().get(i).withData(body.asSlice(at, byteSize)));
            at += byteSize;
        }
        // Missing and surplus bytes are reported by the reader of texts that are not cached.
        return at == body.byteSize() ? request.with(inputs, request.repeated()) : null;
    }

    /**
     * Caches the JSON of a request, {@code jsonLength} bytes at the start of the body, and its content, if they may
     * come again. All inputs lie behind the text, none in shared memory.
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
        InferRequestBody content = request.with(List.copyOf(inputs), new RepeatedResponse());
        entries.put(
                hash(model, body.byteSize(), jsonLength),
                new ParsedRequest(MemorySegment.ofArray(text), content, List.copyOf(byteSizes)));
    }

    /** An id usually differs each time, and so do the options of a sequence. */
    private static boolean isCacheable(InferRequestBody request) {
        return request.id().isEmpty()
                && request.options().sequence().isEmpty()
                && !request.outputs().hasSharedMemoryOutputs();
    }

    private static int hash(String model, long bodySize, long jsonLength) {
        return 31 * (31 * model.hashCode() + Long.hashCode(bodySize)) + Long.hashCode(jsonLength);
    }
}
