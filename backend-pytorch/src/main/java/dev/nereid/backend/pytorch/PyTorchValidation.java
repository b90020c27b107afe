package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.presets.TorchArgument;
import dev.nereid.backend.pytorch.presets.TorchSchema;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Compares a configuration with the schema of its module, in the order and with the texts of the reference server. Confined
 * to one load.
 */
final class PyTorchValidation {
    private static final Set<DataType> TYPES = EnumSet.of(
            DataType.BOOL,
            DataType.UINT8,
            DataType.INT8,
            DataType.INT16,
            DataType.INT32,
            DataType.INT64,
            DataType.FP16,
            DataType.BF16,
            DataType.FP32,
            DataType.FP64,
            DataType.BYTES);

    private static final String SINGLE_DICT =
            " Only a single input of type Dict(str, Tensor) or input(s) of type Tensor are supported.";

    private final ModelContext context;
    private final ModelSettings settings;
    private final TorchSchema schema;
    private final boolean isDictionary;

    private PyTorchValidation(ModelContext context, TorchSchema schema) {
        this.context = context;
        this.schema = schema;
        settings = context.settings();
        isDictionary =
                !schema.arguments().isEmpty() && schema.arguments().getFirst().kind() == TorchArgument.Kind.DICT;
    }

    /** Refuses what does not depend on the module. To be called before that is loaded. */
    static void checkConfiguration(ModelSettings settings) {
        for (TensorSpec input : settings.inputs()) {
            if (input.is(TensorSpec.Trait.OPTIONAL)) {
                throw PyTorchErrors.invalid("'optional' is set to true for input '" + input.name()
                        + "' while the backend model doesn't support optional input");
            }
        }
    }

    /** Refuses a configuration that does not agree with its module; returns how they fit otherwise. */
    static PyTorchSignature check(ModelContext context, TorchSchema schema) {
        PyTorchValidation validation = new PyTorchValidation(context, schema);
        validation.checkControls();
        List<String> inputs = validation.inputs();
        List<PyTorchSignature.Output> outputs = validation.outputs();
        return new PyTorchSignature(inputs, validation.isDictionary, outputs);
    }

    private List<ControlInput> controls() {
        return settings.sequenceBatching().map(SequenceBatching::controls).orElse(List.of());
    }

    private List<StateSpec> states() {
        return settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of());
    }

    private void checkControls() {
        for (ControlInput control : controls()) {
            if (NamingConvention.index(control.name()).isEmpty()) {
                throw PyTorchErrors.internal(
                        "input '" + control.name() + "' does not follow <name>__<index> naming convention.");
            }
            if (control.type() == DataType.BYTES || !TYPES.contains(control.type())) {
                throw PyTorchErrors.internal("input '" + control.name() + "' type '"
                        + control.type().configName() + "' is not supported by PyTorch.");
            }
        }
    }

    private List<String> inputs() {
        checkArguments();
        List<String> all = names();
        if (!isDictionary && all.size() != schema.arguments().size()) {
            throw PyTorchErrors.invalid("unable to load model '" + settings.name() + "', configuration expects "
                    + all.size() + " inputs, model provides "
                    + schema.arguments().size() + ": " + schema);
        }
        if (settings.inputs().isEmpty()) {
            throw PyTorchErrors.internal("model configuration must contain at least one input, none were specified.");
        }
        if (settings.outputs().isEmpty()) {
            throw PyTorchErrors.internal("model configuration must contain at least one output, none were specified.");
        }
        for (TensorSpec input : settings.inputs()) {
            checkType(input.type(), "input '" + input.name() + "'");
            checkStrings(input, "input");
        }
        for (StateSpec state : states()) {
            checkType(state.type(), "input state '" + state.inputName() + "'");
            if (state.type() == DataType.BYTES && state.dims().rank() > 1) {
                throw notOneDimensional("input", state.inputName());
            }
        }
        if (isDictionary) {
            checkKeys(all);
            return all;
        }
        String[] order = new String[all.size()];
        int[] places = places(all);
        for (int i = 0; i < order.length; i++) {
            int place = places[i];
            if (place >= order.length || order[place] != null) {
                throw PyTorchErrors.invalid("unable to load model '" + settings.name() + "', input '" + all.get(i)
                        + "': "
                        + (place >= order.length
                                ? "index " + place + " (expected: below " + order.length + ")"
                                : "the same argument as input '" + order[place] + "' (expected: one input for each)")
                        + "; " + schema);
            }
            order[place] = all.get(i);
        }
        for (int i = 0; i < order.length; i++) {
            checkKind(order[i], schema.arguments().get(i));
        }
        return List.of(order);
    }

    /** Returns the names of all that a batch may carry: inputs, derived ones, controls and states. */
    private List<String> names() {
        List<String> names = new ArrayList<>();
        settings.inputs().forEach(input -> names.add(input.name()));
        settings.batchInputs().forEach(input -> names.addAll(input.names()));
        controls().forEach(control -> names.add(control.name()));
        states().forEach(state -> names.add(state.inputName()));
        return names;
    }

    /** Refuses arguments that no input can be: first a second dictionary, then others, in their order. */
    private void checkArguments() {
        List<TorchArgument> arguments = schema.arguments();
        if (arguments.stream().skip(1).anyMatch(argument -> argument.kind() == TorchArgument.Kind.DICT)) {
            throw PyTorchErrors.internal("Multiple inputs of kind DictType were detected. Only a single input of"
                    + " type Dict(str, Tensor) is supported.");
        }
        boolean isAlone = arguments.size() == 1;
        for (TorchArgument argument : arguments) {
            TorchArgument.Kind kind = argument.kind();
            if (kind == TorchArgument.Kind.OTHER || (kind == TorchArgument.Kind.DICT && !isAlone)) {
                throw PyTorchErrors.internal(
                        "An input of type '" + argument.type() + "' was detected in the model." + SINGLE_DICT);
            }
        }
    }

    /** Returns the places of inputs among the arguments, by the convention that the plain inputs follow. */
    private int[] places(List<String> all) {
        List<String> arguments =
                schema.arguments().stream().map(TorchArgument::name).toList();
        List<String> plain = settings.inputs().stream().map(TensorSpec::name).toList();
        NamingConvention convention = NamingConvention.of(plain, arguments);
        if (!states().isEmpty()) {
            requireIndices(convention);
        } else if (convention == NamingConvention.ORDER) {
            warnOfOrder(
                    plain,
                    "input '%s' or previous input(s) are neither an input argument to the model '" + settings.name()
                            + "' nor do they follow the <name>__<index> naming convention.",
                    arguments);
        }
        int derived = settings.batchInputs().stream()
                .map(BatchInput::names)
                .mapToInt(List::size)
                .sum();
        return IntStream.range(0, all.size())
                .map(i -> i < plain.size() + derived
                        ? place(convention, all.get(i), i, arguments)
                        : NamingConvention.index(all.get(i)).orElse(Integer.MAX_VALUE)) // controls and states
                .toArray();
    }

    private int place(NamingConvention convention, String name, int position, List<String> arguments) {
        return switch (convention) {
            case ORDER -> position;
            case ARGUMENT -> {
                int place = arguments.indexOf(name);
                if (place < 0) { // a derived input
                    throw PyTorchErrors.invalid("unable to load model '" + settings.name() + "', batch input '" + name
                            + "' (expected: an argument, as the inputs are: " + String.join(", ", arguments) + ")");
                }
                yield place;
            }
            case INDEX ->
                NamingConvention.index(name)
                        .orElseThrow(() -> PyTorchErrors.invalid("unable to load model '" + settings.name()
                                + "', batch input '" + name
                                + "' (expected: a name <name>__<index>, as the inputs have it)"));
        };
    }

    private void requireIndices(NamingConvention inputs) {
        List<String> outputs = settings.outputs().stream().map(TensorSpec::name).toList();
        if (inputs != NamingConvention.INDEX || NamingConvention.of(outputs, List.of()) != NamingConvention.INDEX) {
            throw PyTorchErrors.invalid("PyTorch model '" + settings.name()
                    + "' is using sequence batching with state but not all inputs and outputs follow the"
                    + " <name>__<index> naming convention. ");
        }
        for (StateSpec state : states()) {
            for (String name : List.of(state.inputName(), state.outputName())) {
                if (NamingConvention.index(name).isEmpty()) {
                    throw PyTorchErrors.invalid("PyTorch model '" + settings.name()
                            + "' is using sequence batching with state but state '" + name
                            + "' does not follow the <name>__<index> naming convention. ");
                }
            }
        }
    }

    private void warnOfOrder(List<String> names, String text, List<String> ofModule) {
        String first = names.stream()
                .filter(name -> NamingConvention.index(name).isEmpty())
                .findFirst()
                .orElse(names.getFirst());
        context.logger()
                .log(
                        System.Logger.Level.WARNING,
                        text.formatted(first)
                                + " Falling back to enforcing strict ordering from model configuration."
                                + (ofModule.isEmpty() ? "" : " The model's names: " + String.join(", ", ofModule)));
    }

    /** Refuses texts for a tensor, and a tensor for texts; PyTorch would refuse each request. */
    private void checkKind(String input, TorchArgument argument) {
        boolean isText = isText(input);
        boolean takesText = argument.kind() == TorchArgument.Kind.STRINGS;
        if (argument.kind() == TorchArgument.Kind.LIST || isText != takesText) {
            throw PyTorchErrors.invalid("unable to load model '" + settings.name() + "', input '" + input + "': "
                    + (isText ? "TYPE_STRING" : "a tensor") + " for the argument " + describe(argument) + " (expected: "
                    + (takesText ? "TYPE_STRING" : isText ? "an argument List[str]" : "an argument Tensor") + ")");
        }
    }

    /** Refuses texts for the keys of a dictionary of tensors. */
    private void checkKeys(List<String> keys) {
        for (String key : keys) {
            if (isText(key)) {
                throw PyTorchErrors.invalid("unable to load model '" + settings.name() + "', input '" + key
                        + "': TYPE_STRING for the argument "
                        + describe(schema.arguments().getFirst())
                        + " (expected: a tensor for each key)");
            }
        }
    }

    private boolean isText(String input) {
        return settings.input(input)
                .map(spec -> spec.type() == DataType.BYTES)
                .orElseGet(() -> states().stream()
                        .anyMatch(state -> state.inputName().equals(input) && state.type() == DataType.BYTES));
    }

    private static String describe(TorchArgument argument) {
        return argument.type() + " " + argument.name();
    }

    private void checkType(DataType type, String place) {
        if (!TYPES.contains(type)) {
            throw PyTorchErrors.internal("unsupported datatype " + type.configName() + " for " + place + " for model '"
                    + settings.name() + "' (expected: a type of PyTorch, not an unsigned one of 16, 32 or 64 bits)");
        }
    }

    private void checkStrings(TensorSpec spec, String role) {
        if (spec.type() == DataType.BYTES && rank(spec.backendDims()) > 1) {
            throw notOneDimensional(role, spec.name());
        }
    }

    private BackendException notOneDimensional(String role, String name) {
        return PyTorchErrors.internal("Triton only supports 1 dimensional List of String as " + role + " for '" + name
                + "' for model '" + settings.name() + "'");
    }

    private int rank(Shape dims) {
        return dims.rank() + (settings.batches() ? 1 : 0);
    }

    private List<PyTorchSignature.Output> outputs() {
        List<String> names = settings.outputs().stream().map(TensorSpec::name).toList();
        NamingConvention convention = NamingConvention.of(names, List.of());
        if (convention == NamingConvention.ORDER && states().isEmpty()) {
            if (!schema.result().startsWith("Dict(")) {
                warnOfOrder(
                        names,
                        "output '%s' or previous output(s) of the model '" + settings.name()
                                + "' do not follow the <name>__<index> naming convention.",
                        List.of());
            }
        }
        List<PyTorchSignature.Output> outputs = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            TensorSpec spec = settings.outputs().get(i);
            checkType(spec.type(), "output '" + spec.name() + "'");
            checkStrings(spec, "output");
            int index = convention == NamingConvention.ORDER
                    ? i
                    : NamingConvention.index(spec.name()).orElseThrow();
            outputs.add(checked(new PyTorchSignature.Output(spec.name(), spec.type(), index, false)));
        }
        for (StateSpec state : states()) {
            if (!TYPES.contains(state.type())) {
                throw PyTorchErrors.internal(
                        "unsupported datatype " + state.type().configName() + " for state '" + state.outputName()
                                + "' for model '" + settings.name() + "'");
            }
            int index = NamingConvention.index(state.outputName()).orElseThrow();
            outputs.add(checked(new PyTorchSignature.Output(state.outputName(), state.type(), index, true)));
        }
        return outputs;
    }

    /** Refuses an output that no result has, where the schema shows that. */
    private PyTorchSignature.Output checked(PyTorchSignature.Output output) {
        schema.values().ifPresent(values -> {
            if (output.index() >= values.size()) {
                throw missing(output.name(), values.size());
            }
            boolean isText = values.get(output.index()) == TorchSchema.Value.STRINGS;
            if (isText != (output.type() == DataType.BYTES)) {
                throw PyTorchErrors.invalid("configuration expects datatype "
                        + output.type().configName() + " for output '" + output.name() + "', model provides "
                        + (isText ? "TYPE_STRING" : "a tensor"));
            }
        });
        return output;
    }

    /** Returns the exception for an output that a result does not have. */
    static BackendException missing(String output, int provided) {
        return PyTorchErrors.invalid("The output " + output
                + " in the model configuration refers to an output index which doesn't exist. This model has "
                + provided + " outputs");
    }
}
