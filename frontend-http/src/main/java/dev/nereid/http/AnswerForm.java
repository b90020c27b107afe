package dev.nereid.http;

import dev.nereid.spi.Tensor;

/**
 * How the answer to a request is to be written. Immutable, but for the memory.
 *
 * @param outputs how each output is to be written
 * @param coding how the body is to be coded
 * @param memory the memory of the request, which outputs may lie in
 */
record AnswerForm(RequestedOutputs outputs, ContentCoding coding, CallMemory memory) {
    /** Says whether reading a tensor may fail, since it lies in memory that the client can take away. */
    boolean isShared(Tensor tensor) {
        return memory.isShared(tensor.data());
    }
}
