package dev.nereid.repository.config;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import inference.ModelConfig;
import inference.ModelConfigProto;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Names of the fields and enum values of model configurations. Static functions only. */
final class FieldNames {
    /** The fields of each message. A text may have any number of unknown fields, so they are not listed for each. */
    private static final Map<String, List<String>> FIELDS =
            fields(ModelConfigProto.getDescriptor().getMessageTypes());

    /** The shortest path to a field of each name. */
    private static final Map<String, String> PATHS = paths();

    private FieldNames() {}

    /** Returns the fields of a message; empty if there is no such message. */
    static List<String> ofMessage(String fullName) {
        return FIELDS.getOrDefault(fullName, List.of());
    }

    /** Returns the values of an enum; empty if there is no such enum. */
    static List<String> ofEnum(String fullName) {
        return enumType(fullName)
                .map(type -> type.getValues().stream()
                        .map(EnumValueDescriptor::getName)
                        .toList())
                .orElse(List.of());
    }

    /** Returns a name without the names of its package and of the messages around it. */
    static String simple(String fullName) {
        return fullName.substring(fullName.lastIndexOf('.') + 1);
    }

    /** Finds the shortest path from the top of a configuration to a field: {@code dynamic_batching.priority_levels}. */
    static Optional<String> path(String field) {
        return Optional.ofNullable(PATHS.get(field));
    }

    private static Map<String, List<String>> fields(List<Descriptor> types) {
        Map<String, List<String>> fields = new HashMap<>();
        for (Descriptor type : types) {
            fields.put(
                    type.getFullName(),
                    type.getFields().stream().map(FieldDescriptor::getName).toList());
            fields.putAll(fields(type.getNestedTypes()));
        }
        return Map.copyOf(fields);
    }

    private static Map<String, String> paths() {
        record Step(Descriptor type, String path) {}
        Map<String, String> paths = new HashMap<>();
        Deque<Step> steps = new ArrayDeque<>(List.of(new Step(ModelConfig.getDescriptor(), "")));
        Set<Descriptor> visited = new HashSet<>();
        while (!steps.isEmpty()) {
            Step step = steps.remove();
            for (FieldDescriptor field : step.type().getFields()) {
                String path = step.path() + field.getName();
                paths.putIfAbsent(field.getName(), path);
                if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && visited.add(field.getMessageType())) {
                    steps.add(new Step(field.getMessageType(), path + "."));
                }
            }
        }
        return Map.copyOf(paths);
    }

    private static Optional<Descriptor> message(String fullName) {
        return find(ModelConfigProto.getDescriptor().getMessageTypes(), fullName);
    }

    private static Optional<Descriptor> find(List<Descriptor> types, String fullName) {
        for (Descriptor type : types) {
            Optional<Descriptor> found =
                    type.getFullName().equals(fullName) ? Optional.of(type) : find(type.getNestedTypes(), fullName);
            if (found.isPresent()) {
                return found;
            }
        }
        return Optional.empty();
    }

    private static Optional<EnumDescriptor> enumType(String fullName) {
        List<EnumDescriptor> types = ModelConfigProto.getDescriptor().getEnumTypes();
        int cut = fullName.lastIndexOf('.');
        List<EnumDescriptor> nested = message(fullName.substring(0, Math.max(cut, 0)))
                .map(Descriptor::getEnumTypes)
                .orElse(types);
        return nested.stream()
                .filter(type -> type.getFullName().equals(fullName))
                .findFirst();
    }
}
