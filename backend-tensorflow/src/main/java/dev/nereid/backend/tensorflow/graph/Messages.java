package dev.nereid.backend.tensorflow.graph;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Message;
import com.google.protobuf.UnsafeByteOperations;
import dev.nereid.backend.tensorflow.capi.CMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Reads messages from files of up to 2 GiB, without a copy of the constants in them. Stateless. */
final class Messages {
    private Messages() {}

    /**
     * Reads a file into native memory, which is freed with {@code arena}. It is not mapped: one that is cut short while
     * TensorFlow parses it would end the process.
     *
     * @throws IOException if it cannot be read, or is too large for a message
     */
    static MemorySegment read(Path file, Arena arena) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long size = channel.size();
            if (size > Integer.MAX_VALUE) {
                throw new IOException(size + " bytes (expected: at most 2 GiB, protobuf's limit)");
            }
            if (size == 0) {
                return MemorySegment.NULL;
            }
            MemorySegment content = CMemory.allocate(size, arena);
            ByteBuffer buffer = content.asByteBuffer();
            while (buffer.hasRemaining()) {
                if (channel.read(buffer) < 0) {
                    throw new IOException("cut short while it is read");
                }
            }
            return content;
        }
    }

    /** Parses a message, or fails if it is none or cut short. Strings are copies, bytes refer to {@code content}. */
    static <M extends Message> M parse(MemorySegment content, M type) throws IOException {
        CodedInputStream in =
                UnsafeByteOperations.unsafeWrap(content.asByteBuffer()).newCodedInput();
        in.enableAliasing(true);
        in.setSizeLimit(Integer.MAX_VALUE);
        Message message = type.getParserForType().parseFrom(in);
        @SuppressWarnings("unchecked") // the parser of M parses an M
        M parsed = (M) message;
        return parsed;
    }
}
