package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Decides which requests of a model may share a batch. Immutable.
 *
 * <p>Inputs with a variable dimension must agree in shape, unless the model takes ragged batches of them; shape tensors
 * in shape and content; and if any input is optional, the same inputs must be present. Batch dimensions may differ.
 */
public final class EqualInputs {
    /** A request that may share a batch with others. */
    public interface Candidate {
        CheckedRequest checked();

        /** Returns the result of {@link EqualInputs#content} for the request. */
        byte @Nullable [] content();
    }

    /** The property of one input that requests of a batch must have in common. */
    private enum Rule {
        NOTHING,
        SHAPE,
        CONTENT
    }

    private static final byte[] NO_CONTENT = {};

    /**
     * The maximum size of shape tensors that are compared. They hold a few numbers; a larger one is not worth a copy,
     * and its request is executed alone.
     */
    private static final long MAX_CONTENT = 65_536;

    private final Map<String, Rule> rules = new HashMap<>();
    private final int batchDims;
    private final boolean always;
    private final boolean hasContent;

    public EqualInputs(ModelSettings model) {
        boolean unrestricted = true;
        for (TensorSpec input : model.inputs()) {
            Rule rule = rule(input);
            rules.put(input.name(), rule);
            unrestricted &= rule == Rule.NOTHING && !input.is(TensorSpec.Trait.OPTIONAL);
        }
        this.batchDims = model.batches() ? 1 : 0;
        this.always = unrestricted;
        this.hasContent = rules.containsValue(Rule.CONTENT);
    }

    private static Rule rule(TensorSpec input) {
        if (input.is(TensorSpec.Trait.SHAPE_TENSOR)) {
            return Rule.CONTENT;
        }
        boolean variable = !input.dims().isConcrete() || !input.backendDims().isConcrete();
        return variable && !input.is(TensorSpec.Trait.RAGGED) ? Rule.SHAPE : Rule.NOTHING;
    }

    /** Returns whether {@link #content} reads inputs. */
    public boolean readContent() {
        return hasContent;
    }

    /**
     * Copies the content of shape tensors, for comparisons. The memory of a request may be gone by then.
     *
     * @return the content of the shape tensors, most often empty; {@code null} if it cannot be read
     */
    public byte @Nullable [] content(CheckedRequest request) {
        if (!hasContent) {
            return NO_CONTENT;
        }
        byte[] content = NO_CONTENT;
        for (NamedTensor input : request.inputs()) {
            if (rules.get(input.name()) == Rule.CONTENT) {
                MemorySegment data = input.tensor().data();
                int size = content.length;
                boolean readable = input.tensor().place().isHost() && !ClientMemory.isClientMemory(data);
                if (!readable || size + data.byteSize() > MAX_CONTENT) {
                    return null;
                }
                content = Arrays.copyOf(content, Math.toIntExact(size + data.byteSize()));
                MemorySegment.copy(data, 0, MemorySegment.ofArray(content), size, data.byteSize());
            }
        }
        return content;
    }

    /** Returns whether any two requests may share a batch. */
    public boolean joinAll() {
        return always;
    }

    /** Returns whether two requests may share a batch. Reads no memory of inputs. */
    public boolean join(Candidate first, Candidate second) {
        if (always) {
            return true;
        }
        List<NamedTensor> inputs = first.checked().inputs();
        List<NamedTensor> others = second.checked().inputs();
        if (inputs.size() != others.size() || !sameContent(first.content(), second.content())) {
            return false;
        }
        for (int i = 0; i < inputs.size(); i++) {
            if (!join(inputs.get(i), others.get(i))) {
                return false;
            }
        }
        return true;
    }

    private boolean join(NamedTensor first, NamedTensor second) {
        if (!first.name().equals(second.name())) {
            return false;
        }
        Shape shape = first.tensor().shape();
        return switch (rules.getOrDefault(first.name(), Rule.NOTHING)) {
            case NOTHING -> true;
            case SHAPE -> sameShape(shape, second.tensor().shape());
            case CONTENT -> shape.equals(second.tensor().shape());
        };
    }

    private boolean sameShape(Shape first, Shape second) {
        if (first.rank() != second.rank()) {
            return false;
        }
        for (int i = batchDims; i < first.rank(); i++) {
            if (first.dim(i) != second.dim(i)) {
                return false;
            }
        }
        return true;
    }

    private static boolean sameContent(byte @Nullable [] one, byte @Nullable [] other) {
        return one != null && other != null && Arrays.equals(one, other);
    }
}
