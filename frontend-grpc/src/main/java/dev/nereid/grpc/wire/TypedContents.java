package dev.nereid.grpc.wire;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;

/**
 * Reads typed tensor contents ({@code InferTensorContents}) into tensor memory. Immutable; readable as long as its
 * message is.
 *
 * <p>Parsed twice: first to count the elements and their memory, then to write them there.
 */
final class TypedContents {
    /** The fields of the message, in the order of their numbers. They are checked in this order. */
    private enum Field {
        BOOL(1, WireReader.VARINT),
        INT(2, WireReader.VARINT),
        INT64(3, WireReader.VARINT),
        UINT(4, WireReader.VARINT),
        UINT64(5, WireReader.VARINT),
        FP32(6, WireReader.FIXED32),
        FP64(7, WireReader.FIXED64),
        BYTES(8, WireReader.BYTES);

        private static final Field[] VALUES = values();

        private final int number;
        private final int wireType;

        Field(int number, int wireType) {
            this.number = number;
            this.wireType = wireType;
        }

        /** Returns the bytes that one element takes on the wire, for fields of fixed width. */
        int width() {
            return this == FP32 ? Float.BYTES : Double.BYTES;
        }

        /** Returns the type of this field's elements, given the declared type of the tensor. */
        DataType typeFor(Optional<DataType> declared) {
            return switch (this) {
                case BOOL -> DataType.BOOL;
                case INT ->
                    declared.filter(type -> type == DataType.INT8 || type == DataType.INT16)
                            .orElse(DataType.INT32);
                case INT64 -> DataType.INT64;
                case UINT ->
                    declared.filter(type -> type == DataType.UINT8 || type == DataType.UINT16)
                            .orElse(DataType.UINT32);
                case UINT64 -> DataType.UINT64;
                case FP32 -> DataType.FP32;
                case FP64 -> DataType.FP64;
                case BYTES -> DataType.BYTES;
            };
        }
    }

    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private final MessageBytes bytes;
    private final List<ByteRange> parts;
    private final long[] counts = new long[Field.VALUES.length + 1];
    private long stringBytes;
    private DataType type = DataType.BYTES;
    private long byteSize;

    private TypedContents(MessageBytes bytes, List<ByteRange> parts) {
        this.bytes = bytes;
        this.parts = parts;
    }

    /**
     * Scans the typed contents of an input.
     *
     * @param bytes the message that the input is part of
     * @param model the model's name, for errors
     * @throws InferenceException if the bytes are no such message, or if the elements are not all of the type that the
     *     input declares
     */
    static TypedContents read(MessageBytes bytes, String model, InferMessage.Input input) {
        TypedContents contents = new TypedContents(bytes, input.contents());
        contents.read(contents.new Counter());
        contents.check(model, input.name(), DataType.ofName(input.datatype()));
        return contents;
    }

    private void check(String model, String input, Optional<DataType> declared) {
        String text = "unexpected explicit tensor data for input tensor '" + Quoted.text(input) + "' for model '"
                + Quoted.text(model) + "'";
        boolean found = false;
        for (Field field : Field.VALUES) {
            long count = counts[field.number];
            if (count == 0) {
                continue;
            }
            if (found) {
                throw invalid(text + ", binary data was already supplied.");
            }
            type = field.typeFor(declared);
            if (declared.isEmpty() || declared.get() != type) {
                String expected = declared.map(DataType::name).orElse("<invalid>");
                throw invalid(text + " of type '" + type + "', expected datatype '" + expected + "'");
            }
            found = true;
            byteSize = field == Field.BYTES ? count * Integer.BYTES + stringBytes : count * type.byteSize();
        }
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    long byteSize() {
        return byteSize;
    }

    /** Writes the elements to memory of their size. */
    void writeTo(MemorySegment target) {
        read(new Writer(target));
    }

    /** Takes elements from a reader. */
    private interface ElementSink {
        void take(Field field, WireReader reader);

        /** Takes many elements of fixed width, which are contiguous as in a tensor. */
        void takePacked(Field field, ByteRange elements);
    }

    private void read(ElementSink sink) {
        for (ByteRange part : parts) {
            WireReader reader = WireReader.of(bytes, part);
            while (reader.hasMore()) {
                int tag = reader.tag();
                int number = WireReader.number(tag);
                if (number > Field.VALUES.length) {
                    reader.skip(tag);
                } else {
                    read(Field.VALUES[number - 1], tag, reader, sink);
                }
            }
        }
    }

    private static void read(Field field, int tag, WireReader reader, ElementSink sink) {
        if (WireReader.type(tag) == field.wireType) {
            sink.take(field, reader);
        } else if (WireReader.type(tag) != WireReader.BYTES) {
            reader.skip(tag);
        } else if (field.wireType == WireReader.VARINT) {
            int outer = reader.enter();
            while (reader.hasMore()) {
                sink.take(field, reader);
            }
            reader.leave(outer);
        } else {
            ByteRange elements = reader.range();
            if (elements.length() % field.width() != 0) {
                throw GrpcErrors.malformed();
            }
            sink.takePacked(field, elements);
        }
    }

    private static long number(Field field, WireReader reader) {
        return switch (field.wireType) {
            case WireReader.FIXED32 -> reader.fixed32();
            case WireReader.FIXED64 -> reader.fixed64();
            default -> reader.varint();
        };
    }

    /** Counts elements. Confined to {@link TypedContents#read(MessageBytes, String, InferMessage.Input)}. */
    private final class Counter implements ElementSink {
        @Override
        public void take(Field field, WireReader reader) {
            counts[field.number]++;
            if (field == Field.BYTES) {
                stringBytes += reader.range().length();
            } else {
                number(field, reader);
            }
        }

        @Override
        public void takePacked(Field field, ByteRange elements) {
            counts[field.number] += elements.length() / field.width();
        }
    }

    /** Writes contiguous elements. Confined to {@link TypedContents#writeTo}. */
    private final class Writer implements ElementSink {
        private final MemorySegment target;
        private long at;

        Writer(MemorySegment target) {
            this.target = target;
        }

        @Override
        public void take(Field field, WireReader reader) {
            if (field == Field.BYTES) {
                takeString(reader.range());
                return;
            }
            long value = number(field, reader);
            switch (type.byteSize()) {
                case Byte.BYTES -> target.set(ValueLayout.JAVA_BYTE, at, (byte) narrowed(value));
                case Short.BYTES -> target.set(SHORT, at, (short) value);
                case Integer.BYTES -> target.set(INT, at, (int) value);
                default -> target.set(LONG, at, value);
            }
            at += type.byteSize();
        }

        private long narrowed(long value) {
            return type == DataType.BOOL && value != 0 ? 1 : value;
        }

        private void takeString(ByteRange string) {
            target.set(INT, at, string.length());
            bytes.copyTo(string, target.asSlice(at + Integer.BYTES));
            at += Integer.BYTES + string.length();
        }

        @Override
        public void takePacked(Field field, ByteRange elements) {
            bytes.copyTo(elements, target.asSlice(at));
            at += elements.length();
        }
    }
}
