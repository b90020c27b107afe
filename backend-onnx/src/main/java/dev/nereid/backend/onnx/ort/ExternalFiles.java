package dev.nereid.backend.onnx.ort;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Names of the files beside a model that hold values of its tensors ({@code external_data}). Immutable.
 *
 * <p>ONNX Runtime maps these files into memory, and the model file too if it is in the format of the runtime.
 *
 * @param required the files with values of tensors, relative to the directory of the model
 * @param mentioned the files that tensors name although their values seem to be in the model
 * @param isRead whether the whole model is in the format of ONNX, so that no file is missing here
 */
public record ExternalFiles(SortedSet<String> required, SortedSet<String> mentioned, boolean isRead) {
    /** The maximum number of files of a model. */
    static final int MAX_FILES = 100_000;

    private static final int MAX_PATH = 4096;

    /** ONNX Runtime refuses messages that are nested deeper. */
    private static final int MAX_DEPTH = 100;

    private static final int BUFFER_BYTES = 16 * 1024;
    private static final int VARINT = 0;
    private static final int FIXED_64 = 1;
    private static final int DELIMITED = 2;
    private static final int FIXED_32 = 5;
    private static final int FIELD_SHIFT = 3;
    private static final int WIRE_MASK = 7;
    private static final int VARINT_BITS = 7;
    private static final int VARINT_MASK = 0x7f;
    private static final int DATA_LOCATION = 14;
    private static final int KEY = 1;
    private static final int VALUE = 2;

    /** Messages of ONNX that lead to tensors, with the fields that do. */
    private enum Message {
        ENTRY,
        TENSOR,
        SPARSE_TENSOR,
        ATTRIBUTE,
        NODE,
        FUNCTION,
        GRAPH,
        TRAINING,
        MODEL;

        private static final Map<Message, Map<Integer, Message>> FIELDS = Map.of(
                ENTRY,
                Map.of(),
                TENSOR,
                Map.of(13, ENTRY),
                SPARSE_TENSOR,
                Map.of(1, TENSOR, 2, TENSOR),
                ATTRIBUTE,
                Map.of(5, TENSOR, 6, GRAPH, 10, TENSOR, 11, GRAPH, 22, SPARSE_TENSOR, 23, SPARSE_TENSOR),
                NODE,
                Map.of(5, ATTRIBUTE),
                FUNCTION,
                Map.of(7, NODE, 11, ATTRIBUTE),
                GRAPH,
                Map.of(1, NODE, 5, TENSOR, 15, SPARSE_TENSOR),
                TRAINING,
                Map.of(1, GRAPH, 2, GRAPH),
                MODEL,
                Map.of(7, GRAPH, 20, TRAINING, 25, FUNCTION));

        @Nullable
        Message field(int number) {
            return FIELDS.getOrDefault(this, Map.of()).get(number);
        }
    }

    /** Returns whether ONNX Runtime maps no file when it opens the model. */
    public boolean isNone() {
        return isRead && required.isEmpty() && mentioned.isEmpty();
    }

    /** Reads the names of the files that a model uses. The values of tensors in the model are skipped. */
    public static ExternalFiles read(Path model) throws IOException {
        try (FileChannel file = FileChannel.open(model, StandardOpenOption.READ)) {
            Reader reader = new Reader(file);
            boolean isRead;
            try {
                reader.message(Message.MODEL, file.size(), 0);
                isRead = true;
            } catch (MalformedException | EOFException e) {
                isRead = false; // ONNX Runtime reports the fault
            }
            reader.mentioned.removeAll(reader.required);
            return new ExternalFiles(reader.required, reader.mentioned, isRead);
        }
    }

    private static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException() {
            super("no model in the format of ONNX", null, false, false);
        }
    }

    /** Reads a model from its beginning to its end. Confined to one thread. */
    private static final class Reader {
        final SortedSet<String> required = new TreeSet<>();
        final SortedSet<String> mentioned = new TreeSet<>();
        private final FileChannel file;
        private final ByteBuffer buffer =
                ByteBuffer.allocateDirect(BUFFER_BYTES).limit(0);

        /** The position in the file of the end of the buffer. */
        private long read;

        Reader(FileChannel file) {
            this.file = file;
        }

        void message(Message message, long end, int depth) throws IOException, MalformedException {
            if (depth > MAX_DEPTH) {
                throw new MalformedException();
            }
            List<String> locations = new ArrayList<>();
            boolean isExternal = false;
            while (position() < end) {
                long tag = varint();
                int field = (int) (tag >>> FIELD_SHIFT);
                switch ((int) tag & WIRE_MASK) {
                    case VARINT -> {
                        long value = varint();
                        isExternal |= message == Message.TENSOR && field == DATA_LOCATION && (int) value == 1;
                    }
                    case FIXED_64 -> skip(Long.BYTES, end);
                    case FIXED_32 -> skip(Integer.BYTES, end);
                    case DELIMITED -> {
                        long size = varint();
                        if (size < 0 || size > end - position()) {
                            throw new MalformedException();
                        }
                        Message inner = message.field(field);
                        if (inner == null) {
                            skip(size, end);
                        } else if (inner == Message.ENTRY) {
                            entry(position() + size, locations);
                        } else {
                            message(inner, position() + size, depth + 1);
                        }
                    }
                    default -> throw new MalformedException(); // groups, which ONNX does not have
                }
            }
            if (position() != end) {
                throw new MalformedException();
            }
            (isExternal ? required : mentioned).addAll(locations);
            if (required.size() + mentioned.size() > MAX_FILES) {
                throw new IOException("more than " + MAX_FILES + " files with external data");
            }
        }

        /** Reads a key and its value, which is the name of a file if the key says so. */
        private void entry(long end, List<String> locations) throws IOException, MalformedException {
            String key = "";
            String value = "";
            while (position() < end) {
                long tag = varint();
                int field = (int) (tag >>> FIELD_SHIFT);
                if ((tag & WIRE_MASK) != DELIMITED || (field != KEY && field != VALUE)) {
                    throw new MalformedException(); // ONNX has no other field, and need not be read further
                }
                long size = varint();
                if (size < 0 || size > MAX_PATH || size > end - position()) {
                    throw new MalformedException();
                }
                String text = text((int) size);
                if (field == KEY) {
                    key = text;
                } else {
                    value = text;
                }
            }
            if (position() != end) {
                throw new MalformedException();
            }
            if (key.equals("location")) {
                locations.add(value);
            }
        }

        private long position() {
            return read - buffer.remaining();
        }

        private long varint() throws IOException, MalformedException {
            long value = 0;
            for (int shift = 0; shift < Long.SIZE; shift += VARINT_BITS) {
                fill();
                byte next = buffer.get();
                value |= (long) (next & VARINT_MASK) << shift;
                if (next >= 0) {
                    return value;
                }
            }
            throw new MalformedException();
        }

        private String text(int size) throws IOException {
            byte[] bytes = new byte[size];
            for (int i = 0; i < size; i++) {
                fill();
                bytes[i] = buffer.get();
            }
            return new String(bytes, StandardCharsets.UTF_8);
        }

        private void skip(long size, long end) throws MalformedException {
            if (size > end - position()) {
                throw new MalformedException();
            }
            if (size <= buffer.remaining()) {
                buffer.position(buffer.position() + (int) size);
            } else {
                read += size - buffer.remaining();
                buffer.position(0).limit(0);
            }
        }

        private void fill() throws IOException {
            if (buffer.hasRemaining()) {
                return;
            }
            buffer.clear();
            int count = file.read(buffer, read);
            buffer.flip();
            if (count <= 0) {
                buffer.position(0).limit(0);
                throw new EOFException("truncated");
            }
            read += count;
        }
    }
}
