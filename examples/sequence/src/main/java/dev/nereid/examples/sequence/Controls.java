package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/** Finds and reads the control inputs of sequences. */
final class Controls {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private Controls() {}

    static String name(ModelSettings settings, ControlInput.Kind kind, DataType type) {
        return name(settings, kind, List.of(type), type.toString());
    }

    /** Returns the name of a control input of one of several types. */
    static String name(ModelSettings settings, ControlInput.Kind kind, List<DataType> types) {
        return name(settings, kind, types, "one of " + types);
    }

    private static String name(ModelSettings settings, ControlInput.Kind kind, List<DataType> types, String expected) {
        List<ControlInput> controls =
                settings.sequenceBatching().map(batching -> batching.controls()).orElse(List.of());
        for (ControlInput control : controls) {
            if (control.kind() == kind && types.contains(control.type())) {
                return control.name();
            }
        }
        throw new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                "sequence_batching: no control_input CONTROL_" + kind + " of " + expected + " (expected: one)");
    }

    /** Returns whether a control input of INT32 is not 0. */
    static boolean isSet(InferenceRequest request, String control) {
        return request.requireInput(control).data().get(INT, 0) != 0;
    }
}
