package dev.nereid.backend.pytorch.presets;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.util.Optional;

/**
 * An argument of {@code forward}. Immutable.
 *
 * @param type its type in the words of TorchScript, such as {@code Tensor}, or {@code str[]} for a list of texts
 * @param example the type and shape of the tensor that a trace was made with; empty where that is not known
 */
public record TorchArgument(String name, Kind kind, String type, Optional<Example> example) {
    /** Kind of the values that an argument takes. */
    public enum Kind {
        /** A tensor. */
        TENSOR,
        /** A list of texts. */
        STRINGS,
        /** A list of tensors. */
        TENSORS,
        /** Any other list. */
        LIST,
        /** A dictionary. */
        DICT,
        /** Anything else. */
        OTHER
    }

    /** The tensor that a trace was made with. */
    public record Example(DataType type, Shape shape) {
        public Example {
            requireNonNull(type, "type");
            requireNonNull(shape, "shape");
        }
    }

    public TorchArgument {
        requireNonNull(name, "name");
        requireNonNull(kind, "kind");
        requireNonNull(type, "type");
        requireNonNull(example, "example");
    }
}
