package dev.nereid.spi;

import java.util.Map;

/**
 * A model with inputs that clients send with padding, for frameworks with such formats. <em>Implemented by backends.</em>
 *
 * <p>Other models implement {@link Model} alone.
 *
 * @since 1.0
 */
@Incubating
public interface PaddedModel extends Model {
    /**
     * Returns the inputs that clients send with padding. They have {@link TensorSpec.Trait#NON_LINEAR_FORMAT}, in a
     * format that joins the elements of one dimension to vectors, of which the last may not be full. Called once, after
     * the load.
     *
     * @return by the name of such an input, its dimensions with the padding and without the batch dimension: as many as
     *     {@link TensorSpec#backendDims()} has, {@link Shape#VARIABLE} for those without padding. The input has these
     *     dimensions, and as many bytes, where the backend sees it
     * @throws BackendException if they cannot be determined; the load of the model fails with it
     */
    Map<String, Shape> paddedInputs();
}
