package dev.nereid.backend.natives;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Collection;
import java.util.function.BiPredicate;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Compares configured tensors with those of a model, with the reference server's texts. Immutable. */
public record TensorChecks(ModelSettings settings) {
    /** Returns the tensor of a name; the role in the error, if there is none, is {@code input} or {@code output}. */
    public static <T> T find(String name, Collection<T> tensors, Function<T, String> nameOf, String role) {
        return tensors.stream()
                .filter(tensor -> nameOf.apply(tensor).equals(name))
                .findFirst()
                .orElseThrow(() -> ModelErrors.invalid("unexpected inference " + role + " '" + name + "', allowed "
                        + role + "s are: "
                        + tensors.stream().map(nameOf).sorted().collect(Collectors.joining(", "))));
    }

    /**
     * Refuses a tensor of another shape than the model's.
     *
     * @param isKnown whether the model declares the number of dimensions
     * @param fits whether a shape of the model fits a configured one, both with batch dimension
     */
    public void checkDims(TensorSpec spec, Shape model, boolean isKnown, BiPredicate<Shape, Shape> fits) {
        Shape configured = spec.backendDims();
        if (model.rank() == 0) {
            checkScalar(spec, configured);
            if (isKnown && settings.batches()) {
                throw noBatchDimension(spec, model); // it would produce one item for any size of the batch
            }
        } else if (settings.batches()) {
            checkBatch(spec, model, configured, fits);
        } else if (!fits.test(model, configured)) {
            throw differs(spec, model, configured.rank() + " dimensions (shape " + configured + ")");
        }
    }

    /** Checks the configured shape of a scalar, or of a tensor for which the model declares no dimensions. */
    private void checkScalar(TensorSpec spec, Shape configured) {
        for (int i = 0; i < configured.rank(); i++) {
            if (configured.dim(i) != 1) {
                throw refused("scalar tensor '" + spec.name()
                        + "', should only provide 1 in the model configuration when the model doesn't support"
                        + " batching. Model configuration provided: " + configured + ".");
            }
        }
    }

    private void checkBatch(TensorSpec spec, Shape model, Shape configured, BiPredicate<Shape, Shape> fits) {
        if (model.dim(0) != Shape.VARIABLE) {
            throw noBatchDimension(spec, model);
        }
        Shape full = configured.prepend(Shape.VARIABLE);
        if (!fits.test(model, full)) {
            throw differs(
                    spec,
                    model,
                    full.rank() + " dimensions (an initial batch dimension because max_batch_size > 0 followed by the"
                            + " explicit tensor shape, making complete shape " + full + ")");
        }
    }

    /** Refuses a ragged input, unless the model takes one open dimension. */
    public void checkRagged(TensorSpec spec, Shape model) {
        if (model.rank() != 1 || model.dim(0) != Shape.VARIABLE) {
            throw refused("configuration expects model provides input with shape [-1]  for ragged input '" + spec.name()
                    + "', model provides " + model);
        }
    }

    private BackendException noBatchDimension(TensorSpec spec, Shape model) {
        return ModelErrors.invalid("model '" + settings.name() + "', tensor '" + spec.name()
                + "': for the model to support batching the shape should have at least 1 dimension and the first"
                + " dimension must be -1; but shape expected by the model is " + model);
    }

    private BackendException differs(TensorSpec spec, Shape model, String configured) {
        return ModelErrors.invalid("model '" + settings.name() + "', tensor '" + spec.name() + "': the model expects "
                + model.rank() + " dimensions (shape " + model + ") but the model configuration specifies "
                + configured);
    }

    public BackendException refused(String message) {
        return ModelErrors.cannotLoad(settings.name(), message);
    }
}
