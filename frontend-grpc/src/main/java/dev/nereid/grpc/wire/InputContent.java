package dev.nereid.grpc.wire;

import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;

/** The location of an input's data. Readable as long as its message is. */
sealed interface InputContent {
    InferMessage.Input input();

    /** An input with its data in the message. */
    sealed interface Inline extends InputContent {
        long byteSize();

        /** Copies the data into memory of this size. */
        void writeTo(MemorySegment target);
    }

    /** Data in the layout of tensors, at a range of the message. */
    record Raw(InferMessage.Input input, MessageBytes bytes, ByteRange range) implements Inline {
        @Override
        public long byteSize() {
            return range.length();
        }

        @Override
        public void writeTo(MemorySegment target) {
            bytes.copyTo(range, target);
        }
    }

    /** Data as typed contents, element by element. */
    record Typed(InferMessage.Input input, TypedContents contents) implements Inline {
        @Override
        public long byteSize() {
            return contents.byteSize();
        }

        @Override
        public void writeTo(MemorySegment target) {
            contents.writeTo(target);
        }
    }

    /** Data in shared memory of the client, with the lease of its part, owned by the holder. */
    record Shared(InferMessage.Input input, TensorBuffer lease) implements InputContent {}
}
