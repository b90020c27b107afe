package dev.nereid.backend.tensorflow.graph;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.Message;
import com.google.protobuf.UnsafeByteOperations;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Reads messages from files of any size, without a copy of the constants in them. Stateless. */
final class Messages {
    private Messages() {}

    /** Reads {@code file} while {@code arena} is open. */
    static MemorySegment map(Path file, Arena arena) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            return channel.size() == 0
                    ? MemorySegment.NULL
                    : channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        }
    }

    /**
     * Parses a message. Its strings are copies, its bytes refer to {@code content}.
     *
     * @throws IOException if it is cut short or otherwise not a message
     */
    static <M extends Message> M parse(MemorySegment content, M type) throws IOException {
        if (content.byteSize() > Integer.MAX_VALUE) {
            throw new IOException(content.byteSize() + " bytes (expected: at most 2 GiB, protobuf's limit)");
        }
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
