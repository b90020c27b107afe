package dev.nereid.server.warmup;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.repository.DataFilePath;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A file in a model's {@code warmup} directory with the content of an input. Immutable; blocks.
 *
 * @param name the file's name in the configuration
 * @param path its path with all links followed: within the directory
 * @param size its size in bytes, when it was found
 */
record WarmupFile(String name, Path path, long size) {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final long CHUNK = 1L << 20;

    /**
     * Finds a file.
     *
     * @param model the model's directory
     * @param name the file's name in the directory {@code warmup} of the model
     * @throws InferenceException {@link ErrorCode#INTERNAL} if there is no such file, {@link ErrorCode#UNSUPPORTED} if
     *     it lies elsewhere
     */
    static WarmupFile find(Path model, String name) {
        Path directory = model.resolve("warmup");
        Path path = DataFilePath.resolve(directory, name);
        try {
            Path file = DataFilePath.checkReal(directory, path, name);
            if (!Files.isRegularFile(file)) {
                throw unreadable(name, "Not a file");
            }
            return new WarmupFile(name, file, Files.size(file));
        } catch (IOException e) {
            throw unreadable(name, Files.exists(path) ? "not readable" : "No such file or directory");
        }
    }

    /**
     * Reads the beginning of the file.
     *
     * @param byteSize how much of it
     * @return the content, owned by the caller
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the file is shorter
     */
    TensorBuffer read(long byteSize, TensorMemory memory) {
        if (size < byteSize) {
            throw tooShort(byteSize, size);
        }
        TensorBuffer buffer = memory.allocate(byteSize);
        boolean read = false;
        try (FileChannel file = FileChannel.open(path)) {
            long at = 0;
            while (at < byteSize) {
                MemorySegment rest = buffer.segment().asSlice(at, Math.min(CHUNK, byteSize - at));
                int count = file.read(rest.asByteBuffer());
                if (count < 0) {
                    throw tooShort(byteSize, at); // cut meanwhile
                }
                at += count;
            }
            read = true;
            return buffer;
        } catch (IOException e) {
            throw unreadable(name, "not readable");
        } finally {
            if (!read) {
                buffer.close();
            }
        }
    }

    /**
     * Finds the end of the first strings of a content.
     *
     * @param content strings with their lengths
     * @return the part with these strings, or all if there are no more, or the content ends within one of them
     */
    static MemorySegment first(MemorySegment content, long strings) {
        long at = 0;
        for (long i = 0; i < strings; i++) {
            long left = content.byteSize() - at - Integer.BYTES;
            long length = left < 0 ? 0 : Integer.toUnsignedLong(content.get(LENGTH, at));
            if (left < length) {
                return content;
            }
            at += Integer.BYTES + length;
        }
        return content.asSlice(0, at);
    }

    private InferenceException tooShort(long expected, long actual) {
        // The reference leaves the blank out, and clients compare whole texts.
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "warmup setting expects " + expected + " bytes, but the data provided from " + name + "only has "
                        + actual + " bytes.");
    }

    private static InferenceException unreadable(String name, String problem) {
        return new InferenceException(ErrorCode.INTERNAL, "failed to open text file for read " + name + ": " + problem);
    }
}
