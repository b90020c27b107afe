package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/**
 * Specification of one input or output of a model. Immutable.
 *
 * <p>Shapes describe one item: they lack the batch dimension that every tensor of a model with
 * {@link ModelSettings#maxBatchSize()} above 0 has in front. Clients use {@link #dims()}; a backend sees
 * {@link #backendDims()}, which differ where the configuration says {@code reshape}.
 *
 * @since 1.0
 */
public final class TensorSpec {
    /** Special properties of a tensor. Open: later versions may add constants. */
    public enum Trait {
        /** Input only: a request may leave it out. */
        OPTIONAL,
        /** Input only: requests of one batch may differ in its shape. */
        RAGGED,
        /** The elements are dimensions of other tensors; it has no batch dimension. */
        SHAPE_TENSOR,
        /** The elements lie in a layout of the framework's own. */
        NON_LINEAR_FORMAT
    }

    private final String name;
    private final DataType type;
    private final Shape dims;
    private final Optional<Shape> reshape;
    private final Set<Trait> traits;

    private TensorSpec(String name, DataType type, Shape dims, Optional<Shape> reshape, Set<Trait> traits) {
        this.name = requireNonNull(name, "name");
        this.type = requireNonNull(type, "type");
        this.dims = requireNonNull(dims, "dims");
        this.reshape = reshape;
        this.traits = Set.copyOf(traits);
    }

    /**
     * Describes a plain tensor.
     *
     * @param name the tensor's name
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return the description
     */
    public static TensorSpec of(String name, DataType type, Shape dims) {
        return new TensorSpec(name, type, dims, Optional.empty(), Set.of());
    }

    /**
     * Returns the same description with another shape for the backend.
     *
     * @param backendDims the shape, without batch dimension, in which the backend sees the tensor
     * @return the changed description
     */
    public TensorSpec withReshape(Shape backendDims) {
        return new TensorSpec(name, type, dims, Optional.of(backendDims), traits);
    }

    /**
     * Returns the same description with one more trait.
     *
     * @param trait the additional trait
     * @return the changed description
     */
    public TensorSpec with(Trait trait) {
        EnumSet<Trait> more = EnumSet.of(trait);
        more.addAll(traits);
        return new TensorSpec(name, type, dims, reshape, more);
    }

    /**
     * Returns the tensor's name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Returns the type of the elements.
     *
     * @return the type
     */
    public DataType type() {
        return type;
    }

    /**
     * Returns the dimensions that clients use, without batch dimension.
     *
     * @return the dimensions
     */
    public Shape dims() {
        return dims;
    }

    /**
     * Returns the dimensions that the backend sees, without batch dimension.
     *
     * @return the reshaped dimensions, or {@link #dims()} where there are none
     */
    public Shape backendDims() {
        return reshape.orElse(dims);
    }

    /**
     * Returns the shape of {@code reshape}.
     *
     * @return the shape, or empty if the tensor is not reshaped
     */
    public Optional<Shape> reshape() {
        return reshape;
    }

    /**
     * Says whether the tensor has a trait.
     *
     * @param trait the trait
     * @return whether the tensor has it
     */
    public boolean is(Trait trait) {
        return traits.contains(trait);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TensorSpec spec
                && name.equals(spec.name)
                && type == spec.type
                && dims.equals(spec.dims)
                && reshape.equals(spec.reshape)
                && traits.equals(spec.traits);
    }

    @Override
    public int hashCode() {
        return name.hashCode();
    }

    @Override
    public String toString() {
        return name + " " + type + " " + dims + (reshape.isPresent() ? " as " + reshape.get() : "");
    }
}
