package dev.nereid.backend.pytorch.presets;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BlockArrayRef;
import org.bytedeco.pytorch.FunctionSchema;
import org.bytedeco.pytorch.Graph;
import org.bytedeco.pytorch.IValueOptional;
import org.bytedeco.pytorch.JitNode;
import org.bytedeco.pytorch.SchemaArgument;
import org.bytedeco.pytorch.Type;
import org.bytedeco.pytorch.Value;
import org.bytedeco.pytorch.ValueArrayRef;
import org.bytedeco.pytorch.global.torch;

/**
 * Finds the tensors that the graph of a frozen module changes, in one pass. Confined to one pass.
 *
 * <p>Freezing makes constants of the attributes that a graph does not change: it may change every attribute that it
 * still reads. An operation in place changes the memory of its argument, or of the value of which the argument is a
 * view. So each value has the origins that its memory may have; where an origin is not followed, the value has the
 * origins of all values that its operation reads.
 */
final class GraphEffects {
    /** The origin of memory of the caller. */
    private static final int INPUT = 1;

    /** The origin of memory of the module. */
    private static final int CONSTANT = 2;

    /** The operations that record statistics of a batch in their arguments 3 and 4, if argument 5 is true. */
    private static final Set<String> NORMALIZING = Set.of(
            "aten::batch_norm",
            "aten::instance_norm",
            "aten::native_batch_norm",
            "aten::_batch_norm_impl_index",
            "aten::cudnn_batch_norm");

    private static final int RUNNING_MEAN = 3;
    private static final int TRAINING = 5;

    /** The operations that return a number of elements or dimensions of a value. */
    private static final Set<String> SIZES = Set.of("aten::size", "aten::len", "aten::dim");

    private static final String ELEMENT = "aten::__getitem__";

    /** The largest number of rounds of nested loops together that do not count as long. */
    private static final long MAX_ROUNDS = 1_000_000;

    /** A graph with more steps, loops counted as often as they are visited, counts as one that changes all. */
    private static final int MAX_STEPS = 2_000_000;

    /** The common operations that always create their result; others may return a view, whatever their schema says. */
    private static final Set<String> CREATING = Stream.of(
                    "_convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear addmm"
                            + " matmul bmm mm baddbmm batch_norm layer_norm group_norm instance_norm add sub mul div pow"
                            + " relu relu6 sigmoid tanh gelu silu elu leaky_relu hardtanh hardswish hardsigmoid softmax"
                            + " log_softmax embedding cat stack zeros ones full empty zeros_like ones_like full_like"
                            + " empty_like new_zeros new_ones new_full new_empty arange linspace rand randn randint"
                            + " rand_like randn_like clone max_pool1d max_pool2d avg_pool1d avg_pool2d"
                            + " adaptive_avg_pool2d mean sum exp log sqrt rsqrt neg abs eq ne lt le gt ge logical_and"
                            + " logical_or logical_not where cumsum sin cos clamp floor ceil round")
            .flatMap(names -> Stream.of(names.split(" ")))
            .map(name -> "aten::" + name)
            .collect(Collectors.toUnmodifiableSet());

    private final Map<Long, Integer> origins = new HashMap<>();
    private boolean changesModule;
    private boolean changesInputs;
    private boolean mayRunLong;
    private int steps;

    private GraphEffects() {}

    static GraphEffects of(Graph graph) {
        GraphEffects effects = new GraphEffects();
        ValueArrayRef inputs = graph.inputs();
        for (long i = 0; i < inputs.size(); i++) {
            effects.origins.put(inputs.at(i).unique(), INPUT);
        }
        effects.visitBlock(graph.return_node(), 1);
        return effects;
    }

    TorchModule.Effects effects() {
        if (changesModule) {
            return TorchModule.Effects.MODULE;
        }
        return changesInputs ? TorchModule.Effects.INPUTS : TorchModule.Effects.NONE;
    }

    /** Returns whether there is a loop with an unknown or large number of rounds. */
    boolean mayRunLong() {
        return mayRunLong;
    }

    /** Visits the nodes of a block: a ring that contains its last node. */
    private void visitBlock(JitNode end, long rounds) {
        for (JitNode node = end.next(); node.address() != end.address(); node = node.next()) {
            if (++steps > MAX_STEPS) {
                changesModule = true;
                changesInputs = true;
                mayRunLong = true;
                return;
            }
            try (PointerScope _ = new PointerScope()) {
                visit(node, rounds);
            }
        }
    }

    private void visit(JitNode node, long rounds) {
        String kind = kind(node);
        switch (kind) {
            case "prim::Param" -> {} // its values belong to the block, and have their origins
            case "prim::Constant" -> setOrigins(node, CONSTANT);
            case "prim::GetAttr" -> {
                changesModule |= !isLibraryObject(node.output(0).type().get());
                setOrigins(node, INPUT | CONSTANT);
            }
            case "prim::fork" -> {
                changesModule = true;
                mayRunLong = true; // the forked graph is not visited
                setOrigins(node, INPUT | CONSTANT);
            }
            case "prim::SetAttr", "prim::CallMethod", "prim::CallFunction" -> {
                changesModule = true;
                setOrigins(node, INPUT | CONSTANT);
            }
            case "prim::Loop" -> visitLoop(node, rounds);
            case "prim::If" -> visitBranches(node, rounds);
            default -> visitOperation(node, kind);
        }
    }

    private void visitLoop(JitNode loop, long rounds) {
        long inside = rounds(loop.inputs().at(0), rounds);
        mayRunLong |= inside > MAX_ROUNDS;
        int carried = origins(loop.inputs());
        JitNode end = loop.blocks().at(0).return_node();
        int before;
        do { // a round may carry memory to the next one
            before = carried;
            setOrigins(loop.blocks().at(0).param_node(), carried);
            visitBlock(end, inside);
            carried |= origins(end.inputs());
        } while (carried != before && steps <= MAX_STEPS);
        setOrigins(loop, carried);
    }

    private void visitBranches(JitNode node, long rounds) {
        int found = 0;
        BlockArrayRef blocks = node.blocks();
        for (long i = 0; i < blocks.size(); i++) {
            JitNode end = blocks.at(i).return_node();
            visitBlock(end, rounds);
            found |= origins(end.inputs());
        }
        setOrigins(node, found);
    }

    private void visitOperation(JitNode node, String kind) {
        ValueArrayRef inputs = node.inputs();
        FunctionSchema schema = node.maybeSchema();
        boolean isOperation = schema != null && !schema.isNull();
        if (NORMALIZING.contains(kind)) {
            changesModule |= recordsStatistics(inputs);
        } else if (isOperation && schema.is_mutable()) {
            recordChange(inputs, schema);
        }
        if (CREATING.contains(kind)) {
            setOrigins(node, 0);
            return;
        }
        int all = origins(inputs);
        // Operations that return what they are given, although their schemas do not say so, return their first tensor.
        setOrigins(node, isOperation ? (all & INPUT) | (first(inputs) & CONSTANT) : all);
    }

    private void recordChange(ValueArrayRef inputs, FunctionSchema schema) {
        long count = Math.min(inputs.size(), schema.arguments().limit());
        for (long i = 0; i < count; i++) {
            if (schema.is_mutable(new SchemaArgument(torch.SchemaArgType.input, i))) {
                Value changed = inputs.at(i);
                int found = origins(changed);
                changesInputs |= (found & INPUT) != 0;
                changesModule |= (found & CONSTANT) != 0;
                origins.merge(changed.unique(), origins(inputs), (old, more) -> old | more); // such as of a list
            }
        }
    }

    private static boolean recordsStatistics(ValueArrayRef inputs) {
        if (inputs.size() <= TRAINING || inputs.at(RUNNING_MEAN).mustBeNone()) {
            return false;
        }
        IValueOptional training = torch.toIValue(inputs.at(TRAINING));
        return !training.has_value()
                || !training.get().isBool()
                || training.get().toBool();
    }

    /** Returns the number of rounds of a loop within others; that of elements counts as one. */
    private static long rounds(Value count, long outside) {
        IValueOptional constant = torch.toIValue(count);
        if (constant.has_value() && constant.get().isInt()) {
            long own = Math.max(1, constant.get().toInt());
            return own > MAX_ROUNDS ? Long.MAX_VALUE : Math.min(outside, MAX_ROUNDS + 1) * own;
        }
        JitNode source = count.node();
        if (kind(source).equals(ELEMENT)) { // of a list of sizes
            source = source.inputs().at(0).node();
        }
        return SIZES.contains(kind(source)) ? outside : Long.MAX_VALUE;
    }

    private static String kind(JitNode node) {
        return TorchSchema.text(node.kind().toQualString());
    }

    /** An object of PyTorch's own, such as the weights of a quantized layer. */
    private static boolean isLibraryObject(Type type) {
        return TorchSchema.text(type.str()).startsWith("__torch__.torch.classes.");
    }

    private void setOrigins(JitNode node, int found) {
        ValueArrayRef outputs = node.outputs();
        for (long i = 0; i < outputs.size(); i++) {
            origins.put(outputs.at(i).unique(), found);
        }
    }

    private int origins(ValueArrayRef values) {
        int found = 0;
        for (long i = 0; i < values.size(); i++) {
            found |= origins(values.at(i));
        }
        return found;
    }

    private int first(ValueArrayRef values) {
        for (long i = 0; i < values.size(); i++) {
            if (holdsMemory(values.at(i))) {
                return origins(values.at(i));
            }
        }
        return 0;
    }

    private int origins(Value value) {
        return holdsMemory(value) ? origins.getOrDefault(value.unique(), INPUT | CONSTANT) : 0;
    }

    private static boolean holdsMemory(Value value) {
        return switch (value.type().get().kind().intern()) {
            case IntType, FloatType, BoolType, StringType, NoneType, DeviceObjType, NumberType -> false;
            default -> true;
        };
    }
}
