package dev.nereid.testkit.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Optional;

/** The shapes of inputs for which a test gives elements alone: one item of the model's configuration. Immutable. */
final class DefaultShapes {
    private final Optional<ModelMetadata> model;

    private DefaultShapes(Optional<ModelMetadata> model) {
        this.model = model;
    }

    /** Reads the configuration of a model; that of an unknown one is empty, since the server refuses the request. */
    static DefaultShapes of(InferenceServer server, ModelRef model) {
        try {
            return new DefaultShapes(Optional.of(server.models().metadata(model)));
        } catch (InferenceException e) {
            return new DefaultShapes(Optional.empty());
        }
    }

    /** Returns the shape of one item with some elements: the configured one if they fill it, or else a vector. */
    Shape shape(String input, int elements) {
        boolean batches = model.filter(found -> found.maxBatchSize() > 0).isPresent();
        Shape item = model.stream()
                .flatMap(found -> found.inputs().stream())
                .filter(spec -> spec.name().equals(input))
                .map(TensorSpec::dims)
                .map(dims -> filled(dims, elements))
                .flatMap(Optional::stream)
                .findFirst()
                .orElse(Shape.of(elements));
        return batches ? item.prepend(1) : item;
    }

    /** Returns dimensions with a number for the only variable one. */
    private static Optional<Shape> filled(Shape dims, int elements) {
        long[] numbers = dims.toArray();
        long known = 1;
        int variable = -1;
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] != Shape.VARIABLE) {
                known *= numbers[i];
            } else if (variable < 0) {
                variable = i;
            } else {
                return Optional.empty();
            }
        }
        if (variable >= 0 && known > 0 && elements % known == 0) {
            numbers[variable] = elements / known;
            return Optional.of(Shape.of(numbers));
        }
        return variable < 0 && known == elements ? Optional.of(dims) : Optional.empty();
    }
}
