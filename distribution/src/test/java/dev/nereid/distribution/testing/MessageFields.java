package dev.nereid.distribution.testing;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.UnknownFieldSet.Field;

/** Adds fields by number to protobuf messages that have no generated class, as those of ONNX. Static functions only. */
final class MessageFields {
    private MessageFields() {}

    /** Adds a message. */
    static void add(UnknownFieldSet.Builder message, int number, UnknownFieldSet.Builder value) {
        add(message, number, value.build().toByteString());
    }

    /** Adds a text. */
    static void add(UnknownFieldSet.Builder message, int number, String value) {
        add(message, number, ByteString.copyFromUtf8(value));
    }

    /** Adds bytes. */
    static void add(UnknownFieldSet.Builder message, int number, ByteString value) {
        message.mergeField(number, Field.newBuilder().addLengthDelimited(value).build());
    }

    /** Adds a number. */
    static void add(UnknownFieldSet.Builder message, int number, long value) {
        message.mergeField(number, Field.newBuilder().addVarint(value).build());
    }
}
