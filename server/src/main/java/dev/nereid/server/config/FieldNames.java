package dev.nereid.server.config;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import inference.ModelConfig;
import inference.ModelConfigProto;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Names of the fields and enum values of model configurations. Static functions only. */
final class FieldNames {
    private FieldNames() {}

    /** Returns the fields of a message; empty if there is no such message. */
    static List<String> ofMessage(String fullName) {
        return message(fullName)
                .map(type ->
                        type.getFields().stream().map(FieldDescriptor::getName).toList())
                .orElse(List.of());
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
        record Step(Descriptor type, String path) {}
        Deque<Step> steps = new ArrayDeque<>(List.of(new Step(ModelConfig.getDescriptor(), "")));
        Set<Descriptor> visited = new HashSet<>();
        while (!steps.isEmpty()) {
            Step step = steps.remove();
            if (step.type().findFieldByName(field) != null) {
                return Optional.of(step.path() + field);
            }
            for (FieldDescriptor next : step.type().getFields()) {
                if (next.getJavaType() == FieldDescriptor.JavaType.MESSAGE && visited.add(next.getMessageType())) {
                    steps.add(new Step(next.getMessageType(), step.path() + next.getName() + "."));
                }
            }
        }
        return Optional.empty();
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
