package dev.nereid.backend.pytorch;

import dev.nereid.spi.DataType;
import java.util.List;

/**
 * Which input is which argument of {@code forward}, and which output is which value of its result. Immutable.
 *
 * @param inputs the names of the inputs in the order of the arguments, or of the keys
 * @param isDictionary whether the inputs are the entries of one dictionary
 * @param outputs the outputs and states of the configuration
 */
record PyTorchSignature(List<String> inputs, boolean isDictionary, List<Output> outputs) {
    PyTorchSignature {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }

    /**
     * An output, or the next value of a state.
     *
     * @param type its type there
     * @param index its place among the values of the result; for dictionaries, where no key has the name
     */
    record Output(String name, DataType type, int index, boolean isState) {}

    /** Returns the keys of the dictionary; none if there is no dictionary. */
    List<String> keys() {
        return isDictionary ? inputs : List.of();
    }
}
