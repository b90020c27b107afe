package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * Specification of a state that the server keeps for each sequence of a model. Immutable.
 *
 * <p>Its present value is an input of each request, its next value is written to {@link InferenceRequest#state}. The
 * dimensions lack the batch dimension, as in a {@link TensorSpec}.
 *
 * @since 1.0
 */
public final class StateSpec {
    private final String inputName;
    private final String outputName;
    private final DataType type;
    private final Shape dims;
    private final boolean sameBuffer;
    private final boolean growableMemory;

    private StateSpec(
            String inputName,
            String outputName,
            DataType type,
            Shape dims,
            boolean sameBuffer,
            boolean growableMemory) {
        this.inputName = requireNonNull(inputName, "inputName");
        this.outputName = requireNonNull(outputName, "outputName");
        this.type = requireNonNull(type, "type");
        this.dims = requireNonNull(dims, "dims");
        this.sameBuffer = sameBuffer;
        this.growableMemory = growableMemory;
    }

    /**
     * Describes a state.
     *
     * @param inputName the name of the input with its present value
     * @param outputName the name under which its next value is written
     * @param type the type of its elements
     * @param dims its dimensions without the batch dimension, {@link Shape#VARIABLE} where any size will do
     * @return the description
     */
    public static StateSpec of(String inputName, String outputName, DataType type, Shape dims) {
        return new StateSpec(inputName, outputName, type, dims, false, false);
    }

    /**
     * Returns the same description with one buffer for the present and the next value.
     *
     * @return the changed description
     */
    public StateSpec withSameBuffer() {
        return new StateSpec(inputName, outputName, type, dims, true, growableMemory);
    }

    /**
     * Returns the same description with one buffer that grows in place.
     *
     * @return the changed description
     */
    public StateSpec withGrowableMemory() {
        return new StateSpec(inputName, outputName, type, dims, true, true);
    }

    /**
     * Returns the name of the input with the present value.
     *
     * @return the name
     */
    public String inputName() {
        return inputName;
    }

    /**
     * Returns the name under which the next value is written.
     *
     * @return the name
     */
    public String outputName() {
        return outputName;
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
     * Returns the dimensions without batch dimension.
     *
     * @return the dimensions
     */
    public Shape dims() {
        return dims;
    }

    /**
     * Says whether one buffer holds the present and the next value ({@code use_same_buffer_for_input_output}).
     *
     * @return {@code false} by default
     */
    public boolean sameBuffer() {
        return sameBuffer;
    }

    /**
     * Says whether the buffer grows in place ({@code use_growable_memory}).
     *
     * @return {@code false} by default
     */
    public boolean growableMemory() {
        return growableMemory;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof StateSpec spec
                && inputName.equals(spec.inputName)
                && outputName.equals(spec.outputName)
                && type == spec.type
                && dims.equals(spec.dims)
                && sameBuffer == spec.sameBuffer
                && growableMemory == spec.growableMemory;
    }

    @Override
    public int hashCode() {
        return outputName.hashCode();
    }

    @Override
    public String toString() {
        return inputName + " -> " + outputName + " " + type + " " + dims;
    }
}
