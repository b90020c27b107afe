package dev.nereid.backend.pytorch.presets;

import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
 * Finds what the graph of a frozen module changes. Confined to one look at a graph.
 *
 * <p>Freezing makes constants of all attributes but those that a graph changes: what it still reads, it may change. Of
 * inputs, an operation in place changes the memory of the value that it is given, or of the value of which that one is a
 * view. Where the origin of a value is not followed, it counts as an input.
 */
final class GraphEffects {
    /** The argument {@code training} of batch normalization, and {@code use_input_stats} of instance normalization. */
    private static final int TRAINING = 5;

    /** The running mean of both. */
    private static final int RUNNING_MEAN = 3;

    /** A graph with more operations in a chain of views counts as one that changes its inputs. */
    private static final int MAX_CHAIN = 1000;

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

    private boolean changesModule;
    private boolean changesInputs;
    private boolean hasLoop;

    private GraphEffects() {}

    static TorchModule.Effects of(Graph graph) {
        GraphEffects effects = look(graph);
        if (effects.changesModule) {
            return TorchModule.Effects.MODULE;
        }
        return effects.changesInputs ? TorchModule.Effects.INPUTS : TorchModule.Effects.NONE;
    }

    static boolean hasLoop(Graph graph) {
        return look(graph).hasLoop;
    }

    private static GraphEffects look(Graph graph) {
        GraphEffects effects = new GraphEffects();
        effects.lookFrom(graph.return_node());
        return effects;
    }

    /** Looks at the nodes of a block: a ring that its last node belongs to. */
    private void lookFrom(JitNode end) {
        for (JitNode node = end.next(); node.address() != end.address(); node = node.next()) {
            look(node);
        }
    }

    private void look(JitNode node) {
        String kind = kind(node);
        switch (kind) {
            case "prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::fork" -> changesModule = true;
            case "prim::GetAttr" ->
                changesModule |= !isLibraryObject(node.output(0).type().get());
            case "prim::Loop" -> hasLoop |= isUnlimited(node.inputs().at(0));
            case "aten::batch_norm", "aten::instance_norm" -> changesModule |= recordsStatistics(node);
            default -> lookAtOperation(node);
        }
        BlockArrayRef blocks = node.blocks();
        for (long i = 0; i < blocks.size(); i++) {
            lookFrom(blocks.at(i).return_node());
        }
    }

    private static String kind(JitNode node) {
        return TorchSchema.text(node.kind().toQualString());
    }

    /** An object of PyTorch's own, such as the weights of a quantized layer. */
    private static boolean isLibraryObject(Type type) {
        return TorchSchema.text(type.str()).startsWith("__torch__.torch.classes.");
    }

    private static boolean recordsStatistics(JitNode node) {
        ValueArrayRef inputs = node.inputs();
        if (inputs.size() <= TRAINING || inputs.at(RUNNING_MEAN).mustBeNone()) {
            return false;
        }
        return !isConstant(inputs.at(TRAINING), false);
    }

    private static boolean isConstant(Value value, boolean expected) {
        IValueOptional constant = torch.toIValue(value);
        return constant.has_value() && constant.get().isBool() && constant.get().toBool() == expected;
    }

    /** The largest number of rounds of {@code while} is that of the type. */
    private static boolean isUnlimited(Value rounds) {
        IValueOptional constant = torch.toIValue(rounds);
        return constant.has_value() && constant.get().isInt() && constant.get().toInt() == Long.MAX_VALUE;
    }

    private void lookAtOperation(JitNode node) {
        FunctionSchema schema = node.maybeSchema();
        if (schema == null || schema.isNull() || !schema.is_mutable()) {
            return;
        }
        ValueArrayRef inputs = node.inputs();
        long count = Math.min(inputs.size(), schema.arguments().limit());
        for (long i = 0; i < count; i++) {
            if (schema.is_mutable(new SchemaArgument(torch.SchemaArgType.input, i))) {
                changesInputs |= !isNew(inputs.at(i), new HashSet<>());
                changesModule |= mayBeConstant(inputs.at(i), new HashSet<>());
            }
        }
    }

    /** Whether the graph has created the memory of a value. */
    private static boolean isNew(Value value, Set<Long> seen) {
        if (!seen.add(value.unique())) {
            return true; // decided where it was seen first
        }
        if (seen.size() > MAX_CHAIN) {
            return false;
        }
        JitNode node = value.node();
        String kind = kind(node);
        if (kind.equals("prim::ListConstruct") || kind.equals("prim::DictConstruct")) {
            return isNewOfAll(node.inputs(), seen);
        }
        if (kind.equals("prim::Constant")) {
            return true; // freezing would have left it an attribute
        }
        if (CREATING.contains(kind)) {
            return true;
        }
        FunctionSchema schema = node.maybeSchema();
        if (schema == null || schema.isNull()) {
            return false; // an input, or the result of a block
        }
        return isNewOfAll(node.inputs(), seen);
    }

    /**
     * Whether a value may lie in a constant, by operations that return what they are given although their schemas do not say
     * so, such as dropout: freezing does not see that either. All of them return their first tensor, or one of a list.
     */
    private static boolean mayBeConstant(Value value, Set<Long> seen) {
        if (!holdsMemory(value) || !seen.add(value.unique())) {
            return false; // or decided where it was seen first
        }
        if (seen.size() > MAX_CHAIN) {
            return true;
        }
        JitNode node = value.node();
        String kind = kind(node);
        if (kind.equals("prim::Constant")) {
            return true;
        }
        if (CREATING.contains(kind)) {
            return false;
        }
        FunctionSchema schema = node.maybeSchema();
        boolean isOperation =
                schema != null && !schema.isNull() && node.blocks().size() == 0;
        return isOperation ? mayBeFirstConstant(node.inputs(), seen) : mayBeOneConstant(node, seen);
    }

    private static boolean mayBeFirstConstant(ValueArrayRef values, Set<Long> seen) {
        for (long i = 0; i < values.size(); i++) {
            if (holdsMemory(values.at(i))) {
                return mayBeConstant(values.at(i), seen);
            }
        }
        return false;
    }

    /** Looks at all that containers, branches and loops may take a value from. */
    private static boolean mayBeOneConstant(JitNode node, Set<Long> seen) {
        boolean found = mayBeAnyConstant(node.inputs(), seen);
        BlockArrayRef blocks = node.blocks();
        for (long i = 0; i < blocks.size(); i++) {
            found |= mayBeAnyConstant(blocks.at(i).return_node().inputs(), seen);
        }
        if (kind(node).equals("prim::Param")) {
            JitNode loop = node.owningBlock().owningNode();
            found |= loop != null && !loop.isNull() && mayBeOneConstant(loop, seen);
        }
        return found;
    }

    private static boolean mayBeAnyConstant(ValueArrayRef values, Set<Long> seen) {
        for (long i = 0; i < values.size(); i++) {
            if (mayBeConstant(values.at(i), seen)) {
                return true;
            }
        }
        return false;
    }

    private static boolean holdsMemory(Value value) {
        return switch (value.type().get().kind().intern()) {
            case IntType, FloatType, BoolType, StringType, NoneType, DeviceObjType, NumberType -> false;
            default -> true;
        };
    }

    private static boolean isNewOfAll(ValueArrayRef values, Set<Long> seen) {
        for (long i = 0; i < values.size(); i++) {
            Value value = values.at(i);
            if (holdsMemory(value) && !isNew(value, seen)) {
                return false;
            }
        }
        return true;
    }
}
