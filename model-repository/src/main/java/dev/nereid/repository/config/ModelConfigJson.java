package dev.nereid.repository.config;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.MapEntry;
import com.google.protobuf.Message;
import inference.ModelConfig;
import inference.ModelInstanceGroup;
import inference.ModelOptimizationPolicy;
import inference.ModelSequenceBatching;
import java.util.List;
import java.util.Set;

/**
 * Writes model configurations as JSON, byte for byte as the reference server does. Fields are in the order of their
 * declaration and under their own names, defaults included, enums by name.
 *
 * <p>Protobuf's own printer orders fields by number and writes 64-bit integers as strings. The reference turns these
 * back into numbers field by field and omits some, which stay strings; this class does the same.
 */
public final class ModelConfigJson {
    private static final Set<FieldDescriptor> LONGS_AS_STRINGS = Set.of(
            field(ModelInstanceGroup.SecondaryDevice.getDescriptor(), "device_id"),
            field(ModelOptimizationPolicy.Cuda.GraphSpec.Shape.getDescriptor(), "dim"),
            field(ModelSequenceBatching.InitialState.getDescriptor(), "dims"));

    private final StringBuilder out = new StringBuilder(2048);

    private ModelConfigJson() {}

    /** Prints a configuration as a JSON object on one line. */
    public static String write(ModelConfig config) {
        ModelConfigJson json = new ModelConfigJson();
        json.message(config);
        return json.out.toString();
    }

    private void message(Message message) {
        out.append('{');
        boolean isFirst = true;
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            if (isPrinted(message, field)) {
                out.append(isFirst ? "" : ",");
                isFirst = false;
                text(field.getName());
                out.append(':');
                field(message, field);
            }
        }
        out.append('}');
    }

    /**
     * Returns whether a field is printed. Lists and plain values always are; messages and members of a oneof only if
     * the configuration has them.
     */
    private static boolean isPrinted(Message message, FieldDescriptor field) {
        return field.isRepeated() || !field.hasPresence() || message.hasField(field);
    }

    private void field(Message message, FieldDescriptor field) {
        if (field.isMapField()) {
            map(message, field);
        } else if (field.isRepeated()) {
            array((List<?>) message.getField(field), field);
        } else {
            value(message.getField(field), field);
        }
    }

    private void map(Message message, FieldDescriptor field) {
        FieldDescriptor valueField = field.getMessageType().findFieldByName("value");
        out.append('{');
        boolean isFirst = true;
        for (Object element : (List<?>) message.getField(field)) {
            MapEntry<?, ?> entry = (MapEntry<?, ?>) element;
            out.append(isFirst ? "" : ",");
            isFirst = false;
            text(entry.getKey() instanceof Long key ? Long.toUnsignedString(key) : String.valueOf(entry.getKey()));
            out.append(':');
            value(entry.getField(valueField), valueField);
        }
        out.append('}');
    }

    private void array(List<?> values, FieldDescriptor field) {
        out.append('[');
        boolean isFirst = true;
        for (Object value : values) {
            out.append(isFirst ? "" : ",");
            isFirst = false;
            value(value, field);
        }
        out.append(']');
    }

    private void value(Object value, FieldDescriptor field) {
        switch (field.getType()) {
            case MESSAGE, GROUP -> message((Message) value);
            case ENUM -> enumValue((EnumValueDescriptor) value);
            case STRING -> text((String) value);
            case UINT32, FIXED32 -> out.append(Integer.toUnsignedString((Integer) value));
            case UINT64, FIXED64 -> integer(Long.toUnsignedString((Long) value), field);
            case INT64, SINT64, SFIXED64 -> integer(Long.toString((Long) value), field);
            case FLOAT -> number((Float) value, Float.toString((Float) value));
            case DOUBLE -> number((Double) value, Double.toString((Double) value));
            case BOOL, INT32, SINT32, SFIXED32 -> out.append(value);
            case BYTES -> throw new IllegalStateException("field: " + field + " (expected: no field of bytes)");
        }
    }

    private void integer(String digits, FieldDescriptor field) {
        if (LONGS_AS_STRINGS.contains(field)) {
            text(digits);
        } else {
            out.append(digits);
        }
    }

    private void number(double value, String shortest) {
        if (!Double.isFinite(value)) {
            text(shortest);
        } else if (shortest.endsWith(".0")) {
            out.append(shortest, 0, shortest.length() - 2);
        } else {
            out.append(shortest);
        }
    }

    private void enumValue(EnumValueDescriptor value) {
        if (value.getIndex() < 0) {
            out.append(value.getNumber()); // a number that has no name
        } else {
            text(value.getName());
        }
    }

    private void text(String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            character(value.charAt(i));
        }
        out.append('"');
    }

    private void character(char c) {
        switch (c) {
            case '"' -> out.append("\\\"");
            case '\\' -> out.append("\\\\");
            case '\b' -> out.append("\\b");
            case '\f' -> out.append("\\f");
            case '\n' -> out.append("\\n");
            case '\r' -> out.append("\\r");
            case '\t' -> out.append("\\t");
            default -> {
                if (c < ' ') {
                    out.append(String.format("\\u%04X", (int) c));
                } else {
                    out.append(c);
                }
            }
        }
    }

    private static FieldDescriptor field(Descriptor message, String name) {
        FieldDescriptor field = message.findFieldByName(name);
        if (field == null) {
            throw new IllegalStateException("field: " + message.getFullName() + "." + name + " (expected: declared)");
        }
        return field;
    }
}
