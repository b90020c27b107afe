package dev.nereid.backend.pytorch.presets;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.Argument;
import org.bytedeco.pytorch.FunctionSchema;
import org.bytedeco.pytorch.Graph;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.LongVaryingShape;
import org.bytedeco.pytorch.Method;
import org.bytedeco.pytorch.ScalarTypeOptional;
import org.bytedeco.pytorch.SizeTOptional;
import org.bytedeco.pytorch.TensorType;
import org.bytedeco.pytorch.Type;
import org.bytedeco.pytorch.ValueArrayRef;
import org.bytedeco.pytorch.global.torch.TypeKind;

/**
 * The arguments and the result of {@code forward}. Immutable.
 *
 * @param arguments the arguments without the module itself
 * @param result the type of the result in the words of TorchScript
 * @param values the values of the result, with the values of a tuple one after another; empty if their number is known
 *     at run time only
 */
public record TorchSchema(List<TorchArgument> arguments, String result, Optional<List<Value>> values) {
    private static final int MAX_SHOWN = 20;
    private static final int MAX_CHARACTERS = 200;

    /** A value of the result. */
    public enum Value {
        /** A tensor, or a number, a truth value or a list of them. */
        TENSOR,
        /** A text or a list of texts. */
        STRINGS
    }

    public TorchSchema {
        arguments = List.copyOf(arguments);
        values = values.map(List::copyOf);
    }

    static TorchSchema of(Method method, boolean withExamples) {
        FunctionSchema schema = method.function().getSchema();
        Argument declared = schema.arguments();
        List<TorchArgument> arguments = new ArrayList<>();
        Graph graph = method.graph();
        ValueArrayRef inputs = graph.inputs();
        for (int i = 1; i < declared.limit(); i++) { // the first one is the module
            Argument argument = declared.getPointer(i);
            Type type = argument.type().get();
            Optional<TorchArgument.Example> example = withExamples && i < inputs.size()
                    ? example(inputs.at(i).type().get())
                    : Optional.empty();
            arguments.add(new TorchArgument(text(argument.name()), kind(type), text(type.str()), example));
        }
        Argument returns = schema.returns();
        if (returns.limit() == 0) {
            return new TorchSchema(arguments, "None", Optional.of(List.of()));
        }
        Type type = returns.getPointer(0).type().get();
        List<Value> values = new ArrayList<>();
        boolean isKnown = addValues(type, 0, values);
        return new TorchSchema(arguments, text(type.str()), isKnown ? Optional.of(values) : Optional.empty());
    }

    /** Adds the values of a type; returns whether their number is known. */
    private static boolean addValues(Type type, int depth, List<Value> values) {
        if (depth > TorchExecution.MAX_DEPTH) {
            return false;
        }
        switch (type.kind().intern()) {
            case TensorType, IntType, FloatType, BoolType -> values.add(Value.TENSOR);
            case StringType -> values.add(Value.STRINGS);
            case ListType -> {
                switch (type.containedType(0).get().kind().intern()) {
                    case StringType -> values.add(Value.STRINGS);
                    case IntType, FloatType, BoolType -> values.add(Value.TENSOR);
                    default -> {
                        return false;
                    }
                }
            }
            case TupleType -> {
                for (long i = 0; i < type.containedTypeSize(); i++) {
                    if (!addValues(type.containedType(i).get(), depth + 1, values)) {
                        return false;
                    }
                }
            }
            default -> {
                return false;
            }
        }
        return true;
    }

    private static TorchArgument.Kind kind(Type type) {
        return switch (type.kind().intern()) {
            case TensorType -> TorchArgument.Kind.TENSOR;
            case DictType -> TorchArgument.Kind.DICT;
            case ListType ->
                switch (type.containedType(0).get().kind().intern()) {
                    case StringType -> TorchArgument.Kind.STRINGS;
                    case TensorType -> TorchArgument.Kind.TENSORS;
                    default -> TorchArgument.Kind.LIST;
                };
            default -> TorchArgument.Kind.OTHER;
        };
    }

    private static Optional<TorchArgument.Example> example(Type type) {
        if (type.kind().intern() != TypeKind.TensorType) {
            return Optional.empty();
        }
        TensorType tensor = new TensorType(type);
        try (ScalarTypeOptional element = tensor.scalarType();
                LongVaryingShape sizes = tensor.sizes();
                SizeTOptional rank = sizes.size()) {
            if (!element.has_value() || !rank.has_value()) {
                return Optional.empty();
            }
            long[] dims = new long[(int) rank.get()];
            for (int i = 0; i < dims.length; i++) {
                try (LongOptional size = sizes.get(i)) {
                    if (!size.has_value()) {
                        return Optional.empty();
                    }
                    dims[i] = size.get();
                }
            }
            Optional<DataType> dataType = ElementType.of(element.get());
            return dataType.map(known -> new TorchArgument.Example(known, Shape.of(dims)));
        }
    }

    static String text(BytePointer pointer) {
        try (pointer) {
            return pointer.getString(StandardCharsets.UTF_8);
        }
    }

    private static String shortened(String text) {
        return text.length() <= MAX_CHARACTERS ? text : text.substring(0, MAX_CHARACTERS) + "…";
    }

    /** Returns the signature of at most twenty arguments, as {@code forward(Tensor x, str[] names) -> Tensor}. */
    @Override
    public String toString() {
        String more = arguments.size() > MAX_SHOWN ? ", … " + (arguments.size() - MAX_SHOWN) + " more" : "";
        return arguments.stream()
                .limit(MAX_SHOWN)
                .map(argument -> shortened(argument.type()) + " " + shortened(argument.name()))
                .collect(Collectors.joining(", ", "forward(", more + ") -> " + shortened(result)));
    }
}
