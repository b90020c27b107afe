package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Tensor;
import java.util.List;

/**
 * Reads the files of a request. Stateless.
 *
 * <p>A request may be much larger than the heap: its size is checked before its bytes are copied there.
 */
final class PictureFiles {
    /** The largest file, unless the parameter {@code max_bytes} says otherwise. */
    private static final int MAX_BYTES = 16 << 20;

    private PictureFiles() {}

    /** Returns the largest file that a model takes, in bytes. */
    static int maxBytes(ModelContext model) {
        return Settings.positive(model, "max_bytes", MAX_BYTES);
    }

    /**
     * Returns the files of an input.
     *
     * @param maxBytes the largest file; the files of a request together have no more bytes than as many of that size
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the input is missing or too large
     */
    static List<byte[]> read(InferenceRequest request, String input, int maxBytes) {
        Tensor tensor = request.requireInput(input);
        long size = tensor.data().byteSize();
        if (size > tensor.shape().elementCount() * (Integer.BYTES + (long) maxBytes)) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "image: " + size + " bytes (expected: at most " + maxBytes
                            + " for each, by the parameter max_bytes)");
        }
        return tensor.byteStrings();
    }
}
